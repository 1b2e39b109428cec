"""What odd inputs are made of: odd values, and inputs as they should be."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from karat.metrics import SHIPPED

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 7, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400),
    *(0.5, -0.0, 1e308, float("inf"), float("-inf"), float("nan"), 5e-324),
    *("", " ", "q1", "d1", "0", "1e999", "nan", "x" * 300, "a/" * 3000, "\x00", "\r"),
    *("d\r1", "a,b", '"', "'", "\ud800", "\U0001f600", "=1+1", "[1, 2]", '{"id": 1}'),
    *("['d3' 'd1']", "2024-01-01", "id", "__class__", "-", "%s", "{}", "\u2028"),
    *([], {}, [[]], [{}], [None], ["d1"], [["d1", 0.5]], [1, "a", None], {"d1": 1}),
    *(
        {"": ""},
        {"id": None},
        {"id": "d1", "text": 5},
        {"text": "Rye.", "start": 2**70},
    ),
    *({"d1": float("inf")}, {"d1": None}, {"d1": "x"}, {"start": -1, "end": 2**63}),
    *(date(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC), b"\xff\xfe"),
)
LETTERS = "ab,;|\"'\r\n\t #{}[]=\\\u2028\u00e9\u4e2d0-.%/&?<\0"
TOKENS = (
    *(
        b"\r",
        b"\n",
        b"\t",
        b",",
        b'"',
        b"'",
        b"\0",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b"- ",
    ),
    *(b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"nan", b"inf", b"-Infinity", b"1e999"),
    *(b"9" * 400, b"[" * 900, b"{" * 60, b"&a *a", b"<<: *a", b"!!python/object", b"#"),
    *(b"\\ud800", b"2**64", b"-0", b"\x1f\x8b", b"BZh9", b"(\xb5/\xfd", b"PAR1", b"PK"),
    *(b"\xe2\x80\xa8", b"%PDF-", b"null", b"true", b"~", b"|", b">", b"0x1F", b"1_000"),
)
SAMPLES: list[dict[str, Any]] = [
    {
        "id": f"q{n}",
        "query": "Which grain is rye?",
        "retrieved": [
            {
                "id": f"d{n}",
                "text": "Rye is a grain.",
                "score": 0.9,
                "start": 0,
                "end": 9,
            },
            {"id": "d9", "text": "Oats are another grain.", "score": 0.5},
        ],
        "relevant": [{"id": f"d{n}", "grade": 2}],
        "passages": [{"id": f"d{n}", "text": "Rye is a grain.", "start": 0, "end": 9}],
        "k": 5,
        "tags": ["grain", "rye"],
    }
    for n in range(3)
]
LISTS = [
    {"id": f"q{n}", "retrieved_ids": [f"d{n}", "d9"], "relevant": [f"d{n}"]}
    for n in range(3)
]
PAPERS = [{"_id": "d1", "title": "Rye", "text": "A grain."}]
SPANS = [
    {
        "id": "q1",
        "retrieved": [
            {"source": "a", "start": 0, "end": 9},
            {"source": "a", "text": "R"},
        ],
        "spans": [{"source": "a", "start": 3, "end": 7}],
        "owner": "me",
    }
]
RUN = {"q1": {"d1": 0.5, "d2": 0.25}, "q2": {"d3": 1}}
CORPUS = {"d1": "Rye is a grain.", "d2": "Oats."}
SHAPES: tuple[tuple[str, Any], ...] = (
    ("samples", SAMPLES),
    ("samples", LISTS),
    ("run", RUN),
    ("gold", {"q1": {"d1": 1, "d2": 0}, "q2": ["d3"]}),
    ("run", {"q1": ["d1", "d2"], "q2": []}),
    ("run", {"q1": [["d1", 0.5], ["d2", 0.25]], "q2": [{"id": "d3", "score": 1}]}),
    ("samples", SPANS),
    ("corpus", CORPUS),
    ("corpus", PAPERS),
    ("run", [{"query_id": "q1", "doc_id": f"d{n}", "score": n} for n in (3, 2)]),
    ("gold", [{"query_id": "q1", "doc_id": f"d{n}", "grade": n} for n in (1, 2)]),
    (
        "samples",
        {
            "question": ["a?", "b?"],
            "contexts": [["Rye."], ["Oats."]],
            "answers": [["R"], ["O"]],
        },
    ),
)
TEXTS: tuple[tuple[str, bytes], ...] = (
    ("run.trec", b"q1 Q0 d1 1 0.9 me\nq1 Q0 d2 2 0.8 me\nq2 Q0 d3 1 7 me\n"),
    ("qrels.trec", b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\n"),
    ("run.csv", b'query_id,doc_id,score\nq1,d1,0.5\nq1,"d2",0.25\nq2,d3,1\n'),
    ("run.tsv", b"query_id\tdoc_id\trank\nq1\td1\t1\nq1\td2\t2\n"),
    ("gold.csv", b"q1,d1,1\nq1,d2,0\nq2,d3,2\n"),
    ("samples.csv", b'id,retrieved,relevant\nq1,"[""d1"", ""d2""]",d1\nq2,d3;d4,d4\n'),
    ("samples.yaml", b"- id: q1\n  retrieved: [d1, d2]\n  relevant: {d1: 1}\n"),
    ("run.yaml", b"q1:\n  d1: 0.5\n  d2: .25\nq2: &a {d3: 1e3}\nq3: *a\n"),
    ("corpus.tsv", b"d1\tRye is a grain.\nd2\tOats.\n"),
    ("queries.tsv", b"q1\tWhich grain?\nq2\tWhy?\n"),
)
SETTINGS: dict[str, dict[str, Any]] = {
    "evaluate": {
        "metrics": ["recall@5", "rr"],
        "match": "id",
        "map": {"document": "doc"},
        "k": 5,
        "undefined": "skip",
        "threshold": 1,
        "corpus": "corpus.json",
        "output": ["out.json"],
        "fail_under": ["rr=0.1"],
        "max_drop": ["rr=0.5"],
        "baseline": "saved.json",
        "profile": "trec_eval-9",
        "format": "json",
        "by": "tags",
        "slice": "tag=rye",
        "keep": 2,
        "explain": "q1",
        "strict": True,
        "force": True,
    },
    "compare": {"metric": ["rr"], "gold": "gold.json", "margin": 0.1, "cluster": "tag"},
    "fuse": {
        "method": "rrf",
        "weights": "1,2",
        "depth": 5,
        "norm": "minmax",
        "to": "csv",
    },
    "convert": {"to": "csv", "role": "run", "from": "json", "map": {"id": "q"}},
    "validate": {"limit": 5, "role": "run", "gold": "gold.json", "map": {"id": "q"}},
    "judging": {"model": "m", "base_url": "http://localhost:1/v1", "max_tokens": 100},
}
LABELS: list[dict[str, Any]] = [
    {"query": "q1", "document": "d9", "grade": 1, "who": "ann", "why": "It says so."},
    {"query": "q2", "document": "d2", "grade": "can't tell", "who": "bo"},
]
STORE_USES = 18
"""In how many ways a store is used."""
NAMES = (
    *("q1", "q2", "1", "2", "3", "0", "latest.qrels", "1.jsonl", "latest.json"),
    *(
        "main",
        "grain",
        "rr",
        "ndcg@5",
        "1,2",
        "2,2",
        "2026-01-01",
        "add",
        "remove",
        "read",
    ),
)
"""What parts of the server's addresses may be."""
ASKED = (
    *("runs", "run", "metric", "branch", "tag", "since", "n", "commit", "token"),
    *("first", "second", "name", "role", "project", "remove", "page", "whole"),
)
HEADERS: dict[str, tuple[str, ...]] = {
    "host": (
        *("127.0.0.1:8600", "localhost", "[::1]:1", "example.com", "[::1"),
        *("localhost/style.css?", "localhost/#", "localhost:99999999", "a@localhost"),
    ),
    "origin": ("http://127.0.0.1", "null", "http://example.com"),
    "content-encoding": ("gzip", "gzip", "identity", "br"),
    "content-type": ("application/json", "multipart/form-data; boundary=x"),
    "content-length": ("0", "5", "-1"),
    "cookie": ("karat-=x", "karat-8600=; karat-=", "a=b; c"),
    "authorization": ("Bearer x", "Basic eDp5", "Bearer "),
    "accept": ("text/html", "application/json"),
}
QUESTIONS: list[dict[str, Any]] = [
    {
        "id": f"q{n}",
        "query": "Which grain is rye?",
        "relevant": [{"id": f"d{n}", "grade": 3, "source": "model:m"}],
        "spans": [{"source": f"d{n}", "start": 0, "end": 9, "id": "span-1"}],
        "reference": "A grain.",
        "claims": [{"id": "c1", "text": "Rye is a grain."}],
        "tags": ["hops-1", "plain"],
        "metadata": {
            "checks": {"alone": "yes"},
            "claim_spans": [[1]],
            "prompts": "1",
            "checked": "",
        },
    }
    for n in range(3)
]
DECISIONS: list[dict[str, Any]] = [
    {"query": "q0", "decision": "keep", "who": "ann", "when": "2026-01-01"},
    {"query": "q1", "decision": "fix", "question": "Is rye?", "reference": "Yes."},
    {"query": "q2", "decision": "drop", "who": "bo", "why": "It is vague."},
]
ADDRESSES = (
    ("http://", "https://", "HTTP://", "ftp://", "file://", "//", "unix:", ""),
    ("", "", "", "me@", "me:secret@", ":@", "%40@"),
    ("127.0.0.1", "[::1]", "localhost", "[::1", "0x7f.1", "grüße.test", "xn--a", ""),
    ("", ":9", ":0", ":65536", ":-1", ":x", ":٣", ":", ":9:9"),
    ("/search", "/{query}", "", "/../a", "/%zz", "/ü", "/{k}/{query}/{x}"),
    ("?q={query}", "", "?q={query}&k={k}", "?api_key=x&q={query}", "?{query}", "#{k}"),
)
"""Schemes, users, hosts, ports, paths and queries of the addresses of retrievers."""
ANSWERS: tuple[Any, ...] = (
    ["d1", "d2"],
    [["d1", 0.5], ["d2", 0.25]],
    {"d1": 0.5, "d2": 0.25},
    {"results": [{"id": "d1", "text": "Rye.", "score": 0.5, "start": 0, "end": 4}]},
    {"hits": {"hits": [{"_id": "d1", "_score": 2, "_source": {"text": "Rye."}}]}},
    {"ids": [["d1", "d2"]], "distances": [[0.1, 0.2]], "documents": [["R", "O"]]},
    {"matches": [{"id": "d1", "score": 0.5, "metadata": {"text": "Rye."}}]},
)
"""What retrievers answer."""
METRICS = (*SHIPPED, "map", "mrr", "P", "map_cut")
PARAMETERS = (
    "p",
    "gain",
    "threshold",
    "tau",
    "recall",
    "budget",
    "beta",
    "k",
    "max_grade",
)
VALUES = (
    "0",
    "1",
    "5",
    "-1",
    "0.5",
    "1e308",
    "1e-320",
    "exp",
    "true",
    "9" * 25,
    "nan",
    "x",
)
PIECES = (
    *"@()[]=,.k0-",
    "1e400",
    "9" * 30,
    "nan",
    "inf",
    "recall",
    "p",
    "\0",
    "é",
    " ",
)
FIELDS = (
    *("id", "query", "document", "retrieved", "relevant", "score", "rank", "grade"),
    *("text", "passages", "k", "tags", "reference", "retrieved_ids", "nonsense"),
)
VERDICT: dict[str, Any] = {
    "claim": "d1",
    "text": "Rye.",
    "alone": [1],
    "together": [1, 2],
    "reason": "It says so.",
    "failure": None,
    "disagreement": 0.0,
}
FILE_NAMES = {
    "parquet": "data.parquet",
    "arrow": "data.arrow",
    "stream": "data.feather",
}
TABLES: tuple[Callable[[], Any], ...] = (
    lambda: pa.table(
        {
            "query_id": ["q1", "q1", "q2"] * 20,
            "doc_id": [f"document-{n}" for n in range(60)],
            "score": [n / 7 for n in range(60)],
        }
    ),
    lambda: pa.table(
        {
            "query_id": pa.array(["q1", "q1", "q2"]).dictionary_encode(),
            "doc_id": pa.array(["d1", None, "a-longer-document-id"], pa.string_view()),
            "rank": pa.array([1, 2, 1], pa.uint8()),
        }
    ),
    lambda: pa.table({"qid": [1, 2], "docno": [7, 8], "grade": [1.0, 0.0]}),
    lambda: pa.Table.from_pylist(LISTS),
    lambda: pa.table(
        {
            "id": ["q1", "q2"],
            "retrieved": [[{"id": "d1", "score": 0.5}], []],
            "relevant": pa.array([["d1"], None], pa.large_list(pa.large_string())),
        }
    ),
)


