"""What is wrong with a whole run: mistakes that explain many misses at once."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from statistics import mean, median
from typing import NamedTuple

import numpy as np

from karat.data.arrays import Floats
from karat.data.tables import counted, number
from karat.diagnosis.diagnosis import CAUSES, Miss, Related, RunFinding
from karat.diagnosis.evidence import MissedItem, RunEvidence, key_of

# So many standard deviations are no chance.
_BEYOND = 3.0
_SOME, _LEAST_MISSES, _MANY = 5, 3, 10
# A whole run is wrong when such a share of it is.
_QUARTER, _THIRD, _HALF = 0.25, 1 / 3, 0.5
_TENTH, _FIFTH = 0.1, 0.2
_BETTER = 1.5
# Of a query with more gold than this, most may well be retrieved by nobody.
_FEW_ITEMS = 5


class Reason(NamedTuple):
    """Why one item was missed; the fields are those of `Miss`."""

    reason: str
    related: tuple[Related, ...] = ()
    facts: Mapping[str, float] = {}
    needed_k: int | None = None


class Detection(NamedTuple):
    """Something wrong with a run, in how many queries, and the misses it explains."""

    sentence: str
    queries: int
    explains: Mapping[MissedItem, Reason]
    whole_run: bool = True


def _is_no_chance(count: int, chances: Floats) -> bool:
    """Whether more things happened than their chances let expect."""
    spread = float((chances * (1 - chances)).sum())
    return count - float(chances.sum()) >= _BEYOND * math.sqrt(max(spread, _HALF))


def _reversed(evidence: RunEvidence) -> Detection | None:
    """Relevant items stand at the end of rankings, and not at their beginning."""
    depth, ends = {}, []
    for query, row in evidence.items.items():
        # Ranks with gaps may be higher than the number of documents.
        depth[query] = max([evidence.depth[query], *row.values()])
        if ranks := [*filter(None, row.values())]:
            ends.append((min(ranks), depth[query] + 1 - max(ranks)))
    first, last = np.array(ends, np.float64).reshape(-1, 2).T
    worse, uneven = int((first > last).sum()), int((first != last).sum())
    now, then = float((1 / first).sum()), float((1 / last).sum())
    if not _is_no_chance(worse, np.full(uneven, _HALF)) or then < _BETTER * now:
        return None
    sentence = (
        f"for {worse} of {counted(len(ends), 'query')} the first relevant document is "
        f"nearer to the end of the ranking than to its beginning: mean reciprocal rank "
        f"{number(now / len(ends))} from the top, {number(then / len(ends))} from "
        "the end"
    )
    places = (
        (one, depth[one.query] + 1 - one.rank) for one in evidence.missed if one.rank
    )
    explains = {
        one: Reason(
            f"at rank {one.rank} of {depth[one.query]}, and at {place} from the end"
        )
        for one, place in places
        if place <= evidence.k
    }
    return Detection(sentence, worse, explains)


def _mixed_up(evidence: RunEvidence) -> Detection | None:
    """Queries find nothing, and what they should find is on top for other queries."""
    empty: dict[str, list[MissedItem]] = {}
    for one in evidence.missed:
        if not one.hits and evidence.depth[one.query] > 0:
            empty.setdefault(one.query, []).append(one)
    queries = sum(map(bool, evidence.items.values()))
    least = max(_MANY, _QUARTER * queries)
    if len(empty) < least:
        return None
    high = max(1, evidence.k // 3)
    best = [min(places)[0] for places in evidence.owners.values()]
    size = max(len(evidence.corpus or ()), len(evidence.often))
    chance = {evidence.k: len(best) / size, high: mean([rank <= high for rank in best])}
    ranks, explains = {}, {}
    for query, items in empty.items():
        places = []
        for one in items:
            keys = evidence.documents[one]
            own = [
                p for key in keys for p in evidence.owners.get(key, ()) if p[1] != query
            ]
            if own:
                rank, other = min(own)
                places.append(rank)
                reason = f"not retrieved here, and at rank {rank} for {other!r:.60}"
                explains[one] = Reason(reason, (Related(keys[0], None),))
        ranks[query] = min(places, default=evidence.k + 1)

    def beyond(most: int, some: Sequence[str]) -> bool:
        there = sum(ranks[query] <= most for query in some)
        items = np.array([len(empty[query]) for query in some])
        luck = 1 - (1 - chance[most]) ** items
        return there >= max(least / 2, _HALF * len(some)) and _is_no_chance(there, luck)

    # Poor search has its gold further down; search for something else has it nowhere.
    nowhere = [q for q, items in empty.items() if not any(one.rank for one in items)]
    if not beyond(high, [*empty]) and not beyond(evidence.k, nowhere):
        return None
    count = sum(rank <= evidence.k for rank in ranks.values())
    sentence = (
        f"{len(empty)} of {counted(queries, 'query')} have no gold in the top "
        f"{evidence.k}, and the gold of {count} of them is in that of other queries"
    )
    return Detection(sentence, count, explains)


def _hubs(evidence: RunEvidence) -> Detection | None:
    """Some documents are in the top k of most queries, and relevant to few."""
    queries, owners = len(evidence.rankings), evidence.owners
    least = max(_HALF * queries, _SOME * evidence.k * queries / max(1, len(owners)))
    often = {key: own for key, own in owners.items() if len(own) >= least}
    if queries < _MANY or not often:
        return None
    useful = Counter(
        key_of(document)
        for query in evidence.rankings
        for document in evidence.hits(query, evidence.k)
    )
    hubs = {n: own for n, own in often.items() if useful[n] <= _FIFTH * len(own)}
    if not hubs:
        return None
    name, own = max(hubs.items(), key=lambda one: len(one[1]))
    sentence = (
        f"{name!r:.60} is in the top {evidence.k} of {len(own)} of "
        f"{counted(queries, 'query')}, and relevant to {useful[name]} of them"
    )
    if len(hubs) > 1:
        sentence += f"; so are {len(hubs) - 1} more"
    explains = {}
    for one in evidence.missed:
        above = evidence.rankings.get(one.query, [])[: max(0, one.rank - 1)]
        wrong = [(n, d) for n, d in enumerate(above, 1) if key_of(d) in hubs]
        if wrong and one.rank - len(wrong) <= evidence.k:
            reason = (
                f"at rank {one.rank}, and at {one.rank - len(wrong)} without "
                f"{counted(len(wrong), 'document')} that most queries retrieve"
            )
            related = tuple(Related(d.id, n, d.text) for n, d in wrong[:_SOME])
            explains[one] = Reason(reason, related)
    return Detection(sentence, len(own), explains)


def _too_few(evidence: RunEvidence) -> Detection | None:
    """Queries have fewer than k documents."""
    k, depth, few = evidence.k, {}, []
    for query, own in evidence.items.items():
        if own:
            depth[query] = max(0, evidence.depth[query])
            few += [query] if depth[query] < k else []
    if not few:
        return None
    usual = median(depth.values())
    explains = {
        one: Reason(f"{counted(depth[one.query], 'document')} for k = {k}")
        for one in evidence.missed
        if not one.rank and depth[one.query] < min(k, usual)
    }
    sentence = (
        f"{len(few)} of {counted(len(depth), 'query')} have fewer than k = {k} "
        f"documents, in the median {median(depth[query] for query in few):g}"
    )
    whole = len(few) >= max(_LEAST_MISSES, _TENTH * len(depth))
    return Detection(sentence, len(few), explains, whole)


def _never_retrieved(evidence: RunEvidence) -> Detection | None:
    """Gold items that were not retrieved are retrieved by no other query either."""
    never, absent, hits, again = [], 0, 0, 0
    for one in evidence.missed:
        keys = evidence.documents[one]
        if one.rank or one.relevant > _FEW_ITEMS or not keys:
            continue
        if evidence.corpus is None or not evidence.corpus.keys().isdisjoint(keys):
            absent += 1
            if not any(map(evidence.often.get, keys)):
                never.append(one)
    for query, items in evidence.items.items():
        for document in evidence.hits(query) if len(items) <= _FEW_ITEMS else ():
            hits += 1
            again += evidence.often[key_of(document)] > 1
    # How often a document that its query retrieves is retrieved by no other.
    alone = 1 - again / hits if hits else 1.0
    if len(never) < max(_SOME, (_QUARTER + alone) * absent):
        return None
    if not _is_no_chance(len(never), np.full(absent, alone)):
        return None
    sentence = (
        f"{len(never)} of {counted(absent, 'gold item')} that were not retrieved "
        f"are retrieved by no query at all; by chance it would be {alone:.0%}"
    )
    why = Reason("no query retrieves it, at any rank")
    explains = dict.fromkeys(never, why)
    queries = len({*map(attrgetter("query"), never)})
    return Detection(sentence, queries, explains)


def _ties(evidence: RunEvidence) -> Detection | None:
    """The k-th document has the same score as the next one."""
    k, longer, tied = evidence.k, {}, []
    for query, row in evidence.rankings.items():
        if len(row) > k:
            longer[query] = row
            score = row[k].score
            tied += [query] if score is not None and row[k - 1].score == score else []
    if not tied:
        return None
    explains = {}
    for one in evidence.missed:
        row = longer.get(one.query, [])
        at_cut = row[k - 1].score if 0 < one.rank <= len(row) else None
        if at_cut is not None and row[one.rank - 1].score == at_cut:
            explains[one] = Reason(
                f"at rank {one.rank}, with the score of the document at rank {k}"
            )
    sentence = (
        f"for {len(tied)} of {counted(len(longer), 'query')} the documents at ranks "
        f"{k} and {k + 1} have the same score"
    )
    whole = len(tied) >= max(_LEAST_MISSES, _THIRD * len(longer))
    return Detection(sentence, len(tied), explains, whole)


_DETECTORS: dict[str, Callable[[RunEvidence], Detection | None]] = {
    "ranking reversed": _reversed,
    "results of another query": _mixed_up,
    "displaced by a hub": _hubs,
    "fewer than k retrieved": _too_few,
    "retrieved by no query": _never_retrieved,
    "tied at the cut": _ties,
}


def detect(evidence: RunEvidence) -> dict[str, Detection]:
    """Everything that is wrong with a run as a whole, by its cause."""
    detections = {}
    for kind, detector in _DETECTORS.items():
        if (one := detector(evidence)) is not None:
            detections[kind] = one
    return detections


def run_findings(
    detections: Mapping[str, Detection], misses: Sequence[Miss]
) -> Iterator[RunFinding]:
    """What to tell before all else: what is wrong with the run, or with most of it."""
    counts = Counter(map(attrgetter("cause"), misses))
    for kind, cause in CAUSES.items():
        if kind in detections:
            one = detections[kind]
            # Where other causes explain the same misses better, it is but an effect.
            if one.whole_run and 2 * counts[kind] >= len(one.explains):
                yield RunFinding(kind, one.sentence, cause.action, one.queries)
        elif cause.disaster and counts[kind] >= max(
            _LEAST_MISSES, _THIRD * len(misses)
        ):
            own = [miss for miss in misses if miss.cause == kind]
            sentence = (
                f"{counts[kind]} of {len(misses)} misses, such as "
                f"{own[0].item!r:.60}: {own[0].reason}"
            )
            queries = len({miss.query for miss in own})
            yield RunFinding(kind, sentence, cause.action, queries)
