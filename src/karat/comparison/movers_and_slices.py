"""What a comparison tells besides its differences: movers and slices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from karat.comparison.differences import Difference, measure, with_adjusted
from karat.comparison.pairing import Pairing
from karat.errors import UsageError
from karat.results.evaluation import Evaluation
from karat.stats.multiple import benjamini_hochberg

__all__ = ["MOVERS", "Mover", "movers_of", "slices_of", "tagged"]

MOVERS = 20
"""How many queries that changed are kept."""

_FALSE_FINDINGS = 0.1
_ALPHA = 0.05


@dataclass(frozen=True)
class Mover:
    """A query on which a candidate and the baseline differ.

    Attributes:
        query: its id.
        text: what it asks, if known.
        metric: by which they differ.
        candidate: name of the candidate.
        baseline_score: what the baseline scores.
        candidate_score: what the candidate scores.
        ranks: gold item -> its rank before and after; None when it was not found.
    """

    query: str
    text: str | None
    metric: str
    candidate: str
    baseline_score: float
    candidate_score: float
    ranks: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)

    @property
    def difference(self) -> float:
        """Candidate less baseline."""
        return self.candidate_score - self.baseline_score


def movers_of(metric: str, pairing: Pairing) -> list[Mover]:
    """The queries that changed most, with the ranks of their gold items."""
    baseline, other = pairing.baseline, pairing.candidate
    old, new, _ = pairing.scores(metric)
    change = np.abs(pairing.differences(metric))
    order = np.argsort(-change, kind="stable")[:MOVERS]
    before = _first_ranks(baseline, metric)
    after = _first_ranks(other, metric)
    movers = []
    for row in order[change[order] > 0].tolist():
        query = pairing.queries[row]
        fact = baseline.facts.get(query) or other.facts.get(query)
        both = bool(before and after)
        one = before[pairing.places[0][row]] if both else {}
        two = after[pairing.places[1][row]] if both else {}
        movers.append(
            Mover(
                query,
                fact.text if fact else None,
                metric,
                other.run,
                float(old[row]),
                float(new[row]),
                {item: (rank, two.get(item)) for item, rank in one.items()},
            )
        )
    return movers


def _first_ranks(one: Evaluation, metric: str) -> list[dict[str, int | None]]:
    matches = one.matches.get(one.matchers.get(metric, ""))
    return [] if matches is None else matches.first_ranks()


def tagged(queries: Sequence[str], *runs: Evaluation) -> dict[str, list[int]]:
    """The places of the queries of each tag, by what the first run says that knows."""
    tags: dict[str, list[int]] = {}
    for row, query in enumerate(queries):
        fact = next((run.facts[query] for run in runs if query in run.facts), None)
        for tag in fact.tags if fact else ():
            tags.setdefault(tag, []).append(row)
    return dict(sorted(tags.items()))


def slices_of(
    metrics: Sequence[str], pairing: Pairing, margins: Mapping[str, float]
) -> dict[str, tuple[Difference, ...]]:
    """The differences on the queries of each tag, false findings kept rare."""
    baseline, other = pairing.baseline, pairing.candidate
    tags = tagged(pairing.queries, baseline, other)
    if not tags:
        raise UsageError("no query has a tag; queries=... (--queries FILE) brings some")
    found: dict[str, list[Difference]] = {tag: [] for tag in tags}
    for metric in metrics:
        names = (metric, baseline.run, other.run)
        measured = [
            measure(names, pairing.pairs(metric, rows), margins.get(metric))
            for rows in tags.values()
        ]
        adjusted = benjamini_hochberg(np.array([one.p for one in measured]))
        # The rate of false findings is kept at one in ten.
        halved = (adjusted * (_ALPHA / _FALSE_FINDINGS)).tolist()
        checked = with_adjusted(measured, halved)
        for tag, one, p in zip(found, checked, adjusted.tolist(), strict=True):
            found[tag].append(replace(one, adjusted_p=p))
    return {tag: tuple(rows) for tag, rows in found.items()}
