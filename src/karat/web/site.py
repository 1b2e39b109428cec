"""The history as static pages: an index, a page per run and per neighbouring pair.

They hold no script and ask for nothing: any web server, or none, shows them. Texts
stand on pages of their own, each once, and the others point to them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from karat.comparison.compare import compare
from karat.comparison.comparison import Comparison
from karat.data.runs import Document, ranks_of
from karat.data.tables import DASH, Table, number
from karat.errors import FormatError
from karat.history.store import Store
from karat.reports.markup import Markup, figure, grid, page, section, tag
from karat.results.evaluation import UNTAGGED, Evaluation, slice_table, tagged
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
    for name in ("runs", "pairs", "texts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    count = 0
    for place, content in _Site(store, timeline, texts).pages():
        write_file(folder / place, content)
        count += 1
    return count


@dataclass
class _Site:
    """The pages, made one after the other; at most two runs are held at once."""

    store: Store
    timeline: Timeline
    with_texts: bool
    texts: dict[tuple[str | None, str], int] = field(default_factory=dict)

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
        table, steps = self.timeline.table(), self.timeline.steps
        metrics = dict.fromkeys(metric for step in steps for metric in step.run.means)
        others = [metric for metric in metrics if metric != self.timeline.metric]
        rows = []
        for place, step in enumerate(steps):
            number_of, _, *cells, verdict = table.rows[place]
            if step.difference is not None:
                verdict = _link(_pair(steps[place - 1], step), verdict)
            name = _link(f"runs/{step.run.id}.html", step.run.name)
            means = [number(step.run.means.get(metric)) for metric in others]
            rows.append([number_of, name, *cells, verdict, *means])
        board = replace(table, columns=[*table.columns, *others], rows=rows[::-1])
        chart = section("chart", "Over the runs", figure(self.timeline.chart()))
        runs = section("runs", "Runs, the newest first", grid(board, titled=False))
        return page(table.title, [chart, runs])

    def _run(self, step: Step, result: Evaluation) -> str:
        metric = self.timeline.metric
        tags, means = tagged(result), result.summary()
        kept = (f"{m} is not scored again: {why}" for m, why in step.run.frozen.items())
        means = replace(means, notes=[*means.notes, *kept])
        parts = [section("result", "Result", grid(means, titled=False))]
        if tags.keys() - {UNTAGGED}:
            slices = slice_table(result.columns, tags, title="")
            parts.append(section("slices", "By tag", grid(slices)))
        order = range(len(result.queries))
        if metric in result:
            column = result[metric]
            sign = -1 if column.higher_is_better is False else 1
            order = (sign * column.scores).argsort(kind="stable").tolist()
        lowest = [self._query(result, place) for place in order[:_LOWEST]]
        parts.append(section("lowest", f"Lowest by {metric}", *lowest))
        columns = [c.scores[order].tolist() for c in result.values()]
        names = [result.queries[place] for place in order]
        cells = zip(names, *(map(number, column) for column in columns), strict=True)
        table = Table(["query", *result], [*cells])
        parts.append(section("queries", "All queries", grid(table)))
        run = step.run
        said = ", ".join(filter(None, [run.commit, run.branch, run.at[:10]]))
        return _page(f"{run.name}, run {run.id}", said, parts)

    def _query(self, result: Evaluation, place: int) -> Markup:
        """A query with its scores and ranking, folded up."""
        query = result.queries[place]
        asked = (result.facts[query].text or "")[:_QUESTION]
        grades: dict[int, float] = {}
        for matches in [*result.matches.values()][:1]:
            own = matches.hits.query == place
            ranks, worth = matches.hits.rank[own], matches.hits.grade[own]
            grades = dict(zip(ranks.tolist(), worth.tolist(), strict=True))
        kept = result.kept.get(query, ())
        cards = [
            tag("li", self._document(document), f" (grade {grades[rank]:g})")
            if rank in grades
            else tag("li", self._document(document))
            for rank, document in zip(ranks_of(kept), kept, strict=True)
        ]
        scores = ", ".join(f"{m} {number(c.scores[place])}" for m, c in result.items())
        head = tag("summary", tag("b", query), f" {asked} ({scores})")
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
    one, other = (
        _link(f"../runs/{step.run.id}.html", f"run {step.run.id}")
        for step in (old, new)
    )
    links = tag("p", one, " and ", other)
    tables = section("compared", compared.headline, *map(grid, compared.tables()))
    return _page(f"{new.run.name} compared with {old.run.name}", "", [links, tables])


def _page(title: str, said: str, parts: list[Markup]) -> str:
    way = tag("p", _link(f"../{_INDEX}", "All runs"), f" {said}")
    return page(title, [way, *parts])


def _pair(old: Step, new: Step) -> str:
    return f"pairs/{old.run.id}-{new.run.id}.html"


def _link(address: str, name: str) -> Markup:
    return tag("a", name, href=address)
