"""Test a method's privacy claim by attack: fit it often on neighbouring tables, tell them apart.

Prints a lower bound on epsilon for each of a few pairs of tables that differ by one record. All
bounds together hold with the confidence asked for, so one above the claimed epsilon refutes the claim; none
above it refutes nothing. A forest is fitted with one tree, as more trees only hide
what each tells (``--as-configured`` keeps them).

Examples
--------
::

    python scripts/audit_privacy.py method=smooth_sensitivity eps=1
    python scripts/audit_privacy.py method=lumberjack eps=1 --runs 6000 --jobs 2
    python scripts/audit_privacy.py method=snr eps=0.5 method.params.size_share=0.5 --json snr.json
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from lumberjack_bench.audit.attack import audit
from lumberjack_bench.audit.neighbours import PAIRS, SCHEMA
from lumberjack_bench.command import check_writable, compose_one, fails_in_one_line
from lumberjack_bench.config import ConfigError, read_settings
from lumberjack_bench.methods import build_method

CONF_DIR = Path(__file__).resolve().parents[1] / "conf"


@fails_in_one_line
def main(arguments: Sequence[str]) -> int:
    """Audit the method asked for by overrides as for ``run.py``; return 0 whatever is found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="method=..., eps=...")
    parser.add_argument("--runs", type=int, default=3000, metavar="N", help="fits on each table")
    parser.add_argument("--confidence", type=float, default=0.95, metavar="P")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--as-configured", action="store_true", help="keep the number of trees")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the findings there")
    given = parser.parse_intermixed_args(arguments)
    if given.runs < 30:
        raise ConfigError(f"--runs must be at least 30, got {given.runs}.")
    if not 0.0 < given.confidence < 1.0:
        raise ConfigError(f"--confidence must lie between 0 and 1, got {given.confidence}.")
    if given.seed < 0:
        raise ConfigError(f"--seed must be a non-negative whole number, got {given.seed}.")
    if given.jobs < -1 or given.jobs == 0:
        raise ConfigError(f"--jobs must be positive, or -1 for one per core, got {given.jobs}.")
    check_writable("--json", given.json)
    composed = compose_one([*given.overrides, "sweep_id=audit"], CONF_DIR)
    read_settings(composed)
    method: Any = OmegaConf.to_container(composed.method, resolve=True)
    epsilon, delta = float(composed.eps), float(composed.delta)
    if not method["is_private"]:
        raise ConfigError(f"method {method['name']} claims no privacy; there is nothing to audit.")
    if "n_estimators" in method["params"] and not given.as_configured:
        method["params"]["n_estimators"] = 1
    allowed = list(composed.allow_targets)
    try:
        # A first fit shows whether the method takes its parameters.
        model = build_method(
            method, schema=SCHEMA, epsilon=epsilon, delta=delta, allow_targets=allowed
        )
        card = model.privacy_card()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(*PAIRS[0].rows(has_record=True, generator=np.random.default_rng(given.seed)))
    except ValueError as error:
        raise ConfigError(f"method {method['name']}: {error}") from error
    claimed = card.claimed
    print(f"{method['label']} ({card.mode}) claims {claimed}; its card says: {card.status}.")
    print(
        f"{given.runs} fits on each table, all bounds hold with {given.confidence:.0%} confidence."
    )
    findings = []
    for pair in PAIRS:
        bound = audit(
            method,
            pair,
            epsilon=epsilon,
            delta=claimed.delta,
            n_runs=given.runs,
            confidence=1.0 - (1.0 - given.confidence) / len(PAIRS),
            seed=given.seed,
            n_jobs=given.jobs,
            allow_targets=allowed,
        )
        findings.append(
            {"pair": pair.name, "epsilon": bound.epsilon, "more": bound.more, "less": bound.less}
        )
        seen = f"an event in {bound.more:.1%} of runs on one table, {bound.less:.1%} on the other"
        if not bound.epsilon:
            seen = "no event told the tables apart"
        print(f"  {pair.name:38} epsilon >= {bound.epsilon:5.2f}   ({seen})", flush=True)
    largest = max(finding["epsilon"] for finding in findings)
    is_refuted = largest > claimed.epsilon
    if is_refuted:
        print(f"REFUTED: epsilon is at least {largest:.2f}, {claimed.epsilon:g} was claimed.")
    else:
        print(f"Not refuted: no bound exceeds the claimed {claimed.epsilon:g}.")
    if given.json:
        document = {
            "method": method["name"],
            "params": method["params"],
            "mode": card.mode,
            "card": card.status,
            "eps": claimed.epsilon,
            "delta": claimed.delta,
            "runs": given.runs,
            "confidence": given.confidence,
            "seed": given.seed,
            "is_refuted": is_refuted,
            "findings": findings,
        }
        given.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
