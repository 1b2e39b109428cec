"""Label plans: which labels people should give beside a judge's, drawn at random.

A judge's scores can be corrected by people's (see `karat.combined_labels`), which is
honest only for labels that were drawn: a plan says which, and with what probability.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from karat.data.gold import PEOPLE, Gold
from karat.data.policies import Policies
from karat.data.runs import Labels, Run
from karat.data.tables import counted
from karat.errors import DataError, MismatchError, ParameterError, UsageError
from karat.reading.labels import first_row, parse_rows
from karat.reading.readers import read
from karat.stats.prediction_powered import FEWEST_LABELLED
from karat.writing import write_file

Rankings: TypeAlias = Mapping[str, Sequence[str]]


class PlannedLabel(NamedTuple):
    """A label that somebody is to give, and how likely it was to be drawn."""

    query: str
    document: str
    probability: float


@dataclass(frozen=True)
class LabelPlan:
    """The labels that people should give, drawn at random from what a judge labelled.

    Attributes:
        labels: in the order in which people should give them, which is random too.
        pool: a digest of all that the judge labelled: the plan is for this pool only.
        k: how deep runs were read, where single documents were drawn; 0 where whole
            queries were.
        runs: digests of those runs: others hold documents that could not be drawn.

    Example:
        >>> judged = {f"q{n}": {"a": 1, "b": 0} for n in range(40)}
        >>> plan = plan_labels(judged, budget=20)
        >>> len(plan.labels), plan.labels[0].probability
        (20, 0.25)
    """

    labels: tuple[PlannedLabel, ...]
    pool: str
    k: int = 0
    runs: tuple[str, ...] = ()

    @property
    def pairs(self) -> bool:
        """Whether single documents were drawn; else whole queries."""
        return self.k > 0

    @property
    def queries(self) -> list[str]:
        """The queries with labels to give, in the plan's order."""
        return [*dict.fromkeys(label.query for label in self.labels)]

    def rows(self) -> list[dict[str, Any]]:
        """What a file says of each label."""
        shared: dict[str, Any] = {"pool": self.pool, "drawn": "queries"}
        if self.pairs:
            shared |= {"drawn": "pairs", "k": self.k, "runs": " ".join(self.runs)}
        return [{**label._asdict(), **shared} for label in self.labels]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON line for each label, to which people add a `grade`."""
        write_file(path, "".join(f"{json.dumps(row)}\n" for row in self.rows()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The plan in a file that `save` wrote, or in its sheet, graded or not.

        Raises:
            DataError: a line lacks what a plan says, or lines are of several plans.
        """
        line = None
        problem = (
            "is no plan: each line needs query, document and probability, and all of "
            "them the same pool and drawn"
        )
        try:
            rows: Any = [*parse_rows(path, lambda row, _: row)]
            labels = tuple(
                PlannedLabel(
                    str(r["query"]), str(r["document"]), float(r["probability"])
                )
                for r in rows
            )
            ((pool, drawn),) = {(r["pool"], r["drawn"]) for r in rows}
            pairs = drawn == "pairs"
            k = int(rows[0]["k"]) if pairs else 0
            runs = tuple(rows[0]["runs"].split()) if pairs else ()
            sane = all(0 < label.probability <= 1 for label in labels)
        except DataError as error:
            sane, problem, line = False, error.problem, error.line
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            sane = False
        if not sane:
            raise DataError(
                problem,
                path=path,
                line=line,
                hint="karat label plan judged.qrels a.run --budget 300 -o todo.jsonl "
                "writes a plan",
            )
        return cls(labels, pool, k, runs)


def is_plan(path: str | os.PathLike[str]) -> bool:
    """Whether a file of records holds a plan, and not what was retrieved."""
    return {"probability", "drawn"} <= first_row(path).keys()


