"""Evaluations: what a run scored, metric by metric and query by query."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.data.gold import Gold, label_fingerprints
from karat.data.judgements import Usage, Verdict
from karat.data.matches import (
    Matches,
    merge_by_query,
    merge_matches,
    merge_notices,
)
from karat.data.policies import Policies
from karat.data.queries import DEFAULT_K, Query
from karat.data.runs import Document, Latency, Notice, TopDocuments
from karat.data.spelling import LETTER
from karat.data.tables import Table, counted, number
from karat.errors import UnknownNameError, UsageError
from karat.metrics import Metric
from karat.reading.files import gc_paused
from karat.results.notices import derived_notices
from karat.results.plain_values import (
    SHOWN,
    SavedResult,
    evaluation_json,
    frame_of,
    plain_evaluation,
    to_dict,
)
from karat.results.scores import MetricScores, mean_ranges, read_measure, score_measures

if TYPE_CHECKING:
    import pandas as pd


UNTAGGED = "(untagged)"
COUNTS = ("n", "undefined", "missing", "failed")
"""The columns that say how many queries are in a mean, and why others are not."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What an evaluation knows of one query besides its scores."""

    fingerprint: str = ""  # digest of the query's gold
    # Gold item -> first rank, or None when it was not found.
    first_ranks: Mapping[str, int | None] = field(default_factory=dict)
    retrieved: int = 0  # number of documents retrieved
    tags: tuple[str, ...] = ()  # slices the query belongs to
    verdicts: tuple[Verdict, ...] = ()  # what a judge said of each gold item, and why
    usage: Usage | None = None  # tokens that the judge took; None without a judge


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(SavedResult, Mapping[str, MetricScores]):
    """What one run scored against one gold: a plain value that owns its hits.

    It is a mapping from metrics, in any spelling, to their scores. Its fields refer to
    no run, gold or file, so that nothing done to those changes it later.

    Attributes:
        run: name of the run.
        gold: name of the gold.
        queries: ids, in input order.
        columns: the scores, by canonical spelling of the metric.
        missing: which queries the run does not have.
        policies: the rules applied.
        matchers: metric spelling -> spelling of its matcher.
        matches: what each matcher found, by its spelling.
        default_matcher: spelling of the matcher of metrics that bring none.
        provenance: version, inputs and the like.
        facts: what is known of the queries besides their gold, such as tags.
        notices: what was seen while reading and matching; `warnings` has all.
        labelled_by: who gave how many of the labels.
        own_k: each query's cutoff for metrics spelled with the letter k.
        kept: the top documents of each query, where they were asked for.
        labels: a copy of the gold, to score by again and to tell other gold by; None
            where it is nothing but the documents that the matcher of ids looked for.
        fingerprints: digest of each query's gold, where the labels are not at hand.
        latency: how long the retriever took for the queries, if that is known.

    Example:
        >>> import karat
        >>> result = karat.evaluate({"q": ["a", "b"]}, gold={"q": ["b"]}, metrics="rr")
        >>> result["rr"].mean, result["rr"]["q"], result.queries
        (0.5, 0.5, ['q'])
    """

    run: str
    gold: str
    queries: Sequence[str]
    columns: Mapping[str, MetricScores]
    missing: Bools
    policies: Policies
    matchers: Mapping[str, str] = field(default_factory=dict)
    matches: Mapping[str, Matches] = field(default_factory=dict)
    default_matcher: str = "id"
    provenance: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Query] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    labelled_by: Mapping[str, int] = field(default_factory=dict)
    own_k: Ints | None = None
    kept: TopDocuments | Mapping[str, tuple[Document, ...]] = field(
        default_factory=dict
    )
    labels: Gold | None = None
    fingerprints: Sequence[str] = ()
    latency: Latency | None = None

    def __getitem__(self, metric: str) -> MetricScores:
        if metric in self.columns:
            return self.columns[metric]
        try:
            label = read_measure(
                metric, self.default_matcher, self.policies.profile
            ).label
        except UsageError:
            label = ""
        if label in self.columns:
            return self.columns[label]
        if label:
            see = f"result.score({metric!r}) computes it"
            raise UnknownNameError("score", metric, (), see)
        raise UnknownNameError("score", str(metric), self.columns)

    def __contains__(self, metric: object) -> bool:
        try:
            self[metric]  # type: ignore[index]
        except (UsageError, TypeError, AttributeError):
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        return plain_evaluation(self) == plain_evaluation(other)

    __hash__ = None  # type: ignore[assignment]

    def score(self, metric: str | Metric) -> MetricScores:
        """The scores of one more metric, or of another k, from the hits that are kept.

        Raises:
            UsageError: its matcher did not look at this run, or it reads documents
                judged non-relevant and nobody asked for those.

        Example:
            >>> from karat import evaluate
            >>> evaluate({"q": ["b", "a"]}, gold={"q": ["a"]}).score("recall@1").mean
            0.0
        """
        measure = read_measure(metric, self.default_matcher, self.policies.profile)
        if measure.matcher not in self.matches:
            raise UsageError(
                f"{measure.label} needs matches by {measure.matcher}, and this "
                f"evaluation has {', '.join(self.matches) or 'none'}: evaluate the run "
                "again with this metric"
            )
        measure = measure.with_threshold(self.policies.threshold)
        hits = self.matches[measure.matcher].hits
        if measure.metric.needs_judged and not hits.judged:
            raise UsageError(
                f"{measure.label} reads documents judged non-relevant, which this "
                "evaluation did not look for: evaluate the run again with this metric"
            )
        own_k = self.own_k
        if own_k is None and measure.k == LETTER:
            asked = (self.facts[q].k if q in self.facts else None for q in self.queries)
            own_k = np.array([DEFAULT_K if k is None else k for k in asked], np.int64)
        scored = score_measures(
            [measure], self.matches, self.queries, self.policies, own_k
        )
        return scored[measure.label]

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean of every metric."""
        return {name: column.mean for name, column in self.columns.items()}

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """What each mean may be, where a judge gave no verdict on some claims."""
        return mean_ranges(self)

    @cached_property
    def warnings(self) -> tuple[Notice, ...]:
        """Ties, duplicates, missing queries, coercions: with counts and examples."""
        return (*self.notices, *derived_notices(self))

    @cached_property
    def traces(self) -> Sequence[Trace]:
        """Gold fingerprint, first ranks and verdicts of every query."""
        first = self.matches[next(iter(self.matchers.values()))]
        rows = zip(
            self.queries,
            self.digests,
            first.first_ranks(),
            first.hits.retrieved.tolist(),
            strict=True,
        )
        judged = [m for m in self.matches.values() if m.verdicts or m.usage]
        return [
            Trace(
                fingerprint,
                ranks,
                retrieved,
                self.facts[query].tags if query in self.facts else (),
                tuple(v for m in judged for v in m.verdicts.get(place, ())),
                next((m.usage[place] for m in judged if place in m.usage), None),
            )
            for place, (query, fingerprint, ranks, retrieved) in enumerate(rows)
        ]

    @cached_property
    def digests(self) -> Sequence[str]:
        """The digest of each query's gold, equal only for equal labels."""
        if self.fingerprints:
            return self.fingerprints
        if self.labels is not None:
            return self.labels.fingerprints(self.queries)
        if (matches := self.matches.get("id")) is None:
            return [""] * len(self.queries)
        grades, counts = matches.hits.gold_grade, matches.hits.gold_count
        return label_fingerprints(matches.items, grades.tolist(), counts.tolist())

    @cached_property
    def usage(self) -> Usage:
        """Tokens that judges took for all queries, whenever they were paid."""
        usage = Usage()
        for matches in self.matches.values():
            usage = sum(matches.usage.values(), usage)
        return usage

    @cached_property
    def per_query(self) -> list[dict[str, Any]]:
        """One row per query in input order: what it asks, and every score.

        Tags, and the ids and texts of its top documents, where any are known.
        """
        facts, kept = self.facts, self.kept
        asked = any(fact.text for fact in facts.values())
        with_tags = any(fact.tags for fact in facts.values())
        named = any(d.id is not None for top in kept.values() for d in top)
        said = any(d.text is not None for top in kept.values() for d in top)
        scored = self.scores_by_query()
        table = []
        for query, missing, scores in zip(
            self.queries, self.missing.tolist(), scored, strict=True
        ):
            fact, top = facts.get(query), kept.get(query, ())
            row: dict[str, Any] = {"query": query}
            if asked:
                row["question"] = fact.text if fact else None
            if with_tags:
                row["tags"] = list(fact.tags) if fact else []
            row |= {"missing": missing, **scores}
            if named:
                row["documents"] = [d.id or "" for d in top]
            if said:
                row["texts"] = [d.text or "" for d in top]
            table.append(row)
        return table

    def scores_by_query(self) -> Iterator[dict[str, float | None]]:
        """Every metric's score, query by query; None where there is none."""
        if not self.columns:
            yield from ({} for _ in self.queries)
        table = (
            [None if score != score else score for score in column.scores.tolist()]  # noqa: PLR0124
            for column in self.columns.values()
        )
        for row in zip(*table, strict=True):
            yield dict(zip(self.columns, row, strict=True))

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
            interval = " .. ".join(map(number, column.interval or (None,)))
            counts = [f"{column.n}/{total}", str(column.undefined), missing]
            counts.append(str(column.failed))
            between = " .. ".join(map(number, self.ranges.get(name, (None,))))
            rows.append([name, number(column.mean), interval, *counts, between])
        rows += [] if self.latency is None else self.latency.rows(total)
        names = ["metric", "mean", "95% interval", *COUNTS]
        names += ["range"] if self.ranges else []
        matchers = ", ".join(dict.fromkeys(self.matchers.values()))
        table = Table(
            columns=names,
            rows=[row[: len(names)] for row in rows],
            notes=self.notes(),
        )
        queries, table = count_queries(table, counted(total, "query"))
        return replace(table, title=f"{self.title}: {queries}, matched by {matchers}")

    def notes(self) -> list[str]:
        """What a reader must know: warnings, and how the numbers came about."""
        return [*map("{0.kind}: {0}".format, self.warnings), *self.remarks()]

    def remarks(self) -> list[str]:
        """How the numbers came about, where it was not by default."""
        notes = []
        if changed := self.policies.changes():
            pairs = (f"{switch}={value}" for switch, value in changed.items())
            notes.append(f"policies: {', '.join(pairs)}")
        for name, column in self.columns.items():
            if column.cutoffs:
                ks = ", ".join(map(str, column.cutoffs))
                notes.append(f"{name} used k = {ks}")
        if self.latency is not None and self.latency.load:
            notes.append(f"latency: {self.latency.load}")
        if self.usage.replies:
            notes.append(f"judged with {self.usage}, paid now or earlier")
        for names in ("fields", "gold_fields"):
            if renamed := self.provenance.get(names):
                pairs = (f"{ours}={theirs}" for ours, theirs in renamed.items())
                notes.append(f"{names.replace('_', ' ')} read as: {', '.join(pairs)}")
        return notes

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

    def status(self, metric: str, row: int) -> str:
        """How a score came about: ok, undefined, failed or missing."""
        column = self[metric]
        if row in column.failures:
            return "failed"
        if self.missing[row]:
            return "missing"
        return "undefined" if np.isnan(column.scores[row]) else "ok"

    def by_tag(self) -> Table:
        """Every metric's mean in each slice, a row per tag."""
        tags = tagged(self)
        table = slice_table(self.columns, tags, title=f"{self.run} by tag")
        hint = "no query has a tag; --queries FILE adds them"
        return replace(table, notes=[] if tags.keys() - {UNTAGGED} else [hint])

    def without_texts(self) -> "Evaluation":
        """The same without what was asked, retrieved and said, in anybody's words."""
        return replace(
            self,
            labels=None,
            fingerprints=self.digests,
            facts={
                q: replace(f, text=None, metadata={}) for q, f in self.facts.items()
            },
            kept={
                query: tuple(replace(d, text=None, metadata={}) for d in documents)
                for query, documents in self.kept.items()
            },
            matches={
                name: replace(
                    matches,
                    verdicts={
                        place: tuple(replace(v, text="", reason="") for v in verdicts)
                        for place, verdicts in matches.verdicts.items()
                    },
                )
                for name, matches in self.matches.items()
            },
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain values: what `to_json` writes."""
        return to_dict(self)

    def to_json(self) -> str:
        """The evaluation as JSON, a line per query; `karat.load` reads it back."""
        with gc_paused():
            return evaluation_json(self)

    @property
    def tag(self) -> str:
        """The tag of a TREC run that nobody gave another name; mostly empty."""
        known = self.provenance.get("run") == self.run
        return str(self.provenance.get("tag", "")) if known else ""

    def to_html(self) -> str:
        """A page that a browser shows: verdict, curves, every query; one file."""
        return str(SHOWN["page"](self))

    def plot(self, kind: str = "curve", metric: str | None = None) -> Any:
        """A picture: `curve`, `means`, `distribution` or `headroom` of a metric."""
        return SHOWN["chart"](self, kind, metric)

    def to_frame(self) -> "pd.DataFrame":
        """What each query asks and scores as a pandas DataFrame, one row per query."""
        return frame_of(self.per_query).set_index("query")

    @staticmethod
    def merge(parts: "Iterable[Evaluation]") -> "Evaluation":
        """The evaluation of all queries, from those of disjoint parts, in their order.

        Raises:
            UsageError: parts that share a query, or were not scored in the same way.
        """
        return _merge([*parts])


def gold_of(result: Evaluation) -> Gold:
    """The gold that an evaluation was made with, as far as it kept any."""
    if result.labels is not None or "id" not in result.matches:
        return result.labels or Gold()
    labels = result.matches["id"].labels()
    return Gold(dict(zip(result.queries, labels, strict=True)))


def count_queries(table: Table, queries: str) -> tuple[str, Table]:
    """How many queries all rows are about, and the table without what that says."""
    same = table.same(COUNTS)
    n, _, total = same.get("n", "").partition("/")
    said = f"{n} of {queries}" if n != total else queries
    why = [f"{same[name]} {name}" for name in COUNTS[1:] if same.get(name, "0") != "0"]
    return said + (f" ({', '.join(why)})" if why else ""), table.without(same)


def tagged(
    *runs: Evaluation, queries: Sequence[str] | None = None
) -> dict[str, list[int]]:
    """The places of each tag's queries, by what the first of two runs says, if any."""
    tags: dict[str, list[int]] = {}
    facts = {**runs[-1].facts, **runs[0].facts}
    for place, query in enumerate(runs[0].queries if queries is None else queries):
        fact = facts.get(query)
        for tag in (fact.tags if fact else ()) or (UNTAGGED,):
            tags.setdefault(tag, []).append(place)
    return dict(sorted(tags.items()))


def slice_table(
    columns: Mapping[str, MetricScores],
    tags: Mapping[str, Sequence[int]],
    title: str,
) -> Table:
    """A row per slice with the mean of each column, and the number of its queries."""
    rows = [
        [
            tag,
            *(_mean(column.scores[list(places)]) for column in columns.values()),
            str(len(places)),
        ]
        for tag, places in tags.items()
    ]
    links = [("tag", tag) for tag in tags]
    return Table(["tag", *columns, "queries"], rows, title=title, links=links)


def _mean(scores: Floats) -> str:
    defined = scores[~np.isnan(scores)]
    return number(float(defined.mean()) if len(defined) else None)


def _merge(parts: Sequence[Evaluation]) -> Evaluation:
    """The evaluation of all queries, from those of disjoint parts, in their order."""
    if not parts:
        raise UsageError("nothing to merge: no evaluations were given")
    first = parts[0]
    for part in parts[1:]:
        _refuse_unlike(first, part)
    queries = [query for part in parts for query in part.queries]
    if len({*queries}) < len(queries):
        twice = next(query for query in queries if queries.count(query) > 1)
        raise UsageError(
            f"query {twice!r} is in two of the evaluations: parts must be disjoint"
        )
    labelled_by = Counter[str]()
    for part in parts:
        labelled_by.update(part.labelled_by)
    known = [part.own_k for part in parts if part.own_k is not None]
    return replace(
        first,
        queries=queries,
        columns=_columns(parts, queries),
        missing=np.concatenate([part.missing for part in parts]),
        matches={
            name: merge_matches([part.matches[name] for part in parts])
            for name in first.matches
        },
        facts=_united(part.facts for part in parts),
        notices=merge_notices(part.notices for part in parts),
        labelled_by=dict(labelled_by),
        own_k=np.concatenate(known) if known else None,
        kept=_united(part.kept for part in parts),
        labels=_labels([part.labels for part in parts]),
        fingerprints=[digest for part in parts for digest in part.digests],
        latency=_latency([p.latency for p in parts if p.latency is not None]),
    )


def _labels(parts: Sequence[Gold | None]) -> Gold | None:
    """The gold of all parts, if each has its own."""
    golds = [gold for gold in parts if gold is not None]
    if len(golds) < len(parts):
        return None
    kinds: dict[str, Any] = {
        field.name: _united(getattr(gold, field.name) for gold in golds)
        for field in fields(Gold)
        if field.name not in {"order", "name", "notices"}
    }
    order = tuple(query for gold in golds for query in gold.queries)
    return replace(golds[0], order=order, **kinds)


def _latency(parts: Sequence[Latency]) -> Latency | None:
    if not parts:
        return None
    return Latency(
        _united(part.milliseconds for part in parts),
        {query for part in parts for query in part.earlier},
        {query for part in parts for query in part.first_call},
        max(part.concurrency or 0 for part in parts) or None,
    )


def _refuse_unlike(first: Evaluation, other: Evaluation) -> None:
    for what in ("policies", "matchers", "run", "gold"):
        one, two = getattr(first, what), getattr(other, what)
        if one != two:
            raise UsageError(
                f"evaluations of different {what} cannot be merged: {one} and {two}"
            )
    if [*first.matches] != [*other.matches]:
        raise UsageError("evaluations with and without hits cannot be merged")


def _columns(
    parts: Sequence[Evaluation], queries: Sequence[str]
) -> dict[str, MetricScores]:
    sizes = [len(part.queries) for part in parts]
    merged = {}
    for name, column in parts[0].columns.items():
        columns = [part.columns[name] for part in parts]
        merged[name] = replace(
            column,
            scores=np.concatenate([c.scores for c in columns]),
            queries=queries,
            undefined=sum(c.undefined for c in columns),
            failures=merge_by_query(sizes, (c.failures for c in columns)),
            cutoffs=tuple(sorted({k for c in columns for k in c.cutoffs})),
        )
    return merged


def _united(parts: Any) -> dict[str, Any]:
    return {key: value for part in parts for key, value in part.items()}
