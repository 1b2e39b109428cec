"""A run in columns finds what a slow reading of the same rows finds."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import parquet

from karat.data.memory_runs import RankedRun, ScoredRun
from karat.data.runs import Located
from karat.extend import DataError, Duplicates, FormatError, Labels, Policies, Ties
from karat.reading import arrow as arrow_sources
from karat.reading.arrow import (
    ArrowRun,
    ParquetSource,
    TableSource,
    Tabular,
)
from karat.reading.columns import rankings as ranker, run as join
from karat.reading.columns.run import ColumnarRun

Row = tuple[str, str, float]

NUMBERS = ["7", "12", "-3", "40", "5"]
LONG = "a-rather-long-id-of-many-bytes"
WORDS = ["d1", "d10", "d2", "é", LONG, LONG + "x", "b" * 150, "b" * 149 + "a"]
TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
]
NUMBER_TYPES = [pa.int8(), pa.int32(), pa.int64(), pa.dictionary(pa.int8(), pa.int16())]
SCORE_TYPES = [
    pa.float64(),
    pa.float32(),
    pa.float16(),
    pa.int64(),
    pa.decimal128(22, 2),
]
SCORED = {"id": "q", "document": "d", "score": "s"}
RANKED = {"id": "q", "document": "d", "rank": "r"}


def arrow_run(table: Tabular, columns: Mapping[str, str] = SCORED) -> ColumnarRun:
    return ArrowRun(table, columns)


def array(values: list[Any], kind: Any) -> Any:
    if pa.types.is_dictionary(kind):
        return pa.array(values).cast(kind.value_type).dictionary_encode().cast(kind)
    if kind == pa.string_view():
        return pa.array(values, kind)
    if pa.types.is_floating(kind):
        return pa.array(np.array(values, f"f{kind.bit_width // 8}"), kind)
    return pa.array(values).cast(kind)


def expected(
    rows: list[Row], labels: Labels, policies: Policies, *, judged: bool = True
) -> dict[str, Any]:
    """The rule in words: sort each query's rows, treat repetitions, look up."""
    rankings: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        rankings[row[0]].append(row)
    found, retrieved = [], []
    for number, (query, wanted) in enumerate(labels.items()):
        ranking = rankings.get(query)
        if ranking is None:
            retrieved.append(-1)
            continue
        if policies.ties == "trec":
            ranking = sorted(ranking, key=lambda row: (row[2], row[1]), reverse=True)
        else:
            ranking = sorted(ranking, key=lambda row: -row[2])
        ids = [row[1] for row in ranking]
        if policies.duplicates == "collapse":
            ids = list(dict.fromkeys(ids))
        retrieved.append(len(ids))
        for rank, document in enumerate(ids, 1):
            once = policies.duplicates == "keep" or document not in ids[: rank - 1]
            if once and document in wanted and (judged or wanted[document] > 0):
                found.append((number, rank, wanted[document]))
    return {
        "rows": found,
        "retrieved": retrieved,
        "extra": len(rankings.keys() - labels.keys()),
        "ties": sum(
            _tied(ranking, labels[query])
            for query, ranking in rankings.items()
            if query in labels
        ),
        "duplicates": sum(
            count > 1 and labels[query].get(document, 0) > 0
            for query, ranking in rankings.items()
            if query in labels
            for document, count in Counter(row[1] for row in ranking).items()
        ),
    }


def _tied(ranking: list[Row], wanted: Mapping[str, float]) -> int:
    """Relevant documents whose best score is the best score of another."""
    best: dict[str, float] = {}
    for _, document, score in ranking:
        best[document] = max(score, best.get(document, score))
    counts = Counter(best.values())
    return sum(counts[s] > 1 and wanted.get(d, 0) > 0 for d, s in best.items())


def as_facts(located: Located) -> dict[str, Any]:
    counts = {notice.kind: notice.count for notice in located.notices}
    return {
        "rows": list(
            zip(
                located.query.tolist(),
                located.rank.tolist(),
                located.grade.tolist(),
                strict=True,
            )
        ),
        "retrieved": located.retrieved.tolist(),
        "extra": located.extra,
        "ties": counts.get("ties", 0),
        "duplicates": counts.get("duplicates", 0),
    }


