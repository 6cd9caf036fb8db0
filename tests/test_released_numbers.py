"""What a fit releases tells nothing by its low-order bits, whichever noise it has."""

import numpy as np
import pytest

from lumberjack import GuidedLumberjackClassifier, LumberjackClassifier, LumberjackRegressor
from lumberjack.regressor import RESOLUTION

METHODS = {
    "guided": (GuidedLumberjackClassifier, {"accounting": "safe"}),
    "noisy counts": (LumberjackClassifier, {"leaves": "noisy_counts"}),
    "labels": (LumberjackClassifier, {"leaves": "labels"}),
}


def fit(method, noise, *, epsilon=1.0, noise_seed=3):
    kind, parameters = METHODS[method]
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=2000), rng.integers(0, 3, 2000)])
    y = (X[:, 0] + 0.2 * X[:, 1] > 0.6).astype(int)
    model = kind(
        epsilon,
        n_estimators=3,
        max_depth=15,
        bounds={0: (0, 1)},
        categories={1: [0, 1, 2]},
        classes=[0, 1],
        noise=noise,
        random_state=1,
        noise_seed=noise_seed,
        **parameters,
    )
    coded = model._read_training_rows(X, y)
    ledger, released = model._release(coded)
    model._keep(coded, ledger, model._get_fitted(released))
    return model, released


def list_numbers(model, released):
    """Return everything numeric that a fit releases, with the scale of its noise."""
    noise = released.noise
    for cells in released.cells or []:
        yield "cells", cells, noise.scales["guide"]
    for one in released.grown:
        yield "leaves", one.released[one.tree.children_left < 0], noise.scales["leaves"]
    if released.stack is not None:
        yield "gradient", released.stack.gradient, noise.scales["stack"]
        yield "hessian", released.stack.hessian, noise.scales["stack"]


@pytest.mark.parametrize("noise", ["continuous", "discrete"])
@pytest.mark.parametrize("method", METHODS)
def test_every_released_number_lies_on_a_grid_that_no_data_can_move(method, noise):
    found = set()
    for name, values, scale in list_numbers(*fit(method, noise)):
        found.add(name)
        is_count = name in ("cells", "leaves")
        step = 1.0 if is_count and noise == "discrete" else 2.0 ** (np.floor(np.log2(scale)) - 20)
        if is_count:
            assert 1 / step == np.rint(1 / step)
        assert values.size
        assert (values / step == np.rint(values / step)).all()
    assert found == (
        {"leaves"} if method != "guided" else {"cells", "leaves", "gradient", "hessian"}
    )


def test_sums_of_a_numeric_target_lie_on_the_grid_of_its_resolution():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, 1))
    model = LumberjackRegressor(
        n_estimators=3, max_depth=15, bounds=(0, 1), target_bounds=(0, 3), noise_seed=3
    )
    coded = model._read_training_rows(X, 3 * X[:, 0])
    _, released = model._release(coded)
    sums = np.vstack([one.released[one.tree.children_left < 0] for one in released.grown])
    assert len(sums) > 3
    assert (sums / RESOLUTION == np.rint(sums / RESOLUTION)).all()
    assert (sums * 2.0**10 != np.rint(sums * 2.0**10)).any()


@pytest.mark.parametrize("noise", ["continuous", "discrete"])
def test_no_count_is_told_from_the_next_by_bits_below_the_grid(noise):
    # A raw sum of a count and a double near minus the count has bits that a count of 0 cannot have.
    near_zero = 0
    for seed in range(20):
        for name, values, _ in list_numbers(*fit("guided", noise, epsilon=20.0, noise_seed=seed)):
            small = values[np.abs(values) < 0.5]
            near_zero += small.size if name in ("cells", "leaves") else 0
            assert (small * 2.0**40 == np.rint(small * 2.0**40)).all()
    assert near_zero > 1000


@pytest.mark.parametrize("method", METHODS)
def test_discrete_noise_predicts_like_continuous_noise(method):
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.uniform(size=2000), rng.integers(0, 3, 2000)])
    y = (X[:, 0] + 0.2 * X[:, 1] > 0.6).astype(int)
    accuracy = [
        np.mean(
            [
                fit(method, noise, epsilon=8.0, noise_seed=seed)[0].predict(X) == y
                for seed in range(3)
            ]
        )
        for noise in ("continuous", "discrete")
    ]
    assert min(accuracy) > 0.8
    assert abs(accuracy[0] - accuracy[1]) < 0.05


def test_the_ledger_and_the_card_say_which_noise_it_was():
    for noise in ("continuous", "discrete"):
        model, _ = fit("guided", noise)
        is_discrete = noise == "discrete"
        assert all(("discrete" in one.mechanism) == is_discrete for one in model.ledger_.releases)
        concerns = " ".join(model.privacy_card().concerns)
        assert ("double precision" in concerns) == (not is_discrete)
    assert model.ledger_.get_epsilon(1e-6) <= 1.0


def test_another_kind_of_noise_is_refused():
    with pytest.raises(ValueError, match="'noise' parameter"):
        LumberjackClassifier(noise="laplace").fit([[0.0]], [0])
