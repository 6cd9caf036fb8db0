"""The layers of the audit: what each finds in a flawed forest, and that it finds nothing in a sound one."""

from __future__ import annotations

import pytest

from lumberjack.transcript import count_answers
from lumberjack_bench.audit.canaries import audit_canaries, get_lower_bound, get_p_value
from lumberjack_bench.audit.claim import audit_claim
from lumberjack_bench.audit.components import audit_components
from lumberjack_bench.audit.findings import UNSEEN, Finding, Subject
from lumberjack_bench.audit.groups import audit_groups
from lumberjack_bench.audit.reading_pairs import audit_reading

GUIDED = "lumberjack.GuidedLumberjackClassifier"
LUMBERJACK = "lumberjack.LumberjackClassifier"
ADDITIVE = "lumberjack.AdditiveForestClassifier"
SOUND = [
    (GUIDED, {}),
    (GUIDED, {"accounting": "safe"}),
    (LUMBERJACK, {"accounting": "paper"}),
    (LUMBERJACK, {"accounting": "safe"}),
    (LUMBERJACK, {"accounting": "tight"}),
    (LUMBERJACK, {"accounting": "tight", "leaves": "noisy_counts"}),
]


def subject(target, epsilon=1.0, delta=0.05, seed=0, **params):
    own = {} if target == ADDITIVE else {"n_estimators": 4}
    config = {"name": "audited", "target": target, "params": own | params}
    return Subject(config, epsilon, delta, seed, allow_targets=("planted_flaws",))


def flawed(name, **options):
    return subject(f"planted_flaws.{name}", **options)


def refuted(findings):
    return [finding.tried for finding in findings if finding.is_refuted]


@pytest.mark.parametrize(
    ("flaw", "group", "what"),
    [
        ("WithoutLeafNoise", "leaves", "standard deviation"),
        ("HalvedLeafNoise", "leaves", "standard deviation"),
        ("HalvedGuideNoise", "guide", "standard deviation"),
        ("WithoutStackNoise", "stack", "standard deviation"),
        ("StackOfSensitivityTwo", "stack", "what was released less"),
        ("ForgottenLeaves", "leaves", "queries of unit sensitivity"),
        ("GuideCountedOnce", "guide", "queries of unit sensitivity"),
        ("WithoutVoteNoise", "leaves", "law of the answers"),
    ],
)
def test_components_find(flaw, group, what):
    found = refuted(audit_components(flawed(flaw), n_runs=80 if "Vote" in flaw else 20))
    assert found
    assert all(tried.startswith(group) for tried in found)
    assert any(what in tried for tried in found)


@pytest.mark.parametrize(
    ("flaw", "group"),
    [("HalvedLeafNoise", "leaves"), ("HalvedGuideNoise", "guide"), ("WithoutLeafNoise", "leaves")],
)
@pytest.mark.nightly
def test_groups_find_too_little_noise(flaw, group):
    assert any(tried.startswith(f"{group}: moved") for tried in refuted(audit_groups(flawed(flaw))))


def test_groups_find_noise_that_is_used_twice():
    found = refuted(audit_groups(flawed("OneNoiseSeed"), n_runs=100))
    assert any("draws that come twice" in tried for tried in found)
    assert any("least eigenvalue" in tried for tried in found)


def test_nothing_of_the_additive_forest_is_refuted():
    assert not refuted(audit_components(subject(ADDITIVE), n_runs=5))
    assert not refuted(audit_groups(subject(ADDITIVE), n_runs=20))


@pytest.mark.parametrize(("target", "params"), SOUND)
def test_nothing_sound_is_refuted(target, params):
    assert not refuted(audit_components(subject(target, **params), n_runs=20))
    assert not refuted(audit_groups(subject(target, **params), n_runs=80))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("target", "params"), [*SOUND, (ADDITIVE, {})])
def test_nothing_sound_is_refuted_with_any_seed(target, params, seed):
    sound = subject(target, seed=seed, **params)
    # Few runs, as that is where what is true of many only raises false alarms.
    n_runs = 30 if target == ADDITIVE else 100
    assert not refuted(audit_components(sound, n_runs=n_runs // 3))
    assert not refuted(audit_groups(sound, n_runs=n_runs))
    assert not refuted(audit_claim(sound, n_runs=n_runs, confidence=0.999))


@pytest.mark.nightly
def test_the_claim_is_refuted_by_a_floor_that_the_threshold_ignores():
    found = audit_claim(flawed("FloorOfTwo", epsilon=3.0, delta=0.01), n_runs=8800, confidence=0.95)
    assert refuted(found) == ["2 equal rows, and one more"]
    sound = audit_claim(subject(GUIDED, epsilon=3.0, delta=0.01), n_runs=8800, confidence=0.95)
    assert not refuted(sound)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("target", "params", "n_runs", "least"),
    [
        (GUIDED, {}, 4000, 0.70),
        (ADDITIVE, {}, 1500, 0.70),
        (LUMBERJACK, {"accounting": "tight"}, 4000, 0.63),
        (LUMBERJACK, {"accounting": "paper"}, 4000, 0.27),
    ],
)
def test_bounds_come_close_to_the_claim(target, params, n_runs, least):
    best, *_ = audit_claim(subject(target, **params), n_runs=n_runs, confidence=0.95)
    assert least <= best.measured <= 1
    assert best.measured < best.limit <= 1.05


@pytest.mark.parametrize("flaw", ["BoundsOffTheRows", "CategoryReadByItsType"])
def test_reading_finds(flaw):
    assert "one more odd record in a frame" in refuted(audit_reading(flawed(flaw)))


@pytest.mark.parametrize(
    "target", [LUMBERJACK, GUIDED, "baselines.smooth_sensitivity.SmoothSensitivityClassifier"]
)
def test_reading_refutes_nothing_sound(target):
    findings = audit_reading(subject(target))
    assert not refuted(findings)
    assert all(finding.n_runs > 10 for finding in findings)


def test_canaries_find_a_guide_without_noise_and_believe_a_sound_one():
    few = {"confidence": 0.95, "n_canaries": 200, "n_guesses": 100}
    (sound,) = audit_canaries(subject(GUIDED, epsilon=8.0), **few)
    assert 0 <= sound.measured <= 8
    (nothing,) = audit_canaries(subject(LUMBERJACK), **few)
    assert nothing.verdict == UNSEEN


def test_guesses_of_one_run_bound_what_randomised_response_keeps():
    # Theorem 5.2 at delta = 0 is the binomial law of randomised response.
    assert get_p_value(100, 100, 73, 1.0, 0.0) == pytest.approx(0.5, abs=0.1)
    assert get_lower_bound(1000, 1000, 500, 0.0, 0.95) == 0
    assert get_lower_bound(1000, 1000, 1000, 0.0, 0.95) == pytest.approx(5.81, abs=0.01)
    assert get_lower_bound(1000, 400, 360, 1e-6, 0.95) < get_lower_bound(1000, 400, 360, 0.0, 0.95)


def test_a_path_is_asked_as_often_as_the_lemma_allows():
    for height in range(1, 128):
        asked = [sum(count_answers(n_heavy, height)) for n_heavy in range(height + 1)]
        assert max(asked) == height.bit_length()


def test_verdicts():
    def finding(measured, within):
        return Finding("claim", "a pair", 100, measured, 1.0, "epsilon >=", within=within)

    assert finding(1.1, "").verdict == "refuted"
    assert finding(0.7, "0.30").verdict == "consistent, and within 0.30 of the claim"
    assert finding(0.0, "").verdict == UNSEEN
    assert "0.00" not in str(finding(0.0, ""))
