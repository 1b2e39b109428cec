"""`evaluate` takes a retriever, and all that `retrieve` takes."""
# ruff: noqa: ARG001, ARG002, ARG005 (most retrievers here do not look at the query)

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.extend import DataError, MismatchError, Settings, UsageError
from karat.retrieving.retrieve import RetrieveOptions
from tests.retrieving.searches import CORPUS, QUERIES, ids, kinds, search


def test_evaluate_takes_a_retriever_and_asks_deep_enough() -> None:
    depths = []

    def note(query: str, k: int) -> list[str]:
        depths.append(k)
        return CORPUS

    gold = {q: ["d2"] for q in QUERIES}
    result = karat.evaluate(retriever=note, queries=QUERIES, gold=gold)
    assert result["rr"].mean == 0.5
    assert {*depths} == {20}
    karat.evaluate(
        retriever=note,
        queries=QUERIES,
        gold=gold,
        metrics=["recall[id]@50"],
    )
    assert depths[-1] == 50
    with pytest.raises(UsageError, match="needs queries="):
        karat.evaluate(retriever=note, gold=gold)
    with pytest.raises(UsageError, match="one too many"):
        karat.evaluate({}, retriever=note, queries=QUERIES, gold=gold)


GOLD = {q: ["d2"] for q in QUERIES}


def live(retriever: Any, **asking: Any) -> karat.Evaluation:
    return karat.evaluate(
        retriever=retriever, queries=QUERIES, gold=GOLD, metrics="rr", **asking
    )


def test_evaluate_hands_on_the_mapping() -> None:
    def nested(query: str) -> dict[str, Any]:
        return {"found": [{"meta": {"uid": name}} for name in CORPUS]}

    mapping = {"retrieved": "found", "document": "meta.uid", "grade": "label"}
    gold = [{"query": q, "document": "d2", "label": 1} for q in QUERIES]
    result = karat.evaluate(
        retriever=nested, queries=QUERIES, gold=gold, metrics="rr", mapping=mapping
    )
    assert result.means == {"rr": 0.5}


def test_evaluate_hands_on_the_concurrency() -> None:
    latency = live(search, concurrency=3).latency
    assert latency is not None
    assert latency.concurrency == 3


def test_evaluate_hands_on_encode() -> None:
    def find(vector: list[int]) -> list[str]:
        return CORPUS[sum(vector) :]

    assert live(find, encode=lambda query: [1]).means == {"rr": 1.0}


def test_evaluate_hands_on_ids() -> None:
    assert live(lambda query: [0, 1], ids=["d1", "d2"]).means == {"rr": 0.5}


def test_evaluate_hands_on_options() -> None:
    def find(query: str, start: int) -> list[str]:
        return CORPUS[start:]

    assert live(find, options={"start": 1}).means == {"rr": 1.0}


def test_evaluate_hands_on_version_and_cache(tmp_path: Path) -> None:
    keep: dict[str, Any] = {"version": "1", "cache": tmp_path / "c.sqlite"}
    latencies = [live(search, **keep).latency for _ in range(2)]
    earlier = [latency.earlier for latency in latencies if latency is not None]
    assert [*map(len, earlier)] == [0, len(QUERIES)]
    fresh = live(search, version="1", cache=None).latency
    assert fresh is not None
    assert not fresh.earlier


def test_evaluate_hands_on_the_output() -> None:
    answer = {"other": {"documents": []}, "found": {"documents": CORPUS}}
    assert live(lambda query: answer, output="found.documents").means == {"rr": 0.5}


def test_evaluate_hands_on_timeout_and_settings() -> None:
    async def hangs(query: str) -> list[str]:
        await asyncio.sleep(60 if query == "question 1" else 0)
        return CORPUS

    once = Settings(max_attempts=1)
    assert live(hangs, timeout=0.1, settings=once)["rr"].failed == 1


def test_aevaluate_hands_on_all_of_it_and_asks_in_the_callers_loop() -> None:
    async def main() -> karat.Evaluation:
        mine = asyncio.get_running_loop()

        async def find(query: str, start: int) -> list[str]:
            assert asyncio.get_running_loop() is mine
            return CORPUS[start:]

        return await karat.aevaluate(
            retriever=find,
            queries=QUERIES,
            gold=GOLD,
            metrics="rr",
            options={"start": 1},
            concurrency=2,
        )

    result = asyncio.run(main())
    assert result.means == {"rr": 1.0}
    assert result.latency is not None
    assert result.latency.concurrency == 2


