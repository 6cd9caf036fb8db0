"""LumberjackClassifier is a scikit-learn estimator whose model holds released values only."""

import enum
import io
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from lumberjack import (
    CategoricalFeature,
    DataOutsideSchemaWarning,
    FeatureSchema,
    LumberjackClassifier,
    NumericFeature,
    PrivacyLeakWarning,
    SchemaError,
)
from lumberjack.accounting import (
    Group,
    Structure,
    calibrate_joint,
    calibrate_paper,
    calibrate_safe,
    zcdp,
)

SCHEMA = FeatureSchema(
    (NumericFeature("x", 0, 1), CategoricalFeature("colour", ("red", "green", "blue"))),
    classes=("no", "yes"),
)


def table(n_rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"x": rng.uniform(size=n_rows), "colour": rng.choice(["red", "green", "blue"], n_rows)}
    )
    y = np.where((X.x > 0.5) ^ (X.colour == "blue"), "yes", "no")
    return X, y


def forest(**parameters):
    defaults = {"epsilon": 4.0, "schema": SCHEMA, "random_state": 1, "noise_seed": 2}
    return LumberjackClassifier(**(defaults | {"n_estimators": 10} | parameters))


# Generic checks give neither bounds nor classes, hence the leak warnings; noise is seeded because
# several checks fit twice and compare. No check is expected to fail.
@pytest.mark.filterwarnings("ignore::lumberjack.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::lumberjack.DataOutsideSchemaWarning")
@parametrize_with_checks(
    [
        LumberjackClassifier(noise_seed=0, random_state=0, n_estimators=5),
        LumberjackClassifier(
            noise_seed=0, random_state=0, n_estimators=5, leaf_mechanism="gaussian"
        ),
    ]
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("leaf_mechanism", ["exponential", "gaussian"])
@pytest.mark.parametrize("accounting", ["safe", "paper"])
def test_it_learns_an_interaction_of_a_number_and_a_category(leaf_mechanism, accounting):
    X, y = table()
    model = forest(leaf_mechanism=leaf_mechanism, accounting=accounting, n_estimators=20).fit(X, y)
    X_test, y_test = table(seed=1)
    assert (model.predict(X_test) == y_test).mean() > 0.85
    proba = model.predict_proba(X_test)
    assert proba.shape == (4000, 2)
    assert proba.sum(axis=1) == pytest.approx(1.0)
    assert model.apply(X_test).shape == (4000, 20)


def test_three_classes_are_learned():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(6000, 1))
    y = np.array(["a", "b", "c"])[(3 * X[:, 0]).astype(int)]
    model = LumberjackClassifier(
        epsilon=4, bounds=(0, 1), classes=["a", "b", "c"], random_state=0, noise_seed=0
    ).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.9


def test_the_same_seeds_give_the_same_forest_at_any_number_of_threads():
    X, y = table()
    models = [forest(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 1, 3)]
    for other in models[1:]:
        for first, second in zip(models[0].estimators_, other.estimators_, strict=True):
            for name in ("feature", "cut", "left", "scores"):
                assert np.array_equal(getattr(first, name), getattr(second, name))


def test_a_seed_sequence_may_be_used_twice():
    X, y = table()
    seeds = np.random.SeedSequence(5), np.random.SeedSequence(6)
    first, second = (forest(random_state=seeds[0], noise_seed=seeds[1]).fit(X, y) for _ in range(2))
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))


def test_splits_follow_random_state_and_noise_does_not():
    X, y = table()
    first, second = (
        LumberjackClassifier(epsilon=4.0, schema=SCHEMA, random_state=1, n_estimators=3).fit(X, y)
        for _ in range(2)
    )
    for a, b in zip(first.estimators_, second.estimators_, strict=True):
        assert a.feature[0] == b.feature[0]
        assert a.cut[0] == b.cut[0]
    assert not np.array_equal(
        np.concatenate([t.scores.ravel() for t in first.estimators_]),
        np.concatenate([t.scores.ravel() for t in second.estimators_]),
    )


