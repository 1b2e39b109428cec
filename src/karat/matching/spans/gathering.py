"""Gathers evidence: the stretches that a gold item and documents have in common."""

from collections.abc import Iterator

import numpy as np

from karat.data.arrays import Ints
from karat.data.coverage import Evidence, Range
from karat.matching.spans.covering import Cover, cover
from karat.matching.spans.letters import Letters
from karat.matching.spans.measuring import Lane, Measurer, place_of
from karat.matching.spans.passages import read_passages
from karat.matching.spans.stream import read_stream
from karat.matching.spans.tracing import trace

__all__ = ["gather"]

_SLACK = 1e-9


def gather(lane: Lane, tau: float) -> Iterator[Evidence]:
    """What each document adds to each gold item of a query, in rank order."""
    measurer = Measurer()
    measurer.add(lane._replace(query=0, first_item=0))
    coverage = measurer.finish(1)
    ranges = _by_offsets(lane) if lane.by_offsets else _by_letters(lane)
    rows = zip(
        coverage.item.tolist(),
        coverage.item_rank.tolist(),
        coverage.share.tolist(),
        coverage.sound.tolist(),
        strict=True,
    )
    for item, rank, share, sound in rows:
        number = lane.ranks.index(rank)
        gold, text = ranges.get((item, number), ((), ()))
        enough = share >= tau - _SLACK
        yield Evidence(
            item=lane.targets[item].name,
            rank=rank,
            document=lane.documents[number].id,
            gold=gold,
            text=text,
            share=share,
            satisfied=enough and sound,
            reason=_reason(share, enough=enough, sound=sound),
        )


def _reason(share: float, *, enough: bool, sound: bool) -> str:
    covered = f"{share:.0%} covered"
    if not enough:
        return f"{covered}, not enough yet"
    if not sound:
        return f"{covered}, but partial: a number or a negation is missing or was added"
    return covered


Ranges = dict[tuple[int, int], tuple[tuple[Range, ...], tuple[Range, ...]]]


def _by_offsets(lane: Lane) -> Ranges:
    """Ranges in the gold stretch and in the document, from where each begins."""
    found: Ranges = {}
    for item, target in enumerate(lane.targets):
        for number, document in enumerate(lane.documents):
            ours, theirs = target.places[0], place_of(document)
            if ours is None or theirs is None or ours.source != theirs.source:
                continue
            low, high = max(ours.start, theirs.start), min(ours.end, theirs.end)
            if low < high:
                found[item, number] = (
                    ((low - ours.start, high - ours.start),),
                    ((low - theirs.start, high - theirs.start),),
                )
    return found


def _by_letters(lane: Lane) -> Ranges:
    items = [n for n, target in enumerate(lane.targets) for _ in target.texts]
    texts = [text or "" for target in lane.targets for text in target.texts]
    documents = [document.text or "" for document in lane.documents]
    passages = read_passages(texts, np.zeros(len(texts), np.int64))
    covered = cover(passages, read_stream([documents]))
    ours = _origins(passages.letters, texts, joined=True)
    theirs = _origins(covered.stream.letters, documents, joined=False)
    found: dict[tuple[int, int], tuple[list[Range], list[Range]]] = {}
    for passage, start, end, document in _runs(covered):
        gold, text = found.setdefault((items[passage], document), ([], []))
        for piece, until, low, high in _copies(covered, start, end, document):
            gold.append((int(ours[0][piece]), int(ours[1][until - 1])))
            text.append((int(theirs[0][low]), int(theirs[1][high - 1])))
    return {key: (tuple(gold), tuple(text)) for key, (gold, text) in found.items()}


def _runs(cover: Cover) -> Iterator[tuple[int, int, int, int]]:
    """Passage, start, end and document of each stretch that was covered at once."""
    for passage in range(cover.passages.count):
        low, high = cover.passages.bounds[passage : passage + 2].tolist()
        start = low
        for place in range(low + 1, high + 1):
            document = int(cover.since[start])
            same = place < high and cover.since[place] == document
            if same and cover.tied[place - 1] <= document:
                continue
            if document < cover.stream.count:
                yield passage, start, place, document
            start = place


def _copies(
    cover: Cover, start: int, end: int, document: int
) -> Iterator[tuple[int, int, int, int]]:
    """Pieces of a stretch, as long as can be, and where in the document each lies."""
    data, copy = cover.passages.letters.data, cover.stream.letters.data
    low, high = cover.stream.bounds[document : document + 2].tolist()
    while start < end:
        # The longest piece that has a copy which ends in the document.
        until, place = start, -1
        least, most = start + 1, end
        while least <= most:
            middle = (least + most) // 2
            first = max(0, low - (middle - start) + 1)
            where = copy.find(data[start:middle], first, high)
            if where >= 0:
                until, place, least = middle, where, middle + 1
            else:
                most = middle - 1
        if until == start:
            start += 1
            continue
        yield start, until, max(place, low), place + until - start
        start = until


def _origins(letters: Letters, texts: list[str], *, joined: bool) -> tuple[Ints, Ints]:
    """First and last character, plus one, of its own text that each byte came from."""
    starts: list[int] = []
    ends: list[int] = []
    for number, text in enumerate(texts):
        _, first, last = trace(text, join_lines=joined)
        # One byte separates each text from the one before.
        starts += [0] * (number > 0) + first
        ends += [0] * (number > 0) + last
    return np.array(starts)[letters.place], np.array(ends)[letters.place]
