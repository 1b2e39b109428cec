"""Retrieved documents as frameworks and files hand them out, by duck typing.

Mappings and objects are asked for the same names: `page_content` and `metadata` as in
LangChain, `node` and `score` as in LlamaIndex, `content` and `id` as in Haystack,
`_id`, `_score` and `_source` as search engines answer, `payload` as vector stores do.
A pair of a document and a number is a document with its score.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from numbers import Integral
from operator import itemgetter
from typing import Any, Final, TypeGuard
from uuid import UUID

from karat.data.runs import Document
from karat.errors import FormatError
from karat.reading.meaning.aliases import (
    DISTANCES,
    ENDS,
    IDS,
    METADATA,
    NAMED,
    QUESTIONS,
    SCORES,
    SOURCES,
    STARTS,
    TEXTS,
    WRAPPED,
    ask,
    attributes,
    respell,
)
from karat.reading.meaning.values import (
    are_ids,
    is_list,
    looks_like_text,
    paths_in,
    plain_floats,
    read_id,
    read_number,
    read_text,
    show,
    unpack,
    value_at,
)
from karat.reading.source import Notes

INSIDE: Final = ("document", "score", "distance", "text", "grade")
"""Our fields that may lie inside a document, where its id is called `id`."""

_PLAIN: Final = (str, int, float, bool)
_PAIR: Final = 2
_SAID: Final = (*IDS, *TEXTS, *METADATA, *STARTS)
# Offsets beyond it are not whole numbers any more once they are divided.
_FURTHEST: Final = 2**53


def read_document(value: object, notes: Notes) -> Document:
    """One retrieved document, whatever it comes as."""
    if type(value) is dict and (names := _plain_names(tuple(value))) is not None:
        identity, text, score = map(value.get, names)
        if type(identity) is str and identity and type(text) is str and score is None:
            return Document(identity, text)
    if isinstance(value, Document):
        return value
    if is_pair(value):
        document = read_document(value[0], notes)
        return replace(document, score=read_number(value[1], "score"))
    if value is None or isinstance(value, str | UUID) or hasattr(value, "__index__"):
        return Document(id=read_id(value, "document id", notes))
    value = _with_fields(value)
    inner = _inner(value)
    if inner is not None and not isinstance(inner, _PLAIN):
        own = _identity(value, notes)
        # A search may return no field of the document, but does return its id.
        if own is None or ask(respell(inner), _SAID) is not None:
            document = _read_fields(respell(inner), notes, value, own)
            return replace(document, score=_score(value))
    return _read_fields(value, notes, value)


def _with_fields(value: Any) -> Any:
    """What is said of a document, under the names that are asked for."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif isinstance(value, tuple):
        value = table_row(value)
    if is_list(value):
        raise FormatError(f"a document cannot be a list, got {show(value)}")
    value = respell(value)
    if isinstance(value, Mapping) and isinstance(value.get("fields"), Mapping):
        return {**value, **_vespa_fields(value, value["fields"])}
    return value


def table_row(row: tuple[Any, ...]) -> Any:
    """A row of a table: the id comes first, and a text may follow."""
    if not row or not all(v is None or isinstance(v, _PLAIN) for v in row):
        return row
    text = next((value for value in row[1:] if isinstance(value, str)), None)
    return {"id": row[0]} | ({} if text is None else {"text": text})