def test_evaluate_takes_all_that_retrieve_does() -> None:
    own = {"retriever", "queries", "k", "name", "mapping"}
    names = {*inspect.signature(karat.retrieve).parameters} - own
    assert names == {*RetrieveOptions.__annotations__}
    with pytest.raises(UsageError, match="did you mean 'concurrency'"):
        live(search, concurency=3)
    with pytest.raises(UsageError, match="version is about a retriever"):
        karat.evaluate({"q": ["d1"]}, gold={"q": ["d1"]}, version="1")
    with pytest.raises(UsageError, match="needs gold="):
        karat.evaluate(retriever=search, queries=QUERIES)


def test_what_cannot_be_scored_is_not_asked() -> None:
    def never(query: str) -> list[str]:
        raise AssertionError(query)

    with pytest.raises(MismatchError, match=r"no query in common.*'Q0'"):
        karat.evaluate(retriever=never, queries={"Q0": "rye"}, gold=GOLD)
    with pytest.raises(UsageError, match="unknown field 'retreived'; did you mean"):
        live(never, mapping={"retreived": "hits"})
    with pytest.raises(UsageError, match="unknown metric"):
        karat.evaluate(retriever=never, queries=QUERIES, gold=GOLD, metrics="recal")


def test_distances_by_document_are_flagged_as_in_a_run() -> None:
    near = {"d1": 0.1, "d2": 0.5, "d3": 0.9}
    wrong = live(lambda query: near)
    given = karat.evaluate(dict.fromkeys(QUERIES, near), gold=GOLD, metrics="rr")
    orders = [
        [str(n) for n in result.notices if n.kind == "order"]
        for result in (wrong, given)
    ]
    assert orders[0] == orders[1] != []
    right = karat.evaluate(
        retriever=lambda query: near,
        queries=QUERIES,
        gold=GOLD,
        metrics="rr",
        order="ascending",
    )
    assert right.means == {"rr": 0.5}
    assert not kinds(karat.retrieve(lambda query: {"d2": 0.9, "d1": 0.1}, ["a"], 2))


def test_a_retriever_is_asked_for_k_whatever_it_was_built_with() -> None:
    class Fixed:
        """As LangChain's BM25Retriever: what it returns is what it was built with."""

        k = 2

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any: ...

        def invoke(self, query: str) -> list[str]:
            return CORPUS[: self.k]

        async def ainvoke(self, query: str) -> Any: ...

    class Store(Fixed):
        """As the retriever of a vector store, when it took no arguments yet."""

        def __init__(self) -> None:
            self.search_kwargs: dict[str, Any] = {"k": 2, "filter": "x"}

        def invoke(self, query: str) -> list[str]:
            assert self.search_kwargs["filter"] == "x"
            return CORPUS[: self.search_kwargs["k"]]

    for retriever in (Fixed(), Store()):
        assert ids(karat.retrieve(retriever, ["rye"], k=4)) == {"0": CORPUS}
        assert retriever.k == 2
        assert len(retriever.invoke("")) == 2


def test_what_is_no_retriever_or_no_run_is_told_what_to_pass() -> None:
    class Store:
        def as_retriever(self) -> Any: ...

    with pytest.raises(UsageError, match=r"Store is no retriever.*\.as_retriever\(\)"):
        karat.retrieve(Store(), QUERIES)
    for wrong in (search, Store()):
        with pytest.raises(
            DataError, match=r"ask a retriever with evaluate\(retriever="
        ):
            karat.evaluate(wrong, gold=GOLD)


@pytest.mark.parametrize("names", [("documents",), ("documents", "distances"), ()])
def test_an_answer_of_chroma_is_a_run(names: tuple[str, ...]) -> None:
    whole = {
        "documents": [["Rye.", "Oats."], ["Tea.", "Rice."]],
        "distances": [[0.1, 0.2], [0.3, 0.4]],
    }
    chosen = {name: whole[name] for name in names}
    answer = {"ids": [["d1", "d2"], ["d3", "d4"]], "embeddings": None, **chosen}
    result = karat.evaluate(answer, gold=[["d1"], ["d4"]], metrics="rr")
    assert result["rr"].scores.tolist() == [1.0, 0.5]
    with pytest.raises(DataError, match="must be lists of the same length"):
        karat.evaluate({**answer, "documents": [["Rye."]]}, gold=[["d1"], ["d4"]])
