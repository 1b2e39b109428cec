"""Evidence: which characters of a document speak for which gold item."""

import pytest
from hypothesis import given, settings, strategies as st

from karat import Gold
from karat.data.hits import Evidence, Range
from karat.data.memory_runs import DocumentRun
from karat.extend import Document, Item, Span as GoldSpan
from karat.matching.letters import Letters
from karat.matching.span import SpanMatcher

FOX = "The quick brown fox jumps over the lazy dog, within 14 days, near the farm."


def evidence(gold: str, *texts: str, tau: float = 0.9) -> list[Evidence]:
    run = DocumentRun({"q": [Document(f"d{n}", text) for n, text in enumerate(texts)]})
    return SpanMatcher(tau=tau).evidence(
        run, Gold(passages={"q": (Item("p", gold),)}), "q"
    )


def quoted(text: str, ranges: tuple[Range, ...]) -> list[str]:
    return [text[start:end] for start, end in ranges]


def test_what_matches_is_shown_in_the_original_texts() -> None:
    text = "See: the QUICK **brown** fox\njumps over the lazy dog “within” 14 days."
    (found,) = evidence(FOX, text)
    assert found.item == "p"
    assert found.rank == 1
    assert found.document == "d0"
    assert quoted(FOX, found.gold) == [FOX[: FOX.index(" days") + 5]]
    assert quoted(text, found.text) == [text[5 : text.index(" days") + 5]]
    assert not found.satisfied
    assert found.reason == "81% covered, not enough yet"


def test_each_document_is_shown_with_what_it_adds() -> None:
    first, second = evidence(FOX, FOX[:30], "nothing", FOX[20:])[:2]
    assert (first.rank, second.rank) == (1, 3)
    assert quoted(FOX, first.gold) == [FOX[:30]]
    assert quoted(FOX, second.gold) == [FOX[31:-1]]
    assert quoted(FOX[20:], second.text) == [FOX[31:-1]]
    assert (first.satisfied, second.satisfied) == (False, True)
    assert second.reason == "100% covered"


def test_what_differs_is_said() -> None:
    (found,) = evidence(FOX, FOX.replace("14", "30"))
    assert found.share > 0.9
    assert found.satisfied
    assert found.differs == ("14 -> 30",)
    assert found.reason == "100% covered; differs: 14 -> 30"
    assert quoted(FOX, found.gold) == [FOX[:51], FOX[55:-1]]


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ("was late", "wasn't late", "was -> wasn't"),
        ("was late", "was not late", "was -> was not"),
        ("rose by -5 %", "rose by 5 %", "-5 -> 5"),
        ("rose by 3.5 %", "rose by 35 %", "3.5 -> 35"),
        ("(p < 0.05)", "(p > 0.05)", "<0.05 -> >0.05"),
        ("x < 5 or 7", "x > 5 or 7", "<5 -> >5"),
        ("x < y", "x > y", "< -> >"),
        ("said Smith to us", "said Weber to us", "Smith -> Weber"),
        ("in two weeks", "in five weeks", "two -> five"),
    ],
)
def test_a_number_sign_negation_or_name_that_differs_is_said(
    ours: str, theirs: str, said: str
) -> None:
    text = "The report that we read on the way home {}, as we were told there before."
    (found,) = evidence(text.format(ours), text.format(theirs))
    assert found.differs == (said,)
    strict = SpanMatcher(strict=True)
    run = DocumentRun({"q": [Document("d", text.format(theirs))]})
    gold = Gold(passages={"q": (Item("p", text.format(ours)),)})
    assert not any(found.satisfied for found in strict.evidence(run, gold, "q"))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("1,500 dollars", "1500 dollars"),
        ("3,5 percent", "3.5 percent"),
        ("can not come", "cannot come"),
        ("it isn't so", "it isn\u2019t so"),
        ("the quick fox", "the quikc fox"),
        ("range 5-10 only", "range 5\u201310 only"),
    ],
)
def test_another_way_to_write_it_does_not_differ(ours: str, theirs: str) -> None:
    text = "The report that we read on the way home {}, as we were told there before."
    (found,) = evidence(text.format(ours), text.format(theirs))
    assert found.differs == ()
    assert found.satisfied


@pytest.mark.parametrize(
    ("ours", "theirs"), [("14", "30"), ("two", "six"), ("\u20ac", "$")]
)
def test_what_differs_at_the_ends_is_said(ours: str, theirs: str) -> None:
    rest = "days after the goods came back to us the whole of the refund is paid"
    for text in (f"{{}} {rest}", f"{rest} {{}}"):
        (found,) = evidence(text.format(ours), text.format(theirs))
        assert found.differs == (f"{ours} -> {theirs}",)


def test_offsets_are_shown_from_where_each_text_begins() -> None:
    run = DocumentRun({"q": [Document(source="d", start=90, end=105)]})
    gold = Gold(spans={"q": (GoldSpan("s", "d", 100, 120),)})
    (found,) = SpanMatcher().evidence(run, gold, "q")
    assert found.gold == ((0, 5),)
    assert found.text == ((10, 15),)
    assert found.share == pytest.approx(0.25)


def test_nothing_is_shown_where_nothing_matches() -> None:
    assert evidence(FOX, "other words", "") == []


@settings(max_examples=100, deadline=None)
@given(
    gold=st.lists(
        st.sampled_from(
            ["Größe", "naïve", "don't", "中文文本", "5.5 %", "plain", "*", "x"]
        ),
        min_size=4,
        max_size=20,
    ).map(" ".join),
    before=st.sampled_from(["", "see ", "# ", "“"]),
    cut=st.integers(0, 60),
)
def test_both_sides_of_the_evidence_have_the_same_letters(
    gold: str, before: str, cut: int
) -> None:
    texts = [before + gold[:cut], gold[cut:] + " end"]
    for found in evidence(gold, *texts):
        ours = quoted(gold, found.gold)
        theirs = quoted(texts[found.rank - 1], found.text)
        for mine, other in zip(ours, theirs, strict=True):
            ours_letters, copy = Letters(mine).letters, Letters(other).letters
            # A letter such as the German sharp s stands for two, of which one may do.
            assert copy in ours_letters or ours_letters in copy
