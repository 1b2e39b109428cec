"""What engines, stores and frameworks answer, as far as no library is needed."""
# ruff: noqa: ARG002, ARG005 (recorded answers are the same for every query)

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import karat
from karat.errors import Refused, Transient
from karat.extend import Document, FormatError, UsageError
from karat.retrieving.client import read_answer

Row = namedtuple("Row", ["id", "content", "distance"])  # noqa: PYI024
Results = namedtuple("Results", ["documents", "scores"])  # noqa: PYI024
HITS = [
    {"_id": "d1", "_score": 2.0, "_source": {"text": "One."}},
    {"_id": "d2", "_score": 1.0, "_source": {"title": "no text"}},
]
IDS = ["d0", "d1", "d2"]

ANSWERS: dict[str, Any] = {
    "Elasticsearch": {"timed_out": False, "hits": {"total": {}, "hits": HITS}},
    "Elasticsearch's object": SimpleNamespace(body={"hits": {"hits": HITS}}),
    "_msearch": {"responses": [{"hits": {"hits": HITS}}]},
    "Elasticsearch without sources": {
        "hits": {"hits": [{"_id": f"d{n}", "_source": {}} for n in (1, 2)]}
    },
    "Vespa": {
        "root": {
            "children": [
                {"id": f"id:ns:doc::d{n}", "relevance": 9 - n, "fields": {"text": "t"}}
                for n in (1, 2)
            ]
        }
    },
    "Vespa's object": SimpleNamespace(
        hits=[
            {"id": "index:x/1", "fields": {"documentid": f"id:a:b::d{n}"}}
            for n in (1, 2)
        ]
    ),
    "Chroma": {
        "ids": [["d1", "d2"]],
        "distances": [[0.1, 0.4]],
        "documents": [["One.", "Two."]],
        "metadatas": [[{"lang": "en"}, None]],
        "embeddings": None,
    },
    "Qdrant": SimpleNamespace(
        points=[SimpleNamespace(id=f"d{n}", score=1.0, payload={}) for n in (1, 2)]
    ),
    "Qdrant by REST": {"result": {"points": [{"id": "d1"}, {"id": "d2"}]}},
    "Pinecone": SimpleNamespace(matches=[{"id": "d1", "score": 1}, {"id": "d2"}]),
    "LanceDB": [{"id": "d1", "_distance": 0.1}, {"id": "d2", "_distance": 0.4}],
    "txtai": [("d1", 0.9), ("d2", 0.4)],
    "pairs of NumPy": [("d1", np.float32(0.9)), ("d2", np.float32(0.4))],
    "rows of pgvector": [("d1", "One.", 0.1), ("d2", "Two.", 0.4)],
    "named rows": [Row("d1", "One.", 0.1), Row("d2", "Two.", 0.4)],
    "scores": {"d2": 0.4, "d1": 0.9},
    "a generator": (name for name in ("d1", "d2")),
    "an array": np.array(["d1", "d2"]),
    "a batch of one": [["d1", "d2"]],
    "Haystack": {
        "documents": [SimpleNamespace(id=n, content="t") for n in ("d1", "d2")]
    },
    "LlamaIndex": [SimpleNamespace(node=SimpleNamespace(node_id=n, text="t"), score=1.0)
                   for n in ("d1", "d2")],
    "objects with to_list": SimpleNamespace(to_list=lambda: ["d1", "d2"]),
}  # fmt: skip
PLACES: dict[str, Any] = {
    "FAISS by distance": (np.array([[0.1, 0.4]]), np.array([[1, 2]])),
    "FAISS with too few": (np.array([[0.9, 0.4, -1]]), np.array([[1, 2, -1]])),
    "bm25s": Results(np.array([[1, 2]]), np.array([[0.9, 0.4]])),
    "places": [1, 2],
}


def names(found: list[Document | str]) -> list[str | None]:
    return [d if isinstance(d, str) else d.id for d in found]


@pytest.mark.parametrize("who", ANSWERS)
def test_an_answer_is_read(who: str) -> None:
    assert names(read_answer(ANSWERS[who], {})) == ["d1", "d2"]


@pytest.mark.parametrize("who", sorted({*ANSWERS} - {"a generator", "scores"}))
def test_an_answer_is_a_ranking_wherever_it_stands(who: str) -> None:
    answer, relevant = ANSWERS[who], ["d2"]
    sample = {"id": "q1", "retrieved": answer}
    for run, gold in (
        ({"q1": answer}, {"q1": relevant}),
        ([sample], {"q1": relevant}),
        ([{**sample, "relevant": relevant}], None),
    ):
        assert karat.evaluate(run, gold=gold, metrics=["rr"]).means == {"rr": 0.5}


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"timed_out": True, "hits": {"hits": HITS}}, "a part of its index only"),
        (
            {"root": {"coverage": {"full": False}, "children": []}},
            "a part of its index",
        ),
        ({"error": {"reason": "no such index"}, "status": 404}, "no such index"),
        ({"root": {"errors": [{"message": "bad query"}]}}, "answered with an error"),
        ({"took": 3, "found": []}, "it holds took, found"),
        (SimpleNamespace(), "must be a list of documents"),
        ({"ids": [["d1"], ["d2"]]}, "for one query; got 2"),
        (b"d1", "got bytes b'd1'"),
    ],
)
def test_what_is_no_whole_answer_is_refused_in_a_run_too(
    answer: Any, sentence: str
) -> None:
    with pytest.raises(FormatError, match=rf"query 'q1': .*{sentence}") as caught:
        karat.evaluate({"q1": answer}, gold={"q1": ["d1"]})
    assert " at 0x" not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        {"hits": {"hits": []}},
        {"root": {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": 0}}},
        SimpleNamespace(points=[]),
        {"ids": [[]], "distances": [[]]},
        {"matches": []},
        {"response": {"numFound": 0, "docs": []}},
        [[]],
    ],
)
def test_an_answer_without_hits_found_nothing(answer: Any) -> None:
    result = karat.evaluate({"q1": answer, "q2": ["d1"]}, gold={"q1": ["d1"]})
    assert result["rr"].mean == 0.0


