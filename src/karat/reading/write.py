"""Writing what was loaded in another format; nothing is dropped without a word.

Formats that nest take one value, such as `{query: {document: score}}`. Others take one
record for each query, or a header and rows: one for each document where that says it
all, else one for each query. Fields have karat's own names.
"""

import gzip
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from karat.data.gold import Gold, Item, Span
from karat.data.policies import Policies
from karat.data.queries import Dataset, Query
from karat.data.runs import Document, Notice, Retrieval, Run, ranks_of
from karat.errors import FormatError, KaratError
from karat.reading.format import FORMATS, Format, Layout, name_format
from karat.reading.meaning.aliases import WRAPPERS, known_as
from karat.reading.meaning.ambiguity import numbered_items, scores_say_the_order
from karat.reading.meaning.values import looks_like_text
from karat.reading.source import Role
from karat.writing import write_file


def write(
    loaded: Dataset,
    target: str | os.PathLike[str] | BinaryIO,
    format: str | None = None,
    role: Role | None = None,
) -> tuple[Notice, ...]:
    """Write a run, gold, or samples with both; what there was no room for is returned.

    A path that ends in `.gz` is compressed. `role` is the part to write, where the
    format cannot hold all of it.
    """
    path = os.fspath(target) if isinstance(target, str | os.PathLike) else None
    chosen = FORMATS[format] if format is not None else name_format(path)
    part = Dataset(
        None if role == "gold" else loaded.run,
        None if role == "run" else loaded.gold,
        loaded.queries,
    )
    if part.run is None and part.gold is None:
        raise FormatError(f"there is no {role or 'run or gold'} to write")
    data = io.BytesIO()
    try:
        notices = tuple(_write(chosen, part, data))
    except UnicodeEncodeError as error:
        half = error.object[error.start : error.start + 1]
        raise FormatError(
            f"{chosen.name} cannot hold {half!r}, half a character",
            hint="json and jsonl can",
        ) from None
    except KaratError:
        raise
    except (TypeError, ValueError) as error:
        # Infinity in JSON, say, or an object that a caller put into metadata.
        raise FormatError(
            f"{chosen.name} cannot hold all of it: {str(error)[:200]}"
        ) from None
    if isinstance(target, str | os.PathLike):
        packed = str(path).endswith(".gz")
        content = gzip.compress(data.getvalue(), mtime=0) if packed else data.getvalue()
        write_file(target, content)
    else:
        target.write(data.getvalue())
    return notices


def _write(chosen: Format, part: Dataset, data: BinaryIO) -> Iterator[Notice]:
    facts = any(q.text or q.k or q.tags or q.metadata for q in part.queries.values())
    whole, layout = part.run is not None and part.gold is not None, chosen.layout
    if layout is None:
        if whole:
            raise FormatError(
                f"{chosen.name} cannot hold run and gold in one file",
                hint="say which to write: --role run or --role gold",
            )
        if facts:
            text = f"{chosen.name} holds no query texts or tags"
            yield Notice("dropped", len(part.queries), text)
        yield from _write_apart(chosen, part, data)
    elif part.run is not None and not whole and not facts:
        chosen.write(_lay_out_run(part.run, layout), data)
    elif part.gold is not None and not whole and not facts:
        chosen.write(_lay_out_gold(part.gold, layout), data)
    else:
        chosen.write(_lay_out_samples(part, layout), data)


def _write_apart(chosen: Format, part: Dataset, data: BinaryIO) -> Iterator[Notice]:
    """Write a run or gold in a way of its own; what is lost comes back."""
    lost: list[tuple[int, str, list[str]]] = []
    if (run := part.run) is not None:
        chosen.write_run(run, data)
        rankings = dict(run.rankings(Policies()))
        empty = [query for query, ranking in rankings.items() if not ranking]
        texts = sum(d.text is not None for r in rankings.values() for d in r)
        called = len(run.failures) + (0 if run.latency is None else run.latency.n)
        lost.append((called, "holds no latency or failures", []))
        lost.append((texts, "holds no texts of documents", []))
        what = "holds no queries for which nothing was retrieved"
        lost.append((len(empty), what, empty))
    if (gold := part.gold) is not None:
        _refuse_texts(gold, chosen)
        chosen.write_gold(gold, data)
        signed = 0 if chosen.holds_sources else sum(map(len, gold.sources.values()))
        empty = [query for query in gold.queries if not gold.documents.get(query)]
        lost.append((signed, "does not say who labelled", []))
        lost.append((len(empty), "holds no queries without relevant documents", empty))
    for count, what, examples in lost:
        if count:
            text = f"{chosen.name} {what}"
            yield Notice("dropped", count, text, tuple(examples[:3]))


def _refuse_texts(gold: Gold, chosen: Format) -> None:
    others = {
        "reference answers": gold.references,
        "groups of alternatives": gold.groups,
        "grades of subtopics": gold.subtopics and not chosen.holds_sources,
    }
    kinds = [kind for kind in gold.kinds() if kind != "documents"]
    if kinds := [*kinds, *(name for name, held in others.items() if held)]:
        raise FormatError(
            f"{chosen.name} holds relevant ids only; the gold has {', '.join(kinds)}",
            hint="write json, jsonl, yaml or csv",
        )


def _lay_out_run(run: Run, layout: Layout) -> Any:
    """A run in the shortest form that reads back as it is."""
    rankings = dict(run.rankings(Policies()))
    if run.latency is not None or run.failures:
        return _lay_out_samples(Dataset(run=run), layout)
    if layout == "nested" and not _are_field_names(rankings):
        return {q: _ranking(docs, named=False) for q, docs in rankings.items()}
    scored = all(map(scores_say_the_order, rankings.values()))
    names = {name for r in rankings.values() for d in r for name in _fields_of(d)}
    enough = names <= ({"id", "score"} if scored else {"id"})
    if layout != "rows" or not enough or not all(rankings.values()):
        return _lay_out_samples(Dataset(run=run), layout)
    return ("query_id", "doc_id", "score" if scored else "rank"), [
        (query, document.id, document.score if scored else rank)
        for query, ranking in rankings.items()
        for rank, document in zip(ranks_of(ranking), ranking, strict=True)
    ]


