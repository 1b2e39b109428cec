"""Public test collections: BEIR folders, and ids of the library ir_datasets.

`ir_datasets:beir/scifact/test` stands for its qrels, queries or documents, by what is
asked for. The library fetches what it has not got yet.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from karat.data.gold import Gold
from karat.data.queries import Dataset, Query
from karat.errors import DataError, FormatError, MissingExtraError, UsageError
from karat.reading.format import IR_DATASETS as PREFIX, Format, open_source
from karat.reading.source import Records, Source

_TABLE = re.compile(r"\.(tsv|jsonl|parquet)(\.gz|\.zst|\.bz2)?$")
_HEADER = b"query-id\tcorpus-id\tscore\n"


class Beir(Format):
    """A data set in the layout of BEIR; the gold of its test split is read.

    Another split is read by naming its file, such as `qrels/dev.tsv`.
    """

    name = "beir"

    def sniff_folder(self, folder: Path) -> bool:
        """There are qrels in it, or a corpus beside what a hub calls the default."""
        qrels = (folder / "qrels").is_dir() or _part(folder, "qrels") is not None
        return bool(_splits(folder)) and (qrels or _part(folder, "corpus") is not None)

    def records(self, source: Source) -> Records:
        """The documents of its corpus."""
        path = _part(Path(source.path), "corpus")
        if path is None or source.role != "corpus":
            raise source.error("has no corpus.jsonl to read")
        chosen, where = open_source(path, source.notes, "corpus", source.mapping, None)
        records: Records = chosen.records(replace(where, ids=source.ids))
        return records

    def read(self, source: Source) -> Dataset:
        """The gold, with the texts of its queries."""
        if source.role in {"run", "samples"}:
            raise source.mistaken(
                "is a BEIR data set, which holds gold",
                f"karat evaluate RUN --gold {source.path}",
            )
        folder = Path(source.path)
        splits = _splits(folder)
        path = splits.get("test") or (*splits.values(), None)[0]
        if path is None or (len(splits) > 1 and "test" not in splits):
            names = ", ".join(sorted(splits)) or "none"
            raise source.error(
                f"has no qrels/test.tsv; splits found: {names}", hint="name the file"
            )
        chosen, where = open_source(path, source.notes, "gold", source.mapping, None)
        loaded = chosen.read(where)
        gold = loaded.gold or Gold()
        gold = Gold(gold.documents, name=folder.resolve().name)
        queries = {}
        if (path := _part(folder, "queries")) is not None:
            chosen, where = open_source(path, source.notes, "queries", {}, None)
            every = chosen.read(where).queries
            queries = {q: fact for q, fact in every.items() if q in gold.documents}
        return Dataset(None, gold, queries, self.name, loaded.mapping, loaded.notices)

    def write_gold(self, gold: Gold, stream: BinaryIO) -> None:
        """The table of one split, with whole grades."""
        stream.write(_HEADER)
        for query, labels in gold.documents.items():
            for document, grade in labels.items():
                if grade != int(grade):
                    raise FormatError(
                        f"beir holds whole grades, not {grade}", query=query
                    )
                if "\t" in query + document or "\n" in query + document:
                    raise FormatError(
                        "beir holds no ids with tabs or line ends", query=query
                    )
                stream.write(f"{query}\t{document}\t{int(grade)}\n".encode())


def _splits(folder: Path) -> dict[str, Path]:
    """The tables of qrels, by the name of their split; also as they lie on a hub."""
    tables = (
        path for name in ("qrels", "default") for path in folder.glob(f"{name}/*")
    )
    splits = {
        re.split(r"[.-]", path.name)[0]: path
        for path in sorted(tables)
        if path.is_file() and _TABLE.search(path.name)
    }
    alone = _part(folder, "qrels")
    return splits or ({} if alone is None else {"test": alone})


def _part(folder: Path, name: str) -> Path | None:
    """The file of a part, compressed or not, or the folder of its Parquet files."""
    files = sorted(folder.glob(f"{name}.*"))
    files = [file for file in files if _TABLE.search(file.name)]
    inside = sorted((folder / name).glob("*.parquet"))
    return next(iter(files), folder / name if inside else None)


class IrDatasets(Format):
    """A collection of the library ir_datasets, such as `ir_datasets:antique/test`."""

    name = "ir_datasets"

    def records(self, source: Source) -> Records:
        """Its documents; those of some ids where told."""
        documents = _items(source, "docs")
        if source.ids is not None:
            documents = _load(source).docs_store().get_many_iter([*source.ids])
        for line, document in enumerate(documents, 1):
            yield line, {"_id": document.doc_id, "text": document.default_text()}

    def read(self, source: Source) -> Dataset:
        """Its qrels with the texts of its queries, or these alone."""
        if source.role in {"run", "samples"}:
            raise UsageError(f"{source.path} is gold, queries or a corpus, and no run")
        queries = {}
        if source.role == "queries" or _load(source).has_queries():
            for query in _items(source, "queries"):
                queries[query.query_id] = Query(query.query_id, query.default_text())
        if source.role == "queries":
            return Dataset(queries=queries, format=self.name)
        labels: dict[str, dict[str, float]] = {}
        for label in _items(source, "qrels"):
            labels.setdefault(label.query_id, {})[label.doc_id] = float(label.relevance)
        gold = Gold(labels, name=source.path.removeprefix(PREFIX))
        return Dataset(gold=gold, queries=queries, format=self.name)


def _items(source: Source, part: str) -> Iterator[Any]:
    collection = _load(source)
    names = ("docs", "queries", "qrels")
    parts = [name for name in names if getattr(collection, f"has_{name}")()]
    if part not in parts:
        raise source.error(f"has no {part}, only {', '.join(parts) or 'nothing'}")
    try:
        yield from getattr(collection, f"{part}_iter")()
    except OSError as error:
        raise source.error(f"cannot be fetched: {error}") from None


def _load(source: Source) -> Any:
    try:
        import ir_datasets  # noqa: PLC0415  slow to import, and seldom needed
    except ImportError:
        raise MissingExtraError(PREFIX, "ir_datasets") from None
    name = source.path.removeprefix(PREFIX)
    try:
        return ir_datasets.load(name)
    except KeyError:
        raise DataError(f"ir_datasets knows no collection {name!r}") from None


BEIR = Beir()
IR_DATASETS = IrDatasets()
