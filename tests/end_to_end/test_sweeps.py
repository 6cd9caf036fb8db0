from __future__ import annotations

import contextlib
import os
import random
import signal
import stat
import time
from pathlib import Path

import pytest
from real_command import Bench, wait_until

SWEEP = ("-m", "method=seeded,majority", "eps=0.5,1,2")


def test_a_sweep_ends_with_a_table_and_the_same_command_again_does_nothing(bench: Bench) -> None:
    first = bench(*SWEEP, "hydra/launcher=joblib")
    assert first.returncode == 0, first.stderr
    assert first.stderr == ""
    assert "Plan: 4 runs (2 more combinations are the same), none done yet." in first.stdout
    assert "[4/4]" in first.stdout
    assert "Runs: 4 ok." in first.stdout
    # The larger moon has 5,500 of 10,000 points.
    line = next(line for line in first.stdout.splitlines() if line.startswith("majority"))
    assert line.split() == ["majority", *(["0.5500", "±", "0.0000"] * 3)]
    rows = bench.accuracies()
    assert set(rows) == {("seeded", e, r) for e in ("0.5", "1.0", "2.0") for r in "01"} | {
        ("majority", "inf", r) for r in "01"
    }
    table, files = (bench.results / "results.csv").read_bytes(), bench.result_files()

    second = bench(*SWEEP, "hydra/launcher=joblib")
    assert second.returncode == 0, second.stderr
    assert "Runs: 4 done before." in second.stdout
    assert "Doing" not in second.stdout
    assert bench.result_files() == files
    assert (bench.results / "results.csv").read_bytes() == table


def test_submitit_runs_the_same_sweep_and_survives_a_killed_run(bench: Bench) -> None:
    marker = bench.folder / "marker"
    marker.write_text("")
    sweep = ("-m", "method=dying", f"method.params.while_file={marker}", "eps=1,2")
    sweep = (*sweep, "hydra/launcher=submitit_local")
    first = bench(*sweep)
    assert first.returncode == 1
    assert "Runs: 1 ok, 1 failed." in first.stdout
    assert "FAILED toy_moons_5 dying eps=2: its process was ended by SIGKILL" in first.stdout
    marker.unlink()
    second = bench(*sweep)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "Runs: 1 ok, 1 done before." in second.stdout
    assert {e for _, e, _ in bench.accuracies()} == {"1.0", "2.0"}


def test_only_what_is_missing_is_launched(bench: Bench) -> None:
    assert bench("-m", "method=seeded", "eps=1").returncode == 0
    before = bench.result_files()
    more = bench("-m", "method=seeded", "eps=0.5,1,2")
    assert "Runs: 2 ok, 1 done before." in more.stdout
    jobs = [path.parent.name for path in bench.results.glob("logs/*/*/run.log")]
    assert sorted(jobs) == [
        "0-toy_moons_5-seeded-eps0.5",
        "0-toy_moons_5-seeded-eps1.0",
        "1-toy_moons_5-seeded-eps2.0",
    ]
    assert before.items() <= bench.result_files().items()


def test_one_failing_run_leaves_the_others_done_and_is_tried_again(bench: Bench) -> None:
    marker = bench.folder / "marker"
    marker.write_text("")
    sweep = ("-m", "method=failing", f"method.params.while_file={marker}", "eps=1,2,4")
    first = bench(*sweep)
    assert first.returncode == 1
    assert "Runs: 2 ok, 1 failed." in first.stdout
    assert (
        "FAILED toy_moons_5 failing eps=2: RuntimeError: injected failure at eps=2" in first.stdout
    )
    log = next(line for line in first.stdout.splitlines() if line.strip().startswith("log: "))
    text = (bench.folder / log.split("log: ")[1]).read_text()
    assert "Traceback (most recent call last)" in text
    assert "injected failure at eps=2" in text
    assert {(m, e) for m, e, _ in bench.accuracies()} == {("failing", "1.0"), ("failing", "4.0")}
    failed = [row for row in bench.table() if row["status"] == "failed"]
    assert [(row["eps"], row["value"]) for row in failed] == [("2.0", "")]

    done = bench.result_files()
    assert bench(*sweep).returncode == 1
    marker.unlink()
    third = bench(*sweep)
    assert third.returncode == 0, third.stdout
    assert "Runs: 1 ok, 2 done before." in third.stdout
    assert {row["status"] for row in bench.table()} == {"ok"}
    assert done.items() <= bench.result_files().items()


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


def test_a_run_that_is_killed_by_the_system_costs_itself_alone(bench: Bench) -> None:
    marker = bench.folder / "marker"
    marker.write_text("")
    sweep = (
        "-m",
        "method=dying",
        f"method.params.while_file={marker}",
        "eps=1,2,4",
        "n_workers=2",
        "hydra/launcher=joblib",
    )
    first = bench(*sweep)
    assert first.returncode == 1
    before = bench.result_files()
    assert len(before) == 2
    assert "Runs: 2 ok, 1 failed." in first.stdout
    assert "FAILED toy_moons_5 dying eps=2: its process was ended by SIGKILL" in first.stdout
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
    "timeout=6",
    "n_workers=2",
    "launcher=joblib",
)


