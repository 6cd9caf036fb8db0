"""Accuracies and ranks on the README and the page on methods are those of the published files."""

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

PROJECT = Path(__file__).resolve().parents[1]
PUBLISHED = PROJECT / "results" / "published"
RANKINGS = ("suite.md", "suite_roc_auc.md", "suite_log_loss.md")
PAGES = ("README.md", "docs/which-method.md", "results/published/README.md")


def label_of(cell: str) -> str:
    """Return the label or name in the first cell of a row."""
    return cell.replace("(ours)", "").replace("(the paper's settings)", "").strip(" `†")


def published_ranks(rankings: Sequence[str] = RANKINGS) -> dict[tuple[str, int, str], str]:
    """Return mean ranks by method (label and name), place of the ranking and epsilon, as they are printed."""
    names = {
        row.label: row.method
        for row in pd.read_csv(PUBLISHED / "suite.csv").itertuples(index=False)
    }
    ranks = {}
    for place, file in enumerate(rankings):
        sections = re.split(
            r"^## eps = (\S+): \d+ data sets$", (PUBLISHED / file).read_text(), flags=re.M
        )
        for epsilon, section in zip(sections[1::2], sections[2::2], strict=True):
            table = section.split("| not private |")[0]
            for label, rank in re.findall(r"^\| ([^|]+) \| (\d\.\d\d) \[", table, flags=re.M):
                ranks[label, place, epsilon] = ranks[names[label], place, epsilon] = rank
    return ranks


@pytest.mark.parametrize("page", PAGES)
def test_mean_ranks_are_the_published_ones(page):
    ranks = published_ranks()
    (table,) = re.findall(
        r"^\|[^\n]*ROC AUC, [^\n]*\|\n((?:\|[^\n]*\n)+)", (PROJECT / page).read_text(), flags=re.M
    )
    rows = re.findall(r"^\| ([^|]+) \|((?: \**\d\.\d\d\** \|){6})$", table, flags=re.M)
    assert len(rows) == 7
    for cell, numbers in rows:
        expected = [ranks[label_of(cell), place, e] for place in range(3) for e in ("1", "4")]
        assert re.findall(r"\d\.\d\d", numbers) == expected, cell


def test_mean_ranks_of_rare_classes_are_the_published_ones():
    ranks = published_ranks(["suite_rare.md"])
    page = (PROJECT / "docs" / "how-to" / "rare-classes.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| \**(\d\.\d\d)\** \| \**(\d\.\d\d)\** \|$", page, flags=re.M)
    assert len(rows) == 7
    for cell, *numbers in rows:
        assert numbers == [ranks[label_of(cell), 0, e] for e in ("1", "4")], cell


def test_accuracies_on_adult_are_the_published_ones():
    means = pd.read_csv(PUBLISHED / "rivals.csv").groupby("label")["mean"].agg(list)
    expected = {label: {f"{mean:.4f}" for mean in values} for label, values in means.items()}
    section = (PROJECT / "README.md").read_text().split("## Results")[1].split("```")[0]
    table = section.split("experiment=rivals")[0]
    rows = re.findall(r"^\| ([^|]+) \|((?: \**0\.\d{4}\** \|| \|){5})$", table, flags=re.M)
    assert len(rows) == 13
    for cell, numbers in rows:
        label = label_of(cell).split(" (non-private")[0]
        label = next(own for own in expected if own.split(" (non-private")[0] == label)
        found = re.findall(r"0\.\d{4}", numbers)
        assert found
        assert set(found) == expected[label], cell


def test_accuracies_in_the_advice_are_published():
    means = pd.read_csv(PUBLISHED / "rivals.csv")["mean"]
    known = {f"{mean:.4f}" for mean in means}
    found = re.findall(r"\b0\.\d{4}\b", (PROJECT / "docs" / "which-method.md").read_text())
    assert found
    assert set(found) <= known
