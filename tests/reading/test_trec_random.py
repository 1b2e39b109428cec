"""Random TREC files, read in blocks of any size, against a line-by-line reference."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from karat.extend import Policies
from karat.reading.trec import TrecRun
from tests.reading.trec_reference import lines, ranking, reference

_LETTERS = st.characters(codec="utf-8", exclude_characters=" \t\n\v\f\r\0")
_DOCUMENTS = st.one_of(
    st.sampled_from(["d1", "d2", "d3", "a", "z", "é", "#x", "B", "b"]),
    st.integers(0, 30).map(lambda i: f"document-{i:07}"),
    st.integers(0, 9).map(lambda i: "long-" * 30 + str(i)),
    st.text(_LETTERS, min_size=1),
)
_QUERIES = st.one_of(
    st.sampled_from(["q1", "q2", "10", "a-very-long-query-id", "a-very-long-query"]),
    st.text("ab", min_size=1, max_size=3),
)
_SCORES = st.one_of(
    st.sampled_from(["1", "1.0", "2", "-1.5E+3", "1e-5", "+1.5", ".5", "5.", "-0"]),
    st.sampled_from(["1.00000000001", "1.00000000002", "1.000000000000000000001"]),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.4f}"),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)
_POLICIES = st.builds(
    Policies,
    duplicates=st.sampled_from(["first", "collapse", "keep"]),
    ties=st.sampled_from(["trec", "input"]),
    precision=st.sampled_from(["double", "single"]),
)


@st.composite
def runs(draw: st.DrawFn) -> bytes:
    """A run, more or less tidy, its queries together or not."""
    tidy = draw(st.booleans())
    queries = draw(st.lists(_QUERIES, min_size=1, max_size=15))
    if draw(st.booleans()):
        queries.sort()
    text = ""
    for query in queries:
        tag = draw(st.sampled_from("tuv"))
        words = [query, "Q0", draw(_DOCUMENTS), "1", draw(_SCORES), tag]
        gap, start, end = " ", "", "\n"
        if not tidy:
            gap = draw(st.sampled_from([" ", "\t", "  ", " \t "]))
            start = draw(st.sampled_from(["", "", " ", "# a b c d e\n", " #\n\n"]))
            end = draw(st.sampled_from(["\n", "\r\n", " \n", "\n\n", " remark\n"]))
        text += start + gap.join(words) + end
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


@st.composite
def labelled_runs(draw: st.DrawFn) -> tuple[bytes, dict[str, dict[str, float]]]:
    """A run, and labels for some of its documents and some others."""
    text = draw(runs())
    pairs = [(words[0].decode(), words[2].decode()) for words in lines(text)]
    labels: dict[str, dict[str, float]] = {}
    for query, document in draw(st.lists(st.sampled_from(pairs))):
        labels.setdefault(query, {})[document] = draw(st.sampled_from([-1.0, 0.0, 1.0]))
    for query, document in draw(st.lists(st.tuples(_QUERIES, _DOCUMENTS), max_size=4)):
        labels.setdefault(query, {})[document] = draw(st.sampled_from([0.0, 0.5, 2.0]))
    return text, labels


@pytest.mark.slow
@given(labelled_runs(), st.booleans(), _POLICIES, st.integers(1, 400))
def test_any_run_is_located_as_the_reference_does(
    case: tuple[bytes, dict[str, dict[str, float]]],
    judged: bool,  # noqa: FBT001
    policies: Policies,
    block: int,
) -> None:
    text, labels = case
    run = TrecRun(text, block=block)

    found = run.locate(labels, judged=judged, policies=policies)

    expected = reference(text, labels, judged=judged, policies=policies)
    rows = zip(
        found.query.tolist(), found.rank.tolist(), found.grade.tolist(), strict=True
    )
    assert list(rows) == expected.rows
    assert found.retrieved.tolist() == expected.retrieved
    assert found.extra == len(expected.extra)
    assert run.provenance["tag"] == expected.tag
    notices = {notice.kind: notice for notice in found.notices}
    counts = {kind: notice.count for kind, notice in notices.items()}
    assert counts.get("ties", 0) == sum(expected.ties.values())
    assert counts.get("duplicates", 0) == sum(expected.duplicates.values())
    assert counts.get("extra", 0) == len(expected.extra)
    assert set(notices["extra"].examples if found.extra else ()) <= expected.extra


@pytest.mark.slow
@given(labelled_runs(), st.integers(1, 400))
def test_kept_duplicates_share_the_item_of_their_label(
    case: tuple[bytes, dict[str, dict[str, float]]], block: int
) -> None:
    text, labels = case
    policies = Policies(duplicates="keep")
    found = TrecRun(text, block=block).locate(labels, judged=True, policies=policies)

    names = [(query, name) for query, wanted in labels.items() for name in wanted]
    order = ranking(text, policies)
    queries = list(labels)
    assert found.item is not None
    for query, rank, item in zip(found.query, found.rank, found.item, strict=True):
        assert names[item] == (queries[query], order[queries[query]][rank - 1][1])


@given(runs(), _POLICIES, st.integers(1, 400))
def test_rankings_and_queries_are_those_of_the_reference(
    text: bytes, policies: Policies, block: int
) -> None:
    run = TrecRun(text, block=block)

    got = {query: [d.id for d in docs] for query, docs in run.rankings(policies)}

    expected = {
        query: [document for _, document in pairs]
        for query, pairs in ranking(text, policies).items()
    }
    if policies.duplicates == "collapse":
        expected = {query: [*dict.fromkeys(ids)] for query, ids in expected.items()}
    assert got == expected
    assert run.queries() == list(expected)
    documents = {document for ids in expected.values() for document in ids}
    assert run.holds_any(documents)
    assert not run.holds_any({name + "~" for name in documents} - documents)
    assert set(run.sample_ids()) <= documents


@given(runs(), st.integers(1, 400))
def test_without_labels_every_query_is_extra(text: bytes, block: int) -> None:
    found = TrecRun(text, block=block).locate({}, judged=True, policies=Policies())

    assert found.extra == len({words[0] for words in lines(text)})
    assert found.rank.tolist() == []
    assert found.retrieved.dtype == np.int64
