"""Trust: what a judge's grades are worth beside labels by people, and asked again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.data.arrays import Floats
from karat.data.gold import Gold
from karat.data.runs import Labels
from karat.data.tables import Table, counted
from karat.errors import DataError
from karat.evaluation import evaluate
from karat.judging.agreement import (
    Agreement,
    GradeChanges,
    Order,
    agreement,
    grade_changes,
    middle,
    order_agreement,
)
from karat.judging.grading import (
    LAST,
    RELEVANT,
    GradedPool,
    Pool,
    is_binary,
    is_graded,
    relevance,
)
from karat.results.evaluation import Evaluation

REPORT_VERSION = 1
"""Version of what judging reports as JSON."""

ClaimLabels = Mapping[str, Mapping[str, bool]]
"""What people say: query -> text of a claim -> whether the contexts support it."""

_BY_RELEVANCE = "compared is whether a document is relevant"


def compare_grades(
    runs: Mapping[str, Any],
    judged: Labels,
    people: Labels | Sequence[Labels],
    *,
    existing: Labels | None = None,
    metric: str = "ndcg@10",
) -> Agreement:
    """How far a judge's grades agree with people's labels, and how both order the runs.

    Where people grade from 0 to 3 too, grades are compared, and 2 is where relevant
    begins. Any other scale is compared by relevant or not: a label above 0 by people,
    grade 2 or 3 by the judge.
    Of several people the label in the middle counts. Existing labels that stay are on
    the judge's side of the order, where it gave no grade.

    Example:
        >>> people = {"q1": {"a": 1, "b": 0}, "q2": {"a": 0, "b": 1}}
        >>> judged = {"q1": {"a": 3, "b": 1}, "q2": {"a": 0, "b": 1}}
        >>> compare_grades({}, judged, people).figures.equal.value
        0.75
    """
    raters = [people] if isinstance(people, Mapping) else [*people]
    people = middle(raters)
    rest, scale = existing or {}, None
    threshold = RELEVANT if is_graded(people) else None
    if not _all_graded(people, rest):
        scale = _scale(people)
        people = relevance(people, threshold)
        raters = [relevance(labels, threshold) for labels in raters]
        rest = relevance(rest, RELEVANT if is_graded(rest) else None)
        judged, threshold = relevance(judged, RELEVANT), None
    order = None
    if len(runs) > 1:
        order = _order(runs, people, judged, rest, metric, threshold)
    return agreement(
        people, judged, threshold=threshold, order=order, scale=scale, raters=raters
    )


def retest_changes(
    before: GradedPool,
    after: GradedPool,
    people: Labels | None = None,
    existing: Labels | None = None,
) -> GradeChanges:
    """How many grades changed when asked again, on the scale they are compared on."""
    one, other = before.gold.documents, after.gold.documents
    if people is not None and not _all_graded(people, existing or {}):
        one, other = relevance(one, RELEVANT), relevance(other, RELEVANT)
    return grade_changes(one, other, len(after.failures))


def compare_claims(
    result: Evaluation, people: ClaimLabels | Sequence[ClaimLabels]
) -> Agreement:
    """How far a judge's verdicts on claims agree with those of most people."""
    raters = [people] if isinstance(people, Mapping) else [*people]
    together, failed = middle(raters), 0
    judged: dict[str, dict[str, float]] = {}
    for query, trace in zip(result.queries, result.traces, strict=True):
        for verdict in trace.verdicts:
            if verdict.failure is None:
                judged.setdefault(query, {})[verdict.text] = float(verdict.supported)
            else:
                failed += verdict.text in together.get(query, {})
    return agreement(together, judged, raters=raters, failed=failed, of="claim")


def check_people(
    people: Labels, pooled: Pool, runs: Mapping[str, Any], metric: str
) -> None:
    """Refuse labels or a metric that cannot be compared, before a judge is paid."""
    if not any(row.keys() & people.get(query, {}) for query, row in pooled.items()):
        raise DataError(
            "labels no document of the pool, so there is nothing to compare",
            hint="judge the runs that people judged, with the same ids; or pool deeper",
        )
    if len(runs) > 1:
        run_scores(dict([*runs.items()][:1]), people, metric)


