"""Corpora: the texts of documents by id, for those who must read them."""

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from karat.data.policies import Policies
from karat.data.rankings import DocumentRun
from karat.data.runs import Document, Run
from karat.errors import FormatError
from karat.reading.decoding import decode_json, decode_text
from karat.reading.problems import placed
from karat.reading.streams import open_binary

__all__ = ["is_bare", "read_corpus", "with_texts"]

_IDS = ("id", "_id", "doc_id", "docno", "document_id", "docid", "pid", "chunk_id")
_TEXTS = ("text", "contents", "content", "passage", "body", "page_content", "chunk")
_TABLES = {".csv": ",", ".tsv": "\t"}
_PAIR = 2
_BARE = re.compile(r"[!-~]+(?<![.!?])")
_PACKED = (".gz", ".zst", ".bz2")


def read_corpus(path: str | os.PathLike[str]) -> dict[str, str]:
    """The text of each document, from JSON Lines, JSON, CSV or TSV.

    Records have an id and a text; a title is put in front, as BEIR does. JSON may also
    be one object of texts by id, and a table two columns without names: id and text.

    Raises:
        FormatError: the file cannot be read, or a record lacks its id or text.
    """
    name = os.fspath(path)
    with open_binary(path) as stream:
        data = stream.read()
    texts: dict[str, str] = {}
    try:
        for line, record in _records(data, name):
            document, text = _read(record, line)
            if texts.setdefault(document, text) != text:
                problem = f"{document!r} has two texts"
                raise FormatError(problem, path=name, line=line)  # noqa: TRY301
    except FormatError as error:
        raise placed(error, path=name) from None
    if not texts:
        raise FormatError("holds no documents", path=name)
    return texts


def with_texts(run: Run, corpus: Mapping[str, str]) -> DocumentRun:
    """The run with the texts of its documents, where it has only their ids.

    Example:
        >>> from karat.data.rankings import RankedRun
        >>> run = with_texts(RankedRun({"q": ["d1"]}), {"d1": "Rye is a grain."})
        >>> [d.text for _, ranking in run.rankings(Policies()) for d in ranking]
        ['Rye is a grain.']
    """
    rankings = dict(run.rankings(Policies()))
    # Where the corpus knows any of the strings that were retrieved, they are ids.
    are_ids = any(
        document.id is None and document.text in corpus
        for documents in rankings.values()
        for document in documents
    )

    def with_text(document: Document) -> Document:
        if document.id is None and are_ids and is_bare(document.text or ""):
            document = replace(document, id=document.text, text=None)
        if document.text is not None:
            return document
        return replace(document, text=corpus.get(document.id or ""))

    return DocumentRun(
        {query: [*map(with_text, documents)] for query, documents in rankings.items()},
        run.name,
    )


def is_bare(text: str) -> bool:
    """Whether a text is one word of ASCII and no sentence, as ids are.

    Example:
        >>> is_bare("doc_17"), is_bare("Rye is a grain.")
        (True, False)
    """
    return _BARE.fullmatch(text) is not None


def _records(data: bytes, name: str) -> Iterable[tuple[int, Any]]:
    bare = name.lower()
    for ending in _PACKED:
        bare = bare.removesuffix(ending)
    for ending, comma in _TABLES.items():
        if bare.endswith(ending):
            return _rows(decode_text(data), comma)
    first = data.lstrip()[:1]
    if first == b"[" or (first == b"{" and bare.endswith(".json")):
        value = decode_json(decode_text(data))
        if isinstance(value, Mapping):
            value = [{"id": key, "text": text} for key, text in value.items()]
        return enumerate(value, 1)
    return _lines(data)


def _rows(text: str, comma: str) -> Iterable[tuple[int, Any]]:
    """The rows of a table; two columns that nobody named are an id and a text."""
    first = text.lstrip("\r\n").partition("\n")[0].split(comma)
    names = {cell.strip(' "\r').lower() for cell in first}
    if len(first) != _PAIR or names & {*_IDS, *_TEXTS, "title"}:
        return enumerate(csv.DictReader(io.StringIO(text), delimiter=comma), 2)
    # Who writes bare pairs with tabs does not quote either.
    pairs = csv.DictReader(
        io.StringIO(text),
        ("id", "text"),
        delimiter=comma,
        quoting=csv.QUOTE_NONE if comma == "\t" else csv.QUOTE_MINIMAL,
    )
    return enumerate(pairs, 1)


def _lines(data: bytes) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            yield number, decode_json(decode_text(line, number), number)


def _read(record: object, line: int) -> tuple[str, str]:
    if not isinstance(record, Mapping):
        raise FormatError("a document must be an object with id and text", line=line)
    document, text = _first(record, _IDS), _first(record, _TEXTS)
    if document is None or not isinstance(text, str):
        missing = "id" if document is None else "text"
        found = ", ".join(map(str, record)) or "none"
        raise FormatError(
            f"a document has no {missing}; fields found: {found}", line=line
        )
    title = record.get("title")
    whole = f"{title}\n{text}" if isinstance(title, str) and title.strip() else text
    return str(document), whole


def _first(record: Mapping[Any, Any], names: tuple[str, ...]) -> Any:
    found = (record[name] for name in names if record.get(name) is not None)
    return next(found, None)
