"""What changed between two runs: the kind of change, the queries, and where by tag.

The kind says whether other documents are retrieved, or the same in another order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from karat.comparison.differences import (
    Difference,
    Pairing,
    Test,
    measure,
    with_adjusted,
)
from karat.data.arrays import Floats, Ints
from karat.data.intervals import Interval
from karat.data.tables import counted
from karat.diagnosis.headroom import Gains, Headroom, gains_of, headroom, ndcg_at
from karat.errors import MismatchError, UsageError
from karat.results.evaluation import UNTAGGED, tagged
from karat.stats import mean_interval
from karat.stats.multiple_tests import benjamini_hochberg
from karat.stats.sign_flip import sign_flip

MOVERS = 20
"""How many queries that changed are kept."""

Kind = Literal["none", "coverage", "ranking", "mixed"]

_ALPHA = 0.05
_FALSE_FINDINGS = 0.1
_WHOLE = np.iinfo(np.int64).max
# A part that makes up less of the whole change than this is not worth a word.
_MINOR = 0.2
# A part more likely than this by chance is noise beside the other.
_NOISE = 0.2


@dataclass(frozen=True)
class RunChange:
    """In what way a candidate differs from the baseline."""

    # `coverage` when other relevant documents are retrieved, `ranking` when the same
    # ones stand at other ranks, `mixed` when both, `none` when neither can be told
    # from chance.
    kind: Kind
    k: int | None  # the depth that it is about; None for the whole ranking
    by_coverage: tuple[float, Interval | None]  # of nDCG at k, by items gained and lost
    by_ranking: tuple[float, Interval | None]  # by items that both retrieve
    # The mean parts of the baseline's headroom: score, ordering, cutoff and
    # candidates, which add up to 1.
    baseline: dict[str, float]
    candidate: dict[str, float]  # the same of the candidate
    gained: int  # relevant items that only the candidate has down to that depth
    lost: int  # relevant items that only the baseline has down to that depth
    first_up: int  # queries whose first relevant item stands higher than before
    first_down: int  # queries whose first relevant item stands lower than before
    # Median first rank before and after, on the queries where it changed in the
    # direction of the change.
    first_ranks: tuple[float, float]
    sentence: str  # all this in words, the depth first


def changes_at(pairing: Pairing, metrics: Sequence[str]) -> list[RunChange]:
    """The kind of change at the depth of each metric, where the hits of both tell."""
    baseline, candidate = pairing.baseline, pairing.candidate
    gains: dict[str, tuple[Gains, Gains]] = {}
    changes: dict[tuple[str, int | None], RunChange] = {}
    for metric in metrics:
        matcher, depth = baseline.matchers.get(metric, "id"), baseline[metric].depth
        if matcher not in baseline.matches or matcher not in candidate.matches:
            continue
        if matcher not in gains:
            threshold = baseline.policies.threshold
            old = gains_of(baseline.matches[matcher], pairing.places[0], threshold)
            new = gains_of(candidate.matches[matcher], pairing.places[1], threshold)
            gains[matcher] = old, _aligned(old, new)
        if (matcher, depth) not in changes:
            changes[matcher, depth] = _change(*gains[matcher], depth)
    return [*changes.values()]


def _change(old: Gains, new: Gains, depth: int | None) -> RunChange:
    k = depth or _WHOLE
    before, after = headroom(old, k), headroom(new, k)
    known = ~np.isnan(before.score)
    # Items that both retrieve stand where they stood; only others come and go.
    both = (old.rank > 0) & (new.rank > 0)
    halfway = ndcg_at(old, np.where(both, old.rank, new.rank), k)
    covered = (halfway - before.score)[known]
    ranked = (after.score - halfway)[known]
    reached = (before.candidates - after.candidates)[known]
    first_old, first_new = _first(old)[known], _first(new)[known]
    up, down = first_new < first_old, first_new > first_old
    kind = _kind(reached, ranked)
    change = float(reached.sum()), float(ranked.sum())
    moved = up if change[1] >= 0 else down
    medians = _median(first_old[moved]), _median(first_new[moved])
    items = []
    for part in (depth, None):
        one, two = old.within(part), new.within(part)
        items.append((int((one & ~two).sum()), int((two & ~one).sum())))
    lost, gained = items[0]
    none = dict.fromkeys(Headroom._fields, float("nan"))
    return RunChange(
        kind=kind,
        k=depth,
        by_coverage=_mean(covered),
        by_ranking=_mean(ranked),
        baseline=before.means() or none,
        candidate=after.means() or none,
        gained=gained,
        lost=lost,
        first_up=int(up.sum()),
        first_down=int(down.sum()),
        first_ranks=medians,
        sentence=_sentence(kind, depth, change, items, int(moved.sum()), medians),
    )


def _aligned(old: Gains, new: Gains) -> Gains:
    """The new gains in the order of the old ones: gold may list items in any order."""
    if old.name == new.name:
        return new
    places = {
        pair: place
        for place, pair in enumerate(zip(new.query.tolist(), new.name, strict=True))
    }
    pairs = [*zip(old.query.tolist(), old.name, strict=True)]
    if len(pairs) != len(places) or not places.keys() >= {*pairs}:
        raise MismatchError("two evaluations of the same gold list other gold items")
    order = [places[pair] for pair in pairs]
    return new._replace(name=old.name, gain=new.gain[order], rank=new.rank[order])


def _kind(reached: Floats, ranked: Floats) -> Kind:
    """Which parts are there beyond chance, and large enough to matter."""
    if not reached.size:
        return "none"
    p = sign_flip(np.stack([reached, ranked, reached + ranked]))
    if not (p <= _ALPHA).any():
        return "none"
    coverage, ranking = (
        abs(part.sum()) if chance <= _NOISE else 0.0
        for part, chance in zip((reached, ranked), p.tolist(), strict=False)
    )
    if ranking < _MINOR * (coverage + ranking):
        return "coverage"
    return "ranking" if coverage < _MINOR * (coverage + ranking) else "mixed"


def _first(gains: Gains) -> Ints:
    """The first rank of any relevant item of each query; very large without one."""
    first = np.full(gains.size, _WHOLE)
    found = gains.rank > 0
    np.minimum.at(first, gains.query[found], gains.rank[found])
    return first


def _mean(changes: Floats) -> tuple[float, Interval | None]:
    mean = float(changes.mean()) if len(changes) else float("nan")
    return mean, mean_interval(changes, bounds=(-1.0, 1.0))


def _median(ranks: Ints) -> float:
    found = ranks[ranks < _WHOLE]
    return float(np.median(found)) if len(found) else float("nan")


def _sentence(
    kind: Kind,
    k: int | None,
    change: tuple[float, float],
    items: Sequence[tuple[int, int]],
    moved: int,
    medians: tuple[float, float],
) -> str:
    (lost, gained), anywhere = items
    words = ("regression", "improvement")
    coverage, ranking = words[change[0] > 0], words[change[1] > 0]
    verb = "rose" if change[1] > 0 else "slipped"
    found = f"{lost} relevant items no longer retrieved, {gained} newly found"
    if items[0] != anywhere:
        found += " (in the whole ranking {} and {})".format(*anywhere)
    first = ""
    if moved and not np.isnan(medians).any():
        before, after = (f"{rank:g}" for rank in medians)
        first = (
            f", the first relevant item {verb} from rank {before} to {after} "
            f"(median) on {counted(moved, 'query')}"
        )
    same = "coverage unchanged" if not any(items[0] + anywhere) else found
    what = {
        "ranking": f"ranking {ranking}: {same}{first}",
        "coverage": f"coverage {coverage}: {found}",
        "mixed": f"coverage {coverage} and ranking {ranking}: {found}{first}",
        "none": f"no change of coverage or ranking beyond chance: {found}",
    }
    return f"{'in the whole ranking' if k is None else f'at depth {k}'}: {what[kind]}"


@dataclass(frozen=True)
class Mover:
    """A query on which a candidate and the baseline differ."""

    query: str  # its id
    text: str | None  # what it asks, if known
    metric: str  # by which they differ
    candidate: str  # name of the candidate
    baseline_score: float  # what the baseline scores
    candidate_score: float  # what the candidate scores
    # Gold item -> its rank before and after; None when it was not found.
    ranks: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)

    @property
    def difference(self) -> float:
        """Candidate less baseline."""
        return self.candidate_score - self.baseline_score


def movers_of(metrics: Sequence[str], pairings: Sequence[Pairing]) -> tuple[Mover, ...]:
    """The queries that changed most by the first, then by the other metrics."""
    movers: list[Mover] = []
    metric = metrics[0]
    for pairing in pairings:
        both = baseline, other = pairing.baseline, pairing.candidate
        old, new, _ = pairing.scores(metric)
        changes = np.abs(pairing.differences(metrics)[0])
        order = np.lexsort(-changes[::-1])[:MOVERS]
        rows = order[changes[0, order] > 0]
        one = baseline.matches.get(baseline.matchers.get(metric, ""))
        two = other.matches.get(other.matchers.get(metric, ""))
        before: list[dict[str, int | None]] = [{}] * len(rows)
        after = before
        if one is not None and two is not None:
            before = one.first_ranks(pairing.places[0][rows].tolist())
            after = two.first_ranks(pairing.places[1][rows].tolist())
        for row, was, now in zip(rows.tolist(), before, after, strict=True):
            query, text = pairing.queries[row], None
            for run in both:
                if query in run.facts:
                    text = text or run.facts[query].text
            ranks = {item: (rank, now.get(item)) for item, rank in was.items()}
            scores = float(old[row]), float(new[row])
            movers.append(Mover(query, text or None, metric, other.run, *scores, ranks))
    movers.sort(key=lambda mover: -abs(mover.difference))
    return tuple(movers[:MOVERS])


def slices_of(
    metrics: Sequence[str], pairing: Pairing, margins: Mapping[str, float], test: Test
) -> dict[str, tuple[Difference, ...]]:
    """The differences on the queries of each tag, false findings kept rare."""
    tags = tagged(pairing.baseline, pairing.candidate, queries=pairing.queries)
    tags.pop(UNTAGGED, None)
    if not tags:
        raise UsageError("no query has a tag; --queries FILE (queries=) adds them")
    found: dict[str, list[Difference]] = {tag: [] for tag in tags}
    for metric in metrics:
        margin = margins.get(metric)
        measured = [
            measure(pairing, metric, rows, margin=margin, test=test)
            for rows in tags.values()
        ]
        adjusted = benjamini_hochberg(np.array([one.p for one in measured]))
        # The rate of false findings is kept at one in ten.
        halved = (adjusted * (_ALPHA / _FALSE_FINDINGS)).tolist()
        checked = map(with_adjusted, measured, halved)
        for tag, one, p in zip(found, checked, adjusted.tolist(), strict=True):
            found[tag].append(replace(one, adjusted_p=p))
    return {tag: tuple(rows) for tag, rows in found.items()}