def test_the_ledger_adds_up_to_the_guarantee_under_basic_composition():
    X, y = table(500)
    model = forest(epsilon=2.0, delta=1e-5, accounting="paper").fit(X, y)
    structure, leaves = model.ledger_.releases
    assert structure.guarantee.epsilon + leaves.guarantee.epsilon == pytest.approx(2.0)
    assert structure.guarantee.delta + leaves.guarantee.delta == pytest.approx(1e-5)
    # 10 trees of 100 levels: 10 * (1 + floor(log2 100)) = 70 queries.
    noise = calibrate_paper(1.5, 0.75e-5, 70)
    assert structure.n_queries_per_record == 70
    assert structure.parameters == {
        "sigma": noise.sigma, "margin": noise.margin, "tau": 1 + noise.margin,
        "share": 0.75,
    }  # fmt: skip
    rho = zcdp.get_rho(0.5, 0.25e-5) / 10
    assert leaves.parameters["gumbel_scale"] == pytest.approx((8 * rho) ** -0.5)
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (2.0, 1e-5)
    assert "seeded: not private" in str(model.ledger_)


def test_safe_accounting_uses_the_safe_calibrations():
    X, y = table(500)
    labels = forest(epsilon=2.0).fit(X, y).ledger_
    assert labels.releases[0].parameters["sigma"] == calibrate_safe(1.5, 0.75e-6, 70).sigma
    counts = forest(epsilon=2.0, leaf_mechanism="gaussian").fit(X, y).ledger_
    joint = calibrate_joint(
        2.0, 1e-6, Structure("structure", 70, 0.75), [Group("leaves", 10, 0.25)]
    )
    assert counts.releases[0].parameters["sigma"] == joint.structure.sigma
    assert counts.releases[1].parameters["sigma"] == joint["leaves"].sigma


@pytest.mark.parametrize("leaf_mechanism", ["exponential", "gaussian"])
def test_tight_accounting_saves_a_fifth_of_the_paper_s_noise(leaf_mechanism):
    X, y = table(500)
    noise = {
        accounting: {
            (release.name, key): value
            for release in forest(accounting=accounting, leaf_mechanism=leaf_mechanism)
            .fit(X, y)
            .ledger_.releases
            for key, value in release.parameters.items()
            if key != "share"
        }
        for accounting in ("paper", "tight")
    }
    assert set(noise["paper"]) == set(noise["tight"])
    for scale in noise["paper"]:
        assert noise["tight"][scale] < 0.8 * noise["paper"][scale]


def test_leaf_labels_have_the_law_of_the_exponential_mechanism():
    # One leaf per tree (a constant feature), counts 40 and 30, Gumbel scale b:
    # Pr[first] = 1 / (1 + exp(-10 / b)).
    n_trees = 20_000
    X = np.zeros((70, 1))
    y = np.array([0] * 40 + [1] * 30)
    model = LumberjackClassifier(
        epsilon=800.0,
        bounds=(0, 0),
        classes=[0, 1],
        n_estimators=n_trees,
        max_depth=1,
        noise_seed=3,
    ).fit(X, y)
    scale = model.ledger_.releases[1].parameters["gumbel_scale"]
    expected = 1 / (1 + np.exp(-10 / scale))
    assert 0.55 < expected < 0.95
    observed = np.mean([tree.scores[0, 0] for tree in model.estimators_])
    assert observed == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(n_trees))


class _Recorder(pickle.Unpickler):
    """Collects every global that a pickle names."""

    def __init__(self, file):
        super().__init__(file)
        self.names = set()

    def find_class(self, module, name):
        self.names.add(f"{module}.{name}")
        return super().find_class(module, name)


def _numbers_in(value, seen):
    if isinstance(value, np.ndarray) and value.dtype.kind in "iufb":
        seen.append(np.unique(value))
    elif isinstance(value, bool | int | float):
        seen.append(np.array([value]))
    elif isinstance(value, dict):
        for item in value.values():
            _numbers_in(item, seen)
    elif isinstance(value, list | tuple | set):
        for item in value:
            _numbers_in(item, seen)
    elif isinstance(value, str | enum.Enum) or value is None:
        return
    elif hasattr(value, "__slots__") or hasattr(value, "__dict__"):
        names = list(getattr(value, "__slots__", ())) + list(getattr(value, "__dict__", {}))
        for name in names:
            _numbers_in(getattr(value, name), seen)


