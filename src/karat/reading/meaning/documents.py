"""Retrieved documents as frameworks and files hand them out, and rankings of them.

Mappings and objects are asked for the same names: `page_content` and `metadata` as in
LangChain, `node` and `score` as in LlamaIndex, `content` and `id` as in Haystack,
`_id`, `_score` and `_source` as search engines answer, `payload` as vector stores do.
A pair of a document and a number is a document with its score.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from numbers import Integral
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeGuard

from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.data.policies import Policies
from karat.data.runs import LAST_RANK, Document, Run
from karat.errors import FormatError
from karat.reading.meaning.aliases import (
    DISTANCES,
    ENDS,
    IDS,
    METADATA,
    QUESTIONS,
    RANKS,
    RETRIEVED,
    SCORES,
    SOURCES,
    STARTS,
    TEXTS,
    WRAPPED,
    ask,
    infer,
    respell,
)
from karat.reading.meaning.ambiguity import are_prose, note_ascending
from karat.reading.meaning.values import (
    are_ids,
    is_list,
    is_scores,
    looks_like_text,
    note_joined,
    plain_floats,
    read_id,
    read_ids,
    read_number,
    read_text,
    show,
    unpack,
)
from karat.reading.source import Notes

_PLAIN: Final = (str, int, float, bool)
_PAIR: Final = 2
_SAID: Final = (*IDS, *TEXTS, *METADATA, *STARTS)
# Offsets beyond it are not whole numbers any more once they are divided.
_FURTHEST: Final = 2**53
# What runs beside a ranking, and whether more or less of it is better.
NUMBERS: Final = {"retrieved_scores": 1, "retrieved_distances": -1}
_OTHERWISE = (
    "{list is ranked in the order given; its|lists are ranked in the order given; "
    "their}"
)
_RANKS = f"{_OTHERWISE} ranks say otherwise"
_ORDER = (
    f"{_OTHERWISE} scores say otherwise (karat evaluate --order descending goes by "
    "them)"
)
_ALONE = (
    "{sample has|samples have} one text where a list is expected: ranks mean little"
)


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
    if isinstance(value, str) or hasattr(value, "__index__") or value is None:
        return Document(id=read_id(value, "document id", notes))
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if is_list(value):
        raise FormatError(f"a document cannot be a list, got {show(value)}")
    value = respell(value)
    inner = _inner(value)
    if inner is not None and not isinstance(inner, _PLAIN):
        own = _identity(value, notes)
        # A search may return no field of the document, but does return its id.
        if own is None or ask(respell(inner), _SAID) is not None:
            document = _read_fields(respell(inner), notes, value, own)
            return replace(document, score=_score(value))
    return _read_fields(value, notes, value)


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
    return (
        isinstance(value, list | tuple)
        and len(value) == _PAIR
        and isinstance(value[1], int | float)
        and not isinstance(value[1], bool)
        and not isinstance(value[0], list | tuple | None)
    )


def _read_fields(
    value: object, notes: Notes, whole: object, own: str | None = None
) -> Document:
    metadata = ask(value, METADATA)
    metadata = metadata if isinstance(metadata, Mapping) else {}
    identity = _identity(value, notes) or _identity(metadata, notes) or own
    text = ask(value, TEXTS)
    if text is None or isinstance(text, Mapping):
        text = ask(metadata, TEXTS)
    source = ask(value, SOURCES)
    start, end = read_offsets(value)
    if (
        identity is None
        and start is None
        and (plain := ask(value, ("doc", "document")))
    ):
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
            f"else name it, as in --map document={next(_paths(whole), 'uid')}",
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


def _paths(value: object, before: str = "") -> Iterator[str]:
    """The paths to what may be an id in a document."""
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        if isinstance(inner, str | int) and name not in SCORES:
            yield f"{before}{name}"
        yield from _paths(inner, f"{before}{name}.")


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
    if not _is_whole(start) or not _is_whole(end) or not 0 <= start < end < _FURTHEST:
        raise FormatError(
            f"start and end must be integers with 0 <= start < end, got {start!r:.40} "
            f"and {end!r:.40}"
        )
    return int(start), int(end)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, Integral) and not isinstance(value, bool)


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


class QueryRanking(NamedTuple):
    """What one query retrieved: ids, documents, or the score of each id.

    Attributes:
        entries: in the order given.
        scores: of ids, where each has one.
        bare: whether nothing but looks says if strings are ids or texts.
    """

    entries: Sequence[str] | list[Document] | dict[str, float]
    scores: Sequence[float] = ()
    bare: bool = False


def read_ranking(query: str, columns: Mapping[str, Any], notes: Notes) -> QueryRanking:
    """One query's ranking, from one field or from several that run in parallel."""
    if len(columns) > 1:
        return _read_parallel(query, columns, notes)
    ((ours, value),) = columns.items()
    if ours in NUMBERS:
        raise FormatError("scores need retrieved documents to go with")
    value = unpack(value)
    if isinstance(value, Mapping):
        scored = is_scores(value)
        inner = None if scored else _ranked_field(tuple(value))
        if inner is not None:
            return read_ranking(query, {inner[0]: value[inner[1]]}, notes)
        if scored or ask(value, (*IDS, *TEXTS)) is None:
            return QueryRanking(read_scored(value, "score", notes))
        value = [value]
    if not is_list(value):
        if ours == "output" or not isinstance(value, str):
            raise FormatError(
                "the ranking must be a list, or an object with a list 'retrieved', "
                f"got {show(value)}"
            )
        if ours == "retrieved_texts":
            notes.notice("one text", _ALONE, query)
        else:
            note_joined(value, "ranking", notes)
        value = [value]
    return _read_list(query, ours, value, notes)


