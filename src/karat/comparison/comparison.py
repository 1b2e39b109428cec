"""Comparisons: what was found between a baseline and its candidates, as a value."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from karat.comparison.changes import Change, Mover
from karat.comparison.differences import Difference, about, show_p
from karat.comparison.pairing import left_out
from karat.data.tables import DASH, Table, counted, number
from karat.errors import FormatError
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import Leaderboard
from karat.results.plain_values import SHOWN, PlainResult, frame_of

if TYPE_CHECKING:
    import pandas as pd

_TESTS = {
    "sign-flip": "paired sign-flip test of the mean difference",
    "t": "paired t test",
    "wilcoxon": "Wilcoxon's signed-rank test",
}
_CORRECTIONS = {
    "maxt": "p and intervals corrected for {} comparisons (MaxT)",
    "holm": "p corrected for {} comparisons (Holm), intervals not adjusted",
    "bh": "p corrected for {} comparisons (false discovery rate), "
    "intervals not adjusted",
    "none": "p and intervals of {} comparisons, not corrected",
}
_BEFORE = (
    *("metric", "baseline", "candidate", "n"),
    *("baseline_mean", "candidate_mean", "difference"),
)
_AFTER = ("p", "adjusted_p", "verdict", "wins", "ties", "losses")
_SHOWN = 10
_LONG = 60
_MOVES = 4
# So many metrics are named in a headline.
_NAMED = 5


@dataclass(frozen=True)
class Comparison(PlainResult):
    """How candidates differ from a baseline: a plain value that saves and loads.

    Attributes:
        baseline: name of the run that the others are compared with.
        candidates: names of the others.
        differences: one per metric and pair of runs.
        changes: candidate -> in what way it differs at the depth of the first metric,
            where the hits tell.
        other_depths: candidate -> the same at the depths of the other metrics.
        movers: queries that changed most, the biggest change first.
        slices: tag -> the differences on its queries, corrected for the number of tags.
        added: queries that only a candidate has.
        removed: queries that only the baseline has.
        relabelled: queries in both, with other gold, which are not compared.
        notes: what a reader should know besides.
        provenance: versions and inputs.
        test: which test p is of.
        correction: how p was corrected for the number of comparisons by one metric.
    """

    saved_as: ClassVar[str] = "comparison"
    schema_version: ClassVar[int] = 2

    baseline: str
    candidates: tuple[str, ...]
    differences: tuple[Difference, ...]
    changes: Mapping[str, Change] = field(default_factory=dict)
    other_depths: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    movers: tuple[Mover, ...] = ()
    slices: Mapping[str, tuple[Difference, ...]] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    relabelled: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    test: str = "sign-flip"
    correction: str = "none"

    @cached_property
    def _pairs(self) -> int:
        return len({(one.baseline, one.candidate) for one in self.differences})

    @property
    def method(self) -> str:
        """What p and intervals rest on: test, correction, level, queries and gold."""
        said = f"{_TESTS[self.test]}, level 0.05"
        if (pairs := self._pairs) > 1:
            said += f"; {_CORRECTIONS[self.correction].format(pairs)}"
        counts = sorted({one.n for one in self.differences})
        said += f"; n = {' to '.join(dict.fromkeys(map(str, (counts[0], counts[-1]))))}"
        gold = self.provenance.get("gold")
        return f"{said}; gold: {gold}" if gold else said

    def plan(self, difference: float = 0.02) -> Table:
        """How many queries like these would show a difference, 4 times out of 5.

        Args:
            difference: between the means of two runs that differ as these do.
        """
        rows = []
        for one in self.differences:
            count = one.queries_for(difference)
            needed = about(count) if math.isfinite(count) else DASH
            name = _name(one, several=True)
            rows.append([name, number(one.spread), str(one.n), needed])
        title = f"queries that would show a difference of {difference:g}"
        columns = ["metric", "spread between queries", "queries", "needed"]
        return Table(columns, rows, title=title, texts=(0,))

    @cached_property
    def headline(self) -> str:
        """What it comes down to, over all metrics and candidates.

        It counts verdicts, and names what is worse, else what is better.
        """
        names: dict[str, list[str]] = {"better": [], "worse": []}
        for one in self.differences:
            if one.baseline == self.baseline:
                whose = f" of {one.candidate}" if len(self.candidates) > 1 else ""
                names.setdefault(one.outcome, []).append(f"{one.metric}{whose}")
        told = "worse" if names["worse"] else "better"
        parts = []
        for outcome, own in names.items():
            more = [f"{len(own) - _NAMED} more"] if len(own) > _NAMED else []
            shown = f" ({', '.join([*own[:_NAMED], *more])})" if outcome == told else ""
            parts += [f"{outcome} by {len(own)}{shown}"] if own else []
        mixed = ": mixed" if names["better"] and names["worse"] else ""
        return ", ".join(parts) + mixed

    def __repr__(self) -> str:
        return f"<Comparison {self.summary().title}>"

    def __getitem__(self, metric: str) -> Difference:
        """The first candidate's difference by a metric."""
        return self.difference(metric)

    def difference(self, metric: str, candidate: str | None = None) -> Difference:
        """One difference, by metric and candidate; default: the first candidate.

        Raises:
            FormatError: there is none by that metric or of that candidate.
        """
        for one in self.differences:
            if one.metric == metric and one.candidate == (candidate or one.candidate):
                return one
        known = ", ".join(dict.fromkeys(one.metric for one in self.differences))
        whom = f" of {candidate!r}" if candidate else ""
        raise FormatError(
            f"no comparison{whom} by {metric!r}; there are {known} of "
            f"{', '.join(self.candidates)}"
        )

    def summary(self) -> Table:
        """A row per metric and pair: means, difference, verdict."""
        rows = [_row(one, several=self._pairs > 1) for one in self.differences]
        adjusted = ", not adjusted" if self.correction in ("holm", "bh") else ""
        columns = _columns(f"95% interval{adjusted}")
        title = f"{', '.join(self.candidates)} compared with {self.baseline}"
        if self.differences:
            count = counted(self.differences[0].n, "query")
            title += f": {count}; {self.headline}"
        return Table(columns, rows, title=title, notes=self._notes(), texts=(0, 8))

    def _notes(self) -> list[str]:
        notes = [one.sentence() for one in self.differences]
        notes += [self.method] if self.differences else []
        for candidate, change in self.changes.items():
            prefix = f"{candidate}: " if len(self.candidates) > 1 else ""
            same: dict[str, list[str]] = {}
            for one in (change, *self.other_depths.get(candidate, ())):
                depth, _, what = one.sentence.partition(": ")
                same.setdefault(what, []).append(depth)
            notes += [f"{prefix}{', '.join(at)}: {what}" for what, at in same.items()]
        notes += left_out(self.added, self.removed, self.relabelled)
        return [*dict.fromkeys(notes), *self.notes]

    def movers_table(self, most: int = _SHOWN) -> Table:
        """The queries that changed most, with the ranks of their gold items."""
        rows = [
            [
                mover.query,
                (mover.text or "")[:_LONG],
                mover.metric,
                number(mover.baseline_score),
                number(mover.candidate_score),
                f"{mover.difference:+.4f}",
                _moves(mover.ranks),
            ]
            for mover in self.movers[:most]
        ]
        columns = ["query", "text", "metric", "before", "after", "change", "ranks"]
        return Table(columns, rows, title="queries that changed most", texts=(0, 1, 6))

    def headroom_table(self) -> Table | None:
        """The parts of each run's headroom beside each other; None without hits."""
        if not self.changes:
            return None
        change = next(iter(self.changes.values()))
        systems = {self.baseline: change.baseline}
        systems |= {name: one.candidate for name, one in self.changes.items()}
        names = {"score": "nDCG", "ordering": "ordering gap"}
        if change.k is not None:
            names |= {"score": f"nDCG@{change.k}", "cutoff": f"below rank {change.k}"}
        names["candidates"] = "not retrieved"
        rows = [
            [text, *(number(parts[name]) for parts in systems.values())]
            for name, text in names.items()
        ]
        return Table(["part of 1", *systems], rows, title="headroom")

    def slice_table(self) -> Table | None:
        """The differences by tag; None where they were not asked for."""
        if not self.slices:
            return None
        rows = [
            [tag, *_row(one, several=False)]
            for tag, differences in self.slices.items()
            for one in differences
        ]
        columns = ["tag", *_columns("95% interval")]
        note = (
            f"{self.candidates[0]} v {self.baseline}; p is corrected for the number of "
            "slices (false discovery rate); no verdict below 15 queries"
        )
        return Table(columns, rows, title="by tag", notes=[note], texts=(0, 1, 9))

    def tables(self) -> list[Table]:
        """All that a person is shown."""
        found = [self.summary(), self.headroom_table(), self.slice_table()]
        shown = [table for table in found if table is not None]
        return [*shown, self.movers_table()] if self.movers else shown

    def rows(self) -> list[dict[str, Any]]:
        """A row per metric, baseline and candidate, in plain values."""
        return [
            {
                **{name: getattr(one, name) for name in _BEFORE},
                "low": None if one.interval is None else one.interval.low,
                "high": None if one.interval is None else one.interval.high,
                **{name: getattr(one, name) for name in _AFTER},
            }
            for one in self.differences
        ]

    def to_frame(self) -> "pd.DataFrame":
        """A pandas DataFrame: a row per metric, baseline and candidate."""
        return frame_of(self.rows())

    def to_latex(self) -> str:
        """The means as a LaTeX table with a caption, marked by verdicts."""
        return str(SHOWN["latex"](self))

    def to_html(self, *evaluations: Evaluation) -> str:
        """A page that a browser shows: one file.

        Given what was compared, the baseline first, it also shows every query.
        """
        if not evaluations:
            return super().to_html()
        names = (self.baseline, *self.candidates)
        pairs = zip(names, evaluations, strict=True)
        board = Leaderboard({name: replace(one, run=name) for name, one in pairs})
        return str(SHOWN["page"](board, comparison=self))

    def without_texts(self) -> "Comparison":
        """The same without what the queries ask."""
        return replace(self, movers=tuple(replace(m, text=None) for m in self.movers))

    def write(self, format: str) -> str:
        """The comparison as the text of a file: json, md, tex, csv or txt."""
        if format == "tex":
            return self.to_latex()
        if format == "csv":
            return str(SHOWN["csv"](self.rows()))
        if format == "md":
            return f"{SHOWN['paper'](self).as_markdown()}\n\n{super().write(format)}"
        return super().write(format)


