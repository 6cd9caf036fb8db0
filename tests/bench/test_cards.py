from __future__ import annotations

import math

from lumberjack.accounting.guarantee import Guarantee, PrivacyCard
from lumberjack_bench.cards import card_of, cards_text


def test_cards_are_a_table_with_what_is_known_against_each_method_below() -> None:
    claims = PrivacyCard(
        "Forest",
        "paper",
        Guarantee(1.0, 1e-6),
        "Theorem 1",
        "doubted",
        ("reads bounds from the rows",),
        ("schema",),
    )
    claims_nothing = PrivacyCard(
        "Trees", "paper", Guarantee(math.inf, 0.0), "no claim", "not private"
    )
    text = cards_text([("forest", claims), ("trees", claims_nothing)])
    lines = text.splitlines()
    assert lines[0].split() == ["method", "mode", "claimed", "neighbours", "status", "source"]
    assert lines[2].split("  ")[0] == "forest"
    assert "(1, 1e-06)-DP" in lines[2]
    assert "doubted" in lines[2]
    assert "none" in lines[3]
    assert "forest: Forest\n  taken to be public:\n    - schema\n" in text
    assert "  known against it:\n    - reads bounds from the rows" in text
    assert all(len(line) <= 110 for line in lines)


def test_a_card_is_had_without_fitting_anything() -> None:
    config = {
        "name": "majority",
        "target": "baselines.majority.MajorityClassifier",
        "is_private": False,
        "params": {},
    }
    card = card_of(config, eps=1.0, delta=1e-6)
    assert (card.status, card.claimed) == ("not private", None)
