"""The matcher by coverage: what is found, when, and what is not."""

# ruff: noqa: E501, RUF001

from collections.abc import Sequence

import numpy as np
import pytest

from karat import Gold, evaluate
from karat.data.hits import Coverage
from karat.data.memory_runs import DocumentRun
from karat.extend import (
    DataError,
    Document,
    Hits,
    Item,
    ParameterError,
    Policies,
    Span as GoldSpan,
    UsageError,
    read_matcher,
)
from karat.matching.span import SpanMatcher

FOX = (
    "The quick brown fox jumps over the lazy dog and, within 14 days, "
    "does not return to the farm."
)


def match(
    golds: Sequence[str | Item],
    texts: Sequence[str | Document],
    matcher: SpanMatcher | None = None,
) -> Hits:
    """The hits of one query."""
    items = tuple(
        gold if isinstance(gold, Item) else Item(f"p{n}", gold)
        for n, gold in enumerate(golds)
    )
    documents = [
        text if isinstance(text, Document) else Document(f"d{n}", text)
        for n, text in enumerate(texts)
    ]
    run, gold = DocumentRun({"q": documents}), Gold(passages={"q": items})
    policies = Policies(force=True)
    return (
        (matcher or SpanMatcher()).match(run, gold, judged=True, policies=policies).hits
    )


def measure(golds: Sequence[str | Item], texts: Sequence[str | Document]) -> Coverage:
    coverage = match(golds, texts).coverage
    assert coverage is not None
    return coverage


def share(gold: str, *texts: str) -> float:
    """The share of the gold that the texts cover."""
    coverage = measure([gold], texts)
    return float(coverage.gold.sum() / coverage.size[0])


def found(gold: str, *texts: str) -> list[int]:
    """The rank at which the gold is found, if it is."""
    return [int(rank) for rank in match([gold], texts).rank]


def strictly_found(gold: str, *texts: str) -> list[int]:
    """The same where nothing may differ, and most of the text will do."""
    hits = match([gold], texts, SpanMatcher(tau=0.6, strict=True))
    return [int(rank) for rank in hits.rank]


def test_a_passage_is_found_once_its_parts_were_retrieved() -> None:
    hits = match([FOX], [f"Once: {FOX[:40]}", "something else", f"{FOX[40:]} The end."])
    assert hits.rank.tolist() == [3]
    coverage = hits.coverage
    assert coverage is not None
    assert coverage.item_rank.tolist() == [1, 3]
    assert coverage.share[-1] == 1
    assert coverage.sound.tolist() == [True, True]


@pytest.mark.parametrize("cut", range(1, len(FOX)))
def test_it_makes_no_difference_where_a_text_was_cut(cut: int) -> None:
    text = f"Once upon a time. {FOX} They lived happily ever after."
    cut += text.index(FOX)
    assert share(FOX, text[:cut], text[cut:]) == 1
    assert share(FOX, text[:cut].strip(), text[cut:].strip()) == 1
    # In the other order all but a fragment that could be an accident is seen.
    assert share(FOX, text[cut:], text[:cut]) >= 0.95


def test_a_long_run_counts_wherever_it_lies_and_a_short_one_does_not() -> None:
    words = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omicron"
    around = "something else altogether"
    inside = f"{around} gamma delta epsilon zeta eta theta iota {around}"
    assert share(words, inside) == pytest.approx(33 / 60)
    assert share(words, f"{around} gamma delta epsilon zeta {around}") == 0


def test_a_short_run_counts_where_a_document_was_cut_inside_the_passage() -> None:
    gold = "alpha beta gamma delta epsilon zeta eta theta"
    assert share(gold, "something else alpha beta gamma") == pytest.approx(14 / 38)
    assert share(gold, "zeta eta theta something else") == pytest.approx(12 / 38)
    assert share(gold, "beta gamma delta epsilon zeta eta theta", "x alpha") == 1
    assert share(gold, "theta x", "alpha beta gamma delta epsilon zeta eta") == 1
    assert share(gold, "x alp", "ta x") == 0
    # Six letters at an edge count, and five do not.
    assert share(gold, "eta theta x alpha b") == pytest.approx(14 / 38)
    assert share(gold, "eta theta x alpha") == pytest.approx(8 / 38)
    assert share(gold, "atheta x alpha b") == pytest.approx(12 / 38)
    assert share(gold, "theta x alpha b") == pytest.approx(6 / 38)


