"""What every method for numeric targets must do; a file in conf/method is all it takes to be tested here."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from test_method_contract import (
    CONF,
    FILES,
    MIXED,
    PACKAGES,
    TABLES,
    Table,
    config_of,
    is_regressor_file,
    make_table,
    number,
)

from lumberjack.accounting.guarantee import PrivacyCard
from lumberjack.schema import UNSEEN
from lumberjack_bench.methods import build_method, reason_to_skip

BOUNDS = (-50.0, 150.0)

pytestmark = pytest.mark.filterwarnings(
    "ignore:\\s*'hydra/launcher/.*' is validated against",
    "default:::lumberjack",
    "default:::baselines",
)


def with_numbers(table: Table) -> Table:
    """The same rows; the target goes with the first feature."""
    schema = replace(table.schema, classes=(), target_bounds=BOUNDS)
    largest = max(float(schema.upper[0]), 1.0)
    noise = np.random.default_rng(3).normal(scale=5, size=len(table.y))
    return Table(schema, table.X, 100 * table.X[:, 0] / largest + noise)


NUMBERS = with_numbers(MIXED)


REGRESSORS = [path.stem for path in FILES if is_regressor_file(path)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "build" in metafunc.fixturenames:
        named = metafunc.config.getoption("--method", default=[])
        metafunc.parametrize("build", named or REGRESSORS, indirect=True)


@pytest.fixture
def build(request: pytest.FixtureRequest) -> Callable[..., Any]:
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param], reason="needs the extra rivals")
    folder = request.config.getoption("--method-folder", default=None)
    config, allowed = config_of(request.param, folder or str(CONF))

    def make(**changes: Any) -> Any:
        settings = {"schema": NUMBERS.schema, "epsilon": 2.0, "delta": 1e-6, "n_jobs": 1}
        settings |= {"random_state": 1, "noise_seed": 2, "allow_targets": allowed, **changes}
        return build_method(config, **settings)

    make.config = config  # type: ignore[attr-defined]
    return make


def predictions(method: Any, table: Table = NUMBERS) -> np.ndarray:
    return np.asarray(method.fit(table.X, table.y).predict(table.X))


def test_its_class_its_file_and_its_card_agree(build: Callable[..., Any]) -> None:
    config = build.config  # type: ignore[attr-defined]
    cls: Any = type(build())
    assert cls.display_name
    assert cls.is_private is config["is_private"]
    card = build(noise_seed=None).privacy_card()
    assert isinstance(card, PrivacyCard)
    assert "target bounds" in card.public_inputs[0]
    json.dumps(card.to_dict())
    if config["is_private"]:
        assert card.status in ("holds", "doubted", "broken")
        assert card.claimed is not None
        assert card.claimed.epsilon == pytest.approx(2.0)
        assert card.claimed.delta <= 1e-6
    else:
        assert card.status == "not private"
        assert card.claimed is None
    assert card.concerns or not card.is_doubted


def test_it_predicts_finite_numbers_within_the_bounds_of_any_table(
    build: Callable[..., Any],
) -> None:
    for table in map(with_numbers, TABLES.values()):
        method = build(schema=table.schema)
        assert reason_to_skip(method, len(table.y)) is None
        predicted = predictions(method, table)
        assert predicted.shape == table.y.shape
        assert predicted.dtype == np.float64
        assert np.isfinite(predicted).all()
        assert predicted.min() >= BOUNDS[0]
        assert predicted.max() <= BOUNDS[1]


def test_with_a_large_budget_it_finds_what_the_target_follows(build: Callable[..., Any]) -> None:
    table = with_numbers(make_table((number("a", 0, 70),), n_rows=2000))
    method = build(schema=table.schema, epsilon=50.0).fit(table.X, table.y)
    assert method.score(table.X, table.y) > 0.75


def test_the_same_seeds_give_the_same_predictions_whatever_the_threads_and_the_memory(
    build: Callable[..., Any],
) -> None:
    X, y = NUMBERS.X.copy(order="F"), NUMBERS.y.copy()
    first = predictions(build())
    assert predictions(build(n_jobs=2)).tolist() == first.tolist()
    by_row = build().fit(np.ascontiguousarray(X), y)
    assert by_row.predict(np.ascontiguousarray(X)).tolist() == first.tolist()
    assert clone(by_row).fit(X, y).predict(X).tolist() == first.tolist()
    assert pickle.loads(pickle.dumps(by_row)).predict(X).tolist() == first.tolist()
    assert np.array_equal(X, NUMBERS.X)
    assert np.array_equal(y, NUMBERS.y)


def test_other_noise_gives_other_predictions(build: Callable[..., Any]) -> None:
    if not build.config["is_private"]:  # type: ignore[attr-defined]
        pytest.skip("claims no privacy")
    assert predictions(build(noise_seed=5)).tolist() != predictions(build()).tolist()


def test_unseen_categories_and_targets_beyond_the_bounds_are_handled(
    build: Callable[..., Any],
) -> None:
    X, y = NUMBERS.X.copy(), NUMBERS.y.copy()
    X[::5, 1], y[::7] = UNSEEN, 1e9
    clipped = build().fit(X, np.minimum(y, BOUNDS[1])).predict(X)
    assert build().fit(X, y).predict(X).tolist() == clipped.tolist()
    assert len(build().fit(X[:10], y[:10]).predict(X[:1])) == 1


@pytest.mark.parametrize(
    ("X", "y", "parameters"),
    [
        (NUMBERS.X[:0], NUMBERS.y[:0], {}),
        (NUMBERS.X[:, :2], NUMBERS.y, {}),
        (NUMBERS.X, NUMBERS.y[:-1], {}),
        (NUMBERS.X, np.where(np.arange(len(NUMBERS.y)) == 3, np.nan, NUMBERS.y), {}),
        (NUMBERS.X, NUMBERS.y, {"epsilon": -1.0}),
        (NUMBERS.X, NUMBERS.y, {"epsilon": math.nan}),
        (NUMBERS.X, NUMBERS.y, {"delta": 1.0}),
        (NUMBERS.X, NUMBERS.y, {"schema": MIXED.schema}),
    ],
    ids=["no rows", "a column too few", "a target too few", "a missing target", "epsilon -1", "epsilon nan",
         "delta 1", "classes"],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_line(
    build: Callable[..., Any], X: np.ndarray, y: np.ndarray, parameters: dict[str, Any]
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - each method has its own words
        build(**parameters).fit(X, y)
    assert str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_table_with_classes_is_skipped_and_predicting_before_fitting_refused(
    build: Callable[..., Any],
) -> None:
    reason = reason_to_skip(build(schema=MIXED.schema), 100)
    assert reason is not None
    assert reason.endswith("predicts numbers, but the label of the table is a class.")
    with pytest.raises(NotFittedError):
        build().predict(NUMBERS.X)


def test_tuning_chooses_parameters_that_it_has(build: Callable[..., Any]) -> None:
    if not build.config["is_tuned"]:  # type: ignore[attr-defined]
        pytest.skip("is not tuned")
    X, y = NUMBERS.X, NUMBERS.y
    chosen = build().tune(X[:160], y[:160], X[160:], y[160:])
    assert set(chosen) <= set(build().get_params(deep=False))
    assert build().tune(X[:160], y[:160], X[160:], y[160:]) == chosen
