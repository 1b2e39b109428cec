"""Where a retriever is called, how many calls there are at once, what is kept."""
# ruff: noqa: ARG001, ARG002 (most retrievers here do not look at the query)

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.extend import ParameterError, Settings, UsageError
from tests.retrieving.searches import CORPUS, QUERIES, ids, kinds, search


class Remembers:
    """Finds by what it keeps on itself, as many retrievers do."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.threads: set[int] = set()

    def search(self, query: str, k: int) -> list[str]:
        self.threads.add(threading.get_ident())
        self.words = query.split()
        time.sleep(0.002)
        return [f"d{self.words[-1]}"]


MANY = {f"q{n}": f"question {n}" for n in range(40)}
TRUTH = {f"q{n}": [f"d{n}"] for n in range(40)}


def test_a_plain_function_is_asked_one_query_at_a_time_in_the_callers_thread() -> None:
    retriever = Remembers()
    result = karat.evaluate(
        retriever=retriever.search, queries=MANY, gold=TRUTH, metrics="rr"
    )
    assert result.means == {"rr": 1.0}
    assert retriever.threads == {threading.get_ident()}

    async def main() -> tuple[float, set[int], int]:
        own = Remembers()
        result = await karat.aevaluate(
            retriever=own.search, queries=MANY, gold=TRUTH, metrics="rr"
        )
        return result.means["rr"], own.threads, threading.get_ident()

    mean, threads, here = asyncio.run(main())
    assert mean == 1.0
    assert threads == {here}


@pytest.mark.parametrize("concurrency", [None, 1])
def test_a_connection_of_this_thread_can_be_asked(concurrency: int | None) -> None:
    index = sqlite3.connect(":memory:")
    index.execute("create table texts (id text, body text)")
    index.execute("insert into texts values ('d7', 'question 7')")

    def search(query: str) -> list[str]:
        return [name for (name,) in index.execute("select id from texts")]

    async def main() -> karat.Run:
        return await karat.aretrieve(search, MANY, concurrency=concurrency)

    async def notebook() -> karat.Run:
        return karat.retrieve(search, MANY, concurrency=concurrency)

    runs = [karat.retrieve(search, MANY, concurrency=concurrency)]
    runs += [asyncio.run(main()), asyncio.run(notebook())]
    assert [run.failures for run in runs] == [{}] * 3
    index.close()


def test_a_plain_function_may_run_a_loop_of_its_own() -> None:
    async def find(query: str) -> list[str]:
        return CORPUS

    run = karat.retrieve(lambda query: asyncio.run(find(query)), QUERIES)
    assert ids(run)["q0"] == CORPUS


def test_an_interrupt_reaches_the_caller() -> None:
    def interrupted(query: str) -> list[str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        karat.retrieve(interrupted, QUERIES)


@pytest.mark.parametrize(
    ("concurrency", "plain", "later"),
    [(None, 1, 8), (1, 1, 1), (3, 3, 3)],
)
def test_calls_at_once_are_asked_for_or_natural_and_are_shown(
    concurrency: int | None, plain: int, later: int, tmp_path: Path
) -> None:
    under_way: list[int] = [0]
    most: list[int] = []

    def count(query: str) -> list[str]:
        under_way[0] += 1
        most.append(under_way[0])
        time.sleep(0.01)
        under_way[0] -= 1
        return CORPUS

    async def count_later(query: str) -> list[str]:
        under_way[0] += 1
        most.append(under_way[0])
        await asyncio.sleep(0.01)
        under_way[0] -= 1
        return CORPUS

    retrievers: list[tuple[Any, int]] = [(count, plain), (count_later, later)]
    for retriever, expected in retrievers:
        most.clear()
        result = karat.evaluate(
            retriever=retriever,
            queries=MANY,
            gold=TRUTH,
            metrics="rr",
            force=True,
            concurrency=concurrency,
        )
        assert max(most) == expected
        assert result.latency is not None
        assert result.latency.concurrency == expected
        said = "one call at a time" if expected == 1 else f"{expected} calls at once"
        assert said in str(result)
        assert said in str(result.latency)
        result.save(tmp_path / "r.json")
        assert karat.load(tmp_path / "r.json").latency == result.latency


@pytest.mark.parametrize("concurrency", [0, -1, 2.5, "8", True])
def test_concurrency_is_a_positive_integer(concurrency: Any) -> None:
    with pytest.raises(ParameterError, match="concurrency must be 1 or more"):
        karat.retrieve(search, QUERIES, concurrency=concurrency)


def test_answers_with_a_version_are_kept_with_their_times(tmp_path: Path) -> None:
    calls: list[str] = []

    def note(query: str, k: int) -> list[str]:
        calls.append(query)
        return CORPUS[:k]

    keep: dict[str, Any] = {"cache": tmp_path / "c.sqlite", "name": "dense"}
    first = karat.retrieve(note, QUERIES, k=2, version="1", **keep)
    again = karat.retrieve(note, QUERIES, k=2, version="1", **keep)
    assert len(calls) == len(QUERIES)
    assert ids(again) == ids(first)
    assert first.latency is not None
    assert again.latency is not None
    assert again.latency.milliseconds == first.latency.milliseconds
    assert set(again.latency.earlier) == set(QUERIES)
    assert "cached" in kinds(again)
    assert "6 timed in an earlier run" in str(again.latency)
    result = karat.evaluate(again, gold={q: ["d2"] for q in QUERIES}, metrics="rr")
    assert "cached: 6 answers are from an earlier call under version '1'" in str(result)
    assert "cached" in {notice.kind for notice in result.notices}
    # Each of these decides what comes back, and so is asked anew.
    for number, (k, version) in enumerate(((3, "1"), (2, "2")), 2):
        karat.retrieve(note, QUERIES, k=k, version=version, **keep)
        assert len(calls) == number * len(QUERIES)


def test_a_run_that_was_stopped_goes_on_and_says_what_is_old(tmp_path: Path) -> None:
    calls: list[str] = []

    def stops(query: str) -> list[str]:
        calls.append(query)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return CORPUS

    keep: dict[str, Any] = {"cache": tmp_path / "c.sqlite", "version": "1"}
    with pytest.raises(KeyboardInterrupt):
        karat.retrieve(stops, QUERIES, **keep)
    run = karat.retrieve(stops, QUERIES, **keep)
    assert len(calls) == len(QUERIES) + 1
    assert [n.count for n in run.retrieval.notices if n.kind == "cached"] == [3]


def test_a_class_is_not_asked() -> None:
    why = "Remembers is a class; pass an instance of it: Remembers"
    with pytest.raises(UsageError, match=why):
        karat.retrieve(Remembers, QUERIES)


@pytest.mark.parametrize(
    "methods",
    [
        ["__call__", "encode", "similarity"],
        ["encode"],
        ["embed_query", "embed_documents"],
        ["chat"],
        ["__call__", "invoke", "get_num_tokens"],
    ],
)
def test_a_model_is_told_from_what_searches_with_it(methods: list[str]) -> None:
    def method(*_: Any) -> str:
        return "an answer"

    model = type("Encoder", (), dict.fromkeys(methods, method))
    with pytest.raises(UsageError, match="Encoder is a model, and searches nothing"):
        karat.retrieve(model(), QUERIES)


def test_a_retriever_may_encode_its_queries_itself() -> None:
    class Index:
        def encode(self, query: str) -> str:
            return query.lower()

        def __call__(self, query: str) -> list[str]:
            return [self.encode(query)]

    assert not karat.retrieve(Index(), {"q1": "RYE"}).failures


def test_two_retrievers_of_one_class_need_a_name_each(tmp_path: Path) -> None:
    class Index:
        def __init__(self, document: str) -> None:
            self.document = document

        def search(self, query: str) -> list[str]:
            return [self.document]

    def make(document: str) -> Any:
        return lambda _: [document]

    keep: dict[str, Any] = {"cache": tmp_path / "c.sqlite", "version": "1"}
    pairs = [[Index("d1").search, Index("d2").search], [make("d1"), make("d2")]]
    for first, second in pairs:
        for _ in range(2):
            assert karat.retrieve(first, ["rye"], **keep).sample_ids() == ["d1"]
        for _ in range(2):
            with pytest.raises(UsageError, match="name= tells the two apart"):
                karat.retrieve(second, ["rye"], **keep)
        run = karat.retrieve(second, ["rye"], name="second", **keep)
        assert run.sample_ids() == ["d2"]


def test_options_are_part_of_what_answers_are_kept_under(tmp_path: Path) -> None:
    calls: list[str] = []

    def note(query: str, lang: str) -> list[str]:
        calls.append(lang)
        return CORPUS

    keep: dict[str, Any] = {"cache": tmp_path / "c.sqlite", "version": "1"}
    for lang in ("en", "de", "en"):
        karat.retrieve(note, ["rye"], options={"lang": lang}, **keep)
    assert calls == ["en", "de"]


def test_without_a_version_nothing_is_kept_and_a_name_only_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    index = {"question": ["d1"]}

    def find(query: str) -> list[str]:
        return index["question"]

    for name in (None, "prod"):
        for best, expected in (("d1", 1.0), ("d2", 0.0)):
            index["question"] = [best, "d9"]
            result = karat.evaluate(
                retriever=find,
                queries={"q1": "question"},
                gold={"q1": ["d1"]},
                metrics="rr",
                name=name,
                force=True,
            )
            assert result.means == {"rr": expected}
            assert result.run == (name or "find")
    assert not (tmp_path / ".karat").exists()
    with pytest.raises(UsageError, match=r"offline .* version= \(--index-version\)"):
        karat.retrieve(find, QUERIES, settings=Settings(offline=True))


def test_a_changed_index_is_asked_by_another_process(tmp_path: Path) -> None:
    script = """
import sys, karat
def search(query):
    return [sys.argv[1]]
version = sys.argv[2] or None
result = karat.evaluate(
    retriever=search, queries={"q": "rye"}, gold={"q": ["d1"]}, metrics="rr",
    name="prod", version=version, force=True,
)
print(result.means["rr"], "cached" in {n.kind for n in result.notices})
"""
    said = [
        subprocess.run(
            [sys.executable, "-c", script, document, version],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for version in ("", "1")
        for document in ("d1", "d2")
    ]
    assert said == ["1.0 False", "0.0 False", "1.0 False", "1.0 True"]
