"""One table of all audits in a folder: claim, bound, limit, runs, verdict and pair of each method."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_COLUMNS = ("method", "card", "claim", "bound", "limit", "runs", "verdict", "by")


def write_table(folder: Path) -> None:
    """Write ``audit.md`` from the audits in a folder.

    Parameters
    ----------
    folder : Path
        Holds files as ``scripts/audit_privacy.py --out`` writes them.
    """
    audits = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))
    ]
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    lines += [f"| {' | '.join(_row(audit))} |" for audit in audits]
    (folder / "audit.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _row(audit: Mapping[str, Any]) -> list[str]:
    """Return a method's row: its largest bound, or what else has refuted it."""
    findings: Sequence[Mapping[str, Any]] = audit["findings"]
    bounds = [one for one in findings if one["unit"] == "epsilon >=" and one["layer"] != "canaries"]
    refuted = [one for one in findings if one["is_refuted"]]
    cells = [
        f"{audit['label']} ({audit['mode']})",
        audit["card"],
        f"({audit['eps']:g}, {audit['delta']:g})",
    ]
    best = max(bounds, key=lambda one: float(one["measured"]), default=None)
    if best is not None and (best["is_refuted"] or not refuted):
        bound = float(best["measured"])
        limit = "" if best["limit"] is None else f"{float(best['limit']):.2f}"
        shown = f"{bound:.2f}" if bound else "none"
        return [*cells, shown, limit, f"{best['n_runs']:,}", best["verdict"], best["tried"]]
    if refuted:
        return [*cells, "", "", "", "refuted", f"{refuted[0]['layer']}: {refuted[0]['tried']}"]
    return [*cells, "", "", "", "not tried", ""]