def test_whatever_methods_do_to_their_process_costs_themselves_alone(bench: Bench) -> None:
    done = bench(*TROUBLE)
    assert done.returncode == 1
    assert "Runs: 7 ok, 3 failed, 2 timed out." in done.stdout
    for line in (
        "FAILED toy_moons_5 crashing eps=1: its process was ended by SIGSEGV",
        "FAILED toy_moons_5 exiting eps=1: SystemExit: 0",
        "FAILED toy_moons_5 hungry eps=1: MemoryError",
        "TIMED OUT toy_moons_5 sleeping eps=1: took longer than timeout=6 seconds",
        "TIMED OUT toy_moons_5 stubborn eps=1: took longer than timeout=6 seconds",
    ):
        assert line in done.stdout
    assert descendants(bench) == []


def test_a_sweep_killed_at_any_moment_leaves_no_process_and_nothing_half_done(bench: Bench) -> None:
    for moment in (1.5, 4.0, 7.0):
        process = bench.start(*TROUBLE)
        time.sleep(moment)
        # Its parent alone, not the group.
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 10
        while descendants(bench):
            assert time.monotonic() < deadline, descendants(bench)
            time.sleep(0.1)
    assert bench(*TROUBLE).returncode == 1
    assert len({method for method, *_ in bench.accuracies()}) == 7


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


