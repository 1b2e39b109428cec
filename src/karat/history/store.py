"""The history store: runs, labels and scores in one SQLite file.

A run is stored as its rankings. When labels change the gold, the rankings that all runs
have of a query are scored again, as so many queries of one run with the same gold, by
`karat.evaluate` itself: a stored score is that of a fresh evaluation to the last bit.
"""

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from karat.data.gold import Gold
from karat.data.intervals import Interval
from karat.data.queries import Query
from karat.data.runs import Document
from karat.errors import DataError, UnknownNameError, UsageError
from karat.history.gold import GoldChange, StoredGold, StoredLabel
from karat.history.rankings import add_rankings, read_rankings
from karat.history.schema import (
    StoredRows,
    connect,
    from_json,
    names_damage,
    transaction,
    unpacked,
)
from karat.history.scoring import (
    Change,
    RunFacts,
    bare,
    frozen_columns,
    has_matcher,
    mean_of,
    rescore,
    score_again,
    scoring_of,
)
from karat.history.tokens import StoredTokens
from karat.reading.files import gc_paused
from karat.results.evaluation import Evaluation, gold_of
from karat.results.loading import check_scores
from karat.results.plain_values import as_plain
from karat.results.scores import MetricScores

PROJECT: Final = "default"
"""The project of those who name none."""


@dataclass(frozen=True)
class StoredRun:
    """A run in the store.

    Attributes:
        id: its number.
        name: how reports call it.
        commit: of the code that made it, if known.
        branch: of that commit.
        at: when it was pushed.
        means: each metric's mean under today's gold; None where there is none.
        frozen: metrics that are not scored again, and why.
    """

    id: int
    name: str
    commit: str
    branch: str
    at: str
    means: Mapping[str, float | None]
    frozen: Mapping[str, str]


class Pushed(NamedTuple):
    """What a push came to.

    Attributes:
        run: the run's number.
        is_new: False where the same result had been pushed before.
        differing: queries whose gold in the store differs from the run's own; the
            run is scored by the store's.
    """

    run: int
    is_new: bool
    differing: tuple[str, ...] = ()


class Rescored(NamedTuple):
    """What new labels or gold came to.

    Attributes:
        version: of the gold, now.
        changes: the means that moved.
        labels: numbers of the labels that were added, to undo them by.
    """

    version: int
    changes: tuple[Change, ...]
    labels: tuple[int, ...] = ()


