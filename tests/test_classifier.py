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
    AdditiveForestClassifier,
    CategoricalFeature,
    DataOutsideSchemaWarning,
    FeatureSchema,
    GuidedLumberjackClassifier,
    LumberjackClassifier,
    NumericFeature,
    PrivacyLeakWarning,
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
        LumberjackClassifier(noise_seed=0, random_state=0, n_estimators=5, leaves="noisy_counts"),
    ]
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("leaves", ["labels", "noisy_counts"])
@pytest.mark.parametrize("accounting", ["safe", "paper"])
def test_it_learns_an_interaction_of_a_number_and_a_category(leaves, accounting):
    X, y = table()
    model = forest(leaves=leaves, accounting=accounting, n_estimators=20).fit(X, y)
    X_test, y_test = table(seed=1)
    assert (model.predict(X_test) == y_test).mean() > 0.85
    proba = model.predict_proba(X_test)
    assert proba.shape == (4000, 2)
    assert proba.sum(axis=1) == pytest.approx(1.0)
    assert model.apply(X_test).shape == (4000, 20)


def test_the_same_seeds_give_the_same_forest_at_any_number_of_threads():
    X, y = table()
    models = [forest(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 1, 3)]
    for other in models[1:]:
        for first, second in zip(models[0].estimators_, other.estimators_, strict=True):
            for name in ("feature", "threshold", "children_left", "value"):
                assert np.array_equal(getattr(first, name), getattr(second, name))


LAYOUTS = {
    "columns together": np.asfortranarray,
    "rows together": np.ascontiguousarray,
    "apart": lambda X: np.repeat(X, 2, axis=0)[::2],
    "narrow": lambda X: X.astype(np.float32),
    "frame": lambda X: pd.DataFrame(X, columns=["x", "z", "c"]),
}


@pytest.mark.filterwarnings("ignore::lumberjack.DataOutsideSchemaWarning")
@pytest.mark.parametrize(
    "kind", [LumberjackClassifier, GuidedLumberjackClassifier, AdditiveForestClassifier]
)
def test_a_table_is_never_written_to_and_its_layout_changes_nothing(kind):
    features = (
        NumericFeature("x", 0.1, 0.9),
        NumericFeature("z", -5, 5),
        CategoricalFeature("c", (0, 1, 2)),
    )
    rng = np.random.default_rng(0)
    n_rows = 9000  # more than a block
    X = np.column_stack(
        [rng.random(n_rows), rng.normal(size=n_rows), rng.integers(0, 4, n_rows)]
    ).astype(np.float32)
    y = (X[:, 0] + X[:, 2] > 1.5).astype(int)
    found = {}
    for layout, arrange in LAYOUTS.items():
        own = arrange(X.astype(np.float64))
        before = np.asarray(own).tobytes()
        if layout != "frame":
            own.flags.writeable = False
        model = kind(schema=FeatureSchema(features, (0, 1)), random_state=1, noise_seed=1)
        found[layout] = model.fit(own, y).predict_proba(own)
        assert np.asarray(own).tobytes() == before
    for layout in LAYOUTS:
        assert np.array_equal(found[layout], found["frame"]), layout


def test_a_seed_sequence_may_be_used_twice():
    X, y = table()
    seeds = np.random.SeedSequence(5), np.random.SeedSequence(6)
    first, second = (forest(random_state=seeds[0], noise_seed=seeds[1]).fit(X, y) for _ in range(2))
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))


def test_the_ledger_adds_up_to_the_guarantee_under_basic_composition():
    X, y = table(500)
    model = forest(epsilon=2.0, delta=1e-5, accounting="paper").fit(X, y)
    structure, labels = model.ledger_.releases
    assert structure.guarantee.epsilon + labels.guarantee.epsilon == pytest.approx(2.0)
    assert structure.guarantee.delta + labels.guarantee.delta == pytest.approx(1e-5)
    # 10 trees of 100 levels: 10 * (1 + floor(log2 100)) = 70 touches.
    noise = calibrate_paper(1.5, 0.75e-5, 70)
    assert structure.n_queries_per_record == 70
    assert structure.parameters == {
        "sigma": noise.sigma, "margin": noise.margin, "share": 0.75,
    }  # fmt: skip
    rho = zcdp.get_rho(0.5, 0.25e-5) / 10
    assert labels.parameters["gumbel_scale"] == pytest.approx((8 * rho) ** -0.5)
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (2.0, 1e-5)
    assert "seeded: not private" in str(model.ledger_)


def test_safe_accounting_uses_the_safe_calibrations():
    X, y = table(500)
    labels = forest(epsilon=2.0).fit(X, y).ledger_
    assert labels.releases[0].parameters["sigma"] == calibrate_safe(1.5, 0.75e-6, 70).sigma
    counts = forest(epsilon=2.0, leaves="noisy_counts").fit(X, y).ledger_
    trees, leaves = Structure("structure", 70, 0.75), Group("leaves", 10, 0.25)
    joint = calibrate_joint(2.0, 1e-6, trees, [leaves])
    assert [release.group for release in counts.releases] == [joint.structure, *joint.others]


@pytest.mark.parametrize("leaves", ["labels", "noisy_counts"])
def test_tight_accounting_saves_a_fifth_of_the_paper_s_noise(leaves):
    X, y = table(500)
    paper, tight = (
        forest(accounting=accounting, leaves=leaves).fit(X, y).ledger_.releases
        for accounting in ("paper", "tight")
    )
    for theirs, ours in zip(paper, tight, strict=True):
        assert ours.group.scale < 0.8 * theirs.group.scale


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
    observed = np.mean([tree.value[0, 0] for tree in model.estimators_])
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


