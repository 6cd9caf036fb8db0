"""How things are spelled: values so that Hydra's grammar gives them back, and names nearly right.

Without Hydra, so that figures may use it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

_PLAIN = re.compile(r"[\w./:@%+*?|-]+( [\w./:@%+*?|-]+)*", re.ASCII)

SYNONYMS = {
    "epsilons": "eps",
    "repetitions": "n_repeats",
    "n_repetitions": "n_repeats",
    "random_state": "seed",
    "jobs": "n_workers",
    "n_jobs": "n_workers",
    "out": "results_dir",
    "output_dir": "results_dir",
}
"""What others call our settings, where a similar spelling does not tell."""


def quoted(text: str) -> str:
    """Put a text in double quotes; backslashes are doubled in front of a quote only, as Hydra has it."""
    inner = re.sub(r'(\\*)("|\Z)', lambda m: 2 * m[1] + m[2].replace('"', r"\""), text)
    return f'"{inner}"'


def spelled(value: Any) -> str:
    """Spell a text, number, truth value, None, list or mapping; texts are quoted where they need it."""
    if isinstance(value, str):
        return value if _is_read_as_text(value) else quoted(value)
    if isinstance(value, list):
        return f"[{','.join(map(spelled, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{key}:{spelled(item)}' for key, item in value.items())}}}"
    return "null" if value is None else repr(value).lower()


def _is_read_as_text(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return bool(_PLAIN.fullmatch(text)) and text.lower() not in ("null", "true", "false")
    return False


def suggest(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence: ``"; did you mean 'x'?"`` where one can guess, or a full stop."""
    known = list(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    guess = SYNONYMS[word] if SYNONYMS.get(word) in known else next(iter(close), None)
    return f"; did you mean '{guess}'?" if guess else "."
