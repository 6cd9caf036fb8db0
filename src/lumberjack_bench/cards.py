"""The privacy cards of all methods as a table that a person can read."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lumberjack_bench.methods import build_method

if TYPE_CHECKING:
    from lumberjack.accounting.guarantee import PrivacyCard

WIDTH = 110
HEADER = ("method", "mode", "claimed", "neighbours", "status", "source")


def card_of(config: Mapping[str, Any], *, eps: float, delta: float, **options: Any) -> PrivacyCard:
    """Return the card of a method as one would release it, without fitting anything.

    Parameters
    ----------
    config : mapping
        The ``method`` part of a configuration.
    eps, delta : float
        Privacy parameters asked for.
    **options
        Further arguments of :func:`lumberjack_bench.methods.build_method`.
    """
    from lumberjack.schema import CategoricalFeature, FeatureSchema, NumericFeature

    features = (NumericFeature("number", 0.0, 1.0), CategoricalFeature("category", (0, 1, 2)))
    is_private = config["is_private"]
    method = build_method(
        config,
        schema=FeatureSchema(features, (0, 1)),
        epsilon=eps if is_private else math.inf,
        delta=delta if is_private else 0.0,
        **options,
    )
    card: PrivacyCard = method.privacy_card()
    return card


def cards_text(cards: Iterable[tuple[str, PrivacyCard]]) -> str:
    """Return cards as text: a table, then what is known against each method.

    Each card comes with the name of its method in a configuration.
    """
    cards = list(cards)
    rows = [HEADER, *(_row(name, card) for name, card in cards)]
    fixed = [max(len(row[j]) for row in rows) for j in range(len(HEADER) - 1)]
    room = max(40, WIDTH - sum(fixed) - 2 * len(fixed))
    lines: list[str] = []
    for row in rows:
        wrapped = textwrap.wrap(row[-1], room) or [""]
        start = "  ".join(cell.ljust(width) for cell, width in zip(row, fixed, strict=False))
        lines.append(f"{start}  {wrapped[0]}")
        lines += [" " * (len(start) + 2) + rest for rest in wrapped[1:]]
    lines.insert(1, "-" * WIDTH)
    for name, card in cards:
        lines += ["", f"{name}: {card.method}"]
        lines += _listed("taken to be public", card.public_inputs)
        lines += _listed("known against it", card.concerns) if card.concerns else []
    return "\n".join(line.rstrip() for line in lines)


def _row(name: str, card: PrivacyCard) -> Sequence[str]:
    claimed = card.claimed
    if claimed is None or math.isinf(claimed.epsilon):
        return name, card.mode, "none", "-", card.status, card.source
    claim = f"({claimed.epsilon:g}, {claimed.delta:g})-DP"
    return name, card.mode, claim, claimed.relation.value, card.status, card.source


def _listed(title: str, entries: Sequence[str]) -> list[str]:
    lines = [f"  {title}:"]
    for entry in entries:
        lines += textwrap.wrap(entry, WIDTH, initial_indent="    - ", subsequent_indent="      ")
    return lines
