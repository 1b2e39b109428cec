"""What is written is read back; what a format cannot hold is never lost silently."""

import gzip
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from karat import Dataset, Gold
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.extend import (
    Document,
    FormatError,
    Item,
    Policies,
    Query,
    Source,
    Span,
    UsageError,
)
from karat.reading.format import FORMATS
from karat.reading.readers import validate
from karat.reading.source import Role
from karat.reading.write import write

NESTED = ["json", "jsonl", "yaml", "csv", "tsv"]
FLAT = ["trec_run", "trec_qrels", "beir"]

WORDS = st.text("abcé0123-_.:/", min_size=1, max_size=8)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]),
    min_size=1,
).filter(lambda text: text.strip() and text[0] not in "[{")
NUMBERS = st.floats(-1e6, 1e6).map(lambda number: number + 0.0)
GRADES = st.integers(-1, 4).map(float) | st.floats(-2, 5)

SCORED = st.dictionaries(WORDS, st.dictionaries(WORDS, NUMBERS, max_size=5), min_size=1)
RANKED = st.dictionaries(WORDS, st.lists(WORDS, max_size=5), min_size=1)
DOCUMENTS = st.dictionaries(
    WORDS,
    st.lists(
        st.builds(
            Document,
            id=WORDS,
            text=st.none() | TEXTS,
            score=st.none() | NUMBERS,
            source=st.none() | WORDS,
        ),
        max_size=4,
    ).map(tuple),
    min_size=1,
)
LABELS = st.dictionaries(WORDS, st.dictionaries(WORDS, GRADES, max_size=5), min_size=1)


def through(loaded: Dataset, format: str, role: Role | None) -> Dataset:
    """Write it and read it back."""
    data = io.BytesIO()
    write(loaded, data, format)
    return FORMATS[format].read(
        Source("memory", role, replay=io.BytesIO(data.getvalue()))
    )


def rankings(loaded: Dataset) -> dict[str, list[Document]]:
    assert loaded.run is not None
    return dict(loaded.run.rankings(Policies()))


@pytest.mark.slow
@pytest.mark.parametrize("format", [*NESTED, "parquet"])
@settings(deadline=None, max_examples=40)
@given(SCORED)
def test_scored_runs_come_back(format: str, run: Any) -> None:
    loaded = Dataset(run=ScoredRun(run))
    back = through(loaded, format, "run")
    assert rankings(back) == rankings(loaded)


@pytest.mark.parametrize("format", NESTED)
@settings(deadline=None, max_examples=40)
@given(RANKED)
def test_ranked_runs_come_back(format: str, run: Any) -> None:
    loaded = Dataset(run=RankedRun(run))
    assert rankings(through(loaded, format, "run")) == rankings(loaded)


@pytest.mark.slow
@pytest.mark.parametrize("format", NESTED)
@settings(deadline=None, max_examples=40)
@given(DOCUMENTS)
def test_runs_with_texts_come_back(format: str, run: Any) -> None:
    loaded = Dataset(run=DocumentRun(run))
    assert rankings(through(loaded, format, "run")) == rankings(loaded)


@pytest.mark.slow
@pytest.mark.parametrize("format", [*NESTED, "parquet"])
@settings(deadline=None, max_examples=40)
@given(LABELS)
def test_grades_come_back(format: str, labels: Any) -> None:
    back = through(Dataset(gold=Gold(labels)), format, "gold").gold
    assert back is not None
    assert back.documents == labels
    assert back.queries == list(labels)


SAMPLES = Dataset(
    run=DocumentRun(
        {
            "q1": (
                Document("d1", "Because.", 0.5, metadata={"page": 3}),
                Document(None, "A text without an id.", source="a.md", start=3, end=9),
            ),
            "q2": (),
        }
    ),
    gold=Gold(
        documents={"q1": {"d1": 2.0, "d2": 0.0}, "q2": {}},
        passages={"q1": (Item("p", "Because it is.", 2.0, "ana", "g"),)},
        spans={"q1": (Span("span-1", "a.md", 0, 5, "Becau", 2.0),)},
        answers={
            "q1": (
                Item("answer-1", "yes", group="answers"),
                Item("answer-2", "no", group="answers"),
            )
        },
        claims={"q2": (Item("claim-1", "It is."),)},
        references={"q1": "Because it is so."},
        order=("q1", "q2", "q3"),
    ),
    queries={
        "q1": Query(
            "q1", "Why?", 3, ("a", "b"), {"owner": "ana", "n": [1, {"x": None}]}
        ),
        "q3": Query("q3", "007"),
    },
)


@pytest.mark.parametrize("format", [*NESTED, "parquet"])
def test_everything_a_sample_can_hold_comes_back(format: str) -> None:
    back = through(SAMPLES, format, "samples")
    assert rankings(back) == rankings(SAMPLES)
    assert SAMPLES.gold is not None
    assert back.gold is not None
    for query in SAMPLES.gold.queries:
        assert back.gold.fingerprint(query) == SAMPLES.gold.fingerprint(query)
    assert back.gold.passages == SAMPLES.gold.passages
    assert back.gold.queries == ["q1", "q2", "q3"]
    assert {q: back.queries[q] for q in ("q1", "q3")} == SAMPLES.queries


