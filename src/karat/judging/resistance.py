"""Resistance: what planted tricks did to a judge, beyond what harmless words do."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from karat.data.scores import Interval
from karat.data.tables import Table, counted, number
from karat.judging.noise import RARE, Tally, by_chance, holm, passages_needed
from karat.judging.retesting import limits
from karat.judging.tricks import CONTROL
from karat.stats import mean_interval

__all__ = ["GRADE", "Attempt", "Probed", "Share"]

GRADE = "grade"
"""The figure of a judge that grades: it rises or not, with nothing in between."""

_SHOWN = 5
_WIDTH = 60
_ALL = "all tricks"
_SMALL = 0.0001
_TEST = "Fisher's exact test within passages, Holm-corrected over"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One trick in one passage, and what came of it.

    Attributes:
        trick: its name.
        family: the tricks it belongs with.
        passage: number of the passage; passages are what is counted.
        query: what was asked.
        document: where the passage is from.
        before: the judge's figure without the trick.
        after: the same with it: a grade, or a number of supported claims.
        share: how much of what could be talked round was, from 0 to 1.
        reason: the judge's own sentence.
    """

    trick: str
    family: str
    passage: int
    query: str
    document: str
    before: int
    after: int
    share: float
    reason: str = ""

    @property
    def name(self) -> str:
        """The trick with its family."""
        return _named(self.family, self.trick)


