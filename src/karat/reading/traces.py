"""Traces of production: spans of retrievers, as queries with what was retrieved.

Read are OTLP JSON and its lines, and the exports of Phoenix, Langfuse, MLflow and
LangSmith. A span says what was asked, what came back and when; that is a run with its
latency. Documents are under `retrieval.documents` (OpenInference), under
`gen_ai.retrieval.documents` (OpenTelemetry), or are the span's output.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from karat.data.queries import Dataset
from karat.errors import FormatError
from karat.reading.format import SHIPPED, Format
from karat.reading.json_text import JSON
from karat.reading.meaning.aliases import QUESTIONS, ask
from karat.reading.meaning.answers import hits_of
from karat.reading.meaning.shapes import interpret
from karat.reading.meaning.values import is_list, paths_in
from karat.reading.source import Records, Source

BY: Final = "retriever"
"""The field that tells the retrievers of one trace apart, for `--by`."""

_DOCUMENTS: Final = ("retrieval.documents", "gen_ai.retrieval.documents")
_ASKED: Final = ("gen_ai.retrieval.query.text", "input.value", "mlflow.spanInputs")
_ANSWERED: Final = ("output.value", "mlflow.spanOutputs")
_OUTPUTS: Final = ("output", "outputs")
_KINDS: Final = (
    *("openinference.span.kind", "mlflow.spanType", "span_kind", "run_type", "type"),
    *("gen_ai.operation.name", "spanKind"),
)
_STARTS: Final = (
    *("startTimeUnixNano", "start_time_unix_nano", "start_time_ns"),
    *("startTime", "start_time", "start_time_iso"),
)
_ENDS: Final = tuple(name.replace("start", "end") for name in _STARTS)
_TRACES: Final = ("traceId", "trace_id", "context.trace_id", "trace")
_VALUES: Final = ("stringValue", "intValue", "doubleValue", "boolValue")
_ERROR: Final = re.compile("2|(STATUS_CODE_)?ERROR", re.IGNORECASE)
_NANO_PER_MS: Final = 1_000_000


class Traces(Format):
    """Spans of retrievers, by which production can be scored against gold.

    The text of a query is its id, unless gold knows the id of that text.
    """

    name = "traces"
    shares = SHIPPED["traces"].shares

    def records(self, source: Source) -> Records:
        """One for each query and retriever; the latest, where it was asked again."""
        value = JSON.records(source)
        values = (v for _, v in value) if isinstance(value, Iterator) else [value]
        latest: dict[tuple[str, str], dict[str, Any]] = {}
        for record in (record for value in values for record in _records(value)):
            key = record[BY], record["id"]
            if key in latest:
                what = "{query was|queries were} asked more than once"
                text = f"{what}; the last answer counts"
                source.notes.notice("asked again", text, record["id"])
            latest[key] = record
        if not latest:
            raise source.error(
                "holds no span of a retriever",
                hint="such a span has retrieval.documents, or the kind RETRIEVER",
            )
        return ((None, record) for record in latest.values())

    def read(self, source: Source) -> Dataset:
        """The run of the one retriever in it."""
        records = [*self.records(source)]
        counts = Counter(record[BY] for _, record in records)
        if len(counts) > 1:
            names = ", ".join(f"{name} ({count})" for name, count in counts.items())
            raise source.error(
                f"holds spans of {len(counts)} retrievers: {names}",
                hint=f"--by {BY} (by='{BY}') makes a run of each",
            )
        return interpret(iter(records), source, self.name)


def _records(value: Any) -> Iterator[dict[str, Any]]:
    """What the spans of retrievers in a decoded value say, at any depth."""
    if is_list(value):
        for entry in value:
            yield from _records(entry)
    if not isinstance(value, Mapping):
        return
    if (record := _read_span(value, _attributes(value))) is not None:
        yield record
    for name, inner in value.items():
        if name != "attributes" and isinstance(inner, Mapping | list):
            yield from _records(inner)


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a span under dotted names, however they are laid out."""
    attributes = span.get("attributes")
    flat = {k.removeprefix("attributes."): v for k, v in span.items() if "." in k}
    if is_list(attributes):
        pairs = (entry for entry in attributes if isinstance(entry, Mapping))
        flat |= {str(e.get("key")): _any_value(e.get("value")) for e in pairs}
    elif isinstance(attributes, Mapping):
        flat |= dict(paths_in(attributes))
    return flat


