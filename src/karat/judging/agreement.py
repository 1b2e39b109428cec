"""Agreement: how far a judge says what people say, and what it said itself before."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.intervals import Interval
from karat.data.runs import Labels
from karat.data.tables import DASH, Table, counted, number
from karat.errors import DataError
from karat.judging.agreement_figures import Order, Rate, figure_facts, plain, rate_of
from karat.stats.agreement import (
    AgreementFigures,
    agreement_figures,
    krippendorff_alpha,
)

_COLUMNS = ("agreement", "value", "95% interval", "n")
_NAMES = (
    *("equal grades", "Cohen's kappa", "kappa, linear", "kappa, quadratic"),
    *("Krippendorff's alpha", "Spearman's rho"),
)
# Landis and Koch call a kappa up to this slight.
_SLIGHT = 0.2


class Flips(NamedTuple):
    """How many grades changed when the same was asked again.

    Attributes:
        changed: number of grades that changed.
        n: number of documents that were graded both times.
        interval: how far their share may be off, for other queries than these.
        failed: number of documents without a grade the second time, which count
            neither way.
    """

    changed: int
    n: int
    interval: Interval | None = None
    failed: int = 0

    @property
    def rate(self) -> float:
        """The share that changed."""
        return self.changed / self.n if self.n else float("nan")

    def row(self) -> list[str]:
        """Its row in a table of agreement."""
        return Rate("changed when asked again", self.rate, self.n, self.interval).row()

    def notes(self) -> list[str]:
        """What could not be asked again."""
        if not self.failed:
            return []
        failed = counted(self.failed, "document")
        return [f"asked again: {failed} without a grade, which count neither way"]

    def table(self) -> Table:
        """A table of this alone, for a judge that was not compared with people."""
        return Table(_COLUMNS, [self.row()], notes=self.notes())

    def to_dict(self) -> Any:
        """Its fields in plain values."""
        return plain(self)


@dataclass(frozen=True)
class Agreement:
    """How far a judge agrees with people on the documents that both labelled.

    Attributes:
        n: number of documents both labelled.
        queries: number of queries they are about.
        figures: share of equal grades, Cohen's kappa plain and with linear and
            quadratic weights, Krippendorff's alpha for ordered grades, Spearman's rho.
        rates: per class of people's labels, how often the judge says the same.
        order: how alike the runs are ordered, when there are several.
        constant: who gave one grade only, so that kappa tells nothing.
        scale: what was done where people and judge use different grades.
        raters: alpha of several people alone, and of them and the judge.
    """

    n: int
    queries: int
    figures: AgreementFigures
    rates: tuple[Rate, ...]
    order: Order | None = None
    constant: tuple[str, ...] = ()
    scale: str | None = None
    raters: tuple[Rate, ...] = ()

    def table(self, flips: Flips | None = None) -> Table:
        """Every figure with its interval, and what changed when asked again."""
        figures = [
            Rate(name, value, self.n, interval)
            for name, (value, interval) in zip(_NAMES, self.figures, strict=True)
        ]
        rows = [rate.row() for rate in (*figures, *self.raters, *self.rates)]
        basis = (
            f"intervals are over {counted(self.queries, 'query')}; n counts documents"
        )
        notes = [basis if self.order is None else f"{basis}, for the order queries"]
        if self.order is not None:
            rows += self.order.rows()
        if flips is not None:
            rows.append(flips.row())
            notes += flips.notes()
        return Table(_COLUMNS, rows, notes=[*notes, *self.notes()])

    def notes(self) -> list[str]:
        """What must be known to read the figures, and where they are poor."""
        notes = [] if self.scale is None else [f"scale: {self.scale}"]
        kappa, interval = self.figures.kappa
        if len(self.constant) > 1 and math.isnan(kappa):
            text = "people and judge gave one and the same grade throughout"
            notes.append(f"{DASH}: {text}, so chance explains it all")
        elif self.constant:
            who = " and ".join(self.constant)
            text = "kappa is 0 however often both agree: nothing is beyond chance"
            notes.append(f"kappa: {who} gave one grade only, so {text}")
        elif kappa <= _SLIGHT:
            text = "this judge hardly agrees with people beyond chance"
            notes.append(f"agreement: {text}")
        elif interval is not None and interval.low <= _SLIGHT:
            notes.append(
                "agreement: this judge may hardly agree with people beyond chance: by "
                f"these {counted(self.queries, 'query')} kappa may be as low as "
                f"{number(interval.low)}"
            )
        return notes + ([] if self.order is None else self.order.notes())

    def to_dict(self) -> Any:
        """The figures in plain values; null is one that does not exist."""
        return plain(
            {
                "n": self.n,
                "queries": self.queries,
                "scale": self.scale,
                **figure_facts(self.figures),
                "rates": self.rates,
                "raters": self.raters,
                "order": None if self.order is None else self.order.to_dict(),
                "notes": self.notes(),
            }
        )


def middle(raters: Sequence[Labels]) -> Labels:
    """What raters say together: the label in the middle, the lower of two.

    Example:
        >>> middle([{"q": {"a": 3}}, {"q": {"a": 1, "b": 2}}])
        {'q': {'a': 1, 'b': 2}}
    """
    given: dict[str, dict[str, list[float]]] = {}
    for labels in raters:
        for query, row in labels.items():
            for name, grade in row.items():
                given.setdefault(query, {}).setdefault(name, []).append(grade)
    return {
        query: {name: median_low(grades) for name, grades in row.items()}
        for query, row in given.items()
    }


def rater_alphas(people: Sequence[Labels], judged: Labels) -> tuple[Rate, ...]:
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
        return ()
    table = np.array(
        [[by.get(q, {}).get(n, np.nan) for q, n in pairs] for by in (*people, judged)],
        float,
    )
    name, n = f"alpha, {counted(len(people), 'rater')}", len(pairs)
    return (
        Rate(name, krippendorff_alpha(*table[:-1]), n, None),
        Rate(f"{name} and the judge", krippendorff_alpha(*table), n, None),
    )


def agreement(
    human: Labels,
    judged: Labels,
    *,
    threshold: float | None = None,
    order: Order | None = None,
    scale: str | None = None,
    raters: tuple[Rate, ...] = (),
) -> Agreement:
    """Compare a judge's labels with people's, on what both labelled.

    Documents of one query are not independent: all intervals are over queries.

    Args:
        human: labels by people.
        judged: labels by the judge, on the same scale.
        threshold: the smallest grade that is relevant; by default any positive one.
        order: how alike both order the runs.
        scale: what was done to bring the labels to one scale.
        raters: alpha of several people.

    Example:
        >>> people = {"q": {"a": 3, "b": 0, "c": 1, "d": 0}}
        >>> judge = {"q": {"a": 3, "b": 0, "c": 0, "d": 0}}
        >>> agreement(people, judge).figures.kappa.value
        0.5555555555555556
    """
    one, other, query = _paired(human, judged)
    if not len(one):
        raise DataError(
            "people and judge have labelled no document in common",
            hint="judge the runs that people judged, with the same ids",
        )
    rates = [
        rate_of(name, same[of], query[of])
        for name, of, same in _classes(one, other, threshold)
        if of.any()
    ]
    both = {"people": one, "the judge": other}
    return Agreement(
        n=len(one),
        queries=int(query[-1]) + 1,
        figures=agreement_figures(one, other, query),
        rates=tuple(rates),
        order=order,
        constant=tuple(who for who, grades in both.items() if np.ptp(grades) == 0),
        scale=scale,
        raters=raters,
    )


def flips(before: Labels, after: Labels, *, failed: int = 0) -> Flips:
    """Compare two passes of one judge over the same documents."""
    one, other, query = _paired(before, after)
    changed = rate_of("", one != other, query)
    return Flips(int((one != other).sum()), changed.n, changed.interval, failed)


def _paired(one: Labels, other: Labels) -> tuple[Floats, Floats, Ints]:
    """The labels that both gave, side by side, and the index of their query."""
    shared = [
        [(grade, given[name]) for name, grade in row.items() if name in given]
        for query, row in one.items()
        if (given := other.get(query, {}))
    ]
    shared = [row for row in shared if row]
    pairs = np.array([pair for row in shared for pair in row], float).reshape(-1, 2)
    query = np.repeat(np.arange(len(shared)), [len(row) for row in shared])
    return pairs[:, 0], pairs[:, 1], query


def _classes(
    one: Floats, other: Floats, threshold: float | None
) -> list[tuple[str, Bools, Bools]]:
    """Classes of people's labels: name, which belong, and where the judge agrees."""
    relevant, found = (
        given > 0 if threshold is None else given >= threshold for given in (one, other)
    )
    names = ("relevant, judge agrees", "not relevant, judge agrees")
    if threshold is not None:
        names = (
            f"people say {threshold:g} or more, judge too",
            f"people say less than {threshold:g}, judge too",
        )
    same = relevant == found
    classes = [(names[0], relevant, same), (names[1], ~relevant, same)]
    grades = np.unique(one).tolist()
    if set(grades) <= {0, 1} and threshold is None:
        # Each grade would be shown twice.
        return classes
    equal = one == other
    return [(f"people say {g:g}, judge too", one == g, equal) for g in grades] + classes