@pytest.mark.parametrize("leaves", ["labels", "noisy_counts"])
def test_a_pickle_holds_released_values_only(leaves):
    n_rows = 3989  # a prime that no public parameter or node number equals
    X, y = table(n_rows)
    model = forest(leaves=leaves, epsilon=1.0).fit(X, y)
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
        assert set(type(tree).__slots__) == {"feature", "threshold", "children_left", "value"}
        assert (
            len(tree.children_left) == len(tree.threshold) == len(tree.feature) == len(tree.value)
        )
        children = tree.children_left[tree.children_left >= 0]
        assert children.tolist() == list(range(1, tree.n_nodes, 2))
        if leaves == "labels":
            assert set(np.unique(tree.value)) <= {0.0, 1.0}
        # Raw counts would be integers; released shares of continuous noisy counts are not.
        inner = tree.children_left >= 0
        assert not tree.value[inner].any()
    # The pickle's size is explained by those arrays, not by something hidden.
    size = sum(
        t.feature.nbytes + t.threshold.nbytes + t.children_left.nbytes + t.value.nbytes
        for t in again.estimators_
    )
    assert len(data) < size + 1000 * len(again.estimators_) + 10_000


def test_prediction_is_the_same_at_any_number_of_threads():
    X, y = table(1001)
    model = forest(leaves="noisy_counts").fit(X, y)
    expected = model.predict_proba(X)
    for n_jobs in (1, 2, 5):
        assert np.array_equal(model.set_params(n_jobs=n_jobs).predict_proba(X), expected)
    assert len(model.predict_proba(X[:1])) == 1
    assert np.exp(model.predict_log_proba(X)) == pytest.approx(expected)


@pytest.mark.parametrize("estimator", [LumberjackClassifier, GuidedLumberjackClassifier])
def test_weights_and_warm_starts_are_refused_with_the_reason(estimator):
    X, y = table(50)
    with pytest.raises(TypeError, match="sample_weight is not supported: the noise is calibrated"):
        estimator(schema=SCHEMA).fit(X, y, sample_weight=np.ones(50))
    with pytest.raises(TypeError, match="fit takes X and y only, got 'check_input'"):
        estimator(schema=SCHEMA).fit(X, y, check_input=False)
    with pytest.raises(ValueError, match="warm_start is not supported: every fit spends"):
        estimator(schema=SCHEMA).set_params(warm_start=True)


def test_it_clones_and_works_in_a_pipeline_and_a_grid_search():
    X, y = table(1500)
    copy = clone(forest())
    assert copy.get_params()["schema"] == SCHEMA
    pipeline = make_pipeline(FunctionTransformer(), forest())
    search = GridSearchCV(pipeline, {"lumberjackclassifier__max_depth": [4, 16]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5


def test_facts_read_off_the_rows_are_announced_and_recorded():
    X, y = table(500)
    said = "^bounds of 'x' and categories of 'colour' and classes were read off"
    with pytest.warns(PrivacyLeakWarning, match=said):
        model = LumberjackClassifier(noise_seed=0).fit(X, y)
    assert any("not covered by the guarantee" in caveat for caveat in model.ledger_.caveats)
    with pytest.warns(PrivacyLeakWarning, match="^classes were read off"):
        LumberjackClassifier(
            noise_seed=0, bounds={"x": (0, 1)}, categories={"colour": ["red", "green", "blue"]}
        ).fit(X, y)
    wide = np.column_stack([np.arange(500)] * 7)
    said = "^bounds of 'x1', 'x2', 'x3', 'x4', 'x5' and 1 more were read off"
    with pytest.warns(PrivacyLeakWarning, match=said):
        LumberjackClassifier(noise_seed=0, bounds={0: (0, 499)}, classes=np.unique(y)).fit(wide, y)
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
        *(({"epsilon": value}, "epsilon") for value in (0, -1.0, np.nan, np.inf, "1")),
        *(({"delta": value}, "delta") for value in (0, 1.0)),
        ({"max_depth": 0}, "max_depth"),
        ({"n_estimators": 2.5}, "n_estimators"),
        ({"structure_share": 1.0}, "structure_share"),
        ({"leaves": "laplace"}, "leaves"),
        ({"accounting": "loose"}, "accounting"),
        ({"noise_seed": -3}, "a seed must be a non-negative whole number"),
        ({"schema": {}}, "schema"),
        ({"schema": None, "bounds": (1, 0)}, "bounds are reversed, lower=1.0 > upper=0.0"),
        ({"bounds": (0, 1)}, "give either schema or bounds, not both"),
        ({"schema": None, "bounds": [(0, 1), (0, 1)]}, "mapping of name or position"),
        ({"schema": None, "categories": {"taste": ["sweet"]}}, "unknown features ['taste']"),
        ({"schema": None, "categories": [("red",)]}, "categories"),
        ({"schema": None, "classes": ["no"]}, "at least two classes"),
        ({"schema": None, "bounds": {"x": (0,)}}, "bounds of feature 'x' must be two numbers"),
        ({"schema": None, "bounds": {"x": (0, 1)}, "categories": {"x": [1]}}, "both bounds and"),
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
        (lambda X, y: (X, np.where(y == "no", "never", y)), "not among the classes"),
        (lambda X, y: (X[["x"]], y), "missing columns ['colour']"),
        (lambda X, y: (X.iloc[:0], y[:0]), "0 sample(s)"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of rows: 50 and 49"),
    ],
)
def test_bad_tables_are_refused_and_leave_nothing_behind(spoil, message):
    model = forest()
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared below
        model.fit(*spoil(*table(50)))
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not [name for name in vars(model) if name.endswith("_")]


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
