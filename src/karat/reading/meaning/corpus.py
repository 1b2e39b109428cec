"""Corpora: the texts of documents by id, for those who must read them."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from karat.data.gold import Gold, Item
from karat.data.queries import Corpus
from karat.data.runs import Document, Notice
from karat.errors import DataError, FormatError
from karat.reading.meaning.aliases import IDS, STARTS, TEXTS, ask, respell
from karat.reading.meaning.documents import read_document
from karat.reading.meaning.shapes import records_of
from karat.reading.meaning.values import (
    as_records,
    is_list,
    looks_like_text,
    read_id,
    show,
    value_at,
)
from karat.reading.source import Batched, Notes, Source, placed

_ID: Final = re.compile(r"[!-~]+(?<![.!?])")
_NAMES: Final = (*IDS, "corpus_id", "doc", "document")
_PLAIN: Final = (str, int, float, list, tuple, type(None))


def gather_texts(
    value: object, source: Source, ids: Collection[str] | None = None
) -> Corpus:
    """The text of each document, from what a format read or a caller handed over."""
    texts: dict[str, str] = {}
    origins: dict[str, tuple[str, int]] = {}
    titles: dict[str, int] = {}
    wanted = None if ids is None else frozenset(ids)
    count = 0
    for count, (line, record) in enumerate(_records(as_records(value), source), 1):
        try:
            document, text, title = _read(record, source)
            if wanted is not None and document not in wanted:
                continue
            if title:
                titles[document] = title
            origin = record.get("source") if type(record) is dict else None
            if origin is not None and isinstance(start := ask(record, STARTS), int):
                origins[document] = str(origin), start
            if texts.setdefault(document, text) != text:
                raise FormatError(f"{document!r} has two texts")
        except DataError as error:
            if line is None:
                error.problem = f"document {count}: {error.problem}"
            raise placed(error, path=source.path, line=line) from None
    if not count:
        raise source.error("holds no documents")
    return Corpus(texts, source.name, origins, titles)


def _records(value: object, source: Source) -> Iterable[tuple[int | None, Any]]:
    if isinstance(value, Batched) and value.header:
        # An empty cell is an empty text.
        return ((n, {k: v or "" for k, v in record.items()}) for n, record in value)
    if isinstance(value, Mapping):
        lists = [v for v in value.values() if is_list(v)]
        if len(lists) == 1:
            return ((None, record) for record in lists[0])
        return ((None, _named(key, entry)) for key, entry in value.items())
    return records_of(value, source)


def _named(key: object, entry: object) -> object:
    """A document of a mapping by id, with its id put in."""
    if isinstance(entry, Mapping):
        return entry if ask(entry, _NAMES) is not None else {"id": key, **entry}
    return {"id": key, "text": entry}


def _read(record: object, source: Source) -> tuple[str, str, int]:
    """The id, the text behind its title, and how long that title is."""
    if isinstance(record, _PLAIN):
        raise FormatError(
            f"a document must be an object with id and text, got {show(record)}"
        )
    record, told = respell(record), source.mapping
    name = told.get("document") or told.get("id")
    identity = ask(record, _NAMES) if name is None else value_at(record, name)
    path = told.get("text")
    text = ask(record, TEXTS) if path is None else value_at(record, path)
    if (identity is None or text is None) and not isinstance(record, Mapping):
        document = read_document(record, source.notes)
        identity, text = identity or document.id, text or document.text
    if identity is None or not isinstance(text, str):
        missing = (name or "id") if identity is None else (path or "text")
        names = record if isinstance(record, Mapping) else vars(record)
        found = ", ".join(map(str, names)) or "none"
        raise FormatError(f"a document has no {missing}; fields found: {found[:200]}")
    title = ask(record, ("title",))
    whole = f"{title}\n{text}" if isinstance(title, str) and title.strip() else text
    name = read_id(identity, "document id", source.notes)
    return name, whole, len(whole) - len(text)


def bare_id(document: Document) -> str | None:
    """The id of a document of which nothing else is known; None for the others."""
    if document.text is None:
        return document.id
    bare = document.id is None and looks_like_id(document.text)
    return document.text if bare else None


def looks_like_id(text: str) -> bool:
    """Whether a text is one word of ASCII and no sentence, as ids are."""
    return _ID.fullmatch(text) is not None


def with_gold_texts(gold: Gold, corpus: Mapping[str, str], *, documents: bool) -> Gold:
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
    if (documents or texts) and not passages:
        for query, row in gold.documents.items():
            groups = gold.groups.get(query, {})
            passages[query] = tuple(
                Item(
                    name, name if texts else corpus[name], grade, group=groups.get(name)
                )
                for name, grade in row.items()
                if texts or name in corpus
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


def unknown_documents(gold: Gold, corpus: Mapping[str, str]) -> tuple[Notice, ...]:
    """That relevant documents are in no corpus, if any are not."""
    rows = gold.documents.values()
    wanted = {name: None for row in rows for name, grade in row.items() if grade > 0}
    notes, what = Notes(), "{relevant document is|relevant documents are}"
    for name in wanted:
        if name not in corpus:
            notes.notice("corpus", f"{what} not in the corpus", name)
    return notes.notices()
