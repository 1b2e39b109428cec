"""Read runs, gold, samples and corpora from files and from Python objects."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

from karat.data.gold import Gold
from karat.data.memory_runs import DocumentRun
from karat.data.policies import Policies
from karat.data.queries import Corpus, Dataset, Query
from karat.data.runs import Document, Run
from karat.errors import DataError, FormatError
from karat.reading.files import gc_paused
from karat.reading.format import open_source
from karat.reading.meaning.corpus import bare_id, gather_texts
from karat.reading.meaning.mapping import mapping_of, shared_names
from karat.reading.meaning.shapes import (
    CHROMA,
    FRAMES,
    chroma_rankings,
    interpret,
    interpret_by,
    is_frame,
    plain_gold,
    plain_run,
    with_lists,
)
from karat.reading.meaning.values import as_records, looks_like_text
from karat.reading.source import Notes, Role, Source, placed

T = TypeVar("T")


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
    if by is None:
        parts = {"": read(source, "run", mapping=mapping, format=format)}
    else:
        parts = read_by(source, by, "run", mapping=mapping, format=format)
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
    told = dict(mapping or {})
    if isinstance(source, str | os.PathLike):
        found, where = open_source(source, Notes(), "corpus", told, format)
        where = replace(where, ids=ids)
        return _guarded(lambda: gather_texts(found.records(where), where, ids), where)
    where = Source("corpus", "corpus", told)
    value = FRAMES["records"](source) if is_frame(source) else with_lists(source)
    return gather_texts(value, where, ids)


def read_queries(source: Any) -> Mapping[str, Query]:
    """What is known of queries: texts by id or in a list, records, or a file.

    Example:
        >>> read_queries({"q1": "When do shops open?"})["q1"].text
        'When do shops open?'
        >>> [*read_queries(["When do shops open?", "And on Sundays?"])]
        ['0', '1']
    """
    if isinstance(source, Mapping):
        return {
            str(name): fact
            if isinstance(fact, Query)
            else Query(str(name), None if fact is None else str(fact))
            for name, fact in source.items()
        }
    if isinstance(source, str | os.PathLike):
        queries = read(source, "queries").queries
        if not queries:
            raise FormatError("holds no texts or tags of queries", path=source)
        return queries
    listed = as_records(with_lists(source))
    if isinstance(listed, list | tuple) and all(isinstance(q, str) for q in listed):
        return {str(n): Query(str(n), text) for n, text in enumerate(listed)}
    if not isinstance(listed, list | tuple) or not listed:
        raise DataError(
            f"cannot read queries from {type(source).__name__}",
            hint="pass texts by id, a list of texts or records, or a path",
        )
    return interpret(listed, Source("queries", "queries"), "objects").queries


def texts_for(run: Run, gold: Gold, corpus: Any) -> Mapping[str, str]:
    """The texts of a corpus that a run and its gold need, read once."""
    if isinstance(corpus, Mapping):
        return corpus
    retrieved = (d for _, ranking in run.rankings(Policies()) for d in ranking)
    names = {*map(bare_id, retrieved)} - {None}
    wanted = {name for row in gold.documents.values() for name in row}
    wanted |= {item.text for row in gold.passages.values() for item in row}
    return read_corpus(corpus, ids={*map(str, names), *wanted})


def with_texts(run: Run, corpus: Any) -> DocumentRun:
    """The run with the texts of its documents, where it has only their ids.

    Example:
        >>> run = with_texts(read_run({"q": ["d1"]}), {"d1": "Rye is a grain."})
        >>> [d.text for _, ranking in run.rankings(Policies()) for d in ranking]
        ['Rye is a grain.']
    """
    rankings = dict(run.rankings(Policies()))
    corpus = texts_for(run, Gold(), corpus)
    # Where the corpus has any of the strings that were retrieved, they are ids.
    are_ids = any(bare_id(d) in corpus for r in rankings.values() for d in r)
    some = [d.id for r in rankings.values() for d in r if d.id and d.text is None]
    are_texts = not are_ids and looks_like_text(some)

    def with_text(d: Document) -> Document:
        name = bare_id(d)
        if name is None or (d.id is None and not are_ids):
            return d
        if are_texts:
            return replace(d, id=None, text=d.id)
        return replace(d, id=name, text=corpus.get(name))

    return DocumentRun(
        {query: [*map(with_text, documents)] for query, documents in rankings.items()},
        run.name,
    )


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

    Gzip, bzip2 and zstd are unpacked on the way.

    Args:
        source: a path, `-` for standard input, `ir_datasets:ID`, or any object.
        role: what it is taken for where its content could be either.
        mapping: our field name -> theirs, where the inference should not decide.
        format: the name of a file's format, where its extension should not decide.
        shared: whether the mapping is about another input, too; or that input.
        notes: where problems and notices of a file go, if the caller wants them.
    """
    if isinstance(source, Dataset):
        return source
    told = mapping_of(role, mapping) if mapping else {}
    optional = shared_names(told, shared) if told and shared else frozenset[str]()
    if isinstance(source, str | os.PathLike):
        found, where = open_source(
            source, notes or Notes(), role, told, format, optional
        )
        loaded = _guarded(lambda: found.read(where), where)
        _refuse_names(loaded, where)
        return loaded
    return _read_object(source, role or "samples", told, optional)


