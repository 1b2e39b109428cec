"""Odd texts, and what comes of them: one row each, written down before it was run."""

# ruff: noqa: RUF001

import pytest

from tests.matching.test_evidence import evidence
from tests.matching.test_span import found, measure, share
from tests.matching.text_runs import satisfies

REPORT = "The report that we read on the way home says {}, and so it was told to all."
CONTRACT = "本合同由{}签署，并在当地主管机关备案登记完毕，自签字之日起生效。"
JAPANESE = "この会議は昨年の春に{}、各国の代表が参加して新しい協定に合意した。"

TELLS = {
    "currency": ("it costs €500", "it costs $500"),
    "currency behind": ("it costs 500 €", "it costs 500 £"),
    "per mille": ("it rose by 10 %", "it rose by 10 ‰"),
    "comparison of names": ("that x < y", "that x >= y"),
    "comparison with a number": ("that x < 5", "that x >= 5"),
    "comparison in one sign": ("that x ≤ 5", "that x ≥ 5"),
    "comparison full width": ("that x ＜ y", "that x ＞ y"),
    "comparison as an entity": ("that x &lt; y", "that x &gt; y"),
    "comparison before a fraction": ("that p < .05", "that p > .05"),
    "equal or not": ("that a == b", "that a != b"),
    "equal or not, with a number": ("that a = 5", "that a ≠ 5"),
    "index": ("that row[1] is empty", "that row[7] is empty"),
    "minus": ("it was -5 °C", "it was 5 °C"),
    "minus full width": ("it was －5 °C", "it was 5 °C"),
    "exponent": ("it is 1e-5 at most", "it is 1e5 at most"),
    "power": ("it is 10^5 at most", "it is 105 at most"),
    "day": ("on Nov 5 at noon", "on Nov 6 at noon"),
    "year in a pair": ("in 2019/20 at last", "in 2019/21 at last"),
    "number word": ("5 million", "5 billion"),
    "negation": ("they can come", "they cannot come"),
    "unit": ("it was 5 °C", "it was 5 °F"),
    "language": ("it is written in C++ now", "it is written in C# now"),
    "language without its sign": ("it is written in C++ now", "it is written in C now"),
}
TELLS_NOTHING = {
    "currency full width": ("it costs ¥500", "it costs ￥500"),
    "currency before and behind": ("it costs $5", "it costs 5$"),
    "currency left out": ("it costs $5", "it costs 5"),
    "comparison in one sign or two": ("that x ≤ 5", "that x <= 5"),
    "comparison without spaces": ("that p<0.05", "that p < 0.05"),
    "comparison as an entity": ("that p &lt; 0.05", "that p < 0.05"),
    "footnote in the gold": ("as was shown[1] there", "as was shown there"),
    "footnote in the text": ("as was shown there", "as was shown[12] there"),
    "minus sign": ("it was −5 °C", "it was -5 °C"),
    "dash of a range": ("in 2019-2020", "in 2019–2020"),
    "range in words": ("in 5-10 days", "in 5 to 10 days"),
    "groups of digits": ("about 1,200.50 dollars", "about 1.200,50 dollars"),
    "arrows": ("go on -> next", "go on => next"),
    "tags": ("it takes 5 days", "it takes <b>5</b> days"),
    "quoted lines": ("it takes 5 days", "it takes\n> 5 days"),
    "square metres": ("it has 25 m²", "it has 25 m2"),
    "fractions": ("it takes ½ hour", "it takes 1/2 hour"),
    "formulas": ("it is H₂O", "it is H2O"),
    "ligatures": ("the ﬁnal ofﬁce", "the final office"),
    "numero": ("it is № 5", "it is No 5"),
    "capitals": ("said Smith", "said SMITH"),
    "a name misspelt": ("said Smith", "said Smyth"),
    "antonyms, which no rule tells": ("prices rose fast", "prices fell fast"),
}


@pytest.mark.parametrize("case", TELLS)
def test_what_differs_is_told(case: str) -> None:
    ours, theirs = TELLS[case]
    for one, two in ((ours, theirs), (theirs, ours)):
        (row,) = evidence(REPORT.format(one), REPORT.format(two))
        assert row.differs
        assert row.satisfied


@pytest.mark.parametrize("case", TELLS_NOTHING)
def test_what_says_the_same_is_not(case: str) -> None:
    ours, theirs = TELLS_NOTHING[case]
    for one, two in ((ours, theirs), (theirs, ours)):
        (row,) = evidence(REPORT.format(one), REPORT.format(two))
        assert row.differs == ()
        assert row.satisfied


