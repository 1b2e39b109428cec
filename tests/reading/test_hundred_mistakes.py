"""A hundred ordinary mistakes with ids, ranks, texts and fields: none is silent.

What is expected was fixed before the first run. A number is the truth, which is found
in spite of the mistake; a text stands in the error or the notice that tells it. Where a
wrong number comes without a word, the mistake is silent, and the test fails.
"""

from typing import Any, NamedTuple

import pytest

import karat
from karat import KaratError

TEXTS = {
    "doc_1": "Rye is a grain grown in the north of Europe.",
    "doc_2": "Oats are eaten by horses and by people.",
    "doc_3": "Barley is what most beer is made of.",
}
WORDS = [*TEXTS.values()]
IDS = [*TEXTS]
UUID = "0b54ad1c-92f3-4c0e-8d3e-5d3f2a9b7c61"
LEVEL = "id(level=document)"


class Mistake(NamedTuple):
    name: str
    run: Any
    gold: Any
    expected: float | str
    metric: str = "rr"
    options: dict[str, Any] = {}  # noqa: RUF012  read only


def ranked(ranks: dict[str, int], **more: Any) -> list[dict[str, Any]]:
    return [{"qid": "q", "docid": d, "rank": n, **more} for d, n in ranks.items()]


def scored(scores: dict[str, float], name: str = "score") -> list[dict[str, Any]]:
    return [{"qid": "q", "docid": d, name: n} for d, n in scores.items()]


def in_queries(wanted: str, there: str, name: str) -> Mistake:
    """Half of the queries are named in another way."""
    run, gold = {there: ["a"], "other": ["b"]}, {wanted: ["a"], "other": ["b"]}
    return Mistake(f"query: {name}", run, gold, "gold query is not in the run as")


def in_documents(wanted: str, there: str, name: str) -> Mistake:
    run, gold = {"q": ["x", there], "r": ["b"]}, {"q": [wanted], "r": ["b"]}
    return Mistake(f"document: {name}", run, gold, "gold id is not in the run as")


def of_chunk(wanted: str, there: str, name: str) -> Mistake:
    run, gold = {"q": ["x", there], "r": ["b"]}, {"q": [wanted], "r": ["b"]}
    return Mistake(f"chunk: {name}", run, gold, LEVEL)


def deep(size: int, k: int) -> tuple[Any, Any]:
    run = {f"q{n}": [f"d{n}-{i}" for i in range(size)] for n in range(40)}
    return run, {f"q{n}": [f"d{n}-1", f"d{n}-{k - 1}"] for n in range(40)}


