"""The history store: runs, labels and scores in one SQLite file.

A run is stored as its rankings. When labels change the gold, the rankings that all runs
have of a query are scored again, as so many queries of one run with the same gold, by
`karat.evaluate` itself: a stored score is that of a fresh evaluation to the last bit.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import numpy as np

from karat.data.gold import Gold
from karat.data.memory_runs import DocumentRun
from karat.data.policies import Policies
from karat.data.queries import Query
from karat.data.runs import Document
from karat.data.spelling import LETTER
from karat.errors import UnknownNameError, UsageError
from karat.evaluation import evaluate
from karat.history.gold import StoredGold, StoredLabel, gold_for
from karat.history.rankings import StoredRankings
from karat.history.schema import connect, transaction
from karat.results.evaluation import Evaluation
from karat.results.measures import read_measure
from karat.results.plain_values import as_plain, from_plain
from karat.results.scores import MetricScores

PROJECT: Final = "default"
"""The project of those who name none."""

_SWITCHES: Final = tuple(
    field.name
    for field in fields(Policies)
    # Rankings are stored in their order.
    if field.name not in {"precision", "ties", "extra", "force"}
)


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


class Change(NamedTuple):
    """How the mean of a run's metric moved."""

    run: int
    metric: str
    before: float | None
    after: float | None


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


