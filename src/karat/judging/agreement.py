"""Agreement: how far a judge can be trusted, measured against people and itself."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.evaluations import Interval
from karat.data.runs import Labels
from karat.data.tables import DASH, Table, counted, number
from karat.errors import DataError
from karat.judging.concordance import (
    Figures,
    cohen_kappa,
    figures,
    krippendorff_alpha,
)
from karat.judging.ordering import Order
from karat.stats import mean_interval

__all__ = [
    "Agreement",
    "Flips",
    "Rate",
    "agreement",
    "cohen_kappa",
    "flips",
    "krippendorff_alpha",
]

_COLUMNS = ("agreement", "value", "95% interval", "n")
_NAMES = ("equal grades", "Cohen's kappa", "kappa, quadratic", "Krippendorff's alpha")


class Rate(NamedTuple):
    """How often the judge says the same as people about one class of labels."""

    name: str
    rate: float
    n: int
    interval: Interval | None


class Flips(NamedTuple):
    """How many grades changed when the same was asked again.

    Attributes:
        changed: number of grades that changed.
        n: number of grades.
        interval: how far their share may be off, for other queries than these.
    """

    changed: int
    n: int
    interval: Interval | None = None

    @property
    def rate(self) -> float:
        """The share that changed."""
        return self.changed / self.n if self.n else float("nan")

    def row(self) -> list[str]:
        """Its row in a table of agreement."""
        interval = _between(self.interval)
        return ["changed when asked again", number(self.rate), interval, str(self.n)]

    def table(self) -> Table:
        """What a person is shown when nothing else was measured."""
        return Table(_COLUMNS, [self.row()])

    def to_dict(self) -> dict[str, Any]:
        """The figures in plain values."""
        return {"flips": self.plain()}

    def plain(self) -> dict[str, Any]:
        """Its fields in plain values."""
        return {**self._asdict(), "interval": self.interval and self.interval[:2]}


def flips(before: Labels, after: Labels) -> Flips:
    """Compare two passes of one judge over the same pairs."""
    one, other, query = _paired(before, after)
    changed = one != other
    interval = mean_interval(changed.astype(float), binary=True, clusters=query)
    return Flips(int(np.count_nonzero(changed)), len(one), interval)


@dataclass(frozen=True)
class Agreement:
    """How far a judge agrees with people on the documents that both labelled.

    Attributes:
        n: number of documents both labelled.
        queries: number of queries they are about.
        figures: share of equal grades, Cohen's kappa plain and with quadratic weights,
            and Krippendorff's alpha for ordered grades.
        rates: per class of people's labels, how often the judge says the same.
        order: how alike the systems are ordered, when there are several.
        flips: how many grades changed when asked again, when they were.
    """

    n: int
    queries: int
    figures: Figures
    rates: tuple[Rate, ...]
    order: Order | None = None
    flips: Flips | None = None

    @property
    def equal(self) -> float:
        """Share of equal grades."""
        return self.figures.equal.value

    @property
    def kappa(self) -> float:
        """Cohen's kappa."""
        return self.figures.kappa.value

    @property
    def weighted_kappa(self) -> float:
        """The same with quadratic weights."""
        return self.figures.weighted_kappa.value

    @property
    def alpha(self) -> float:
        """Krippendorff's alpha for ordered grades."""
        return self.figures.alpha.value

    def table(self) -> Table:
        """What a person is shown."""
        count = str(self.n)
        rows = [
            [name, number(value), _between(interval), count]
            for name, (value, interval) in zip(_NAMES, self.figures, strict=True)
        ]
        rows += [
            [rate.name, number(rate.rate), _between(rate.interval), str(rate.n)]
            for rate in self.rates
        ]
        if self.order is not None:
            rows.append(self.order.row())
        if self.flips is not None:
            rows.append(self.flips.row())
        notes = [
            f"intervals are over {counted(self.queries, 'query')}; n counts documents"
            + ("" if self.order is None else ", for the order queries")
        ]
        if any(math.isnan(figure.value) for figure in self.figures):
            text = "people and judge gave one and the same grade throughout"
            notes.append(f"{DASH}: {text}, so chance explains it all")
        return Table(_COLUMNS, rows, notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """The figures in plain values; null is one that does not exist."""
        named = self.figures._asdict()
        return {
            "n": self.n,
            "queries": self.queries,
            **{name: _plain(figure.value) for name, figure in named.items()},
            "intervals": {
                name: figure.interval and figure.interval[:2]
                for name, figure in named.items()
            },
            "rates": [
                {**rate._asdict(), "interval": rate.interval and rate.interval[:2]}
                for rate in self.rates
            ],
            "order": None
            if self.order is None
            else {name: _plain(value) for name, value in self.order._asdict().items()},
            "flips": None if self.flips is None else self.flips.plain(),
        }


def agreement(
    human: Labels,
    judged: Labels,
    *,
    order: Order | None = None,
    flipped: Flips | None = None,
) -> Agreement:
    """Compare a judge's labels with people's, on what both labelled.

    Documents of one query are not independent: all intervals are over queries.

    Example:
        >>> people = {"q": {"a": 3, "b": 0, "c": 1, "d": 0}}
        >>> agreement(people, {"q": {"a": 3, "b": 0, "c": 0, "d": 0}}).kappa
        0.5555555555555556
    """
    one, other, query = _paired(human, judged)
    if not len(one):
        raise DataError(
            "people and judge have labelled no document in common",
            hint="judge the runs that people judged, with the same ids",
        )
    same = one == other
    classes = [
        (f"people say {grade:g}", one == grade, same)
        for grade in np.unique(one).tolist()
    ]
    relevant = one > 0
    classes += [
        ("relevant, judge agrees", relevant, other > 0),
        ("not relevant, judge agrees", ~relevant, other <= 0),
    ]
    rates = (_rate(name, says[of], query[of]) for name, of, says in classes)
    return Agreement(
        n=len(one),
        queries=int(query[-1]) + 1,
        figures=figures(one, other, query),
        rates=tuple(rate for rate in rates if rate.n),
        order=order,
        flips=flipped,
    )


def _rate(name: str, same: Bools, query: Ints) -> Rate:
    values = same.astype(float)
    mean = float(values.mean()) if len(values) else float("nan")
    interval = mean_interval(values, binary=True, clusters=query)
    return Rate(name, mean, len(values), interval)


def _paired(one: Labels, other: Labels) -> tuple[Floats, Floats, Ints]:
    """The labels that both gave, side by side, and the number of their query."""
    both = [
        [(grade, given[name]) for name, grade in row.items() if name in given]
        for query, row in one.items()
        if (given := other.get(query, {}))
    ]
    both = [row for row in both if row]
    pairs = np.array([pair for row in both for pair in row], float).reshape(-1, 2)
    query = np.repeat(np.arange(len(both)), [len(row) for row in both])
    return pairs[:, 0], pairs[:, 1], query


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def _between(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f"{number(interval.low)} .. {number(interval.high)}"
