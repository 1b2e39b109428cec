"""Run and gold as a pair: read, put together, and ready to be scored."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from karat.data.gold import Gold, Item
from karat.data.memory_runs import DocumentRun, ScoredRun
from karat.data.policies import Policies, Ties
from karat.data.queries import Dataset, Query
from karat.data.runs import Notice, Run
from karat.data.tables import counted
from karat.errors import (
    WITHOUT_LABELS,
    DataError,
    FormatError,
    KaratError,
    MismatchError,
    UsageError,
)
from karat.reading.files import STDIN
from karat.reading.meaning.aliases import generated
from karat.reading.meaning.ambiguity import reorder, settle
from karat.reading.meaning.values import looks_like_text
from karat.reading.readers import mapping_of, read, read_queries, texts_for, with_texts
from karat.reading.source import Notes

_SHOWN = 12
_DISTANCES = ("distance", "against")


class Pair(NamedTuple):
    """A run and its gold, with nothing left to decide.

    `facts` is what else is known of the queries; `fields` are those that were read
    under other names than ours, as provenance says it, and `gold_names` those of gold.
    """

    run: Run
    gold: Gold
    facts: Mapping[str, Query]
    notices: tuple[Notice, ...]
    fields: Mapping[str, Mapping[str, str]]
    gold_names: Mapping[str, str]


def pair(
    run: Any,
    gold: Any = None,
    *,
    mapping: Mapping[str, str] | None = None,
    queries: Any = None,
    order: str | None = None,
    corpus: Any = None,
    kind: str | None = None,
    ties: Ties = "trec",
) -> Pair:
    """Read a run and its gold, or samples that hold both.

    `kind` is what the caller's matcher reads, `documents` or `passages`; it decides
    whether strings are ids or texts.
    """
    asked = {} if queries is None else read_queries(queries)
    if gold is None:
        retrieved = truth = samples(run, mapping=mapping)
        notices = truth.notices
    else:
        truth = read(gold, "gold", mapping=mapping, shared=True)
        retrieved = read(run, "run", mapping=mapping, shared=truth)
        notices = (*retrieved.notices, *truth.notices)
        if truth.queries or asked:
            retrieved = _under_ids(retrieved, truth, asked)
    retrieved, truth = settle(retrieved, truth, kind)
    ranked, wanted = retrieved.run, truth.gold
    if ranked is None or wanted is None:
        raise _lacking(ranked)
    if retrieved.notices and truth.notices:
        _check_places(ranked, retrieved.notices, wanted, truth.notices)
    if order is not None or notices:
        ranked, notices = _ordered(ranked, order, notices)
    if corpus is not None:
        texts = texts_for(ranked, wanted, corpus)
        ranked = with_texts(ranked, texts, ties)
        notices = (*notices, *_unknown_documents(wanted, texts))
        by_text = kind == "passages" or "ids" not in ranked.kinds()
        wanted = _with_gold_texts(wanted, texts, documents=by_text)
    facts = truth.queries or retrieved.queries
    if not facts and ranked.retrieval.texts:
        facts = {q: Query(q, text) for q, text in ranked.retrieval.texts.items()}
    if asked:
        facts = {**facts, **asked}
        notices = (*notices, *_unknown_queries(asked, wanted))
    fields: dict[str, dict[str, str]] = {}
    theirs = (*retrieved.mapping.values(), *truth.mapping.values())
    if theirs != (*retrieved.mapping, *truth.mapping):
        fields = _renamed(retrieved, truth, apart=gold is not None)
    gold_names = fields.get("gold_fields", fields.get("fields", {}))
    return Pair(ranked, wanted, facts, notices, fields, gold_names)


def _with_gold_texts(gold: Gold, corpus: Mapping[str, str], *, documents: bool) -> Gold:
    """The gold with texts of the corpus, of documents and of passages that are ids.

    Documents that are texts, and no ids of the corpus, become passages.
    """
    passages = {
        query: tuple(
            replace(item, id=item.text, text=corpus[item.text])
            if item.text in corpus
            else item
            for item in items
        )
        for query, items in gold.passages.items()
    }
    names = [name for row in gold.documents.values() for name in row]
    texts = looks_like_text(names) and not any(name in corpus for name in names)
    says = {name: name for name in names} if texts else corpus
    if (documents or texts) and not passages:
        for query, row in gold.documents.items():
            groups = gold.groups.get(query, {})
            passages[query] = tuple(
                Item(name, says[name], grade, group=groups.get(name))
                for name, grade in row.items()
                if name in says
            )
    left = {} if texts else gold.documents
    relevant = (n for row in left.values() for n, grade in row.items() if grade > 0)
    return replace(
        gold,
        documents=left,
        passages=passages,
        texts={name: corpus[name] for name in relevant if name in corpus},
        order=tuple(gold.queries),
    )


def _unknown_documents(gold: Gold, corpus: Mapping[str, str]) -> tuple[Notice, ...]:
    """That relevant documents are in no corpus, if any are not."""
    rows = gold.documents.values()
    wanted = {name: None for row in rows for name, grade in row.items() if grade > 0}
    notes, what = Notes(), "{relevant document is|relevant documents are}"
    for name in wanted:
        if name not in corpus:
            notes.notice("corpus", f"{what} not in the corpus", name)
    return notes.notices()


def _lacking(run: Run | None) -> KaratError:
    """What is missing for an evaluation: the run, or else the gold."""
    if run is not None:
        return UsageError(
            "no gold: pass gold=..., or samples that carry their own relevant ids, "
            f"passages or answers; {WITHOUT_LABELS}"
        )
    return DataError(
        "the input holds nothing retrieved",
        hint="a sample needs a field such as retrieved; --map retrieved=THEIRS, or "
        "mapping={'retrieved': ...}, names another one",
    )


def _renamed(run: Dataset, gold: Dataset, *, apart: bool) -> dict[str, dict[str, str]]:
    """The fields of run and gold that were read under other names than ours."""
    sides = {"fields": gold.mapping}
    if apart:
        sides["fields"] = mapping_of("run", run.mapping)
        sides["gold_fields"] = mapping_of("gold", gold.mapping)
    fields = {}
    for name, mapping in sides.items():
        if others := {o: t for o, t in mapping.items() if o != t}:
            fields[name] = others
    return fields


def samples(
    source: Any,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    others: Iterable[Any] = (),
) -> Dataset:
    """Samples; a file of a run alone is refused, with where its gold may be."""
    try:
        return read(source, "samples", mapping=mapping, format=format)
    except DataError:
        if not isinstance(source, str | os.PathLike) or source == STDIN:
            raise
        # A run alone is the likeliest mistake, and a sentence about samples no help.
        run = Dataset(gold=Gold())
        with suppress(DataError):
            run = read(source, "run", mapping=mapping, format=format)
        if run.gold is not None:
            raise
        hint = _where_gold_may_be(run, (one for one in others if one != source))
        raise FormatError(f"{source} holds a run but no gold: {hint}") from None


def _where_gold_may_be(run: Dataset, others: Iterable[Any]) -> str:
    for path in others:
        with suppress(DataError):
            if path != STDIN and read(path).gold is not None:
                return f"is {path} the gold? then --gold {path}"
    if "response" in run.mapping:
        return f"add --gold; {generated(run.mapping['response'])}; {WITHOUT_LABELS}"
    unread = next((query.metadata for query in run.queries.values()), {})
    if not unread and any(query.text for query in run.queries.values()):
        return (
            "add --gold, or a reference answer to each sample and --model NAME; "
            f"{WITHOUT_LABELS}"
        )
    if not unread:
        return f"add --gold (gold=... in Python); {WITHOUT_LABELS}"
    names = ", ".join(str(name)[:40] for name in [*unread][:_SHOWN])
    return (
        "add --gold, or say which field is the gold, as in --map relevant=...: "
        f"{names}; {WITHOUT_LABELS}"
    )


def _under_ids(
    retrieved: Dataset, truth: Dataset, asked: Mapping[str, Query]
) -> Dataset:
    """A run whose queries are their texts, as in traces, under the ids of gold."""
    rankings = getattr(retrieved.run, "by_query", {})
    ids = {fact.text: name for name, fact in {**truth.queries, **asked}.items()}
    wanted = () if truth.gold is None else truth.gold.queries
    if not any(q in ids for q in rankings) or not {*rankings}.isdisjoint(wanted):
        return retrieved
    run: Any = retrieved.run
    kind = ScoredRun if isinstance(run, ScoredRun) else DocumentRun
    rows = rankings if kind is ScoredRun else dict(run.rankings(Policies()))
    again = kind({ids.get(q, q): row for q, row in rows.items()}, run.name)
    again.retrieval = run.retrieval.under(ids)
    queries = {ids.get(q, q): fact for q, fact in retrieved.queries.items()}
    return replace(retrieved, run=again, queries=queries)


def _unknown_queries(facts: Mapping[str, Query], gold: Gold) -> tuple[Notice, ...]:
    """That what is known of queries is about none of the gold, if that is so."""
    if not facts.keys().isdisjoint(gold.queries):
        return ()
    text = (
        "{query with a text or tags, which the gold does not have|queries with texts "
        "or tags, and the gold has none of them}"
    )
    return (Notice.of("queries", len(facts), text, [*facts][:3]),)


def _ordered(
    run: Run, order: str | None, notices: tuple[Notice, ...]
) -> tuple[Run, tuple[Notice, ...]]:
    """The run as the caller wants it ordered, and what is to be said then."""
    said = {notice.kind: notice for notice in notices}
    if order is None and "against" in said:
        raise FormatError(
            str(said["against"]),
            path=run.name,
            hint="order='descending' (--order descending) ranks larger values first, "
            "order='ascending' smaller ones",
        )
    if order is None:
        return run, notices
    run = reorder(run, order, distances=not said.keys().isdisjoint(_DISTANCES))
    first = "larger" if order == "descending" else "smaller"
    text = f"{{ranking is|rankings are}} ordered by score, {first} first"
    others = (n for n in notices if n.kind not in {"order", *_DISTANCES})
    return run, (*others, Notice.of("order", len(run.queries()), text))


def _check_places(
    run: Run, of_run: tuple[Notice, ...], gold: Gold, of_gold: tuple[Notice, ...]
) -> None:
    """Lists without ids go together by position: they must be equally long."""
    if not all(any(n.kind == "numbered" for n in seen) for seen in (of_run, of_gold)):
        return
    retrieved, wanted = len(run.queries()), len(gold.queries)
    if retrieved != wanted:
        raise MismatchError(
            "run and gold have no query ids and go together by position, but the run "
            f"has {counted(retrieved, 'query')} and the gold {wanted}",
            hint="give an empty list for a query without documents",
        )
