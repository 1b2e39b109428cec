"""Run a suite: score what it names, check its gates, and write the results down."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from karat.comparison.compare import compare
from karat.comparison.comparison import Comparison
from karat.data.queries import Dataset
from karat.data.runs import Notice, Run
from karat.data.tables import Table, steps
from karat.errors import FormatError, UnknownNameError, UsageError
from karat.evaluation import evaluate
from karat.gates import (
    KINDS,
    Gate,
    GateResult,
    check_failures,
    check_gates,
    outcome_of,
    read_gate,
)
from karat.metrics import read_metric, split_metrics
from karat.planning import DEFAULT_METRICS
from karat.reading.meaning.aliases import FIELDS
from karat.reading.readers import read
from karat.reports import REPORTS
from karat.reports.ci import as_junit
from karat.reports.page import as_html
from karat.results.evaluation import Evaluation, slice_table, tagged
from karat.results.leaderboard import WIDTH, Leaderboard
from karat.results.loading import from_dict, load
from karat.results.plain_values import as_plain
from karat.results.result_cache import digest_of, store_result, stored_result
from karat.retrieving.retrieve import retrieve
from karat.suites.definition import FILE, Suite, read_suite
from karat.sweeps import Sweep, sweep
from karat.writing import write_file

_FUNCTION = re.compile(r"[\w.]+:\w+")
# Documents of each query that the page shows.
_SHOWN = 20
_FILES = {"evaluation.json": "json", "per_query.jsonl": "jsonl"}


@dataclass(frozen=True)
class SuiteResult:
    """What came of a suite.

    Attributes:
        suite: what was asked.
        board: what each retriever scored.
        unchanged: those that were not scored again, since nothing they depend on
            changed.
        comparisons: with the baseline, if the suite has one.
        gates: what came of each gate.
        folder: where everything was written.
        sweep: what its settings achieved, if the suite has a sweep.
    """

    suite: Suite
    board: Leaderboard
    unchanged: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    gates: tuple[GateResult, ...]
    folder: Path
    sweep: Sweep | None = None

    @property
    def ungated(self) -> str | None:
        """The retriever that others are compared with, which no gate is about."""
        name = self.suite.settings.get("baseline")
        return name if name in {*self.board} and len(self.board) > 1 else None

    @property
    def headline(self) -> str:
        """What the comparisons come down to, in a few words."""
        return "; ".join(comparison.headline for comparison in self.comparisons)

    def to_dict(self) -> dict[str, Any]:
        """What it comes to, in plain values; the folder holds every query."""
        plain: dict[str, Any] = as_plain(
            {
                "suite": self.suite.name,
                "outcome": outcome_of(self.gates),
                "gates": self.gates,
                "means": {name: run.means for name, run in self.board.items()},
                "unchanged": self.unchanged,
                "comparisons": [one.to_dict() for one in self.comparisons],
                "folder": str(self.folder),
            }
        )
        return plain

    def tables(self, width: int = WIDTH) -> list[Table]:
        """What a person is shown: scores, by tag where any is new, and comparisons."""
        new = {*self.board} - {*self.unchanged}
        tags = [self._by_tag()] if new and "slices" in self.suite.settings else []
        comparisons = (comparison.summary() for comparison in self.comparisons)
        scores = [self.board.summary(width)] if self.board else []
        sweeps = [] if self.sweep is None else [self.sweep.summary()]
        return [*scores, *tags, *comparisons, *sweeps]

    def _by_tag(self) -> Table:
        """The leading metric's mean in each slice; of a baseline, where one differs."""
        by = self.board.leading
        first = next(iter(self.board.values()))
        tags, runs = tagged(first), self.board.items()
        alike = {name: one for name, one in runs if one.queries == first.queries}
        columns = {name: one[by] for name, one in alike.items() if by in one}
        table = slice_table(columns, tags, title=f"{by} by tag")
        if self.ungated is None:
            return table
        moved = [row for row in table.rows if len({*row[1:-1]}) > 1]
        title = f"{table.title}: {len(moved)} of {len(tags)} tags, where runs differ"
        return replace(table, rows=moved, title=title)


