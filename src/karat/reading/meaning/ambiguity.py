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
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import Any, Self

from karat.data.gold import Gold, Item
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Document, Run
from karat.errors import ParameterError, UsageError
from karat.reading.meaning.values import looks_like_text
from karat.reading.source import Notes

_ENOUGH = 1000


@dataclass(frozen=True, slots=True)
class Strings:
    """Gold in a field whose strings may be ids or texts.

    Attributes:
        kind: what they are if they are texts, `passages` or `answers`.
        theirs: the field's name.
        by_query: the strings of each query.
    """

    kind: str
    theirs: str
    by_query: dict[str, Sequence[str]]


@dataclass(frozen=True, eq=False)
class Undecided(Dataset):
    """An input of which only its looks tell whether some strings are ids or texts.

    Attributes:
        bare: whether the run is of such strings.
        strings: the gold without its own such strings, and these.
    """

    bare: bool = False
    strings: tuple[Gold, Sequence[Strings]] | None = None

    def copy(self) -> Self:
        """The same gold, which no change to the caller's own can reach."""
        return replace(super().copy(), strings=deepcopy(self.strings))


def are_prose(rows: Iterable[Iterable[Any]]) -> bool:
    """Whether strings look like texts, as far as the first thousand tell."""
    some = [*islice(chain.from_iterable(rows), _ENOUGH)]
    if {*map(type, some)} != {str}:
        some = [value for value in some if isinstance(value, str)]
    return looks_like_text(some)


def decided(
    gold: Gold, strings: Sequence[Strings], *, texts: bool | None = None
) -> tuple[Gold, dict[str, str]]:
    """The gold with strings added as ids or texts, and the fields they are from."""
    kinds: dict[str, dict[str, Any]] = {
        kind: dict(getattr(gold, kind)) for kind in ("documents", "passages", "answers")
    }
    found: dict[str, str] = {}
    for some in strings:
        as_texts = are_prose(some.by_query.values()) if texts is None else texts
        kind = some.kind if as_texts else "documents"
        for query, values in some.by_query.items():
            if as_texts:
                items = kinds[kind].get(query, ()) + _items(kind, values)
                kinds[kind][query] = items
            else:
                labels = dict.fromkeys(values, 1.0)
                kinds[kind][query] = {**kinds[kind].get(query, {}), **labels}
        if some.theirs:
            found.setdefault("relevant" if kind == "documents" else kind, some.theirs)
    documents, passages, answers = kinds.values()
    gold = replace(gold, documents=documents, passages=passages, answers=answers)
    return gold, found


def _items(kind: str, values: Sequence[str]) -> tuple[Item, ...]:
    name, group = kind.removesuffix("s"), "answers" if kind == "answers" else None
    return tuple(
        Item(f"{name}-{number}", value, group=group)
        for number, value in enumerate(values, 1)
    )


def settle(
    run: Dataset, gold: Dataset, kind: str | None = None
) -> tuple[Dataset, Dataset]:
    """Run and gold, with strings in either read as the other one has it.

    Example:
        >>> texts = Dataset(DocumentRun({"q": [Document(text="Rye is a grain.")]}))
        >>> words = Strings("passages", "", {"q": ["Rye"]})
        >>> gold = Undecided(gold=Gold({"q": {"Rye": 1}}), strings=(Gold(), [words]))
        >>> settle(texts, gold)[1].gold.kinds()
        ('passages',)
    """
    if run is gold:
        first, second = settle(replace(run), gold, kind)
        whole = replace(second, run=first.run)
        return whole, whole
    wanted = {"documents": False, "passages": True}.get(kind or "")
    bare = isinstance(run, Undecided) and run.bare
    if isinstance(gold, Undecided) and gold.strings and run.run is not None:
        rest, strings = gold.strings
        texts = wanted
        if texts is None and not bare and len(kinds := run.run.kinds()) == 1:
            texts = "texts" in kinds
        if texts is not None:
            labels, _ = decided(rest, strings, texts=texts)
            mapping = _renamed(gold.mapping, strings, texts=texts)
            gold = replace(gold, gold=labels, mapping=mapping)
    if bare and run.run is not None and gold.gold is not None:
        ids = any(gold.gold.documents.values())
        texts = not ids if wanted is None else wanted
        run = replace(run, run=_as_texts(run.run) if texts else _as_ids(run.run))
    return run, gold


def _renamed(
    mapping: Mapping[str, str], strings: Sequence[Strings], *, texts: bool
) -> Mapping[str, str]:
    """The fields found, with those of strings under the kind they turned out to be."""
    for some in strings:
        old, new = ("relevant", some.kind) if texts else (some.kind, "relevant")
        if mapping.get(old) == some.theirs != mapping.get(new):
            pairs = mapping.items()
            mapping = {new if ours == old else ours: theirs for ours, theirs in pairs}
    return mapping


def _as_texts(run: Run) -> Run:
    if "texts" in run.kinds():
        return run
    rankings = {
        query: [Document(text=document.id) for document in ranking]
        for query, ranking in run.rankings(Policies())
    }
    return DocumentRun(rankings, run.name)


def _as_ids(run: Run) -> Run:
    if "ids" in run.kinds():
        return run
    rankings = {
        query: [document.text or "" for document in ranking]
        for query, ranking in run.rankings(Policies())
    }
    return RankedRun(rankings, run.name)


ORDERS = ("descending", "ascending")
"""Which scores come first, where the caller says: large ones, or small ones."""

_RISING = (
    "{query has|queries have} scores that rise in the order given: are they distances? "
    "larger was taken as better; order='ascending' (--order ascending) takes smaller "
    "as better"
)
_AGAINST = (
    "{query has ranks that are not what its|queries have ranks that are not what their}"
    " scores say; ordered by score, larger first; order='ascending' "
    "(--order ascending) takes smaller as better, --map rank=RANK goes by rank"
)


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


def reorder(run: Run, order: str) -> Run:
    """The run with the documents of each query ordered by their scores.

    Example:
        >>> run = reorder(ScoredRun({"q": {"near": 0.1, "far": 0.9}}), "ascending")
        >>> [d.id for _, ranking in run.rankings(Policies()) for d in ranking]
        ['near', 'far']
    """
    if order not in ORDERS:
        raise ParameterError("evaluate", "order", f"one of {', '.join(ORDERS)}", order)
    sign = 1 if order == "descending" else -1
    rankings = dict(run.rankings(Policies()))
    scores: dict[str, dict[str, float]] = {}
    for query, documents in rankings.items():
        scores[query] = {
            d.id or str(d.text): sign * _score(d, query) for d in documents
        }
    if "texts" in run.kinds() or any(len(scores[q]) < len(rankings[q]) for q in scores):
        return DocumentRun(
            {
                q: sorted(r, key=lambda d: -sign * _score(d, q))
                for q, r in rankings.items()
            },
            run.name,
        )
    return ScoredRun(scores, run.name)


def _score(document: Document, query: str) -> float:
    if document.score is None:
        raise UsageError(
            f"order needs scores, and a document of query {query!r} has none: "
            "a list of ids is ranked as given"
        )
    return document.score
