"""Evaluations: what a run scored, metric by metric and query by query."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from karat.data.arrays import Bools
from karat.data.judgements import Usage
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Notice
from karat.data.scores import Interval, MetricScores
from karat.data.tables import Table, counted, number
from karat.data.verdicts import Verdict
from karat.errors import MissingExtraError, UnknownNameError

__all__ = ["SCHEMA_VERSION", "Evaluation", "Interval", "MetricScores", "Trace"]

SCHEMA_VERSION = 1
"""Version of the saved form; readers accept this one and all before."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What a saved evaluation keeps of one query besides its scores.

    Attributes:
        fingerprint: digest of the query's gold.
        first_ranks: gold item -> first rank, or None when it was not found.
        retrieved: number of documents retrieved.
        tags: slices the query belongs to.
        verdicts: what a judge said of each gold item, and why.
        usage: tokens that the judge took; None without a judge.
    """

    fingerprint: str = ""
    first_ranks: Mapping[str, int | None] = field(default_factory=dict)
    retrieved: int = 0
    tags: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    usage: Usage | None = None

    def to_dict(self) -> dict[str, Any]:
        """What a saved evaluation keeps, in plain values."""
        saved: dict[str, Any] = {
            "gold_fingerprint": self.fingerprint,
            "first_ranks": dict(self.first_ranks),
            "retrieved": self.retrieved,
            "tags": list(self.tags),
        }
        if self.verdicts:
            saved["verdicts"] = [asdict(verdict) for verdict in self.verdicts]
        if self.usage is not None:
            saved["usage"] = asdict(self.usage)
        return saved


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What one run scored against one gold.

    Attributes:
        run: name of the run.
        gold: name of the gold.
        queries: ids, in input order.
        columns: the scores, by metric spelling.
        missing: which queries the run does not have.
        policies: the rules applied.
        matchers: metric spelling -> matcher used.
        provenance: version, inputs and the like.
        facts: what is known of the queries besides their gold, such as tags.
        asked: spelling as the caller wrote it -> the canonical one, where they differ.
    """

    run: str
    gold: str
    queries: Sequence[str]
    columns: Mapping[str, MetricScores]
    missing: Bools
    policies: Policies
    matchers: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Query] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    _notices: Callable[[], tuple[Notice, ...]] = tuple
    _traces: Callable[[], Sequence[Trace]] = tuple

    def __getitem__(self, metric: str) -> MetricScores:
        label = self.asked.get(metric, metric)
        if label in self.columns:
            return self.columns[label]
        raise UnknownNameError("score", str(metric), self.columns)

    def __contains__(self, metric: object) -> bool:
        return metric in self.columns or metric in self.asked

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean of every metric."""
        return {name: column.mean for name, column in self.columns.items()}

    @cached_property
    def warnings(self) -> tuple[Notice, ...]:
        """Ties, duplicates, missing queries, coercions: with counts and examples."""
        notices = list(self._notices())
        if count := int(self.missing.sum()):
            rows = np.flatnonzero(self.missing)[:3]
            zero = self.policies.missing == "zero"
            verb, verb_of_one = (
                ("score 0", "scores 0") if zero else ("are left out", "is left out")
            )
            text = f"gold queries are not in the run and {verb}"
            one = f"gold query is not in the run and {verb_of_one}"
            examples = tuple(self.queries[row] for row in rows)
            notices.append(Notice("missing", count, text, examples, one))
        failed = {
            r: why for c in self.columns.values() for r, why in c.failures.items()
        }
        if failed:
            text = "queries could not be judged and are in no mean"
            one = "query could not be judged and is in no mean"
            whys = tuple(f"{self.queries[r]}: {why}" for r, why in failed.items())
            notices.append(Notice("failed", len(failed), text, whys[:3], one))
        return tuple(notices)

    @cached_property
    def traces(self) -> Sequence[Trace]:
        """Gold fingerprint and first ranks of every query."""
        return self._traces()

    @cached_property
    def usage(self) -> Usage:
        """Tokens that judges took for all queries, whenever they were paid."""
        if "judge" not in self.provenance:
            return Usage()
        return sum((trace.usage or Usage() for trace in self.traces), Usage())

    @cached_property
    def per_query(self) -> list[dict[str, Any]]:
        """One row per query in input order: its id, status and every score."""
        names = list(self.columns)
        table = zip(*(self.columns[n].scores.tolist() for n in names), strict=True)
        rows = table if names else iter([()] * len(self.queries))
        return [
            {
                "query": query,
                "missing": bool(gone),
                **{
                    name: None if score != score else score  # noqa: PLR0124
                    for name, score in zip(names, row, strict=True)
                },
            }
            for query, gone, row in zip(self.queries, self.missing, rows, strict=True)
        ]

    @property
    def title(self) -> str:
        """What was scored against what; samples that carry their gold are one thing."""
        same = self.run == self.gold
        return self.run if same else f"{self.run} against {self.gold}"

    def summary(self) -> Table:
        """The table a person is shown: means, intervals and all that was left out."""
        total = len(self.queries)
        missing = str(int(self.missing.sum()))
        rows = []
        for name, column in self.columns.items():
            ends = column.interval[:2] if column.interval else (None,)
            interval = " .. ".join(map(number, ends))
            counts = [f"{column.n}/{total}", str(column.undefined), missing]
            rows.append(
                [name, number(column.mean), interval, *counts, str(column.failed)]
            )
        names = ["metric", "mean", "95% interval", "n", "undefined", "missing"]
        if any(column.failed for column in self.columns.values()):
            names.append("failed")
        matchers = ", ".join(dict.fromkeys(self.matchers.values()))
        notes = [f"{notice.kind}: {notice}" for notice in self.warnings]
        if changed := self.policies.changes():
            pairs = (f"{switch}={value}" for switch, value in changed.items())
            notes.append(f"policies: {', '.join(pairs)}")
        for name, column in self.columns.items():
            if column.cutoffs:
                ks = ", ".join(map(str, column.cutoffs))
                notes.append(f"{name} used k = {ks}")
        if self.usage.replies:
            notes.append(f"judged with {self.usage}, paid now or earlier")
        for fields in ("fields", "gold_fields"):
            if renamed := self.provenance.get(fields):
                pairs = (f"{ours}={theirs}" for ours, theirs in renamed.items())
                notes.append(f"{fields.replace('_', ' ')} read as: {', '.join(pairs)}")
        return Table(
            columns=names,
            rows=[row[: len(names)] for row in rows],
            title=f"{self.title}: {counted(total, 'query')}, matched by {matchers}",
            notes=notes,
        )

    def __str__(self) -> str:
        return self.summary().as_text()

    def __repr__(self) -> str:
        means = (f"{name}={number(mean)}" for name, mean in self.means.items())
        return (
            f"<Evaluation {self.title}, {counted(len(self.queries), 'query')}: "
            f"{', '.join(means)}>"
        )

    def _repr_html_(self) -> str:
        return self.summary().as_html()

    def __rich__(self) -> str:
        # Rich escapes nothing by itself: brackets in spellings are not its markup.
        return str(self).replace("[", "\\[")

    def status(self, metric: str, row: int) -> str:
        """How a score came about: ok, undefined, failed or missing."""
        column = self[metric]
        if row in column.failures:
            return "failed"
        if self.missing[row]:
            return "missing"
        return "undefined" if np.isnan(column.scores[row]) else "ok"

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain values: what `to_json` writes."""
        traces = self.traces or [Trace()] * len(self.queries)
        return {
            "schema_version": SCHEMA_VERSION,
            "run": self.run,
            "gold": self.gold,
            "policies": asdict(self.policies),
            "provenance": dict(self.provenance),
            "metrics": {name: self._summary(name) for name in self.columns},
            "warnings": [asdict(notice) for notice in self.warnings],
            "queries": [
                {
                    "id": row.pop("query"),
                    "missing": row.pop("missing"),
                    "scores": row,
                    **trace.to_dict(),
                }
                for row, trace in zip(
                    (dict(row) for row in self.per_query), traces, strict=True
                )
            ],
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The evaluation as JSON; `karat.load` reads it back."""
        everything = self.to_dict()
        return json.dumps(
            everything, ensure_ascii=False, indent=indent, allow_nan=False
        )

    def to_frame(self) -> Any:
        """The per-query scores as a pandas DataFrame, one row per query."""
        try:
            import pandas as pd  # noqa: PLC0415
        except ImportError:
            raise MissingExtraError("to_frame()", "frames") from None
        return pd.DataFrame(self.per_query).set_index("query")

    def _summary(self, name: str) -> dict[str, Any]:
        column = self.columns[name]
        return {
            "mean": None if column.n == 0 else column.mean,
            "interval": None if column.interval is None else column.interval._asdict(),
            "n": column.n,
            "undefined": column.undefined,
            "failed": {self.queries[row]: why for row, why in column.failures.items()},
            "binary": column.binary,
            "bounds": [None if np.isinf(b) else b for b in column.bounds],
            "cutoffs": list(column.cutoffs),
            "matcher": self.matchers.get(name),
        }
