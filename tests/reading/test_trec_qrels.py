"""Qrels, and TREC files written and read back."""

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from karat import Gold
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.extend import Document, FormatError, Policies
from karat.reading.trec import TREC_QRELS, TREC_RUN, TrecRun, read_qrels

_BLANKS = " \t\n\v\f\r\0"
_IDS = st.text(st.characters(codec="utf-8", exclude_characters=_BLANKS), min_size=1)
_QUERIES = _IDS.filter(lambda text: not text.startswith("#"))
_GRADES = st.one_of(st.integers(-5, 5).map(float), st.floats(-1e3, 1e3))


@pytest.mark.parametrize(
    "text",
    [
        "q 0 a 1\nq 0 b -2\nr 0 a 0.5\n",
        "q 0 a 1\nr 0 a 5e-1\nq 0 b -2",
        "\ufeffq\t0\ta\t+1\r\nq 0  b -2 \r\n\n r 0 a .5\r\n",
        "# c\nq 0 a 1\n  # q 0 a 1\nq 0 b -2.0\nr # a 0.50\n",
    ],
)
def test_judgements_are_read_in_any_layout(text: str) -> None:
    expected = {"q": {"a": 1.0, "b": -2.0}, "r": {"a": 0.5}}
    assert read_qrels(text.encode()) == expected


def test_control_characters_and_hashes_belong_to_ids() -> None:
    assert read_qrels(b"q\x1c 0 #a 1\n") == {"q\x1c": {"#a": 1.0}}
    assert read_qrels("q 0 a\u00a0b 1\n".encode()) == {"q": {"a\u00a0b": 1.0}}


def test_a_compressed_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "qrels"
    path.write_bytes(gzip.compress(b"q 0 a 1\n"))
    assert read_qrels(path) == {"q": {"a": 1.0}}


@pytest.mark.parametrize(
    ("bad", "line", "says"),
    [
        (b"q 0 a 1", 3, "document 'a' is judged twice, first in line 1"),
        (b"q 0 c", 3, "expected 4 columns, found 3; a line reads: query iteration "),
        (b"q 0 c 1 1", 3, "expected 4 columns, found 5"),
        (b"q 0 c\n1", 3, "expected 4 columns, found 3"),
        (b"q 0 c one", 3, "the grade must be a finite number, got 'one'"),
        (b"q 0 c nan", 3, "got 'nan'"),
        (b"q 0 c 1_0", 3, "got '1_0'"),
        (b"q 0 \xff 1", 3, "is not UTF-8"),
        (b"q 0 \0 1", 3, "a NUL byte"),
        (b"# x\nq 0 a 1", 4, "judged twice"),
    ],
)
def test_a_bad_line_is_named(bad: bytes, line: int, says: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_qrels(b"q 0 a 1\nq 0 b 1\n" + bad + b"\nr 0 a 1\n", "gold.qrels")
    assert caught.value.path == "gold.qrels"
    assert caught.value.line == line
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"), [(b"", "the file is empty"), (b"# \n", "only comments")]
)
def test_qrels_without_lines_are_refused(text: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        read_qrels(text)


def test_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        read_qrels(tmp_path / "qrels.txt")


@pytest.mark.slow
@given(
    st.dictionaries(_QUERIES, st.dictionaries(_IDS, _GRADES, min_size=1), min_size=1)
)
def test_judgements_survive_writing(labels: dict[str, dict[str, float]]) -> None:
    stream = io.BytesIO()
    TREC_QRELS.write_gold(Gold(labels), stream)
    assert read_qrels(stream.getvalue()) == labels


@pytest.mark.slow
@given(
    st.dictionaries(
        _QUERIES,
        st.dictionaries(
            _IDS, st.floats(allow_nan=False, allow_infinity=False), min_size=1
        ),
        min_size=1,
    )
)
def test_a_scored_run_survives_writing(rankings: dict[str, dict[str, float]]) -> None:
    stream = io.BytesIO()
    TREC_RUN.write_run(ScoredRun(rankings, "my system"), stream)
    run = TrecRun(stream.getvalue())
    back = {q: {d.id: d.score for d in docs} for q, docs in run.rankings(Policies())}
    assert back == rankings
    run.locate({}, judged=True, policies=Policies())
    assert run.provenance["tag"] == "my_system"


@pytest.mark.slow
@given(st.dictionaries(_QUERIES, st.lists(_IDS, min_size=1, unique=True), min_size=1))
def test_a_ranked_run_keeps_its_order(rankings: dict[str, list[str]]) -> None:
    stream = io.BytesIO()
    TREC_RUN.write_run(RankedRun(rankings), stream)
    back = TrecRun(stream.getvalue()).rankings(Policies())
    assert {query: [d.id for d in docs] for query, docs in back} == rankings


@pytest.mark.parametrize("name", ["a b", "", " a", "a\n", "a\0", "\ud800"])
def test_ids_that_no_line_can_hold_are_refused(name: str) -> None:
    with pytest.raises(FormatError, match="cannot hold the id"):
        TREC_QRELS.write_gold(Gold({"q": {name: 1.0}}), io.BytesIO())
    with pytest.raises(FormatError, match="cannot hold the id"):
        TREC_RUN.write_run(RankedRun({"q": [name]}), io.BytesIO())


def test_a_query_that_would_be_a_comment_is_refused() -> None:
    with pytest.raises(FormatError, match="cannot hold the id '#1'"):
        TREC_QRELS.write_gold(Gold({"#1": {"a": 1.0}}), io.BytesIO())


def test_a_document_without_an_id_is_refused() -> None:
    run = DocumentRun({"q": [Document(text="no id")]})
    with pytest.raises(FormatError, match="cannot hold the id None"):
        TREC_RUN.write_run(run, io.BytesIO())
