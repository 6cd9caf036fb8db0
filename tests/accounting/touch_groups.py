"""Touches and shares of forests whose accounting is tested in several ways."""

PLAIN = {
    "structure_touches": 210,
    "leaf_touches": 30,
    "structure_share": 0.75,
    "leaf_share": 0.25,
}
GUIDED = {
    "structure_touches": 140,
    "leaf_touches": 20,
    "guide_touches": 14,
    "structure_share": 0.60,
    "guide_share": 0.05,
    "leaf_share": 0.35,
}
STACKED = {
    "structure_touches": 120,
    "leaf_touches": 20,
    "guide_touches": 14,
    "stack_touches": 1,
    "structure_share": 0.45,
    "guide_share": 0.28,
    "leaf_share": 0.22,
    "stack_share": 0.05,
}
