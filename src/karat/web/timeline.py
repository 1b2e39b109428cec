"""Runs over commits: each by one metric, with a verdict against the one before."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from karat.comparison.compare import compare
from karat.comparison.differences import Difference
from karat.data.tables import DASH, Table, number
from karat.errors import DataError, UnknownNameError, UsageError
from karat.history.store import Store, StoredRun
from karat.reports.charts import Line, draw_lines
from karat.reports.drawing import Chart, limits_around
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import leading
from karat.results.plain_values import as_plain

_COMMIT = 7


@dataclass(frozen=True)
class Step:
    """A run, its scores, and how it differs from the run before."""

    run: StoredRun
    scores: Evaluation
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

    def table(self) -> Table:
        """A row per run."""
        rows = []
        for step in self.steps:
            run, one = step.run, step.difference
            star = "*" if self.metric in run.frozen else ""
            rows.append(
                [
                    *(str(run.id), run.name, run.commit[:_COMMIT] or DASH),
                    *(run.branch or DASH, run.at[:10]),
                    number(run.means.get(self.metric)) + star,
                    f"{one.difference:+.4f}" if one is not None and one.n else DASH,
                    DASH if one is None else one.outcome,
                ]
            )
        columns = ["run", "name", "commit", "branch", "pushed", self.metric, "change"]
        of_tag = f", queries tagged {self.tag}" if self.tag else ""
        return Table(
            [*columns, "verdict"],
            rows,
            title=f"{self.project}: {self.metric} by gold version "
            f"{self.gold_version}{of_tag}",
            notes=self.notes(),
            texts=(1, 2, 3, 4, 7),
        )

    def notes(self) -> list[str]:
        """What is not scored again, and what is not compared, and why."""
        frozen: dict[str, list[str]] = {}
        for step in self.steps:
            if why := step.run.frozen.get(self.metric):
                frozen.setdefault(why, []).append(str(step.run.id))
        notes = [
            f"* {self.metric} of run {', '.join(runs)} is not scored again: {why}"
            for why, runs in frozen.items()
        ]
        return [*notes, *(step.problem for step in self.steps if step.problem)]

    def chart(self) -> Chart:
        """The metric over the runs, with the 95% interval of each."""
        points = [
            (place, column.mean, *(column.interval or (column.mean,) * 2))
            for place, step in enumerate(self.steps, 1)
            if (column := step.scores.columns.get(self.metric)) is not None and column.n
        ]
        xs, ys, low, high = zip(*points, strict=True) if points else ((),) * 4
        return draw_lines(
            [Line(self.metric, xs, ys, low, high)],
            title=f"{self.metric} over the runs, with 95% intervals",
            x="run, the oldest first",
            y="",
            bounds=limits_around([*low, *high]),
        )

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
    queries = None if tag is None else store.tagged(tag, project)
    if queries is not None and not queries:
        raise UsageError(f"no query of {project} has the tag {tag!r}")
    runs = store.runs(project, branch=branch, since=since, tag=tag)
    if not runs:
        branches = {run.branch for run in store.runs(project)}
        shown = ", ".join(sorted(filter(None, branches))) or "none"
        raise UsageError(f"{project} has no such run; its branches: {shown}")
    evaluations = [store.scores(run.id, queries) for run in runs]
    newest = evaluations[-1]
    known = [*dict.fromkeys(name for run in runs for name in run.means)]
    metric = leading(newest.columns) if metric is None else metric
    label = next((one[metric].metric for one in evaluations if metric in one), None)
    if label is None:
        raise UnknownNameError("metric", metric, known)
    steps = [Step(runs[0], evaluations[0])]
    for run, old, new in zip(runs[1:], evaluations, evaluations[1:], strict=False):
        try:
            (difference,) = compare(old, new, metrics=[label]).differences
        except (DataError, UsageError) as error:
            why = f"run {run.id} is not compared with the one before: {error}"
            steps.append(Step(run, new, problem=why))
        else:
            steps.append(Step(run, new, difference))
    return Timeline(project, label, store.gold_version(project), steps, tag)
