"""Collections of ir_datasets: qrels, queries and documents by one id."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

import karat
from karat.extend import DataError, MissingExtraError, UsageError
from karat.reading.readers import read_queries

NAME = "ir_datasets:tests/rye"


class Record(NamedTuple):
    query_id: str = ""
    doc_id: str = ""
    relevance: int = 0
    text: str = ""

    def default_text(self) -> str:
        return self.text


class Rye:
    """A collection as the library shows one."""

    docs = (Record(doc_id="d1", text="Rye is a grain."), Record(doc_id="d2", text="x"))
    queries = (Record("q1", text="What is rye?"), Record("q2", text="And oats?"))
    qrels = (Record("q1", "d1", 2), Record("q1", "d2", 0), Record("q2", "d2", 1))

    def __init__(self, *parts: str) -> None:
        self.parts = parts

    def __getattr__(self, name: str) -> Any:
        part, _, verb = name.rpartition("_")
        if verb == "iter" and "broken" in self.parts:
            raise ConnectionError("no network")
        if verb == "iter":
            return lambda: iter(getattr(self, part))
        return lambda: verb in self.parts

    def docs_store(self) -> Any:
        return SimpleNamespace(
            get_many_iter=lambda ids: (d for d in self.docs if d.doc_id in ids)
        )


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Rye]]:
    found = {"tests/rye": Rye("docs", "queries", "qrels"), "tests/bare": Rye("docs")}
    found["tests/broken"] = Rye("qrels", "broken")
    module = ModuleType("ir_datasets")
    module.load = found.__getitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ir_datasets", module)
    return found  # type: ignore[return-value]


@pytest.mark.usefixtures("library")
def test_an_id_stands_for_gold_queries_and_corpus() -> None:
    gold = karat.read_gold(NAME)
    assert gold.documents == {"q1": {"d1": 2.0, "d2": 0.0}, "q2": {"d2": 1.0}}
    assert gold.name == "tests/rye"
    assert {q: fact.text for q, fact in read_queries(NAME).items()} == {
        "q1": "What is rye?",
        "q2": "And oats?",
    }
    assert dict(karat.read_corpus(NAME)) == {"d1": "Rye is a grain.", "d2": "x"}
    assert dict(karat.read_corpus(NAME, ids=["d2"])) == {"d2": "x"}
    run = {"q1": ["d2", "d1"], "q2": ["d2"]}
    result = karat.evaluate(run, gold=NAME, corpus=NAME, metrics=["rr", "ndcg@10"])
    assert result.means["rr"] == 0.75
    assert result.facts["q1"].text == "What is rye?"


@pytest.mark.usefixtures("library")
def test_what_cannot_be_had_is_said() -> None:
    with pytest.raises(DataError, match="knows no collection 'tests/ry'"):
        karat.read_gold("ir_datasets:tests/ry")
    with pytest.raises(
        DataError, match="ir_datasets:tests/bare: has no qrels, only do"
    ):
        karat.read_gold("ir_datasets:tests/bare")
    with pytest.raises(DataError, match="tests/broken: cannot be fetched: no network"):
        karat.read_gold("ir_datasets:tests/broken")
    with pytest.raises(UsageError, match="is gold, queries or a corpus, and no run"):
        karat.evaluate(NAME, gold=NAME)


def test_the_library_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtraError, match=r"karat\[ir_datasets\]"):
        karat.read_gold(NAME)


def test_the_library_itself_is_read(tmp_path: Path) -> None:
    """A collection of files of our own, registered as the library registers its own."""
    library = pytest.importorskip("ir_datasets")
    formats = pytest.importorskip("ir_datasets.formats")
    util = pytest.importorskip("ir_datasets.util")
    (tmp_path / "docs.tsv").write_text("d1\tRye is a grain.\nd2\tOats.\n")
    (tmp_path / "queries.tsv").write_text("q1\tWhat is rye?\n")
    (tmp_path / "qrels").write_text("q1 0 d1 1\nq1 0 d2 0\n")
    name = "karat-tests-rye"

    def local(file: str) -> Any:
        return util.LocalDownload(tmp_path / file)

    if name not in library.registry:
        library.registry.register(
            name,
            library.Dataset(
                formats.TsvDocs(local("docs.tsv"), namespace=name, lang="en"),
                formats.TsvQueries(local("queries.tsv"), lang="en"),
                formats.TrecQrels(local("qrels"), {0: "no", 1: "yes"}),
            ),
        )
    source = f"ir_datasets:{name}"
    run = {"q1": ["d2", "d1"]}
    result = karat.evaluate(run, gold=source, queries=source, metrics=["rr"])
    assert (result.means["rr"], result.facts["q1"].text) == (0.5, "What is rye?")
    assert karat.read_corpus(source)["d1"] == "Rye is a grain."
