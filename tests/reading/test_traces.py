"""Traces: spans of retrievers become runs, whoever exported them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.extend import FormatError

START = 1_700_000_000_000_000_000
GOLD = [
    {"id": "q1", "query": "What is rye?", "relevant": ["rye"]},
    {"id": "q2", "query": "What are oats?", "relevant": ["oats"]},
]
# Question, documents, milliseconds; a text that looks like JSON stays a text.
CALLS = [
    ("What is rye?", [("rye", "Rye is a grain.", 0.9), ("tea", "{not json", 0.2)], 12),
    ("What are oats?", [("tea", "{not json", 0.5), ("oats", "For horses.", 0.4)], 30),
]
Docs = list[tuple[str, str, float]]


def value(thing: Any) -> dict[str, Any]:
    if isinstance(thing, float):
        return {"doubleValue": thing}
    if isinstance(thing, list):
        return {"arrayValue": {"values": [value(v) for v in thing]}}
    if isinstance(thing, dict):
        pairs = [{"key": k, "value": value(v)} for k, v in thing.items()]
        return {"kvlistValue": {"values": pairs}}
    return {"stringValue": thing}


def otlp(
    attributes: Callable[[str, Docs], dict[str, Any]], name: str = "search"
) -> Any:
    spans = [
        {
            "traceId": f"{number:032x}",
            "name": name,
            "startTimeUnixNano": str(START),
            "endTimeUnixNano": str(START + ms * 1_000_000),
            "attributes": [
                {"key": key, "value": value(thing)}
                for key, thing in attributes(query, documents).items()
            ],
            "status": {},
        }
        for number, (query, documents, ms) in enumerate(CALLS)
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def openinference(query: str, documents: Docs) -> dict[str, Any]:
    flat: dict[str, Any] = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": query,
    }
    for n, (id, text, score) in enumerate(documents):
        start = f"retrieval.documents.{n}.document."
        flat |= {f"{start}id": id, f"{start}content": text, f"{start}score": score}
        flat[f"{start}metadata"] = '{"lang": "en"}'
    return flat


def gen_ai(query: str, documents: Docs) -> dict[str, Any]:
    rows = [{"id": i, "content": text, "score": s} for i, text, s in documents]
    return {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": query,
        "gen_ai.retrieval.documents": rows,
    }


def gen_ai_in_json(query: str, documents: Docs) -> dict[str, Any]:
    plain = gen_ai(query, documents)
    key = "gen_ai.retrieval.documents"
    return {**plain, key: json.dumps(plain[key])}


def phoenix() -> Any:
    return [
        {
            "name": "search",
            "span_kind": "RETRIEVER",
            "start_time": "2026-11-15T10:00:00.000000+00:00",
            "end_time": f"2026-11-15T10:00:00.{ms:03}000+00:00",
            "context": {"trace_id": str(ms)},
            "attributes": {
                "input": {"value": query},
                "retrieval": {
                    "documents": [
                        {"document": {"id": i, "content": text, "score": s}}
                        for i, text, s in documents
                    ]
                },
            },
        }
        for query, documents, ms in CALLS
    ]


def langfuse() -> Any:
    return {
        "observations": [
            {
                "type": "RETRIEVER",
                "name": "search",
                "traceId": str(ms),
                "startTime": "2026-11-15T10:00:00.000Z",
                "endTime": f"2026-11-15T10:00:00.{ms:03}Z",
                "input": {"query": query},
                "output": [
                    {"id": i, "page_content": text, "score": s}
                    for i, text, s in documents
                ],
            }
            for query, documents, ms in CALLS
        ]
    }


def mlflow() -> Any:
    return [
        {
            "info": {"trace_id": f"tr-{ms}"},
            "data": {
                "spans": [
                    {
                        "name": "search",
                        "trace_id": str(ms),
                        "start_time_unix_nano": START,
                        "end_time_unix_nano": START + ms * 1_000_000,
                        "attributes": {
                            "mlflow.spanType": '"RETRIEVER"',
                            "mlflow.spanInputs": json.dumps({"query": query}),
                            "mlflow.spanOutputs": json.dumps(
                                [
                                    {"id": i, "page_content": text, "metadata": {}}
                                    for i, text, _ in documents
                                ]
                            ),
                        },
                    }
                ]
            },
        }
        for query, documents, ms in CALLS
    ]


def langsmith() -> Any:
    return [
        {
            "run_type": "retriever",
            "name": "search",
            "trace_id": str(ms),
            "start_time": "2026-11-15T10:00:00.000000",
            "end_time": f"2026-11-15T10:00:00.{ms:03}000",
            "inputs": {"query": query},
            "outputs": {
                "documents": [
                    {"id": i, "page_content": text, "metadata": {}}
                    for i, text, _ in documents
                ]
            },
            "error": None,
        }
        for query, documents, ms in CALLS
    ]


EXPORTS = {
    "OpenInference": otlp(openinference),
    "gen_ai": otlp(gen_ai),
    "gen_ai in JSON": otlp(gen_ai_in_json),
    "Phoenix": phoenix(),
    "Langfuse": langfuse(),
    "MLflow": mlflow(),
    "LangSmith": langsmith(),
}


def read(value: Any, folder: Path, **options: Any) -> Any:
    path = folder / "traces.json"
    path.write_text(json.dumps(value))
    return karat.read_run(path, **options)


def rankings(run: karat.Run) -> Any:
    policies = karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}).policies
    return {q: [(d.id, d.text) for d in r] for q, r in run.rankings(policies)}


@pytest.mark.parametrize("export", EXPORTS)
def test_every_export_is_the_same_run(export: str, tmp_path: Path) -> None:
    run = read(EXPORTS[export], tmp_path)
    assert rankings(run) == {
        query: [(i, text) for i, text, _ in documents] for query, documents, _ in CALLS
    }
    assert run.latency is not None
    assert run.latency.milliseconds == pytest.approx(
        {query: ms for query, _, ms in CALLS}
    )
    # Gold knows the ids of these texts.
    result = karat.evaluate(run, gold=GOLD, metrics="rr")
    assert [*result.scores_by_query()] == [{"rr": 1.0}, {"rr": 0.5}]
    assert result.latency is not None
    assert set(result.latency.milliseconds) == {"q1", "q2"}


def test_openinference_and_gen_ai_spans_are_equal_runs(tmp_path: Path) -> None:
    runs = [read(otlp(style), tmp_path) for style in (openinference, gen_ai)]
    one, two = (karat.evaluate(run, gold=GOLD).to_dict() for run in runs)
    assert one == two


def test_retrievers_of_one_trace_are_told_apart(tmp_path: Path) -> None:
    both = [otlp(openinference, "bm25"), otlp(gen_ai, "dense")]
    with pytest.raises(FormatError, match=r"2 retrievers: bm25 \(2\), dense \(2\).*by"):
        read(both, tmp_path)
    runs = read(both, tmp_path, by="retriever")
    assert [*runs] == ["bm25", "dense"]
    assert rankings(runs["bm25"]) == rankings(runs["dense"])


def test_lines_of_traces_and_other_spans_are_read(tmp_path: Path) -> None:
    envelope = otlp(openinference)
    spans = envelope["resourceSpans"][0]["scopeSpans"][0]["spans"]
    llm = {"name": "answer", "attributes": [], "traceId": "1"}
    lines = [
        {"resourceSpans": [{"scopeSpans": [{"spans": [span, llm]}]}]} for span in spans
    ]
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(karat.read_run(path).queries()) == 2


def test_a_span_that_failed_is_a_failure(tmp_path: Path) -> None:
    envelope = otlp(openinference)
    span = envelope["resourceSpans"][0]["scopeSpans"][0]["spans"][1]
    span["status"] = {"code": 2, "message": "shard 3 is gone"}
    run = read(envelope, tmp_path)
    assert run.failures == {"What are oats?": "shard 3 is gone"}
    result = karat.evaluate(run, gold=GOLD, metrics="rr")
    assert (result["rr"].n, result["rr"].failed) == (1, 1)


def test_the_last_answer_counts_and_no_span_is_an_error(tmp_path: Path) -> None:
    twice = [phoenix(), phoenix()]
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(twice))
    result = karat.evaluate(path, gold=GOLD, metrics="rr")
    assert "2 queries were asked more than once; the last answer counts" in str(result)
    with pytest.raises(FormatError, match="holds no span of a retriever"):
        read({"resourceSpans": []}, tmp_path)
