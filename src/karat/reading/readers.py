"""Read runs, gold, samples and corpora from files and from Python objects."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, overload

from karat.data.gold import Gold
from karat.data.memory_runs import DocumentRun
from karat.data.policies import Policies, Ties
from karat.data.queries import Corpus, Dataset, Query
from karat.data.runs import Document, Notice, Run
from karat.errors import DataError, FormatError
from karat.reading.files import gc_paused
from karat.reading.format import open_source
from karat.reading.meaning.aliases import (
    GOLD,
    IDS,
    RETRIEVED,
    STARTS,
    TEXTS,
    ask,
    respell,
)
from karat.reading.meaning.answers import FRAMES, HUGGING, body_of, is_frame
from karat.reading.meaning.documents import read_document
from karat.reading.meaning.shapes import (
    interpret,
    interpret_by,
    one_part,
    plain_gold,
    plain_run,
    records_of,
    with_lists,
)
from karat.reading.meaning.values import (
    as_record,
    as_records,
    is_list,
    looks_like_id,
    looks_like_text,
    read_id,
    show,
    value_at,
)
from karat.reading.source import Batched, Notes, Role, Source, placed

_OF_RUNS: Final = RETRIEVED | {
    *("retrieved_scores", "retrieved_distances", "score", "rank", "distance"),
}
_OF_GOLD: Final = GOLD | {"grade", "relevant_grades"}
_DOCUMENT_IDS: Final = (*IDS, "corpus_id", "doc", "document")
_BARE: Final = (str, int, float, list, tuple, type(None))


@overload
def read_run(
    source: Any,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    by: None = None,
) -> Run: ...
@overload
def read_run(
    source: Any,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    by: str,
) -> dict[str, Run]: ...
def read_run(
    source: Any,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    by: str | None = None,
) -> Run | dict[str, Run]:
    """What a system retrieved, from a file or from Python objects.

    Args:
        source: a path, `-` for standard input, or what `evaluate` takes as a run:
            mappings, lists, arrays, generators, documents, DataFrames.
        mapping: our field name -> theirs, where the inference should not decide.
        format: the name of a file's format, where its extension should not decide.
        by: a field that tells several systems apart; the result is a run for each.

    Raises:
        FormatError: the input cannot be read, or holds no run.

    Example:
        >>> run = read_run([{"id": "q1", "retrieved": ["d3", "d1"]}])
        >>> run.queries()
        ['q1']
    """
    parts = (
        {"": read(source, "run", mapping=mapping, format=format)}
        if by is None
        else read_by(source, by, "run", mapping=mapping, format=format)
    )
    runs = {name: part.run for name, part in parts.items() if part.run is not None}
    if len(runs) < len(parts):
        raise DataError("the input holds nothing retrieved")
    for name, run in runs.items():
        # What was seen while reading is told when the run is scored.
        run.retrieval = replace(run.retrieval, notices=parts[name].notices)
    return runs[""] if by is None else runs


def read_gold(
    source: Any,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
) -> Gold:
    """What should have been retrieved, from a file or from Python objects.

    Args:
        source: a path, `-` for standard input, or what `evaluate` takes as gold.
        mapping: our field name -> theirs, where the inference should not decide.
        format: the name of a file's format, where its extension should not decide.

    Raises:
        FormatError: the input cannot be read, or holds no gold.

    Example:
        >>> read_gold({"q1": {"d1": 2}}).documents
        {'q1': {'d1': 2}}
    """
    found = read(source, "gold", mapping=mapping, format=format)
    if found.gold is None:
        raise DataError("the input holds no gold")
    # What was seen while reading is told when a run is scored.
    return replace(found.gold, notices=found.notices)


def read_samples(
    source: Any,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
) -> Dataset:
    """Run, gold and queries from one file or list of samples.

    Args:
        source: a path, `-` for standard input, a list of records, or a DataFrame.
        mapping: our field name -> theirs, where the inference should not decide.
        format: the name of a file's format, where its extension should not decide.

    Raises:
        FormatError: the input cannot be read, or lacks run or gold.

    Example:
        >>> data = read_samples([{"id": "q1", "retrieved": ["a"], "relevant": ["a"]}])
        >>> data.run.queries(), data.gold.documents
        (['q1'], {'q1': {'a': 1.0}})
    """
    return read(source, "samples", mapping=mapping, format=format)


def read_corpus(
    source: Any,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    ids: Collection[str] | None = None,
) -> Corpus:
    r"""The texts of documents by id, from a file or from Python objects.

    A record has an id and a text; a title is put in front, as BEIR does. Also read are
    one mapping of id to text, a table of two columns without names, and a BEIR folder.

    Args:
        source: a path, `-` for standard input, a mapping, records, or a DataFrame.
        mapping: `document` or `text` -> their field, where the inference should not
            decide.
        format: the name of a file's format, where its extension should not decide.
        ids: the documents whose texts are kept; by default all. A large corpus is read
            through without being held in memory.

    Raises:
        FormatError: the input cannot be read, or a record lacks its id or text.

    Example:
        >>> read_corpus([{"_id": "d1", "title": "Rye", "text": "A grain."}])["d1"]
        'Rye\nA grain.'
    """
    if not isinstance(source, str | os.PathLike):
        where = Source("corpus", "corpus", mapping or {}, ids=ids)
        return _gather_texts(_listed(source, where), where)
    chosen, where = open_source(source, Notes(), "corpus", mapping, format)
    where = replace(where, ids=ids)
    with _reading(where):
        return _gather_texts(chosen.records(where), where)


def _gather_texts(value: object, source: Source) -> Corpus:
    """The text of each document, from what a format read or a caller handed over."""
    texts: dict[str, str] = {}
    origins: dict[str, tuple[str, int]] = {}
    titles: dict[str, int] = {}
    wanted = None if source.ids is None else frozenset(source.ids)
    count = 0
    for count, (line, record) in enumerate(_documents_in(value, source), 1):
        try:
            document, text, title = _read_text(record, source)
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


def _documents_in(value: object, source: Source) -> Iterable[tuple[int | None, Any]]:
    if isinstance(value, Batched) and value.header:
        # An empty cell is an empty text.
        return ((n, {k: v or "" for k, v in record.items()}) for n, record in value)
    if not isinstance(value, Mapping):
        return records_of(as_records(value), source)
    lists = [v for v in value.values() if is_list(v)]
    if len(lists) == 1:
        return ((None, record) for record in lists[0])
    entries = (e if isinstance(e, Mapping) else {"text": e} for e in value.values())
    return (
        (None, e if ask(e, _DOCUMENT_IDS) is not None else {"id": key, **e})
        for key, e in zip(value, entries, strict=True)
    )


def _read_text(record: object, source: Source) -> tuple[str, str, int]:
    """The id, the text behind its title, and how long that title is."""
    if isinstance(record, _BARE):
        problem = f"a document must be an object with id and text, got {show(record)}"
        raise FormatError(problem)
    record, told = respell(record), source.mapping
    name = told.get("document") or told.get("id")
    identity = ask(record, _DOCUMENT_IDS) if name is None else value_at(record, name)
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


def read_queries(source: Any) -> Mapping[str, Query]:
    """What is known of queries: texts by id or in a list, records, or a file."""
    if isinstance(source, str | os.PathLike):
        queries = read(source, "queries").queries
        if not queries:
            raise FormatError("holds no texts or tags of queries", path=source)
        return queries
    where = Source("queries", "queries")
    listed = as_records(_listed(source, where))
    if isinstance(listed, Mapping):
        return {
            str(name): fact
            if isinstance(fact, Query)
            else Query(str(name), None if fact is None else str(fact))
            for name, fact in listed.items()
        }
    if isinstance(listed, list | tuple) and all(isinstance(q, str) for q in listed):
        return {str(n): Query(str(n), text) for n, text in enumerate(listed)}
    if not isinstance(listed, list | tuple | Iterator) or not listed:
        raise DataError(
            f"cannot read queries from {type(source).__name__}",
            hint="pass texts by id, a list of texts or records, or a path",
        )
    return interpret(listed, where, "objects").queries


def _bare_id(document: Document) -> str | None:
    """The id of a document of which nothing else is known; None for the others."""
    if document.text is None:
        return document.id
    bare = document.id is None and looks_like_id(document.text)
    return document.text if bare else None


def texts_for(run: Run, gold: Gold, corpus: Any) -> Mapping[str, str]:
    """The texts of a corpus that a run and its gold need, read once."""
    if isinstance(corpus, Mapping) and isinstance(next(iter(corpus.values()), ""), str):
        return corpus
    retrieved = (d for _, ranking in run.rankings(Policies()) for d in ranking)
    names = {*map(_bare_id, retrieved)} - {None}
    wanted = {name for row in gold.documents.values() for name in row}
    wanted |= {item.text for row in gold.passages.values() for item in row}
    return read_corpus(corpus, ids={*map(str, names), *wanted})


def with_texts(run: Run, corpus: Any, ties: Ties = "trec") -> DocumentRun:
    """The run with the texts of its documents, where it has only their ids."""
    rankings = dict(run.rankings(Policies(ties=ties)))
    corpus = texts_for(run, Gold(), corpus)
    # Where the corpus has any of the strings that were retrieved, they are ids.
    are_ids = any(_bare_id(d) in corpus for r in rankings.values() for d in r)
    some = [d.id for r in rankings.values() for d in r if d.id and d.text is None]
    are_texts = not are_ids and looks_like_text(some)

    def with_text(d: Document) -> Document:
        name = _bare_id(d)
        if name is None or (d.id is None and not are_ids):
            return d
        if are_texts:
            return replace(d, id=None, text=d.id)
        return replace(d, id=name, text=corpus.get(name))

    found = {query: [*map(with_text, ranking)] for query, ranking in rankings.items()}
    again = DocumentRun(found, run.name, run)
    again.retrieval = run.retrieval
    return again


def read(
    source: Any,
    role: Role | None = None,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    shared: Dataset | bool = False,
    notes: Notes | None = None,
) -> Dataset:
    """What an input holds: a run, gold, or samples with both.

    `shared` says whether the mapping is about another input, too; or is that input.
    """
    if isinstance(source, Dataset):
        return source
    told = mapping_of(role, mapping) if mapping else {}
    optional = _shared_names(told, shared) if told and shared else frozenset[str]()
    if not isinstance(source, str | os.PathLike):
        where = Source(role or "samples", role or "samples", told, optional=optional)
        return _read_object(source, where)
    chosen, where = open_source(source, notes or Notes(), role, told, format, optional)
    with _reading(where):
        loaded = chosen.read(where)
    return _with_all_names(loaded, where) if where.mapping else loaded


def mapping_of(role: str | None, mapping: Mapping[str, str]) -> dict[str, str]:
    """The part of a mapping that is about a file of that role."""
    others = {"run": _OF_GOLD, "gold": _OF_RUNS}.get(role or "", frozenset())
    return {ours: theirs for ours, theirs in mapping.items() if ours not in others}


def _shared_names(mapping: Mapping[str, str], other: object) -> frozenset[str]:
    """Our names in a mapping that may be about the other one of run and gold only."""
    if isinstance(other, Dataset):
        names = other.mapping.values()
        return frozenset(ours for ours, theirs in mapping.items() if theirs in names)
    return frozenset(mapping.keys() - _OF_RUNS - _OF_GOLD)


def read_by(
    source: Any,
    column: str,
    role: Role | None = None,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    shared: Dataset | bool = False,
) -> dict[str, Dataset]:
    """A table or list of records split by a column, such as the system's name."""
    told = mapping_of(role, mapping or {})
    optional = _shared_names(told, shared) if shared else frozenset[str]()
    if isinstance(source, str | os.PathLike):
        chosen, where = open_source(source, Notes(), role, told, format, optional)
        with _reading(where):
            parts = chosen.read_by(where, column)
        for value, part in parts.items():
            if part.run is not None:
                # What goes wrong with one of the systems says with which.
                part.run.name = f"{part.run.name}:{value}"
        return parts
    where = Source(role or "", role, told)
    if hasattr(source, "mapInArrow"):
        split: dict[str, Dataset] = FRAMES["split"](source, column, where)
        return split
    return interpret_by(_listed(source, where), column, where, "objects")