def test_a_short_run_counts_beside_one_of_the_same_document() -> None:
    start, end = "the first of the two runs is a very long one", "the second is short"
    gold = f"{start} with these few words between them {end}"
    other = f"before {start} with some other text that is not alike {end} after it all"
    assert share(gold, other) > share(gold, f"before {start} and so on") > 0.4
    assert share(gold, f"this is before the text: {end}, and this is after it") == 0


def test_a_word_that_is_cut_off_is_covered_letter_by_letter() -> None:
    gold = "alpha beta gamma delta epsilon zeta eta theta"
    assert share(gold, "alpha beta gamma delta epsi") == pytest.approx(23 / 38)
    assert share(gold, "lon zeta eta theta") == pytest.approx(15 / 38)
    assert share(gold, "silon zeta eta theta alpha x") == pytest.approx(17 / 38)


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        ("Paris", "They met in Paris."),
        ("New York", "from new\nyork to here"),
        ("5", "takes 5 days"),
        ("3.5 %", "rose by 3.5 %."),
        ("北京", "我住在北京大学"),
        ("don't", "I don’t know"),
    ],
)
def test_a_brief_passage_is_found_as_a_whole(gold: str, text: str) -> None:
    assert found(gold, text) == [1]
    assert found(gold, "nothing", text) == [2]


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        ("Paris", "a comparison"),
        ("New York", "new things from York"),
        ("5", "50 or 15 or 3.5 or 5.1"),
        ("3.5", "35"),
        ("not", "nothing"),
        ("I", ""),
    ],
)
def test_a_brief_passage_is_not_found_in_part_of_a_word(gold: str, text: str) -> None:
    assert found(gold, text) == []


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        (
            (
                "Employees may carry over unused vacation days into the next year if they "
                "tell their manager before the end of December."
            ),
            (
                "Employees may not carry over unused vacation days into the next year if "
                "they tell their manager before the end of December."
            ),
        ),
        (
            (
                "The warranty covers damage by water if the device was bought in a shop of "
                "ours and is not older than two years when the damage is reported to us."
            ),
            (
                "The warranty covers damage by water if the device was bought in a shop of "
                "ours and is older than two years when the damage is reported to us."
            ),
        ),
        (
            (
                "The warranty always covers damage by water if the device was bought in a "
                "shop of ours and the damage is reported to us in time by the owner."
            ),
            (
                "The warranty never covers damage by water if the device was bought in a "
                "shop of ours and the damage is reported to us in time by the owner."
            ),
        ),
        (
            (
                "Refunds are issued within 14 days of the day on which the goods came back "
                "to our warehouse, by the means of payment that was used for the order."
            ),
            (
                "Refunds are issued within 30 days of the day on which the goods came back "
                "to our warehouse, by the means of payment that was used for the order."
            ),
        ),
        (
            (
                "Revenue grew by 3.5 percent in the second quarter of the year, driven by "
                "the sale of spare parts to customers in the countries of the north."
            ),
            (
                "Revenue grew by 35 percent in the second quarter of the year, driven by "
                "the sale of spare parts to customers in the countries of the north."
            ),
        ),
        (
            (
                "The device costs 50 dollars when it is bought together with a contract for "
                "a telephone line that lasts for at least a year from the day of purchase."
            ),
            (
                "The device costs 500 dollars when it is bought together with a contract "
                "for a telephone line that lasts for at least a year from the day of "
                "purchase."
            ),
        ),
        (
            (
                "The device costs 500 dollars when it is bought together with a contract "
                "for a telephone line that lasts for at least a year from that day: 50"
            ),
            (
                "The device costs 500 dollars when it is bought together with a contract "
                "for a telephone line that lasts for at least a year from that day: 500"
            ),
        ),
        (
            "退货申请须在收到商品后十四天内提出，逾期本公司将不予受理，请您务必注意保存购物凭证。",
            "退货申请须在收到商品后三十天内提出，逾期本公司将不予受理，请您务必注意保存购物凭证。",
        ),
        (
            "ลูกค้าสามารถขอคืนเงินได้ภายในสิบสี่วันหลังจากได้รับสินค้าและสินค้าไม่เคยถูกใช้งานมาก่อน",
            "ลูกค้าสามารถขอคืนเงินได้ภายในสิบสี่วันหลังจากได้รับสินค้าและสินค้าเคยถูกใช้งานมาก่อน",
        ),
    ],
)
def test_what_says_something_else_is_told(gold: str, text: str) -> None:
    longer = f"Note. {text} More to come."
    for wrong in (text, longer):
        coverage = measure([gold], [wrong])
        assert share(gold, wrong) > 0.6
        assert not coverage.sound.any()
        assert strictly_found(gold, wrong) == []
        # Found after all when the right text comes, too.
        assert strictly_found(gold, wrong, gold) == [2]
    assert measure([gold], [f"Note. {gold} More to come."]).sound.all()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("30", "14"), ("was", "wasn't"), ("-5", "5"), ("2.5", "25"), ("Smith", "Weber")],
)
def test_covered_text_that_differs_is_found_and_counted(ours: str, theirs: str) -> None:
    gold = (
        f"The balance of the account that belongs to Mr {ours} in the last days of May"
    )
    run = {"q": [Document("a", gold.replace(ours, theirs))]}
    labels = Gold(passages={"q": (Item("p", gold),)})
    result = evaluate(DocumentRun(run), gold=labels, metrics=["recall", "complete"])
    assert result.means == {"recall": 1, "complete": 1}
    (notice,) = [notice for notice in result.warnings if notice.kind == "changed"]
    assert str(notice) == (
        "1 gold item is covered with a number, sign, negation or name that differs "
        "(for example q)"
    )
    metrics = ["recall[span(strict=true)]", "complete[span(strict=true)]"]
    strict = evaluate(DocumentRun(run), gold=labels, metrics=metrics)
    assert [*strict.means.values()] == [0, 0]


