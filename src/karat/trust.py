"""Trust: what a judge's grades are worth beside labels by people, and asked again."""

from collections.abc import Mapping
from typing import Any

from karat.data.arrays import Floats
from karat.data.gold import Gold
from karat.data.runs import Labels
from karat.errors import DataError
from karat.evaluation import evaluate
from karat.judging.agreement import Agreement, agreement
from karat.judging.ordering import Order, order_agreement
from karat.judging.prompts import GRADES
from karat.judging.relevance import Graded
from karat.judging.retesting import Flips, flips
from karat.judging.scales import RELEVANT, is_binary, is_graded, relevance

__all__ = ["changes", "compare", "scores"]

_BY_RELEVANCE = "compared is whether a document is relevant"


def compare(
    runs: Mapping[str, Any],
    judged: Labels,
    people: Labels,
    *,
    known: Labels | None = None,
    metric: str = "ndcg@10",
) -> Agreement:
    """How far a judge's grades agree with people's labels, and how both order the runs.

    Where people grade from 0 to 3 too, grades are compared, and 2 is where relevant
    begins. Any other scale is compared by relevant or not: a label above 0 by people,
    grade 2 or 3 by the judge.

    Args:
        runs: what each system retrieved, by its name.
        judged: the judge's grades, from 0 to 3.
        people: labels by people of the same documents.
        known: further labels that stay as they are; the judge's side of the order has
            them where it gave no grade, as the gold has that is completed with them.
        metric: what the runs are ordered by, when there are several.

    Example:
        >>> people = {"q1": {"a": 1, "b": 0}, "q2": {"a": 0, "b": 1}}
        >>> judged = {"q1": {"a": 3, "b": 1}, "q2": {"a": 0, "b": 1}}
        >>> compare({}, judged, people).equal
        0.75
    """
    kept, scale, line = known or {}, None, _line(people)
    if not _graded(people, kept):
        scale = _scale(people)
        people, kept = relevance(people, line), relevance(kept, _line(kept))
        judged, line = relevance(judged, RELEVANT), None
    order = None
    if len(runs) > 1:
        order = _order(runs, people, judged, kept, metric, line)
    return agreement(people, judged, line=line, order=order, scale=scale)


def changes(
    before: Graded,
    after: Graded,
    people: Labels | None = None,
    known: Labels | None = None,
) -> Flips:
    """How many grades changed when asked again, on the scale they are compared on."""
    one, other = before.gold.documents, after.gold.documents
    if people is not None and not _graded(people, known or {}):
        one, other = relevance(one, RELEVANT), relevance(other, RELEVANT)
    return flips(one, other, failed=len(after.failures))


def scores(
    runs: Mapping[str, Any], labels: Labels, metric: str, line: float | None = None
) -> dict[str, Floats]:
    """The scores of each run by these labels, query by query."""
    gold = Gold(labels)
    found = {}
    for name, run in runs.items():
        scored = evaluate(run, gold=gold, metrics=metric, threshold=line, force=True)
        if len([*scored]) != 1:
            raise DataError(f"runs are put in order by one metric, not by {metric!r}")
        (values,) = (scored[label].scores for label in scored)
        found[name] = values
    return found


def _order(
    runs: Mapping[str, Any],
    people: Labels,
    judged: Labels,
    kept: Labels,
    metric: str,
    line: float | None,
) -> Order:
    """How alike people and judge order the runs, on the queries both labelled."""
    both = [query for query in people if people[query] and judged.get(query)]
    one = {query: people[query] for query in both}
    other = {query: {**kept.get(query, {}), **judged[query]} for query in both}
    order = order_agreement(
        scores(runs, one, metric, line), scores(runs, other, metric, line), metric
    )
    asked = sum(map(bool, people.values()))
    return order._replace(asked=asked, threshold=line)


def _line(labels: Labels) -> float | None:
    """From which grade on a label is relevant; any positive one if None."""
    return RELEVANT if is_graded(labels) else None


def _graded(people: Labels, kept: Labels) -> bool:
    """Whether all labels are grades as the judge gives them."""
    return is_graded(people) and (not any(kept.values()) or is_graded(kept))


def _scale(people: Labels) -> str:
    last = max(GRADES)
    if is_binary(people):
        return (
            f"people say 0 or 1, so the judge's {RELEVANT} and {last} count as 1 "
            "beside theirs, and all below as 0"
        )
    if is_graded(people):
        return (
            f"the labels that stay are not grades from 0 to {last}, so "
            f"{_BY_RELEVANCE}: grade {RELEVANT} or {last}"
        )
    top = max((grade for row in people.values() for grade in row.values()), default=0)
    return (
        f"people's grades end at {top:g} and are not the judge's 0 to {last}, so "
        f"{_BY_RELEVANCE}: people's above 0, the judge's {RELEVANT} and {last}"
    )