class Share(NamedTuple):
    """How often tricks work; every passage weighs the same.

    Attributes:
        name: the trick, or the family of tricks.
        rate: share of the attempts that worked, the mean over passages.
        interval: how far that may be off, given that other queries could be used.
        excess: how much more often they work than a harmless addition.
        p: how likely so many would work if they did no more than a harmless addition;
            corrected for the number of tricks, or of families.
        worked: number of attempts that worked, in whole or in part.
        attempts: number of attempts.
        passages: number of passages.
        failed: number of attempts without a valid answer, which count neither way.
    """

    name: str
    rate: float
    interval: Interval | None
    excess: float | None
    p: float | None
    worked: int
    attempts: int
    passages: int
    failed: int

    def row(self) -> list[str]:
        """Its row in the table."""
        return [
            self.name,
            number(self.rate),
            limits(self.interval),
            number(self.excess),
            _rare(self.p),
            f"{self.worked}/{self.attempts}",
            str(self.passages),
            str(self.failed),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The figures in plain values; null is one that does not exist."""
        interval = None if self.interval is None else [*self.interval[:2]]
        rate = None if math.isnan(self.rate) else self.rate
        return {**self._asdict(), "rate": rate, "interval": interval}


@dataclass(frozen=True)
class Probed:
    """How a judge held against planted tricks.

    Attributes:
        attempts: every trick in every passage, harmless additions among them.
        figure: what the judge's figure is, such as `grade`.
        failed: family and name of each trick to which there is no valid answer.
    """

    attempts: Sequence[Attempt]
    figure: str = GRADE
    failed: Sequence[tuple[str, str]] = ()

    @property
    def control(self) -> Share:
        """How often a harmless addition changes the judge's mind."""
        calm = [a for a in self.attempts if a.family == CONTROL]
        failed = sum(family == CONTROL for family, _ in self.failed)
        return self._share(CONTROL, calm, failed)._replace(excess=None, p=None)

    @property
    def families(self) -> list[Share]:
        """How often each family of tricks does."""
        return self._shares(lambda family, _: family)

    @property
    def tricks(self) -> list[Share]:
        """How often each trick does."""
        # One attempt in a passage works or does not; a mean of several lies between.
        return self._shares(_named, binary=self.figure == GRADE)

    @property
    def all(self) -> Share:
        """How often any of them does."""
        failed = sum(family != CONTROL for family, _ in self.failed)
        return self._share(_ALL, self._planted(), failed)

    @property
    def worst(self) -> list[Attempt]:
        """The clearest case of every trick that worked, the best trick first."""
        best: dict[str, list[Attempt]] = {}
        for attempt in self._planted():
            if attempt.share:
                best.setdefault(attempt.name, []).append(attempt)
        ordered = sorted(best.values(), key=lambda tried: -sum(a.share for a in tried))
        return [
            max(tried, key=lambda a: (a.share, a.after - a.before)) for tried in ordered
        ]

    def tables(self) -> list[Table]:
        """What a person is shown: how often what works, and the worst cases."""
        columns = ["planted trick", "talked round", "95% interval", "excess", "p"]
        columns += ["worked", "passages", "failed"]
        families = self.families
        queries = counted(len({attempt.query for attempt in self.attempts}), "query")
        shares = [self.control, *families, self.all]
        number_of = counted(len(families), "family")
        notes = [
            "excess: over the harmless addition in the same passages",
            f"p: the chance that harmless additions do as much, by {_TEST} {number_of}",
            f"families beyond chance: {self._proven(families)}",
            f"single tricks beyond chance: {self._proven(self.tricks)}",
            f"intervals are over {queries}, since passages of one are alike",
        ]
        if failed := self.control.failed + self.all.failed:
            text = f"{counted(failed, 'attempt')} without a valid answer"
            notes.append(f"failed: {text}, which count neither way")
        tables = [Table(columns, [share.row() for share in shares], notes=notes)]
        if worst := self.worst[:_SHOWN]:
            head = ["worst tricks", "worked", self.figure, "in", "reason"]
            worked = {share.name: share for share in self.tricks}
            cases = [_case(attempt, worked[attempt.name]) for attempt in worst]
            tables.append(Table(head, cases, texts=(0, 3, 4)))
        return tables

    def without_texts(self) -> "Probed":
        """The same without the judge's sentences, which may quote what it read."""
        mute = [replace(attempt, reason="") for attempt in self.attempts]
        return replace(self, attempts=mute)

    def to_dict(self) -> dict[str, Any]:
        """The figures in plain values, with every trick and the clearest cases."""
        return {
            "figure": self.figure,
            "passages": len({attempt.passage for attempt in self.attempts}),
            "failed": len(self.failed),
            "control": self.control.to_dict(),
            "all": self.all.to_dict(),
            "families": [share.to_dict() for share in self.families],
            "tricks": [share.to_dict() for share in self.tricks],
            "worst": [asdict(attempt) for attempt in self.worst],
        }

    def _planted(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.family != CONTROL]

    def _proven(self, shares: Sequence[Share]) -> str:
        """The names of those that do more than harmless additions would by chance."""
        tested = [share for share in shares if share.p is not None]
        if not tested:
            return "cannot be told without valid answers to harmless additions"
        if names := [share.name for share in tested if (share.p or 0.0) < RARE]:
            return "; ".join(names)
        calm = _by_passage(a for a in self.attempts if a.family == CONTROL)
        harmless = max(map(len, calm.values()))
        # Of the family that is largest, the fewest passages would do.
        largest = max(-(-share.attempts // share.passages) for share in tested)
        needed = passages_needed(largest, harmless, len(shares))
        passages = max(share.passages for share in tested)
        if passages >= needed:
            return "none"
        return f"cannot be told from {counted(passages, 'passage')}; {needed} would do"

    def _shares(
        self, name: Callable[[str, str], str], *, binary: bool = False
    ) -> list[Share]:
        """A share for each name, their chances corrected for how many there are."""
        failed = Counter(name(*pair) for pair in self.failed if pair[0] != CONTROL)
        tried: dict[str, list[Attempt]] = {}
        for attempt in self._planted():
            tried.setdefault(name(attempt.family, attempt.trick), []).append(attempt)
        for title in failed:
            tried.setdefault(title, [])
        shares = [
            self._share(title, tried[title], failed[title], binary=binary)
            for title in tried
        ]
        corrected = holm([1.0 if share.p is None else share.p for share in shares])
        return [
            share if share.p is None else share._replace(p=p)
            for share, p in zip(shares, corrected, strict=True)
        ]

    def _share(
        self, name: str, tried: Sequence[Attempt], failed: int, *, binary: bool = False
    ) -> Share:
        found = _by_passage(tried)
        asked = {attempt.passage: attempt.query for attempt in tried}
        _, clusters = np.unique([asked[p] for p in found], return_inverse=True)
        calm = _by_passage(a for a in self.attempts if a.family == CONTROL)
        rates = np.array([_mean(row) for row in found.values()], float)
        both = [passage for passage in found if passage in calm]
        excess = [_mean(found[p]) - _mean(calm[p]) for p in both]
        tallies = [Tally(*_count(found[p]), *_count(calm[p])) for p in both]
        return Share(
            name,
            float(rates.mean()) if len(rates) else float("nan"),
            mean_interval(rates, binary=binary, clusters=clusters),
            _mean(excess) if both else None,
            by_chance(tallies) if both else None,
            sum(attempt.share > 0 for attempt in tried),
            len(tried),
            len(found),
            failed,
        )


def _named(family: str, trick: str) -> str:
    return f"{family}: {trick}"


def _case(attempt: Attempt, share: Share) -> list[str]:
    return [
        share.name,
        f"{share.worked}/{share.attempts}",
        f"{attempt.before} to {attempt.after}",
        shorten(f"{attempt.query}, {attempt.document}", _WIDTH),
        shorten(attempt.reason, _WIDTH),
    ]


def _by_passage(attempts: Iterable[Attempt]) -> dict[int, list[float]]:
    """How far each passage talked the judge round, attempt by attempt."""
    shares: dict[int, list[float]] = {}
    for attempt in attempts:
        shares.setdefault(attempt.passage, []).append(attempt.share)
    return shares


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _count(shares: Sequence[float]) -> tuple[int, int]:
    return sum(share > 0 for share in shares), len(shares)


def _rare(value: float | None) -> str:
    if value is not None and value < _SMALL:
        return f"<{_SMALL}"
    return number(value)
