# ruff: noqa: E501 (a row of the table is a line)
"""What people have in hand, and the one line that scores it.

The page "What do you have?" is written from this list, and each line of it is run: so
the page says what is so. Everything here ranks d1 before d2, for two queries of which
the first wants d1 and the second d2: the mean of `rr` is 0.75, whoever says it.
"""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace as Object
from typing import Any, NamedTuple

import numpy as np

GOLD = {"q1": ["d1"], "q2": ["d2"]}
TEXTS = {"d1": "Rye grows in poor soil.", "d2": "Oats are fed to horses."}
ASKED = {"q1": "what grows in poor soil", "q2": "what horses eat"}
RR, RECALL = 0.75, 0.5

RUN = "karat.evaluate(run, gold=gold)"
ANSWERS = "karat.evaluate({query: answer, ...}, gold=gold)"


class InHand(NamedTuple):
    """Something to score.

    Attributes:
        what: what it is, as the page says.
        line: the line that scores it, as the page shows it.
        make: what the names in the line stand for, with a folder for files.
    """

    what: str
    line: str
    make: Callable[[Path], dict[str, Any]]


def answered(answer: Any) -> Callable[[Path], dict[str, Any]]:
    return lambda _: {"run": {"q1": answer, "q2": answer}}


def given(**names: Any) -> Callable[[Path], dict[str, Any]]:
    return lambda _: names


def saved(name: str, content: Any, role: str = "run") -> Callable[[Path], Any]:
    def make(folder: Path) -> dict[str, Any]:
        lines = name.endswith(".jsonl")
        texts = map(json.dumps, content) if lines else [json.dumps(content)]
        text = content if isinstance(content, str) else "\n".join(texts)
        (folder / name).write_text(text, "utf-8")
        runs = (
            {} if role == "run" else {"run": {"q1": ["d1", "d2"], "q2": ["d1", "d2"]}}
        )
        return {**runs, role: str(folder / name)}

    return make


def scored(name: str = "score") -> list[dict[str, Any]]:
    """Two hits, the better one with the larger score."""
    return [{"id": d, name: s} for d, s in (("d1", 0.9), ("d2", 0.4))]


@dataclass
class Question:
    text: str
    qid: Any


@dataclass
class Candidate:
    docid: str
    score: float
    doc: dict[str, Any] = field(default_factory=dict)


@dataclass
class Request:
    query: Question
    candidates: list[Candidate]


