"""Runs over commits: each by one metric, with a verdict against the one before."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from karat.comparison.compare import compare
from karat.comparison.differences import Difference
from karat.data.tables import DASH, Table, number
from karat.errors import DataError, UsageError
from karat.history.store import Store, StoredRun
from karat.results.leaderboard import leading
from karat.results.plain_values import as_plain

_COMMIT = 7


@dataclass(frozen=True)
class Step:
    """A run, the interval of its mean, and how it differs from the run before."""

    run: StoredRun
    interval: tuple[float, float] | None
    change: float | None = None
    difference: Difference | None = None
    problem: str = ""


@dataclass(frozen=True)
class Timeline:
    """The runs of a project, the oldest first, scored by the gold of today."""

    project: str
    metric: str
    gold_version: int
    steps: Sequence[Step]
    tag: str | None = None
    has_verdicts: bool = False

    def table(self) -> Table:
        """A row per run."""
        rows = []
        for step in self.steps:
            run = step.run
            cells = [
                *(str(run.id), run.name, run.commit[:_COMMIT] or DASH),
                *(run.branch or DASH, run.at[:10]),
                shown_mean(run, self.metric),
                DASH if step.change is None else f"{step.change:+.4f}",
            ]
            if self.has_verdicts:
                cells.append(step.difference.outcome if step.difference else DASH)
            rows.append(cells)
        columns = ["run", "name", "commit", "branch", "pushed", self.metric, "change"]
        of_tag = f", queries tagged {self.tag}" if self.tag else ""
        return Table(
            [*columns, "verdict"] if self.has_verdicts else columns,
            rows,
            title=f"{self.project}: {self.metric} by gold version "
            f"{self.gold_version}{of_tag}",
            notes=self.notes([self.metric]),
            texts=(1, 2, 3, 4, 7) if self.has_verdicts else (1, 2, 3, 4),
        )

    def notes(self, metrics: Iterable[str]) -> list[str]:
        """What is not scored again, and what is not compared, and why."""
        frozen: dict[tuple[str, str], list[str]] = {}
        for step in self.steps:
            for metric in metrics:
                if why := step.run.frozen.get(metric):
                    frozen.setdefault((metric, why), []).append(str(step.run.id))
        notes = [
            f"* {metric} of run {', '.join(runs)} is not scored again: {why}"
            for (metric, why), runs in frozen.items()
        ]
        return [*notes, *(step.problem for step in self.steps if step.problem)]

    def to_dict(self) -> Mapping[str, Any]:
        """Everything, in plain values."""
        runs = [
            {
                **asdict(step.run),
                "difference": as_plain(step.difference),
                "verdict": step.difference and step.difference.outcome,
            }
            for step in self.steps
        ]
        head = {"project": self.project, "metric": self.metric, "tag": self.tag}
        return {**head, "gold_version": self.gold_version, "runs": runs}


def shown_mean(run: StoredRun, metric: str) -> str:
    """The mean as it is shown, with a star where it is not scored again."""
    return number(run.means.get(metric)) + ("*" if metric in run.frozen else "")


def check_since(since: str | None) -> None:
    """Refuse what is no date."""
    try:
        datetime.fromisoformat(since or "2026-01-31")
    except ValueError:
        raise UsageError(
            f"since takes a date, as in 2026-01-31, got {since!r:.80}"
        ) from None


def timeline_of(
    store: Store,
    project: str,
    *,
    metric: str | None = None,
    branch: str | None = None,
    since: str | None = None,
    tag: str | None = None,
) -> Timeline:
    """The runs of a branch, since a time, by a metric over the queries of a tag."""
    # A project without runs exists where only a token was made for it.
    every = store.runs(project) if store.projects() else []
    if not every:
        push = f"karat push RESULT.json --to {store.path} --project {project} adds one"
        raise UsageError(f"{store.path} holds no runs of {project} yet; {push}")
    queries = None if tag is None else store.tagged(tag, project)
    if queries is not None and not queries:
        raise UsageError(f"no query of {project} has the tag {tag!r}")
    runs = store.runs(project, branch=branch, since=since, tag=tag)
    if not runs:
        own = [run for run in every if branch in (None, run.branch)]
        of_branch = f" of branch {branch}" if branch is not None else ""
        if own:
            last = f"since {since}; the last is of {own[-1].at[:10]}"
            raise UsageError(f"{project} has no run{of_branch} {last}")
        branches = {run.branch for run in every}
        shown = ", ".join(sorted(filter(None, branches))) or "none"
        raise UsageError(f"{project} has no run{of_branch}; its branches: {shown}")
    evaluations = [store.scores(run.id, queries) for run in runs]
    known = [*dict.fromkeys(name for run in runs for name in run.means)]
    metric = leading(evaluations[-1].columns) if metric is None else metric
    label = next((one[metric].metric for one in evaluations if metric in one), None)
    if label is None:
        raise UsageError(f"no run has {metric!r:.80}; there are {', '.join(known)}")
    plain = means_over_time(store, project, runs, label, queries)
    steps = [plain.steps[0]]
    for place, step in enumerate(plain.steps[1:], 1):
        old, new = evaluations[place - 1 : place + 1]
        try:
            (one,) = compare(old, new, metrics=[label]).differences
        except (DataError, UsageError) as error:
            why = f"run {step.run.id} is not compared with the one before: {error}"
            steps.append(replace(step, change=None, problem=why))
        else:
            change = one.difference if one.n else None
            steps.append(replace(step, change=change, difference=one))
    return replace(plain, steps=steps, tag=tag, has_verdicts=True)


def means_over_time(
    store: Store,
    project: str,
    runs: Sequence[StoredRun],
    metric: str,
    queries: Container[str] | None,
) -> Timeline:
    """The same without verdicts, which takes a hundredth of the time."""
    intervals = store.intervals(metric, [run.id for run in runs], queries)
    means = [run.means.get(metric) for run in runs]
    changes = [
        None if old is None or new is None else new - old
        for old, new in zip([None, *means], means, strict=False)
    ]
    steps = [
        Step(run, intervals.get(run.id), change)
        for run, change in zip(runs, changes, strict=True)
    ]
    return Timeline(project, metric, store.gold_version(project), steps)
