"""TREC runs: what is tolerated, what is refused and how, what is counted."""

import gzip
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from karat.data.runs import Located
from karat.extend import Duplicates, FormatError, Labels, Policies, Precision
from karat.reading.columns.ids import ByteColumn, Keys
from karat.reading.trec import TrecRun

ANY = Policies()
BLOCKS = [1, 40, 1 << 20]


def locate(text: bytes, labels: Labels, policies: Policies = ANY) -> Located:
    return TrecRun(text).locate(labels, judged=True, policies=policies)


def refusal(run: TrecRun, policies: Policies = ANY) -> FormatError:
    with pytest.raises(FormatError) as caught:
        run.locate({"q": {"a": 1.0}}, judged=True, policies=policies)
    return caught.value


def line(query: str = "q", document: str = "a", score: object = 1.0) -> str:
    return f"{query} Q0 {document} 0 {score} tag\n"


def test_the_rank_comes_from_the_scores_not_from_the_rank_column() -> None:
    found = locate(b"q Q0 a 1 0.1 t\nq Q0 b 2 0.9 t\n", {"q": {"a": 1.0, "b": 2.0}})
    assert found.rank.tolist() == [1, 2]
    assert found.grade.tolist() == [2.0, 1.0]


def test_equal_scores_are_ordered_by_document_id_descending_in_bytes() -> None:
    text = "".join(line(document=d) for d in ("a", "é", "Z", "b", "aa", "z"))
    labels = {"q": {d: float(i) for i, d in enumerate(("é", "z", "b", "aa", "a", "Z"))}}
    assert locate(text.encode(), labels).grade.tolist() == [0, 1, 2, 3, 4, 5]


def test_equal_scores_may_keep_the_input_order() -> None:
    text = "".join(line(document=d) for d in "bca").encode()
    labels = {"q": {"a": 1.0, "b": 2.0, "c": 3.0}}
    found = locate(text, labels, Policies(ties="input"))
    assert found.grade.tolist() == [2.0, 3.0, 1.0]


def test_ties_among_long_ids_are_settled_beyond_any_common_start() -> None:
    names = ["x" * size + end for size in (7, 8, 9, 64, 300) for end in ("1", "2")]
    text = "".join(line(document=d) for d in names).encode()
    labels = {"q": dict.fromkeys(names, 1.0)}
    run = TrecRun(text)
    order = [str(d.id) for _, docs in run.rankings(ANY) for d in docs]
    assert order == sorted(names, reverse=True)
    for rank, name in enumerate(order, 1):
        assert locate(text, {"q": {name: 1.0}}).rank.tolist() == [rank]
    assert locate(text, labels).rank.tolist() == list(range(1, 11))


@pytest.mark.parametrize(("precision", "rank"), [("double", 1), ("single", 2)])
def test_near_ties_are_ties_in_single_precision(
    precision: Precision, rank: int
) -> None:
    text = (line("q", "a", "1.000000002") + line("q", "z", "1.000000001")).encode()
    found = locate(text, {"q": {"a": 1.0}}, Policies(precision=precision))
    assert found.rank.tolist() == [rank]
    assert [n.kind for n in found.notices] == (["ties"] if rank == 2 else [])


def test_scores_beyond_single_precision_are_ties_there() -> None:
    text = (line("q", "a", "2e39") + line("q", "z", "1e39")).encode()
    assert locate(text, {"q": {"a": 1.0}}).rank.tolist() == [1]
    found = locate(text, {"q": {"a": 1.0}}, Policies(precision="single"))
    assert found.rank.tolist() == [2]


@pytest.mark.parametrize(
    "text",
    [
        "q\tQ0\ta\t1\t  2.5\tt\n",
        "  q   Q0 a 1 2.5 t  \n",
        "q Q0 a 1 2.5 t\r\nq Q0 b 2 1.5 t\r\n",
        "\n\n# q Q0 x 1 9.9 t\nq Q0 a 1 2.5 t\n\n  # end\n",
        "q Q0 a 1 2.5 t",
        "\ufeffq Q0 a 1 2.5 t\n",
        "q Q0 a 1 2.5 t more junk at the end\n",
        "q Q0 a 1 2.5 t \x1e\n",
        "q Q0 a 1 2.5e0 t\nq Q0 #b 2 -1e-300 t\n",
    ],
)
@pytest.mark.parametrize("block", BLOCKS)
def test_odd_but_clear_layouts_are_read(text: str, block: int) -> None:
    run = TrecRun(text.encode(), block=block)
    found = run.locate({"q": {"a": 1.0}}, judged=False, policies=ANY)
    assert found.rank.tolist() == [1]
    assert run.provenance["tag"] == "t"