def run_suite(
    name: str | None = None,
    file: str | os.PathLike[str] = FILE,
    *,
    results: str | os.PathLike[str] = "karat-results",
    fresh: bool = False,
) -> SuiteResult:
    """Score what a suite names, check its gates, and write the results down.

    What was scored before is not scored again while the contents of its files, its
    settings and the code of karat and its plug-ins stay the same.

    Args:
        name: of the suite; not needed where the file has one only.
        file: `karat.yaml`, or a file of one suite; paths in it are relative to it.
        results: the folder that gets a folder for this run.
        fresh: score everything again.

    Raises:
        FormatError: a file that cannot be read, or a suite that says what none may say,
            with its line.
    """
    suite = read_suite(name, file)
    gates = _gates(suite)
    saved = _baseline(suite)
    scoring = _scoring(suite, gates)
    board, unchanged = _score_all(suite, scoring, fresh=fresh)
    sweep_result = _run_sweep(suite, scoring, fresh=fresh)
    pairs = _with_baselines(suite, board, saved)
    groups: dict[str, list[Evaluation]] = {}
    for old, new in pairs:
        groups.setdefault(old.run, [old]).append(new)
    result = SuiteResult(
        suite=suite,
        board=board,
        unchanged=unchanged,
        comparisons=tuple(compare(*runs) for runs in groups.values()),
        gates=tuple(_check_all(suite, gates, board, pairs)),
        folder=_new_folder(Path(results), suite.name),
        sweep=sweep_result,
    )
    if board:
        for target, form in _FILES.items():
            write_file(result.folder / target, REPORTS[form](board, result.tables()))
        compared = result.comparisons[0] if len(result.comparisons) == 1 else None
        page = as_html(board, comparison=compared)
        write_file(result.folder / "report.html", page)
    if sweep_result is not None:
        sweep_result.save(result.folder / "sweep.json")
        sweep_result.save(result.folder / "sweep.html")
    if result.gates:
        junit = as_junit(result.gates, result.headline)
        write_file(result.folder / "gates.junit.xml", junit)
    return result


def _gates(suite: Suite) -> list[Gate]:
    """What must hold, checked before any file is read."""
    limits = suite.settings.get("gates", {})
    gates = []
    for kind, key in KINDS.items():
        for metric, value in limits.get(key, {}).items():
            with suite.at("gates", key, metric):
                gates.append(read_gate(f"{metric}={value}", kind))
    for key in "gate_tags", "require_noninferior":
        if limits.get(key) and not limits.get("max_drop"):
            raise suite.error(
                f"{key} is for max_drop, which is not there", "gates", key
            )
    if gates and "retrievers" not in suite.settings:
        raise suite.error("gates are for retrievers, and there are none", "gates")
    return gates


class _Source(NamedTuple):
    """Where a run comes from, a file or a retriever, and all that decides it."""

    decides: tuple[Any, ...]
    retrieve: Callable[[Any], Run] | None = None
    reusable: bool = True


def _score_all(
    suite: Suite, scoring: Mapping[str, Any], *, fresh: bool
) -> tuple[Leaderboard, tuple[str, ...]]:
    """What every retriever scored, and those that were not scored again."""
    data = _data(suite)
    retrievers = suite.settings.get("retrievers", {})
    sources = {own: _source(suite, own, fresh=fresh) for own in retrievers}
    gold: Dataset | None = None
    evaluations, unchanged = {}, []
    for own, source in steps(sources.items(), len(sources), "scoring runs"):
        key = digest_of("evaluation", own, source.decides, data, scoring)
        # A judge keeps its replies itself, and knows who gave them.
        reusable = source.reusable and "judge" not in scoring
        saved = stored_result(key) if reusable and not fresh else None
        with suppress(FormatError):
            if saved is not None:
                evaluations[own] = _reused(from_dict(saved), source)
                unchanged.append(own)
                continue
        if "gold" in data and gold is None:
            names = scoring["mapping"]
            gold = read(data["gold"], "gold", mapping=names, shared=True)
        run = source.decides[0]
        if source.retrieve is not None:
            run = source.retrieve(_queries(suite, data))
        how = {**data, **scoring, "gold": gold}
        result = evaluate(run, **how, name=own, judged=True, keep=_SHOWN)
        if reusable and not any(column.failures for column in result.values()):
            store_result(key, result.to_dict())
        evaluations[own] = result
    return Leaderboard(evaluations), tuple(unchanged)


def _reused(evaluation: Evaluation, source: _Source) -> Evaluation:
    """What was scored before; that a retriever was not asked again is said."""
    if source.retrieve is None:
        return evaluation
    how = "asked by an earlier run of the suite, under the same version"
    text, one = f"queries were {how}", f"query was {how}"
    notice = Notice("cached", len(evaluation.queries), text, one=one)
    return replace(evaluation, notices=(*evaluation.notices, notice))


def _source(suite: Suite, own: str, *, fresh: bool) -> _Source:
    place = ("retrievers", own)
    settings = suite.settings["retrievers"][own]
    settings = {"retriever": settings} if isinstance(settings, str) else dict(settings)
    value = settings.pop("retriever")
    remote = value.startswith(("http://", "https://"))
    if not remote and (
        not _FUNCTION.fullmatch(value) or (suite.path.parent / value).exists()
    ):
        path = suite.file(value, *place)
        return _Source((path, path.name))
    retriever = value if remote else suite.function(value, *place)
    names = {"map": "mapping", "body": "options"}
    how = {names.get(key, key): entry for key, entry in settings.items()}
    how |= {"name": own, **({"cache": None} if fresh else {})}

    def ask(queries: Any) -> Run:
        with suite.at(*place):
            return retrieve(retriever, queries, **how)

    return _Source((value, settings), ask, "version" in settings)


def _data(suite: Suite) -> dict[str, Path]:
    return {
        key: suite.file(suite.settings[key], key)
        for key in ("gold", "queries", "corpus")
        if key in suite.settings
    }