def _listed(source: Any, where: Source) -> Any:
    """Python objects as lists, mappings or records of a frame."""
    source = _one_split(source, where)
    return FRAMES["records"](source) if is_frame(source) else with_lists(source)


def _one_split(source: Any, where: Source) -> Any:
    """One split of a data set of Hugging Face; or what it is."""
    splits = isinstance(source, Mapping) and source and source.values()
    if splits and all(hasattr(part, HUGGING) for part in splits):
        return one_part(source, where)
    return source


def _read_object(source: Any, where: Source) -> Dataset:
    role, loaded = where.role, None
    source = _one_split(source, where)
    if isinstance(source, dict | list | tuple):
        plain = {"run": plain_run, "gold": plain_gold}.get(role or "")
        loaded = plain and plain(source)
    elif isinstance(source, Gold):
        return Dataset(gold=source, notices=source.notices)
    elif isinstance(source, Run):
        return Dataset(run=source, notices=source.retrieval.notices)
    elif is_frame(source):
        frame: Dataset = FRAMES["load"](source, where)
        return frame
    if loaded is None:
        listed = as_record(with_lists(body_of(source)))
        if not isinstance(listed, Mapping | Sequence) or isinstance(listed, bytes):
            asks = "; ask a retriever with evaluate(retriever=..., queries=...)"
            raise DataError(
                f"cannot read {role} from {type(source).__name__}",
                hint="pass a mapping, a list, a path or a DataFrame"
                + (asks if role != "gold" else ""),
            )
        with gc_paused():
            loaded = interpret(listed, where, "objects")
    return _with_all_names(loaded, where) if where.mapping else loaded