@contextmanager
def read_in_pieces(batch: int, *, colliding: bool = False) -> Iterator[None]:
    """Batches of so few rows that every way of cutting a query occurs.

    With `colliding`, all rows have one key, so that only names can tell them apart.
    """
    with ExitStack() as stack:
        stack.enter_context(patch.object(arrow_sources, "_ROWS", batch))
        if colliding:
            for module in (ranker, join):
                stack.enter_context(patch.object(module, "pair_keys", _same_key))
        yield


def _same_key(documents: Any, query: Any) -> Any:
    del query
    return np.zeros_like(documents)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Row], Any, Labels]:
    """Rows of a run, the same as an Arrow table, and labels."""
    texts = draw(st.booleans())
    ids = WORDS if texts else NUMBERS
    queries = draw(st.sampled_from([WORDS, NUMBERS]))
    seed = draw(st.integers(0, 2**32))
    random = np.random.default_rng(seed)
    size = draw(st.integers(1, 60))
    asked = random.choice(queries, draw(st.integers(1, 4)))
    rows = [
        (
            str(random.choice(asked)),
            str(random.choice(ids)),
            float(random.integers(-2, 3)),
        )
        for _ in range(size)
    ]
    order = draw(st.sampled_from(["random", "query", "score"]))
    if order != "random":
        rows.sort(key=lambda r: (queries.index(r[0]), order == "score" and -r[2]))
    kinds = (
        TEXT_TYPES if queries is WORDS else [*TEXT_TYPES, *NUMBER_TYPES],
        TEXT_TYPES if texts else [*TEXT_TYPES, *NUMBER_TYPES],
        SCORE_TYPES,
    )
    columns = []
    for values, kind in zip(zip(*rows, strict=True), kinds, strict=True):
        chosen = draw(st.sampled_from(kind))
        number = pa.types.is_integer(getattr(chosen, "value_type", chosen))
        cells = [int(v) if number else v for v in values]
        columns.append(array(cells, chosen))
    table = pa.table(dict(zip("qds", columns, strict=True)))
    cut = draw(st.integers(0, len(rows)))
    table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    labels = {
        str(query): {
            str(document): float(random.integers(-1, 3))
            for document in random.permutation([*ids, "nowhere", "07"])[: size % 9]
        }
        for query in random.permutation([*queries, "absent"])[: size % 7 + 1]
    }
    return rows, table, labels


@pytest.mark.slow
@given(
    case=tables(),
    batch=st.integers(1, 12),
    duplicates=st.sampled_from(["first", "collapse", "keep"]),
    ties=st.sampled_from(["trec", "input"]),
    judged=st.booleans(),
    colliding=st.booleans(),
)
@settings(max_examples=400, deadline=None)
def test_labels_are_found_in_a_table_of_any_order_and_type_as_the_rule_says(
    case: tuple[list[Row], Any, Labels],
    batch: int,
    duplicates: Duplicates,
    ties: Ties,
    judged: bool,  # noqa: FBT001
    colliding: bool,  # noqa: FBT001
) -> None:
    rows, table, labels = case
    policies = Policies(duplicates=duplicates, ties=ties)
    with read_in_pieces(batch, colliding=colliding):
        run = arrow_run(TableSource(table))
        located = run.locate(labels, judged=judged, policies=policies)
    assert as_facts(located) == expected(rows, labels, policies, judged=judged)


@pytest.mark.slow
@given(case=tables(), group=st.integers(1, 20), batch=st.integers(1, 12))
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_parquet_file_of_any_row_groups_holds_what_the_table_held(
    case: tuple[list[Row], Any, Labels], group: int, batch: int, tmp_path: Path
) -> None:
    rows, table, labels = case
    if str(table.schema.field("s").type) == "halffloat":
        return
    file = str(tmp_path / "run.parquet")
    parquet.write_table(table, file, row_group_size=group)
    with read_in_pieces(batch):
        run = arrow_run(ParquetSource(file, [file]))
        located = run.locate(labels, judged=True, policies=Policies())
    assert as_facts(located) == expected(rows, labels, Policies())


