"""Agreement: two columns of labels, a judge's beside those of people or its own.

They label the same documents, or the same claims. Items of one query are alike, so all
intervals are over queries. How a judge of claims compares is kept beside the journal,
so that later evaluations by the same judge are called calibrated.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median_low
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.intervals import Interval
from karat.data.runs import Labels
from karat.data.tables import DASH, Table, counted, number
from karat.errors import DataError, FormatError
from karat.reading.files import decode_json, decode_text, open_binary
from karat.reading.source import placed
from karat.stats import mean_interval
from karat.stats.agreement import (
    AgreementFigures,
    agreement_figures,
    krippendorff_alpha,
)
from karat.stats.rank_correlation import order_correlation, spearman_rho
from karat.writing import write_file

_COLUMNS = ("agreement", "value", "95% interval", "n")
_FIGURES = {
    "equal": "equal grades",
    "kappa": "Cohen's kappa",
    "linear_kappa": "kappa, linear",
    "weighted_kappa": "kappa, quadratic",
    "alpha": "Krippendorff's alpha",
    "spearman": "Spearman's rho",
}
# Of yes and no, all kappas are the same.
_OF_CLAIMS = {"equal": "equal verdicts", **{k: _FIGURES[k] for k in ("kappa", "alpha")}}
_CLASSES = {
    "document": ("relevant, judge agrees", "not relevant, judge agrees"),
    "claim": ("people say supported, judge too", "people say not supported, judge too"),
}
# Landis and Koch call a kappa up to this slight.
_SLIGHT = 0.2
_FILE = "calibration.json"
_IDS = ("id", "query_id", "qid")


class Rate(NamedTuple):
    """A figure, the number of labels behind it, and its interval over queries."""

    name: str
    rate: float
    n: int
    interval: Interval | None = None

    def row(self) -> list[str]:
        """Its row in a table of agreement."""
        limits = " .. ".join(map(number, self.interval or ()))
        return [self.name, number(self.rate), limits, str(self.n)]


class Order(NamedTuple):
    """How alike people and judge order the runs, on queries that both score for all."""

    metric: str
    people: Mapping[str, float]
    judge: Mapping[str, float]
    tau: float
    interval: Interval | None
    rho: float
    queries: int
    labelled: int
    threshold: float | None = None

    @property
    def reversed(self) -> bool:
        """Whether the two orders contradict each other more than they agree."""
        return self.tau < 0

    def rows(self) -> list[list[str]]:
        """Its rows in a table of agreement."""
        name = f"order of {len(self.people)} runs"
        tau = Rate(f"{name}, tau", self.tau, self.queries, self.interval)
        return [tau.row(), Rate(f"{name}, Spearman's rho", self.rho, tau.n).row()]

    def notes(self) -> list[str]:
        """Both orders in words, and the queries they are based on."""
        every = counted(self.labelled, "query")
        basis = f"{self.queries} of {every}: those where both labels score every run"
        if self.queries == self.labelled:
            basis = f"all {every}"
        if not self.queries:
            return [f"order by {self.metric}: none, for it rests on {basis}"]
        people, judge = _ranking(self.people), _ranking(self.judge)
        cut = "" if self.threshold is None else f", threshold {self.threshold:g},"
        notes = [f"{self.metric}{cut} by people: {people}; by the judge: {judge}"]
        notes.append(f"order over {basis}")
        if math.isnan(self.tau):
            notes.append(
                f"{DASH} for tau: by one of the labels all runs score the same"
            )
        if self.reversed:
            text = "the runs come out the other way round by the judge"
            notes.append(f"order reversed: {text}; do not choose between them by it")
        return notes

    def to_dict(self) -> Any:
        """Its fields in plain values; null is one that does not exist."""
        facts = self._asdict()
        facts["queries_of_people"] = facts.pop("labelled")
        return _plain({**facts, "systems": len(self.people), "reversed": self.reversed})


def order_agreement(
    human: Mapping[str, Floats],
    judged: Mapping[str, Floats],
    metric: str,
    labelled: int,
    threshold: float | None = None,
) -> Order:
    """Compare the orders of runs by the scores that two columns of labels give them."""
    names = [*human]
    scores = np.array([[by[name] for name in names] for by in (human, judged)])
    scores = scores[:, :, ~np.isnan(scores).any(axis=(0, 1))]
    queries = scores.shape[-1]
    tau, interval, means = math.nan, None, np.full((2, len(names)), np.nan)
    if queries:
        means = scores.mean(axis=-1)
        tau, interval = order_correlation(*scores)
    people, judge = (dict(zip(names, row, strict=True)) for row in means.tolist())
    rho = spearman_rho(*means)
    return Order(
        metric, people, judge, tau, interval, rho, queries, labelled, threshold
    )


def _ranking(means: Mapping[str, float]) -> str:
    """The runs from best to worst, with their means: `b 0.7500 > a 0.5000`."""
    best = sorted(means.items(), key=lambda pair: -pair[1])
    text = "".join(f"{name} {number(mean)}" for name, mean in best[:1])
    for before, after in pairwise(best):
        sign = "=" if before[1] == after[1] else ">"
        text += f" {sign} {after[0]} {number(after[1])}"
    return text


class GradeChanges(NamedTuple):
    """How many grades changed when the same was asked again; failures count not."""

    changed: int
    n: int
    interval: Interval | None = None
    failed: int = 0

    def table(self) -> Table:
        """A row with the share, and a note on what could not be asked again."""
        share = self.changed / self.n if self.n else math.nan
        row = Rate("changed when asked again", share, self.n, self.interval).row()
        failed = counted(self.failed, "document")
        note = f"asked again: {failed} without a grade, which count neither way"
        return Table(_COLUMNS, [row], notes=[note] if self.failed else [])


@dataclass(frozen=True)
class Agreement:
    """How far a judge agrees with people on the documents or claims both labelled.

    `rates` say how often the judge says the same, per class of people's labels;
    `raters`, alpha of several people alone, and of them and the judge; `recall`, of
    claims, context_recall by people, by the judge, and the mean of the differences and
    of their absolute values; `constant`, who gave one label only.
    """

    n: int
    queries: int
    figures: AgreementFigures
    rates: Sequence[Rate]
    order: Order | None = None
    constant: Sequence[str] = ()
    scale: str | None = None
    raters: Sequence[Rate] = ()
    recall: Sequence[Rate] = ()
    failed: int = 0
    of: str = "document"

    def table(self, changes: GradeChanges | None = None) -> Table:
        """Every figure with its interval, and what changed when asked again."""
        shown = _OF_CLAIMS if self.of == "claim" else _FIGURES
        named = ((name, getattr(self.figures, key)) for key, name in shown.items())
        figures = [Rate(name, value, self.n, limits) for name, (value, limits) in named]
        every = (*figures, *self.raters, *self.rates, *self.recall)
        rows = [rate.row() for rate in every]
        basis = f"intervals are over {counted(self.queries, 'query')}; n counts "
        basis += counted(0, self.of)[2:]
        notes = [basis if self.order is None else f"{basis}, for the order queries"]
        if self.order is not None:
            rows += self.order.rows()
        if changes is not None:
            again = changes.table()
            rows += map(list, again.rows)
            notes += again.notes
        return Table(_COLUMNS, rows, notes=[*notes, *self.notes()])

    def notes(self) -> list[str]:
        """What must be known to read the figures, and where they are poor."""
        notes = [] if self.scale is None else [f"scale: {self.scale}"]
        if self.failed:
            notes.append(f"failed: {counted(self.failed, self.of)} without a verdict")
        kappa, interval = self.figures.kappa
        if len(self.constant) > 1 and math.isnan(kappa):
            text = "people and judge gave one and the same grade throughout"
            notes.append(f"{DASH}: {text}, so chance explains it all")
        elif self.constant:
            who = " and ".join(self.constant)
            text = "kappa is 0 however often both agree: nothing is beyond chance"
            notes.append(f"kappa: {who} gave one grade only, so {text}")
        elif kappa <= _SLIGHT:
            text = "this judge agrees with people little more than chance would"
            notes.append(f"agreement: {text}")
        elif interval is not None and interval.low <= _SLIGHT:
            notes.append(
                "agreement: this judge may agree with people little more than chance "
                f"would: by these {counted(self.queries, 'query')} kappa may be as low "
                f"as {number(interval.low)}"
            )
        return notes + ([] if self.order is None else self.order.notes())

    def to_dict(self) -> Any:
        """The figures in plain values; null is one that does not exist."""
        figures = self.figures._asdict()
        names = ("n", "queries", "scale", "rates", "raters", "recall", "failed")
        return _plain(
            {
                **{name: getattr(self, name) for name in names},
                **{name: figure.value for name, figure in figures.items()},
                "intervals": {name: each.interval for name, each in figures.items()},
                "order": None if self.order is None else self.order.to_dict(),
                "notes": self.notes(),
            }
        )


def agreement(
    human: Labels,
    judged: Labels,
    *,
    threshold: float | None = None,
    order: Order | None = None,
    scale: str | None = None,
    raters: Sequence[Labels] = (),
    failed: int = 0,
    of: str = "document",
) -> Agreement:
    """Compare a judge's labels with people's, on what both labelled."""
    one, other, query = _paired(human, judged)
    if not len(one):
        where = "these samples, word for word" if of == "claim" else "the same runs"
        raise DataError(
            f"people and judge have labelled no {of} in common",
            hint=f"label {counted(0, of)[2:]} of {where}, with the same ids",
        )
    both = {"people": one, "the judge": other}
    return Agreement(
        n=len(one),
        queries=int(query[-1]) + 1,
        figures=agreement_figures(one, other, query),
        rates=tuple(_rates(one, other, query, threshold, of)),
        order=order,
        constant=tuple(who for who, grades in both.items() if np.ptp(grades) == 0),
        scale=scale,
        raters=tuple(_rater_alphas(raters, judged)),
        recall=tuple(_recall(one, other, query)) if of == "claim" else (),
        failed=failed,
        of=of,
    )


def grade_changes(before: Labels, after: Labels, failed: int = 0) -> GradeChanges:
    """Compare two passes of one judge over the same documents."""
    one, other, query = _paired(before, after)
    changed = _rate_of("", one != other, query)
    return GradeChanges(int((one != other).sum()), changed.n, changed.interval, failed)


def middle(raters: Sequence[Labels]) -> Labels:
    """What raters say together: the label in the middle, the lower of two."""
    every: dict[str, dict[str, list[float]]] = {}
    for labels in raters:
        for query, row in labels.items():
            for name, grade in row.items():
                every.setdefault(query, {}).setdefault(name, []).append(grade)
    return {
        query: {name: median_low(grades) for name, grades in row.items()}
        for query, row in every.items()
    }


def _rater_alphas(people: Sequence[Labels], judged: Labels) -> Iterator[Rate]:
    """Alpha of several people alone, which a judge can hardly exceed, and with it.

    Only what two people or more labelled counts, and the judge too.
    """
    pairs = [
        (query, name)
        for query, row in judged.items()
        for name in row
        if sum(name in labels.get(query, {}) for labels in people) > 1
    ]
    if not pairs:
        return
    every = (*people, judged)
    table = np.array([[by.get(q, {}).get(n, np.nan) for q, n in pairs] for by in every])
    name, n = f"alpha, {counted(len(people), 'rater')}", len(pairs)
    table = table.astype(float)
    yield Rate(name, krippendorff_alpha(*table[:-1]), n)
    yield Rate(f"{name} and the judge", krippendorff_alpha(*table), n)


def _recall(one: Floats, other: Floats, query: Ints) -> Iterator[Rate]:
    """The context_recall that both columns of verdicts give each query."""
    count = np.bincount(query)
    people, judge = (np.bincount(query, weights=by) / count for by in (one, other))
    for name, values, low in (
        (" by people", people, 0.0),
        (" by the judge", judge, 0.0),
        (", judge - people", judge - people, -1.0),
        (", mean error", np.abs(judge - people), 0.0),
    ):
        yield _rate_of(f"context_recall{name}", values, bounds=(low, 1.0))


def _rate_of(
    name: str,
    values: Floats | Bools,
    query: Ints | None = None,
    bounds: tuple[float, float] | None = None,
) -> Rate:
    """A mean with its interval over queries; without bounds, of yes and no."""
    rows, limits = values.astype(float), bounds or (0.0, 1.0)
    interval = mean_interval(rows, binary=not bounds, bounds=limits, clusters=query)
    return Rate(name, float(rows.mean()) if len(rows) else np.nan, len(rows), interval)


def _paired(one: Labels, other: Labels) -> tuple[Floats, Floats, Ints]:
    """The labels that both gave, side by side, and the index of their query."""
    shared = [
        [(grade, others[name]) for name, grade in row.items() if name in others]
        for query, row in one.items()
        if (others := other.get(query, {}))
    ]
    shared = [row for row in shared if row]
    pairs = np.array([pair for row in shared for pair in row], float).reshape(-1, 2)
    query = np.repeat(np.arange(len(shared)), [len(row) for row in shared])
    return pairs[:, 0], pairs[:, 1], query


def _rates(
    one: Floats, other: Floats, query: Ints, threshold: float | None, of: str
) -> Iterator[Rate]:
    """How often the judge says the same, for each grade and of what is relevant."""
    human, judge = (
        by > 0 if threshold is None else by >= threshold for by in (one, other)
    )
    names = _CLASSES[of]
    if threshold is not None:
        names = (
            f"people say {threshold:g} or more, judge too",
            f"people say less than {threshold:g}, judge too",
        )
    grades = np.unique(one).tolist()
    if threshold is not None or not {*grades} <= {0, 1}:
        for grade in grades:
            rows = one == grade
            name = f"people say {grade:g}, judge too"
            yield _rate_of(name, other[rows] == grade, query[rows])
    for name, rows in zip(names, (human, ~human), strict=True):
        if rows.any():
            yield _rate_of(name, (human == judge)[rows], query[rows])


def _plain(fact: Any) -> Any:
    """Facts as JSON can hold them: null for NaN, intervals as two numbers."""
    if isinstance(fact, Interval):
        return fact
    if hasattr(fact, "_asdict"):
        fact = fact._asdict()
    if isinstance(fact, Mapping):
        return {name: _plain(value) for name, value in fact.items()}
    if isinstance(fact, list | tuple):
        return [_plain(value) for value in fact]
    return None if isinstance(fact, float) and math.isnan(fact) else fact


def claim_labels(path: str | os.PathLike[str]) -> dict[str, dict[str, bool]]:
    """What people say of claims, from JSON Lines of samples."""
    with open_binary(path) as stream:
        lines = stream.read().split(b"\n")
    labels: dict[str, dict[str, bool]] = {}
    for line, data in enumerate(lines, 1):
        if not data.strip():
            continue
        try:
            query, claims = _read_sample(decode_json(decode_text(data, line), line))
        except FormatError as error:
            raise placed(error, path=os.fspath(path), line=line) from None
        labels.setdefault(query, {}).update(claims)
    if not any(labels.values()):
        raise FormatError("holds no claims", path=os.fspath(path))
    return labels


def _read_sample(record: Any) -> tuple[str, dict[str, bool]]:
    sample = record if isinstance(record, Mapping) else {}
    query = next((sample[key] for key in _IDS if key in sample), None)
    entries = sample.get("claims")
    if query is None or not isinstance(entries, list):
        raise FormatError("a line must be an object with an id and claims")
    claims = {}
    for entry in entries:
        facts = entry if isinstance(entry, Mapping) else {}
        text, supported = facts.get("text"), facts.get("supported")
        if not isinstance(text, str) or not isinstance(supported, bool):
            raise FormatError("a claim must have a text, and supported: true or false")
        claims[text] = supported
    return str(query), claims


def save_calibration(
    agreement: Agreement, judge: Mapping[str, Any], journal: Path
) -> None:
    """Keep how far a judge agrees with people, beside the journal of its replies."""
    path = journal.with_name(_FILE)
    judge = json.loads(json.dumps(judge))
    others = [entry for entry in _read_calibrations(path) if entry["judge"] != judge]
    others.append({"judge": judge, "agreement": agreement.to_dict()})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(others, indent=2) + "\n")


def calibration_of(judge: Mapping[str, Any], journal: Path | None) -> str | None:
    """In a sentence how far a judge agrees with people; None where it is not known."""
    if journal is None:
        return None
    for entry in _read_calibrations(journal.with_name(_FILE)):
        if entry["judge"] == json.loads(json.dumps(judge)):
            facts = entry["agreement"]
            kappa, (*_, error) = facts["kappa"], facts["recall"]
            return (
                f"against people on {counted(facts['n'], 'claim')}: kappa "
                f"{number(kappa)}, context_recall off by {number(error['rate'])} "
                "on average"
            )
    return None


def _read_calibrations(path: Path) -> list[Any]:
    if not path.exists():
        return []
    entries: list[Any] = decode_json(decode_text(path.read_bytes()))
    return entries
