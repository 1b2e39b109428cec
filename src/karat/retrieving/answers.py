"""What retrievers return, as ranked documents.

Search engines, vector stores and frameworks wrap their hits in different ways; the
hits themselves are read as `reading` reads documents anywhere.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter, methodcaller
from typing import Any, Final

from karat.data.runs import Document
from karat.errors import FormatError, Transient, UnknownNameError
from karat.reading.meaning.aliases import IDS, TEXTS, ask
from karat.reading.meaning.documents import read_document
from karat.reading.meaning.mapping import INSIDE, names_inside, value_at
from karat.reading.meaning.shapes import FRAMES, chroma_rankings, is_frame
from karat.reading.meaning.values import is_scores, show
from karat.reading.source import Notes

PATHS: Final = (
    *("hits.hits", "root.children", "result.points", "result.hits"),
    *("points", "matches", "passages", "source_nodes", "nodes", "hits", "documents"),
    *("results", "retrieved", "docs", "contexts", "chunks", "rows", "data", "body"),
)
"""Where an answer that wraps its hits may hold them, the surest first."""

_FIELDS: Final = ("id", "text", "score", "source", "start", "end")
_SCALARS: Final = (str, int, float, bool)
_PAIR: Final = 2
_DEPTH: Final = 4
_EXPECTED = "a retriever returns a list of documents, ids or texts, best first"


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Refuse names that are not about retrieved documents."""
    fields = {"retrieved": "", **INSIDE}
    for ours in mapping:
        if ours not in fields or ours == "grade":
            raise UnknownNameError("field", ours, [n for n in fields if n != "grade"])


def read_answer(
    answer: Any, mapping: Mapping[str, str], ids: Sequence[Any] | None = None
) -> list[Document | str]:
    """The documents of an answer, best first; a string may be an id or a text."""
    entries = _entries(_at_mapping(answer, mapping))
    inside = {ours: theirs for ours, theirs in mapping.items() if ours in INSIDE}
    return [_document(entry, inside, ids) for entry in entries]


def scores_rise(answer: Any, mapping: Mapping[str, str]) -> bool:
    """Whether scores by document have the smallest first, as distances do."""
    inner = _at_mapping(answer, mapping)
    is_scored = isinstance(inner, Mapping) and is_scores(inner)
    return is_scored and all(a < b for a, b in pairwise(inner.values()))


def _at_mapping(answer: Any, mapping: Mapping[str, str]) -> Any:
    """What the caller says holds the documents."""
    path = mapping.get("retrieved")
    if path is None:
        return answer
    inner = value_at(_body(answer), path)
    if inner is None:
        names = ", ".join(map(str, answer)) if isinstance(answer, Mapping) else ""
        raise FormatError(f"the answer has no {path!r}; it holds {names or 'none'}")
    return inner


def _body(answer: Any) -> Any:
    body = getattr(answer, "body", None)
    return body if isinstance(body, Mapping) else answer


def _entries(answer: Any) -> list[Any]:
    """The hits of an answer, out of whatever wraps them."""
    for _ in range(_DEPTH):
        batch = isinstance(answer, list) and [*map(type, answer)] == [list]
        if isinstance(answer, list) and not batch:
            return answer
        answer = next(take for is_kind, take in _LAYERS if is_kind(answer))(answer)
    raise FormatError(f"{_EXPECTED}; it returned {show(answer)}")


def _refuse(answer: Any) -> Any:
    if answer is None:
        hint = "for nothing found, return []"
        raise FormatError(f"{_EXPECTED}; it returned None", hint=hint)
    raise FormatError(f"{_EXPECTED}; it returned {show(answer)}")


def _from_mapping(answer: Mapping[Any, Any]) -> Any:
    _refuse_error(answer)
    if (rankings := chroma_rankings(answer)) is not None:
        return _only(rankings)
    if is_scores(answer):
        return sorted(answer.items(), key=lambda pair: -pair[1])
    return _only(answer["responses"]) if "responses" in answer else _at_path(answer)


def _at_path(answer: Any) -> Any:
    for path in PATHS:
        if (inner := value_at(answer, path)) is not None:
            return _texts(inner) if path == "passages" else inner
    names = ", ".join(map(str, answer)) if isinstance(answer, Mapping) else ""
    raise FormatError(
        f"{_EXPECTED}; it returned {show(answer)}",
        hint="name where the documents are: --map retrieved=PATH (mapping={'retrieved':"
        f" 'PATH'}}){f'; it holds {names[:200]}' if names else ''}",
    )


def _texts(passages: Any) -> list[Any]:
    """Passages are texts, however short."""
    return [{"text": p} if isinstance(p, str) else p for p in _entries(passages)]


def _arrays(answer: tuple[Any, ...]) -> list[Any]:
    """Documents with their scores, from two arrays of one row each; or as it is."""
    # Not len(answer): a named tuple may count something else.
    parts = [*answer]
    if len(parts) != _PAIR or not all(hasattr(part, "tolist") for part in parts):
        return parts
    rows = [part.tolist() for part in parts]
    for place, row in enumerate(rows):
        if row and isinstance(row[0], list):
            if len(row) > 1:
                raise FormatError(f"{_EXPECTED}, for one query; it returned {len(row)}")
            rows[place] = row[0]
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
        raise FormatError(f"{_EXPECTED}, for one query; it returned {number}")
    return parts[0]