def test_a_sweep_that_is_terminated_says_so_and_keeps_what_is_done(bench: Bench) -> None:
    sweep = ("-m", "method=slow", "method.params.seconds=0.4", "eps=0.5,1,2,4,8")
    sweep = (*sweep, "n_workers=2", "hydra/launcher=joblib")
    process = bench.start(*sweep)
    wait_until(lambda: len(bench.result_files()) >= 1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "Interrupted. The same command again does the rest.\n"
    assert "not started" in out
    assert len(bench.accuracies()) >= 2
    assert list(bench.results.glob("failures/*")) == []


def test_two_sweeps_at_the_same_moment_share_the_work(bench: Bench) -> None:
    sweep = ("-m", "method=slow,majority", "eps=0.5,1,2")
    processes = [bench.start(*sweep), bench.start(*sweep)]
    outputs = [process.communicate(timeout=240) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert len(bench.accuracies()) == 2 * 4
    # Each result was made by one of the two, in one of their log folders.
    logs = [path.read_text() for path in bench.results.glob("logs/*/*/run.log")]
    assert sum(text.count(": done\n") for text in logs) == 4


def test_a_run_can_be_done_again_by_its_hash(bench: Bench) -> None:
    assert bench("-m", "method=seeded", "eps=1,2").returncode == 0
    before = bench.result_files()
    name = sorted(before)[0]
    again = bench("--redo", name.removesuffix(".json")[:8])
    assert again.returncode == 0, again.stderr
    assert "Runs: 1 ok." in again.stdout
    changed = {key for key, when in bench.result_files().items() if before[key] != when}
    assert changed == {name}
    unknown = bench("--redo", "ffffffff")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("error: no runs have a hash that starts with 'ffffffff'")


def test_status_tells_done_failed_and_missing_and_changes_nothing(bench: Bench) -> None:
    empty = bench("--status", "method=seeded,failing", "eps=1,2")
    assert empty.returncode == 0, empty.stderr
    assert "4 runs: 4 missing; time left unknown" in empty.stdout
    assert not bench.results.exists()
    assert bench("-m", "method=failing", "eps=1,2").returncode == 1
    status = bench("--status", "method=failing", "eps=1,2,4")
    lines = [" ".join(line.split()[1:]) for line in status.stdout.splitlines()]
    assert lines[:3] == [
        "done toy_moons_5 failing eps=1",
        "failed toy_moons_5 failing eps=2: RuntimeError: injected failure at eps=2",
        "missing toy_moons_5 failing eps=4",
    ]
    assert "3 runs: 1 done, 1 failed, 1 missing; about" in status.stdout


def test_a_single_run_needs_no_flags(bench: Bench) -> None:
    done = bench("method=majority")
    assert done.returncode == 0, done.stderr
    assert "Runs: 1 ok." in done.stdout
    assert len(bench.accuracies()) == 2
    again = bench("method=majority")
    assert "Runs: 1 done before." in again.stdout
    failed = bench("method=failing", "eps=2")
    assert failed.returncode == 1
    assert "RuntimeError: injected failure at eps=2" in failed.stdout


@pytest.mark.parametrize("name", ["ä ö/x=1", "a[1] #{b}", "~'$x'"])
def test_folders_may_have_any_name(bench: Bench, name: str) -> None:
    folder = bench.folder / name
    folder.mkdir(parents=True)
    (folder / "my ä.csv").write_text("a,y\n" + "1,no\n2,yes\n3,yes\n" * 20)
    (folder / "s.yaml").write_text(
        "name: mine\nlabel: y\nclasses: ['no', 'yes']\nfeatures:\n  - {name: a, numeric: [0, 9]}\n"
    )
    own = (f"dataset.path={folder}/my ä.csv", f"dataset.schema={folder}/s.yaml")
    own = (*own, "dataset=table", "dataset.name=käse", f"data_dir={folder}/data")
    single = bench("method=seeded", *own, f"results_dir={folder}/results")
    assert single.returncode == 0, single.stderr
    sweep = bench("method=seeded", "eps=1,2", *own, f"results_dir={folder}/results", "-m")
    assert sweep.returncode == 0, sweep.stderr
    assert "Runs: 1 ok, 1 done before." in sweep.stdout
    logs = sorted(path.parent.name for path in folder.glob("results/logs/*/*/run.log"))
    assert logs == ["0-käse-seeded-eps1.0", "0-käse-seeded-eps2.0"]


def test_a_tilde_is_the_home_folder_for_results_and_logs(bench: Bench) -> None:
    home = bench.folder / "home"
    bench.environment["HOME"] = str(home)
    for arguments in (("method=majority",), ("method=seeded", "eps=1", "-m")):
        done = bench(*arguments, "results_dir=~/runs")
        assert done.returncode == 0, done.stderr
    assert len(list(home.glob("runs/logs/*/*/run.log"))) == 2
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
        (("-m", "method=seeded", "eps=1,-1"), "eps must be positive and finite, got -1."),
        (("-m", "method=seeded,nosuch"), "there is no method 'nosuch'. There are: "),
        (("-m", "method=seeded", "epsilon=1,2"), "did you mean 'eps'?"),
        (("epsilon=1",), "did you mean 'eps'?"),
        (("+experiment=figure3",), "this experiment is a sweep; add -m to the command."),
        (("-m", "method=seeded", "method.target=os.system,toy_methods.Toy"), "not in an allowed"),
        (("-m", "dataset=table", "dataset.path=/nosuch.csv"), "nosuch.csv"),
        (
            ("dataset=table", "dataset.path=/a,b.csv", "-m"),
            "If the comma belongs to the path, write",
        ),
        (("-m", "method=seeded", "n_workers=1,2"), "n_workers takes one value, got several"),
        (("-m", "method=glob(nosuch*)"), "'method=glob(nosuch*)' stands for no value at all."),
        (("method=null",), "a choice must be a name, as in method=lumberjack"),
        (("method=seeded", "--nosuch"), "there is no flag --nosuch."),
        (("--cards", "eps=1,2"), "eps takes one value, got several: 'eps=1,2'."),
        (("--cards", "--package", "x"), "--cards goes with NAME=VALUE only"),
        (("figure=nope",), "there is no figure 'nope'; there are table1, figure1"),
        (
            (f"dataset.name={'x' * 300}",),
            "dataset.name must be a name of at most 100 bytes, got 300.",
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    arguments: tuple[str, ...], message: str, bench: Bench
) -> None:
    refused = bench(*arguments)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert refused.stderr.startswith("error: ")
    assert refused.stderr.count("\n") == 1
    assert refused.stdout == ""
    assert not bench.results.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: [broken\n  target: x: y\n", "error: a configuration is no YAML: while parsing"),
        ("just text\n", "Key 'just text' not in 'MethodConfig'"),
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
    refused = bench("-m", "method=majority,own", searched)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not bench.results.exists()


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


def test_what_is_no_result_among_the_results_is_named_and_left_out(bench: Bench) -> None:
    assert bench("method=seeded").returncode == 0
    (name,) = bench.result_files()
    path = bench.results / "runs" / name
    (path.parent / "copy.json").write_text(path.read_text())
    path.write_text(path.read_text()[:-100])
    again = bench("method=seeded")
    assert again.returncode == 0, again.stderr
    assert (
        f"warning: {path.parent / 'copy.json'} holds the run {path.stem} and is left"
        in again.stdout
    )
    assert f"warning: {path} is no whole JSON object and is left out." in again.stdout
    assert "Runs: 1 ok." in again.stdout
    assert len(bench.accuracies()) == 2


def test_a_working_folder_that_is_gone_is_one_line(bench: Bench) -> None:
    gone = bench.folder / "gone"
    gone.mkdir()
    refused = bench.after(
        f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})", "method=seeded"
    )
    assert refused.returncode == 2
    assert refused.stderr == "error: the working folder is gone; go to one that is there.\n"


def test_a_results_folder_that_is_a_file_is_refused(bench: Bench) -> None:
    bench.results.write_text("mine")
    refused = bench("method=majority")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: cannot write to the results folder")
    assert refused.stderr.count("\n") == 1
    assert bench.results.read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write into read-only folders")
def test_a_read_only_results_folder_is_refused(bench: Bench) -> None:
    bench.results.mkdir()
    bench.results.chmod(stat.S_IRUSR | stat.S_IXUSR)
    refused = bench("method=majority")
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: cannot write to the results folder")
    assert list(bench.results.iterdir()) == []


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
    rows = [row for row in bench.table() if not row["metric"].endswith("_seconds")]
    changing = ("commit", "started")
    return [{name: value for name, value in row.items() if name not in changing} for row in rows]
