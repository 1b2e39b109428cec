"""What the workbench and the static pages both show: runs over time, a run, a pair.

A view makes the sections of a page. Who shows it says where links lead: to pages of the
server, or to files.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from karat.comparison.comparison import Comparison
from karat.data.tables import Table, counted, number
from karat.history.store import StoredRun
from karat.reports.charts import Line, draw_lines
from karat.reports.drawing import limits_around
from karat.reports.markup import Markup, figure, grid, section, tag
from karat.results.evaluation import UNTAGGED, Evaluation, slice_table, tagged
from karat.web.timeline import Timeline, shown_mean

SHOWN = 200
"""So many rows of a long table are on one page of the workbench."""


@dataclass(frozen=True)
class Links:
    """Where pages are: of a run, of two runs, and of a query in some runs, if any."""

    run: Callable[[int], str]
    pair: Callable[[int, int], str]
    query: Callable[..., str] | None = None


def run_names(runs: Sequence[StoredRun]) -> dict[int, str]:
    """What runs are called: by their number, too, where several have the name."""
    counts = Counter(run.name for run in runs)
    return {
        run.id: run.name if counts[run.name] == 1 else f"{run.name} (run {run.id})"
        for run in runs
    }


def link(address: str, name: str) -> Markup:
    """A name that leads somewhere."""
    return tag("a", name, href=address)


def curve(
    heading: str,
    metric: str,
    means: Sequence[float | None],
    intervals: Sequence[tuple[float, float] | None] = (),
) -> Markup:
    """A metric over runs, the oldest first; nothing where no run has it."""
    points = [
        (place, mean, *((intervals and intervals[place - 1]) or (mean, mean)))
        for place, mean in enumerate(means, 1)
        if mean is not None
    ]
    if not points:
        return Markup("")
    xs, ys, low, high = zip(*points, strict=True)
    chart = draw_lines(
        [Line(metric, xs, ys, low, high)],
        title=f"{metric} over {counted(len(points), 'run')}"
        + (", with 95% intervals" if any(intervals) else ""),
        x="run, the oldest first",
        bounds=limits_around([*low, *high]),
    )
    return section("chart", heading, figure(chart))


def timeline_chart(timeline: Timeline) -> Markup:
    """The metric over the runs, with the 95% interval of each."""
    means = [step.run.means.get(timeline.metric) for step in timeline.steps]
    intervals = [step.interval for step in timeline.steps]
    return curve("Over the runs", timeline.metric, means, intervals)


def run_table(
    timeline: Timeline, links: Links, mark: Callable[[StoredRun], str]
) -> Markup:
    """The runs, the newest first; `mark` is what stands before each.

    The last column of the timeline leads to the comparison with the run before.
    """
    table, steps = timeline.table(), timeline.steps
    metrics = dict.fromkeys(metric for step in steps for metric in step.run.means)
    others = [metric for metric in metrics if metric != timeline.metric]
    rows = []
    for place, step in enumerate(steps):
        _, _, *cells, last = table.rows[place]
        if place and not step.problem:
            last = link(links.pair(steps[place - 1].run.id, step.run.id), last)
        name = link(links.run(step.run.id), step.run.name)
        means = [shown_mean(step.run, metric) for metric in others]
        rows.append([mark(step.run), name, *cells, last, *means])
    columns, notes = [*table.columns, *others], timeline.notes(metrics)
    board = replace(table, columns=columns, rows=rows[::-1], notes=notes)
    return grid(board, titled=False)


def run_view(
    run: StoredRun,
    result: Evaluation,
    metric: str,
    links: Links,
    lowest: Callable[[Sequence[int]], Sequence[Markup]] | None = None,
) -> list[Markup]:
    """A run: means, slices, and its queries by a metric, the lowest first.

    With links, queries have their questions; `lowest` shows more of the first ones.
    """
    tags, means = tagged(result), result.summary()
    kept = (f"{m} is not scored again: {why}" for m, why in run.frozen.items())
    means = replace(means, notes=[*means.notes, *kept])
    parts = [section("result", "Result", grid(means, titled=False))]
    if tags.keys() - {UNTAGGED}:
        slices = slice_table(result.columns, tags, title="")
        parts.append(section("slices", "By tag", grid(slices)))
    order = range(len(result.queries))
    if metric in result:
        sign = -1 if result[metric].higher_is_better is False else 1
        order = (sign * result[metric].scores).argsort(kind="stable").tolist()
    if lowest is not None:
        parts.append(section("lowest", f"Lowest by {metric}", *lowest(order)))
    shown = order if links.query is None else order[:SHOWN]
    scores = (map(number, c.scores[shown].tolist()) for c in result.values())
    rows = []
    for place, *cells in zip(shown, *scores, strict=True):
        name = result.queries[place]
        if links.query is not None:
            question = result.facts[name].text or ""
            rows.append([link(links.query(name, run.id), name), question, *cells])
        else:
            rows.append([name, "", *cells])
    table = Table(["query", "question", *result], rows, texts=(0, 1)).without_empty()
    heading = f"Queries, the lowest {metric} first"
    return [*parts, section("queries", heading, grid(table))]


def pair_view(compared: Comparison, links: Links, old: int, new: int) -> list[Markup]:
    """Two runs: the verdict, the differences, and the queries that changed most."""
    parts = [tag("p", tag("strong", compared.headline), _class="lead")]
    for place, table in enumerate(compared.tables()):
        rows = table.rows
        if links.query is not None and table.links:
            queries = [query for _, query in table.links]
            rows = [
                [link(links.query(query, old, new), first), *cells]
                for query, (first, *cells) in zip(queries, rows, strict=True)
            ]
        shown = grid(replace(table, rows=rows), titled=False)
        # What the title says of files is for the command line.
        heading = table.title.partition("; -o ")[0] if place else "Differences"
        heading = f"{heading[:1].upper()}{heading[1:]}"
        parts.append(section(f"part-{place}", heading, shown))
    return parts