def test_text_behind_the_tag_is_ignored_and_counted() -> None:
    found = locate(b"q Q0 a 1 2 t x\nq Q0 b 1 1 t\n", {"q": {"a": 1.0}})
    assert [(n.kind, n.count) for n in found.notices] == [("columns", 1)]


def test_a_hash_inside_a_line_is_no_comment() -> None:
    found = locate(b"q Q0 #a 1 2 t\nq# Q0 a 1 1 #t\n", {"q": {"#a": 1}, "q#": {"a": 1}})
    assert found.query.tolist() == [0, 1]


def test_the_tag_is_that_of_the_last_line_with_content() -> None:
    run = TrecRun(b"q Q0 a 1 2 first\nq Q0 b 1 1 last\n# end\n\n")
    run.locate({}, judged=True, policies=ANY)
    assert run.provenance["tag"] == "last"


def test_missing_and_extra_queries_are_counted() -> None:
    text = "".join(line(query=q) for q in ("q", "x1", "x2", "x3", "x4")).encode()
    found = locate(text, {"q": {"b": 1.0}, "absent": {"a": 1.0}})
    assert found.retrieved.tolist() == [1, -1]
    assert found.extra == 4
    assert found.notices[0].kind == "extra"
    assert found.notices[0].examples == ("x1", "x2", "x3")


def test_only_relevant_documents_are_rows_unless_judged_ones_are_asked_for() -> None:
    text = "".join(line(document=d, score=s) for d, s in zip("abc", "321", strict=True))
    labels = {"q": {"a": 0.0, "b": 1.0, "c": -1.0}}
    run = TrecRun(text.encode())
    assert run.locate(labels, judged=False, policies=ANY).rank.tolist() == [2]
    assert run.locate(labels, judged=True, policies=ANY).rank.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("duplicates", "ranks", "retrieved"),
    [("first", [1, 4], 4), ("collapse", [1, 3], 3), ("keep", [1, 3, 4], 4)],
)
@pytest.mark.parametrize("block", BLOCKS)
def test_a_document_listed_twice(
    duplicates: Duplicates, ranks: list[int], retrieved: int, block: int
) -> None:
    scores = [("a", 9), ("b", 8), ("a", 7), ("c", 6)]
    text = "".join(line(document=d, score=s) for d, s in reversed(scores)).encode()
    run = TrecRun(text, block=block)
    policies = Policies(duplicates=duplicates)
    found = run.locate({"q": {"a": 1.0, "c": 1.0}}, judged=True, policies=policies)
    assert found.rank.tolist() == ranks
    assert found.retrieved.tolist() == [retrieved]
    assert [(n.kind, n.count, n.examples) for n in found.notices] == [
        ("duplicates", 1, ("q",))
    ]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("apart", [False, True])
def test_a_document_listed_twice_can_be_refused(block: int, apart: bool) -> None:  # noqa: FBT001
    lines = [line(document=d, score=3) for d in ("a", "b", "a")]
    lines.insert(1, line(query="q" if not apart else "other", document="c"))
    run = TrecRun("".join(lines).encode(), path="my.run", block=block)
    error = refusal(run, Policies(duplicates="error"))
    assert (error.path, error.line, error.query) == ("my.run", 4, "q")
    assert "'a' is listed twice, first in line 1" in str(error)


def test_duplicates_of_a_query_without_labels_do_not_matter() -> None:
    text = (line() + line("x", "d") + line("x", "d")).encode()
    found = locate(text, {"q": {"a": 1.0}}, Policies(duplicates="error"))
    assert found.rank.tolist() == [1]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b"q Q0 d 1 nan t", "the score must be a finite number, got 'nan'"),
        (b"q Q0 d 1 inf t", "got 'inf'"),
        (b"q Q0 d 1 1e999 t", "got '1e999'"),
        (b"q Q0 d 1 1_0 t", "got '1_0'"),
        (b"q Q0 d 1 high t", "got 'high'"),
        (b"q Q0 d 1 1.2.3 t", "got '1.2.3'"),
        (b"q Q0 d 1 - t", "got '-'"),
        (b"q Q0 d 1 0x1p3 t", "got '0x1p3'"),
        ("q Q0 d 1 \u0661 t".encode(), "got '\u0661'"),
        (b"q Q0 d 1 2.0", "expected 6 columns, found 5; a line reads: query Q0 "),
        (b"q", "expected 6 columns, found 1"),
        (b"q Q0 d\xff 1 2.0 t", "byte 0xff at 7 is not UTF-8"),
        (b"q Q0 d\0 1 2.0 t", "a NUL byte"),
        (b"# \xff", "is not UTF-8"),
    ],
)
@pytest.mark.parametrize("block", BLOCKS)
def test_a_bad_line_is_named(bad: bytes, says: str, block: int) -> None:
    good = "".join(line(query=f"q{i}") for i in range(20)).encode()
    run = TrecRun(good + b"# note\n" + bad + b"\n" + good, path="f.run", block=block)
    error = refusal(run)
    assert error.path == "f.run"
    assert error.line == 22
    assert str(error).startswith("f.run:22: ")
    assert says in str(error)