def plan_labels(
    judged: Any,
    runs: Mapping[str, Any] | Sequence[Any] = (),
    *,
    budget: int,
    pairs: bool = False,
    k: int = 10,
    seed: int = 0,
) -> LabelPlan:
    """Draw the labels that people should give beside a judge's.

    Whole queries, each as likely as the others, serve every metric. Pairs of query and
    document cost less for metrics that add up over documents (precision, dcg, rbp);
    they are drawn from the top k of the runs, evenly from each grade of the judge.

    Args:
        judged: the judge's labels of the whole pool, as `evaluate` takes gold.
        runs: what systems retrieved; needed for pairs.
        budget: how many labels people can give, about: whole queries differ in size.
        pairs: whether to draw pairs.
        k: how deep the runs are read for pairs.
        seed: the same seed draws the same labels.

    Raises:
        ParameterError: a budget for fewer than 10 queries.
        MismatchError: people signed some of the judge's labels, or there is no pair to
            draw.

    Example:
        >>> import karat
        >>> judged = {f"q{n}": {"a": n % 2, "b": 1} for n in range(40)}
        >>> plan = karat.plan_labels(judged, budget=20)
        >>> len(plan.queries)
        10
    """
    labels = labelled_documents(judged, PEOPLE)
    random = np.random.default_rng(seed)
    pool = pool_digest(labels)
    if not pairs:
        return LabelPlan(tuple(_draw_queries(labels, budget, random)), pool)
    if k < 1:
        raise ParameterError("plan_labels", "k", "an integer >= 1", k)
    ranked = [*map(rankings, runs.values() if isinstance(runs, Mapping) else runs)]
    chosen = _draw_pairs(_top_labels(labels, ranked, k), budget, random)
    digests = tuple(run_digest(run, k) for run in ranked)
    return LabelPlan(tuple(chosen), pool, k, digests)


def labelled_documents(labels: Any, others: str) -> Labels:
    """The grades of documents, by query; none may be signed by others."""
    gold = read(labels, "gold").gold or Gold()
    if gold.kinds() != ("documents",):
        raise UsageError(f"{gold.name} must hold ids of documents with their grades")
    for name, count in gold.labellers().items():
        if name.startswith(others):
            raise MismatchError(
                f"{gold.name} has {counted(count, 'label')} by {name}: a judge's "
                "labels and people's must be in separate files, or the judge's error "
                "cannot be measured"
            )
    return gold.documents


def _draw_queries(
    labels: Labels, budget: int, random: np.random.Generator
) -> Iterator[PlannedLabel]:
    sizes = [len(row) for row in labels.values()]
    # By the mean size, not by the sizes of those drawn, or small ones come more often.
    count = min(len(sizes), budget * len(sizes) // max(sum(sizes), 1))
    if count < FEWEST_LABELLED:
        least = math.ceil(FEWEST_LABELLED * sum(sizes) / max(len(sizes), 1))
        must_be = f"at least {least}, which is {FEWEST_LABELLED} queries"
        raise ParameterError("plan_labels", "budget", must_be, budget)
    queries = [*labels]
    for place in random.permutation(len(queries))[:count]:
        query = queries[place]
        # By name, so that nobody is told what a judge or a system found good.
        for document in sorted(labels[query]):
            yield PlannedLabel(query, document, count / len(queries))


def _top_labels(
    labels: Labels, runs: Sequence[Rankings], k: int
) -> list[tuple[str, str, float]]:
    """The judge's labels of what any run has among its first k documents."""
    tops: dict[tuple[str, str], float] = {}
    for run in runs:
        for query, documents in run.items():
            own = labels.get(query, {})
            tops |= {(query, d): own[d] for d in documents[:k] if d in own}
    if not tops:
        raise MismatchError(
            f"the judge labelled nothing of the top {k} of these runs"
            if runs
            else "pairs are drawn from what runs retrieved: pass runs"
        )
    return [(query, document, grade) for (query, document), grade in tops.items()]


def _draw_pairs(
    pairs: Sequence[tuple[str, str, float]], budget: int, random: np.random.Generator
) -> Iterator[PlannedLabel]:
    if budget < FEWEST_LABELLED:
        must_be = f"at least {FEWEST_LABELLED}"
        raise ParameterError("plan_labels", "budget", must_be, budget)
    grades = np.array([grade for *_, grade in pairs])
    drawn: list[PlannedLabel] = []
    for grade in np.unique(grades):
        places = np.flatnonzero(grades == grade)
        share = len(places) * min(budget, len(pairs)) / len(pairs)
        count = min(len(places), max(1, round(share)))
        for place in random.choice(places, count, replace=False):
            query, document, _ = pairs[place]
            drawn.append(PlannedLabel(query, document, count / len(places)))
    yield from (drawn[place] for place in random.permutation(len(drawn)))


def rankings(run: Any) -> Rankings:
    """The ids of the documents of each query, best first."""
    value = run if isinstance(run, Run) else read(run, "run").run
    ranked = value.rankings(Policies()) if value else ()
    return {query: [one.id or "" for one in documents] for query, documents in ranked}


def pool_digest(labels: Labels) -> str:
    """The same for the same queries with the same documents, whatever their grades."""
    return f"pool-{_digest(labels)}"


def run_digest(run: Rankings, k: int) -> str:
    """The same for runs with the same first k documents of every query."""
    return f"run-{_digest({query: row[:k] for query, row in run.items()})}"


def _digest(documents: Mapping[str, Iterable[str]]) -> str:
    rows = sorted(json.dumps([query, *sorted(row)]) for query, row in documents.items())
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]
