from __future__ import annotations

import csv
import importlib.util
import math
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic_results import result_rows

from lumberjack_bench.figures import FIGURES, FigureError, draw

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location(
        "make_figures", ROOT / "scripts" / "make_figures.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def test_figure3_writes_vector_picture_csv_and_report(script, small_results, tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert script.main(["figure3", "--results", str(small_results), "--out", str(out)]) == 0
    names = ["figure3.pdf", "figure3.png", "figure3.csv", "report.html"]
    assert [Path(line).name for line in capsys.readouterr().out.splitlines()] == names
    assert (out / "figure3.pdf").read_bytes().startswith(b"%PDF")
    assert (out / "figure3.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in out.iterdir()) == sorted(names)


def test_the_csv_holds_what_is_plotted_and_nothing_else(script, small_results, tmp_path):
    assert script.main(["figure3", "--results", str(small_results)]) == 0
    with (tmp_path / "figure3.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["dataset"] for row in rows} == {"adult"}
    assert [(r["method"], r["eps"], r["mean"], r["card_status"]) for r in rows] == [
        ("lumberjack", "0.5", "0.825", "holds"),
        ("lumberjack", "8", "0.835", "holds"),
        ("snr", "0.5", "0.795", "doubted"),
        ("majority", "inf", "0.76", "not private"),
    ]


def test_each_figure_shows_its_own_data_sets(script, small_results, tmp_path):
    assert script.main(["figure4", "accuracy", "--results", str(small_results)]) == 0
    shown = {}
    for name in ("figure4", "accuracy"):
        with (tmp_path / f"{name}.csv").open() as file:
            shown[name] = list(dict.fromkeys(row["dataset"] for row in csv.DictReader(file)))
    assert shown == {
        "figure4": ["acs_travel_time"],
        "accuracy": ["adult", "acs_travel_time", "mine"],
    }


def test_data_sets_and_methods_can_be_chosen(script, small_results, tmp_path):
    arguments = ["accuracy", "--datasets", "adult", "--methods", "snr,majority"]
    assert script.main([*arguments, "--results", str(small_results)]) == 0
    with (tmp_path / "accuracy.csv").open() as file:
        chosen = {(row["dataset"], row["method"]) for row in csv.DictReader(file)}
    assert chosen == {("adult", "snr"), ("adult", "majority")}


def test_equal_tables_make_equal_files(script, small_results, tmp_path):
    for name in ("one", "two"):
        folder = str(tmp_path / name)
        assert script.main(["figure3", "--results", str(small_results), "--out", folder]) == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_a_results_folder_will_do_for_the_table(script, small_results, capsys):
    assert script.main(["report", "--results", str(small_results.parent)]) == 0
    assert capsys.readouterr().out.strip() == str(small_results.parent / "report.html")


def test_figures_3_and_4_need_no_method_and_no_training(small_results):
    code = (
        "import sys; from pathlib import Path; from lumberjack_bench.figures import draw;"
        f"draw('figure3', Path({str(small_results.parent)!r}));"
        "print([n for n in ('numba', 'sklearn.ensemble', 'baselines', 'lumberjack.growth') "
        "if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


def refusal(script, capsys, *arguments):
    assert script.main([str(argument) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


def test_an_unknown_figure_is_refused_with_all_there_are_and_nothing_is_made(
    script, small_results, capsys, tmp_path
):
    before = sorted(tmp_path.iterdir())
    error = refusal(script, capsys, "figure3", "figure9", "--results", small_results)
    assert "no figure 'figure9'" in error
    assert all(name in error for name in FIGURES)
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(FigureError, match="no figure 'figure9'; there are table1, figure1"):
        draw("figure9", tmp_path)


def test_a_missing_table_says_which_command_makes_it(script, capsys, tmp_path):
    error = refusal(script, capsys, "figure4", "--results", tmp_path / "results.csv")
    assert "there is no results table at" in error
    assert "python run.py -m +experiment=figure4" in error


def test_a_table_without_rows_for_the_figure_says_what_it_holds_and_what_to_run(
    script, write_results, capsys, tmp_path
):
    path = write_results(result_rows("lumberjack", [0.8], dataset="mine"))
    error = refusal(script, capsys, "figure3", "--results", path)
    assert "no finished accuracy rows for figure3 (adult, acs_income, acs_employment)" in error
    assert "it holds mine." in error
    assert "python run.py -m +experiment=figure3" in error
    assert sorted(p.name for p in tmp_path.iterdir()) == ["results.csv"]


def test_failed_runs_are_counted_when_there_is_nothing_to_draw(script, write_results, capsys):
    (row,) = result_rows("lumberjack", [0.0], metric="failure", status="failed")
    path = write_results([row | {"repetition": "", "value": ""}])
    assert "1 of its runs failed" in refusal(script, capsys, "figure3", "--results", path)


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "\x00\x01\x02"])
def test_a_file_that_is_no_results_table_is_refused(script, capsys, tmp_path, content):
    path = tmp_path / "other.csv"
    path.write_text(content)
    error = refusal(script, capsys, "figure3", "--results", path)
    assert str(path) in error
    assert "results table" in error


def test_a_folder_that_cannot_be_written_is_one_line(script, small_results, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    error = refusal(
        script, capsys, "figure3", "--results", small_results, "--out", tmp_path / "file"
    )
    assert "cannot write" in error
    assert "--out DIR" in error


def test_names_that_the_table_does_not_hold_are_refused(script, small_results, capsys):
    error = refusal(script, capsys, "figure3", "--methods", "no", "--results", small_results)
    assert "no method 'no'; they hold lumberjack, majority, snr" in error
    error = refusal(script, capsys, "accuracy", "--datasets", "no", "--results", small_results)
    assert "no data set 'no'; they hold acs_travel_time, adult, mine" in error


def test_an_unknown_setting_of_table1_is_refused(script, capsys, tmp_path):
    error = refusal(script, capsys, "table1", "colour=red", "--out", tmp_path)
    assert "no data set has a setting 'colour'" in error
    assert "stand_in_dir" in error