@pytest.mark.parametrize(
    "text",
    [
        "In 2021 revenue was 1,500.00 dollars; do not copy.",
        "Revenue fell by \u22125 % in Q3 (p < 0.05), not by 4.5 %.",
        "a,b,12,13.5,-7\n",
    ],
)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    gold = f"This is what the report of the company says. {text} So it says."
    for document in (gold, gold + " It does not say 17.", "No 5: " + gold):
        assert measure([gold], [document]).sound.all()
    cut = gold.index(text) + len(text) // 2
    assert measure([gold], [gold[:cut], gold[cut:]]).sound.all()
    assert measure([gold], [gold[cut:], gold[:cut]]).sound.all()


@pytest.mark.parametrize("text", ["", " ", "\n", "a", "T", "?!", "the", "*", "🙂"])
def test_next_to_nothing_matches_nothing(text: str) -> None:
    assert found(FOX, text, text, text) == []
    assert share(FOX, text) == 0


@pytest.mark.parametrize(
    "text",
    [
        FOX.upper(),
        FOX.replace(" ", "\n\n"),
        FOX.replace(" ", ""),
        f"# {FOX}",
        FOX.replace("quick brown", "**quick** _brown_").replace("lazy", "`lazy`"),
        FOX.replace("lazy dog", "[lazy dog](https://example.org/a_(b)?c=d)"),
        FOX.replace("jumps", "jum-\nps").replace("return", "re\u00adturn"),
        "\n".join(f"> {line}" for line in FOX.split(" over ")).replace(
            ">", "> over", 2
        )[7:],
        "| " + FOX.replace(" ", " | ") + " |",
        FOX.replace("o", "o\u0301").replace("i", "ï"),
        FOX.replace("e", "\u200be").replace(" ", "\u00a0"),
        FOX.replace("fi", "ﬁ"),
        f"\u202b{FOX}\u202c",
    ],
)
def test_how_a_text_is_dressed_makes_no_difference(text: str) -> None:
    assert share(FOX, text) == 1
    assert found(FOX, text) == [1]
    assert share(text, FOX) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "退货申请须在收到商品后十四天内提出，逾期本公司将不予受理，请您务必注意保存购物凭证。",
        "返品のお申し込みは商品到着後十四日以内にお願いいたします。ガラス製品は対象外です。",
        "ลูกค้าสามารถขอคืนเงินได้ภายในสิบสี่วันหลังจากได้รับสินค้าและสินค้าไม่เคยถูกใช้งานมาก่อน",
        "ग्राहक सामान मिलने के चौदह दिन के भीतर पैसे वापस मांग सकते हैं, यदि उसका उपयोग नहीं हुआ है।",
        "يمكن للعميل استرداد المبلغ خلال أربعة عشر يوما من استلام البضاعة إذا لم تستخدم",
        "הלקוח רשאי לקבל החזר כספי בתוך ארבעה עשר ימים מיום קבלת המוצר אם לא נעשה בו שימוש",
        "Покупатель может вернуть деньги в течение четырнадцати дней после получения товара",
        "고객은 상품을 받은 후 십사 일 이내에 환불을 요청할 수 있으며 사용하지 않은 경우에 한합니다",
        "Khách hàng có thể yêu cầu hoàn tiền trong vòng mười bốn ngày kể từ khi nhận hàng",
        "🙂 smile 🚀 rocket ❤️ heart 👩‍🚀 astronaut and some more words to read here",
    ],
)
def test_every_script_is_read(text: str) -> None:
    other = "Something else. "
    assert share(text, f"{other}{text}{other}") == 1
    assert share(text, other) == 0
    for cut in range(1, len(text)):
        assert share(text, other + text[:cut], text[cut:] + other) == 1, cut
        later = share(text, text[cut:] + other, other + text[:cut])
        assert 0.6 <= later <= 1
    half = share(text, text[: len(text) // 2])
    assert 0.3 < half < 0.7


def test_accents_that_were_dropped_cost_nothing() -> None:
    gold = "Le café où l'élève déjà âgé mangeait des œufs brouillés à Noël, près d'Ærø."
    text = (
        "Le cafe ou l'eleve deja age mangeait des oeufs brouilles a Noel, pres d'Aero."
    )
    assert share(gold, text) == share(text, gold) == 1


def test_marks_that_are_letters_are_not_dropped() -> None:
    gold = "สินค้าไม่เคยถูกใช้งานมาก่อนและอยู่ในสภาพดี"
    bare = gold.replace("ไม่", "ไม").replace("ใช้", "ใช").replace("อยู่", "อยู")
    assert share(gold, bare) < 0.9


def test_alternatives_count_as_one_and_the_best_covered_counts() -> None:
    items = [
        Item("a", "one two three four five six seven", group="g"),
        Item("b", "red orange yellow green blue violet", group="g"),
    ]
    hits = match(items, ["red orange yellow green blue violet"])
    assert hits.gold_count.tolist() == [1]
    assert hits.rank.tolist() == [1]
    assert hits.coverage is not None
    assert hits.coverage.size.tolist() == [30]
    assert hits.coverage.gold.tolist() == [30]


def test_what_is_judged_not_relevant_weighs_nothing() -> None:
    hits = match([FOX, Item("n", "one two three four five", 0.0)], [FOX])
    assert hits.coverage is not None
    assert hits.coverage.gold.tolist() == hits.coverage.size.tolist()
    assert hits.gold_grade.tolist() == [1, 0]


def test_a_query_that_the_run_does_not_have_is_covered_to_nothing() -> None:
    gold = Gold(passages={q: (Item("p", FOX),) for q in ("q", "r")})
    run = DocumentRun({"q": [Document("a", FOX)]})
    scores = evaluate(run, gold=gold, metrics=["coverage", "complete", "iou"])
    assert scores.means == {"coverage": 0.5, "complete": 0.5, "iou": 0.5}


def test_a_share_as_gain_pays_each_part_where_it_comes() -> None:
    run = DocumentRun({"q": [Document("a", FOX[:45]), Document("b", FOX[45:])]})
    gold = Gold(passages={"q": (Item("p", FOX, 2), Item("other", "Oats, not rye", 3))})
    result = evaluate(run, gold=gold, metrics=["ndcg[span(gain=share)]", "ndcg[span]"])
    first = share(FOX, FOX[:45])
    assert 0.3 < first < 0.7
    expected = 2 * (first + (1 - first) / np.log2(3)) / (3 + 2 / np.log2(3))
    assert result.means["ndcg[span(gain=share)]"] == pytest.approx(expected)
    expected = 2 / np.log2(3) / (3 + 2 / np.log2(3))
    assert result.means["ndcg[span]"] == pytest.approx(expected)


def test_each_passage_is_paid_its_own_shares() -> None:
    oats = "Oats are sown in spring and cut in late summer, before the rains begin."
    wool = "Wool is washed twice in cold water and dried in the shade for a week."
    items = (Item("fox", FOX, 1), Item("oats", oats, 3), Item("wool", wool, 2))
    documents = [Document(str(n), text) for n, text in enumerate((oats, wool, FOX))]
    gold = Gold(passages={"q": items, "r": items[:1]})
    run = DocumentRun({"q": documents, "r": documents[2:]})
    result = evaluate(run, gold=gold, metrics=["ndcg[span(gain=share)]"])
    assert result["ndcg[span(gain=share)]"].scores.tolist() == pytest.approx([1, 1])


def test_shares_cannot_be_counted() -> None:
    run, gold = {"q": ["a"]}, {"q": ["a"]}
    with pytest.raises(UsageError, match=r"recall cannot count: say recall\[span\]"):
        evaluate(run, gold=gold, metrics=["recall[span(gain=share)]"])


def test_coverage_needs_a_matcher_that_measures_it() -> None:
    with pytest.raises(UsageError, match=r"say coverage\[span\]"):
        evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics=["coverage[id]"])


@pytest.mark.parametrize("tau", [0, -1, 1.5, True, "x"])
def test_tau_is_a_share(tau: object) -> None:
    with pytest.raises(
        ParameterError, match=r"span: tau must be a number > 0 and <= 1"
    ):
        SpanMatcher(tau=tau)  # type: ignore[arg-type]


def test_the_spelling_takes_parameters() -> None:
    assert read_matcher("span(0.8)") == SpanMatcher(tau=0.8)
    assert str(SpanMatcher(tau=0.8, gain="share")) == "span(tau=0.8, gain=share)"


def test_spans_without_text_need_documents_with_offsets() -> None:
    gold = Gold(spans={"q": (GoldSpan("s", "d", 0, 10),)})
    run = DocumentRun({"q": [Document("a", "some text")]})
    with pytest.raises(DataError, match="do not say where in their source they are"):
        SpanMatcher().match(run, gold, judged=True, policies=Policies())


def test_by_offsets_what_was_retrieved_twice_counts_once() -> None:
    places = [("a", 0, 10), ("b", 0, 5), ("c", 20, 30)]
    documents = [Document(i, source="s", start=a, end=b) for i, a, b in places]
    gold = Gold(spans={"q": (GoldSpan("p", "s", 0, 10),)})
    for count, iou in ((1, 1.0), (2, 1.0), (3, 0.5)):
        run = DocumentRun({"q": documents[:count]})
        scores = evaluate(run, gold=gold, metrics=["coverage", "iou"])
        assert scores.means == {"coverage": 1.0, "iou": iou}


def test_spans_with_text_are_found_in_documents_without_offsets() -> None:
    gold = Gold(spans={"q": (GoldSpan("s", "d", 10, 10 + len(FOX), text=FOX),)})
    run = DocumentRun({"q": [Document("a", f"text {FOX} text")]})
    hits = SpanMatcher().match(run, gold, judged=True, policies=Policies()).hits
    assert hits.rank.tolist() == [1]


def test_documents_without_text_are_refused() -> None:
    gold = Gold(passages={"q": (Item("p", FOX),)}, documents={"q": {"a": 1.0}})
    run = DocumentRun({"q": [Document("a")]})
    with pytest.raises(DataError, match="1 query has no text, and span compares texts"):
        SpanMatcher().match(run, gold, judged=True, policies=Policies())


def test_three_of_the_queries_are_named_that_lack_something() -> None:
    names = ("a", "b", "c", "d")
    spans = Gold(spans={q: (GoldSpan("s", "d", 0, 10),) for q in names})
    run = DocumentRun({q: [Document("x", "some text")] for q in names})
    with pytest.raises(DataError, match=r"4 queries do not say .* are: a, b, c;"):
        SpanMatcher().match(run, spans, judged=True, policies=Policies())
    passages = {q: (Item("p", FOX),) for q in names}
    gold = Gold(passages=passages, documents={"a": {"x": 1.0}})
    run = DocumentRun({q: [Document("x")] for q in names})
    with pytest.raises(DataError, match=r"4 queries have no text, .*: a, b, c;"):
        SpanMatcher().match(run, gold, judged=True, policies=Policies())