@given(case=tables(), batch=st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_rankings_and_queries_are_those_of_the_rows(
    case: tuple[list[Row], Any, Labels], batch: int
) -> None:
    rows, table, _ = case
    with read_in_pieces(batch):
        run = arrow_run(TableSource(table))
        rankings = dict(run.rankings(Policies()))
        queries = run.queries()
    assert queries == list(rankings) == list(dict.fromkeys(row[0] for row in rows))
    for query, ranking in rankings.items():
        mine = sorted(((s, d) for q, d, s in rows if q == query), reverse=True)
        assert [(document.score, document.id) for document in ranking] == mine


@pytest.mark.slow
@given(case=tables())
@settings(max_examples=100, deadline=None)
def test_a_run_in_columns_equals_the_same_run_in_dictionaries(
    case: tuple[list[Row], Any, Labels],
) -> None:
    rows, _, labels = case
    scores: dict[str, dict[str, float]] = {}
    for query, document, score in rows:
        scores.setdefault(query, {})[document] = score
    flat = [(q, d, s) for q, r in scores.items() for d, s in r.items()]
    table = pa.table(dict(zip("qds", map(list, zip(*flat, strict=True)), strict=True)))
    one = arrow_run(TableSource(table))
    other = ScoredRun(scores)
    for policies in (Policies(), Policies(ties="input"), Policies(precision="single")):
        mine = one.locate(labels, judged=True, policies=policies)
        theirs = other.locate(labels, judged=True, policies=policies)
        for name in ("query", "rank", "grade", "retrieved"):
            assert getattr(mine, name).tolist() == getattr(theirs, name).tolist()
        assert mine.extra == theirs.extra


def run_of(layout: Mapping[str, str] = SCORED, **columns: Any) -> ColumnarRun:
    return arrow_run(TableSource(pa.table(columns)), layout)


def ranks(run: ColumnarRun, labels: Labels, **policies: str) -> list[int]:
    located = run.locate(labels, judged=True, policies=Policies(**policies))  # type: ignore[arg-type]
    return [int(rank) for rank in located.rank]


def test_without_a_score_the_rank_column_decides_and_without_both_the_row() -> None:
    columns: dict[str, Any] = {"q": ["q"] * 3, "d": ["a", "b", "c"], "r": [3, 1, 2]}
    labels = {"q": {"a": 1.0, "b": 1.0}}
    assert ranks(run_of(RANKED, **columns), labels) == [1, 3]
    assert ranks(run_of({"id": "q", "document": "d"}, **columns), labels) == [1, 2]


def test_ranks_of_an_unsigned_column_ascend_too() -> None:
    rank = pa.array([2, 0, 255], pa.uint8())
    run = run_of(RANKED, q=["q"] * 3, d=["a", "b", "c"], r=rank)
    assert ranks(run, {"q": {"a": 1.0, "c": 1.0}}) == [3, 256]


def test_scores_that_differ_only_in_double_precision_are_ties_in_single() -> None:
    run = run_of(q=["q", "q"], d=["a", "b"], s=[1.0 + 1e-12, 1.0])
    assert ranks(run, {"q": {"a": 1.0}}) == [1]
    assert ranks(run, {"q": {"a": 1.0}}, precision="single") == [2]


def test_large_integer_scores_are_compared_as_integers() -> None:
    run = run_of(q=["q", "q"], d=["a", "b"], s=[2**60, 2**60 + 1])
    assert ranks(run, {"q": {"b": 1.0}}) == [1]
    run = run_of(q=["q", "q"], d=["a", "b"], s=[-(2**63), 5])
    assert ranks(run, {"q": {"b": 1.0}}) == [1]


def test_one_and_the_text_one_are_one_id_but_a_leading_zero_makes_another() -> None:
    run = run_of(q=[1, 1], d=[7, 8], s=[2.0, 1.0])
    assert ranks(run, {"1": {"8": 1.0}}) == [2]
    assert ranks(run, {"1": {"08": 1.0}, "01": {"7": 1.0}}) == []


def test_numbers_beyond_64_bits_signed_are_told_from_negative_ones() -> None:
    run = run_of(q=["q"], d=pa.array([2**64 - 1], pa.uint64()), s=[1.0])
    assert ranks(run, {"q": {"-1": 1.0}}) == []
    assert ranks(run, {"q": {str(2**64 - 1): 1.0}}) == [1]


def test_ids_that_differ_only_in_a_nul_byte_are_different() -> None:
    run = run_of(q=["q", "q\0"], d=["a", "a\0"], s=[2.0, 1.0])
    assert run.queries() == ["q", "q\0"]
    assert ranks(run, {"q": {"a": 1.0}, "q\0": {"a": 1.0}}) == [1]


def test_a_table_shuffled_row_by_row_gives_the_same_ranks() -> None:
    random = np.random.default_rng(1)
    rows = [(f"q{q}", f"d{d}", -float(d)) for q in range(60) for d in range(80)]
    labels = {f"q{q}": {f"d{d}": 1.0 for d in range(q % 7, 80, 11)} for q in range(70)}
    tables = []
    for order in (np.arange(len(rows)), random.permutation(len(rows))):
        columns = zip(*(rows[at] for at in order), strict=True)
        tables.append(pa.table(dict(zip("qds", map(list, columns), strict=True))))
    one, other = (
        arrow_run(TableSource(table)).locate(labels, judged=True, policies=Policies())
        for table in tables
    )
    assert one.rank.tolist() == other.rank.tolist()
    assert as_facts(one) == expected(rows, labels, Policies())


def test_keeping_duplicates_says_which_label_each_row_has() -> None:
    run = run_of(q=["q"] * 3, d=["b", "a", "b"], s=[3.0, 2.0, 1.0])
    labels = {"p": {"x": 1.0}, "q": {"a": 1.0, "b": 2.0}}
    policies = Policies(duplicates="keep")
    located = run.locate(labels, judged=True, policies=policies)
    theirs = RankedRun({"q": ["b", "a", "b"]})
    assert located.item is not None
    assert located.item.tolist() == [2, 1, 2]
    assert located.rank.tolist() == [1, 2, 3]
    other = theirs.locate(labels, judged=True, policies=policies)
    assert other.item is not None
    assert other.item.tolist() == located.item.tolist()


def test_a_document_retrieved_twice_is_refused_where_policies_say_so() -> None:
    run = run_of(q=["p", "q", "q"], d=["a", "b", "b"], s=[3.0, 2.0, 1.0])
    with pytest.raises(DataError, match="'b' was retrieved more than once") as caught:
        ranks(run, {"q": {"a": 1.0}}, duplicates="error")
    assert caught.value.query == "q"
    assert ranks(run, {"p": {"a": 1.0}}, duplicates="error") == [1]


def test_notices_count_and_name_what_was_seen() -> None:
    run = run_of(q=["p", "q", "q", "q"], d=["a", "b", "b", "c"], s=[1.0] * 4)
    located = run.locate({"q": {"b": 1.0}}, judged=False, policies=Policies())
    seen = {notice.kind: notice for notice in located.notices}
    assert {kind: notice.count for kind, notice in seen.items()} == {
        "ties": 1,
        "duplicates": 1,
        "extra": 1,
    }
    assert seen["ties"].examples == ("q",)
    assert seen["extra"].examples == ("p",)


@pytest.mark.parametrize("duplicates", ["first", "keep", "collapse"])
def test_ties_are_of_relevant_documents_with_others(duplicates: Duplicates) -> None:
    documents, scores = ["a", "a", "b", "c", "d", "e"], [5.0, 5.0, 4.0, 3.0, 3.0, 3.0]
    run = run_of(q=["q"] * 6, d=documents, s=scores)
    labels = {"q": {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.0, "e": 2.0}}
    policies = Policies(duplicates=duplicates)
    located = run.locate(labels, judged=True, policies=policies)
    counts = {notice.kind: notice.count for notice in located.notices}
    assert counts == {"ties": 2, "duplicates": 1}


def test_looking_for_ids_anywhere_ignores_the_query() -> None:
    run = run_of(q=["p", "q"], d=["a", "b"], s=[1.0, 1.0])
    assert run.holds_any({"b", "z"})
    assert not run.holds_any({"z"})
    assert run.sample_ids() == ["a", "b"]


@pytest.mark.parametrize("kind", TEXT_TYPES)
def test_documents_have_their_texts_where_a_column_holds_them(kind: Any) -> None:
    layout = {**SCORED, "text": "t"}
    texts = pa.chunked_array([array(["one", None, "three"], kind)])
    run = run_of(layout, q=["q"] * 3, d=["a", "b", "c"], s=[3.0, 2.0, 1.0], t=texts)
    ((_, documents),) = run.rankings(Policies())
    assert [document.text for document in documents] == ["one", "", "three"]


@pytest.mark.parametrize(
    ("column", "cells", "problem"),
    [
        ("q", ["p", None, "q"], "column 'q', row 2: the cell is empty"),
        ("d", ["a", "b", None], "column 'd', row 3: the cell is empty"),
        ("d", ["a", "", "c"], "column 'd', row 2: the id is empty"),
        ("q", pa.array(["a", "", "c"]).dictionary_encode(), "row 2: the id is empty"),
        ("d", [1.0, 2.0, 3.0], "column 'd': ids must be texts or whole numbers"),
        ("s", [1.0, None, 3.0], "column 's', row 2: the cell is empty"),
        ("s", [1.0, 2.0, float("nan")], "column 's', row 3: must be a finite number"),
        ("s", [float("-inf"), 2.0, 1.0], "column 's', row 1: must be a finite number"),
        ("s", ["x", "y", "z"], "column 's': must hold numbers, these are string"),
    ],
)
def test_a_cell_that_cannot_be_scored_is_named(
    column: str, cells: Any, problem: str
) -> None:
    columns: dict[str, Any] = {"q": ["q"] * 3, "d": ["a", "b", "c"], "s": [3, 2, 1]}
    table = pa.table(columns | {column: cells})
    with read_in_pieces(1), pytest.raises(FormatError) as caught:
        ranks(arrow_run(TableSource(table, "run.arrow")), {"q": {"a": 1.0}})
    assert str(caught.value).startswith("run.arrow: ")
    assert problem in str(caught.value)


def test_what_lies_beneath_an_empty_cell_is_not_read() -> None:
    """Arrow's validation passes it over, and its cast would end the process."""
    views = np.array([1, ord("a"), 0, 0, -65536, 0, 0, 0], np.int32).tobytes()
    buffers = [pa.py_buffer(b"\x01"), pa.py_buffer(views)]
    ids = pa.Array.from_buffers(pa.string_view(), 2, buffers)
    table = pa.table({"q": ["q", "q"], "d": ids, "s": [1, 2]})
    with pytest.raises(FormatError, match="column 'd', row 2: the cell is empty"):
        ranks(arrow_run(TableSource(table)), {"q": {"a": 1.0}})
    texts = pa.table({"q": ["q", "q"], "d": ["a", "b"], "s": [2, 1], "t": ids})
    columns = {**SCORED, "text": "t"}
    (ranking,) = dict(
        arrow_run(TableSource(texts), columns).rankings(Policies())
    ).values()
    assert [document.text for document in ranking] == ["a", ""]


def test_nulls_hidden_in_a_dictionary_are_found() -> None:
    ids = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    with pytest.raises(FormatError, match="column 'd', row 2: the cell is empty"):
        ranks(run_of(q=["q", "q"], d=ids, s=[1, 2]), {"q": {"a": 1.0}})


def test_a_dictionary_that_lists_a_value_twice_is_one_query() -> None:
    ids = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["q", "q"]))
    run = run_of(q=ids, d=["a", "b", "c"], s=[3, 2, 1])
    assert run.queries() == ["q"]
    assert ranks(run, {"q": {"c": 1.0}}) == [3]
