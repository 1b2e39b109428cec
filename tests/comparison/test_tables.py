"""What a comparison shows, to the letter."""

import pytest

from karat import Comparison, compare, evaluate
from karat.extend import Query

QUERIES = {
    f"q{n:02}": Query(f"q{n:02}", f"What is {n}?", tags=("odd" if n % 2 else "even",))
    for n in range(20)
}
GOLD = {query: ["a", "b"] for query in QUERIES}
OLD = {query: ["x", "a", "y", "b"] for query in QUERIES}
UP = {query: ["a", "x", "b"] for query in QUERIES} | {"q03": ["x", "y", "b"]}
DOWN = {query: ["x", "a", "y"] for query in QUERIES} | {"q18": ["a"], "q19": ["a"]}


@pytest.fixture(scope="module")
def both() -> Comparison:
    return compare(
        *(OLD, {"up": UP, "down": DOWN}),
        gold=GOLD,
        metrics=["rr", "recall@3"],
        queries=QUERIES,
        by_tag=True,
    )


def test_a_row_per_metric_and_candidate(both: Comparison) -> None:
    table = both.summary()
    assert table.title == (
        "up, down compared with baseline: 20 queries; better on 2 (rr of up, recall@3 "
        "of up), undecided on 1, equal on 1"
    )
    assert [row[:6] for row in table.rows] == [
        ["rr up", "better", "0.5000", "0.9667", "+0.4667 (+.405 to +.571)", "0.0002"],
        ["rr down", "undecided", "0.5000", "0.5500", *_UNDECIDED],
        ["recall@3 up", "better", "0.5000", "0.9750", *_BETTER],
        ["recall@3 down", "equal", "0.5000", "0.5000", *_EQUAL],
    ]
    assert [row[6:] for row in table.rows] == [
        *(["20", "19/0/1"], ["20", "2/18/0"], ["20", "19/1/0"], ["20", "0/20/0"])
    ]
    up, up_at_3, down, down_at_3, open_question, method = table.notes
    assert up == (
        "up: in the whole ranking: ranking improvement: 1 relevant items "
        "no longer retrieved, 0 newly found, the first relevant item rose from rank 2 "
        "to 1 (median) on 19 queries"
    )
    assert up_at_3 == (
        "up: at depth 3: ranking improvement: 1 relevant items no longer retrieved, "
        "20 newly found (in the whole ranking 1 and 0), the first relevant item rose "
        "from rank 2 to 1 (median) on 19 queries"
    )
    assert down == (
        "down: in the whole ranking: coverage regression: 20 relevant "
        "items no longer retrieved, 0 newly found"
    )
    assert down_at_3 == (
        "down: at depth 3: coverage regression: 0 relevant items no longer retrieved, "
        "0 newly found (in the whole ranking 20 and 0)"
    )
    assert open_question == "rr down: about 60 more queries would settle it"
    assert method == (
        "paired sign-flip test of the mean difference, level 0.05; p and intervals "
        "corrected for 2 comparisons (MaxT); n = 20; gold: gold"
    )


_UNDECIDED = ("+0.0500 (-.165 to +.251)", "0.5621")
_BETTER = ("+0.4750 (+.417 to +.585)", "0.0002")
_EQUAL = ("+0.0000 (-.198 to +.198)", "1.0000")


def test_headroom_and_tags_have_tables_of_their_own(both: Comparison) -> None:
    _, headroom, slices, _ = both.tables()
    assert headroom.rows == [
        ["baseline", "0.6509", "0.3491", "0.0000"],
        ["up", "0.8891", "0.0916", "0.0193"],
        ["down", "0.4095", "0.2037", "0.3869"],
    ]
    assert [(row[0], row[3], *row[5:]) for row in slices.rows] == [
        ("even rr", "1.0000", "0.0039", "10", "10/0/0"),
        ("even recall@3", "1.0000", "0.0039", "10", "10/0/0"),
        ("odd rr", "0.9333", "0.0039", "10", "9/0/1"),
        ("odd recall@3", "0.9500", "0.0039", "10", "9/1/0"),
    ]
    assert slices.notes[0].startswith("up v baseline; p is corrected")
    same = compare(OLD, OLD, gold=GOLD, metrics="rr")
    assert same.slice_table() is None
    assert [table.title for table in same.tables()] == [
        "candidate compared with baseline: 20 queries; equal on 1",
        "headroom: parts sum to 1",
    ]


def test_a_change_counts_items_and_first_ranks(both: Comparison) -> None:
    up, down = both.changes["up"], both.changes["down"]
    assert (up.gained, up.lost, up.first_up, up.first_down) == (0, 1, 19, 1)
    assert (down.gained, down.lost, down.first_up, down.first_down) == (0, 20, 2, 0)
    assert down.by_coverage[0] == pytest.approx(-0.264068, abs=1e-6)
    assert down.by_ranking[0] == pytest.approx(0.022629, abs=1e-6)
    back = compare(UP, OLD, gold=GOLD, metrics="rr").changes["candidate"]
    assert (back.gained, back.lost, back.first_ranks) == (1, 0, (1, 2))
    assert back.sentence == (
        "in the whole ranking: ranking regression: 0 relevant items no longer "
        "retrieved, 1 newly found, the first relevant item slipped from rank 1 to 2 "
        "(median) on 19 queries"
    )


