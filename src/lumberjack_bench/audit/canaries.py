"""Layer "canaries": one fit, many records that are each in with probability one half.

Each canary has cells of its own, whose noisy counts say whether it was there. The share of right
guesses bounds epsilon (Steinke, Nasr and Jagielski 2023, Theorem 5.2). One fit takes no time, but the bound stays
far from the claim: a smoke test.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lumberjack.schema import CategoricalFeature, FeatureSchema
from lumberjack.transcript import GaussianRelease, Transcript
from lumberjack_bench.audit.findings import Finding, Subject

LAYER = "canaries"

DELTA = 1e-6
"""The theorem takes 2 delta a canary off the confidence, so that only a small one can be audited."""

_N_FEATURES = 4
_SAMPLE = 20


def get_p_value(
    n_canaries: int, n_guesses: int, n_right: int, epsilon: float, delta: float
) -> float:
    """Return how likely so many right guesses are at most under (epsilon, delta) (Theorem 5.2).

    Parameters
    ----------
    n_canaries, n_guesses, n_right : int
        Canaries, guesses made about them, and those that were right; at least one.
    epsilon, delta : float
        The guarantee to refute.
    """
    accuracy = 1 / (1 + np.exp(-epsilon))
    law = stats.binom(n_guesses, accuracy)
    below = np.cumsum(law.pmf(np.arange(n_right - 1, -1, -1)))
    steepest = float(np.max(below / np.arange(1, n_right + 1), initial=0.0))
    return min(1.0, float(law.sf(n_right - 1)) + 2 * n_canaries * delta * steepest)


def get_lower_bound(
    n_canaries: int, n_guesses: int, n_right: int, delta: float, confidence: float
) -> float:
    """Return the largest epsilon that so many right guesses refute, to three decimals; 0 for none."""
    epsilons = np.arange(0.0, 12.0, 0.001)
    low, high = 0, len(epsilons)
    while low < high:
        middle = (low + high) // 2
        p_value = get_p_value(n_canaries, n_guesses, n_right, float(epsilons[middle]), delta)
        low, high = (middle + 1, high) if p_value <= 1 - confidence else (low, middle)
    return float(epsilons[low - 1]) if low else 0.0


def audit_canaries(
    subject: Subject, *, confidence: float, n_canaries: int = 2000, n_guesses: int = 400
) -> list[Finding]:
    """Bound epsilon by one fit.

    Parameters
    ----------
    subject : Subject
        Of a method with a transcript. Its delta is replaced by a small one.
    confidence : float
        In (0, 1); probability that the bound holds.
    n_canaries : int
        Records that may be there.
    n_guesses : int
        Guesses made, half of them about the largest scores and half about the smallest.
    """
    subject = subject._replace(delta=DELTA)
    names = tuple(range(n_canaries))
    features = tuple(CategoricalFeature(f"x{j}", names) for j in range(_N_FEATURES))
    schema = FeatureSchema(features, (0, 1))
    root = np.random.SeedSequence([subject.seed, 70])
    coins, seeds = root.spawn(2)
    values = np.asfortranarray(np.tile(np.arange(float(n_canaries))[:, np.newaxis], _N_FEATURES))
    labels = np.arange(n_canaries) % 2
    is_in = np.random.default_rng(coins).random(n_canaries) < 0.5
    model = subject.build(seeds, schema=schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transcript = model._fit_transcript(np.asfortranarray(values[is_in]), labels[is_in])
    scores = _get_scores(transcript, values, labels)
    if scores is None:
        tried = f"{n_canaries} canaries: no release has a cell for each"
        return [Finding(LAYER, tried, 1, 0.0, subject.epsilon, "epsilon >=")]
    order = np.argsort(scores)
    half = n_guesses // 2
    n_right = int((~is_in[order[:half]]).sum() + is_in[order[-half:]].sum())
    bound = get_lower_bound(n_canaries, 2 * half, n_right, DELTA, confidence)
    return [
        Finding(
            LAYER,
            f"{n_canaries} canaries at delta {DELTA:g}",
            1,
            bound,
            subject.epsilon,
            "epsilon >=",
            within=f"{subject.epsilon - bound:.2f}" if bound else "",
            details=f"{n_right} of {2 * half} guesses right",
        )
    ]


def _get_scores(
    transcript: Transcript, values: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Return what the cells of each canary hold, over all releases in which no two share one."""
    scores = np.zeros(len(values))
    found = False
    for release in transcript:
        if not isinstance(release, GaussianRelease):
            continue
        sample = _own(release, values, labels, range(_SAMPLE))
        products = sample @ sample.T
        if not products.any() or (products - np.diag(np.diag(products))).any():
            continue
        found = True
        for i in range(len(values)):
            scores[i] += float(_own(release, values, labels, [i])[0] @ release.noisy)
    return scores if found else None


def _own(
    release: GaussianRelease,
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    rows: Sequence[int],
) -> NDArray[np.float64]:
    return np.array([release.add_up(values[i : i + 1], labels[i : i + 1]) for i in rows])
