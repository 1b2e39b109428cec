"""Writing what was loaded in another format; nothing is dropped without a word."""

import gzip
import io
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from karat.data.gold import Gold
from karat.data.policies import Policies
from karat.data.queries import Dataset
from karat.data.runs import Notice, Run
from karat.errors import FormatError, KaratError
from karat.reading.format import Format, get_format, name_format
from karat.reading.streams import Role
from karat.writing import write_file


def write(
    loaded: Dataset,
    target: str | os.PathLike[str] | BinaryIO,
    format: str | None = None,
    role: Role | None = None,
) -> tuple[Notice, ...]:
    """Write a run, gold, or samples with both.

    Args:
        loaded: what to write.
        target: a path, or a binary stream. A path that ends in `.gz` is compressed.
        format: the name of the format; by default the ending of the path decides.
        role: the part to write, when the format cannot hold all of it.

    Returns:
        What the format had no room for.
    """
    path = os.fspath(target) if isinstance(target, str | os.PathLike) else None
    chosen = get_format(format) if format is not None else name_format(path)
    part = _part(loaded, role)
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


def _part(loaded: Dataset, role: Role | None) -> Dataset:
    """What is to be written: all, or the run or the gold alone."""
    if role == "run":
        loaded = replace(loaded, gold=None)
    elif role == "gold":
        loaded = replace(loaded, run=None)
    if loaded.run is None and loaded.gold is None:
        raise FormatError(f"there is no {role or 'run or gold'} to write")
    return loaded


def _write(chosen: Format, part: Dataset, data: BinaryIO) -> Iterator[Notice]:
    whole = part.run is not None and part.gold is not None
    known = any(q.text or q.k or q.tags or q.metadata for q in part.queries.values())
    if whole or (known and "samples" in chosen.holds):
        if "samples" not in chosen.holds:
            raise FormatError(
                f"{chosen.name} cannot hold run and gold in one file",
                hint="say which to write: --role run or --role gold",
            )
        chosen.write_samples(part, data)
        return
    if known:
        count = len(part.queries)
        yield Notice("dropped", count, f"{chosen.name} holds no query texts or tags")
    if part.run is not None:
        chosen.write_run(part.run, data)
        if "samples" not in chosen.holds:
            yield from _lost_of_run(part.run, chosen)
    elif part.gold is not None:
        if "samples" not in chosen.holds:
            _refuse_texts(part.gold, chosen)
            yield from _lost_of_gold(part.gold, chosen)
        chosen.write_gold(part.gold, data)


def _lost_of_run(run: Run, chosen: Format) -> Iterator[Notice]:
    rankings = [*run.rankings(Policies())]
    texts = sum(d.text is not None for _, ranking in rankings for d in ranking)
    empty = [query for query, ranking in rankings if not ranking]
    if run.failures or run.latency:
        count = len(run.failures) + (0 if run.latency is None else run.latency.n)
        yield Notice("dropped", count, f"{chosen.name} holds no latency or failures")
    if texts:
        yield Notice("dropped", texts, f"{chosen.name} holds no texts of documents")
    if empty:
        text = f"{chosen.name} holds no queries for which nothing was retrieved"
        yield Notice("dropped", len(empty), text, tuple(empty[:3]))


def _lost_of_gold(gold: Gold, chosen: Format) -> Iterator[Notice]:
    if gold.sources and not chosen.holds_sources:
        judged = sum(map(len, gold.sources.values()))
        yield Notice("dropped", judged, f"{chosen.name} does not say who labelled")
    empty = [query for query in gold.queries if not gold.documents.get(query)]
    if empty:
        text = f"{chosen.name} holds no queries without relevant documents"
        yield Notice("dropped", len(empty), text, tuple(empty[:3]))


def _refuse_texts(gold: Gold, chosen: Format) -> None:
    kinds = [kind for kind in gold.kinds() if kind != "documents"]
    if gold.references:
        kinds.append("reference answers")
    if gold.groups:
        kinds.append("groups of alternatives")
    if gold.subtopics and not chosen.holds_sources:
        kinds.append("grades of subtopics")
    if kinds:
        raise FormatError(
            f"{chosen.name} holds relevant ids only; the gold has {', '.join(kinds)}",
            hint="write json, jsonl, yaml or csv",
        )
