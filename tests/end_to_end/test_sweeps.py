"""Sweeps from the command to the table: done once, resumed after anything, told as they are."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from pathlib import Path

import pytest
from real_command import Bench, Ended, wait_until

SWEEP = ("-m", "method=seeded,majority", "eps=0.5,1,2")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bench, Ended]:
    """One sweep that tests look at, or take a copy of to go on from."""
    bench = Bench(tmp_path_factory.mktemp("finished"))
    return bench, bench(*SWEEP, "hydra/launcher=joblib")


@pytest.fixture
def after_sweep(bench: Bench, finished: tuple[Bench, Ended]) -> Bench:
    return bench.with_results_of(finished[0])


def test_a_sweep_ends_with_a_table(finished: tuple[Bench, Ended]) -> None:
    bench, done = finished
    assert (done.returncode, done.stderr) == (0, "")
    assert "Plan: 4 runs (2 more combinations are the same), none done yet." in done.stdout
    assert "[4/4]" in done.stdout
    assert "Runs: 4 ok." in done.stdout
    # The larger moon has 5,500 of 10,000 points.
    line = next(line for line in done.stdout.splitlines() if line.startswith("majority"))
    assert line.split() == ["majority", *(["0.5500", "±", "0.0000"] * 3)]
    rows = bench.accuracies()
    assert set(rows) == {("seeded", e, r) for e in ("0.5", "1.0", "2.0") for r in "01"} | {
        ("majority", "inf", r) for r in "01"
    }


def test_the_same_command_again_does_nothing_and_another_only_what_is_missing(
    after_sweep: Bench,
) -> None:
    files, table = after_sweep.result_files(), (after_sweep.results / "results.csv").read_bytes()
    again = after_sweep(*SWEEP)
    assert again.returncode == 0, again.stderr
    assert "Runs: 4 done before." in again.stdout
    assert "Doing" not in again.stdout
    assert after_sweep.result_files() == files
    assert (after_sweep.results / "results.csv").read_bytes() == table

    jobs = begun(after_sweep)
    more = after_sweep("-m", "method=seeded", "eps=0.5,1,4")
    assert "Plan: 3 runs, 2 done before." in more.stdout
    assert "Runs: 1 ok, 2 done before." in more.stdout
    (job,) = begun(after_sweep) - jobs
    assert job.parent.name == "0-toy_moons_5-seeded-eps4.0"
    assert files.items() <= after_sweep.result_files().items()


def test_a_run_can_be_done_again_by_its_hash(after_sweep: Bench) -> None:
    before = after_sweep.result_files()
    name = sorted(before)[0]
    again = after_sweep("--redo", name.removesuffix(".json")[:8])
    assert again.returncode == 0, again.stderr
    assert "Plan: 1 run, 1 done before, 1 to be done again." in again.stdout
    assert "Runs: 1 ok." in again.stdout
    assert {key for key, when in after_sweep.result_files().items() if before[key] != when} == {
        name
    }
    unknown = after_sweep("--redo", "ffffffff")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("error: no runs have a hash that starts with 'ffffffff'")


def test_what_is_no_result_among_the_results_is_named_and_left_out(after_sweep: Bench) -> None:
    name = sorted(after_sweep.result_files())[0]
    path = after_sweep.results / "runs" / name
    copy = path.with_name("copy.json")
    copy.write_text(path.read_text())
    path.write_text(path.read_text()[:-100])
    again = after_sweep(*SWEEP)
    assert again.returncode == 0, again.stderr
    assert f"warning: {copy} holds the run {path.stem} and is left out." in again.stdout
    assert f"warning: {path} is no whole JSON object and is left out." in again.stdout
    assert "Runs: 1 ok, 3 done before." in again.stdout
    assert len(after_sweep.accuracies()) == 8


def test_one_failing_run_leaves_the_others_done_is_told_and_tried_again(bench: Bench) -> None:
    marker = bench.folder / "marker"
    marker.write_text("")
    method = ("method=failing", f"method.params.while_file={marker}")
    nothing = bench("--status", *method, "eps=1,2")
    assert "2 runs: 2 missing; time left unknown" in nothing.stdout
    assert not bench.results.exists()

    first = bench("-m", *method, "eps=1,2,4")
    assert first.returncode == 1
    assert "Runs: 2 ok, 1 failed." in first.stdout
    reason = "RuntimeError: injected failure at eps=2"
    assert f"FAILED toy_moons_5 failing eps=2: {reason}" in first.stdout
    log = next(line for line in first.stdout.splitlines() if line.strip().startswith("log: "))
    text = (bench.folder / log.split("log: ")[1]).read_text()
    assert "Traceback (most recent call last)" in text
    assert "injected failure at eps=2" in text
    assert {(m, e) for m, e, _ in bench.accuracies()} == {("failing", "1.0"), ("failing", "4.0")}
    failed = [row for row in bench.table() if row["status"] == "failed"]
    assert [(row["eps"], row["value"]) for row in failed] == [("2.0", "")]

    done = bench.result_files()
    status = bench("--status", *method, "eps=1,2,8")
    assert (status.returncode, bench.result_files()) == (0, done)
    lines = [" ".join(line.split()[1:]) for line in status.stdout.splitlines()]
    assert lines[:3] == [
        "done toy_moons_5 failing eps=1",
        f"failed toy_moons_5 failing eps=2: {reason}",
        "missing toy_moons_5 failing eps=8",
    ]
    assert "3 runs: 1 done, 1 failed, 1 missing; about " in status.stdout

    marker.unlink()
    again = bench("-m", *method, "eps=1,2,4")
    assert again.returncode == 0, again.stdout
    assert "Runs: 1 ok, 2 done before." in again.stdout
    assert {row["status"] for row in bench.table()} == {"ok"}
    assert done.items() <= bench.result_files().items()


def test_a_run_that_its_method_skips_is_told_with_the_reason_and_not_tried_again(
    bench: Bench,
) -> None:
    sweep = ("method=skipping,majority", "eps=0.5,1")
    reason = "9000 rows need eps of at least 1"
    first = bench("-m", *sweep)
    assert first.returncode == 0, first.stderr
    assert "Runs: 2 ok, 1 skipped." in first.stdout
    assert f"  SKIPPED toy_moons_5 skipping eps=0.5: {reason}" in first.stdout
    assert "The same command again" not in first.stdout
    assert {(m, e) for m, e, _ in bench.accuracies()} == {("skipping", "1.0"), ("majority", "inf")}
    (row,) = [row for row in bench.table() if row["status"] == "skipped"]
    assert (row["method"], row["eps"], row["value"]) == ("skipping", "0.5", "")

    again = bench("-m", *sweep)
    assert again.returncode == 0, again.stderr
    assert "Doing" not in again.stdout
    assert "Runs: 2 done before, 1 skipped." in again.stdout
    status = bench("--status", *sweep).stdout
    assert f"  skipped    toy_moons_5 skipping eps=0.5: {reason}" in status
    assert "3 runs: 1 skipped, 2 done; nothing left to do." in status


@pytest.mark.parametrize("launcher", ["basic", "joblib"])
def test_on_error_raise_stops_with_the_traceback(bench: Bench, launcher: str) -> None:
    sweep = ("-m", "method=failing", "eps=2,4", "on_error=raise")
    done = bench(*sweep, f"hydra/launcher={launcher}", "n_workers=1")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "injected failure at eps=2" in done.stderr
    assert "in fit" in done.stderr
    assert bench.stored() == []
    assert "1 not started" in done.stdout


@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_a_run_that_is_killed_by_the_system_costs_itself_alone(bench: Bench, launcher: str) -> None:
    marker = bench.folder / "marker"
    marker.write_text("")
    sweep = ("-m", "method=dying", f"method.params.while_file={marker}", "eps=1,2,4")
    sweep = (*sweep, f"hydra/launcher={launcher}", "n_workers=2")
    first = bench(*sweep)
    assert first.returncode == 1
    assert "Runs: 2 ok, 1 failed." in first.stdout
    assert "FAILED toy_moons_5 dying eps=2: its process was ended by SIGKILL" in first.stdout
    before = bench.result_files()
    marker.unlink()
    second = bench(*sweep)
    assert second.returncode == 0, second.stdout
    assert {e for _, e, _ in bench.accuracies()} == {"1.0", "2.0", "4.0"}
    assert before.items() <= bench.result_files().items()


TROUBLE = (
    "-m",
    "method=seeded,odd,slow,failing,majority,fully_random,decision_tree,"
    "crashing,exiting,hungry,sleeping,stubborn",
    "eps=1",
    "timeout=12",
    "n_workers=2",
    "launcher=joblib",
)


def test_whatever_methods_do_and_whenever_the_sweep_is_killed_no_process_is_left(
    bench: Bench,
) -> None:
    for n_begun in (1, 3, 5):
        before = begun(bench)
        process = bench.start(*TROUBLE)
        wait_until(lambda: len(begun(bench) - before) >= n_begun)  # noqa: B023 - awaited here
        # Its parent alone, not the group.
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 10
        while descendants(bench):
            assert time.monotonic() < deadline, descendants(bench)
            time.sleep(0.1)
    done = bench(*TROUBLE)
    assert done.returncode == 1
    assert "3 failed, 2 timed out." in done.stdout
    for line in (
        "FAILED toy_moons_5 crashing eps=1: its process was ended by SIGSEGV",
        "FAILED toy_moons_5 exiting eps=1: SystemExit: 0",
        "FAILED toy_moons_5 hungry eps=1: MemoryError",
        "TIMED OUT toy_moons_5 sleeping eps=1: took longer than timeout=12 seconds",
        "TIMED OUT toy_moons_5 stubborn eps=1: took longer than timeout=12 seconds",
    ):
        assert line in done.stdout
    assert descendants(bench) == []
    assert len({method for method, *_ in bench.accuracies()}) == 7


def begun(bench: Bench) -> set[Path]:
    """Logs of the runs that were begun."""
    return set(bench.results.glob("logs/*/*/run.log"))


def descendants(bench: Bench) -> list[str]:
    """Processes that have the results folder of this test in their environment."""
    marker = f"LUMBERJACK_DATA={bench.folder / 'data'}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marker in (entry / "environ").read_bytes() and int(entry.name) != os.getpid():
                found.append((entry / "cmdline").read_text())
    return found


def test_a_sweep_that_is_killed_is_finished_by_the_same_command(bench: Bench) -> None:
    sweep = ("-m", "method=slow", "method.params.seconds=0.4", "eps=0.5,1,2,4,8")
    sweep = (*sweep, "n_workers=2", "hydra/launcher=joblib")
    killed = bench.start(*sweep)
    wait_until(lambda: len(bench.result_files()) >= 1)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    before = bench.result_files()
    assert 1 <= len(before) < 5
    again = bench(*sweep)
    assert again.returncode == 0, again.stderr
    assert f"{5 - len(before)} ok, {len(before)} done before." in again.stdout
    assert before.items() <= bench.result_files().items()
    assert len(bench.accuracies()) == 10
    assert list(bench.results.glob("runs/.*")) == []


def test_two_sweeps_at_the_same_moment_share_the_work(bench: Bench) -> None:
    sweep = ("-m", "method=slow,majority", "eps=0.5,1,2")
    processes = [bench.start(*sweep), bench.start(*sweep)]
    outputs = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert len(bench.accuracies()) == 2 * 4
    # Each result was made by one of the two, in one of their log folders.
    logs = [path.read_text() for path in bench.results.glob("logs/*/*/run.log")]
    assert sum(text.count(": done\n") for text in logs) == 4


def test_folders_may_have_any_name_and_a_tilde_is_the_home_folder(bench: Bench) -> None:
    folder = bench.folder / "ä ö" / "x=1 a[1] #{b}" / "~'$x'"
    folder.mkdir(parents=True)
    bench.environment["HOME"] = str(folder)
    (folder / "my ä.csv").write_text("a,y\n" + "1,no\n2,yes\n3,yes\n" * 20)
    (folder / "s.yaml").write_text(
        "name: mine\nlabel: y\nclasses: ['no', 'yes']\nfeatures:\n  - {name: a, numeric: [0, 9]}\n"
    )
    own = ("dataset=table", "dataset.name=käse", f"dataset.path={folder}/my ä.csv")
    own = (*own, f"dataset.schema={folder}/s.yaml", f"data_dir={folder}/data")
    single = bench("method=seeded", *own, f"results_dir={folder}/results")
    assert single.returncode == 0, single.stderr
    sweep = bench("method=seeded", "eps=1,2", *own, "results_dir=~/results", "-m")
    assert sweep.returncode == 0, sweep.stderr
    assert "Runs: 1 ok, 1 done before." in sweep.stdout
    logs = sorted(path.parent.name for path in folder.glob("results/logs/*/*/run.log"))
    assert logs == ["0-käse-seeded-eps1.0", "0-käse-seeded-eps2.0"]
    assert not (bench.folder / "~").exists()


def test_cards_of_every_method_are_printed_by_one_command(bench: Bench) -> None:
    done = bench("--cards", "hydra.searchpath=[]", "eps=2")
    assert done.returncode == 0, done.stderr
    methods = Path(__file__).parents[2] / "conf" / "method"
    first_words = {line.split(" ")[0] for line in done.stdout.splitlines()}
    assert {path.stem for path in methods.glob("*.yaml")} <= first_words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-m", "method=seeded", "eps=1,abc"), "eps must be a number, got 'abc'."),
        (("-m", "method=seeded,nosuch"), "there is no method 'nosuch'. There are: "),
        (("-m", "method=seeded", "method.target=os.system,toy_methods.Toy"), "not in an allowed"),
        (("-m", "dataset=table", "dataset.path=/nosuch.csv"), "nosuch.csv"),
        (("-m", "dataset=table", "dataset.path=/a,b.csv"), "If the comma belongs to the path"),
        (("-m", "method=seeded", "n_workers=1,2"), "n_workers takes one value, got several"),
        (("-m", "method=glob(nosuch*)"), "'method=glob(nosuch*)' stands for no value at all."),
        (("method=seeded", "--nosuch"), "there is no flag --nosuch."),
        (("--cards", "eps=1,2"), "eps takes one value, got several: 'eps=1,2'."),
        (("--cards", "--package", "x"), "--cards goes with NAME=VALUE only"),
        (("--cfg", "job", "epsilon=1"), "Could not override 'epsilon'"),
        (("figure=nope",), "there is no figure 'nope'; there are table1, figure1"),
        (("launcher=dask",), "launcher=dask needs launcher.address=tcp://HOST:PORT"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    arguments: tuple[str, ...], message: str, bench: Bench
) -> None:
    assert message in bench.refused(*arguments)
    assert not bench.results.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: [broken\n  target: x: y\n", "error: a configuration is no YAML: "),
        ("just text\n", "just text"),
        ("", "error: method.name must have a value, and nothing gives it one."),
        (
            "name: majority\ntarget: toy_methods.Seeded\nlabel: Twin\n",
            "error: two methods are called 'majority': ",
        ),
    ],
)
def test_a_broken_method_file_is_one_line_before_anything_runs(
    content: str, message: str, bench: Bench
) -> None:
    (bench.folder / "method").mkdir()
    (bench.folder / "method" / "own.yaml").write_text(content)
    searched = f"hydra.searchpath=[file://{bench.folder}]"
    assert message in bench.refused("-m", "method=majority,own", searched)
    assert not bench.results.exists()


def test_folders_that_cannot_be_used_are_refused_in_one_line(bench: Bench) -> None:
    bench.results.write_text("mine")
    said = bench.refused("method=majority")
    assert said.startswith("error: cannot write to the results folder")
    assert bench.results.read_text() == "mine"
    gone = bench.folder / "gone"
    gone.mkdir()
    leaving = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})"
    refused = bench.after(leaving, "method=seeded")
    assert refused.returncode == 2
    assert refused.stderr == "error: the working folder is gone; go to one that is there.\n"


def test_a_sweep_goes_on_though_nobody_listens_and_where_only_ascii_is_printed(
    bench: Bench,
) -> None:
    bench.environment["PYTHONIOENCODING"] = "ascii"
    process = bench.start("-m", "method=seeded", "eps=1,2,4")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=240) == 0
    assert len(bench.result_files()) == 3
    again = bench("-m", "method=seeded", "eps=1,2,4")
    assert (again.returncode, again.stderr) == (0, "")
    assert "0.5500 ? 0.0000" in again.stdout


@pytest.mark.slow
def test_a_sweep_killed_three_times_ends_with_the_table_of_an_undisturbed_one(
    bench: Bench,
) -> None:
    sweep = ("-m", "method=seeded,slow,majority", "eps=0.5,1,2,4,8", "seed=0,1", "n_workers=2")
    sweep = (*sweep, "hydra/launcher=joblib")
    for number in range(3):
        kill_after_a_result(bench, sweep, delay=random.Random(number).uniform(0.0, 1.5))
    assert bench(*sweep).returncode == 0
    disturbed = untimed(bench)
    bench.results = bench.folder / "undisturbed"
    assert bench(*sweep).returncode == 0
    assert disturbed == untimed(bench)
    assert len({row["run_hash"] for row in disturbed}) == 2 * (5 + 5 + 1)


def kill_after_a_result(bench: Bench, sweep: tuple[str, ...], delay: float) -> None:
    """Start the sweep and kill it, workers and all, some time after its next result."""
    n_done = len(bench.result_files())
    process = bench.start(*sweep)
    wait_until(lambda: len(bench.result_files()) > n_done or process.poll() is not None)
    time.sleep(delay)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def untimed(bench: Bench) -> list[dict[str, str]]:
    """Return the rows that seeds decide; the source tree may be committed to while the test runs."""
    rows = [row for row in bench.table() if not row["metric"].endswith(("_seconds", "_mb"))]
    changing = ("commit", "started")
    return [{name: value for name, value in row.items() if name not in changing} for row in rows]
