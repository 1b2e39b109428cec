"""The history as static pages: an index, a page per run and per neighbouring pair.

They hold no script and ask for nothing: any web server, or none, shows them. Texts
stand on pages of their own, each once, and the others point to them.
"""

from collections.abc import Iterator
from pathlib import Path

from karat.comparison.compare import compare
from karat.comparison.comparison import Comparison
from karat.data.runs import Document
from karat.data.tables import DASH, Table, number
from karat.errors import FormatError
from karat.history.store import Store
from karat.reports.charts import draw_intervals
from karat.reports.markup import Markup, figure, grid, page, section, tag
from karat.results.evaluation import Evaluation
from karat.results.slices import UNTAGGED, slice_table, tagged
from karat.web.timeline import Step, Timeline
from karat.writing import write_file

_LOWEST = 20
_QUESTION = 120
_TEXTS = 200
_INDEX = "index.html"
_OURS = "Written by karat"


def write_site(
    store: Store, timeline: Timeline, folder: Path, *, texts: bool = True
) -> int:
    """Write all pages; how many there are."""
    index = folder / _INDEX
    if index.is_file() and _OURS not in index.read_text("utf-8", "replace"):
        raise FormatError("is not of karat, and would be overwritten", path=str(index))
    for name in ("", "runs", "pairs", "texts"):
        try:
            (folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FormatError(f"{error.strerror}", path=str(folder)) from None
    count = 0
    for place, content in _Site(store, timeline, texts=texts).pages():
        write_file(folder / place, content)
        count += 1
    return count


class _Site:
    """The pages, made one after the other; at most two runs are held at once."""

    def __init__(self, store: Store, timeline: Timeline, *, texts: bool) -> None:
        self.store = store
        self.timeline = timeline
        self.with_texts = texts
        self.texts: dict[tuple[str | None, str], int] = {}

    def pages(self) -> Iterator[tuple[str, str]]:
        """Each page with its place in the folder."""
        before: tuple[Step, Evaluation] | None = None
        for step in self.timeline.steps:
            result = self.store.evaluation(step.run.id)
            if not self.with_texts:
                result = result.without_texts()
            yield f"runs/{step.run.id}.html", self._run(step, result)
            if before is not None and step.difference is not None:
                compared = compare(before[1], result)
                place = _pair(before[0], step)
                yield place, _comparison_page(compared, before[0], step)
            before = step, result
        yield from self._text_pages()
        yield _INDEX, self._index()

    def _index(self) -> str:
        """Chart and leaderboard, the newest run first."""
        table = self.timeline.table()
        metrics = [*dict.fromkeys(m for s in self.timeline.steps for m in s.run.means)]
        others = [metric for metric in metrics if metric != self.timeline.metric]
        rows = []
        steps = [*self.timeline.steps]
        for place, (step, cells) in enumerate(zip(steps, table.rows, strict=True)):
            means = [number(step.run.means.get(metric)) for metric in others]
            name = _link(f"runs/{step.run.id}.html", step.run.name)
            verdict = cells[-1]
            if step.difference is not None:
                verdict = _link(_pair(steps[place - 1], step), verdict)
            rows.append([cells[0], name, *cells[2:-1], verdict, *means])
        board = Table(
            [*table.columns, *others], rows[::-1], "", table.notes, table.texts
        )
        return page(
            table.title,
            [
                section("chart", "Over the runs", figure(self.timeline.chart())),
                section("runs", "Runs, the newest first", grid(board)),
            ],
            None,
            [],
        )

    def _run(self, step: Step, result: Evaluation) -> str:
        metric = self.timeline.metric
        tags = tagged(result)
        parts = [section("result", "Result", grid(result.summary(), titled=False))]
        if tags.keys() - {UNTAGGED}:
            slices = slice_table(result.columns, tags, title="")
            parts.append(section("slices", "By tag", grid(slices)))
        order = [*range(len(result.queries))]
        if metric in result:
            scores = result[metric].scores
            order = scores.argsort(kind="stable").tolist()
        lowest = [self._query(result, place) for place in order[:_LOWEST]]
        parts.append(section("lowest", f"Lowest by {metric}", *lowest))
        columns = [
            [number(score) for score in c.scores.tolist()] for c in result.values()
        ]
        rows = [[q, *cells] for q, *cells in zip(result.queries, *columns, strict=True)]
        table = Table(["query", *result], [rows[place] for place in order])
        parts.append(section("queries", "All queries", grid(table)))
        run = step.run
        facts = [run.commit, run.branch, f"pushed {run.at[:10]}"]
        said = ", ".join(filter(None, facts))
        return _page(f"{run.name}, run {run.id}", said, parts)

    def _query(self, result: Evaluation, place: int) -> Markup:
        """A query with its gold and ranking, folded up."""
        query = result.queries[place]
        fact = result.facts.get(query)
        asked = (fact.text if fact else None) or ""
        matches = next(iter(result.matches.values()), None)
        grades: dict[int, float] = {}
        if matches is not None:
            own = matches.hits.query == place
            pairs = zip(matches.hits.rank[own], matches.hits.grade[own], strict=True)
            grades = {int(rank): float(grade) for rank, grade in pairs}
        cards = [
            tag("li", self._document(document), f" {_worth(grades.get(rank))}")
            for rank, document in enumerate(result.kept.get(query, ()), 1)
        ]
        scores = ", ".join(f"{m} {number(c.scores[place])}" for m, c in result.items())
        head = tag("summary", tag("b", query), f" {asked[:_QUESTION]} ({scores})")
        return tag("details", head, tag("ol", *cards))

    def _document(self, document: Document) -> Markup:
        """The name of a document, and where its text stands."""
        name = document.id or (document.text or DASH)[:_QUESTION]
        if not document.text:
            return tag("span", name)
        key = document.id, document.text
        number = self.texts.setdefault(key, len(self.texts))
        return _link(f"../texts/{number // _TEXTS}.html#d{number}", name)

    def _text_pages(self) -> Iterator[tuple[str, str]]:
        every = [*self.texts]
        for start in range(0, len(every), _TEXTS):
            parts = [
                section(f"d{start + n}", name or "", tag("p", text, dir="auto"))
                for n, (name, text) in enumerate(every[start : start + _TEXTS])
            ]
            yield f"texts/{start // _TEXTS}.html", _page("Texts", "", parts)


def _comparison_page(compared: Comparison, old: Step, new: Step) -> str:
    rows = [
        (d.metric, d.difference, None if d.interval is None else (*d.interval,))
        for d in compared.differences
        if d.n
    ]
    title = f"difference from run {old.run.id}, with 95% intervals"
    parts = [figure(draw_intervals(rows, title=title, zero=True))] if rows else []
    parts += map(grid, compared.tables())
    pages = [
        _link(f"../runs/{one.run.id}.html", f"run {one.run.id}") for one in (old, new)
    ]
    links = tag("p", pages[0], " and ", pages[1])
    heading = f"{new.run.name} compared with {old.run.name}"
    return _page(heading, "", [links, section("compared", compared.headline, *parts)])


def _page(title: str, said: str, parts: list[Markup]) -> str:
    way = tag("p", _link(f"../{_INDEX}", "All runs"), f" {said}")
    return page(title, [way, *parts], None, [])


def _pair(old: Step, new: Step) -> str:
    return f"pairs/{old.run.id}-{new.run.id}.html"


def _link(address: str, name: str) -> Markup:
    return tag("a", name, href=address)


def _worth(grade: float | None) -> str:
    return "" if grade is None else f"(grade {grade:g})"
