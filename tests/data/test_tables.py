"""Tables: they fit, they align, and no cell can break out of them."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, strategies as st

from karat.data.tables import DASH, Table, amount, clean, counted, number

HOSTILE = "\x1b[2J<script>|`*_[x](y)\r\n\u202e"
WIDE = Table(
    ["run", *(f"metric@{k}" for k in range(1, 9))],
    [[f"system {row}", *(f"0.{row}{k:03}" for k in range(8))] for row in range(3)],
    title="a title",
    notes=["a note " + "with many words " * 12],
)


def test_numbers_stand_to_the_right_and_the_first_column_to_the_left() -> None:
    table = Table(["metric", "n"], [["rr", "7"], ["recall@5", "12"]], title="t")
    assert table.as_text() == "t\n\nmetric     n\nrr         7\nrecall@5  12"
    assert table.width == len("recall@5  12")


def test_wide_characters_take_two_places() -> None:
    table = Table(["run", "n"], [["東京", "1"], ["abcd", "2"], ["e\u0301tat", "3"]])
    assert table.as_text().splitlines()[1:] == ["東京  1", "abcd  2", "e\u0301tat  3"]


@given(st.integers(24, 120))
def test_a_table_too_wide_is_folded_and_loses_nothing(width: int) -> None:
    parts = WIDE.folded(width)
    assert all(part.width <= width for part in parts)
    assert all(part.columns[0] == "run" for part in parts)
    columns = [name for part in parts for name in part.columns[1:]]
    assert columns == WIDE.columns[1:]
    for row, cells in enumerate(WIDE.rows):
        assert [c for part in parts for c in part.rows[row][1:]] == cells[1:]
    text = WIDE.as_text(width)
    assert all(len(line) <= width for line in text.splitlines())
    assert text.count("a title") == 1
    assert " ".join(text.split()).count("a note with many") == 1


def test_a_column_wider_than_all_room_gets_a_part_of_its_own() -> None:
    table = Table(["a", "b", "c"], [["x", "y" * 50, "z"]])
    assert [part.columns for part in table.folded(10)] == [["a", "b"], ["a", "c"]]


def test_tables_of_texts_are_wrapped_where_that_is_enough_else_folded() -> None:
    table = Table(["a", "b", "c"], [["x", "y" * 50, "z" * 50]], texts=(0, 1, 2))
    (part,) = table.folded(30)
    assert part.columns == table.columns
    parts = table.folded(20)
    assert [part.columns for part in parts] == [["a", "b"], ["a", "c"]]
    assert all(part.width <= 20 for part in parts)
    for part, text in zip(parts, table.rows[0][1:], strict=True):
        assert "".join(row[1] for row in part.rows) == text


def test_spare_columns_are_left_out_first() -> None:
    table = Table(["a", "b", "c"], [["x", "1" * 10, "2" * 10]], spare=1)
    assert table.folded(25) == [table]
    (part,) = table.folded(20)
    assert part.columns == ["a", "b"]
    # The others are not: what there is no room for comes below.
    parts = Table(["a", "b", "c", "d"], [["x", *["1" * 10] * 3]], spare=1).folded(15)
    assert [part.columns for part in parts] == [["a", "b"], ["a", "c"]]


SENTENCE = st.lists(
    st.sampled_from(["rye", "starter", "\u6771\u4eac", "a"]), min_size=1
)


@given(st.integers(60, 120), st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1))
@example(width=60, said=[(["rye"] * 10, ["starter", "\u6771\u4eac"])])
def test_texts_wrap_within_the_width_and_lose_no_word(
    width: int, said: list[tuple[list[str], list[str]]]
) -> None:
    rows = [[" ".join(claim), "yes", " ".join(why)] for claim, why in said]
    table = Table(["claim", "supported", "reason"], rows, texts=(0, 1, 2))
    (part,) = table.folded(width)
    assert part.width <= width
    for place in (0, 2):
        words = [word for row in part.rows for word in row[place].split()]
        assert words == [word for pair in said for word in pair[place // 2]]


def test_a_long_first_column_wraps_where_the_numbers_fit_beside_it() -> None:
    table = Table(["document", "rank", "grade"], [["rye bread " * 8, "1", "2"]])
    assert table.as_text(40).splitlines() == [
        "document                   rank  grade",
        "rye bread rye bread rye       1      2",
        "bread rye bread rye bread",
        "rye bread rye bread rye",
        "bread",
    ]


def test_no_cell_moves_the_cursor() -> None:
    text = Table([HOSTILE], [[HOSTILE]], title=HOSTILE, notes=[HOSTILE]).as_text()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
    assert clean("plain é 東") == "plain é 東"


def test_no_cell_adds_markup_to_a_page() -> None:
    tags: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            del attrs
            tags.append(tag)

    Tags().feed(Table([HOSTILE], [[HOSTILE]], title=HOSTILE, notes=[HOSTILE]).as_html())
    assert set(tags) == {"table", "caption", "thead", "tbody", "tr", "th", "td", "div"}


def test_a_notebook_shows_numbers_to_the_right_and_the_title_on_top() -> None:
    page = Table(["metric", "n"], [["rr", "7"]], title="t", notes=["why"]).as_html()
    assert '<td style="text-align:left">rr</td>' in page
    assert '<td style="text-align:right">7</td>' in page
    assert '<th style="text-align:right">n</th>' in page
    assert '<caption style="caption-side:top;text-align:left">t</caption>' in page
    assert '<div style="font-size:85%">why</div>' in page


def test_no_cell_adds_columns_to_markdown() -> None:
    page = Table(["a", "b"], [["x", HOSTILE]], notes=[HOSTILE]).as_markdown()
    for line in page.splitlines()[:3]:
        assert len(re.findall(r"(?<!\\)\|", line)) == 3
    assert "<script>" not in page
    assert "[x](y)" not in page


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, DASH), (float("nan"), DASH), (0.0, "0.0000"), (1, "1.0000")],
)
def test_a_score_that_does_not_exist_is_a_dash(value: float | None, text: str) -> None:
    assert number(value) == text


def test_a_terminal_is_shown_the_same_in_other_styles() -> None:
    table = Table(["name", "n"], [["a{}", "1"], ["b", "22"]], title="t", notes=["so"])
    styled = table.as_text(40, styled=True)
    assert re.sub("\x1b\\[[012]m", "", styled) == table.as_text(40)
    assert "\x1b[1ma{} \x1b[0m" in styled
    assert styled.splitlines()[2] == "\x1b[2mname   n\x1b[0m"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.00123, "0.00123"),
        (0.0999, "0.0999"),
        (0.1, "0.1"),
        (1, "1"),
        (2.345, "2.35"),
        (9.999, "10"),
        (20, "20"),
        (1234.5, "1234.5"),
        (-3, "-3"),
        (float("inf"), "inf"),
    ],
)
def test_a_sum_has_the_decimals_that_tell_it_from_nothing(
    value: float, text: str
) -> None:
    assert amount(value) == text


@pytest.mark.parametrize(
    ("count", "thing", "text"),
    [
        (0, "query", "0 queries"),
        (1, "query", "1 query"),
        (2, "query", "2 queries"),
        (1, "document", "1 document"),
        (3, "document", "3 documents"),
    ],
)
def test_things_are_counted_in_the_singular_or_the_plural(
    count: int, thing: str, text: str
) -> None:
    assert counted(count, thing) == text


def test_markdown_by_hand() -> None:
    table = Table(
        ["name", "n", "why"],
        [["a", "1", "x"], ["b", "2", ""]],
        title="t",
        notes=["so"],
        texts=(0, 2),
        bold={(1, 1)},
    )
    assert table.as_markdown().splitlines() == [
        "**t**",
        "",
        "| name | n | why |",
        "| --- | ---: | --- |",
        "| a | 1 | x |",
        "| b | **2** |  |",
        "",
        "- so",
    ]
    bare = Table(["name"], [["a"]])
    assert bare.as_markdown() == "| name |\n| --- |\n| a |"


def test_columns_are_left_out_by_name_or_where_they_say_nothing() -> None:
    rows = [["a", "1", "", "7"], ["b", DASH, "", "7"]]
    table = Table(["name", "n", "none", "same"], rows, texts=(0, 2))
    assert table.without({"n"}).columns == ["name", "none", "same"]
    assert table.without({"n"}).texts == [0, 1]
    full = table.without_empty()
    assert full.columns == ["name", "n", "same"]
    assert full.rows == [["a", "1", "7"], ["b", DASH, "7"]]
    assert table.same(["name", "n", "same"]) == {"n": "1", "same": "7"}
    assert Table(["n"], [[DASH]]).same(["n"]) == {"n": ""}


@pytest.mark.parametrize("width", [11, 12, 13])
def test_no_text_is_wrapped_to_less_than_twelve_letters(width: int) -> None:
    table = Table(["a", "n"], [["rye bread " * 3, "1"]])
    lines = table.as_text(width + 3).splitlines()
    assert (max(map(len, lines)) <= width + 3) is (width >= 12)


@pytest.mark.parametrize(("width", "parts"), [(20, 3), (50, 1), (5, 1)])
def test_one_column_is_wrapped_where_that_is_enough(width: int, parts: int) -> None:
    (table,) = Table(["a"], [["y" * 50]]).folded(width)
    assert "".join(row[0] for row in table.rows) == "y" * 50
    assert len(table.rows) == parts


def test_no_word_is_broken_at_its_hyphens() -> None:
    table = Table(
        ["id", "n"], [["a rye-bread-mix", "1"]], notes=["see a rye-bread-mix"]
    )
    lines = table.as_text(16).splitlines()
    assert lines[1].split() == ["a", "1"]
    assert lines[2] == "rye-bread-mix"
    assert lines[-2:] == ["see a", "  rye-bread-mix"]


def test_a_title_and_notes_are_wrapped_to_the_width() -> None:
    table = Table(["a"], [["x"]], title="rye bread", notes=["rye bread and butter"])
    assert table.as_text(10) == "rye bread\n\na\nx\n\nrye bread\n  and\n  butter"
    assert table.as_text(9).startswith("rye bread\n\n")
    assert table.as_text(8).startswith("rye\n  bread\n\n")
