"""What an input leaves open: whether strings are ids or texts, and which scores lead.

A field called `retrieved` or `gold_docs`, and `{query: [strings]}`, may list ids or
texts. Their looks decide at first. Where run and gold are known, in one input or in
two, their company decides, for the whole input at once:

- strings of the gold are ids where the run has nothing but ids, and texts where it has
  nothing but texts;
- retrieved strings are ids where the gold lists any ids, else texts.

Whoever names a matcher of ids or of texts has said what they are.

Lists are ranked as given; mappings and tables by score, larger first; distances smaller
first. What may have been meant otherwise is said, with the switch that does it.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise
from math import inf
from typing import Any, NamedTuple, Self

from karat.data.gold import Item
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Document, Run
from karat.errors import ParameterError, UsageError
from karat.reading.meaning.values import looks_like_text
from karat.reading.source import Notes

_ENOUGH = 1000


class Strings(NamedTuple):
    """Gold in a field whose strings may be ids, or texts of a kind."""

    kind: str
    theirs: str
    by_query: dict[str, Sequence[str]]


@dataclass(frozen=True, eq=False)
class Undecided(Dataset):
    """An input of which only its looks tell whether some strings are ids or texts.

    The run may be of such strings (`bare`); `rest` is the gold without those in it.
    """

    bare: bool = False
    strings: Sequence[Strings] = ()
    rest: Dataset = field(default_factory=Dataset)

    def copy(self) -> Self:
        """The same gold, which no change to the caller's own can reach."""
        strings, rest = deepcopy(self.strings), self.rest.copy()
        return replace(super().copy(), strings=strings, rest=rest)

    def decided(self, *, texts: bool | None = None) -> Self:
        """The same with strings of the gold as ids or texts; by their looks if None."""
        if not self.strings or self.rest.gold is None:
            return self
        gold: dict[str, Any] = {
            kind: dict(getattr(self.rest.gold, kind))
            for kind in ("documents", "passages", "answers")
        }
        names: dict[str, str] = {}
        for kind, theirs, by_query in self.strings:
            as_texts = are_prose(by_query.values()) if texts is None else texts
            rows = gold[kind if as_texts else "documents"]
            for query, values in by_query.items():
                if as_texts:
                    rows[query] = rows.get(query, ()) + numbered_items(kind, values)
                else:
                    rows[query] = rows.get(query, {}) | dict.fromkeys(values, 1.0)
            if theirs:
                names.setdefault(kind if as_texts else "relevant", theirs)
        mapping = {**self.rest.mapping, **names, **self.rest.mapping}
        return replace(self, gold=replace(self.rest.gold, **gold), mapping=mapping)


def numbered_items(kind: str, values: Iterable[str]) -> tuple[Item, ...]:
    """Gold texts of a kind that say nothing else."""
    name, group = kind.removesuffix("s"), "answers" if kind == "answers" else None
    return tuple(
        Item(f"{name}-{number}", value, group=group)
        for number, value in enumerate(values, 1)
    )


class QueryRanking(NamedTuple):
    """What one query retrieved, in the order given: ids, documents, or scores of ids.

    Where it is `bare`, nothing but looks says if strings are ids or texts.
    """

    entries: Sequence[str] | list[Document] | dict[str, float]
    scores: Sequence[float] = ()
    bare: bool = False


def run_of(
    rankings: Mapping[str, QueryRanking], name: str, notes: Notes
) -> tuple[Run | None, bool]:
    """The run, and whether nothing but looks says if it holds ids or texts."""
    if not rankings:
        return None, False
    entries: dict[str, Any] = {}
    scores: dict[str, Sequence[float]] = {}
    scored, bare, texts = [], [], False
    for query, ranking in rankings.items():
        entries[query], scores[query] = ranking.entries, ranking.scores
        if ranking.bare:
            bare.append(query)
        elif isinstance(ranking.entries, dict):
            scored.append(query)
        elif ranking.entries and isinstance(ranking.entries[0], Document):
            texts = True
    if len(scored) == len(entries):
        note_ascending(entries, map(dict.values, entries.values()), notes)
        return ScoredRun(entries, name), False
    for query in scored:
        # Where some rankings are lists, all are: best score first, as ties go.
        pairs = sorted(((s, d) for d, s in entries[query].items()), reverse=True)
        entries[query] = [Document(id=d, score=score) for score, d in pairs]
    prose = bool(bare) and are_prose(map(entries.__getitem__, bare))
    for query in bare if prose else ():
        entries[query] = [Document(text=str(text)) for text in entries[query]]
    all_bare = len(bare) == len(entries)
    if not (scored or texts or prose):
        return RankedRun(entries, name, scores), all_bare
    ids = {q: r for q, r in entries.items() if not r or isinstance(r[0], str)}
    listed = dict(RankedRun(ids, name, scores).rankings(Policies()))
    return DocumentRun({**entries, **listed}, name), all_bare


def are_prose(rows: Iterable[Iterable[Any]]) -> bool:
    """Whether strings look like texts, as far as the first thousand tell."""
    some = [*islice(chain.from_iterable(rows), _ENOUGH)]
    if {*map(type, some)} != {str}:
        some = [value for value in some if isinstance(value, str)]
    return looks_like_text(some)


