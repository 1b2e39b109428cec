"""How long, how near and how alike: both sides of each bound of coverage."""

import random
from string import ascii_lowercase

import pytest

from tests.matching.test_span import measure, share


def letters(count: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(ascii_lowercase, k=count))


OTHER, ELSE = letters(50, 1), letters(50, 2)
LONG, SHORT = letters(40, 3), letters(14, 4)


def inside(*parts: str) -> str:
    """A document in which these parts lie far from both ends."""
    return f"{OTHER}{''.join(parts)}{ELSE}"


def changed(text: str) -> str:
    """Other letters at both ends, and every third."""
    last = len(text) - 1
    return "".join("7" if n % 3 == 0 or n == last else c for n, c in enumerate(text))


@pytest.mark.parametrize(("size", "counts"), [(31, False), (32, True)])
def test_a_run_of_32_letters_counts_wherever_it_lies(
    size: int, *, counts: bool
) -> None:
    gold = letters(100, 5)
    assert share(gold, inside(gold[30 : 30 + size])) == pytest.approx(
        size / 100 * counts
    )


@pytest.mark.parametrize(("size", "counts"), [(15, False), (16, True)])
def test_four_fifths_of_a_short_passage_count_wherever_they_lie(
    size: int, *, counts: bool
) -> None:
    gold = letters(20, 5)
    assert share(gold, inside(gold[2 : 2 + size])) == pytest.approx(size / 20 * counts)


@pytest.mark.parametrize(("size", "counts"), [(5, False), (6, True)])
def test_a_document_inside_the_passage_has_six_letters(
    size: int, *, counts: bool
) -> None:
    gold = letters(100, 5)
    assert share(gold, gold[30 : 30 + size]) == pytest.approx(size / 100 * counts)


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [(6, 50, True), (7, 50, False), (50, 2, True), (50, 3, False)],
)
def test_a_short_run_counts_where_a_document_was_cut(
    before: int, after: int, *, counts: bool
) -> None:
    """Six letters of a header may stand before it, and two behind it."""
    gold = LONG + SHORT if before < after else SHORT + LONG
    text = f"{OTHER[:before]}{SHORT}{ELSE[:after]}"
    assert share(gold, text) == pytest.approx(len(SHORT) / len(gold) * counts)


@pytest.mark.parametrize(
    ("between", "added", "counts"),
    [
        # Where the passage goes on, the header of a page may stand between.
        (0, 80, True),
        (0, 81, False),
        (3, 80, True),
        (3, 81, False),
        (4, 8, True),
        (4, 9, False),
        # And so much of the passage may be lost in between.
        (40, 8, True),
        (41, 0, False),
    ],
)
def test_a_short_run_counts_near_a_long_one(
    between: int, added: int, *, counts: bool
) -> None:
    lost, new = letters(between, 6), letters(between + added, 7)
    whole = len(LONG) + between + len(SHORT)
    covered = between if between <= 3 and not added else 0
    expected = (len(LONG) + len(SHORT) * counts + covered) / whole
    after = measure([LONG + lost + SHORT], [inside(LONG, new, SHORT)])
    before = measure([SHORT + lost + LONG], [inside(SHORT, new, LONG)])
    for one in (after, before):
        assert one.gold.sum() / one.size[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ours", "theirs", "covered"),
    [
        ("abc", "xyz", True),
        ("abcd", "wxyz", False),
        ("abc", "", True),
        ("", "xyz", True),
        ("abcd", "", False),
        # Six in ten letters are alike.
        ("abcde", "xbcdy", True),
        ("abcde", "xbczy", False),
        (letters(40, 11), changed(letters(40, 11)), True),
        (letters(41, 11), changed(letters(41, 11)), False),
    ],
)
def test_a_gap_between_runs_is_short_or_alike(
    ours: str, theirs: str, *, covered: bool
) -> None:
    one, two = letters(40, 8), letters(40, 9)
    gold = f"{one}{ours}{two}"
    expected = (80 + len(ours) * covered) / len(gold)
    assert share(gold, inside(one, theirs, two)) == pytest.approx(expected)


@pytest.mark.parametrize(("size", "told"), [(6, True), (7, False)])
def test_six_letters_at_an_end_are_held_against_what_stands_there(
    size: int, *, told: bool
) -> None:
    ours, theirs = "1" * size, "9" * size
    for gold, text in (
        (f"{ours} {LONG}", f"{theirs} {LONG}"),
        (f"{LONG} {ours}", f"{LONG} {theirs}"),
    ):
        assert measure([gold], [text]).sound.all() != told


@pytest.mark.parametrize(("slack", "counts"), [(6, True), (7, False)])
def test_a_text_begins_within_six_letters_of_a_header_that_documents_share(
    slack: int, *, counts: bool
) -> None:
    header, gold = letters(30, 10), LONG + SHORT
    documents = [f"{header}{OTHER[:slack]}{SHORT}{OTHER}", f"{header}{ELSE}"]
    assert share(gold, *documents) == pytest.approx(len(SHORT) / len(gold) * counts)
    assert share(gold, documents[0]) == 0


@pytest.mark.parametrize(
    ("size", "counts"), [(5, False), (6, True), (10, True), (11, True), (12, True)]
)
def test_six_letters_at_an_edge_count_where_the_passage_begins_or_ends(
    size: int, *, counts: bool
) -> None:
    gold = letters(100, 5)
    expected = pytest.approx(size / 100 * counts)
    assert share(gold, OTHER + gold[:size]) == expected
    assert share(gold, gold[-size:] + OTHER) == expected


def test_what_documents_begin_with_alike_is_compared_from_where_it_begins() -> None:
    """A typing error in it hides nothing that stands before."""
    gold = "5 of Geneva committee within the year, said all of those who were there"
    text = gold.replace("com", "cxm")
    coverage = measure([gold], [f"{text} and left", f"{text} but stayed"])
    assert coverage.gold.sum() == coverage.size[0]
    assert coverage.sound.all()
    other = text.replace("5", "7")
    assert not measure([gold], [f"{other} and left", f"{other} but"]).sound.all()