class Store:
    """A history store; a `with` block closes it.

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
        self._rankings = StoredRankings(self._db)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

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
                f"{result.run} keeps no documents, so that no label could rescore it: "
                "evaluate it with keep=20 (--keep 20)"
            )
        frozen = _frozen_columns(result)
        with transaction(self._db):
            self._db.execute(
                "insert or ignore into project(name) values(?)", (project,)
            )
            number = self._project(project)
            queries = self._add_queries(number, result)
            depth, *blobs = self._rankings.add(number, result)
            head = json.dumps(_head(result), ensure_ascii=False)
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
            scoring = as_plain([result.policies, result.default_matcher, columns])
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
            gold.replace(_gold_of(result), new)
            self._db.executemany(
                "insert into score values(?,?,?,?,?,?)",
                [
                    (run, m, _mean(c), value, gold.version, frozen.get(m, ""))
                    for (m, c), value in zip(result.items(), values, strict=True)
                ],
            )
            known = gold.fingerprints()
            pairs = zip(result.queries, result.digests, strict=True)
            differing = tuple(q for q, digest in pairs if known[q] != digest)
            self._rescore(number, differing, run)
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
            "join json_each(?) as one on run=one.value",
            (json.dumps([*means]),),
        ):
            means[run][metric] = mean
            if why:
                frozen[run][metric] = f"{why}; scored by gold version {version}"
        if tag is not None:
            for run in means:
                means[run] = self._means_of_tag(run, tag)
        return [
            StoredRun(run, name, commit, own, when, means[run], frozen[run])
            for run, name, commit, own, when in rows
        ]

    def columns(self, run: int) -> dict[str, MetricScores]:
        """A run's scores, query by query, under today's gold."""
        head = json.loads(self._run(run, "head"))
        ids, _ = self._queries(run)
        saved = self._db.execute("select metric, value from score where run=?", (run,))
        values = dict(saved.fetchall())
        return {
            metric: replace(
                from_plain(MetricScores, plain, metric),
                scores=np.frombuffer(values[metric], "<f8"),
                queries=ids,
            )
            for metric, plain in head["columns"].items()
        }

    def evaluation(self, run: int) -> Evaluation:
        """A run as it would be evaluated today, by the newest gold."""
        head, stored = json.loads(self._run(run, "head")), self.columns(run)
        ids, project = self._queries(run)
        rows = self._db.execute(
            "select name, question, tags from query where project=?", (project,)
        )
        facts = {q: Query(q, text, None, tuple(json.loads(t))) for q, text, t in rows}
        rankings, cutoffs = {}, {}
        for _, place, top, k in self._rankings.read([run], None):
            rankings[ids[place]], cutoffs[ids[place]] = top, k
        scoring = json.loads(self._run(run, "scoring"))
        scoring[2] = scoring[2] or stored
        result = _score_again(
            rankings,
            StoredGold(self._db, project).of(ids),
            scoring,
            {q: replace(facts[q], k=cutoffs.get(q)) for q in ids},
            name=head["run"],
            keep=int(self._run(run, "depth")),
        )
        return replace(
            result,
            columns={m: result.columns.get(m, stored[m]) for m in stored},
            matchers=head["matchers"],
            provenance=head["provenance"],
            policies=from_plain(Policies, scoring[0], "policies"),
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
            changes = self._rescore(number, [row["query"] for row in rows])
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
            changes = self._rescore(number, [gold.undo(label, who, at or _now())])
            return Rescored(gold.version, changes)

    def replace_gold(self, gold: Gold, *, project: str = PROJECT) -> Rescored:
        """Put a corrected gold in place of the store's; labels by people stay."""
        with transaction(self._db):
            number = self._project(project)
            stored = StoredGold(self._db, number)
            known = stored.fingerprints()
            changed = stored.replace(gold, [q for q in gold.queries if q in known])
            return Rescored(stored.version, self._rescore(number, changed))

    def labels(
        self, project: str = PROJECT, query: str | None = None
    ) -> list[StoredLabel]:
        """Every label ever given, or those of one query, the oldest first."""
        return StoredGold(self._db, self._project(project)).labels(query)

    def gold(self, project: str = PROJECT, version: int | None = None) -> Gold:
        """The gold of today, or of an earlier version."""
        gold = StoredGold(self._db, self._project(project))
        version = gold.version if version is None else version
        if not 0 <= version <= gold.version:
            raise UsageError(f"{project} has gold versions 0 to {gold.version}")
        return gold.at_version(version, project)

    def _project(self, name: str) -> int:
        row = self._db.execute("select id from project where name=?", (name,))
        if (known := row.fetchone()) is None:
            raise UnknownNameError("project", name, self.projects())
        return int(known[0])

    def _run(self, run: int, column: str) -> Any:
        row = self._db.execute(f"select {column} from run where id=?", (run,))  # noqa: S608
        if (known := row.fetchone()) is None:
            raise UsageError(f"there is no run {run}")
        return known[0]

    def _queries(self, run: int) -> tuple[list[str], int]:
        """The ids of a run's queries, and the project."""
        ids, project = self._db.execute(
            "select ids, project from query_set where id=?",
            (self._run(run, "query_set"),),
        ).fetchone()
        return json.loads(ids), project

    def _means_of_tag(self, run: int, tag: str) -> dict[str, float | None]:
        ids, project = self._queries(run)
        rows = self._db.execute(
            "select name from query join json_each(tags) on value=? where project=?",
            (tag, project),
        )
        tagged = {name for (name,) in rows}
        chosen = np.array([query in tagged for query in ids], bool)
        return {
            metric: _mean(replace(column, scores=column.scores[chosen]))
            for metric, column in self.columns(run).items()
        }

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

    def _rescore(
        self, project: int, queries: Iterable[str], only: int | None = None
    ) -> tuple[Change, ...]:
        """Score queries again in all runs, or in one, and store what changed."""
        wanted = [*dict.fromkeys(queries)]
        gold = StoredGold(self._db, project)
        labels, version = gold.of(wanted), gold.version
        changes: list[Change] = []
        groups = self._db.execute(
            "select query_set, ids, scoring, json_group_array(run.id) from run join "
            "query_set on query_set=query_set.id where run.project=? and "
            "(? is null or run.id=?) group by query_set, scoring",
            (project, only, only),
        ).fetchall()
        for _, ids, saved, numbers in groups if wanted else ():
            places = {query: n for n, query in enumerate(json.loads(ids))}
            scoring, runs = json.loads(saved), json.loads(numbers)
            names: dict[str, str] = {}
            rankings: dict[str, list[Document] | None] = {}
            facts: dict[str, Query] = {}
            where: list[tuple[int, int]] = []
            for query in wanted if scoring[2] else ():
                if query not in places:
                    continue
                for run, place, top, k in self._rankings.read(runs, places[query]):
                    name = f"{run} {place}"
                    names[name], rankings[name] = query, top
                    facts[name] = Query(name, k=k)
                    where.append((run, place))
            if where:
                result = _score_again(rankings, gold_for(labels, names), scoring, facts)
                changes += self._patch(result, where, scoring[2], version)
        return tuple(changes)

    def _patch(
        self,
        result: Evaluation,
        where: Sequence[tuple[int, int]],
        averages: Mapping[str, Any],
        version: int,
    ) -> Iterator[Change]:
        """Put scores into the stored columns: of which run and query is in `where`."""
        for metric, average in averages.items():
            fresh: dict[int, list[tuple[int, float]]] = {}
            for (run, place), score in zip(where, result[metric].scores, strict=True):
                fresh.setdefault(run, []).append((place, float(score)))
            stored = self._db.execute(
                "select run, score.value, mean from score join json_each(?) as one on "
                "run=one.value where metric=?",
                (json.dumps([*fresh]), metric),
            ).fetchall()
            for run, value, before in stored:
                scores = np.frombuffer(value, "<f8").copy()
                places, new = zip(*fresh[run], strict=True)
                scores[[*places]] = new
                mean = _mean(MetricScores(metric, scores, average=average))
                self._db.execute(
                    "update score set value=?, mean=?, version=? where run=? and "
                    "metric=?",
                    (scores.tobytes(), mean, version, run, metric),
                )
                if mean != before:
                    yield Change(run, metric, before, mean)


