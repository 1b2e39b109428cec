"""Strings without a name: whether a list of them holds ids or texts.

A field called `retrieved` or `gold_docs`, and `{query: [strings]}`, may list ids or
texts. Their looks decide at first. Where run and gold are known, in one input or in
two, their company decides, for the whole input at once:

- strings of the gold are ids where the run has nothing but ids, and texts where it has
  nothing but texts;
- retrieved strings are ids where the gold lists any ids, else texts.

Whoever names a matcher of ids or of texts has said what they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from karat.data.gold import Gold, Item
from karat.data.memory_runs import DocumentRun, RankedRun
from karat.data.policies import Policies
from karat.data.queries import Dataset, Strings
from karat.data.runs import Document, Run
from karat.reading.meaning.values import looks_like_text

_ENOUGH = 1000


def are_prose(rows: Iterable[Iterable[Any]]) -> bool:
    """Whether strings look like texts, as far as the first thousand tell."""
    some = [*islice(chain.from_iterable(rows), _ENOUGH)]
    if {*map(type, some)} != {str}:
        some = [value for value in some if isinstance(value, str)]
    return looks_like_text(some)


def decided(
    gold: Gold, strings: Sequence[Strings], *, texts: bool | None = None
) -> tuple[Gold, dict[str, str]]:
    """The gold with strings added as ids or texts, and the fields they are from.

    Args:
        gold: what is known besides.
        strings: what may be ids or texts.
        texts: whether they are texts; None: whatever each field looks like.
    """
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

    Args:
        run: an input with the run.
        gold: an input with the gold, the same one or another.
        kind: the kind of gold that the caller's matcher reads, which decides.

    Example:
        >>> texts = Dataset(DocumentRun({"q": [Document(text="Rye is a grain.")]}))
        >>> words = Strings("passages", "", {"q": ["Rye"]})
        >>> gold = Dataset(gold=Gold({"q": {"Rye": 1}}), strings=(Gold(), (words,)))
        >>> settle(texts, gold)[1].gold.kinds()
        ('passages',)
    """
    if run is gold:
        first, second = settle(replace(run), gold, kind)
        whole = replace(second, run=first.run)
        return whole, whole
    wanted = {"documents": False, "passages": True}.get(kind or "")
    if gold.strings is not None and run.run is not None:
        rest, strings = gold.strings
        texts = wanted
        if texts is None and not run.bare and len(kinds := run.run.kinds()) == 1:
            texts = "texts" in kinds
        if texts is not None:
            labels, _ = decided(rest, strings, texts=texts)
            mapping = _renamed(gold.mapping, strings, texts=texts)
            gold = replace(gold, gold=labels, mapping=mapping)
    if run.bare and run.run is not None and gold.gold is not None:
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