@pytest.mark.parametrize("format", FLAT)
def test_flat_formats_refuse_samples(format: str) -> None:
    with pytest.raises(FormatError, match="cannot hold run and gold in one file"):
        write(SAMPLES, io.BytesIO(), format)


@pytest.mark.parametrize("format", ["trec_qrels", "beir"])
def test_flat_gold_refuses_what_is_more_than_ids(format: str) -> None:
    with pytest.raises(
        FormatError, match="the gold has passages, spans, answers, claims"
    ):
        write(SAMPLES, io.BytesIO(), format, role="gold")


def test_a_trec_run_says_what_it_dropped_and_keeps_the_order() -> None:
    run = DocumentRun(
        {"q": (Document("a", "t", 0.1), Document("b", "u", 0.9)), "r": ()}
    )
    data = io.BytesIO()
    queries = {"q": Query("q", "Why?")}
    notices = write(Dataset(run=run, queries=queries), data, "trec_run")
    assert data.getvalue() == b"q Q0 a 1 2.0 run\nq Q0 b 2 1.0 run\n"
    assert sorted((notice.kind, notice.count) for notice in notices) == [
        ("dropped", 1),
        ("dropped", 1),
        ("dropped", 2),
    ]


def test_flat_gold_says_which_queries_it_dropped() -> None:
    (notice,) = write(
        Dataset(gold=Gold({"q": {"a": 1.0}, "r": {}})), io.BytesIO(), "beir"
    )
    assert (notice.count, notice.examples) == (1, ("r",))


def test_the_run_alone_may_be_written() -> None:
    data = io.BytesIO()
    notices = write(SAMPLES, data, "jsonl", role="run")
    assert notices == ()
    assert b"relevant" not in data.getvalue()


def test_beir_holds_whole_grades_and_plain_ids() -> None:
    data = io.BytesIO()
    write(Dataset(gold=Gold({"q": {"a": 2.0}})), data, "beir")
    assert data.getvalue() == b"query-id\tcorpus-id\tscore\nq\ta\t2\n"
    for labels in ({"q": {"a": 0.5}}, {"q": {"a\tb": 1.0}}):
        with pytest.raises(FormatError, match="beir holds"):
            write(Dataset(gold=Gold(labels)), io.BytesIO(), "beir")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.json", "json"),
        ("a.JSONL", "jsonl"),
        ("a.csv.gz", "csv"),
        ("a.qrels", "trec_qrels"),
    ],
)
def test_the_ending_decides_the_format(name: str, format: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write(Dataset(gold=Gold({"q": {"a": 1.0}})), path)
    assert path.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    checked = validate(path, "gold")
    assert checked.loaded is not None
    assert checked.loaded.format == format


@pytest.mark.parametrize("format", NESTED)
@pytest.mark.parametrize("name", ["id", "docs", "samples", "run", "<<", "007", "-.0"])
def test_query_ids_that_mean_something_elsewhere_come_back(
    format: str, name: str
) -> None:
    loaded = Dataset(run=RankedRun({name: ["a"], "relevant": ["retrieved"]}))
    assert rankings(through(loaded, format, "run")) == rankings(loaded)
    labels = {name: {"id": 1.0}, "query": {"text": 2.0}}
    back = through(Dataset(gold=Gold(labels)), format, "gold").gold
    assert back is not None
    assert back.documents == labels


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.json.gz", "two.json.gz"):
        write(SAMPLES, tmp_path / name)
    one, two = ((tmp_path / f"{n}.json.gz").read_bytes() for n in ("one", "two"))
    assert one == two
    assert gzip.decompress(one).endswith(b"}\n")


def test_an_unknown_ending_and_a_missing_part_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot tell the format to write") as caught:
        write(SAMPLES, tmp_path / "a.docx")
    assert "ir_datasets" not in str(caught.value)
    with pytest.raises(FormatError, match="there is no gold to write"):
        write(Dataset(run=RankedRun({})), tmp_path / "a.json", role="gold")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", FORMATS)
def test_half_a_character_is_written_as_it_can_be_read_or_not_at_all(
    name: str, tmp_path: Path
) -> None:
    half = "\ud83d"
    gold = Gold({half: {half: 1.0}}, name="gold")
    role: Role = "run" if name == "trec_run" else "gold"
    loaded = Dataset(run=ScoredRun({half: {half: 1.0}}), gold=gold)
    file = tmp_path / "file"
    if name in {"json", "jsonl"}:
        write(loaded, file, name, role)
        back = FORMATS[name].read(Source(str(file), role))
        assert back.gold is not None
        assert back.gold.documents == gold.documents
    else:
        with pytest.raises(FormatError, match="cannot hold"):
            write(loaded, file, name, role)
        assert not file.exists()


@pytest.mark.parametrize("name", ["csv", "tsv", "jsonl", "yaml", "parquet"])
def test_ids_with_line_ends_are_read_back(name: str, tmp_path: Path) -> None:
    odd = ["cr\rcr", "lf\nlf", "crlf\r\n.", '"quoted"', "tab\ttab", "a,b", "a\u2028"]
    scores = {query: dict.fromkeys(odd, 1.5) for query in odd}
    write(Dataset(run=ScoredRun(scores)), tmp_path / "file", name)
    back = FORMATS[name].read(Source(str(tmp_path / "file"), "run"))
    assert back.run is not None
    assert {q: {d.id for d in r} for q, r in back.run.rankings(Policies())} == {
        query: {*odd} for query in odd
    }