def test_documents_of_frameworks_are_gold() -> None:
    one = SimpleNamespace(id="d1", content="One.", meta={"key": "k1"}, score=0.2)
    node = SimpleNamespace(node=SimpleNamespace(node_id="d1", text="One."), score=0.0)
    for wanted in ([one], [node], one, {"documents": [one]}, [(one, 2)], [one, "d2"]):
        result = karat.evaluate({"q": ["d1"]}, gold={"q": wanted}, metrics=["rr"])
        assert result.means == {"rr": 1.0}
    mapping = {"document": "meta.key"}
    result = karat.evaluate({"q": ["k1"]}, gold={"q": [one]}, mapping=mapping)
    assert result["rr"].mean == 1.0
    with pytest.raises(FormatError) as caught:
        karat.evaluate({"q": ["d1"]}, gold={"q": [object()]})
    assert " at 0x" not in str(caught.value)


@pytest.mark.parametrize("who", PLACES)
def test_places_in_an_index_become_ids(who: str) -> None:
    found = read_answer(PLACES[who], {}, IDS)
    assert names(found) == ["d1", "d2"]
    scores = [d.score for d in found if isinstance(d, Document)]
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]


def test_texts_of_dspy_are_texts() -> None:
    found = read_answer(SimpleNamespace(passages=["One.", "Two."]), {})
    assert [d.text for d in found if isinstance(d, Document)] == ["One.", "Two."]
    found = read_answer([{"long_text": "One.", "pid": 7}], {})
    assert isinstance(found[0], Document)
    assert (found[0].id, found[0].text) == ("7", "One.")


def test_a_mapping_reaches_into_objects_and_mappings() -> None:
    mapping = {"document": "metadata.source", "text": "body.text"}
    fields = {"metadata": {"source": "d1"}, "body": SimpleNamespace(text="One.")}
    for document in (fields, SimpleNamespace(**fields)):
        for answer in ([document], [(document, 0.5)], {"found": {"here": [document]}}):
            path = {"retrieved": "found.here"} if isinstance(answer, dict) else {}
            (found,) = read_answer(answer, mapping | path)
            assert isinstance(found, Document)
            assert (found.id, found.text) == ("d1", "One.")
    with pytest.raises(FormatError, match=r"has no 'metadata.nr'; it has metadata"):
        read_answer([fields], {"document": "metadata.nr"})
    with pytest.raises(FormatError, match=r"has no 'hits'; it holds found"):
        read_answer({"found": []}, {"retrieved": "hits"})


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((np.zeros((2, 3)), np.zeros((2, 3), int)), "for one query; got 2"),
        ({"ids": [["a"], ["b"]]}, "for one query; got 2"),
        ([["a", "b"], ["c"]], "ids= needs places in the index, got list"),
        ([("d1", "t", 0.1)], "ids= needs places in the index"),
        ([9], "the index has place 9, and ids= has 3 ids"),
        (["d1"], "ids= needs places in the index"),
    ],
)
def test_an_answer_that_cannot_be_meant_is_refused(answer: Any, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        read_answer(answer, {}, IDS)


@pytest.mark.parametrize(
    "answer",
    [
        {"timed_out": True, "hits": {"hits": HITS}},
        {"timed_out": False, "_shards": {"failed": 1}, "hits": {"hits": HITS}},
    ],
)
def test_a_part_of_an_index_is_no_answer(answer: Any) -> None:
    with pytest.raises(Transient, match="a part of its index"):
        read_answer(answer, {})


def test_objects_are_asked_as_their_libraries_document() -> None:
    class Search:
        def search(self, **given: Any) -> Any:
            assert given == {
                "size": 2,
                "index": "docs",
                "query": {"knn": {"vector": [1.0], "text": "rye {k}", "k": 2}},
            }
            return {"hits": {"hits": HITS}}

        def msearch(self) -> None: ...

    class LlamaIndex:
        similarity_top_k = 1

        def retrieve(self, query: str) -> list[str]:
            return ["d1", "d2"][: self.similarity_top_k]

        async def aretrieve(self, query: str) -> None: ...

    knn = {"vector": "{vector}", "text": "{query}", "k": "{k}"}
    options = {"index": "docs", "query": {"knn": knn}}
    queries, cache = {"q": "rye {k}"}, None
    run = karat.retrieve(
        Search(), queries, 2, options=options, encode=lambda _: np.ones(1), cache=cache
    )
    assert run.sample_ids() == ["d1"]
    run = karat.retrieve(LlamaIndex(), queries, 2, cache=cache)
    assert run.by_query == {"q": ["d1", "d2"]}  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match=r"what is searched\?"):
        karat.retrieve(Search(), queries, cache=cache)
    with pytest.raises(Refused, match="takes no texts: encode="):
        karat.retrieve(
            SimpleNamespace(ntotal=3, search=lambda v, k: None), queries, cache=cache
        )