def _score_again(
    rankings: Mapping[str, Sequence[Document] | None],
    gold: Gold,
    scoring: Sequence[Any],
    facts: Mapping[str, Query],
    **options: Any,
) -> Evaluation:
    """What stored rankings score: by name, None where the run lacks the query."""
    policies, matcher, metrics = scoring
    rules = from_plain(Policies, policies, "policies")
    return evaluate(
        DocumentRun({n: top for n, top in rankings.items() if top is not None}),
        gold=gold,
        metrics=[*metrics],
        match=matcher,
        queries=facts,
        force=True,
        **{name: getattr(rules, name) for name in _SWITCHES},
        **options,
    )


def _gold_of(result: Evaluation) -> Gold:
    """The gold that an evaluation was made with."""
    if result.labels is not None or "id" not in result.matches:
        return result.labels or Gold()
    labels = result.matches["id"].labels()
    return Gold(dict(zip(result.queries, labels, strict=True)))


def _frozen_columns(result: Evaluation) -> dict[str, str]:
    """The metrics by which stored rankings cannot be scored again, and why."""
    first = next(iter(result.matches.values()))
    stored = np.array([len(result.kept.get(query, ())) for query in result.queries])
    cut = first.hits.retrieved > stored
    depth = int(stored[cut].min()) if cut.any() else None
    reasons = {}
    for metric, column in result.columns.items():
        measure = read_measure(metric, result.default_matcher, result.policies.profile)
        k = getattr(measure.metric, LETTER, None)
        deepest = max(column.cutoffs, default=None) if k == LETTER else k
        if result.matches[measure.matcher].verdicts:
            reasons[metric] = "judged by a model"
        elif result.policies.judged_only:
            reasons[metric] = "documents without a label were removed"
        elif result.labels is None and "id" not in result.matches:
            reasons[metric] = "saved without its gold"
        elif depth is not None and not (isinstance(deepest, int) and deepest <= depth):
            reasons[metric] = f"reads deeper than the {depth} documents that are stored"
    return reasons


def _head(result: Evaluation) -> dict[str, Any]:
    """What else there is to know of a run to show it."""
    return {
        "run": result.run,
        "gold": result.gold,
        "matchers": dict(result.matchers),
        "provenance": as_plain(result.provenance),
        "columns": {
            metric: as_plain(replace(column, scores=np.zeros(0), queries=()))
            for metric, column in result.columns.items()
        },
    }


def _digest(*parts: str | bytes) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        code = part if isinstance(part, bytes) else part.encode()
        digest.update(len(code).to_bytes(8, "little"))
        digest.update(code)
    return digest.hexdigest()


def _mean(column: MetricScores) -> float | None:
    mean = column.mean
    return None if np.isnan(mean) else mean


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