@names_damage
class Store(AbstractContextManager["Store"]):
    """A history store; a `with` block closes it.

    Attributes:
        path: of its file.
        tokens: who may do what when it is served.

    Example:
        >>> from karat import evaluate
        >>> result = evaluate({"q": ["b", "a"]}, {"q": ["a"]}, metrics="rr", keep=20)
        >>> label = {"query": "q", "document": "b", "grade": 1, "who": "ann"}
        >>> with Store(":memory:") as store:
        ...     run = store.push(result).run
        ...     store.label([label]).changes, store.evaluation(run).means
        ((Change(run=1, metric='rr', before=0.5, after=1.0),), {'rr': 1.0})
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._db = connect(self.path)
        self.tokens = StoredTokens(self.path, self._db)

    def __exit__(self, *stop: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Reads in a `with` block see one state, whatever others write."""
        self._db.execute("begin")
        try:
            yield
        finally:
            self._db.execute("rollback")

    def projects(self) -> list[str]:
        """The names of all projects."""
        return [name for (name,) in self._db.execute("select name from project")]

    def push(
        self,
        result: Evaluation,
        *,
        project: str = PROJECT,
        commit: str = "",
        branch: str = "",
        at: str | None = None,
    ) -> Pushed:
        """Store an evaluation that keeps its documents, scored by the store's gold.

        The same result pushed twice is stored once. Gold of queries that are new to the
        store joins its gold; of the others the store's own counts.

        Args:
            result: what `evaluate(..., keep=20)` gave, or `load` read.
            project: which runs it belongs to.
            commit: of the code that made it.
            branch: of that commit.
            at: when, in ISO form; default: now.

        Raises:
            UsageError: the result keeps no documents.
        """
        first = next(iter(result.matches.values()))
        if first.hits.retrieved.any() and not any(result.kept.values()):
            raise UsageError(
                f"{result.run} keeps no documents, so no label could rescore it: "
                "evaluate it with keep=20 (--keep 20)"
            )
        tops = [result.kept.get(query, ()) for query in result.queries]
        frozen = frozen_columns(result, [*map(len, tops)])
        documents = (document.id or "" for top in tops for document in top)
        tags = (tag for fact in result.facts.values() for tag in fact.tags)
        _check_names(chain(result.queries, documents, tags))
        with transaction(self._db):
            self._db.execute(
                "insert or ignore into project(name) values(?)", (project,)
            )
            number = self._project(project)
            queries = self._add_queries(number, result)
            depth, blobs = add_rankings(self._db, number, result, tops)
            head = json.dumps(as_plain(bare(result)))
            values = [c.scores.astype("<f8").tobytes() for c in result.values()]
            digest = _digest(str(queries), head, commit, branch, *blobs, *values)
            same = self._db.execute(
                "select id from run where project=? and digest=?", (number, digest)
            ).fetchone()
            if same is not None:
                return Pushed(int(same[0]), is_new=False)
            columns = {
                m: c.average for m, c in result.columns.items() if m not in frozen
            }
            # What has no matcher is not scored again: of the others each has its own.
            default = result.default_matcher
            matcher = default if has_matcher(default) else "id"
            scoring = as_plain([result.policies, matcher, columns])
            run = self._db.execute(
                "insert into run(project, query_set, digest, name, commit_id, branch, "
                "at, depth, documents, scores, ranks, cutoffs, scoring, head) "
                "values(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (
                    *(number, queries, digest, result.run, commit, branch),
                    *(at or _now(), depth, *blobs, json.dumps(scoring), head),
                ),
            ).lastrowid
            gold = StoredGold(self._db, number)
            known = gold.fingerprints()
            new = [query for query in result.queries if known[query] is None]
            gold.replace(gold_of(result), new)
            self._db.executemany(
                "insert into score values(?,?,?,?,?,?)",
                [
                    (run, m, mean_of(c), value, gold.version, frozen.get(m, ""))
                    for (m, c), value in zip(result.items(), values, strict=True)
                ],
            )
            known = gold.fingerprints()
            pairs = zip(result.queries, result.digests, strict=True)
            differing = tuple(q for q, digest in pairs if known[q] != digest)
            rescore(self._db, number, differing, run)
        return Pushed(int(run or 0), True, differing)  # noqa: FBT003

    def runs(
        self,
        project: str = PROJECT,
        *,
        branch: str | None = None,
        since: str | None = None,
        tag: str | None = None,
    ) -> list[StoredRun]:
        """The runs of a project, the oldest first, with their means under today's gold.

        Args:
            project: its name.
            branch: only those of this branch.
            since: only those pushed at this time (ISO) or later.
            tag: means over the queries with this tag only.
        """
        rows = self._db.execute(
            "select id, name, commit_id, branch, at from run where project=? and "
            "(? is null or branch=?) and (? is null or at>=?) order by at, id",
            (self._project(project), branch, branch, since, since),
        ).fetchall()
        means: dict[int, dict[str, float | None]] = {row[0]: {} for row in rows}
        frozen: dict[int, dict[str, str]] = {row[0]: {} for row in rows}
        for run, metric, mean, version, why in self._db.execute(
            "select run, metric, mean, score.version, frozen from score "
            "join json_each(?) as one on run=one.value order by score.rowid",
            (json.dumps([*means]),),
        ):
            means[run][metric] = mean
            if why:
                frozen[run][metric] = f"{why}; scored by gold version {version}"
        if tag is not None:
            queries = self.tagged(tag, project)
            for run, column in self._columns(means, queries):
                means[run][column.metric] = mean_of(column)
        return [
            StoredRun(run, name, commit, own, when, means[run], frozen[run])
            for run, name, commit, own, when in rows
        ]

    def newest(self, project: str = PROJECT) -> int | None:
        """The number of the run that was pushed last."""
        rows = "select id from run where project=? order by at desc, id desc limit 1"
        row = self._db.execute(rows, (self._project(project),)).fetchone()
        return None if row is None else int(row[0])

    def tagged(self, tag: str, project: str = PROJECT) -> frozenset[str]:
        """The queries that have a tag."""
        rows = self._db.execute(
            "select name from query join json_each(tags) on value=? where project=?",
            (tag, self._project(project)),
        )
        return frozenset(name for (name,) in rows)

    def questions(self, project: str = PROJECT) -> dict[str, str | None]:
        """What each query asks, as far as that is known."""
        rows = "select name, question from query where project=?"
        return dict(self._db.execute(rows, (self._project(project),)).fetchall())

    def texts(self, documents: Iterable[str], project: str = PROJECT) -> dict[str, str]:
        """What documents say, by their ids; the last of several texts."""
        rows = self._db.execute(
            "select name, cast(body as blob) from json_each(?) join document on "
            "project=? and name=value join text on hash=text order by document.id",
            (json.dumps([*documents]), self._project(project)),
        )
        return {name: unpacked(body) for name, body in rows}

    def query_scores(
        self, query: str, project: str = PROJECT
    ) -> dict[int, dict[str, float | None]]:
        """What each run scores on one query under today's gold, by run and metric."""
        scores: dict[int, dict[str, float | None]] = {}
        for run, metric, code in self._db.execute(
            "select run.id, metric, substr(score.value, place.key*8+1, 8) "
            # In this order: the place of the query is looked up once, not for each run.
            "from query_set cross join json_each(ids) as place on place.value=? "
            "cross join run on query_set=query_set.id "
            "cross join score on score.run=run.id "
            "where query_set.project=? order by run.at, run.id, score.rowid",
            (query, self._project(project)),
        ):
            score = float(np.frombuffer(code, "<f8")[0])
            scores.setdefault(run, {})[metric] = None if np.isnan(score) else score
        return scores

    def intervals(
        self,
        metric: str,
        runs: Iterable[int],
        queries: Container[str] | None = None,
    ) -> dict[int, Interval | None]:
        """The interval of a metric's mean by today's gold, of the runs that have it."""
        return {
            run: column.interval if column.n else None
            for run, column in self._columns(runs, queries, metric)
        }

    def _columns(
        self,
        runs: Iterable[int],
        queries: Container[str] | None = None,
        metric: str | None = None,
    ) -> Iterator[tuple[int, MetricScores]]:
        """The scores of runs, without the names of queries: by one metric, or all."""
        templates: dict[str, MetricScores] = StoredRows()
        places: dict[int, Any] = {}
        if queries is not None:
            for number, ids in self._db.execute("select id, ids from query_set"):
                every = enumerate(from_json(tuple[str, ...], ids, "ids"))
                places[number] = [n for n, query in every if query in queries]
        for run, query_set, name, value in self._db.execute(
            "select run, query_set, metric, score.value from json_each(?) as one "
            "cross join score on run=one.value cross join run on run.id=run "
            "where metric=coalesce(?, metric)",
            (json.dumps([*runs]), metric),
        ):
            if name not in templates:
                # Columns of a metric are alike in all runs, but for the scores.
                templates.update(self._run(run).scores.columns)
            scores = np.frombuffer(value, "<f8")[places.get(query_set, slice(None))]
            yield run, replace(templates[name], scores=scores)

    def scores(self, run: int, queries: Container[str] | None = None) -> Evaluation:
        """A run's scores under today's gold, of some queries or all; no documents."""
        return self._scores(self._run(run), queries)

    def _scores(self, own: RunFacts, queries: Container[str] | None) -> Evaluation:
        rows = self._db.execute(
            "select name, question, tags, fingerprint from query where project=?",
            (own.project,),
        )
        known = StoredRows({name: row for name, *row in rows})
        every = own.scores.queries
        places = [n for n, q in enumerate(every) if queries is None or q in queries]
        names = [every[n] for n in places]
        columns = {}
        for metric, column in own.scores.columns.items():
            reasons = column.failures
            columns[metric] = replace(
                column,
                scores=column.scores[places],
                queries=names,
                failures={n: reasons[p] for n, p in enumerate(places) if p in reasons},
            )
        told = [known[query] for query in names]
        tagged = {
            tags: from_json(tuple[str, ...], tags, "tags")
            for tags in {tags for _, tags, _ in told}
        }
        return replace(
            own.scores,
            queries=names,
            columns=columns,
            missing=own.scores.missing[places],
            facts={
                query: Query(query, text, None, tagged[tags])
                for query, (text, tags, _) in zip(names, told, strict=True)
            },
            fingerprints=[fingerprint or "" for *_, fingerprint in told],
        )

    def rankings(self, run: int, most: int | None = None) -> dict[str, list[Document]]:
        """What a run retrieved, by query: all that is stored, or the top of it."""
        queries = self._run(run).scores.queries
        with gc_paused():
            return {
                queries[one.place]: one.documents or []
                for one in read_rankings(self._db, [run], most=most)
            }

    def evaluation(self, run: int, query: str | None = None) -> Evaluation:
        """A run, or one query of it, as it would be evaluated by today's gold."""
        own = self._run(run)
        queries = [*own.scores.queries]
        if query is not None and query not in queries:
            raise UnknownNameError("query", query, queries)
        stored = self._scores(own, None if query is None else [query])
        place = None if query is None else queries.index(query)
        rankings, facts = {}, {**stored.facts}
        with gc_paused():
            for ranking in read_rankings(self._db, [run], place):
                name = queries[ranking.place]
                rankings[name] = ranking.documents
                facts[name] = replace(facts[name], k=ranking.k)
        if not own.scoring.averages:
            # Nothing can be scored again.
            return replace(
                stored, kept={q: (*top,) for q, top in rankings.items() if top}
            )
        result = score_again(
            rankings,
            StoredGold(self._db, own.project).of(stored.queries),
            own.scoring,
            facts,
            name=stored.run,
            keep=own.depth,
        )
        return replace(
            result,
            columns={m: result.columns.get(m, column) for m, column in stored.items()},
            matchers=stored.matchers,
            provenance=stored.provenance,
            policies=stored.policies,
            fingerprints=stored.fingerprints,
            latency=stored.latency,
        )

    def label(
        self,
        labels: Iterable[Mapping[str, Any]],
        *,
        project: str = PROJECT,
        at: str | None = None,
    ) -> Rescored:
        """Add labels, and score what they touch again in every run.

        Args:
            labels: each with `query`, `document` or `text`, `grade` (a number, or
                "can't tell"), `who`, and perhaps `why`.
            project: its name.
            at: when, in ISO form; default: now.

        Raises:
            DataError: a label that is none, or without a name.
        """
        rows = [*labels]
        with transaction(self._db):
            number = self._project(project)
            gold = StoredGold(self._db, number)
            added = gold.add_labels(rows, at or _now())
            changes = rescore(self._db, number, [row["query"] for row in rows])
            return Rescored(gold.version, changes, tuple(added))

    def undo(
        self, label: int, *, who: str, project: str = PROJECT, at: str | None = None
    ) -> Rescored:
        """Take a label back: what the same person said before counts again.

        Raises:
            UsageError: there is no such label, or somebody else gave it.
        """
        with transaction(self._db):
            number = self._project(project)
            gold = StoredGold(self._db, number)
            changes = rescore(self._db, number, [gold.undo(label, who, at or _now())])
            return Rescored(gold.version, changes)

    def replace_gold(self, gold: Gold, *, project: str = PROJECT) -> Rescored:
        """Put a corrected gold in place of the store's; labels by people stay."""
        with transaction(self._db):
            number = self._project(project)
            stored = StoredGold(self._db, number)
            known = stored.fingerprints()
            changed = stored.replace(gold, [q for q in gold.queries if q in known])
            return Rescored(stored.version, rescore(self._db, number, changed))

    def labels(
        self, project: str = PROJECT, query: str | None = None
    ) -> list[StoredLabel]:
        """Every label ever given, or those of one query, the oldest first."""
        return StoredGold(self._db, self._project(project)).labels(query)

    def gold_version(self, project: str = PROJECT) -> int:
        """How often the gold changed."""
        return StoredGold(self._db, self._project(project)).version

    def gold(self, project: str = PROJECT, version: int | None = None) -> Gold:
        """The gold of today, or of an earlier version."""
        gold = StoredGold(self._db, self._project(project))
        if version is None:
            return gold.of(gold.fingerprints(), project)
        gold.check(version)
        return gold.at_version(version, project)

    def gold_changes(
        self, first: int, second: int, project: str = PROJECT
    ) -> list[GoldChange]:
        """The grades that differ between two versions of the gold, and by whom."""
        gold = StoredGold(self._db, self._project(project))
        gold.check(first, second)
        return gold.changes(first, second)

    def _project(self, name: str) -> int:
        row = self._db.execute("select id from project where name=?", (name,))
        if (known := row.fetchone()) is None:
            raise UnknownNameError("project", name, self.projects())
        return int(known[0])

    def _run(self, run: int) -> RunFacts:
        row = self._db.execute(
            "select run.project, depth, ids, scoring, head from run join query_set on "
            "query_set=query_set.id where run.id=?",
            (run,),
        ).fetchone()
        if row is None:
            raise UsageError(f"there is no run {run}")
        project, depth, ids, scoring, head = row
        stored = bare(from_json(Evaluation, head, "head"))
        rows = self._db.execute("select metric, value from score where run=?", (run,))
        values = StoredRows({name: np.frombuffer(value, "<f8") for name, value in rows})
        columns = {
            metric: replace(column, scores=values[metric])
            for metric, column in stored.columns.items()
        }
        queries = from_json(tuple[str, ...], ids, "ids")
        scores = replace(stored, queries=queries, columns=columns)
        check_scores(scores)
        return RunFacts(project, depth, scoring_of(scoring), scores)

    def _add_queries(self, project: int, result: Evaluation) -> int:
        """The number of the run's set of queries."""
        facts = [result.facts.get(query, Query(query)) for query in result.queries]
        rows = [(project, f.id, f.text, json.dumps([*f.tags])) for f in facts]
        ids = json.dumps([*result.queries], ensure_ascii=False)
        digest = _digest(json.dumps(rows))
        same = self._db.execute(
            "select id from query_set where project=? and digest=?", (project, digest)
        ).fetchone()
        if same is not None:
            return int(same[0])
        self._db.executemany(
            "insert into query(project, name, question, tags) values(?,?,?,?) "
            "on conflict do update set question=coalesce(excluded.question, question), "
            "tags=case when excluded.tags='[]' then tags else excluded.tags end",
            rows,
        )
        added = "insert into query_set(project, digest, ids) values(?,?,?)"
        return int(self._db.execute(added, (project, digest, ids)).lastrowid or 0)


def _check_names(names: Iterable[str]) -> None:
    """Refuse names at whose NUL the JSON functions of SQLite would end them."""
    for name in names:
        if "\0" in name:
            raise DataError(f"{name[:40]!r} holds a NUL, which no store takes")


def _digest(*parts: str | bytes) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        code = part if isinstance(part, bytes) else part.encode()
        digest.update(len(code).to_bytes(8, "little"))
        digest.update(code)
    return digest.hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
