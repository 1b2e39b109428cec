"""The history as static pages: an index, a page per run and per neighbouring pair.

They hold no script and ask for nothing: any web server, or none, shows them. Texts
stand on pages of their own, each once, and the others point to them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from karat.comparison.compare import compare
from karat.data.runs import Document, ranks_of
from karat.data.tables import DASH, number
from karat.errors import FormatError
from karat.history.store import Store, StoredRun
from karat.reports.markup import Markup, page, section, tag
from karat.results.evaluation import Evaluation
from karat.web.timeline import Timeline
from karat.web.views import (
    Links,
    link,
    pair_view,
    run_names,
    run_table,
    run_view,
    timeline_chart,
)
from karat.writing import write_file

_LOWEST = 20
_QUESTION = 120
_TEXTS = 200
_INDEX = "index.html"
_OURS = "Written by karat"
# From one page in a folder to another.
_WITHIN = Links("../runs/{}.html".format, "../pairs/{}-{}.html".format)


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
        before: tuple[StoredRun, Evaluation] | None = None
        metric = self.timeline.metric
        names = run_names([step.run for step in self.timeline.steps])
        for step in self.timeline.steps:
            run, result = step.run, self.store.evaluation(step.run.id)
            if not self.with_texts:
                result = result.without_texts()
            lowest = partial(self._lowest, result)
            parts = run_view(run, result, metric, _WITHIN, lowest)
            said = ", ".join(filter(None, [run.commit, run.branch, run.at[:10]]))
            yield _page(_WITHIN.run(run.id), f"{run.name}, run {run.id}", said, parts)
            if before is not None and not step.problem:
                old = before[0]
                compared = compare(
                    replace(before[1], run=names[old.id]),
                    replace(result, run=names[run.id]),
                )
                one, other = (
                    link(_WITHIN.run(r.id), f"run {r.id}") for r in (old, run)
                )
                parts = pair_view(compared, _WITHIN, old.id, run.id)
                yield _page(
                    _WITHIN.pair(old.id, run.id),
                    f"{names[run.id]} compared with {names[old.id]}",
                    "",
                    [tag("p", one, " and ", other), *parts],
                )
            before = run, result
        yield from self._text_pages()
        links = Links("runs/{}.html".format, "pairs/{}-{}.html".format)
        board = run_table(self.timeline, links, lambda run: str(run.id))
        runs = section("runs", "Runs, the newest first", board)
        chart = timeline_chart(self.timeline)
        yield _INDEX, page(self.timeline.table().title, [chart, runs])

    def _lowest(self, result: Evaluation, order: Sequence[int]) -> list[Markup]:
        return [self._query(result, place) for place in order[:_LOWEST]]

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
        return link(f"../texts/{number // _TEXTS}.html#d{number}", name)

    def _text_pages(self) -> Iterator[tuple[str, str]]:
        every = [*self.texts]
        for start in range(0, len(every), _TEXTS):
            parts = [
                section(f"d{start + n}", name or "", tag("p", text, dir="auto"))
                for n, (name, text) in enumerate(every[start : start + _TEXTS])
            ]
            yield _page(f"../texts/{start // _TEXTS}.html", "Texts", "", parts)


def _page(address: str, title: str, said: str, parts: Sequence[str]) -> tuple[str, str]:
    """A page in a folder, by its place."""
    way = tag("p", link(f"../{_INDEX}", "All runs"), f" {said}")
    return address.removeprefix("../"), page(title, [way, *parts])
