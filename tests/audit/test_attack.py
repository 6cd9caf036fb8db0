"""The audit of methods: what it refutes, what it does not, and its command."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from lumberjack_bench.audit.attack import bound_by_attack, observe
from lumberjack_bench.audit.findings import Subject
from lumberjack_bench.audit.neighbours import PAIRS, SCHEMA

ROOT = Path(__file__).parents[2]


def subject(target, *, epsilon=1.0, delta=0.0, n_jobs=1, **params):
    config = {"name": "audited", "target": target, "params": params}
    return Subject(config, epsilon, delta, n_jobs=n_jobs, allow_targets=("leaky_method",))


def run_audit(method, pair, n_runs, confidence=0.99):
    return bound_by_attack(method, pair, n_runs=n_runs, confidence=confidence)


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
    method = subject("baselines.smooth_sensitivity.SmoothSensitivityClassifier", n_estimators=1)
    assert run_audit(method, named("far from all others"), 1500).epsilon > 1.5


def test_a_method_without_privacy_is_refuted():
    method = subject("baselines.fully_random.FullyRandomClassifier", n_estimators=5)
    assert run_audit(method, named("far from all others"), 300).epsilon > 1.0


def test_what_a_method_says_it_released_is_seen_in_place_of_its_predictions():
    method = subject("leaky_method.NoisyCounts")
    model = method.build(np.random.SeedSequence(0)).fit(PAIRS[0].X, PAIRS[0].y)
    assert observe(model).tolist() == model.noisy_counts_.tolist()


def test_the_result_does_not_depend_on_the_number_of_processes():
    first, second = (
        run_audit(subject("baselines.snr.SnrClassifier", n_jobs=n_jobs), PAIRS[2], 240)
        for n_jobs in (1, 2)
    )
    assert first == second


def test_too_few_runs_are_refused():
    with pytest.raises(ValueError, match="at least 30 runs on each table, got 10"):
        run_audit(subject("lumberjack.LumberjackClassifier"), PAIRS[0], 10)


command = runpy.run_path(str(ROOT / "scripts" / "audit_privacy.py"))["main"]


@pytest.mark.slow
def test_the_command_says_of_each_layer_what_it_could_see(tmp_path, capsys):
    arguments = ["method=guided_lumberjack", "eps=1", "--runs", "100", "--out", str(tmp_path)]
    assert command(arguments) == 0
    shown = capsys.readouterr().out
    assert "claims (1, 0.05)-DP" in shown
    assert "Not refuted" in shown
    assert ">= 0.00" not in shown
    (path,) = tmp_path.glob("*.json")
    found = json.loads(path.read_text())
    assert {finding["layer"] for finding in found["findings"]} == {
        "components", "groups", "claim", "canaries", "reading",
    }  # fmt: skip
    assert found["params"]["n_estimators"] == 4
    assert not found["is_refuted"]
    assert (
        "| Guided Lumberjack (tight) | holds | (1, 0.05) |" in (tmp_path / "audit.md").read_text()
    )


OWN = [
    "method=majority", "method.is_private=true", "method.name=own", "method.label=Own",
    "allow_targets=[leaky_method]", "eps=1", "--layer", "predictions", "--runs", "600",
]  # fmt: skip


def test_a_method_of_ones_own_is_refuted_where_it_claims_too_much(tmp_path, capsys):
    assert command([*OWN, "method.target=leaky_method.LeakyCounts", "--out", str(tmp_path)]) == 0
    assert "REFUTED by predictions." in capsys.readouterr().out
    (path,) = tmp_path.glob("*.json")
    found = json.loads(path.read_text())
    assert found["is_refuted"]
    assert max(finding["measured"] for finding in found["findings"]) > 1.0
    assert "| refuted |" in (tmp_path / "audit.md").read_text()


def test_a_verdict_of_attempts_that_see_nothing_says_so(capsys):
    few = [word if word != "600" else "30" for word in OWN]
    assert command([*few, "method.target=leaky_method.NoisyCounts"]) == 0
    shown = capsys.readouterr().out
    assert "Not refuted, and that says nothing" in shown
    assert "no parameter n_estimators" in shown


def test_it_is_not_refuted_without_the_flaw(capsys):
    assert command([*OWN, "method.target=leaky_method.NoisyCounts"]) == 0
    shown = capsys.readouterr().out
    assert "Not refuted: nothing exceeds" in shown
    assert "of the claim" in shown


def test_a_layer_that_a_method_has_not_is_named(capsys):
    arguments = [*OWN, "method.target=leaky_method.NoisyCounts", "--runs", "30", "--layer", "claim"]
    assert command(arguments) == 0
    assert "claim: not tried, as Own has no transcript" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["method=lumberjack", "--runs", "5"], "--runs"),
        (["method=lumberjack", "--confidence", "2"], "--confidence"),
        (["method=majority"], "claims no privacy"),
        (["method=lumberjack", "eps=-1"], "eps"),
        (["method=nosuch"], "nosuch"),
        (["--jobs", "0"], "--jobs"),
        (["--seed", "-1"], "--seed"),
        (["--out", "/proc/nosuch"], "/proc/nosuch"),
    ],
)
def test_mistakes_are_answered_in_one_line(arguments, message, capsys):
    assert command(arguments) != 0
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
