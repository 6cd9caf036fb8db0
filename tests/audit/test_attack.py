"""The audit of methods: what it refutes, what it does not, and its command."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from lumberjack_bench.audit.attack import audit
from lumberjack_bench.audit.neighbours import PAIRS, SCHEMA

ROOT = Path(__file__).parents[2]


def config(target, **params):
    return {"name": "audited", "target": target, "params": params}


def run_audit(method, pair, n_runs, **options):
    settings = {"epsilon": 1.0, "delta": 0.0, "confidence": 0.99, "seed": 0} | options
    return audit(method, pair, n_runs=n_runs, **settings)


def named(words):
    (pair,) = [pair for pair in PAIRS if words in pair.name]
    return pair


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_neighbours_differ_by_one_record_within_the_public_facts(pair):
    rng = np.random.default_rng(0)
    fewer, labels = pair.rows(has_record=False, generator=rng)
    more, more_labels = pair.rows(has_record=True, generator=rng)
    assert len(more) == len(fewer) + 1 == len(labels) + 1
    left = [(*row, label) for row, label in zip(more.tolist(), more_labels, strict=True)]
    for row, label in zip(fewer.tolist(), labels, strict=True):
        left.remove((*row, label))
    assert left == [(*pair.X[-1], pair.y[-1])]
    table = SCHEMA.encode(more)
    assert table.n_clipped == table.n_unseen == 0
    assert set(more_labels) <= {0, 1}


@pytest.mark.slow
def test_smooth_sensitivity_is_refuted():
    method = config("baselines.smooth_sensitivity.SmoothSensitivityClassifier", n_estimators=1)
    assert run_audit(method, named("far from all others"), 1500).epsilon > 1.5


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
@pytest.mark.parametrize("target", ["LumberjackClassifier", "GuidedLumberjackClassifier"])
def test_our_forests_are_not_refuted(target, pair):
    method = config(f"lumberjack.{target}", n_estimators=1)
    found = run_audit(method, pair, 300, delta=1e-6, confidence=0.9999)
    assert found.epsilon <= 1.0


def test_a_method_without_privacy_is_refuted():
    method = config("baselines.fully_random.FullyRandomClassifier", n_estimators=5)
    assert run_audit(method, named("4 against 0"), 90).epsilon >= 0.0
    assert run_audit(method, named("far from all others"), 300).epsilon > 1.0


def test_the_result_does_not_depend_on_the_number_of_processes():
    method = config("lumberjack.LumberjackClassifier", n_estimators=1)
    first, second = (
        run_audit(method, PAIRS[2], 240, n_jobs=n_jobs, delta=1e-6) for n_jobs in (1, 2)
    )
    assert first == second


def test_too_few_runs_are_refused():
    with pytest.raises(ValueError, match="at least 30 runs on each table, got 10"):
        run_audit(config("lumberjack.LumberjackClassifier"), PAIRS[0], 10)


command = runpy.run_path(str(ROOT / "scripts" / "audit_privacy.py"))["main"]


def test_the_command_prints_a_bound_a_pair_and_a_verdict(tmp_path, capsys):
    path = tmp_path / "found.json"
    assert command(["method=lumberjack", "eps=1", "--runs", "60", "--json", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "claims (1, 1e-06)-DP" in shown
    assert "Not refuted: no bound exceeds the claimed 1." in shown
    found = json.loads(path.read_text())
    assert [finding["pair"] for finding in found["findings"]] == [pair.name for pair in PAIRS]
    assert found["params"]["n_estimators"] == 1
    assert not found["is_refuted"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["method=lumberjack", "--runs", "5"], "--runs"),
        (["method=lumberjack", "--confidence", "2"], "--confidence"),
        (["method=majority"], "claims no privacy"),
        (["method=lumberjack", "eps=-1"], "eps"),
        (["method=nosuch"], "nosuch"),
        (["method=snr,lumberjack"], "method takes one value"),
        (["--jobs", "0"], "--jobs"),
        (["--seed", "-1"], "--seed"),
        (["--json", "/proc/nosuch/found.json"], "/proc/nosuch/found.json"),
    ],
)
def test_mistakes_are_answered_in_one_line(arguments, message, capsys):
    assert command(arguments) != 0
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
