"""What every classifier must do; a file in conf/method is all it takes to be tested here.

So is the method that scripts/new_method.py writes. With --method, those are tested that it names
(scripts/check_method.py).
"""

from __future__ import annotations

import functools
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from omegaconf import OmegaConf
from sklearn.base import RegressorMixin, clone
from sklearn.exceptions import NotFittedError

from lumberjack.accounting.guarantee import NeighbouringRelation, PrivacyCard
from lumberjack.schema import UNSEEN, CategoricalFeature, Feature, FeatureSchema, NumericFeature
from lumberjack_bench.command import compose_one
from lumberjack_bench.methods import build_method, method_class, reason_to_skip

CONF = Path(__file__).parents[2] / "conf"
MOST = {"n_estimators": 8, "max_depth": 6}
NEW = "noisy_histogram"
PACKAGES = {
    "dp_ebm": "interpret",
    "dp_ebm_regressor": "interpret",
}  # of the extra rivals, which need not be installed


def is_regressor_file(path: Path) -> bool:
    target = yaml.safe_load(path.read_text(encoding="utf-8"))["target"]
    return issubclass(method_class(target), RegressorMixin)


FILES = sorted((CONF / "method").glob("*.yaml"))
METHODS = [path.stem for path in FILES if not is_regressor_file(path)]

pytestmark = pytest.mark.filterwarnings(
    "ignore:\\s*'hydra/launcher/.*' is validated against",
    # What a method says to the data holder about her rows is its own affair.
    "default:::lumberjack",
    "default:::baselines",
)


@functools.cache
def config_of(name: str, folder: str) -> tuple[dict[str, Any], list[str]]:
    """The method's part of the configuration, and the packages that it may come from."""
    overrides = [f"hydra.searchpath=['file://{folder}']", f"method={name}", "dataset=toy_moons"]
    composed = compose_one([*overrides, "sweep_id=contract"], CONF)
    content: Any = OmegaConf.to_container(composed.method, resolve=True)
    # The contract is the same for small forests, and the tests are over sooner.
    for parameter, most in MOST.items():
        if isinstance(content["params"].get(parameter), int):
            content["params"][parameter] = min(content["params"][parameter], most)
    return dict(content), list(composed.allow_targets)


@dataclass(frozen=True)
class Table:
    schema: FeatureSchema
    X: np.ndarray
    y: np.ndarray


def make_table(features: tuple[Feature, ...], n_classes: int = 2, n_rows: int = 240) -> Table:
    """Rows in which the class goes with the first feature, nine times in ten."""
    generator = np.random.default_rng(7)
    schema = FeatureSchema(features, tuple(range(n_classes)))
    columns = [
        generator.integers(len(f.categories), size=n_rows)
        if isinstance(f, CategoricalFeature)
        else generator.uniform(f.lower, f.upper, size=n_rows)
        for f in features
    ]
    X = np.asfortranarray(np.column_stack(columns).astype(np.float64))
    order = np.argsort(np.argsort(X[:, 0], kind="stable"), kind="stable")
    y = order * n_classes // n_rows
    is_noisy = generator.random(n_rows) < 0.1
    y[is_noisy] = generator.integers(n_classes, size=int(is_noisy.sum()))
    return Table(schema, X, y.astype(np.int64))


def number(name: str, lower: float = 0.0, upper: float = 10.0) -> NumericFeature:
    return NumericFeature(name, lower, upper)


def category(name: str, size: int) -> CategoricalFeature:
    return CategoricalFeature(name, tuple(range(size)))


MIXED = make_table((number("a"), category("b", 3), number("c", -1, 1), category("d", 2)))