@pytest.mark.parametrize(
    ("text", "ours", "theirs", "differs"),
    [
        (CONTRACT, "张伟先生", "李娜先生", ("张伟 -> 李娜",)),
        (CONTRACT, "北京市政府", "南京市政府", ("北 -> 南",)),
        (f"双方协商一致，{CONTRACT}", "欧阳修远", "司马光", ("欧阳修远 -> 司马光",)),
        (CONTRACT, "张伟先生", "张 伟 先生", ()),
        (JAPANESE, "ジュネーブで開かれ", "パリで開かれ", ("ジュネーブ -> パリ",)),
        (JAPANESE, "東京で開かれ", "東京に開かれ", ()),
    ],
)
def test_names_without_capitals_are_told(
    text: str, ours: str, theirs: str, differs: tuple[str, ...]
) -> None:
    (row,) = evidence(text.format(ours), text.format(theirs), tau=0.8)
    assert row.differs == differs
    assert row.satisfied


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        ("14 days after the goods came back to us the refund is paid", ("14", "30")),
        ("The refund is paid when the goods are back, in days: 14", ("14", "30")),
        ("€900 was paid by the company for the use of the name", ("€", "$")),
        ("What was paid by the company for the use of the name: 900 €", ("€", "$")),
    ],
)
def test_what_differs_at_the_ends_is_told(gold: str, text: tuple[str, str]) -> None:
    other = gold.replace(*text)
    for document in (other, f"It says: {other}. That is all."):
        assert not measure([gold], [document]).sound.all()
    assert measure([gold], [f"It says: {gold}. That is all."]).sound.all()


BRIEF = (
    "-5|−5 °C|-12.5%|< 0.05|≥ 5|> 5|+5|$5|5 €|½|№ 5|1e-5|Café|Cafe\u0301|C++|C#|F#|A+"
    "|.NET|row[1]|H₂O|x²|北京|不|👍|don't|5%|O'Neill|R&D|3:1|10^5"
)


@pytest.mark.parametrize("gold", BRIEF.split("|"))
def test_a_brief_text_is_found_in_itself(gold: str) -> None:
    for text in (gold, f"Here it is: {gold}, as we said.", f"It is\n{gold}\nand more"):
        assert found(gold, text) == [1]
        assert measure([gold], [text]).sound.all()


@pytest.mark.parametrize(
    ("gold", "text", "is_there"),
    [
        ("Café", "the Cafe\u0301 is open", True),
        ("Cafe\u0301", "the CAFÉ is open", True),
        ("Café", "the cafeteria", False),
        ("5", "at -5 °C", False),
        ("-5", "at 5 °C", False),
        ("-5", "15-5", False),
        ("12.5%", "by -12.5%", False),
        ("5 °C", "at -5 °C", False),
        ("< 0.05", "p > 0.05", False),
        ("< 0.05", "p = 0.05", False),
        ("< 0.05", "p <0.05", True),
        ("< 0.05", "p &lt; 0.05", True),
        ("≤ 5", "x <= 5", True),
        ("0.05", "p < 0.05", True),
        ("C", "in C++ only", False),
        ("C", "in C# only", False),
        ("C", "in C++ or in C", True),
        ("C++", "in C only", False),
        ("C++", "in C# only", False),
        ("row[1]", "is row[7] here", False),
        ("row[1]", "is row[7] or row[1]", True),
        ("Paris", "in Paris[3] then", True),
        ("1e-5", "it is 1e5", False),
        ("5", "it is 1e-5", False),
        ("18", "for ages 18+", True),
        ("a", "ba a", True),
        ("5 days", "it takes <b>5</b> days", True),
        ("5 & 6", "it takes 5 &amp; 6 days", True),
        ("5 days", "it takes [5](a.b/c) days", True),
        ("a", "aaa", False),
    ],
)
def test_a_brief_text_has_its_signs(gold: str, text: str, *, is_there: bool) -> None:
    assert found(gold, text) == [1] * is_there


