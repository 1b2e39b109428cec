"""Packing: long lists of texts in as few questions as a budget of tokens allows."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from karat.llm.budget import tokens_of

__all__ = ["Context", "pack", "pieces"]

Context: TypeAlias = tuple[int, str]
"""A document under judgement: its rank and its text."""

_OVERLAP = 0.1


def pieces(text: str, budget: int) -> list[str]:
    """The text in overlapping pieces that fit the budget; mostly one, itself.

    Example:
        >>> pieces("abcd" * 4, 4), len(pieces("abcd" * 4, 2))
        (['abcdabcdabcdabcd'], 2)
    """
    total = tokens_of(text)
    if total <= budget:
        return [text]
    size = max(1, len(text) * budget // total)
    step = max(1, size - int(size * _OVERLAP))
    last = max(1, len(text) - size + step)
    return [text[start : start + size] for start in range(0, last, step)]


def pack(contexts: Sequence[Context], budget: int) -> list[list[Context]]:
    """The contexts in groups that fit the budget, in order of rank.

    Example:
        >>> pack([(1, "aaaa"), (2, "bbbb"), (3, "cccc")], budget=2)
        [[(1, 'aaaa'), (2, 'bbbb')], [(3, 'cccc')]]
    """
    # No character is more than a token: most lists fit without counting.
    if contexts and sum(len(text) for _, text in contexts) <= budget:
        return [[*contexts]]
    packs: list[list[Context]] = []
    room = 0
    for rank, text in _cut(contexts, budget):
        need = tokens_of(text)
        if need > room or not packs:
            packs.append([])
            room = budget
        packs[-1].append((rank, text))
        room -= need
    return packs


def _cut(contexts: Sequence[Context], budget: int) -> Iterator[Context]:
    for rank, text in contexts:
        yield from ((rank, piece) for piece in pieces(text, budget))