def _name(one: Difference, *, several: bool) -> str:
    return f"{one.metric} ({one.candidate} v {one.baseline})" if several else one.metric


def _columns(interval: str) -> list[str]:
    means = ["metric", "baseline", "candidate", "difference"]
    return [*means, interval, "p", "win/tie/loss", "n", "verdict"]


def _row(one: Difference, *, several: bool) -> list[str]:
    interval = DASH
    if one.interval is not None:
        interval = f"{one.interval.low:+.4f} .. {one.interval.high:+.4f}"
    return [
        _name(one, several=several),
        number(one.baseline_mean),
        number(one.candidate_mean),
        DASH if math.isnan(one.difference) else f"{one.difference:+.4f}",
        interval,
        show_p(one.adjusted_p),
        f"{one.wins}/{one.ties}/{one.losses}",
        str(one.n),
        one.outcome,
    ]


def _moves(ranks: Mapping[str, tuple[int | None, int | None]]) -> str:
    """How the items moved, the highest first."""
    moved = [
        (min(filter(None, pair)), item, *pair)
        for item, pair in ranks.items()
        if pair[0] != pair[1]
    ]
    moved.sort(key=itemgetter(0))
    shown = [
        f"{item[:24]} {before or DASH}\N{RIGHTWARDS ARROW}{after or DASH}"
        for _, item, before, after in moved[:_MOVES]
    ]
    more = len(moved) - len(shown)
    return ", ".join(shown) + (f", {more} more" if more else "")