@pytest.mark.parametrize(
    ("matcher", "gold", "text", "is_there"),
    [
        ("contains", "C", "C++ is fast", False),
        ("contains", "C", "C# is fast", False),
        ("contains", "C", "C/C++ is fast", True),
        ("contains", "C", "it is written in C.", True),
        ("contains", "C++", "C++ is fast", True),
        ("contains", "C#", "it is written in C#", True),
        ("contains", "A", "the grade was A+", False),
        ("contains", "a", "the sum a+b", True),
        ("contains", "-5", "at −5 °C", True),
        ("contains", "5", "at -5 °C", False),
        ("contains", "5", "below 1e-5", False),
        ("contains", "1e-5", "below 1e-5", True),
        ("contains", "18", "for ages 18+", True),
        ("contains", "Café", "the CAFE\u0301 is open", True),
        ("contains", "#1", "we are #1!", True),
        ("chunk", "退货申请", "请先阅读退货申请须知", True),
        ("chunk", "请先阅读退货申请须知", "退货申请", True),
        ("chunk", "退货", "请先阅读退货申请须知", False),
        ("chunk", "tea", "it is tea time", False),
        ("chunk", "환불", "환불 요청은 십사 일 이내", False),
    ],
)
def test_words_go_on_over_their_signs(
    matcher: str, gold: str, text: str, *, is_there: bool
) -> None:
    assert satisfies(matcher, gold, text) == is_there


TABLE = "2019 Revenue 5.1m\n2020 Revenue 6.2m\n2021 Revenue 7.3m"


def test_numbers_that_begin_lines_are_text() -> None:
    page = f"Annual report\n\n{TABLE}\n\nAll figures are in euros."
    assert share(TABLE, page) == 1
    assert measure([TABLE], [page]).sound.all()
    later = page.replace("2021", "2022").replace("2020", "2021").replace("2019", "2020")
    assert not measure([TABLE], [later]).sound.any()


def test_a_latin_word_in_chinese_does_not_weigh_like_chinese() -> None:
    gold = "我们的软件支持internationalization功能，用户可以在设置里选择界面语言。"
    assert share(gold, "关于internationalization的更多说明请参阅另一份手册。") == 0
    assert share(gold, f"说明如下：{gold}请注意。") == 1


@pytest.mark.parametrize(
    ("gold", "inside", "counts"),
    [
        (
            "고객은 상품을 받은 후 십사 일 이내에 환불을 요청할 수 있으며 사용 전",
            "일 이내에 환불을 요청할 수 있으며",
            False,
        ),
        (
            "退货申请须在收到商品后十四天内提出，逾期本公司将不予受理，请您务必注意保存。",
            "收到商品后十四天内提出，逾期",
            False,
        ),
        (
            "退货申请须在收到商品后十四天内提出，逾期本公司将不予受理，请您务必注意保存。",
            "收到商品后十四天内提出，逾期本公司将",
            True,
        ),
    ],
)
def test_how_long_a_run_must_be(gold: str, inside: str, *, counts: bool) -> None:
    around = "이것은 다른 글입니다" if "이" in inside else "这是另外一段文字"
    assert (share(gold, around + inside + around) > 0) == counts


CUT = "when it is bought together with a contract for a line"


@pytest.mark.parametrize(
    ("gold", "text", "differs"),
    [
        # Two characters may stand beside a number that was cut.
        (f"It costs 1,500 dollars {CUT}", f"500 dollars {CUT}", ""),
        (f"It costs 1,500 dollars {CUT}", f"a 500 dollars {CUT}", ""),
        (f"It costs 1,500 dollars {CUT}", f"ab 500 dollars {CUT}", "1500 -> 500"),
        (f"It costs 1,500 dollars {CUT}", f"300 dollars {CUT}", "1500 -> 300"),
        (f"{CUT} it costs 1,500 dollars", f"{CUT} it costs 1", ""),
        (f"{CUT} it costs 1,500 dollars", f"{CUT} it costs 1,5 a", ""),
        (f"{CUT} it costs 1,500 dollars", f"{CUT} it costs 1 ab", "1500 -> 1"),
        # The sign of a word may be cut off, but not where the text goes on.
        (f"{CUT} it is written in C++ now", f"{CUT} it is written in C", ""),
        (f"{CUT} it is written in C++ now", f"{CUT} it is written in C a", "c++ -> c"),
        (f"C++ is what it is in, {CUT}", f"C# is what it is in, {CUT}", "c++ -> c#"),
        (f"{CUT} it is in row[1]", f"{CUT} it is in row[7]", "[1] -> [7]"),
        (f"{CUT} it is in row[1]", f"{CUT} it is in row", ""),
    ],
)
def test_what_was_cut_off_does_not_differ(gold: str, text: str, differs: str) -> None:
    (row,) = evidence(gold, text, tau=0.5)
    assert row.differs == ((differs,) if differs else ())


def test_a_capital_that_begins_a_sentence_makes_no_name() -> None:
    gold = "So it was told{} Hen and cock were sold for the use of the name of all."
    for between, differs in ((".", ()), (" by", ("Hen -> Hat",))):
        one = gold.format(between)
        for text in (one, f"Note well, it says there: {one}"):
            (row,) = evidence(one, text.replace("Hen", "Hat"))
            assert row.differs == differs
