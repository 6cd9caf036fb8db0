"""Check what the README promises of its main job: 10 runs, a table, and MLflow that agrees."""

import sys
from pathlib import Path

import pandas as pd
from mlflow.tracking import MlflowClient

EXPECTED_LUMBERJACK = {0.5: 0.826, 1.0: 0.8325, 2.0: 0.838, 4.0: 0.8415, 8.0: 0.8465}
TOLERANCE = 0.004
EXPECTED_NODES = {0.5: 565, 1.0: 1110, 2.0: 2170, 4.0: 4260, 8.0: 7910}
NODE_TOLERANCE = 0.1


def main(results: Path) -> None:
    """Compare results.csv with the promise and with the tracking database."""
    table = pd.read_csv(results / "results.csv")
    nodes = table[(table.metric == "mean_nodes_per_tree") & (table.method == "lumberjack")]
    nodes = nodes.groupby("eps").value.mean()
    for eps, expected in EXPECTED_NODES.items():
        if abs(nodes[eps] / expected - 1) > NODE_TOLERANCE:
            sys.exit(
                f"lumberjack at eps={eps}: {nodes[eps]:.0f} nodes a tree, expected {expected}."
            )
    table = table[table.metric == "accuracy"]
    means = table.groupby(["method", "eps"]).value.agg(["mean", "size"])
    if len(means) != 10 or not (means["size"] == 5).all() or not (table.status == "ok").all():
        sys.exit(f"expected 10 runs of 5 repetitions, all ok, got\n{means}")
    for eps, expected in EXPECTED_LUMBERJACK.items():
        accuracy = means.loc[("lumberjack", eps), "mean"]
        if abs(accuracy - expected) > TOLERANCE:
            sys.exit(f"lumberjack at eps={eps}: accuracy {accuracy:.4f}, expected {expected}.")
    client = MlflowClient(f"sqlite:///{results / 'mlflow.db'}")
    experiments = [e.experiment_id for e in client.search_experiments()]
    runs = [r for r in client.search_runs(experiments) if "run_hash" in r.data.tags]
    tracked = {r.data.tags["run_hash"]: r for r in runs}
    if len(runs) != 10 or len(tracked) != 10:
        sys.exit(f"expected 10 tracked runs, got {len(runs)}.")
    for run_hash, group in table.groupby("run_hash"):
        run = tracked[run_hash]
        if (
            run.info.status != "FINISHED"
            or abs(run.data.metrics["accuracy"] - group.value.mean()) > 1e-9
        ):
            sys.exit(f"MLflow disagrees with the table on run {run_hash}: {run.info.status}.")
    print("10 runs ok, table and MLflow agree:")
    print(means["mean"].unstack("eps").round(4).to_string())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