def _refuse_error(answer: Mapping[Any, Any]) -> None:
    """An engine that says it failed, or saw a part of its index only, found nothing."""
    if (error := answer.get("error")) and "hits" not in answer:
        raise FormatError(f"it answered with an error: {show(error)}")
    shards = answer.get("_shards")
    failed = isinstance(shards, Mapping) and shards.get("failed")
    if answer.get("timed_out") is True or failed:
        raise Transient("the engine searched a part of its index only", alive=True)


def _document(
    entry: Any, inside: Mapping[str, str], ids: Sequence[Any] | None
) -> Document | str:
    entry, score = _scored(entry)
    if isinstance(entry, tuple) and not hasattr(entry, "_asdict"):
        entry = _row(entry)
    if isinstance(entry, list | tuple) and not hasattr(entry, "_asdict"):
        raise FormatError(f"{_EXPECTED}; in the list stands another, {show(entry)}")
    if ids is not None:
        entry = _with_id(entry, ids)
    if isinstance(entry, str) and score is None and not inside:
        return entry
    if isinstance(entry, Mapping) and isinstance(entry.get("fields"), Mapping):
        entry = _vespa_hit(entry)
    if inside:
        entry = _renamed(entry, inside)
    document = read_document(entry if score is None else (entry, score), Notes())
    if not document.id and not document.text:
        raise FormatError(f"a document needs an id or a text, got {show(entry)}")
    return document


def _scored(entry: Any) -> tuple[Any, float | None]:
    """A document, and the number it comes in a pair with."""
    if not isinstance(entry, list | tuple) or len(entry) != _PAIR:
        return entry, None
    if isinstance(entry[1], str) or not hasattr(entry[1], "__float__"):
        return entry, None
    return entry[0], float(entry[1])


def _row(row: tuple[Any, ...]) -> Any:
    """A row of a table: the id comes first, and a text may follow."""
    if not row or not all(v is None or isinstance(v, _SCALARS) for v in row):
        return row
    text = next((value for value in row[1:] if isinstance(value, str)), None)
    return {"id": row[0]} | ({} if text is None else {"text": text})


def _with_id(entry: Any, ids: Sequence[Any]) -> Any:
    """A document under its own id, where its place in the index is known."""
    place = ask(entry, IDS) if isinstance(entry, Mapping) else entry
    if isinstance(place, bool) or not hasattr(place, "__index__"):
        raise FormatError(f"ids= needs places in the index, got {show(entry)}")
    if not 0 <= place < len(ids):
        raise FormatError(f"the index has place {place}, and ids= has {len(ids)} ids")
    name = ids[place.__index__()]
    return {**entry, "id": name} if isinstance(entry, Mapping) else str(name)


def _vespa_hit(hit: Mapping[str, Any]) -> dict[str, Any]:
    """A hit of Vespa, whose ids look like `id:namespace:type::name`."""
    fields = hit["fields"]
    name = str(fields.get("documentid") or hit.get("id") or "").rpartition("::")[2]
    text = ask(fields, TEXTS)
    values = {"id": name, "text": text, "score": hit.get("relevance")}
    return {**hit, **{key: value for key, value in values.items() if value is not None}}


def _renamed(entry: Any, inside: Mapping[str, str]) -> Any:
    """A document with fields of its own under our names; its id must be there."""
    values = {ours: value_at(entry, theirs) for ours, theirs in inside.items()}
    for ours in ("document", "text"):
        if ours in inside and values[ours] is None:
            names = ", ".join(names_inside([entry])) or show(entry)
            problem = f"a document has no {inside[ours]!r}; it has {names}"
            raise FormatError(problem)
    base = {"score": ask(entry, ("score", "_score")), "text": ask(entry, TEXTS)}
    if isinstance(entry, Mapping):
        base = dict(entry)
    own = {INSIDE[ours]: value for ours, value in values.items()}
    return {name: v for name, v in {**base, **own}.items() if v is not None}


_LAYERS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Any]], ...]] = (
    (lambda a: a is None or isinstance(a, str | bytes | int | float), _refuse),
    (is_frame, lambda frame: [record for _, record in FRAMES["records"](frame)]),
    (lambda a: isinstance(a, Iterator), list),
    (lambda a: isinstance(a, tuple), _arrays),
    (lambda a: isinstance(a, list), itemgetter(0)),
    (lambda a: isinstance(a, Mapping), _from_mapping),
    (lambda a: hasattr(a, "tolist"), methodcaller("tolist")),
    (lambda a: callable(getattr(a, "to_list", None)), methodcaller("to_list")),
    (lambda _: True, _at_path),
)
"""What an answer may be, and what it wraps then."""


def to_plain(document: Document | str) -> Any:
    """A document in values that JSON holds."""
    if isinstance(document, str):
        return document
    values = {name: getattr(document, name) for name in _FIELDS}
    plain = {name: value for name, value in values.items() if value is not None}
    metadata = {
        str(name): value
        for name, value in document.metadata.items()
        if isinstance(value, _SCALARS) and value == value  # noqa: PLR0124
    }
    return plain | ({"metadata": metadata} if metadata else {})


def documents_from(plain: Sequence[Any]) -> list[Document | str]:
    """The documents that `to_plain` gave."""
    return [p if isinstance(p, str) else Document(**p) for p in plain]