RANKS = [
    Mistake("ranks 1 5 9", ranked({"a": 1, "b": 5, "c": 9}), {"q": ["b"]}, 0.2),
    Mistake("ranks 0 4 8", ranked({"a": 0, "b": 4, "c": 8}), {"q": ["b"]}, 0.2),
    Mistake("rows out of order", ranked({"c": 9, "a": 1, "b": 5}), {"q": ["c"]}, 1 / 9),
    Mistake("begins at 2", ranked({"a": 2, "b": 3}), {"q": ["a"]}, 0.5),
    Mistake("equal ranks", ranked({"a": 1, "b": 1, "c": 4}), {"q": ["c"]}, 0.25),
    Mistake("one rank", ranked({"a": 7}), {"q": ["a"]}, 1 / 7),
    Mistake("recall above the gap", ranked({"a": 1, "b": 6}), {"q": ["b"]}, 0, "hit@5"),
    Mistake("rank of a half", ranked({"a": 1.5}), {"q": ["a"]}, "whole number"),  # type: ignore[dict-item]
    Mistake("negative rank", ranked({"a": -1}), {"q": ["a"]}, "whole number"),
    Mistake("an id as rank", ranked({"a": 10**12}), {"q": ["a"]}, "whole number"),
    Mistake("rank of all rows", ranked({"a": 31, "b": 32}), {"q": ["a"]}, "with gaps"),
    Mistake(
        "a list with gaps",
        [{"id": "q", "retrieved": [{"id": "a", "rank": 1}, {"id": "b", "rank": 5}]}],
        {"q": ["b"]},
        0.2,
    ),
    Mistake(
        "a list from 0 with gaps",
        [{"id": "q", "retrieved": [{"id": "a", "rank": 0}, {"id": "b", "rank": 7}]}],
        {"q": ["b"]},
        1 / 8,
    ),
    Mistake(
        "ranks against scores",
        [{**row, "score": row["rank"]} for row in ranked({"a": 1, "b": 2})],
        {"q": ["a"]},
        "ranks that are not what",
    ),
]
SIDES = [
    Mistake("ids, gold of texts", {"q": IDS}, {"q": WORDS[:1]}, "--corpus"),
    Mistake("texts, gold of ids", {"q": WORDS}, {"q": IDS[:1]}, "--corpus"),
    Mistake("scored ids", {"q": {"doc_1": 1.0}}, {"q": WORDS[:1]}, "--corpus"),
    Mistake("scored texts", {"q": {WORDS[0]: 1.0}}, {"q": IDS[:1]}, "--corpus"),
    Mistake("graded texts", {"q": IDS}, {"q": {WORDS[0]: 2}}, "--corpus"),
    Mistake("graded ids", {"q": WORDS}, {"q": {"doc_1": 2}}, "--corpus"),
    Mistake("ids in texts", [{"id": "q", "contexts": IDS}], {"q": WORDS}, "--corpus"),
    Mistake(
        "texts in ids", [{"id": "q", "retrieved_ids": WORDS}], {"q": IDS}, "--corpus"
    ),
    Mistake("numbers", {"q": ["17", "18"]}, {"q": WORDS[:1]}, "--corpus"),
    Mistake("addresses", {"q": ["https://a.example/x"]}, {"q": WORDS}, "--corpus"),
    Mistake(
        "answers in ids", {"q": IDS}, [{"id": "q", "answers": ["Europe"]}], "--corpus"
    ),
    Mistake(
        "chunk by ids",
        {"q": IDS},
        {"q": IDS[:1]},
        1.0,
        options={"match": "span"},
    ),
    Mistake(
        "with the corpus",
        {"q": IDS[::-1]},
        {"q": WORDS[:1]},
        1 / 3,
        options={"corpus": TEXTS},
    ),
    Mistake(
        "with the corpus of gold",
        {"q": WORDS},
        {"q": IDS[1:2]},
        0.5,
        options={"corpus": TEXTS},
    ),
    Mistake(
        "another corpus",
        {"q": IDS},
        {"q": WORDS[:1]},
        "no text",
        options={"corpus": {"z": "Rye."}},
    ),
]
SESSIONS = [
    Mistake(
        "sessions already",
        {"q": ["sess_1", "sess_7"]},
        {"q": ["sess_1", "sess_3"]},
        "match='id'",
        options={"match": "id(level=session)"},
    ),
    Mistake(
        "gold lists sessions",
        {"q": ["s1_2", "s2_1"]},
        {"q": ["s1"]},
        "sessions already",
        options={"match": "id(level=session, sep=-)"},
    ),
    Mistake(
        "another separator",
        {"q": ["s1:2", "s2:1"]},
        {"q": ["s2:1"]},
        "separator",
        options={"match": "id(level=session)"},
    ),
    Mistake(
        "names of chats",
        {"q": ["chat_1", "call_2"]},
        {"q": ["chat_9"]},
        "sessions already?",
        options={"match": "id(level=session)"},
    ),
    Mistake(
        "turns of sessions",
        {"q": ["s1_2", "s2_1"]},
        {"q": ["s2_4"]},
        0.5,
        options={"match": "id(level=session)"},
    ),
    Mistake(
        "no source",
        {"q": ["a"]},
        {"q": ["a"]},
        "names no source",
        options={"match": "id(level=source)"},
    ),
]
DOCUMENTS = [
    in_documents("d1", "D1", "case"),
    in_documents("d1", " d1", "blank before"),
    in_documents("d1", "d1\t", "tab behind"),
    in_documents("7", "0007", "zeros"),
    in_documents("7", "7.0", "a float"),
    in_documents("d-1", "d_1", "underscore"),
    in_documents("d1", "'d1'", "quotes"),
    in_documents("docs/a.md", "a.md", "folder lost"),
    in_documents("a.md", "./a.md", "here"),
    in_documents("docs/a.md", "docs\\a.md", "other slashes"),
    in_documents("a", "a.txt", "ending"),
    in_documents("docs/a.md", "docs/a.html", "built pages"),
    in_documents("https://k.example/a", "http://k.example/a", "scheme"),
    in_documents("https://k.example/a", "k.example/a", "no scheme"),
    in_documents("https://k.example/a", "https://www.k.example/a", "www"),
    in_documents("https://k.example/a", "https://k.example/a/", "slash behind"),
    in_documents("https://k.example/a", "https://k.example/a?utm_id=4", "tracking"),
    in_documents("https://k.example/a", "https://k.example/a#intro", "anchor"),
    in_documents("a b", "a%20b", "escapes"),
    in_documents(UUID, UUID.replace("-", ""), "UUID without dashes"),
    in_documents(UUID, UUID.upper(), "UUID in capitals"),
    in_documents("M\u00fcller", "Mu\u0308ller", "Unicode form"),
    in_documents("M\u00fcller", "M\u00c3\u00bcller", "mojibake"),
    in_documents("17", "doc_17", "word before"),
    in_documents("17", "d17", "letter before"),
    in_documents("d1", "corpus:d1", "prefix"),
    in_documents("d1", "d1,", "comma behind"),
    in_documents("d1", "[d1]", "brackets"),
    in_documents("caf\u00e9", "cafe", "accent lost"),
    in_documents("/x/a.md", "file:///x/a.md", "file as address"),
    in_documents("https://k.example/a", "https://k.example/a/index.html", "index"),
]
CHUNKS = [
    of_chunk("doc17", "doc17_0", "underscore"),
    of_chunk("doc17", "doc17-12", "dash"),
    of_chunk("doc17", "doc17:12-40", "offsets"),
    of_chunk("doc17", "doc17#3", "hash"),
    of_chunk("file.pdf", "file.pdf_page_3", "page"),
    of_chunk("file.pdf", "file.pdf::p4", "colons"),
    of_chunk("doc17_4", "doc17", "gold of chunks"),
    of_chunk(UUID, f"{UUID}_chunk_9", "UUID"),
    Mistake(
        "chunk: joined",
        {"q": ["doc1_0", "doc17_0"]},
        {"q": ["doc17"]},
        0.5,
        options={"match": LEVEL},
    ),
    Mistake("chunk: none in common", {"q": ["d9_1"]}, {"q": ["d9"]}, LEVEL),
]
QUERIES = [
    in_queries("q1", "q1 ", "blank behind"),
    in_queries("q1", "Q1", "case"),
    in_queries("1", "001", "zeros"),
    in_queries("q-1", "q_1", "underscore"),
    in_queries("1", "1.0", "a float"),
    in_queries("12", "query 12", "word before"),
    in_queries("what is rye", "What is  rye", "a text"),
    in_queries(UUID, UUID.replace("-", ""), "UUID"),
    Mistake("query: none in common", {"Q1": ["a"]}, {"q1": ["a"]}, "is there as 'Q1'"),
    Mistake("query: others", {"x": ["a"]}, {"q1": ["a"]}, "no query in common"),
    Mistake("query: some missing", {"q": ["a"]}, {"q": ["a"], "r": ["a"]}, "score"),
    Mistake("query: some without gold", {"q": ["a"], "r": ["a"]}, {"q": ["a"]}, 1.0),
]
DEPTHS = [
    Mistake("depth 10 at 50", *deep(10, 50), "than recall@50 reads", "recall@50"),
    Mistake("depth 10 at 10", *deep(10, 10), 1.0, "recall@10"),
    Mistake("letter k", *deep(5, 9), "than recall@k", "recall@k", {"k": 9}),
    Mistake(
        "copies first", {"q": ["x"] * 4 + ["a"]}, {"q": ["a"]}, "repeats documents"
    ),
    Mistake(
        "copies collapsed",
        {"q": ["x"] * 4 + ["a"]},
        {"q": ["a"]},
        0.5,
        options={"duplicates": "collapse"},
    ),
    Mistake("relevant twice", {"q": ["a", "a"]}, {"q": ["a"]}, "more than once"),
    Mistake(
        "grades .05 .95", {"q": ["x", "a"]}, {"q": {"a": 0.95, "x": 0.05}}, "grades"
    ),
    Mistake("grades 5 95", {"q": ["x", "a"]}, {"q": {"a": 95, "x": 5}}, "--threshold"),
    Mistake("stars", {"q": ["x", "a"]}, {"q": {"a": 5, "x": 1}}, "--threshold"),
    Mistake("distances", scored({"a": 0.1, "x": 0.9}), {"q": ["a"]}, "distances?"),
    Mistake(
        "named distances",
        scored({"x": 0.9, "a": 0.1}, "distance"),
        {"q": ["a"]},
        "--order descending",
    ),
    Mistake(
        "one of each", {"q": {"a": 0.1}, "r": {"b": 0.2}}, {"q": ["a"], "r": ["b"]}, 1
    ),
]
ANSWERS = [
    Mistake(
        "only ground_truth",
        [{"id": "q", "contexts": ["Rye is a grain."], "ground_truth": "rye"}],
        None,
        "--map answers=ground_truth",
        "containment@1",
    ),
    Mistake(
        "no in no way",
        [{"id": "q", "contexts": ["There is no way."], "answers": ["no"]}],
        None,
        "brief answer",
        "containment@1",
    ),
    Mistake(
        "no in know",
        [{"id": "q", "contexts": ["I know."], "answers": ["no"]}],
        None,
        0,
        "containment@1",
    ),
    Mistake(
        "N/A",
        [{"id": "q", "contexts": ["n/a"], "answers": ["N/A"]}],
        None,
        "brief answer",
        "containment@1",
    ),
]
LOGS = [
    Mistake(
        "deep hits",
        [{"id": "q", "pipeline": {"retriever": {"hits": [{"id": "a"}]}}}],
        {"q": ["a"]},
        "--map retrieved=pipeline.retriever.hits",
    ),
    Mistake(
        "wrapped chunks",
        [{"id": "q", "retrieved": [{"chunk": {"id": "a", "text": "Rye."}}]}],
        {"q": ["a"]},
        1.0,
    ),
    Mistake(
        "unknown inside",
        [{"id": "q", "retrieved": [{"chunk": {"nr": "a"}}]}],
        {"q": ["a"]},
        "--map document=chunk.nr",
    ),
    Mistake(
        "mapping turned",
        [{"id": "q", "mine": ["a"]}],
        {"q": ["a"]},
        "--map retrieved=mine",
        options={"mapping": {"mine": "retrieved"}},
    ),
    Mistake(
        "a field that is not there",
        [{"id": "q", "mine": ["a"]}],
        {"q": ["a"]},
        "'yours'",
        options={"mapping": {"retrieved": "yours"}},
    ),
    Mistake(
        "repeated ids",
        [{"id": "q", "retrieved": ["a"]}, {"id": "q", "retrieved": ["b"]}],
        {"q": ["a"]},
        "--by FIELD",
    ),
]
EVERY = [
    *RANKS,
    *SIDES,
    *SESSIONS,
    *DOCUMENTS,
    *CHUNKS,
    *QUERIES,
    *DEPTHS,
    *ANSWERS,
    *LOGS,
]


def test_there_are_a_hundred() -> None:
    assert len(EVERY) >= 100
    assert len({mistake.name for mistake in EVERY}) == len(EVERY)


@pytest.mark.parametrize("mistake", EVERY, ids=[mistake.name for mistake in EVERY])
def test_no_mistake_is_silent(mistake: Mistake) -> None:
    _, run, gold, expected, metric, options = mistake
    mean = None
    try:
        result = karat.evaluate(run, gold, metrics=metric, **options)
    except KaratError as error:
        told = str(error)
    else:
        told = "; ".join(map(str, result.warnings))
        mean = result.means[metric]
    if isinstance(expected, str):
        assert expected in told, (told, mean)
    else:
        assert mean == pytest.approx(expected), told
