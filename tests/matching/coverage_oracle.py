"""Coverage computed the plain way, to hold the real one against."""

import re
from collections.abc import Sequence

_LONG = 32


def letters(text: str) -> str:
    """The letters of an English text."""
    return re.sub("[^a-z0-9%$]", "", text.lower())


def covered(gold: str, documents: Sequence[str]) -> float:
    """The share of the gold's letters in long runs that it shares with a document.

    What lies at edges or beside other runs counts besides.
    """
    wanted = letters(gold)
    texts = [letters(document) for document in documents]
    size = min(_LONG, max(12, int(0.8 * len(wanted))))
    mine = [False] * len(wanted)
    for start in range(len(wanted) - size + 1):
        if any(wanted[start : start + size] in text for text in texts):
            mine[start : start + size] = [True] * size
    return sum(mine) / len(mine)
