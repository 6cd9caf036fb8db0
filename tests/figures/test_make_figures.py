from __future__ import annotations

import csv
import math
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic_results import result_rows

from lumberjack_bench.configured import configured
from lumberjack_bench.figures import FIGURES, FigureError, draw, not_in

ROOT = Path(__file__).resolve().parents[2]
make_figures = runpy.run_path(str(ROOT / "scripts" / "make_figures.py"))["main"]


@pytest.fixture
def small_results(write_results):
    return write_results(
        result_rows("lumberjack", [0.82, 0.83], eps=0.5),
        result_rows("lumberjack", [0.83, 0.84], eps=8.0),
        result_rows("snr", [0.79, 0.80], eps=0.5, card_status="doubted"),
        result_rows("majority", [0.76, 0.76], eps=math.inf),
        result_rows("lumberjack", [0.7, 0.71], dataset="acs_travel_time"),
        result_rows("lumberjack", [0.9, 0.91], dataset="mine"),
    )


def drawn(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_what_a_figure_leaves_out_of_a_sweep_is_named():
    assert not_in("figure3", ["adult", "digits"], ["snr", "mine"]) == ["digits", "mine"]
    assert not_in("accuracy", ["adult", "digits"], ["snr", "mine"]) == []


def test_figure3_writes_vector_picture_csv_and_report(small_results, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert make_figures(["figure3", "--results", str(small_results), "--out", str(out)]) == 0
    names = ["figure3.pdf", "figure3.png", "figure3.csv", "figure3.md", "report.html"]
    assert [Path(line).name for line in capsys.readouterr().out.splitlines()] == names
    assert (out / "figure3.pdf").read_bytes().startswith(b"%PDF")
    assert (out / "figure3.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in out.iterdir()) == sorted(names)


def test_the_csv_holds_what_is_plotted_and_nothing_else(small_results, tmp_path):
    draw("figure3", tmp_path)
    rows = drawn(tmp_path / "figure3.csv")
    assert {row["dataset"] for row in rows} == {"adult"}
    assert [(r["method"], r["eps"], r["mean"], r["card_status"]) for r in rows] == [
        ("lumberjack", "0.5", "0.825", "holds"),
        ("lumberjack", "8", "0.835", "holds"),
        ("snr", "0.5", "0.795", "doubted"),
        ("majority", "inf", "0.76", "not private"),
    ]


def test_each_figure_shows_its_own_data_sets_and_methods_or_those_asked_for(
    small_results, tmp_path
):
    given = ["--results", str(small_results)]
    assert make_figures(["figure4", "accuracy", *given]) == 0
    for name, expected in (
        ("figure4", {"acs_travel_time"}),
        ("accuracy", {"adult", "acs_travel_time", "mine"}),
    ):
        assert {row["dataset"] for row in drawn(tmp_path / f"{name}.csv")} == expected
    chosen = ["accuracy", "--datasets", "adult", "--methods", "snr,majority"]
    assert make_figures([*chosen, *given]) == 0
    shown = {(row["dataset"], row["method"]) for row in drawn(tmp_path / "accuracy.csv")}
    assert shown == {("adult", "snr"), ("adult", "majority")}


def test_the_paper_s_figures_show_its_methods_only_and_others_when_asked_for(
    write_results, tmp_path
):
    given = ["--results", str(write_results(*(result_rows(m, [0.8]) for m in ("snr", "rival"))))]
    for name, words, shown in (
        ("figure3", [], {"snr"}),
        ("accuracy", [], {"snr", "rival"}),
        ("figure3", ["--methods", "rival"], {"rival"}),
    ):
        assert make_figures([name, *words, *given]) == 0
        assert {row["method"] for row in drawn(tmp_path / f"{name}.csv")} == shown
    table = (tmp_path / "accuracy.md").read_text()
    assert "| method | eps = 1 |\n| --- | ---: |\n| Rival | **0.8000** |\n" in table


def test_the_metric_is_chosen_and_one_that_is_missing_is_refused_with_those_there_are(
    write_results, tmp_path, capsys
):
    path = write_results(
        result_rows("snr", [0.8]),
        result_rows("lumberjack", [0.8]),
        result_rows("lumberjack", [0.3], metric="log_loss"),
    )
    given = ["figure3", "--results", str(path), "--metric"]
    assert make_figures([*given, "log_loss"]) == 0
    assert [(r["metric"], r["mean"]) for r in drawn(tmp_path / "figure3.csv")] == [
        ("log_loss", "0.3")
    ]
    page = (tmp_path / "report.html").read_text()
    assert "Log loss against privacy" in page
    assert "adult: runs without log_loss are left out (snr); they have accuracy." in page
    assert "no metric 'roc_auc'. They hold: accuracy, log_loss." in refusal(
        capsys, *given, "roc_auc"
    )


@pytest.mark.parametrize("name", [name for name, figure in FIGURES.items() if figure.datasets])
def test_the_experiment_of_a_figure_runs_its_data_sets_and_draws_it(name):
    experiment = configured(f"experiment/{name}")
    assert experiment["hydra"]["sweeper"]["params"]["dataset"] == ",".join(FIGURES[name].datasets)
    assert experiment["figure"] == name
    assert FIGURES[name].command == f"python run.py -m +experiment={name}"


def test_equal_tables_make_equal_files(small_results, tmp_path):
    for name in ("one", "two"):
        folder = str(tmp_path / name)
        assert make_figures(["figure3", "--results", str(small_results), "--out", folder]) == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_a_results_folder_will_do_for_the_table(small_results, capsys):
    assert make_figures(["report", "--results", str(small_results.parent)]) == 0
    assert capsys.readouterr().out.strip() == str(small_results.parent / "report.html")


def test_figures_3_and_4_need_no_method_no_training_and_no_hydra(small_results):
    unwanted = ("numba", "sklearn.ensemble", "baselines", "lumberjack.growth", "hydra", "mlflow")
    unwanted += ("lumberjack_bench.runs.execute", "lumberjack_bench.command")
    code = (
        "import sys; from pathlib import Path; from lumberjack_bench.figures import draw;"
        f"draw('figure3', Path({str(small_results.parent)!r}));"
        f"print([n for n in {unwanted!r} if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


def refusal(capsys, *arguments):
    assert make_figures([str(argument) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


def test_an_unknown_figure_is_refused_with_all_there_are_and_nothing_is_made(
    small_results, capsys, tmp_path
):
    before = sorted(tmp_path.iterdir())
    error = refusal(capsys, "figure3", "figure9", "--results", small_results)
    assert all(name in error for name in ("figure9", *FIGURES))
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(FigureError, match="figure9"):
        draw("figure9", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["figure3", "--methods", "no"], ["no", "lumberjack, majority, snr"]),
        (["accuracy", "--datasets", "no"], ["no", "acs_travel_time, adult, mine"]),
        (["table1", "colour=red"], ["colour", "stand_in_dir"]),
        (["figure3", "--out", "results.csv"], ["results.csv", "--out DIR"]),
    ],
    ids=["method", "data set", "setting", "folder"],
)
def test_what_cannot_be_shown_or_written_is_refused_in_one_line(
    small_results, capsys, monkeypatch, arguments, said
):
    monkeypatch.chdir(small_results.parent)
    error = refusal(capsys, *arguments, "--results", "results.csv")
    assert all(word in error for word in said)


@pytest.mark.parametrize(
    ("changes", "also"),
    [
        ({"dataset": "mine"}, "it holds mine"),
        ({"status": "failed"}, "1 of its runs have no result"),
    ],
)
def test_a_table_without_rows_for_the_figure_says_what_to_run(
    write_results, capsys, tmp_path, changes, also
):
    path = write_results(result_rows("lumberjack", [0.8], **changes))
    error = refusal(capsys, "figure3", "--results", path)
    assert "figure3 (adult, acs_income, acs_employment)" in error
    assert also in error
    assert "python run.py -m +experiment=figure3" in error
    assert sorted(p.name for p in tmp_path.iterdir()) == ["results.csv"]


def test_a_missing_table_says_which_command_makes_it(capsys, tmp_path):
    error = refusal(capsys, "figure4", "--results", tmp_path / "results.csv")
    assert "python run.py -m +experiment=figure4" in error


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "\x00\x01\x02"])
def test_a_file_that_is_no_results_table_is_refused(capsys, tmp_path, content):
    path = tmp_path / "other.csv"
    path.write_text(content)
    error = refusal(capsys, "figure3", "--results", path)
    assert str(path) in error
    assert "results table" in error
