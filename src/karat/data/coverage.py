"""Coverage: how much of the gold text was retrieved, document by document."""

from dataclasses import dataclass

from karat.data.arrays import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Coverage:
    """What each retrieved document adds to the gold text of its query.

    Lengths are in characters: of the source where both sides have offsets, else in
    letters, so that spaces, punctuation and Markdown weigh nothing. No character is
    paid twice. Documents are sorted by (query, rank), rises by (item, rank).

    Attributes:
        size: characters of the relevant gold of each query; 0 where there is none.
        query: index of the query of each document.
        rank: its rank, from 1.
        gold: characters of relevant gold that it is the first to cover.
        length: characters it has.
        fresh: characters that no document before it has, overlaps merged.
        tokens: tokens it has: its own count (`tokens` in its metadata), else a quarter
            of its bytes, else a quarter of its length.
        item: index, as in `Hits.gold_grade`, of the gold item that is covered further.
        item_rank: the rank at which it is.
        share: the part of the item that is covered from then on.
        sound: whether no number, sign, negation or name differs in what is covered.
    """

    size: Floats
    query: Ints
    rank: Ints
    gold: Floats
    length: Floats
    fresh: Floats
    tokens: Floats
    item: Ints
    item_rank: Ints
    share: Floats
    sound: Bools


Range = tuple[int, int]
"""Where a stretch of characters starts and ends."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a retrieved document counts for a gold item."""

    item: str
    rank: int
    document: str | None
    gold: tuple[Range, ...]
    text: tuple[Range, ...]
    share: float
    satisfied: bool
    reason: str
    differs: tuple[str, ...] = ()
