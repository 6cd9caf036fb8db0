"""What is measured of each repetition: one table of metrics, and how each follows from predictions.

Metrics of labels need what a method predicts; those of probabilities are missing where it gives
none. A numeric target has metrics of its own. scikit-learn computes what it has.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_PROBABILITY = 1e-6
"""Where probabilities are clipped for the log loss, so that one sure mistake costs 13.8."""

N_BINS = 15
"""Of the calibration error."""

QUANTILE = 0.9
"""Of the pinball loss: a unit too little costs this much, a unit too much what is left to 1."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What is known of a metric, whatever the method."""

    name: str
    title: str
    """For a person, within a sentence."""
    is_larger_better: bool = True
    least: float = -math.inf
    largest: float = math.inf
    """What a value can be."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest value."""
        return self.least, self.largest

    @property
    def sign(self) -> int:
        """What makes larger better when values are multiplied by it."""
        return 1 if self.is_larger_better else -1

    @property
    def heading(self) -> str:
        """Its title, as a heading begins."""
        return self.title[0].upper() + self.title[1:]

    @property
    def axis_title(self) -> str:
        """Its title; with what is better, where that is not the larger value."""
        return self.title if self.is_larger_better else f"{self.title} (less is better)"

    @property
    def interval_name(self) -> str:
        """How intervals of its mean are made."""
        if math.isinf(self.largest - self.least):
            return "95 % interval: Student's t"
        return (
            "95 % interval: Student's t on the log-odds scale, which stays within "
            f"[{self.least:g}, {self.largest:g}]"
        )


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "accuracy", True, 0, 1),
        Metric("balanced_accuracy", "balanced accuracy", True, 0, 1),
        Metric("roc_auc", "ROC AUC", True, 0, 1),
        Metric("log_loss", "log loss", False, 0),
        Metric("brier_score", "Brier score", False, 0, 1),
        Metric("calibration_error", "expected calibration error", False, 0, 1),
        Metric("rmse", "root mean squared error", False, 0),
        Metric("mae", "mean absolute error", False, 0),
        Metric("r2", "R²", True, largest=1),
        Metric("pinball_loss", f"pinball loss at {QUANTILE}", False, 0),
        Metric("fit_seconds", "seconds to fit", False, 0),
        Metric("predict_seconds", "seconds to predict", False, 0),
        Metric("tune_seconds", "seconds to tune", False, 0),
        Metric("peak_memory_mb", "peak memory of the fit in MB", False, 0),
    )
}
"""What the harness measures, where it can be had."""

MAIN_METRICS = ("accuracy", "rmse")
"""One of them is in every result: the first where labels are classes, the second where they are numbers."""


def metric_of(name: str) -> Metric:
    """Return what is known of a metric; one that a method reports itself may be any number."""
    return METRICS.get(name) or Metric(name, name.replace("_", " "))


def main_metric(measured: Container[str]) -> str:
    """Return which of :data:`MAIN_METRICS` is measured."""
    classes, numbers = MAIN_METRICS
    return classes if classes in measured else numbers


def regression_metrics(
    target: NDArray[np.float64], predicted: NDArray[np.float64]
) -> dict[str, float]:
    """Measure predicted numbers; R² is missing where all of `target` are equal.

    The pinball loss takes predictions for the quantile :data:`QUANTILE`. No method here aims at it: it tells
    how they err where too little is dearer than too much.

    Parameters
    ----------
    target, predicted : ndarray of shape (n_rows,)
        In the unit of the target.
    """
    from sklearn.metrics import (
        mean_absolute_error,
        mean_pinball_loss,
        r2_score,
        root_mean_squared_error,
    )

    measured = {
        "rmse": float(root_mean_squared_error(target, predicted)),
        "mae": float(mean_absolute_error(target, predicted)),
        "pinball_loss": float(mean_pinball_loss(target, predicted, alpha=QUANTILE)),
    }
    if np.ptp(target) > 0:
        measured["r2"] = float(r2_score(target, predicted))
    return measured


def label_metrics(labels: NDArray[np.int64], predicted: NDArray[np.int64]) -> dict[str, float]:
    """Measure predicted labels; balanced accuracy is the mean recall of the classes in `labels`.

    Parameters
    ----------
    labels, predicted : ndarray of shape (n_rows,)
        Class codes.
    """
    from sklearn.metrics import accuracy_score, recall_score

    present = np.unique(labels)
    recall = recall_score(labels, predicted, labels=present, average="macro", zero_division=0)
    return {
        "accuracy": float(accuracy_score(labels, predicted)),
        "balanced_accuracy": float(recall),
    }


def probability_metrics(
    labels: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> dict[str, float]:
    """Measure predicted probabilities.

    The ROC AUC is the mean, one class against the rest, over the classes in `labels`, and missing
    where these are all of one class. The Brier score is half the squared distance from the indicator of
    the label, so that two classes have the usual one and all tables the range [0, 1].

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        Class codes.
    probabilities : ndarray of shape (n_rows, n_classes)
        Rows add up to 1.
    """
    from sklearn.metrics import log_loss, mean_squared_error, roc_auc_score

    classes = np.arange(probabilities.shape[1])
    is_label = labels[:, None] == classes
    clipped = np.clip(probabilities, LEAST_PROBABILITY, 1)
    clipped /= clipped.sum(axis=1, keepdims=True)
    squares = mean_squared_error(is_label, probabilities) * len(classes)
    measured = {
        "log_loss": float(log_loss(labels, clipped, labels=classes)),
        "brier_score": float(squares) / 2,
        "calibration_error": calibration_error(labels, probabilities),
    }
    present = np.unique(labels)
    if len(present) > 1:
        # With two classes both give the same, but for rounding.
        chosen = classes[1:] if len(classes) == 2 else present
        measured["roc_auc"] = fmean(
            float(roc_auc_score(is_label[:, k], probabilities[:, k])) for k in chosen
        )
    return measured


def calibration_error(labels: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """Return the expected calibration error of the likeliest class.

    The mean over rows of the distance between confidence (the largest probability) and accuracy in the
    row's bin (Guo et al. 2017, but with bins of equal mass). Equal confidences share a bin.
    """
    confidence = probabilities.max(axis=1)
    is_right = probabilities.argmax(axis=1) == labels
    # As scikit-learn's calibration_curve sorts into quantiles; it does not return the bins' sizes.
    edges = np.quantile(confidence, np.linspace(0, 1, N_BINS + 1))
    bins = np.searchsorted(edges[1:-1], confidence)
    return float(np.abs(np.bincount(bins, confidence - is_right)).sum() / len(labels))
