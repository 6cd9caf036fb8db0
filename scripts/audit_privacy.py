"""Test a method's privacy claim by attack, in layers, and say what each could see.

A method that tells what it released (``_fit_transcript``, as the library's forests do) is attacked in
five layers: its components, its groups of releases, whole fits by their likelihood ratio, one fit with canaries,
and the reading of odd records. Any other is attacked by what its models show: ``get_released()`` if it has
that, else its predictions. For each attempt the command prints what was found, the limit that infinitely many runs
would reach, and a verdict: refuted, consistent and how close, or that the audit could not have seen it.

A method with a transcript is fitted with four trees, others with one, as more trees only hide what each tells
(``--as-configured`` keeps them), and at delta = 0.05 unless ``delta=`` says otherwise: at 1e-6 no number
of runs that one can afford shows anything.

Examples
--------
::

    python scripts/audit_privacy.py method=guided_lumberjack eps=1 --jobs 2
    python scripts/audit_privacy.py method=lumberjack method.params.accounting=tight eps=1 --layer claim
    python scripts/audit_privacy.py method=smooth_sensitivity,snr eps=1 --out audit
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from lumberjack_bench.audit.attack import audit_predictions
from lumberjack_bench.audit.canaries import audit_canaries
from lumberjack_bench.audit.claim import audit_claim
from lumberjack_bench.audit.components import audit_components
from lumberjack_bench.audit.findings import UNSEEN, Finding, Subject
from lumberjack_bench.audit.groups import audit_groups
from lumberjack_bench.audit.neighbours import PAIRS
from lumberjack_bench.audit.reading_pairs import audit_reading
from lumberjack_bench.audit.table import write_table
from lumberjack_bench.command import check_writable, compose_one, fails_in_one_line
from lumberjack_bench.config import ConfigError, read_settings

CONF_DIR = Path(__file__).resolve().parents[1] / "conf"

OF_TRANSCRIPTS = ("components", "groups", "claim", "canaries", "reading")
OF_MODELS = ("predictions", "reading")
LAYERS = tuple(dict.fromkeys(OF_TRANSCRIPTS + OF_MODELS))

N_TREES = 4
DELTA = "delta=0.05"
CLAIM_RUNS, GROUP_RUNS, PREDICTION_RUNS = 9000, 1000, 3000


@fails_in_one_line
def main(arguments: Sequence[str]) -> int:
    """Audit the methods asked for by overrides as for ``run.py``; return 0 whatever is found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="method=..., eps=...")
    parser.add_argument(
        "--layer", action="append", choices=LAYERS, help="only this one; may repeat"
    )
    parser.add_argument(
        "--runs",
        type=int,
        metavar="N",
        help=f"fits on each table; {CLAIM_RUNS} with a transcript (a fifth for the groups, at most {GROUP_RUNS}), "
        f"else {PREDICTION_RUNS}",
    )
    parser.add_argument("--confidence", type=float, default=0.95, metavar="P")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--as-configured", action="store_true", help="keep the number of trees")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write METHOD.json there, and audit.md of all in it"
    )
    given = parser.parse_intermixed_args(arguments)
    if given.runs is not None and given.runs < 30:
        raise ConfigError(f"--runs must be at least 30, got {given.runs}.")
    if not 0.0 < given.confidence < 1.0:
        raise ConfigError(f"--confidence must lie between 0 and 1, got {given.confidence}.")
    if given.seed < 0:
        raise ConfigError(f"--seed must be a non-negative whole number, got {given.seed}.")
    if given.jobs < -1 or given.jobs == 0:
        raise ConfigError(f"--jobs must be positive, or -1 for one per core, got {given.jobs}.")
    if given.out:
        check_writable("--out", given.out / "audit.md")
    names = [text.partition("=")[2] for text in given.overrides if text.startswith("method=")]
    others = [text for text in given.overrides if not text.startswith("method=")]
    for name in names[-1].split(",") if names else [None]:
        _audit_one([] if name is None else [f"method={name}"], others, given)
    if given.out:
        write_table(given.out)
        print(f"written: {given.out / 'audit.md'}")
    return 0


