"""The wrapped library: its traps are closed, its leaf law is the published one."""

import warnings

import numpy as np
import pytest
import sklearn

from baselines import diffprivlib as module
from baselines.diffprivlib import DiffPrivLibClassifier
from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature


def two_numbers(n_classes=2):
    return FeatureSchema(
        (NumericFeature("a", 0, 1), NumericFeature("b", 0, 1)), tuple(range(n_classes))
    )


def easy_table(n_rows=2000, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.random((n_rows, 2))
    return X, (X[:, 0] > 0.5).astype(np.int64)


def small(**parameters):
    settings = {
        "schema": two_numbers(),
        "epsilon": 100.0,
        "n_estimators": 5,
        "max_depth": 6,
        "random_state": 0,
        "noise_seed": 0,
    }
    return DiffPrivLibClassifier(**(settings | parameters))


def test_labels_encoded_by_the_schema_score_the_same_whatever_they_were():
    X, y = easy_table()
    scores = []
    for classes in ((0, 1), (1, 2), (-1, 1), ("n", "p"), (False, True), ("p", "n")):
        schema = FeatureSchema(two_numbers().features, classes)
        labels = schema.encode_labels(np.array(classes, dtype=object)[y])
        scores.append(small(schema=schema.coded()).fit(X, labels).score(X, labels))
    assert set(scores) == {scores[0]}
    assert scores[0] > 0.85


def test_sorted_labels_are_as_good_as_shuffled_ones():
    X, y = easy_table()
    order = np.argsort(y, kind="stable")
    in_order = [small(noise_seed=s).fit(X[order], y[order]).score(X, y) for s in range(5)]
    shuffled = [small(noise_seed=s).fit(X, y).score(X, y) for s in range(5)]
    # Without shuffling the library drops from 0.92 to 0.72 here.
    assert abs(np.mean(in_order) - np.mean(shuffled)) < 0.05


def test_a_fit_raises_no_warning_about_leaks():
    X, y = easy_table(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small().fit(X, y)


def test_a_warning_about_leaks_is_an_error(monkeypatch):
    X, y = easy_table(200)
    forest_class, accountant, leak = module.import_library()

    class Forgetful(forest_class):
        def fit(self, X, y):
            self.bounds = None
            return super().fit(X, y)

    monkeypatch.setattr(module, "import_library", lambda: (Forgetful, accountant, leak))
    with pytest.raises(leak, match="Bounds have not been specified"):
        small().fit(X, y)


def test_each_fit_has_an_accountant_of_its_own():
    X, y = easy_table(200)
    first, second = small(epsilon=0.5).fit(X, y), small(epsilon=0.5).fit(X, y)
    assert first.forest_.accountant.total() == (0.5, 0)
    assert second.forest_.accountant.total() == (0.5, 0)


def test_a_forest_larger_than_the_memory_limit_is_refused_with_the_estimate():
    # 20 trees: (2**20 - 1) * (80 * 20 + 450) = 2.15e9 bytes.
    model = small(n_estimators=20, max_depth=19, memory_limit_gb=2.0)
    reason = model.skip(200)
    assert "1048575 nodes each and need about 2.15 GB" in reason
    with pytest.raises(MemoryError, match="2\\.15 GB"):
        model.fit(*easy_table(200))
    assert model.set_params(engine="fast").skip(200) is None


def test_a_scikit_learn_that_is_too_new_is_named(monkeypatch):
    import builtins

    real_import = builtins.__import__

    def without_double(name, *arguments, **keywords):
        if name.startswith("diffprivlib"):
            raise ImportError("cannot import name 'DOUBLE' from 'sklearn.tree._tree'")
        return real_import(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without_double)
    monkeypatch.setattr(sklearn, "__version__", "1.9.0")
    with pytest.raises(
        ImportError, match=r"scikit-learn 1\.9\.0. Install scikit-learn>=1\.5,<1\.9"
    ):
        module.import_library()


def test_an_unseen_category_goes_where_the_first_category_goes():
    generator = np.random.default_rng(1)
    schema = FeatureSchema((CategoricalFeature("c", ("a", "b", "c", "d")),), (0, 1)).coded()
    X = generator.integers(0, 4, (500, 1)).astype(float)
    y = (X[:, 0] >= 2).astype(int)
    model = small(schema=schema).fit(X, y)
    assert model.predict([[-1.0]]) == model.predict([[0.0]])
    assert model.predict([[7.0]]) == model.predict([[0.0]])


def test_the_card_doubts_the_partition():
    card = small().privacy_card()
    assert card.status == "doubted"
    assert any("fixed partition" in concern for concern in card.concerns)