def _lay_out_gold(gold: Gold, layout: Layout) -> Any:
    """Grades by document where gold is nothing else, or else samples."""
    if gold.is_plain and layout == "nested" and not _are_field_names(gold.queries):
        return {
            query: {d: _whole(g) for d, g in gold.documents.get(query, {}).items()}
            for query in gold.queries
        }
    complete = all(map(gold.documents.get, gold.queries))
    if layout != "rows" or not gold.is_plain or not complete:
        return _lay_out_samples(Dataset(gold=gold), layout)
    return ("query_id", "doc_id", "grade"), [
        (query, document, _whole(grade))
        for query in gold.queries
        for document, grade in gold.documents[query].items()
    ]


def _lay_out_samples(loaded: Dataset, layout: Layout) -> Any:
    """One record or row for each query; in rows, nested values are JSON."""
    records = list(_sample_records(loaded))
    if layout == "nested":
        return {"samples": records}
    if layout == "records":
        return records
    header = [*dict.fromkeys(name for record in records for name in record)]
    return header, [[_cell(record.get(name)) for name in header] for record in records]


def _whole(number: float) -> float:
    """A number as people write it: 3, not 3.0."""
    return int(number) if number == int(number) else number


def _are_field_names(queries: Iterable[str]) -> bool:
    """Whether some query ids would be taken for names of fields."""
    return any(known_as(query) is not None or query in WRAPPERS for query in queries)


def _sample_records(loaded: Dataset) -> Iterator[dict[str, Any]]:
    """One record per query, in the gold's order, then the run's."""
    gold = loaded.gold or Gold()
    rankings: Mapping[str, list[Document]] = (
        {} if loaded.run is None else dict(loaded.run.rankings(Policies()))
    )
    named = bool(gold.kinds() or gold.references) and not gold.documents
    how = Retrieval() if loaded.run is None else loaded.run.retrieval
    # What a first call took is in no percentile, and a file could not say which it was.
    times = {} if how.latency is None else how.latency.usual
    for query in dict.fromkeys((*gold.queries, *rankings, *how.failures)):
        facts = loaded.queries.get(query, Query(query))
        record = _present(
            id=query,
            query=facts.text,
            k=facts.k,
            tags=[*facts.tags] or None,
            metadata={**facts.metadata} or None,
            latency_ms=times.get(query),
            failure=how.failures.get(query),
        )
        if query in rankings:
            record["retrieved"] = _ranking(rankings[query], named=named)
        yield record | _labels(gold, query)


def _cell(value: object) -> object:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    return value


def _present(**fields: Any) -> dict[str, Any]:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value is not None}


def _ranking(documents: list[Document], *, named: bool) -> Any:
    """A ranking in its shortest form that reads back; `named` ids are no bare texts."""
    plain = all(set(_fields_of(document)) <= {"id", "score"} for document in documents)
    ids = [document.id for document in documents]
    if plain and documents and scores_say_the_order(documents):
        return {document.id: document.score for document in documents}
    bare = plain and all(document.score is None for document in documents)
    if bare and not named and not looks_like_text([str(name) for name in ids]):
        return ids
    return [_fields_of(document) for document in documents]


def _fields_of(document: Document) -> dict[str, Any]:
    """What is known of a document, by name."""
    names = ("id", "text", "score", "source", "start", "end")
    fields = {name: getattr(document, name) for name in names}
    return _present(**fields, metadata={**document.metadata} or None)


def _labels(gold: Gold, query: str) -> dict[str, Any]:
    labels: dict[str, Any] = {}
    documents = gold.documents.get(query)
    if documents is not None:
        binary = all(grade == 1 for grade in documents.values())
        graded = {name: _whole(grade) for name, grade in documents.items()}
        labels["relevant"] = list(documents) if binary else graded
        sources, groups = gold.sources.get(query, {}), gold.groups.get(query, {})
        topics = gold.subtopics.get(query, {})
        if sources or groups or topics:
            labels["relevant"] = [
                _present(
                    id=name,
                    grade=grade,
                    labelled_by=sources.get(name),
                    group=groups.get(name),
                    subtopics={**topics.get(name, {})} or None,
                )
                for name, grade in graded.items()
            ]
    for kind in ("passages", "claims", "answers"):
        if items := getattr(gold, kind).get(query):
            labels[kind] = _texts(items, kind)
    if spans := gold.spans.get(query):
        labels["spans"] = [
            _present(doc=span.document, start=span.start, end=span.end, text=span.text)
            | ({} if span.grade == 1 else {"grade": _whole(span.grade)})
            | _labelling(span)
            for span in spans
        ]
    return labels | _present(reference=gold.references.get(query))


def _texts(items: tuple[Item, ...], kind: str) -> list[Any]:
    texts = [item.text for item in items]
    plain = numbered_items(kind, texts)
    if plain == (*items,):
        return [*texts]
    return [
        {"id": item.id, "text": item.text, "grade": _whole(item.grade)}
        | _labelling(item, plain[0].group)
        for item in items
    ]


def _labelling(item: Item | Span, usual: str | None = None) -> dict[str, Any]:
    """The group of a gold item and who labelled it, where these are not the usual."""
    group = None if item.group == usual else item.group
    return _present(
        group=group, labelled_by=None if item.source == "human" else item.source
    )
