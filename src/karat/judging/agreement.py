"""Agreement: how far a judge can be trusted, measured against people and itself."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats
from karat.data.evaluations import Interval
from karat.data.runs import Labels
from karat.data.tables import Table, number
from karat.errors import DataError
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


def cohen_kappa(one: Floats, other: Floats, *, quadratic: bool = False) -> float:
    """How much two raters agree beyond chance: 1 is always, 0 no more than chance.

    Args:
        one: grades of the first rater.
        other: grades of the second, of the same things.
        quadratic: a disagreement counts by the square of its distance.

    Returns:
        NaN where both raters give one and the same grade throughout.

    Example:
        >>> cohen_kappa(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
        0.5
    """
    grades, seen = _table(one, other)
    distance = np.subtract.outer(grades, grades).astype(float) ** 2
    weight = distance if quadratic else (distance > 0).astype(float)
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / seen.sum()
    chance = float((weight * expected).sum())
    return float("nan") if chance == 0 else 1 - float((weight * seen).sum()) / chance


def krippendorff_alpha(one: Floats, other: Floats) -> float:
    """Agreement of two raters on grades that have an order, beyond chance.

    The distance of two grades grows with the number of labels between them, so it
    does not matter what the grades are called. NaN where all labels are the same.

    Example:
        >>> round(krippendorff_alpha(np.array([0, 1, 2]), np.array([0, 1, 2])), 3)
        1.0
    """
    _, seen = _table(one, other)
    coincidence = seen + seen.T
    totals = coincidence.sum(axis=1)
    middle = totals.cumsum() - totals / 2
    distance = np.subtract.outer(middle, middle) ** 2
    n = float(totals.sum())
    expected = float((distance * np.outer(totals, totals)).sum()) / (n - 1)
    observed = float((distance * coincidence).sum())
    return float("nan") if expected == 0 else 1 - observed / expected


def _table(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """All grades, and how often each pair of them was given."""
    if len(one) != len(other) or not len(one):
        raise DataError(f"{len(one)} and {len(other)} grades cannot be compared")
    grades, place = np.unique(np.concatenate([one, other]), return_inverse=True)
    seen = np.zeros((len(grades), len(grades)))
    np.add.at(seen, (place[: len(one)], place[len(one) :]), 1)
    return grades, seen


class Rate(NamedTuple):
    """How often the judge says the same as people about one class of labels."""

    name: str
    rate: float
    n: int
    interval: Interval | None


class Flips(NamedTuple):
    """How many grades changed when the same was asked again."""

    changed: int
    n: int

    @property
    def rate(self) -> float:
        """The share that changed."""
        return self.changed / self.n if self.n else float("nan")

    def row(self) -> list[str]:
        """Its row in a table of agreement."""
        return ["changed when asked again", number(self.rate), "", str(self.n)]

    def table(self) -> Table:
        """What a person is shown when nothing else was measured."""
        return Table(_COLUMNS, [self.row()])

    def to_dict(self) -> dict[str, Any]:
        """The figures in plain values."""
        return {"flips": self._asdict()}


def flips(before: Labels, after: Labels) -> Flips:
    """Compare two passes of one judge over the same pairs."""
    one, other = _paired(before, after)
    return Flips(int(np.count_nonzero(one != other)), len(one))


@dataclass(frozen=True)
class Agreement:
    """How far a judge agrees with people on the documents that both labelled.

    Attributes:
        n: number of documents both labelled.
        equal: share of equal grades.
        kappa: Cohen's kappa.
        weighted_kappa: the same with quadratic weights.
        alpha: Krippendorff's alpha for ordered grades.
        rates: per class of people's labels, how often the judge says the same.
        order: how alike the systems are ordered, when there are several.
        flips: how many grades changed when asked again, when they were.
    """

    n: int
    equal: float
    kappa: float
    weighted_kappa: float
    alpha: float
    rates: tuple[Rate, ...]
    order: Order | None = None
    flips: Flips | None = None

    def table(self) -> Table:
        """What a person is shown."""
        rows = [
            ["equal grades", number(self.equal), "", str(self.n)],
            ["Cohen's kappa", number(self.kappa), "", str(self.n)],
            ["kappa, quadratic", number(self.weighted_kappa), "", str(self.n)],
            ["Krippendorff's alpha", number(self.alpha), "", str(self.n)],
        ]
        rows += [
            [
                rate.name,
                number(rate.rate),
                "" if rate.interval is None else _between(*rate.interval[:2]),
                str(rate.n),
            ]
            for rate in self.rates
        ]
        if self.order is not None:
            tau, low, high, _, queries = self.order
            rows.append(
                ["order of runs, tau", number(tau), _between(low, high), str(queries)]
            )
        if self.flips is not None:
            rows.append(self.flips.row())
        return Table(_COLUMNS, rows)

    def to_dict(self) -> dict[str, Any]:
        """The figures in plain values; null is one that does not exist."""
        figures = ("equal", "kappa", "weighted_kappa", "alpha")
        return {
            "n": self.n,
            **{name: _plain(getattr(self, name)) for name in figures},
            "rates": [
                {**rate._asdict(), "interval": rate.interval and rate.interval[:2]}
                for rate in self.rates
            ],
            "order": None
            if self.order is None
            else {name: _plain(value) for name, value in self.order._asdict().items()},
            "flips": None if self.flips is None else self.flips._asdict(),
        }


def agreement(
    human: Labels,
    judged: Labels,
    *,
    order: Order | None = None,
    flipped: Flips | None = None,
) -> Agreement:
    """Compare a judge's labels with people's, on what both labelled.

    Example:
        >>> people = {"q": {"a": 3, "b": 0, "c": 1, "d": 0}}
        >>> agreement(people, {"q": {"a": 3, "b": 0, "c": 0, "d": 0}}).kappa
        0.5555555555555556
    """
    one, other = _paired(human, judged)
    if not len(one):
        raise DataError(
            "people and judge have labelled no document in common",
            hint="judge the runs that people judged, with the same ids",
        )
    same = one == other
    rates = [
        _rate(f"people say {grade:g}", same[one == grade])
        for grade in np.unique(one).tolist()
    ]
    relevant = one > 0
    rates += [
        _rate("relevant, judge agrees", (other > 0)[relevant]),
        _rate("not relevant, judge agrees", (other <= 0)[~relevant]),
    ]
    return Agreement(
        n=len(one),
        equal=float(same.mean()),
        kappa=cohen_kappa(one, other),
        weighted_kappa=cohen_kappa(one, other, quadratic=True),
        alpha=krippendorff_alpha(one, other),
        rates=tuple(rate for rate in rates if rate.n),
        order=order,
        flips=flipped,
    )


def _rate(name: str, same: Bools) -> Rate:
    values = same.astype(float)
    mean = float(values.mean()) if len(values) else float("nan")
    return Rate(name, mean, len(values), mean_interval(values, binary=True))


def _paired(one: Labels, other: Labels) -> tuple[Floats, Floats]:
    """The labels that both gave, side by side."""
    pairs = [
        (grade, given[name])
        for query, row in one.items()
        if (given := other.get(query, {}))
        for name, grade in row.items()
        if name in given
    ]
    both = np.array(pairs, float).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def _between(low: float, high: float) -> str:
    return f"{number(low)} .. {number(high)}"
