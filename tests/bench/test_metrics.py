from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics
from sklearn.calibration import calibration_curve
from whole_results import whole_result

from lumberjack_bench.config import Settings
from lumberjack_bench.metrics import (
    METRICS,
    label_metrics,
    main_metric,
    metric_of,
    probability_metrics,
    regression_metrics,
)
from lumberjack_bench.results import accuracy_table, shown_metric
from lumberjack_bench.runs.execute import execute
from lumberjack_bench.runs.identity import RunConfig
from lumberjack_bench.runs.store import ResultStore

MakeRun = Callable[..., RunConfig]
LABELS = np.array([1, 1, 1, 0])
OF_NUMBERS = {"rmse", "mae", "r2", "pinball_loss"}


def measured(labels: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return {
            **label_metrics(labels, probabilities.argmax(axis=1)),
            **probability_metrics(labels, probabilities),
        }


def test_a_perfect_predictor_has_the_best_values() -> None:
    # Clipped, the log loss is log(1 + 1e-6).
    found = measured(LABELS, np.eye(2)[LABELS])
    assert found.pop("log_loss") == pytest.approx(1e-6, rel=1e-5)
    best = {"accuracy": 1, "balanced_accuracy": 1, "roc_auc": 1}
    assert found == best | {"brier_score": 0, "calibration_error": 0}


def test_a_constant_predictor_with_the_right_shares_is_calibrated_and_knows_nothing() -> None:
    # Recalls 1 and 0. Log loss: the entropy -0.75 log 0.75 - 0.25 log 0.25 = 0.562335. Brier score:
    # 0.75 * 0.25^2 + 0.25 * 0.75^2 = 0.1875. Confidence 0.75, of which 3 in 4 are right.
    found = measured(LABELS, np.tile([0.25, 0.75], (4, 1)))
    assert found == pytest.approx(
        {
            "accuracy": 0.75,
            "balanced_accuracy": 0.5,
            "roc_auc": 0.5,
            "log_loss": 0.562335,
            "brier_score": 0.1875,
            "calibration_error": 0.0,
        },
        abs=1e-6,
    )


def test_a_predictor_that_is_sure_and_always_wrong_has_the_worst_values() -> None:
    # Log loss: -log(1e-6 / (1 + 1e-6)) = 6 log 10 + 1e-6 = 13.815512. Confidence 1, nothing right.
    found = measured(LABELS, np.eye(2)[1 - LABELS])
    assert found.pop("log_loss") == pytest.approx(13.815512, abs=1e-6)
    worst = {"accuracy": 0, "balanced_accuracy": 0, "roc_auc": 0}
    assert found == worst | {"brier_score": 1, "calibration_error": 1}


def test_equal_confidences_share_a_bin_whatever_the_order_of_the_rows() -> None:
    # Confidence 0.9 on 20 rows, half of them right: |0.9 - 0.5| = 0.4. Confidence 0.6 on 20 rows, all
    # right: 0.4. Bins that cut ties by position would see other shares.
    labels = np.array([0] * 10 + [1] * 10 + [0] * 20)
    probabilities = np.array([[0.9, 0.1]] * 20 + [[0.6, 0.4]] * 20)
    assert measured(labels, probabilities)["calibration_error"] == pytest.approx(0.4)


def test_the_auc_leaves_out_classes_without_rows_and_is_missing_for_a_single_class() -> None:
    # Of classes 0 and 1 one pair each: (0.5 > 0.2) and (0.3 > 0.1) rank right, so both have AUC 1.
    probabilities = np.array([[0.5, 0.1, 0.4], [0.2, 0.3, 0.5]])
    assert measured(np.array([0, 1]), probabilities)["roc_auc"] == 1.0
    assert "roc_auc" not in measured(np.array([1, 1]), probabilities)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_stored_predictions_give_the_metrics_of_the_result_and_those_of_scikit_learn(
    store: ResultStore, settings: Settings, make_run: MakeRun, n_classes: int
) -> None:
    generator = np.random.default_rng(0)
    probabilities = generator.dirichlet(np.ones(n_classes), 300)
    labels = np.array([generator.choice(n_classes, p=row) for row in probabilities])
    run = make_run("Toy")
    metrics = measured(labels, probabilities)
    result = whole_result(run) | {"repetitions": [{"repetition": 0, "metrics": metrics}]}
    store.write(run.hash, result, {"labels": labels, "probabilities": probabilities})
    found = store.finished(run.hash)
    assert found is not None
    with np.load(store.folder / found["predictions"]) as stored:
        y, p = stored["labels"], stored["probabilities"]
    predicted, confidence = p.argmax(axis=1), p.max(axis=1)
    # 300 confidences without ties: 15 bins of 20, so that the mean over bins is that over rows.
    shares = calibration_curve(predicted == y, confidence, n_bins=15, strategy="quantile")
    brier = sum(sklearn_metrics.brier_score_loss(y == k, p[:, k]) for k in range(n_classes)) / 2
    scores = p[:, 1] if n_classes == 2 else p
    assert found["repetitions"][0]["metrics"] == pytest.approx(
        {
            "accuracy": sklearn_metrics.accuracy_score(y, predicted),
            "balanced_accuracy": sklearn_metrics.balanced_accuracy_score(y, predicted),
            "roc_auc": sklearn_metrics.roc_auc_score(y, scores, multi_class="ovr"),
            "log_loss": sklearn_metrics.log_loss(y, np.clip(p, 1e-6, 1)),
            "brier_score": brier,
            "calibration_error": np.abs(shares[0] - shares[1]).mean(),
        },
        abs=2e-6,
    )


def test_predictions_are_kept_when_asked_for_and_a_run_without_them_is_done_again(
    store: ResultStore, settings: Settings, make_run: MakeRun
) -> None:
    run = make_run("Toy", n_repeats=2)
    keeping = replace(settings, keeps_predictions=True)
    statuses = [execute(run, how).status for how in (settings, settings, keeping, keeping)]
    assert statuses == ["ok", "done before", "ok", "done before"]
    found = store.finished(run.hash)
    assert found is not None
    path = store.folder / found["predictions"]
    with np.load(path) as stored:
        shapes = {name: stored[name].shape for name in stored}
        assert (stored["labels"] == stored["predicted"]).mean() == 0.55
    rows = (2, 1000)
    assert shapes == {"labels": rows, "predicted": rows, "probabilities": (*rows, 3)}
    # They stay while the result does, and go with it.
    assert execute(run, settings).status == "done before"
    assert path.is_file()
    execute(run, replace(settings, is_forced=True, sweep_id="next"))
    assert not path.exists()


@pytest.mark.parametrize(
    ("toy", "names"),
    [
        ("Voiceless", {"accuracy", "balanced_accuracy"}),
        ("Toy", {*METRICS} - OF_NUMBERS - {"tune_seconds"}),
    ],
)
def test_a_method_without_probabilities_has_the_metrics_of_labels_alone(
    store: ResultStore, settings: Settings, make_run: MakeRun, toy: str, names: set[str]
) -> None:
    run = make_run(toy)
    assert execute(run, replace(settings, keeps_predictions=True)).status == "ok"
    found = store.finished(run.hash)
    assert found is not None
    effort = {"fit_seconds", "predict_seconds", "peak_memory_mb"}
    metrics = found["repetitions"][0]["metrics"]
    assert set(metrics) == names | effort
    # A Python process with numpy takes at least 20 MB, and the toy data no gigabyte.
    assert 20 < metrics["peak_memory_mb"] < 2000
    text = accuracy_table([found], "roc_auc")
    assert ("Results without roc_auc: voiceless (1); they have accuracy" in text) == (
        toy == "Voiceless"
    )


def test_probabilities_that_are_none_of_it_fail_the_run_in_one_line(
    settings: Settings, make_run: MakeRun
) -> None:
    outcome = execute(make_run("Unsure"), settings)
    assert outcome.status == "failed"
    assert "rows of probabilities that add up to 1, or None; got" in outcome.reason


def test_intervals_and_directions_follow_the_metric() -> None:
    assert metric_of("accuracy").interval_name.endswith("stays within [0, 1]")
    assert metric_of("log_loss").interval_name == "95 % interval: Student's t"
    smaller = [name for name, metric in METRICS.items() if metric.sign < 0]
    assert set(smaller) == set([*METRICS][3:]) - {"r2"}
    assert metric_of("mean_nodes").bounds == (-np.inf, np.inf)


# Errors 1, -2, 0, 3 of targets 1, 2, 3, 6: squares 14, absolutes 6; around the mean of 3 the targets have
# squares 4 + 1 + 0 + 9. Too much by 3 costs 0.1 each, too little by 3 costs 0.9 each.
def test_numbers_are_measured_by_hand() -> None:
    target = np.array([1.0, 2.0, 3.0, 6.0])
    found = regression_metrics(target, target - np.array([1.0, -2.0, 0.0, 3.0]))
    assert found == pytest.approx(
        {
            "rmse": (14 / 4) ** 0.5,
            "mae": 6 / 4,
            "r2": 1 - 14 / 14,
            "pinball_loss": (0.9 * (1 + 3) + 0.1 * 2) / 4,
        }
    )
    assert set(regression_metrics(np.ones(3), np.zeros(3))) == {"rmse", "mae", "pinball_loss"}
    assert main_metric(found) == "rmse"
    assert main_metric({"accuracy": 1.0}) == "accuracy"
    assert [METRICS[name].sign for name in ("rmse", "mae", "r2", "pinball_loss")] == [-1, -1, 1, -1]


def test_a_table_of_regressions_shows_their_metric_unless_told_otherwise() -> None:
    results = [{"repetitions": [{"metrics": {"rmse": 1.0, "r2": 0.5}}]}]
    assert shown_metric(results, "accuracy") == "rmse"
    assert shown_metric(results, "r2") == "r2"
    both = [*results, {"repetitions": [{"metrics": {"accuracy": 1.0}}]}]
    assert shown_metric(both, "accuracy") == "accuracy"