def _queries(suite: Suite, data: Mapping[str, Path]) -> Any:
    """The texts to ask: a file of their own, or those that stand beside the gold."""
    if "gold" not in data:
        raise suite.error("a live retriever needs gold and queries")
    if "queries" in data:
        return data["queries"]
    facts = read(data["gold"], "gold").queries
    if not any(fact.text for fact in facts.values()):
        raise suite.error(
            "a live retriever needs queries: a file of their texts", "gold"
        )
    return facts


def _run_sweep(
    suite: Suite, scoring: Mapping[str, Any], *, fresh: bool
) -> Sweep | None:
    settings = suite.settings.get("sweep")
    if settings is None:
        return None
    data = _data(suite)
    factory = suite.function(settings["factory"], "sweep", "factory")
    how = {**scoring, "name": suite.name, "concurrency": settings.get("concurrency", 1)}
    how["version"] = None if fresh else settings.get("version")
    if "metrics" not in suite.settings:
        del how["metrics"]
    if "corpus" in data:
        how["corpus"] = data["corpus"]
    queries = _queries(suite, data)
    with suite.at("sweep", "grid"):
        return sweep(factory, settings["grid"], queries, data["gold"], **how)


def _check_all(
    suite: Suite,
    gates: Sequence[Gate],
    board: Leaderboard,
    pairs: Sequence[tuple[Evaluation, Evaluation]],
) -> list[GateResult]:
    """What came of the gates."""
    drops = [gate for gate in gates if gate.kind == "drop"]
    baseline = suite.settings.get("baseline")
    if drops and not pairs:
        why = "needs a baseline: the name of a retriever, or a saved evaluation"
        if baseline is not None:
            names = ", ".join(board)
            why = f"has nothing to compare with baseline {baseline!r} by name: {names}"
        raise suite.error(f"max_drop {why}", "gates", "max_drop")
    settings = suite.settings.get("gates", {})
    limits = [gate for gate in gates if gate.kind != "drop"]
    # What is compared with need not pass: it is there already.
    candidates = [run for own, run in board.items() if own != baseline]
    results = check_gates(limits, candidates or board.values())
    with_baseline = {new.run for _, new in pairs}
    results += [
        GateResult(gate, run.run, "inconclusive", f"{run.run} has no baseline")
        for run in candidates
        for gate in drops
        if run.run not in with_baseline
    ]
    how = {
        "allow_noise": settings.get("allow_noise", False),
        "require_noninferior": settings.get("require_noninferior", False),
        "by_tag": settings.get("gate_tags", False),
    }
    for old, new in pairs:
        results += check_gates(drops, [new], baseline=old, **how)
    return [*results, *(check_failures(board.values()) if gates else ())]


def _scoring(suite: Suite, gates: Sequence[Gate]) -> dict[str, Any]:
    """The options of `evaluate`, checked before any file is read."""
    settings = suite.settings
    spellings = settings.get("metrics", [*DEFAULT_METRICS])
    metrics = [str(metric) for metric in split_metrics(spellings)]
    for number, metric in enumerate(metrics):
        with suite.at("metrics", str(number)):
            read_metric(metric)
    for ours in settings.get("map", {}):
        if ours not in FIELDS:
            unknown = UnknownNameError("field", ours, FIELDS)
            raise suite.error(str(unknown), "map", ours)
    metrics += [gate.metric for gate in gates]
    scoring = {key: settings[key] for key in ("match", "judge", "k") if key in settings}
    scoring |= {
        "metrics": [*dict.fromkeys(metrics)],
        "mapping": settings.get("map", {}),
    }
    return {**settings.get("policies", {}), **scoring}


def _baseline(suite: Suite) -> Path | None:
    """The saved evaluation that the suite compares with, if it is a file."""
    name = suite.settings.get("baseline")
    retrievers = suite.settings.get("retrievers", {})
    if name is None or name in retrievers:
        return None
    path = suite.path.parent / str(name)
    if not path.is_file():
        names = ", ".join(retrievers)
        problem = f"baseline {name!r} is neither a retriever ({names}) nor a file"
        raise suite.error(problem, "baseline")
    return path


def _with_baselines(
    suite: Suite, board: Leaderboard, saved: Path | None
) -> list[tuple[Evaluation, Evaluation]]:
    """Each evaluation after what it is compared with."""
    name = suite.settings.get("baseline")
    if saved is None:
        others = (run for own, run in board.items() if own != name)
        return [(board[name], run) for run in others if name is not None]
    pairs = []
    for own, run in board.items():
        # Where several are saved in it, each run is compared with what it was.
        with suppress(UnknownNameError):
            try:
                old = load(saved)
            except UsageError:
                old = load(saved, run=own)
            pairs.append((replace(old, run=f"{old.run} in {saved.name}"), run))
    return pairs


def _new_folder(results: Path, name: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    name = re.sub(r"[^\w.-]+", "-", name)
    for number in count(1):
        folder = results / f"{stamp}-{name}{f'-{number}' if number > 1 else ''}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            problem = f"cannot be written: {error.strerror}"
            raise FormatError(problem, path=folder) from None
        break
    return folder