def _with_all_names(loaded: Dataset, where: Source) -> Dataset:
    """Refuse names for an input that has no fields, such as a TREC file."""
    if loaded.mapping or where.notes.problems:
        return loaded
    for ours, theirs in where.mapping.items():
        if ours not in where.optional:
            problem = f"there is no field {theirs!r}; it has no fields with names"
            raise where.lacks(theirs, problem)
    return loaded


@contextmanager
def _reading(where: Source) -> Iterator[None]:
    """Whatever goes wrong while reading names the file."""
    try:
        with gc_paused():
            yield
    except DataError as error:
        if error.path is not None:
            raise
        raise placed(error, path=where.path) from None
    except OSError as error:
        raise where.error(f"cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise where.error("does not fit into memory") from None


@dataclass(frozen=True, eq=False)
class Checked:
    """What is wrong with a file, and whether more is; or else what it holds."""

    problems: Sequence[DataError] = ()
    more: bool = False
    notices: tuple[Notice, ...] = ()
    loaded: Dataset | None = None


def validate(
    source: str | os.PathLike[str],
    role: Role | None = None,
    *,
    mapping: Mapping[str, str] | None = None,
    shared: Dataset | bool = False,
    format: str | None = None,
    limit: int = 20,
) -> Checked:
    """Read a file to its end and collect what is wrong with it."""
    notes = Notes(keep=limit)
    try:
        loaded = read(
            source, role, mapping=mapping, format=format, shared=shared, notes=notes
        )
        if loaded.run is not None:
            # Some runs are read only when scored: look for nothing, but at every row.
            loaded.run.locate({}, judged=False, policies=Policies())
    except DataError as error:
        # A pipe cannot be read twice.
        again = error.line is not None and os.path.isfile(source)  # noqa: PTH113
        if again and not notes.problems:
            # All lines of a file that is read up to its first problem.
            chosen, where = open_source(source, notes, None, None, format)
            with suppress(DataError):
                chosen.check(where)
                return Checked(notes.problems or [error])
            return Checked(notes.problems or [error], more=True)
        more = len(notes.problems) >= limit
        problems = notes.problems if more else [*notes.problems, error]
        return Checked(problems, more=more, notices=notes.notices())
    if notes.problems:
        return Checked(notes.problems, notices=notes.notices())
    return Checked(notices=loaded.notices, loaded=loaded)