class Split:
    """A split of a data set, as the library `datasets` has it."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows, self.column_names = rows, [*rows[0]]

    def __len__(self) -> int:
        return len(self.rows)

    def with_format(self, kind: str) -> "Split":
        assert kind == "arrow"
        return self

    def __getitem__(self, which: slice) -> Any:
        import pyarrow as pa  # noqa: PLC0415

        return pa.Table.from_pylist(self.rows[which])


ELASTIC = {
    "took": 3,
    "timed_out": False,
    "_shards": {"total": 1, "failed": 0},
    "hits": {
        "total": {"value": 2, "relation": "eq"},
        "hits": [
            {"_index": "i", "_id": d, "_score": s, "_source": {"text": TEXTS[d]}}
            for d, s in (("d1", 2.0), ("d2", 1.0))
        ],
    },
}
VESPA = {
    "root": {
        "id": "toplevel",
        "children": [
            {"id": f"id:n:t::{d}", "relevance": s, "fields": {"text": TEXTS[d]}}
            for d, s in (("d1", 0.9), ("d2", 0.4))
        ],
    }
}
CHROMA = {
    "ids": [["d1", "d2"]],
    "distances": [[0.1, 0.4]],
    "documents": [[*TEXTS.values()]],
    "metadatas": [[{"lang": "en"}, None]],
    "embeddings": None,
    "uris": None,
    "included": ["documents"],
}
WEAVIATE = Object(
    objects=[
        Object(uuid=d, metadata=Object(distance=0.1), properties={"text": TEXTS[d]})
        for d in TEXTS
    ]
)
MILVUS = [[{**hit, "entity": {"text": "t"}} for hit in scored("distance")]]
SOLR = {
    "responseHeader": {"status": 0},
    "response": {"numFound": 2, "start": 0, "docs": scored()},
}
HAYSTACK = [Object(id=d, content=t, meta={}, score=0.5) for d, t in TEXTS.items()]
NODES = [
    Object(node=Object(node_id=d, text=t, metadata={}), score=s)
    for (d, t), s in zip(TEXTS.items(), (0.9, 0.4), strict=True)
]
LANGCHAIN = [Object(id=d, page_content=t, metadata={}) for d, t in TEXTS.items()]
CORPUS_IDS = [{"corpus_id": d, "score": s} for d, s in (("d1", 0.9), ("d2", 0.4))]
SCORES = {"d1": 0.9, "d2": 0.4}
QRELS = [{"query-id": q, "corpus-id": d, "score": 1} for q, (d,) in GOLD.items()]
LISTS = {"q1": ["d1", "d2"], "q2": ["d1", "d2"]}
BY_TEXT = {ASKED[q]: ranking for q, ranking in LISTS.items()}
SAMPLES = [{"id": q, "retrieved": LISTS[q], "relevant": GOLD[q]} for q in GOLD]
JUDGED = {
    "name": "imported",
    "type": "IMPORT_JUDGMENT",
    "judgmentRatings": [
        {"query": ASKED[q], "ratings": [{"docId": d, "rating": "1.000"}]}
        for q, (d,) in GOLD.items()
    ],
}
QUEPID = "query,docid,rating\n" + "".join(
    f"{ASKED[q]},{d},1\n" for q, (d,) in GOLD.items()
)
PHOENIX = [
    {
        "context.span_id": f"s-{q}",
        "document_position": place,
        "input": ASKED[q],
        "reference": TEXTS[d],
        "document_score": SCORES[d],
    }
    for q in GOLD
    for place, d in enumerate(TEXTS)
]
PASSAGES = [
    {"id": q, "query": ASKED[q], "passages": [TEXTS[d]]} for q, (d,) in GOLD.items()
]


def phoenix(folder: Path) -> dict[str, Any]:
    with (folder / "documents.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*PHOENIX[0]])
        writer.writeheader()
        writer.writerows(PHOENIX)
    return {"run": str(folder / "documents.csv"), "gold": PASSAGES}


def on_disk(folder: Path) -> dict[str, Any]:
    parts = {"qrels/test": QRELS, "queries": [], "corpus": []}
    parts["queries"] = [{"_id": q, "text": text} for q, text in ASKED.items()]
    parts["corpus"] = [{"_id": d, "title": "", "text": t} for d, t in TEXTS.items()]
    (folder / "data/qrels").mkdir(parents=True)
    for name, rows in parts.items():
        lines = "\n".join(map(json.dumps, rows))
        (folder / f"data/{name}.jsonl").write_text(lines, "utf-8")
    return {"run": LISTS, "folder": str(folder / "data")}


IN_HAND: dict[str, list[InHand]] = {
    "Answers of search engines and vector stores": [
        InHand("Elasticsearch, OpenSearch: what `search` returns", ANSWERS, answered(ELASTIC)),
        InHand("the same as the client's object", ANSWERS, answered(Object(body=ELASTIC))),
        InHand(
            "the answer to one `msearch`, in the order of the queries",
            "karat.evaluate(answer, gold=[[...], [...]])",
            given(answer={"responses": [ELASTIC, ELASTIC]}, gold=[*GOLD.values()]),
        ),
        InHand("Vespa: JSON", ANSWERS, answered(VESPA)),
        InHand("Vespa: pyvespa's object", ANSWERS, answered(Object(hits=VESPA["root"]["children"]))),
        InHand("Qdrant: `query_points`", ANSWERS, answered(Object(points=[Object(**h, payload={}) for h in scored()]))),
        InHand("Qdrant: REST", ANSWERS, answered({"result": {"points": scored()}, "status": "ok"})),
        InHand("Chroma: `query`", ANSWERS, answered(CHROMA)),
        InHand("Pinecone: `query`", ANSWERS, answered(Object(matches=[Object(**h) for h in scored()]))),
        InHand("Weaviate: `near_text`, `bm25`, `hybrid`", ANSWERS, answered(WEAVIATE)),
        InHand("Milvus: `search`, with any kind of `distance`", ANSWERS, answered(MILVUS)),
        InHand("LanceDB: `to_list()`", ANSWERS, answered([{"id": d, "text": t, "_distance": 0.1 + n} for n, (d, t) in enumerate(TEXTS.items())])),
        InHand("Solr: JSON", ANSWERS, answered(SOLR)),
        InHand("Solr: pysolr's object", ANSWERS, answered(Object(docs=scored(), hits=2, qtime=1))),
        InHand("pgvector and the like: rows", ANSWERS, answered([(d, t, 0.1) for d, t in TEXTS.items()])),
        InHand("answers saved by query id in one JSON file", "karat.evaluate('answers.json', gold=gold)", saved("answers.json", {"q1": ELASTIC, "q2": ELASTIC})),
        InHand("answers saved one per line, beside the query id", "karat.evaluate('answers.jsonl', gold=gold)", saved("answers.jsonl", [{"query_id": q, "response": SOLR} for q in GOLD])),
        InHand("an answer in each sample", "karat.evaluate(samples)", given(samples=[{"id": q, "retrieved": VESPA, "relevant": GOLD[q]} for q in GOLD])),
    ],
    "Frameworks": [
        InHand("LangChain: documents, with scores or without", ANSWERS, answered([(d, np.float32(1)) for d in LANGCHAIN])),
        InHand("LlamaIndex: nodes, or a response with its `source_nodes`", ANSWERS, answered(Object(source_nodes=NODES))),
        InHand("Haystack: documents, or what a pipeline returns", ANSWERS, answered({"retriever": {"documents": HAYSTACK}})),
        InHand("documents or nodes as gold", "karat.evaluate(run, gold={query: documents, ...})", given(run=LISTS, gold={"q1": HAYSTACK[:1], "q2": NODES[1:]})),
        InHand("LlamaIndex: a list of `RetrievalEvalResult`", "karat.evaluate(results)", given(results=[{"query": ASKED[q], "expected_ids": GOLD[q], "expected_texts": None, "retrieved_ids": LISTS[q], "retrieved_texts": [*TEXTS.values()], "mode": "text", "metric_dict": {}} for q in GOLD])),
        InHand("LlamaIndex: `EmbeddingQAFinetuneDataset`, also saved", RUN, given(run=LISTS, gold={"queries": ASKED, "corpus": TEXTS, "relevant_docs": GOLD})),
    ],
    "Models and benchmarks": [
        InHand("sentence-transformers: `semantic_search`, with places in the corpus", "karat.evaluate(hits, gold=[[...], [...]])", given(hits=[[{"corpus_id": 7, "score": 0.9}, {"corpus_id": 3, "score": 0.4}]] * 2, gold=[[7], [3]])),
        InHand("sentence-transformers: predictions of an evaluator", "karat.evaluate('predictions.jsonl', gold=gold)", saved("predictions.jsonl", [{"query_id": q, "query": ASKED[q], "results": CORPUS_IDS} for q in GOLD])),
        InHand("MTEB: `*_predictions.json`", "karat.evaluate('SciFact_predictions.json', gold=gold)", saved("SciFact_predictions.json", {"mteb_model_meta": {"model_name": "m", "revision": "1"}, "default": {"test": {"q1": SCORES, "q2": SCORES}}})),
        InHand("BEIR: `{query: {document: score}}`", RUN, given(run={"q1": SCORES, "q2": SCORES}, gold={"q1": {"d1": 1}, "q2": {"d2": 1}})),
        InHand("TREC RAG, rank_llm: ids inside the query", "karat.evaluate('requests.jsonl', gold=gold)", saved("requests.jsonl", [{"query": {"qid": q, "text": ASKED[q]}, "candidates": [{"docid": d, "score": s, "doc": {"text": TEXTS[d]}} for d, s in SCORES.items()]} for q in GOLD])),
        InHand("rank_llm: requests and results", "karat.evaluate(requests, gold=gold)", given(requests=[Request(Question(ASKED[q], q), [Candidate(d, s) for d, s in SCORES.items()]) for q in GOLD])),
    ],
    "Hugging Face": [
        InHand("a `Dataset` as run", RUN, given(run=Split([{"query_id": q, "doc_id": d, "score": s} for q in GOLD for d, s in SCORES.items()]))),
        InHand("a `Dataset` of samples", "karat.evaluate(samples)", given(samples=Split(SAMPLES))),
        InHand("a `DatasetDict` of qrels as gold; its test split is read", RUN, given(run=LISTS, gold={"train": Split(QRELS[:1]), "test": Split(QRELS)})),
        InHand(
            "queries and corpus in the layout of BEIR",
            "karat.evaluate(run, gold=qrels, queries=queries, corpus=corpus)",
            given(
                run=BY_TEXT,
                qrels=Split(QRELS),
                queries={"queries": Split([{"_id": q, "text": t} for q, t in ASKED.items()])},
                corpus={"corpus": Split([{"_id": d, "title": "", "text": t} for d, t in TEXTS.items()])},
            ),
        ),
        InHand("the files of such a data set, as TSV, JSON Lines or Parquet", "karat.evaluate(run, gold=folder, queries=folder, corpus=folder)", on_disk),
    ],
    "Judgements and exports": [
        InHand("OpenSearch Search Relevance Workbench: judgements", "karat.evaluate(run, gold='judgments.json')", lambda folder: {**saved("judgments.json", JUDGED, "gold")(folder), "run": BY_TEXT}),
        InHand("Quepid: ratings as CSV", "karat.evaluate(run, gold='ratings.csv')", lambda folder: {**saved("ratings.csv", QUEPID, "gold")(folder), "run": BY_TEXT}),
        InHand("Langfuse: items of a data set as gold", RUN, given(run=BY_TEXT, gold=[{"id": f"item-{q}", "input": {"question": ASKED[q]}, "expectedOutput": GOLD[q], "metadata": None, "status": "ACTIVE"} for q in GOLD])),
        InHand("LangSmith: examples as gold", RUN, given(run=BY_TEXT, gold=[{"id": f"e-{q}", "inputs": {"question": ASKED[q]}, "outputs": {"document_ids": GOLD[q]}, "metadata": {}} for q in GOLD])),
        InHand("LangSmith: rows of an experiment, also as columns `outputs.documents`", "karat.evaluate(rows)", given(rows=[{"inputs.question": ASKED[q], "outputs.documents": LISTS[q], "reference.documents": GOLD[q], "example_id": q} for q in GOLD])),
        InHand("Phoenix: `get_retrieved_documents`, as a frame or CSV", "karat.evaluate('documents.csv', gold=gold)", phoenix),
    ],
}  # fmt: skip
