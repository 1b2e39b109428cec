"""Agreement: how far a judge says what people say."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.runs import Labels
from karat.data.scores import Interval
from karat.data.tables import DASH, Table, counted, number
from karat.errors import DataError
from karat.judging.concordance import (
    Figures,
    cohen_kappa,
    figures,
    krippendorff_alpha,
)
from karat.judging.ordering import Order
from karat.judging.retesting import COLUMNS, Flips, limits, paired
from karat.stats import mean_interval

__all__ = [
    "Agreement",
    "Rate",
    "agreement",
    "cohen_kappa",
    "krippendorff_alpha",
]

_NAMES = ("equal grades", "Cohen's kappa", "kappa, quadratic", "Krippendorff's alpha")
_POOR = 0.2


class Rate(NamedTuple):
    """How often the judge says the same as people about one class of labels."""

    name: str
    rate: float
    n: int
    interval: Interval | None


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
        unvaried: who gave one grade only, so that kappa tells nothing.
        scale: what was done where people and judge use different grades.
    """

    n: int
    queries: int
    figures: Figures
    rates: tuple[Rate, ...]
    order: Order | None = None
    unvaried: tuple[str, ...] = ()
    scale: str | None = None

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

    def table(self, flipped: Flips | None = None) -> Table:
        """What a person is shown, with what changed when asked again."""
        count = str(self.n)
        rows = [
            [name, number(value), limits(interval), count]
            for name, (value, interval) in zip(_NAMES, self.figures, strict=True)
        ]
        rows += [
            [rate.name, number(rate.rate), limits(rate.interval), str(rate.n)]
            for rate in self.rates
        ]
        if self.order is not None:
            rows.append(self.order.row())
        if flipped is not None:
            rows.append(flipped.row())
        notes = [
            f"intervals are over {counted(self.queries, 'query')}; n counts documents"
            + ("" if self.order is None else ", for the order queries")
        ]
        notes += [] if flipped is None else flipped.notes()
        return Table(COLUMNS, rows, notes=[*notes, *self.notes()])

    def notes(self) -> list[str]:
        """What must be known to read the figures, and where they are poor."""
        notes = [] if self.scale is None else [f"scale: {self.scale}"]
        if len(self.unvaried) > 1 and math.isnan(self.kappa):
            text = "people and judge gave one and the same grade throughout"
            notes.append(f"{DASH}: {text}, so chance explains it all")
        elif self.unvaried:
            who = " and ".join(self.unvaried)
            text = "kappa is 0 however often both agree: nothing is beyond chance"
            notes.append(f"kappa: {who} gave one grade only, so {text}")
        elif poor := self._poor():
            notes.append(f"agreement: {poor}")
        return notes + ([] if self.order is None else self.order.notes())

    def _poor(self) -> str | None:
        """A sentence where the judge may be hardly better than chance."""
        kappa, interval = self.figures.kappa
        if kappa <= _POOR:
            return "this judge hardly agrees with people beyond chance"
        if interval is not None and interval.low <= _POOR:
            return (
                "this judge may hardly agree with people beyond chance: by these "
                f"{counted(self.queries, 'query')} kappa may be as low as "
                f"{number(interval.low)}"
            )
        return None

    def to_dict(self) -> dict[str, Any]:
        """The figures in plain values; null is one that does not exist."""
        named = self.figures._asdict()
        return {
            "n": self.n,
            "queries": self.queries,
            "scale": self.scale,
            **{name: _plain(figure.value) for name, figure in named.items()},
            "intervals": {
                name: figure.interval and figure.interval[:2]
                for name, figure in named.items()
            },
            "rates": [
                {**rate._asdict(), "interval": rate.interval and rate.interval[:2]}
                for rate in self.rates
            ],
            "order": None if self.order is None else self.order.to_dict(),
            "notes": self.notes(),
        }


def agreement(
    human: Labels,
    judged: Labels,
    *,
    line: float | None = None,
    order: Order | None = None,
    scale: str | None = None,
) -> Agreement:
    """Compare a judge's labels with people's, on what both labelled.

    Documents of one query are not independent: all intervals are over queries.

    Args:
        human: labels by people.
        judged: labels by the judge, on the same scale.
        line: the smallest grade that is relevant; any positive one unless told.
        order: how alike both order the systems.
        scale: what was done to bring the labels to one scale.

    Example:
        >>> people = {"q": {"a": 3, "b": 0, "c": 1, "d": 0}}
        >>> agreement(people, {"q": {"a": 3, "b": 0, "c": 0, "d": 0}}).kappa
        0.5555555555555556
    """
    one, other, query = paired(human, judged)
    if not len(one):
        raise DataError(
            "people and judge have labelled no document in common",
            hint="judge the runs that people judged, with the same ids",
        )
    rates = [
        _rate(name, says[of], query[of])
        for name, of, says in _classes(one, other, line)
    ]
    both = {"people": one, "the judge": other}
    return Agreement(
        n=len(one),
        queries=int(query[-1]) + 1,
        figures=figures(one, other, query),
        rates=tuple(rate for rate in rates if rate.n),
        order=order,
        unvaried=tuple(who for who, said in both.items() if np.ptp(said) == 0),
        scale=scale,
    )


def _classes(
    one: Floats, other: Floats, line: float | None
) -> list[tuple[str, Bools, Bools]]:
    """Classes of people's labels: name, which belong, and where the judge agrees."""
    relevant, found = (
        given > 0 if line is None else given >= line for given in (one, other)
    )
    names = ("relevant, judge agrees", "not relevant, judge agrees")
    if line is not None:
        names = (
            f"people say {line:g} or more, judge too",
            f"people say less than {line:g}, judge too",
        )
    classes = [(names[0], relevant, found), (names[1], ~relevant, ~found)]
    grades = np.unique(one).tolist()
    if set(grades) <= {0, 1} and line is None:
        # Each grade would be shown twice.
        return classes
    same = one == other
    return [(f"people say {g:g}, judge too", one == g, same) for g in grades] + classes


def _rate(name: str, same: Bools, query: Ints) -> Rate:
    values = same.astype(float)
    mean = float(values.mean()) if len(values) else float("nan")
    interval = mean_interval(values, binary=True, clusters=query)
    return Rate(name, mean, len(values), interval)


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
