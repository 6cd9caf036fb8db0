"""Flags in any order, and values as people write them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from lumberjack_bench.arguments import read_arguments
from lumberjack_bench.config import ConfigError
from lumberjack_bench.overrides import quoted, several_values, take_plain_words


def value_of(override: str) -> object:
    return OverridesParser.create().parse_override(override).value()


@pytest.mark.parametrize("flag", ["-m", "--multirun"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_flag_of_a_sweep_stands_anywhere(flag: str, place: int) -> None:
    words = ["method=a,b", "eps=1,2"]
    words.insert(place, flag)
    given = read_arguments(words)
    assert given.flags == ("--multirun",)
    assert given.overrides == ("method=a,b", "eps=1,2")
    assert given.intent == "run"


@pytest.mark.parametrize(
    ("words", "intent", "flags"),
    [
        (["eps=1", "--status"], "status", ("--multirun",)),
        (["--status", "eps=1", "-m"], "status", ("--multirun",)),
        (["-m", "--redo", "abcd", "eps=1"], "redo", ("--multirun",)),
        (["eps=1", "--redo=abcd"], "redo", ("--multirun",)),
        (["eps=1", "--cards", "-m"], "cards", ("--multirun",)),
        (["eps=1", "--cfg", "job"], "show", ("--cfg=job",)),
        (["--cfg", "job", "eps=1", "--resolve"], "show", ("--cfg=job", "--resolve")),
        (["eps=1", "--info"], "show", ("--info=all",)),
        (["--hydra-help"], "show", ("--hydra-help",)),
        (["--config-dir", "X", "-m", "eps=1"], "run", ("--multirun", "--config-dir=X")),
        (["-cd", "X", "eps=1", "--multi"], "run", ("--multirun", "--config-dir=X")),
    ],
)
def test_flags_go_together_in_any_order(words: list[str], intent: str, flags: tuple) -> None:
    given = read_arguments(words)
    assert (given.intent, given.flags) == (intent, flags)
    assert given.overrides == (("eps=1",) if "eps=1" in words else ())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--status --redo abcd", "give only one of --status and --redo."),
        ("--watch eps=1", "--watch goes with --status only."),
        ("--redo abcd --all", "--all goes with --status only."),
        ("-m --cfg job", "give only one of --multirun and --cfg."),
        ("--redo eps=1", "--redo needs the hash of a run (at least 4 digits), got 'eps=1'."),
        ("--resolve", "--resolve goes with --cfg or --help only."),
        ("-x eps=1", "there is no flag -x. `python run.py --help`"),
        ("eps=1 --stauts", "there is no flag --stauts; did you mean '--status'?"),
        ("--cfg", "argument --cfg/-c: expected one argument."),
        ("=3", "'=3' is not of the form NAME=VALUE."),
        ("results_dir=[a]", "cannot be read"),
    ],
)
def test_flags_that_do_not_fit_are_refused_in_one_line(line: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_arguments(shlex.split(line))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "path", ["~/runs", "/ä ö/x=1", "a[1]{b}", "it's", 'say "x"', "a#b$c(1);d&e", "\\ä", "ä,b"]
)
def test_paths_need_no_quotes(path: str) -> None:
    (word,) = take_plain_words([f"results_dir={path}"])
    assert value_of(word) == path


def test_plain_words_need_no_quotes_and_lists_stay_lists() -> None:
    assert take_plain_words(["dataset.name=Käse"]) == ['dataset.name="Käse"']
    assert take_plain_words(["dataset.name=Käse, Brot"]) == ['dataset.name="Käse",Brot']
    kept = ["eps=1,2", "method=glob(a*)", "a=[1,2]", "a='x y'", "+a=", "~a", "eps=[1,2", "a={b"]
    assert take_plain_words(kept) == kept


@pytest.mark.parametrize("value", ["a,b", "[a]", "it's", 'say "x"', "{a}", "a\\", "a\\'b"])
def test_the_mended_form_passes_the_shell_and_hydra_as_it_stands(value: str) -> None:
    (word,) = shlex.split(quoted(f"dataset.path={value}"))
    assert value_of(word) == value


def test_several_values_are_refused_with_the_way_to_write_a_comma() -> None:
    assert (
        several_values("n_workers=1,2")
        == "n_workers takes one value, got several: 'n_workers=1,2'."
    )
    said = several_values("results_dir=a,b")
    assert said.endswith("""write 'results_dir="a,b"' (the outer quotes are the shell's).""")


def test_without_the_extra_the_command_says_in_one_line_how_to_get_it():
    run = Path(__file__).resolve().parents[2] / "run.py"
    bare = [sys.executable, "-I", "-S", str(run)]  # no packages but Python's own
    ended = subprocess.run(bare, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "pip install -c constraints.txt -e '.[bench]'" in ended.stderr
    assert ended.stderr.count("\n") == 1
