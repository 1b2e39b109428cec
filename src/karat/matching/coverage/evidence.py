"""Evidence: the stretches that gold items and documents share, and what differs."""

from collections.abc import Iterator

from karat.data.coverage import Evidence, Range
from karat.matching.coverage.measure import Measurer, Passage, compare_texts
from karat.matching.coverage.targets import QueryTexts, place_of

__all__ = ["gather"]

_SLACK = 1e-9
Ranges = tuple[tuple[Range, ...], tuple[Range, ...]]


def gather(texts: QueryTexts, tau: float, *, strict: bool) -> Iterator[Evidence]:
    """What each document adds to each gold item of a query, in rank order."""
    texts = texts._replace(query=0, first_item=0)
    measurer = Measurer()
    measurer.add(texts)
    coverage = measurer.finish(1)
    by_offsets = texts.by_offsets
    passages = [] if by_offsets else compare_texts([texts])[0][0]
    items = texts.items.tolist()
    rows = zip(
        coverage.item.tolist(),
        coverage.item_rank.tolist(),
        coverage.share.tolist(),
        coverage.sound.tolist(),
        strict=True,
    )
    for item, rank, share, sound in rows:
        number = texts.ranks.index(rank)
        own = [p for i, p in zip(items, passages, strict=False) if i == item]
        gold, text = (
            _offsets(texts, item, number) if by_offsets else _ranges(own, number)
        )
        differs = _differences(own, number)
        enough = share >= tau - _SLACK
        reason = f"{share:.0%} covered" + ("" if enough else ", not enough yet")
        yield Evidence(
            item=texts.targets[item].name,
            rank=rank,
            document=texts.documents[number].id,
            gold=gold,
            text=text,
            share=share,
            satisfied=enough and (sound or not strict),
            reason=reason + (f"; differs: {', '.join(differs)}" if differs else ""),
            differs=differs,
        )


def _differences(passages: list[Passage], number: int) -> tuple[str, ...]:
    """What differs in what is covered up to a document."""
    return tuple(
        str(difference)
        for passage in passages
        for first, until, difference in passage.differences
        if first <= number < until
    )


def _offsets(texts: QueryTexts, item: int, number: int) -> Ranges:
    """What a gold span and a document share, from where each begins."""
    ours, theirs = texts.targets[item].places[0], place_of(texts.documents[number])
    if ours is None or theirs is None or ours.source != theirs.source:
        return (), ()
    low, high = max(ours.start, theirs.start), min(ours.end, theirs.end)
    if low >= high:
        return (), ()
    return (
        ((low - ours.start, high - ours.start),),
        ((low - theirs.start, high - theirs.start),),
    )


def _ranges(passages: list[Passage], number: int) -> Ranges:
    """What a document is the first to cover of a passage, run by run."""
    gold, text = [], []
    for passage in passages:
        ours = passage.gold.places
        for part in passage.parts:
            if part.since != number or part.document != number:
                continue
            theirs = passage.documents[part.document].places
            for run in part.runs:
                fresh = [
                    place
                    for place in range(run.start, run.end)
                    if passage.since[place] == number
                ]
                if fresh:
                    low, high = fresh[0], fresh[-1]
                    shift = run.place - run.start
                    gold.append((ours[low], ours[high] + 1))
                    text.append((theirs[low + shift], theirs[high + shift] + 1))
    return tuple(gold), tuple(text)