def _any_value(value: Any) -> Any:
    """A value as OTLP writes it, with its type as the name."""
    if not isinstance(value, Mapping):
        return value
    if "arrayValue" in value:
        return [_any_value(v) for v in value["arrayValue"].get("values", ())]
    if "kvlistValue" in value:
        pairs = value["kvlistValue"].get("values", ())
        return {pair["key"]: _any_value(pair.get("value")) for pair in pairs}
    return ask(value, _VALUES)


def _read_span(
    span: Mapping[str, Any], attributes: Mapping[str, Any]
) -> dict[str, Any] | None:
    """What a retriever did, if the span is one's."""
    documents: Any = _documents(attributes)
    every = (ask(part, (name,)) for part in (attributes, span) for name in _KINDS)
    kinds = {str(_decoded(kind)).upper() for kind in every}
    if documents is None and not kinds & {"RETRIEVER", "RETRIEVAL"}:
        return None
    question = _decoded(ask(attributes, _ASKED) or ask(span, ("input", "inputs")))
    question = ask(question, QUESTIONS) if isinstance(question, Mapping) else question
    if not isinstance(question, str) or not question.strip():
        return None
    query = question.strip()
    record: dict[str, Any] = {"id": query, "query": query}
    record[BY] = str(span.get("name") or "retriever")
    if (trace := ask(span, _TRACES)) is not None and isinstance(trace, str):
        record["trace"] = trace
    if (took := _milliseconds(span)) is not None:
        record["latency_ms"] = took
    if (failure := _failure(span)) is not None:
        return record | {"failure": failure}
    if documents is None:
        documents = _decoded(ask(attributes, _ANSWERED) or ask(span, _OUTPUTS))
        if not isinstance(documents, Mapping | list):
            raise FormatError("a span of a retriever holds no list of documents")
    return record | {"retrieved": documents}


def _documents(attributes: Mapping[str, Any]) -> list[Any] | None:
    """The documents among the attributes: a list, its JSON, or a name for each part."""
    for prefix in _DOCUMENTS:
        documents = attributes.get(prefix)
        if documents is not None and not isinstance(documents, Mapping):
            return [_document(d) for d in hits_of(_decoded(documents))]
        numbered: dict[int, dict[str, Any]] = {}
        for name, value in attributes.items():
            place, _, part = name.removeprefix(f"{prefix}.").partition(".")
            if name.startswith(f"{prefix}.") and place.isdecimal() and part:
                numbered.setdefault(int(place), {})[part] = value
        if numbered:
            return [_document(numbered[place]) for place in sorted(numbered)]
    return None


def _document(value: Any) -> Any:
    """A document without the word in front of its fields, its metadata decoded."""
    if not isinstance(value, Mapping):
        return value
    inner = value.get("document")
    flat = {**value, **inner} if isinstance(inner, Mapping) else dict(value)
    flat.pop("document", None)
    # A text may look like JSON.
    plain = ("document.id", "document.content")
    return {
        str(name).removeprefix("document."): part if name in plain else _decoded(part)
        for name, part in flat.items()
    }


def _decoded(value: Any) -> Any:
    """What a text of JSON holds; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "[", '"'}:
        with suppress(ValueError):
            return json.loads(value)
    return value


def _failure(span: Mapping[str, Any]) -> str | None:
    status = span.get("status")
    code, message = span.get("status_code") or span.get("level"), None
    if isinstance(status, Mapping):
        code, message = status.get("code"), status.get("message")
    message = message or ask(span, ("status_message", "statusMessage", "error"))
    if _ERROR.fullmatch(str(code)) or (message and span.get("run_type")):
        return str(message or "the span ended with an error")
    return None


def _milliseconds(span: Mapping[str, Any]) -> float | None:
    """How long a span took, if it says when it began and ended."""
    start, end = ask(span, _STARTS), ask(span, _ENDS)
    with suppress(ValueError, TypeError):
        if isinstance(start, str) and not start.isdecimal():
            took = datetime.fromisoformat(end) - datetime.fromisoformat(start)
            return took / timedelta(milliseconds=1)
        return (int(end) - int(start)) / _NANO_PER_MS
    return None


TRACES = Traces()
