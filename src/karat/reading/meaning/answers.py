"""What search engines, vector stores and frameworks answer: the hits inside.

They wrap their hits in different ways. The rules below look at what an object or a
mapping has, and import no library; retrievers, runs, samples and gold are read by them.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from operator import itemgetter, methodcaller
from typing import Any, Final

from karat.catalogue import Catalogue
from karat.errors import FormatError
from karat.reading.meaning.aliases import IDS, TEXTS, ask
from karat.reading.meaning.values import is_list, is_pair, is_scores, show, value_at

# Most callers have no frames, and what reads them takes long to load.
FRAMES: Catalogue[Callable[..., Any]] = Catalogue(
    "frame reader",
    {
        "load": "karat.reading.tables:load_frame",
        "split": "karat.reading.tables:split_distributed",
        "records": "karat.reading.tables:table_records",
    },
)

CHROMA: Final = {
    "ids": "id",
    "documents": "text",
    "distances": "distance",
    "metadatas": "metadata",
    **dict.fromkeys(("embeddings", "uris", "data", "included"), ""),
}
"""What an answer of Chroma holds -> our name of it, where it is read."""

PARTIAL: Final = "the engine searched a part of its index only"

HUGGING: Final = "with_format"
"""A method that the data sets of Hugging Face have, and no frame."""

_ENGINES: Final = (
    *("hits.hits", "root.children", "response.docs", "result.points", "result.hits"),
    *("data.Get", "points", "matches", "objects", "result"),
)
"""Where engines and stores list their hits, and nobody has anything else."""

PATHS: Final = (
    *_ENGINES,
    *("passages", "source_nodes", "nodes", "hits", "documents", "results"),
    *("retrieved", "docs", "contexts", "chunks", "rows", "data", "body"),
)
"""Where an answer that wraps its hits may have them, the surest first."""

_TABULAR: Final = ("__arrow_c_stream__", "__arrow_c_array__", "mapInArrow", HUGGING)
_SCALARS: Final = (str, bytes, int, float, complex)
_PAIR: Final = 2
_DEPTH: Final = 6
_EXPECTED: Final = "the ranking must be a list of documents, ids or texts, best first"


def hits_of(answer: Any) -> list[Any]:
    """The hits of an answer to one query, out of whatever wraps them."""
    for _ in range(_DEPTH):
        # Engines may list the hits of each query, and there is one.
        if isinstance(answer, list) and (
            len(answer) != 1 or not isinstance(answer[0], list) or is_pair(answer[0])
        ):
            return answer
        answer = next(take for is_kind, take in _LAYERS if is_kind(answer))(answer)
    raise FormatError(f"a document cannot be a list, got {show(answer)}")


def hits_path(answer: object, paths: tuple[str, ...] = PATHS) -> str | None:
    """Where an answer has its hits, if it has any."""
    if hasattr(answer, "tolist") or is_frame(answer):
        return None
    found = ((path, value_at(answer, path)) for path in paths)
    return next((path for path, hits in found if _may_hold_hits(hits)), None)


def is_answer(value: object) -> bool:
    """Whether a value is an answer as an engine or store gives it."""
    if isinstance(value, Mapping) and is_list(value.get("responses")):
        return True
    path = hits_path(value, _ENGINES)
    if path is None:
        return isinstance(value, Mapping) and chroma_rankings(value) is not None
    return "." in path or not isinstance(value_at(value, path), Mapping)


def answer_field(record: Mapping[Any, Any]) -> str | None:
    """The place of the hits in a record that is an answer, or has one in a field."""
    if is_answer(record):
        return hits_path(record, _ENGINES)
    response = record.get("response")
    if is_list(response) and not any(isinstance(hit, str) for hit in response):
        return "response"
    return next((str(n) for n, value in record.items() if is_answer(value)), None)


def body_of(answer: Any) -> Any:
    """The mapping that a client's object wraps, or the answer as it is."""
    body = getattr(answer, "body", None)
    return body if isinstance(body, Mapping) else answer


def is_partial(answer: Any) -> bool:
    """Whether an engine says that it did not search all of its index."""
    facts = ("timed_out", "_shards.failed", "root.coverage.full")
    late, failed, full = (value_at(body_of(answer), path) for path in facts)
    return late is True or bool(failed) or full is False


def chroma_rankings(answer: Mapping[Any, Any]) -> list[list[dict[str, Any]]] | None:
    """The documents of each query from columns of lists, as Chroma answers."""
    ids = answer.get("ids")
    if not isinstance(ids, list) or not all(isinstance(row, list) for row in ids):
        return None
    names = {CHROMA[n]: n for n in CHROMA if CHROMA[n] and answer.get(n) is not None}
    try:
        return [
            [dict(zip(names, row, strict=True)) for row in zip(*rows, strict=True)]
            for rows in zip(*map(answer.get, names.values()), strict=True)
        ]
    except ValueError:
        problem = f"{', '.join(names.values())} must be lists of the same length"
        raise FormatError(problem) from None