TABLES = {
    "mixed": MIXED,
    "all numeric": make_table((number("a"), number("b", -5, 5))),
    "all categorical": make_table((category("a", 6), category("b", 2), category("c", 3))),
    "41 categories": make_table((category("country", 41), number("a"))),
    "a constant number": make_table((number("a"), number("constant", 3.0, 3.0))),
    "a constant category": make_table((number("a"), category("constant", 1))),
    "three classes": make_table((number("a"), category("b", 3)), n_classes=3),
    "one feature": make_table((number("a"),)),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "build" in metafunc.fixturenames:
        named = metafunc.config.getoption("--method", default=[])
        metafunc.parametrize("build", named or [*METHODS, NEW], indirect=True)


@pytest.fixture(scope="module")
def own_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Where methods come from that are none of ours: the folder named, or one with a new method."""
    folder = request.config.getoption("--method-folder", default=None)
    if folder is None:
        folder = str(tmp_path_factory.mktemp("own"))
        words = [sys.executable, CONF.parent / "scripts" / "new_method.py", NEW, "--out", folder]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    path = [*sys.path]
    yield folder
    sys.path[:] = path


@pytest.fixture
def build(request: pytest.FixtureRequest, own_folder: str) -> Callable[..., Any]:
    """Build the method from its file, on the mixed table unless told otherwise."""
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param], reason="needs the extra rivals")
    config, allowed = config_of(request.param, own_folder)

    def make(schema: FeatureSchema = MIXED.schema, **changes: Any) -> Any:
        settings = {"epsilon": 2.0, "delta": 1e-6, "random_state": 1, "noise_seed": 2, "n_jobs": 1}
        settings |= {"allow_targets": allowed, **changes}
        method = build_method(config, schema=schema, **settings)
        reason = None if schema is MIXED.schema else reason_to_skip(method, len(MIXED.y))
        if reason:
            pytest.skip(reason)
        return method

    make.config = config  # type: ignore[attr-defined]
    return make


def test_the_class_says_what_it_is_called_and_whether_it_is_private(
    build: Callable[..., Any],
) -> None:
    config = build.config  # type: ignore[attr-defined]
    cls = type(build())
    assert isinstance(cls.display_name, str)  # type: ignore[attr-defined]
    assert cls.display_name  # type: ignore[attr-defined]
    assert cls.is_private is config["is_private"]  # type: ignore[attr-defined]
    assert config["label"]


def test_it_clones_with_all_its_parameters(build: Callable[..., Any]) -> None:
    method = build()
    copy = clone(method)
    assert type(copy) is type(method)
    assert copy.get_params(deep=False).keys() == method.get_params(deep=False).keys()
    for name, value in method.get_params(deep=False).items():
        assert copy.get_params(deep=False)[name] == value


@pytest.mark.parametrize("kind", TABLES)
def test_it_learns_any_table_and_predicts_class_codes(build: Callable[..., Any], kind: str) -> None:
    table = TABLES[kind]
    method = build(table.schema)
    assert method.fit(table.X, table.y) is method
    predicted = np.asarray(method.predict(table.X))
    assert predicted.shape == table.y.shape
    assert predicted.dtype.kind == "i"
    assert set(predicted.tolist()) <= set(range(table.schema.n_classes))


def test_with_a_large_budget_it_finds_what_the_label_follows(build: Callable[..., Any]) -> None:
    # Both classes are equally frequent, so that a constant is right for half of the rows; the only
    # feature tells 19 of 20.
    if build.config["name"] == "majority":  # type: ignore[attr-defined]
        pytest.skip("is the constant that the others must beat")
    table = make_table((number("a", 0, 70),), n_rows=2000)
    predicted = build(table.schema, epsilon=50.0).fit(table.X, table.y).predict(table.X)
    assert np.mean(predicted == table.y) > 0.75


def test_a_small_table_is_nothing_to_skip(build: Callable[..., Any]) -> None:
    assert reason_to_skip(build(), len(MIXED.y)) is None


def test_the_same_seeds_give_the_same_predictions(build: Callable[..., Any]) -> None:
    first = build().fit(MIXED.X, MIXED.y).predict(MIXED.X)
    second = build().fit(MIXED.X, MIXED.y).predict(MIXED.X)
    assert first.tolist() == second.tolist()


def test_seed_sequences_are_seeds_and_are_not_used_up(build: Callable[..., Any]) -> None:
    seeds = {"random_state": np.random.SeedSequence(1), "noise_seed": np.random.SeedSequence(2)}
    method = build(**seeds)
    first = method.fit(MIXED.X, MIXED.y).predict(MIXED.X)
    assert method.fit(MIXED.X, MIXED.y).predict(MIXED.X).tolist() == first.tolist()
    assert build(**seeds).fit(MIXED.X, MIXED.y).predict(MIXED.X).tolist() == first.tolist()


def test_other_noise_gives_other_predictions(build: Callable[..., Any]) -> None:
    if not build.config["is_private"]:  # type: ignore[attr-defined]
        pytest.skip("claims no privacy")
    noisy = [build(epsilon=0.1, noise_seed=seed).fit(MIXED.X, MIXED.y) for seed in range(8)]
    assert len({tuple(method.predict(MIXED.X).tolist()) for method in noisy}) > 1


def test_more_threads_do_not_change_predictions(build: Callable[..., Any]) -> None:
    one = build(n_jobs=1).fit(MIXED.X, MIXED.y).predict(MIXED.X)
    two = build(n_jobs=2).fit(MIXED.X, MIXED.y).predict(MIXED.X)
    assert one.tolist() == two.tolist()


def test_the_order_of_the_rows_memory_does_not_change_predictions(
    build: Callable[..., Any],
) -> None:
    by_column = build().fit(np.asfortranarray(MIXED.X), MIXED.y).predict(MIXED.X)
    by_row = build().fit(np.ascontiguousarray(MIXED.X), MIXED.y)
    assert by_row.predict(np.ascontiguousarray(MIXED.X)).tolist() == by_column.tolist()


def test_what_it_is_given_is_left_as_it_was(build: Callable[..., Any]) -> None:
    X, y = MIXED.X.copy(order="F"), MIXED.y.copy()
    build().fit(X, y).predict(X)
    assert np.array_equal(X, MIXED.X)
    assert np.array_equal(y, MIXED.y)


def test_categories_that_the_schema_does_not_list_are_handled(build: Callable[..., Any]) -> None:
    X = MIXED.X.copy()
    X[::5, 1] = UNSEEN
    predicted = build().fit(X, MIXED.y).predict(X)
    assert set(predicted.tolist()) <= {0, 1}
    later = MIXED.X.copy()
    later[:, 1] = UNSEEN
    later[:, 3] = UNSEEN
    assert len(build().fit(MIXED.X, MIXED.y).predict(later)) == len(later)


def test_a_class_without_rows_is_no_problem(build: Callable[..., Any]) -> None:
    predicted = build().fit(MIXED.X, np.zeros_like(MIXED.y)).predict(MIXED.X)
    assert set(predicted.tolist()) <= {0, 1}


def test_a_few_rows_are_enough_to_fit_and_one_to_predict(build: Callable[..., Any]) -> None:
    predicted = build().fit(MIXED.X[:10], MIXED.y[:10]).predict(MIXED.X[:1])
    assert set(predicted.tolist()) <= {0, 1}


def test_probabilities_are_probabilities(build: Callable[..., Any]) -> None:
    table = TABLES["three classes"]
    method = build(table.schema).fit(table.X, table.y)
    if not hasattr(method, "predict_proba"):
        pytest.skip("has no predict_proba")
    probabilities = method.predict_proba(table.X)
    assert probabilities.shape == (len(table.y), 3)
    assert probabilities.min() >= 0
    assert np.allclose(probabilities.sum(axis=1), 1.0)


def test_a_fitted_one_survives_pickling(build: Callable[..., Any]) -> None:
    method = build().fit(MIXED.X, MIXED.y)
    again = pickle.loads(pickle.dumps(method))
    assert again.predict(MIXED.X).tolist() == method.predict(MIXED.X).tolist()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": -0.1}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
    ],
)
def test_privacy_parameters_out_of_range_are_refused_in_one_line(
    build: Callable[..., Any], wrong: dict[str, float], named: str
) -> None:
    def make_and_fit() -> None:
        build(**wrong).fit(MIXED.X, MIXED.y)

    with pytest.raises(ValueError, match=named) as caught:
        make_and_fit()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (MIXED.X[:0], MIXED.y[:0]),
        (MIXED.X[:, :2], MIXED.y),
        (MIXED.X, MIXED.y[:-1]),
        (MIXED.X, MIXED.y + 7),
        (np.where(MIXED.X[0, 0] == MIXED.X, np.nan, MIXED.X), MIXED.y),
    ],
    ids=["no rows", "a column too few", "a label too few", "unknown labels", "a missing entry"],
)
def test_tables_that_do_not_fit_are_refused_in_one_line(
    build: Callable[..., Any], X: np.ndarray, y: np.ndarray
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - each method has its own words
        build().fit(X, y)
    assert str(caught.value)
    assert "\n" not in str(caught.value)


def test_predicting_before_fitting_is_refused(build: Callable[..., Any]) -> None:
    with pytest.raises(NotFittedError):
        build().predict(MIXED.X)


def test_its_card_is_complete_without_fitting(build: Callable[..., Any]) -> None:
    is_private = build.config["is_private"]  # type: ignore[attr-defined]
    card = build(noise_seed=None).privacy_card()
    assert isinstance(card, PrivacyCard)
    assert card.method
    assert card.mode
    assert card.source
    assert card.public_inputs
    assert all(concern.strip() for concern in card.concerns)
    json.dumps(card.to_dict())
    if is_private:
        assert card.status in ("holds", "doubted", "broken")
        assert card.claimed is not None
        assert card.claimed.epsilon == pytest.approx(2.0)
        assert card.claimed.delta <= 1e-6
        assert card.claimed.relation is NeighbouringRelation.ADD_OR_REMOVE_ONE
    else:
        assert card.status == "not private"
        assert card.claimed is None or math.isinf(card.claimed.epsilon)
    if card.is_doubted:
        assert card.concerns, "a doubt needs a reason"


def test_what_it_reports_about_a_fit_are_finite_numbers(build: Callable[..., Any]) -> None:
    method = build().fit(MIXED.X, MIXED.y)
    if not hasattr(method, "fit_report"):
        pytest.skip("has no fit_report")
    report = method.fit_report()
    assert all(isinstance(name, str) for name in report)
    assert all(math.isfinite(value) for value in report.values())


def test_tuning_chooses_parameters_that_it_has(build: Callable[..., Any]) -> None:
    if not build.config["is_tuned"]:  # type: ignore[attr-defined]
        pytest.skip("is not tuned")
    method = build()
    before = method.get_params(deep=False)
    chosen = method.tune(MIXED.X[:160], MIXED.y[:160], MIXED.X[160:], MIXED.y[160:])
    assert chosen
    assert set(chosen) <= set(before)
    assert build().tune(MIXED.X[:160], MIXED.y[:160], MIXED.X[160:], MIXED.y[160:]) == chosen
    fitted = build().set_params(**chosen).fit(MIXED.X, MIXED.y)
    assert set(fitted.predict(MIXED.X).tolist()) <= {0, 1}