def test_a_bad_score_is_named_when_queries_are_scattered() -> None:
    lines = [line(query=q, document=str(i)) for i in range(50) for q in "qrs"]
    lines[100] = line(query="r", score="oops")
    error = refusal(TrecRun("".join(lines).encode(), block=300))
    assert (error.line, error.query) == (101, "r")


def test_a_line_of_a_million_columns_is_refused() -> None:
    error = refusal(TrecRun(line().encode() + b"1 " * 1_000_000 + b"\n"))
    assert error.line == 2
    assert "found 1,000,000" in str(error)


def test_a_line_without_an_end_is_refused() -> None:
    error = refusal(TrecRun(line().encode() + b"x" * ((1 << 24) + 10), block=1 << 22))
    assert error.line == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"# nothing\n", "there are only comments"),
        (b"\xef\xbb\xbf", "the file is empty"),
    ],
)
def test_a_run_without_lines_is_refused(text: bytes, says: str) -> None:
    assert says in str(refusal(TrecRun(text, path="e.run")))


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.run").write_text(line())
    assert "mine.run'?" in str(refusal(TrecRun(tmp_path / "mini.run")))
    assert "is a folder" in str(refusal(TrecRun(tmp_path)))


def test_a_query_may_fill_many_blocks() -> None:
    names = [f"d{i}" for i in range(500)]
    text = "".join(line(document=d, score=-i) for i, d in enumerate(names))
    text = line("p") + text + line("r")
    run = TrecRun(text.encode(), block=64)
    found = run.locate({"q": {"d499": 1.0}}, judged=True, policies=ANY)
    assert found.rank.tolist() == [500]
    assert found.retrieved.tolist() == [500]
    assert found.extra == 2


def test_a_compressed_file_is_read_and_a_truncated_one_refused(tmp_path: Path) -> None:
    packed = gzip.compress("".join(line(query=str(i)) for i in range(9999)).encode())
    path = tmp_path / "any.name"
    path.write_bytes(packed + gzip.compress(line().encode()))
    found = TrecRun(path).locate({"q": {"a": 1.0}}, judged=True, policies=ANY)
    assert found.extra == 9999
    assert found.rank.tolist() == [1]
    path.write_bytes(packed[:-20])
    error = refusal(TrecRun(path))
    assert error.path == str(path)
    assert "broken gzip" in str(error)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_read_once_and_may_be_asked_again(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = "".join(line(query=q, document=d) for d in "abc" for q in "qr") * 2
    writer = threading.Thread(target=pipe.write_bytes, args=(text.encode(),))
    writer.start()
    run = TrecRun(pipe, block=30)
    found = run.locate({"q": {"a": 1.0}}, judged=True, policies=ANY)
    writer.join()
    assert found.retrieved.tolist() == [6]
    assert run.queries() == ["q", "r"]


def test_equal_hashes_of_different_ids_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = ByteColumn.keys

    def poor(self: ByteColumn) -> Keys:
        return keys(self) % np.uint64(3)

    monkeypatch.setattr(ByteColumn, "keys", poor)
    names = [f"a-document-{i}" for i in range(40)]
    queries = [f"a-rather-long-query-{i}" for i in range(4)]
    text = "".join(line(q, d, -i) for q in queries for i, d in enumerate(names))
    labels = {q: dict.fromkeys(names[i::4], 1.0) for i, q in enumerate(queries)}
    labels["absent"] = dict.fromkeys(names, 1.0)
    for block in (100, 1 << 20):
        run = TrecRun(text.encode(), block=block)
        found = run.locate(labels, judged=True, policies=Policies(duplicates="error"))
        expected = [rank for i in range(4) for rank in range(i + 1, 41, 4)]
        assert found.rank.tolist() == expected
        assert not run.holds_any({"another-document"})