@pytest.mark.parametrize("leaf_mechanism", ["exponential", "gaussian"])
def test_a_pickle_holds_released_values_only(leaf_mechanism):
    n_rows = 3989  # a prime that no public parameter or node number equals
    X, y = table(n_rows)
    model = forest(leaf_mechanism=leaf_mechanism, epsilon=1.0).fit(X, y)
    data = pickle.dumps(model)
    recorder = _Recorder(io.BytesIO(data))
    again = recorder.load()
    assert np.array_equal(again.predict(X), model.predict(X))
    assert not any("random" in name or "Generator" in name for name in recorder.names)

    assert set(vars(again)) == set(again.get_params()) | {
        "schema_", "estimators_", "ledger_", "guarantee_", "classes_",
        "n_features_in_", "feature_names_in_",
    }  # fmt: skip
    numbers = []
    _numbers_in(vars(again), numbers)
    n_positive = int((y == "yes").sum())
    for secret in (n_rows, n_positive, n_rows - n_positive):
        assert not any((found == secret).any() for found in numbers)
    for tree in again.estimators_:
        # Nothing but the nodes that are Heavy or children of Heavy ones, in public order.
        assert set(type(tree).__slots__) == {"feature", "cut", "left", "scores"}
        assert len(tree.left) == len(tree.cut) == len(tree.feature) == len(tree.scores)
        children = tree.left[tree.left >= 0]
        assert children.tolist() == list(range(1, tree.n_nodes, 2))
        if leaf_mechanism == "exponential":
            assert set(np.unique(tree.scores)) <= {0.0, 1.0}
        # Raw counts would be integers; released shares of continuous noisy counts are not.
        inner = tree.left >= 0
        assert not tree.scores[inner].any()
    # The pickle's size is explained by those arrays, not by something hidden.
    size = sum(
        t.feature.nbytes + t.cut.nbytes + t.left.nbytes + t.scores.nbytes for t in again.estimators_
    )
    assert len(data) < size + 1000 * len(again.estimators_) + 10_000