def is_frame(thing: object) -> bool:
    """Whether something is a table of a DataFrame library."""
    return (
        any(hasattr(thing, name) for name in _TABULAR)
        or is_of("pandas", "DataFrame", thing)
        or is_of("polars", "LazyFrame", thing)
    )


def is_of(library: str, name: str, thing: object) -> bool:
    """Whether it is of a class of a library, if anybody has imported that."""
    kind = getattr(sys.modules.get(library), name, None)
    return kind is not None and isinstance(thing, kind)


def _may_hold_hits(value: object) -> bool:
    empty = isinstance(value, Mapping) and not value
    return value is not None and not empty and not isinstance(value, _SCALARS)


def _refuse(answer: Any) -> Any:
    hint = "for nothing found, use []" if answer is None else None
    raise FormatError(f"{_EXPECTED}; got {show(answer)}", hint=hint)


def _from_mapping(answer: Mapping[Any, Any]) -> Any:
    error = answer.get("error") or value_at(answer, "root.errors")
    if error and "hits" not in answer:
        raise FormatError(f"it answered with an error: {show(error)}")
    if is_partial(answer):
        raise FormatError(PARTIAL)
    if (rankings := chroma_rankings(answer)) is not None:
        return _only(rankings)
    if is_scores(answer):
        return sorted(answer.items(), key=lambda pair: -pair[1])
    return _only(answer["responses"]) if "responses" in answer else _at_path(answer)


def _at_path(answer: Any) -> Any:
    if (path := hits_path(answer)) is not None:
        hits = value_at(answer, path)
        return _texts(hits) if path == "passages" else hits
    if ask(answer, (*IDS, *TEXTS)) is not None:
        return [answer]
    if value_at(answer, "root.fields.totalCount") == 0:
        # Vespa found nothing.
        return []
    parts = [*answer.values()] if isinstance(answer, Mapping) else []
    if len(parts) == 1 and _may_hold_hits(parts[0]):
        # A pipeline names the part of it that answered.
        return parts[0]
    names = ", ".join(map(str, answer)) if isinstance(answer, Mapping) else ""
    raise FormatError(
        f"{_EXPECTED}; got {show(answer)}",
        hint="name where the documents are: --map retrieved=PATH (mapping={'retrieved':"
        f" 'PATH'}}){f'; it holds {names[:200]}' if names else ''}",
    )


def _texts(passages: Any) -> list[Any]:
    """Passages are texts, however short."""
    return [{"text": p} if isinstance(p, str) else p for p in hits_of(passages)]


def _arrays(answer: tuple[Any, ...]) -> list[Any]:
    """Documents with their scores, from two arrays of one row each; or as it is."""
    # Not len(answer): a named tuple may count something else.
    parts = [*answer]
    if len(parts) != _PAIR or not all(hasattr(part, "tolist") for part in parts):
        return parts
    rows = [part.tolist() for part in parts]
    for place, row in enumerate(rows):
        if row and isinstance(row[0], list):
            rows[place] = _only(row)
    if hasattr(answer, "documents") or all(isinstance(s, float) for s in rows[1]):
        documents, scores = rows
    else:
        scores, documents = rows
        if any(a < b for a, b in pairwise(scores)):
            # They rise: distances, of which small ones are good.
            scores = [-score for score in scores]
    # FAISS fills up with -1 where it found fewer.
    rows_found = zip(documents, scores, strict=True)
    return [(d, score) for d, score in rows_found if type(d) is not int or d >= 0]


def _only(parts: Any) -> Any:
    if not isinstance(parts, list) or len(parts) != 1:
        number = len(parts) if isinstance(parts, list) else show(parts)
        raise FormatError(f"{_EXPECTED}, for one query; got {number}")
    return parts[0]


_LAYERS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...]] = (
    (lambda a: a is None or isinstance(a, _SCALARS), _refuse),
    (is_frame, lambda frame: [record for _, record in FRAMES["records"](frame)]),
    (lambda a: isinstance(a, Iterator), list),
    (lambda a: isinstance(a, tuple), _arrays),
    (lambda a: isinstance(a, list), itemgetter(0)),
    (lambda a: isinstance(a, Mapping), _from_mapping),
    (lambda a: isinstance(body_of(a), Mapping), body_of),
    (lambda a: hasattr(a, "tolist"), methodcaller("tolist")),
    (lambda a: callable(getattr(a, "to_list", None)), methodcaller("to_list")),
    (is_list, list),
    (lambda _: True, _at_path),
)
"""What an answer may be, and what it wraps then."""