def test_queries_that_changed_show_the_ranks_of_their_gold() -> None:
    long = "z-document-whose-name-is-long"
    names = [long, *"bcdef"]
    gold = {"q1": names, "q2": ["a"], "q3": ["a"], "q4": ["a"]}
    old = {"q1": names, "q2": ["x", "a"], "q3": ["x", "y", "a"], "q4": ["a"]}
    new = {"q1": ["x", *names[:4], "f"], "q2": ["a"], "q3": ["a"], "q4": ["a"]}
    asked = {"q1": f"Which {'very ' * 20}long names are there?", "q2": "What is a?"}
    found = compare(old, new, gold=gold, metrics="rr", queries=asked)
    assert [(m.query, m.difference) for m in found.movers] == [
        ("q3", pytest.approx(2 / 3)),
        ("q1", -0.5),
        ("q2", 0.5),
    ]
    table = found.movers_table()
    assert table.title == "queries that changed most by rr, losses first"
    assert table.columns == ["query", "text", "before", "after", "change", "ranks"]
    assert table.rows == [
        [
            *("q1", asked["q1"][:60], "1.0000", "0.5000", "-0.5000"),
            "z-document-whose-name-is 1→2, b 2→3, c 3→4, d 4→5, 1 more",
        ],
        ["q2", "What is a?", "0.5000", "1.0000", "+0.5000", "a 2→1"],
        ["q3", "", "0.3333", "1.0000", "+0.6667", "a 3→1"],
    ]
    lost = {**new, "q3": ["x"]}
    several = compare(old, {"new": new, "lost": lost}, gold=gold, metrics="rr")
    first, *_, last = several.movers_table().rows
    assert first == ["q1", "new", *table.rows[0][2:]]
    assert last == ["q3", "new", *table.rows[2][2:]]
    ranks = {(row[0], row[1]): row[-1] for row in several.movers_table().rows}
    assert ranks["q3", "lost"] == "a 3\N{RIGHTWARDS ARROW}\N{EN DASH}"


def test_limits_of_ten_and_more_keep_their_digits() -> None:
    gold = {f"q{n}": ["a"] for n in range(20)}
    old = {query: ["a"] for query in gold}
    new = {q: ["a", *map(str, range(20 + n))] for n, q in enumerate(gold)}
    (row,) = compare(old, new, gold=gold, metrics="num_ret").summary().rows
    assert row[4].startswith("+29.5000 (+2")


def test_more_than_a_few_names_are_counted() -> None:
    runs = {f"run {n}": UP for n in range(6)}
    found = compare(OLD, runs, gold=GOLD, metrics="rr")
    assert found.summary().title == (
        "6 runs compared with baseline: 20 queries; better on 6 (rr of run 0, rr of "
        "run 1, rr of run 2, rr of run 3, rr of run 4, 1 more)"
    )
    few = compare(OLD, {f"run {n}": UP for n in range(5)}, gold=GOLD, metrics="rr")
    assert few.summary().title.startswith("run 0, run 1, run 2, run 3, run 4 compared")
    assert few.headline.endswith("rr of run 4)")


def test_texts_stand_to_the_left_and_numbers_to_the_right(both: Comparison) -> None:
    _, headroom, slices, _ = both.tables()
    assert (both.plan().texts, headroom.texts, slices.texts) == ((0,), (0,), (0, 1))
    assert (both.summary().texts, both.summary().spare, slices.spare) == ((0, 1), 2, 3)
    assert [*both.movers_table().texts] == [0, 1, 2, 6]
    assert both.movers_table().links[:1] == [("q", both.movers_table().rows[0][0])]


def test_a_plan_is_for_a_difference_of_two_hundredths(both: Comparison) -> None:
    assert both.plan() == both.plan(0.02)
    assert [row[0] for row in both.plan().rows][:2] == ["rr up", "rr down"]
    same = compare(OLD, OLD, gold=GOLD, metrics="rr")
    assert same.plan().rows == [["rr", "0.0000", "20", "10"]]


def test_of_many_changed_queries_the_table_says_how_many_there_are() -> None:
    gold = {f"q{n}": ["a"] for n in range(30)}
    runs = [{q: [*order] for q in gold} for order in ("xa", "ax")]
    old, new = (evaluate(r, gold=gold, metrics=["rr", "hit@5"]) for r in runs)
    title = compare(old, new).movers_table().title
    assert title.endswith("by rr, losses first: 10 of 30; -o FILE.html has all")