def settle(
    run: Dataset, gold: Dataset, kind: str | None = None
) -> tuple[Dataset, Dataset]:
    """Run and gold, with strings in either read as the other one has it."""
    wanted = {"documents": False, "passages": True}.get(kind or "")
    bare = isinstance(run, Undecided) and run.bare
    if isinstance(gold, Undecided) and gold.strings and run.run is not None:
        texts = wanted
        if texts is None and not bare and len(kinds := run.run.kinds()) == 1:
            texts = "texts" in kinds
        if texts is not None:
            gold = gold.decided(texts=texts)
    if bare and run.run is not None and gold.gold is not None:
        ids = any(gold.gold.documents.values())
        texts = not ids if wanted is None else wanted
        if ("texts" if texts else "ids") not in run.run.kinds():
            run = replace(run, run=_reread(run.run, texts=texts))
    return run, gold


def _reread(run: Run, *, texts: bool) -> Run:
    """A run of strings as texts or as ids, with how it came about."""
    rankings = dict(run.rankings(Policies()))
    again: Run
    if texts:
        documents = {q: [Document(text=d.id) for d in r] for q, r in rankings.items()}
        again = DocumentRun(documents, run.name)
    else:
        ids = {q: [d.text or "" for d in r] for q, r in rankings.items()}
        again = RankedRun(ids, run.name)
    again.retrieval = run.retrieval
    return again


ORDERS = ("descending", "ascending")
"""Which scores come first, where the caller says: large ones, or small ones."""

_RISING = (
    "{query has|queries have} scores that rise in the order given: are they distances? "
    "larger was taken as better; order='ascending' (--order ascending) takes smaller "
    "as better"
)
_AGAINST = (
    "{query has|queries have} ranks that are not what {its|their} scores say; ordered "
    "by score, larger first; order='ascending' (--order ascending) takes smaller as "
    "better, --map rank=RANK goes by rank"
)
# What a distance of that name can be.
_RANGES = {"cosine": (0.0, 2.0), "l2": (0.0, inf), "euclid": (0.0, inf)}


def note_distances(
    column: str, rankings: Mapping[str, Sequence[float]], notes: Notes
) -> None:
    """Say that a column is ranked as distances; or that its values are none."""
    low, high = next(
        (r for n, r in _RANGES.items() if n in column.lower()), (-inf, inf)
    )
    values = chain.from_iterable(rankings.values())
    beyond = next((v for v in values if not low - 1e-3 <= v <= high + 1e-3), None)
    pairs = [*chain.from_iterable(map(pairwise, rankings.values()))]
    falls = any(a > b for a, b in pairs) and all(a >= b for a, b in pairs)
    kind, why = "distance", ""
    if beyond is not None:
        kind, why = "against", f", but a distance of that name is not {beyond:g}"
    elif falls:
        kind, why = "against", ", but larger ones come first in the order given"
    for query in rankings:
        what = f"{{query is|queries are}} ranked by {column!r}, smaller first{why}"
        notes.notice(kind, what, query)


def note_ascending(
    queries: Iterable[str], rankings: Iterable[Iterable[float]], notes: Notes
) -> None:
    """Say so if the scores of every query rise, as distances do."""
    rising: dict[str, None] = {}
    try:
        for query, scores in zip(queries, rankings, strict=False):
            for first, second in pairwise(scores):
                if second <= first:
                    return
                rising[query] = None
    except TypeError:
        # What is no number is named by whoever looks at all of them.
        return
    for query in rising:
        notes.notice("order", _RISING, query)


def note_contradictions(
    rankings: Mapping[str, Sequence[tuple[float, float]]], notes: Notes
) -> None:
    """Say so if ranks contradict scores."""
    for query, pairs in rankings.items():
        by_rank = [score for _, score in sorted(pairs, key=lambda pair: pair[0])]
        if any(first < second for first, second in pairwise(by_rank)):
            notes.notice("order", _AGAINST, query)


def scores_say_the_order(documents: list[Document]) -> bool:
    """Whether a ranking is what its scores alone would make of it."""
    pairs = [(d.score, d.id) for d in documents if d.score is not None and d.id]
    return (
        len(pairs) == len(documents)
        and len({name for _, name in pairs}) == len(pairs)
        and pairs == sorted(pairs, reverse=True)
    )


def reorder(run: Run, order: str, *, distances: bool) -> Run:
    """The run with the documents of each query ordered by their scores.

    Scores that were read from distances have the sign changed.
    """
    if order not in ORDERS:
        raise ParameterError("evaluate", "order", f"one of {', '.join(ORDERS)}", order)
    sign = 1 if (order == "descending") != distances else -1
    rankings = dict(run.rankings(Policies()))
    scores: dict[str, dict[str, float]] = {}
    for query, documents in rankings.items():
        scores[query] = {
            d.id or str(d.text): sign * _score(d, query) for d in documents
        }
    again: Run = ScoredRun(scores, run.name)
    if "texts" in run.kinds() or any(len(scores[q]) < len(rankings[q]) for q in scores):
        rows = rankings.items()
        again = DocumentRun(
            {q: sorted(r, key=lambda d: -sign * _score(d, q)) for q, r in rows},
            run.name,
        )
    again.retrieval = run.retrieval
    return again


def _score(document: Document, query: str) -> float:
    if document.score is None:
        raise UsageError(
            f"order needs scores, and a document of query {query!r} has none: "
            "a list of ids is ranked as given"
        )
    return document.score
