"""Fingerprints of what every method predicts with fixed seeds, to show that a change moves nothing.

Before the change ``python scripts/seeded_predictions.py > before.txt``, after it
``python scripts/seeded_predictions.py | diff before.txt -``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import warnings
from typing import Any

import numpy as np

from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature

ROWS, QUERIES = 3000, 500

ABLATED = "lumberjack_bench.ablation.AblatedLumberjackClassifier"

# What a setting is called stays when a parameter is renamed, so that fingerprints can be compared.
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "lumberjack, paper": ("lumberjack.LumberjackClassifier", {"accounting": "paper"}),
    "lumberjack, safe": ("lumberjack.LumberjackClassifier", {"accounting": "safe"}),
    "lumberjack, tight": ("lumberjack.LumberjackClassifier", {"accounting": "tight"}),
    "lumberjack, paper, counts": (
        "lumberjack.LumberjackClassifier",
        {"accounting": "paper", "leaves": "noisy_counts"},
    ),
    "lumberjack, safe, counts": (
        "lumberjack.LumberjackClassifier",
        {"accounting": "safe", "leaves": "noisy_counts"},
    ),
    "lumberjack, tight, counts": (
        "lumberjack.LumberjackClassifier",
        {"accounting": "tight", "leaves": "noisy_counts", "structure_share": 0.6},
    ),
    "guided, safe": ("lumberjack.GuidedLumberjackClassifier", {"accounting": "safe"}),
    "guided, tight": ("lumberjack.GuidedLumberjackClassifier", {"accounting": "tight"}),
    "guided, separate": (ABLATED, {"accounting": "separate"}),
    "guided, separate, vote, unstacked": (
        ABLATED,
        {
            "accounting": "separate",
            "vote": "hard",
            "is_stacked": False,
            "budget": {"structure": 0.57, "guide": 0.10, "leaves": 0.33},
        },
    ),
    "guided, safe, vote": (
        ABLATED,
        {"accounting": "safe", "vote": "hard"},
    ),
    "guided, safe, uniform splits": (
        ABLATED,
        {"accounting": "safe", "is_guided": False, "drop_first_category": True},
    ),
    "guided, safe, uniform splits, unstacked": (
        ABLATED,
        {
            "accounting": "safe",
            "is_guided": False,
            "is_stacked": False,
            "vote": "hard",
            "budget": {"structure": 0.75, "leaves": 0.25},
        },
    ),
    "additive forest": ("lumberjack.AdditiveForestClassifier", {}),
    "snr, paper": ("baselines.snr.SnrClassifier", {"mode": "paper"}),
    "snr, corrected": ("baselines.snr.SnrClassifier", {"mode": "corrected"}),
    "smooth sensitivity, paper": (
        "baselines.smooth_sensitivity.SmoothSensitivityClassifier",
        {"mode": "paper"},
    ),
    "smooth sensitivity, corrected": (
        "baselines.smooth_sensitivity.SmoothSensitivityClassifier",
        {"mode": "corrected"},
    ),
    "suihkonen, paper": ("baselines.suihkonen.SuihkonenClassifier", {"mode": "paper"}),
    "suihkonen, paper, subsets": (
        "baselines.suihkonen.SuihkonenClassifier",
        {"mode": "paper", "category_sets": "sampled_subsets"},
    ),
    "suihkonen, corrected": ("baselines.suihkonen.SuihkonenClassifier", {"mode": "corrected"}),
    "diffprivlib, library": (
        "baselines.diffprivlib.DiffPrivLibClassifier",
        {"engine": "library", "max_depth": 6},
    ),
    "diffprivlib, fast": (
        "baselines.diffprivlib.DiffPrivLibClassifier",
        {"engine": "fast", "max_depth": 6},
    ),
    "extra trees": ("baselines.extra_trees.ExtraTreesReference", {}),
    "decision tree": ("baselines.decision_tree.DecisionTreeReference", {}),
    "fully random": ("baselines.fully_random.FullyRandomClassifier", {}),
    "dp logistic regression": ("baselines.dp_logistic_regression.DPLogisticRegression", {}),
    "dp naive bayes": ("baselines.dp_naive_bayes.DPNaiveBayes", {}),
    "dp boosted random trees": ("baselines.dp_boosted_random_trees.DPBoostedRandomTrees", {}),
    "adassp": ("baselines.adassp.AdaSSPClassifier", {}),
    "adassp, boosted": ("baselines.adassp.AdaSSPClassifier", {"n_rounds": 5}),
    "majority": ("baselines.majority.MajorityClassifier", {}),
}


def make_table(n_classes: int, n_numbers: int, sizes: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return a schema, coded rows and class codes that go with the first columns."""
    generator = np.random.default_rng(0)
    features = [NumericFeature(f"x{j}", -1.0, 3.0) for j in range(n_numbers)]
    features += [
        CategoricalFeature(f"c{j}", tuple(f"v{i}" for i in range(size)))
        for j, size in enumerate(sizes)
    ]
    schema = FeatureSchema(tuple(features), tuple(range(n_classes))).coded()
    n_rows = ROWS + QUERIES
    columns = [generator.uniform(-1, 3, n_rows) for _ in range(n_numbers)]
    columns += [generator.integers(size, size=n_rows).astype(float) for size in sizes]
    X = np.asfortranarray(np.column_stack(columns))
    score = X[:, 0] + 0.5 * (X[:, -1] > 1) + generator.normal(scale=0.5, size=n_rows)
    y = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    return schema, X, y.astype(np.int64)


TABLES = {
    "2 classes": make_table(2, 4, (2, 7)),
    "3 classes": make_table(3, 2, (12, 3, 4)),
}


def fingerprint(target: str, params: dict[str, Any], schema: Any, X: Any, y: Any) -> str:
    """Return the first digits of a hash of the predictions of a fit with fixed seeds."""
    module, _, name = target.rpartition(".")
    method = getattr(importlib.import_module(module), name)(
        schema=schema, epsilon=2.0, delta=1e-6, random_state=2, noise_seed=1, n_jobs=1, **params
    )
    method.fit(X[:ROWS], y[:ROWS])
    predict = getattr(method, "predict_proba", method.predict)
    return hashlib.sha256(np.ascontiguousarray(predict(X[ROWS:])).tobytes()).hexdigest()[:16]


def main() -> None:
    """Print a line for each setting and table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="settings whose name contains this")
    only = parser.parse_args().only
    warnings.simplefilter("ignore")
    for setting, (target, params) in SETTINGS.items():
        if only in setting:
            for table, content in TABLES.items():
                print(f"{fingerprint(target, params, *content)}  {setting}; {table}", flush=True)


if __name__ == "__main__":
    main()
