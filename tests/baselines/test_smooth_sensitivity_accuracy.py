"""Smooth Sensitivity against accuracies of the authors' program, in the mean over 10 splits.

Reference values: the original program with 30 trees on 90 % of the rows, one split on Adult
(two with 10 trees: 0.822) and two on ACSIncome, whose own spread is about 0.01 between splits.
"""

from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from baselines.smooth_sensitivity import SmoothSensitivityClassifier
from lumberjack_bench import datasets
from lumberjack_bench.datasets.named import named_config

DEVELOPMENT_TABLES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "acs"


def load(name, **changes):
    return datasets.load({**named_config(name), **changes})


def mean_accuracy(dataset, epsilon, **parameters):
    X, _ = dataset.encoded()
    accuracies = []
    for seed in range(10):
        train, test = train_test_split(
            np.arange(len(X)), test_size=0.1, stratify=dataset.y, random_state=seed
        )
        model = SmoothSensitivityClassifier(
            schema=dataset.schema.coded(),
            epsilon=epsilon,
            random_state=seed,
            noise_seed=seed,
            **parameters,
        )
        model.fit(X[train], dataset.y[train])
        accuracies.append(model.score(X[test], dataset.y[test]))
    return np.mean(accuracies)


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("mode", ["paper", "corrected"])
def test_accuracy_on_adult_is_that_of_the_authors_program(mode):
    adult = load("adult")
    assert mean_accuracy(adult, 1.0, mode=mode) == pytest.approx(0.821, abs=0.01)


@pytest.mark.slow
@pytest.mark.skipif(
    not DEVELOPMENT_TABLES.is_dir(), reason="needs the development tables in ../shared/data/acs"
)
@pytest.mark.parametrize("domains", ["schema", "training"])
def test_accuracy_on_acs_income_is_that_of_the_authors_program(domains, tmp_path):
    table = load("acs_income", stand_in_dir=str(DEVELOPMENT_TABLES), data_dir=str(tmp_path))
    for epsilon, expected in [(0.5, 0.754), (1.0, 0.760), (8.0, 0.762)]:
        assert mean_accuracy(table, epsilon, domains=domains) == pytest.approx(expected, abs=0.01)