def run_scores(
    runs: Mapping[str, Any], labels: Labels, metric: str, threshold: float | None = None
) -> dict[str, Floats]:
    """The scores of each run by these labels, query by query."""
    gold = Gold(labels)
    columns = {}
    for name, run in runs.items():
        result = evaluate(
            run, gold=gold, metrics=metric, threshold=threshold, force=True
        )
        if len([*result]) != 1:
            raise DataError(f"runs are put in order by one metric, not by {metric!r}")
        (columns[name],) = (result[label].scores for label in result)
    return columns


def _order(
    runs: Mapping[str, Any],
    people: Labels,
    judged: Labels,
    existing: Labels,
    metric: str,
    threshold: float | None,
) -> Order:
    """How alike people and judge order the runs, on the queries both labelled."""
    both = [query for query in people if people[query] and judged.get(query)]
    one = {query: people[query] for query in both}
    other = {query: {**existing.get(query, {}), **judged[query]} for query in both}
    return order_agreement(
        run_scores(runs, one, metric, threshold),
        run_scores(runs, other, metric, threshold),
        metric,
        labelled=sum(map(bool, people.values())),
        threshold=threshold,
    )


def _all_graded(people: Labels, existing: Labels) -> bool:
    """Whether all labels are grades as the judge gives them."""
    return is_graded(people) and (not any(existing.values()) or is_graded(existing))


def _scale(people: Labels, *, written: bool = False) -> str:
    """How labels on different scales are compared, or written beside each other."""
    if is_binary(people):
        return (
            f"people say 0 or 1, so the judge's {RELEVANT} and {LAST} "
            f"{'are written' if written else 'count'} as 1 beside theirs, and all "
            "below as 0"
        )
    if is_graded(people):
        return (
            f"the labels that stay are not grades from 0 to {LAST}, so "
            f"{_BY_RELEVANCE}: grade {RELEVANT} or {LAST}"
        )
    highest = max((max(row.values()) for row in people.values() if row), default=0)
    end = "; both are written as they are"
    if not written:
        theirs = f"people's above 0, the judge's {RELEVANT} and {LAST}"
        end = f", so {_BY_RELEVANCE}: {theirs}"
    return (
        f"people's grades end at {highest:g} and are not the judge's 0 to {LAST}{end}"
    )


@dataclass(frozen=True)
class JudgeReport:
    """The grades of a pool beside labels that stay, all that is written, and trust."""

    graded: GradedPool
    agreement: Agreement | None = None
    changes: GradeChanges | None = None
    labelled: int = 0
    existing: Labels | None = None
    written: Gold | None = None

    def tables(self) -> list[Table]:
        """What a person is shown."""
        tables = [self.graded.table([*self._label_notes()])]
        if self.agreement is not None:
            tables.append(self.agreement.table(self.changes))
        elif self.changes is not None:
            tables.append(self.changes.table())
        return tables

    def _label_notes(self) -> Iterator[str]:
        """What must be known before runs are scored with these labels."""
        if self.agreement is None:
            yield "uncalibrated: --agreement GOLD compares this judge with people"
        scale = self._scale()
        if scale is None:
            yield (
                f"relevant: grades {RELEVANT} and {LAST}; grade 1 does not help to "
                f"answer: score with --threshold {RELEVANT}, or it counts as relevant "
                "too"
            )
        if self.labelled:
            documents = counted(self.labelled, "document")
            text = f"{documents} of the pool had labels, which stay"
            yield f"kept: {text}; every label says whose it is"
        if self.written is not None and self.existing:
            sources = self.written.labellers()
            people = counted(sources.pop("human", 0), "label")
            others = ", ".join(f"{count} by {name}" for name, count in sources.items())
            yield f"written: {people} by people, {others or 'none by a judge'}"
        if scale:
            yield f"scale: {scale}"

    def _scale(self) -> str | None:
        """How grades are written beside labels on another scale."""
        if not self.existing or is_graded(self.existing):
            return None
        return _scale(self.existing, written=True)

    def to_dict(self, *, texts: bool = True) -> dict[str, Any]:
        """Everything in plain values; the judge's reasons may be left out."""
        return {
            "schema_version": REPORT_VERSION,
            "source": self.graded.gold.name,
            "compared": self.agreement is not None,
            "kept": self.labelled,
            "scale": self._scale(),
            "notes": self.tables()[0].notes,
            **self.graded.to_dict(texts=texts),
            "agreement": None if self.agreement is None else self.agreement.to_dict(),
            "flips": None if self.changes is None else self.changes._asdict(),
        }