@cache
def typed_columns() -> list[Any]:
    """A column of three cells in every type there is, some of them empty."""
    moment = datetime(2024, 2, 3, 4, 5, 6, tzinfo=UTC)
    columns = [
        pa.array(["q1", "q1", "q2"]),
        pa.array(["q1", None, ""]),
        pa.array([b"q1", b"\xff\xfe", b""]),
        pa.array(["q1", "q1", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array([None, "a"])),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([1.5, 2.5])),
        pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), pa.array([[1], [2]])),
        pa.nulls(3),
        pa.array([date(2024, 1, 1), None, date(2024, 1, 2)]),
        pa.array([moment] * 3, pa.timestamp("ns", "UTC")),
        pa.array([moment.replace(tzinfo=None)] * 3, pa.timestamp("ns")).cast("date64"),
        pa.array([moment.time(), None, moment.time()]),
        pa.array([timedelta(seconds=1), None, timedelta(0)]),
        pa.array([Decimal("1.5"), None, Decimal(2)]),
        pa.array([Decimal("1.5"), Decimal("9" * 60), Decimal(2)]),
        pa.array([{"id": "d1", "score": 0.5}, None, {"id": None, "score": 1.0}]),
        pa.array([[("d1", 1.0)], None, []], pa.map_(pa.string(), pa.float64())),
        pa.array([["d1", None], None, []]),
        pa.array([[["d1"]], [[]], None]),
        pa.array([[1.5, 2.5]] * 3, pa.list_(pa.float32(), 2)),
        pa.array([b"ab"] * 3, pa.binary(2)),
        pa.array([1.5, float("nan"), float("inf")]),
        pa.array(np.array([1.5, 2.5, 3.5], np.float16)),
        pa.array([2**64 - 1, 0, 1], pa.uint64()),
        pa.array([True, None, False]),
        pa.array([3, 2, 1]),
        pa.array(["a-string-that-is-longer", "b", None], pa.string_view()),
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3]), pa.array(["q1", "q2"])),
        pa.UnionArray.from_sparse(
            pa.array([0, 1, 0], pa.int8()),
            [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])],
        ),
    ]
    return [*columns, *columns[:1] * 10, pa.array(["d1", "d2", "d1"])]