def read_by(
    source: Any,
    column: str,
    role: Role | None = None,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    shared: Dataset | bool = False,
) -> dict[str, Dataset]:
    """A table or list of records split by a column, such as the system's name.

    Args:
        source: a path, `-` for standard input, or a table or list of records.
        column: the input's name of the column.
        role: what each part is taken for where its content could be either.
        mapping: as `read` takes it.
        format: the same.
        shared: the same.
    """
    told = mapping_of(role, mapping or {})
    optional = shared_names(told, shared) if shared else frozenset[str]()
    if isinstance(source, str | os.PathLike):
        found, where = open_source(source, Notes(), role, told, format, optional)
        parts = _guarded(lambda: found.read_by(where, column), where)
        for value, part in parts.items():
            if part.run is not None:
                # What goes wrong with one of the systems says with which.
                part.run.name = f"{part.run.name}:{value}"
        return parts
    if hasattr(source, "mapInArrow"):
        split: dict[str, Dataset] = FRAMES["split"](source, column, role, told)
        return split
    value = FRAMES["records"](source) if is_frame(source) else with_lists(source)
    return interpret_by(value, column, Source(role or "", role, told), "objects")


def _read_object(
    source: Any, role: Role, mapping: Mapping[str, str], optional: frozenset[str]
) -> Dataset:
    if not isinstance(source, dict | list):
        if isinstance(source, Gold):
            return Dataset(gold=source, notices=source.notices)
        if isinstance(source, Run):
            return Dataset(run=source, notices=source.retrieval.notices)
        if is_frame(source):
            frame: Dataset = FRAMES["load"](
                source, role=role, mapping=mapping, name=role, optional=optional
            )
            return frame
        source = source if isinstance(source, tuple) else with_lists(source)
    elif role == "run" and isinstance(source, dict) and source.keys() <= CHROMA.keys():
        source = chroma_rankings(source) or source
    plain = {"run": plain_run, "gold": plain_gold}.get(role)
    found = None if plain is None else plain(source)
    if found is not None and not mapping:
        return found
    where = Source(role, role, mapping, optional=optional)
    if found is None:
        if not isinstance(source, Mapping | Sequence) or isinstance(source, bytes):
            asks = "; ask a retriever with evaluate(retriever=..., queries=...)"
            raise DataError(
                f"cannot read {role} from {type(source).__name__}",
                hint="pass a mapping, a list, a path or a DataFrame"
                + (asks if role != "gold" else ""),
            )
        with gc_paused():
            found = interpret(with_lists(source), where, "objects")
    _refuse_names(found, where)
    return found


def _refuse_names(loaded: Dataset, where: Source) -> None:
    """Refuse names for an input that has no fields, such as a TREC file."""
    lost = [t for o, t in where.mapping.items() if o not in where.optional]
    if lost and not loaded.mapping and not where.notes.problems:
        problem = f"there is no field {lost[0]!r}; it has no fields with names"
        raise where.lacks(lost[0], problem)


def _guarded(read: Callable[[], T], where: Source) -> T:
    """Whatever goes wrong while reading names the file."""
    try:
        with gc_paused():
            return read()
    except DataError as error:
        if error.path is not None:
            raise
        raise placed(error, path=where.path) from None
    except OSError as error:
        raise where.error(f"cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise where.error("does not fit into memory") from None