def _read_list(
    query: str, ours: str, value: Sequence[Any], notes: Notes
) -> QueryRanking:
    kinds = {*map(type, value)}
    plain = _read_plain_documents(value) if kinds == {dict} else None
    if plain is not None:
        _note_order(query, plain[1], notes)
        return QueryRanking(*plain)
    if ours != "retrieved_texts" and kinds <= {str, int}:
        bare = ours != "retrieved_ids" and int not in kinds
        return QueryRanking(read_ids(value, "document id", notes), bare=bare)
    documents = _read_documents(ours, value, notes)
    _note_order(query, [d.score for d in documents if d.score is not None], notes)
    return QueryRanking(documents)


@lru_cache(maxsize=256)
def _ranked_field(names: tuple[Any, ...]) -> tuple[str, str] | None:
    """The field of an output that holds the ranking."""
    found = infer(map(str, names)).items()
    return next((field for field in found if field[0] in RETRIEVED), None)


def _read_parallel(
    query: str, columns: Mapping[str, Any], notes: Notes
) -> QueryRanking:
    """A ranking of which several fields say something, as lists of equal length."""
    lists = [
        _read_documents(f, v, notes) for f, v in columns.items() if f not in NUMBERS
    ]
    for ours, sign in NUMBERS.items():
        scores = unpack(columns.get(ours))
        if is_list(scores):
            numbers = [sign * read_number(score, "score") for score in scores]
            lists.append([Document(score=number) for number in numbers])
            break
    if len({len(documents) for documents in lists}) > 1:
        sizes = ", ".join(str(len(documents)) for documents in lists)
        raise FormatError(f"{', '.join(columns)} must be equally long, got {sizes}")
    documents = [_merged(parts) for parts in zip(*lists, strict=True)]
    _note_order(query, [d.score for d in documents if d.score is not None], notes)
    return QueryRanking(documents)


def _merged(parts: Sequence[Document]) -> Document:
    """One document from what several fields say of it."""
    known: dict[str, Any] = {}
    for part in parts[::-1]:
        values = {name: getattr(part, name) for name in Document.__slots__}
        known |= {name: v for name, v in values.items() if v is not None and v != {}}
    return Document(**known)


def _read_plain_documents(
    values: Sequence[dict[Any, Any]],
) -> tuple[list[str], list[float]] | None:
    """Ids and scores of documents that are all written alike and say nothing else.

    None where they do, or where anything is to be said of them: they are read one by
    one then.
    """
    identity, text, score = _plain_names(tuple(values[0])) or ("", "", "")
    if not identity or text or not score or {*map(len, values)} != {_PAIR}:
        return None
    try:
        ids = [*map(itemgetter(identity), values)]
        scores = plain_floats([*map(itemgetter(score), values)])
    except KeyError:
        return None
    return (ids, scores) if scores is not None and are_ids(ids) else None


def _read_documents(ours: str, value: Any, notes: Notes) -> list[Document]:
    value = unpack(value)
    if not is_list(value):
        value = [value]
    documents = [
        Document(text=entry)
        if ours == "retrieved_texts" and isinstance(entry, str)
        else read_document(entry, notes)
        for entry in value
    ]
    if value and isinstance(value[0], Mapping) and ask(value[0], RANKS) is not None:
        ranks = [ask(e, RANKS) for e in value if isinstance(e, Mapping)]
        return _with_ranks(documents, ranks, notes)
    return documents


def _with_ranks(
    documents: list[Document], ranks: list[Any], notes: Notes
) -> list[Document]:
    """Documents that say their ranks: gaps are kept, another order is told."""
    numbers = (rank for rank in ranks if isinstance(rank, int | float))
    known = [*filter(isfinite, numbers)]
    if known != sorted(known):
        notes.notice("order", _RANKS)
    elif len(known) == len(ranks) == len({*map(int, known)}):
        shift = int(known[0] == 0)
        if len(known) < known[-1] + shift <= LAST_RANK:
            pairs = zip(documents, known, strict=True)
            return [replace(d, rank=int(rank) + shift) for d, rank in pairs]
    return documents


def _note_order(query: str, scores: list[float], notes: Notes) -> None:
    if scores != sorted(scores, reverse=True):
        notes.notice("order", _ORDER, query)


def run_of(
    rankings: Mapping[str, QueryRanking], name: str, notes: Notes
) -> tuple[Run | None, bool]:
    """The run, and whether nothing but looks says if it holds ids or texts."""
    if not rankings:
        return None, False
    entries: dict[str, Any] = {}
    scores: dict[str, Sequence[float]] = {}
    scored, bare = [], []
    for query, ranking in rankings.items():
        entries[query], scores[query] = ranking.entries, ranking.scores
        if ranking.bare:
            bare.append(query)
        elif type(ranking.entries) is dict:
            scored.append(query)
    if len(scored) == len(entries):
        note_ascending(entries, map(dict.values, entries.values()), notes)
        return ScoredRun(entries, name), False
    for query in scored:
        entries[query] = _best_first(entries[query])
    if bare and are_prose(map(entries.__getitem__, bare)):
        for query in bare:
            entries[query] = [Document(text=str(text)) for text in entries[query]]
    ids = {
        query: ranking
        for query, ranking in entries.items()
        if not ranking or not isinstance(ranking[0], Document)
    }
    run: Run = RankedRun(ids, name, scores)
    if len(ids) < len(entries):
        run = DocumentRun({**entries, **dict(run.rankings(Policies()))}, name)
    return run, len(bare) == len(entries)


def _best_first(scores: Mapping[str, float]) -> list[Document]:
    """Where some rankings are lists, all are: best score first, as ties go."""
    pairs = sorted(((score, name) for name, score in scores.items()), reverse=True)
    return [Document(id=name, score=score) for score, name in pairs]