def _audit_one(method: list[str], others: list[str], given: argparse.Namespace) -> None:
    """Audit one method, print what is found and write it down if asked."""
    subject, model = _read_subject([*method, *others], given)
    card = model.privacy_card()
    claimed = card.claimed
    label = subject.config["label"]
    print(f"{label} ({card.mode}) claims {claimed}; its card says: {card.status}.", flush=True)
    possible = OF_TRANSCRIPTS if subject.has_transcript else OF_MODELS
    findings: list[Finding] = []
    for layer in given.layer or possible:
        if layer not in possible:
            print(
                f"  {layer}: not tried, as {label} has {'a' if subject.has_transcript else 'no'} transcript"
            )
            continue
        found = _run_layer(layer, subject, given)
        findings.extend(found)
        for finding in found:
            print(f"  {layer}: {finding}", flush=True)
    refuted = [finding for finding in findings if finding.is_refuted]
    attempts = [finding for finding in findings if finding.layer != "reading"]
    if refuted:
        print(f"REFUTED by {', '.join(dict.fromkeys(one.layer for one in refuted))}.")
    elif attempts and all(finding.verdict == UNSEEN for finding in attempts):
        print("Not refuted, and that says nothing: no attempt could have seen a breach.")
    else:
        print(f"Not refuted: nothing exceeds the claimed {claimed.epsilon:g}.")
    if given.out:
        document = {
            "method": subject.config["name"],
            "label": label,
            "params": dict(subject.config["params"]),
            "mode": card.mode,
            "card": card.status,
            "eps": claimed.epsilon,
            "delta": claimed.delta,
            "confidence": given.confidence,
            "seed": given.seed,
            "is_refuted": bool(refuted),
            "findings": [finding.to_dict() for finding in findings],
        }
        name = f"{subject.config['name']}_{card.mode}_eps{claimed.epsilon:g}.json"
        (given.out / name).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _read_subject(overrides: list[str], given: argparse.Namespace) -> tuple[Subject, Any]:
    """Return what is audited and a fitted model of it, which shows that it takes its parameters."""
    composed = compose_one([DELTA, *overrides, "sweep_id=audit"], CONF_DIR)
    read_settings(composed)
    config: Any = OmegaConf.to_container(composed.method, resolve=True)
    if not config["is_private"]:
        raise ConfigError(f"method {config['name']} claims no privacy; there is nothing to audit.")
    subject = Subject(
        config,
        float(composed.eps),
        float(composed.delta),
        given.seed,
        given.jobs,
        tuple(composed.allow_targets),
    )
    try:
        if not given.as_configured:
            has_transcript = subject.has_transcript
            subject = subject.with_params(n_estimators=N_TREES if has_transcript else 1)
            if not has_transcript and "n_estimators" not in config["params"]:
                print(
                    f"{config['name']} has no parameter n_estimators, so it is fitted as configured. "
                    "A forest hides more the more trees it has: call their number so."
                )
        model = subject.build()
        subject = subject._replace(delta=model.privacy_card().claimed.delta)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(PAIRS[0].X, PAIRS[0].y)
    except ValueError as error:
        raise ConfigError(f"method {config['name']}: {error}") from error
    return subject, model


def _run_layer(layer: str, subject: Subject, given: argparse.Namespace) -> list[Finding]:
    confidence = given.confidence
    if layer == "components":
        return audit_components(subject)
    if layer == "groups":
        n_runs = max((given.runs or CLAIM_RUNS) // 5, 30)
        return audit_groups(subject, n_runs=min(n_runs, GROUP_RUNS))
    if layer == "claim":
        return audit_claim(subject, n_runs=given.runs or CLAIM_RUNS, confidence=confidence)
    if layer == "canaries":
        return audit_canaries(subject, confidence=confidence)
    if layer == "predictions":
        return audit_predictions(
            subject, n_runs=given.runs or PREDICTION_RUNS, confidence=confidence
        )
    return audit_reading(subject)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
