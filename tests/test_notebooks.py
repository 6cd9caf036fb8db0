"""The notebooks run from top to bottom, and lie in the repository without outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def run(name):
    notebook = nbformat.read(FOLDER / name, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
    )
    client.execute()
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def printed(outputs):
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def test_there_are_two_notebooks():
    assert [path.name for path in NOTEBOOKS] == [
        "fit_your_own_table.ipynb",
        "from_results_to_a_figure.ipynb",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.mark.slow
def test_the_first_shows_a_guarantee_a_ledger_and_a_better_accuracy_than_the_majority():
    text = printed(run("fit_your_own_table.ipynb"))
    assert "(1, 1e-06)-DP, add or remove one record" in text
    assert "accounting: safe" in text
    assert "PrivacyLeakWarning" in text
    accuracy, majority = (
        float(part.split(" ")[-1])
        for part in text.splitlines()[0].removeprefix("accuracy ").split(", always")
    )
    assert accuracy > majority + 0.05


@pytest.mark.slow
def test_the_second_has_a_comparison_a_picture_and_one_to_pick_in(tmp_path, request):
    outputs = run("from_results_to_a_figure.ipynb")
    assert "4 ok" in printed(outputs)
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == 1
    tables = [output["data"]["text/plain"] for output in outputs if "data" in output]
    assert any("won-tied-lost" in text for text in tables)

    (frame,) = [
        html
        for output in outputs
        if "<iframe" in (html := output.get("data", {}).get("text/html", ""))
    ]
    page = tmp_path / "cell.html"
    page.write_text(f'<!DOCTYPE html><meta charset="utf-8">{frame}', encoding="utf-8")
    # Asked for this late, so that all above is tested where there is no browser.
    browser = request.getfixturevalue("browser")
    browser.get(page.as_uri())
    browser.switch_to.frame(0)

    def names():
        found = browser.find_elements("css selector", "svg .name")
        return {one.text.split()[0] for one in found}

    assert names() == {"Lumberjack", "Fully", "Majority"}
    browser.find_element("css selector", "[value=majority]").click()
    browser.find_element("css selector", "[name=metric] [value=log_loss]").click()
    assert names() == {"Lumberjack", "Fully"}
    axis = browser.find_element("css selector", "svg .axis")
    assert axis.text == "Log loss (less is better)"
    assert browser.get_log("browser") == []