def _vespa_fields(hit: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a hit of Vespa says, whose ids look like `id:namespace:type::name`."""
    name = str(fields.get("documentid") or hit.get("id") or "").rpartition("::")[2]
    found = (name or None, ask(fields, TEXTS), hit.get("relevance"))
    values = zip(("id", "text", "score"), found, strict=True)
    return {key: value for key, value in values if value is not None}


def _inner(value: object) -> object:
    """What a document is wrapped in: `{"node": {...}}`, `{"chunk": {...}}`."""
    inner, chunk = ask(value, WRAPPED), ask(value, TEXTS)
    return chunk if inner is None and isinstance(chunk, Mapping) else inner


@lru_cache(maxsize=256)
def _plain_names(keys: tuple[str, ...]) -> tuple[str, str, str] | None:
    """What id, text and score are called, if these keys say nothing else."""
    names = [[n for n in group if n in keys] for group in (IDS, TEXTS, SCORES)]
    if len(keys) != sum(map(len, names)) or any(len(found) > 1 for found in names):
        return None
    identity, text, score = ((*found, "")[0] for found in names)
    return identity, text, score


def is_pair(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a document and its score."""
    if not isinstance(value, list | tuple) or len(value) != _PAIR:
        return False
    document, number = value
    # A number may be one of a library, such as NumPy's, whose arrays are none.
    numeric = hasattr(number, "__float__") and not getattr(number, "shape", ())
    bare = isinstance(number, bool) or isinstance(document, list | tuple | None)
    return numeric and not bare


def _read_fields(
    value: object, notes: Notes, whole: object, own: str | None = None
) -> Document:
    metadata = ask(value, METADATA)
    if metadata is not None and not isinstance(metadata, Mapping):
        # Weaviate has the properties of an object beside what the search says of it.
        metadata = ask(value, METADATA[1:])
    metadata = metadata if isinstance(metadata, Mapping) else {}
    identity = _identity(value, notes) or _identity(metadata, notes) or own
    text = ask(value, TEXTS)
    if text is None or isinstance(text, Mapping):
        text = ask(metadata, TEXTS)
    source = ask(value, SOURCES)
    start, end = read_offsets(value)
    if identity is None and start is None and (plain := ask(value, NAMED)) is not None:
        # {"doc": "d1"} names the document; {"document": "The sky ..."} is its text.
        if text is None and isinstance(plain, str) and looks_like_text([plain]):
            text = plain
        else:
            identity = read_id(plain, "document id", notes)
        source = None if source == plain else source
    if identity is None and text is None and start is None:
        raise FormatError(
            f"a retrieved document needs an id or a text, got {show(whole)}",
            hint=f"its id is called {' or '.join(IDS[:4])}, its text {TEXTS[0]} or so; "
            f"else name it, as in --map document={_usual_id(whole)}",
        )
    if not isinstance(source, str | int):
        source = metadata.get("source")
        source = source if isinstance(source, str) else None
    return Document(
        id=identity,
        text=None if text is None else read_text(text, "the text of a document"),
        score=_score(value),
        source=None if source is None else str(source),
        start=start,
        end=end,
        metadata=metadata,
    )


def _usual_id(whole: object) -> str:
    """The path to what may be an id in a document."""
    for path, value in paths_in(whole):
        if isinstance(value, str | int) and path.rpartition(".")[2] not in SCORES:
            return path
    return "uid"


def _identity(value: object, notes: Notes) -> str | None:
    found = ask(value, IDS)
    return None if found is None else read_id(found, "document id", notes)


def _score(value: object) -> float | None:
    found = ask(value, SCORES)
    if found is None and (distance := ask(value, DISTANCES)) is not None:
        return -read_number(distance, "distance")
    return None if found is None else read_number(found, "score")


def read_offsets(value: object) -> tuple[int | None, int | None]:
    """Where a text begins and ends in its source, if it says both."""
    start, end = ask(value, STARTS), ask(value, ENDS)
    if start is None or end is None:
        return None, None
    whole = isinstance(start, Integral) and isinstance(end, Integral)
    if (
        not whole
        or bool in {type(start), type(end)}
        or not 0 <= start < end < _FURTHEST
    ):
        raise FormatError(
            f"start and end must be integers with 0 <= start < end, got {start!r:.40} "
            f"and {end!r:.40}"
        )
    return int(start), int(end)


def read_scored(scores: Mapping[Any, Any], what: str, notes: Notes) -> dict[str, float]:
    """A mapping of id to number, such as scores or grades, checked."""
    if {*map(type, scores)} <= {str} and "" not in scores:
        numbers = plain_floats(scores.values())
        if numbers is not None:
            return dict(zip(scores, numbers, strict=True))
    read: dict[str, float] = {}
    for key, value in scores.items():
        graded = type(value) is bool and what == "grade"
        number = float(value) if graded else value
        read[read_id(key, "document id", notes)] = read_number(
            number, f"{what} of {str(key)[:60]!r}"
        )
    if len(read) < len(scores):
        raise FormatError("a document id occurs both as number and as text")
    return read


def read_question(value: object) -> str | None:
    """What was asked: a text, an object that holds it, or a conversation."""
    value = unpack(value) if not isinstance(value, str) else value
    if isinstance(value, Mapping):
        value = ask(value, QUESTIONS)
    if is_list(value):
        value = "\n".join(str(ask(said, ("content", "text")) or said) for said in value)
    return None if value is None else str(value)


def read_plain_documents(
    values: Sequence[dict[Any, Any]],
) -> tuple[list[str], list[float]] | None:
    """Ids and scores of documents that are all written alike and say nothing else."""
    identity, text, score = _plain_names(tuple(values[0])) or ("", "", "")
    if not identity or text or not score or {*map(len, values)} != {_PAIR}:
        return None
    try:
        ids = [*map(itemgetter(identity), values)]
        scores = plain_floats([*map(itemgetter(score), values)])
    except KeyError:
        return None
    return (ids, scores) if scores is not None and are_ids(ids) else None


def list_with(record: Mapping[Any, Any], path: str) -> str | None:
    """The one field that holds a list of objects with that path, if there is one."""
    found = [
        str(name)
        for name, value in record.items()
        if is_list(documents := unpack(value))
        and any(value_at(document, path) is not None for document in documents)
    ]
    return found[0] if len(found) == 1 else None


def rename_inside(value: Any, names: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """The documents of a list with fields of theirs under our names; and which."""
    documents = unpack(value)
    if not is_list(documents):
        return value, {}
    result, found = [], dict[str, str]()
    for entry in documents:
        if is_pair(entry):
            document, more = rename(entry[0], names)
            result.append((document, entry[1]))
        else:
            change = rename_inside if isinstance(entry, list) else rename
            document, more = change(entry, names)
            result.append(document)
        found |= more
    return result, found


def rename(document: Any, names: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """A document with fields of its own under our names, whatever wraps it."""
    values = {ours: value_at(document, theirs) for ours, theirs in names.items()}
    found = {ours: names[ours] for ours, value in values.items() if value is not None}
    if not found:
        return document, found
    fields = {**document} if isinstance(document, Mapping) else attributes(document)
    inner = ask(fields, WRAPPED)
    if inner is not None and not isinstance(inner, _PLAIN):
        fields = {n: value for n, value in fields.items() if n not in WRAPPED}
        inside = inner if isinstance(inner, Mapping) else attributes(inner)
        fields = {**inside, **fields}
    own = {"id" if ours == "document" else ours: values[ours] for ours in found}
    return {**fields, **own}, found


def names_inside(value: Any) -> Iterable[str]:
    """The fields or attributes of the first document of a list."""
    documents = unpack(value)
    first = documents[0] if is_list(documents) and documents else None
    first = first[0] if is_pair(first) else first
    names = first if isinstance(first, Mapping) else getattr(first, "__dict__", ())
    return [str(name) for name in names]