def test_it_clones_and_works_in_a_pipeline_and_a_grid_search():
    X, y = table(1500)
    copy = clone(forest())
    assert copy.get_params()["schema"] == SCHEMA
    pipeline = make_pipeline(FunctionTransformer(), forest())
    search = GridSearchCV(pipeline, {"lumberjackclassifier__max_depth": [4, 16]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5


def test_facts_read_off_the_rows_are_announced_and_recorded():
    X, y = table(500)
    with pytest.warns(PrivacyLeakWarning, match="bounds and categories and classes were read off"):
        model = LumberjackClassifier(noise_seed=0).fit(X, y)
    assert any("not covered by the guarantee" in caveat for caveat in model.ledger_.caveats)
    with pytest.warns(PrivacyLeakWarning, match="^classes were read off"):
        LumberjackClassifier(
            noise_seed=0, bounds={"x": (0, 1)}, categories={"colour": ["red", "green", "blue"]}
        ).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LumberjackClassifier(
            noise_seed=0,
            bounds={"x": (0, 1)},
            categories={"colour": ["red", "green", "blue"]},
            classes=["no", "yes"],
        ).fit(X, y)


def test_unusual_entries_are_routed_and_counted_in_a_warning():
    X, y = table(500)
    X.loc[0, "x"] = 7.0
    X.loc[[1, 2], "colour"] = "ultraviolet"
    with pytest.warns(
        DataOutsideSchemaWarning, match="1 entries clipped.*2 entries with categories"
    ):
        model = forest().fit(X, y)
    assert "500" not in str(model.ledger_)


def test_missing_entries_and_unknown_labels_may_be_routed_by_public_rules():
    schema = FeatureSchema(
        (
            NumericFeature("x", 0, 1, fill=0.5),
            CategoricalFeature("colour", ("red", "green", "blue"), fill="red"),
        ),
        classes=("no", "yes"),
    )
    X, y = table(500)
    X.loc[0, "x"] = np.nan
    y = y.astype(object)
    y[1] = "perhaps"
    with pytest.warns(DataOutsideSchemaWarning, match="1 entries filled, 1 entries dropped"):
        model = forest(schema=schema, missing="fill", unknown_labels="drop").fit(X, y)
    assert model.predict(X).shape == (500,)


def test_one_class_in_the_rows_is_no_event_when_the_classes_are_declared():
    X, _ = table(3000)
    model = forest().fit(X, np.full(3000, "no"))
    assert set(model.predict(X)) == {"no"}
    assert list(model.classes_) == ["no", "yes"]


def test_the_card_speaks_before_any_fit():
    card = forest(noise_seed=None).privacy_card()
    assert card.status == "holds"
    assert card.mode == "safe"
    assert "Seeded" not in " ".join(card.concerns)
    assert "Seeded" in " ".join(forest().privacy_card().concerns)
    assert "Theorem 6" in forest(accounting="paper").privacy_card().source


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a finite number above 0, got 0"),
        ({"epsilon": -1.0}, "epsilon must be a finite number above 0, got -1.0"),
        ({"epsilon": np.nan}, "epsilon must be a finite number above 0, got nan"),
        ({"epsilon": np.inf}, "epsilon must be a finite number above 0, got inf"),
        ({"epsilon": "1"}, "epsilon must be a finite number above 0, got '1'"),
        ({"delta": 0}, "delta must be a finite number above 0 and below 1, got 0"),
        ({"delta": 1.0}, "delta must be a finite number above 0 and below 1, got 1.0"),
        ({"max_depth": 0}, "max_depth must be an integer of at least 1, got 0"),
        ({"n_estimators": 2.5}, "n_estimators must be an integer of at least 1, got 2.5"),
        ({"structure_fraction": 1.0}, "structure_fraction must be"),
        ({"leaf_mechanism": "laplace"}, "leaf_mechanism must be one of"),
        ({"accounting": "loose"}, "accounting must be one of"),
        ({"noise_seed": -3}, "a seed must be None, a non-negative integer"),
        ({"schema": None, "bounds": (1, 0)}, "bounds are reversed, lower=1.0 > upper=0.0"),
        ({"bounds": (0, 1)}, "give either schema or bounds, not both"),
        ({"schema": {}}, "schema must be a FeatureSchema, got dict"),
        (
            {"schema": None, "bounds": [(0, 1), (0, 1)]},
            "mapping of name or position to (lower, upper)",
        ),
        ({"schema": None, "categories": {"taste": ["sweet"]}}, "unknown features ['taste']"),
        ({"schema": None, "classes": ["no"]}, "at least two classes"),
        ({"schema": None, "bounds": {"y": (0, 1)}}, "bounds name unknown features ['y']"),
        ({"schema": None, "bounds": {"x": (0,)}}, "bounds of feature 'x' must be two numbers"),
        ({"schema": None, "bounds": "ab"}, "bounds must be two numbers"),
        (
            {"schema": None, "bounds": {"x": (0, 1)}, "categories": {"x": [1]}},
            "feature 'x' has both bounds and categories",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::lumberjack.PrivacyLeakWarning")
def test_bad_parameters_are_refused_in_one_line(parameters, message):
    X, y = table(50)
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared below
        forest(**parameters).fit(X, y)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (X.assign(x=np.nan), y), "feature 'x' has 50 missing or infinite"),
        (lambda X, y: (X.assign(x=np.inf), y), "feature 'x' has 50 missing or infinite"),
        (lambda X, y: (X, np.where(y == "no", "never", y)), "not among the classes"),
        (lambda X, y: (X.assign(extra=1), y), "unexpected columns ['extra']"),
        (lambda X, y: (X[["x"]], y), "missing columns ['colour']"),
        (lambda X, y: (X.iloc[:0], y[:0]), "0 sample(s)"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of rows: 50 and 49"),
    ],
)
def test_bad_tables_are_refused_in_one_line(spoil, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared below
        forest().fit(*spoil(*table(50)))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_table_with_another_number_of_columns_is_refused_at_prediction():
    X, y = table(300)
    model = forest().fit(X, y)
    with pytest.raises(SchemaError, match="missing columns"):
        model.predict(X[["x"]])
    with pytest.raises(
        ValueError, match="X has 3 features, but LumberjackClassifier is expecting 2"
    ):
        model.predict(np.zeros((1, 3)))


@pytest.mark.filterwarnings("ignore::lumberjack.PrivacyLeakWarning")
def test_dates_are_refused_because_their_unit_is_not_fixed():
    X = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=50)})
    with pytest.raises(ValueError, match="feature 'when' holds dates"):
        forest(schema=None, classes=[0, 1]).fit(X, [0, 1] * 25)


def test_constant_features_are_no_event():
    schema = FeatureSchema(
        (NumericFeature("x", 2, 2), CategoricalFeature("colour", ("red",))), classes=("no", "yes")
    )
    X = pd.DataFrame({"x": [2.0] * 500, "colour": ["red"] * 500})
    model = forest(schema=schema).fit(X, ["no"] * 400 + ["yes"] * 100)
    assert model.fit_report()["mean_nodes_per_tree"] == 1.0
