"""Comparisons: what was found between a baseline and its candidates, as a value."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from karat.comparison.changes import Mover, RunChange
from karat.comparison.differences import Difference, left_out, round_up, show_p
from karat.data.tables import DASH, Table, number
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
_COLUMNS = (
    *("metric", "verdict", "baseline", "candidate", "difference (95%)", "p"),
    *("n", "win/tie/loss"),
)
_SHOWN = 10
_LONG = 60
_MOVES = 4
# So many metrics are named in a headline.
_NAMED = 5


@dataclass(frozen=True, repr=False)
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
    changes: Mapping[str, RunChange] = field(default_factory=dict)
    other_depths: Mapping[str, tuple[RunChange, ...]] = field(default_factory=dict)
    movers: tuple[Mover, ...] = ()
    slices: Mapping[str, tuple[Difference, ...]] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    relabelled: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    test: str = "sign-flip"
    correction: str = "none"

    @property
    def _n(self) -> str:
        """How many queries there are scores for in both, over all metrics."""
        counts = [*map(attrgetter("n"), self.differences)]
        return " to ".join(dict.fromkeys(map(str, (min(counts), max(counts)))))

    @property
    def method(self) -> str:
        """What p and intervals rest on: test, correction, level, queries and gold."""
        said = f"{_TESTS[self.test]}, level 0.05"
        pairs = len({*map(attrgetter("baseline", "candidate"), self.differences)})
        if pairs > 1:
            said += f"; {_CORRECTIONS[self.correction].format(pairs)}"
        said += f"; n = {self._n}"
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
            needed = round_up(count) if math.isfinite(count) else DASH
            rows.append([self._name(one), number(one.spread), str(one.n), needed])
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
            shown = f" ({_few_of(own)})" if outcome == told else ""
            parts += [f"{outcome} on {len(own)}{shown}"] if own else []
        mixed = ": mixed" if names["better"] and names["worse"] else ""
        return ", ".join(parts) + mixed

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
        rows = [_row(one, self._name(one)) for one in self.differences]
        names = ", ".join(self.candidates)
        if len(self.candidates) > _NAMED:
            names = f"{len(self.candidates)} runs"
        title = f"{names} compared with {self.baseline}"
        if self.differences:
            title += f": {self._n} {'query' if self._n == '1' else 'queries'}; "
            title += self.headline
        return Table(
            _COLUMNS, rows, title=title, notes=self._notes(), texts=(0, 1), spare=2
        )

    def _name(self, one: Difference) -> str:
        """The metric, with the runs where there are several."""
        against = "" if one.baseline == self.baseline else f" v {one.baseline}"
        several = len(self.candidates) > 1
        return f"{one.metric} {one.candidate}{against}" if several else one.metric

    def _notes(self) -> list[str]:
        notes = []
        for candidate, change in self.changes.items():
            prefix = f"{candidate}: " if len(self.candidates) > 1 else ""
            same: dict[str, list[str]] = {}
            for at_depth in (change, *self.other_depths.get(candidate, ())):
                depth, _, what = at_depth.sentence.partition(": ")
                same.setdefault(what, []).append(depth)
            notes += [f"{prefix}{', '.join(at)}: {what}" for what, at in same.items()]
        undecided: dict[str, list[str]] = {}
        for one in self.differences:
            if one.open_question and one.wins + one.losses:
                undecided.setdefault(one.open_question, []).append(self._name(one))
        notes += [f"{_few_of(names)}: {why}" for why, names in undecided.items()]
        notes += left_out(self.added, self.removed, self.relabelled)
        method = [self.method] if self.differences else []
        return [*dict.fromkeys(notes), *self.notes, *method]

    def movers_table(self, most: int = _SHOWN) -> Table:
        """The queries that changed most, with the ranks of their gold items."""
        shown = self.movers[:most]
        several = len(self.candidates) > 1
        rows, links = [], []
        for mover in sorted(shown, key=attrgetter("difference")):
            rows.append(
                [
                    mover.query,
                    (mover.text or "")[:_LONG],
                    mover.candidate if several else "",
                    number(mover.baseline_score),
                    number(mover.candidate_score),
                    f"{mover.difference:+.4f}",
                    _moves(mover.ranks),
                ]
            )
            links.append(("q", mover.query))
        metric, changed = shown[0].metric if shown else "", 0
        for one in self.differences:
            changed += one.wins + one.losses if one.metric == metric else 0
        part = f": {len(shown)} of {changed}; -o FILE.html has all"
        title = f"queries that changed most by {metric}, losses first"
        title += part if changed > len(shown) else ""
        columns = ["query", "text", "candidate", "before", "after", "change", "ranks"]
        table = Table(columns, rows, title=title, texts=(0, 1, 2, 6), links=links)
        return table.without_empty()

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
        rows = []
        for run, parts in systems.items():
            rows.append([run, *map(number, map(parts.__getitem__, names))])
        return Table(["run", *names.values()], rows, title="headroom: parts sum to 1")

    def slice_table(self) -> Table | None:
        """The differences by tag; None where they were not asked for."""
        if not self.slices:
            return None
        rows = [
            _row(one, f"{tag} {one.metric}")
            for tag, differences in self.slices.items()
            for one in differences
        ]
        columns = ["tag and metric", *_COLUMNS[1:]]
        note = (
            f"{self.candidates[0]} v {self.baseline}; p is corrected for the number of "
            "slices (false discovery rate); no verdict below 15 queries"
        )
        return Table(columns, rows, title="by tag", notes=[note], texts=(0, 1), spare=3)

    def tables(self) -> list[Table]:
        """All that a person is shown."""
        parts = [self.summary(), self.headroom_table(), self.slice_table()]
        return [*filter(None, parts), *([self.movers_table()] if self.movers else [])]

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


def _few_of(names: Sequence[str]) -> str:
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])


def _row(one: Difference, name: str) -> list[str]:
    difference = DASH if math.isnan(one.difference) else f"{one.difference:+.4f}"
    if one.interval is not None:
        # Without a leading zero, as on a leaderboard: a row is soon too wide.
        limits = " to ".join(map("{:+.3f}".format, one.interval))
        difference += f" ({limits.replace('+0.', '+.').replace('-0.', '-.')})"
    return [
        name,
        one.outcome,
        number(one.baseline_mean),
        number(one.candidate_mean),
        difference,
        show_p(one.adjusted_p),
        str(one.n),
        f"{one.wins}/{one.ties}/{one.losses}",
    ]


def _moves(ranks: Mapping[str, tuple[int | None, int | None]]) -> str:
    """How the items moved, the highest first."""
    moved = []
    for item, (before, after) in ranks.items():
        if before != after:
            arrow = f"{before or DASH}\N{RIGHTWARDS ARROW}{after or DASH}"
            moved.append((min(filter(None, (before, after))), f"{item[:24]} {arrow}"))
    moved.sort(key=itemgetter(0))
    shown = ", ".join(map(itemgetter(1), moved[:_MOVES]))
    return f"{shown}, {len(moved) - _MOVES} more" if len(moved) > _MOVES else shown
