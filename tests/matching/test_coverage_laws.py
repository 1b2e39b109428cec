"""The laws of coverage, over text as it is: prose in many scripts, tables and code."""

# ruff: noqa: RUF001

import graphlib
import inspect
import random
import re
import textwrap
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from karat.matching.letters import Letters
from tests.matching.test_span import found, match, measure, share

laws = settings(max_examples=40, deadline=None)

SENTENCES = {
    "english": "The committee met in Geneva on 14 March 2019 and did not agree.|"
    "Sales rose by 3.5 % to $1,200.50, while costs fell by 12 %.|"
    "Nobody knew whether the bridge, built in 1887, would carry the load.|"
    "Refunds are paid within thirty days of the return of the goods.|"
    "A second survey, of 93 households, found no such effect at all.",
    "german": "Der Ausschuss tagte am 14. März und einigte sich nicht.|"
    "Die Größe der Straße überraschte alle, die dort vorübergingen.|"
    "Rückzahlungen erfolgen binnen dreißig Tagen nach Eingang der Ware.|"
    "Niemand wusste, ob die 1887 gebaute Brücke die Last tragen würde.",
    "russian": "Покупатель может вернуть деньги в течение четырнадцати дней.|"
    "Комитет собрался в марте 2019 года и не пришёл к согласию.|"
    "Никто не знал, выдержит ли старый мост такую тяжёлую нагрузку.",
    "arabic": "يمكن للعميل استرداد المبلغ خلال أربعة عشر يوما من استلام البضاعة.|"
    "اجتمعت اللجنة في جنيف ولم تتوصل إلى اتفاق بشأن الميزانية الجديدة.|"
    "لم يعرف أحد ما إذا كان الجسر القديم سيتحمل هذا الحمل الثقيل.",
    "hindi": "ग्राहक सामान मिलने के चौदह दिन के भीतर पैसे वापस मांग सकते हैं।|"
    "समिति की बैठक मार्च में हुई और कोई सहमति नहीं बन सकी।|"
    "किसी को नहीं पता था कि पुराना पुल इतना भार सह सकेगा या नहीं।",
    "thai": "ลูกค้าสามารถขอคืนเงินได้ภายในสิบสี่วันหลังจากได้รับสินค้า|"
    "คณะกรรมการประชุมกันที่เจนีวาและไม่สามารถตกลงกันได้|"
    "ไม่มีใครรู้ว่าสะพานเก่าจะรับน้ำหนักขนาดนี้ได้หรือไม่",
    "chinese": "退货申请须在收到商品后十四天内提出，逾期本公司将不予受理。|"
    "委员会于2019年3月在日内瓦开会，但未能达成一致意见。|"
    "没有人知道这座建于1887年的旧桥能否承受如此沉重的负荷。|"
    "公司 Alpha Corp. 的销售额增长了３.５％，达到 1,200 万美元。",
    "japanese": "返品のお申し込みは商品到着後十四日以内にお願いいたします。|"
    "委員会は二〇一九年三月にジュネーブで開かれたが、合意には至らなかった。|"
    "一八八七年に建てられた橋がその荷重に耐えるかどうかは誰も知らなかった。",
    "korean": "고객은 상품을 받은 후 십사 일 이내에 환불을 요청할 수 있습니다.|"
    "위원회는 삼월에 제네바에서 모였으나 합의에 이르지 못했다.|"
    "오래된 다리가 그 무게를 견딜 수 있을지는 아무도 몰랐다.",
}
UNSPACED = {"thai", "chinese", "japanese"}


def made(kind: str, seed: int) -> str:
    """A text of some length, in which no long passage stands twice.

    Of what is written without spaces, pieces are shorter than a run that counts.
    """
    source = random.Random(seed)
    if kind == "csv":
        rows = (
            f"{n},{source.choice(['north', 'south', 'east'])},"
            f"{source.randint(10**5, 10**7)},{source.uniform(-50, 50):.2f},"
            f"2021-{source.randint(1, 12):02}-{source.randint(1, 28):02}"
            for n in range(70)
        )
        return "id,region,amount,change,day\n" + "\n".join(rows)
    if kind == "code":
        return inspect.getsource(source.choice([graphlib, textwrap]))
    pieces = [
        piece
        for sentence in SENTENCES[kind].split("|")
        for piece in re.findall(r".{1,4}" if kind in UNSPACED else r"\S+ ?", sentence)
    ]
    marks = (f"({source.randint(1000, 10**8)}) " for _ in range(40))
    return "".join("".join(source.sample(pieces, 12)) + mark for mark in marks)


KINDS = [*SENTENCES, "csv", "code"]
texts = st.tuples(st.sampled_from(KINDS), st.integers(0, 50)).map(
    lambda made_from: made(*made_from)
)


@st.composite
def golds(draw: st.DrawFn, least: int = 100) -> tuple[str, int, int]:
    """A text and a passage of it, from where to where."""
    text = draw(texts)
    size = draw(st.integers(least, 800))
    start = draw(st.integers(0, max(0, len(text) - size)))
    return text, start, min(len(text), start + size)


def chunks(text: str, size: int, offset: int) -> list[str]:
    """Pieces of a text, none of them so short that it could be from anywhere."""
    cuts = range(offset % size or size, len(text), size)
    edges = [0, *(cut for cut in cuts if 40 <= cut <= len(text) - 40), len(text)]
    return [text[low:high] for low, high in pairwise(edges)]


@laws
@given(text=texts | st.text(), cut=st.integers(0, 10_000), size=st.integers(1, 400))
def test_a_text_covers_itself(text: str, cut: int, size: int) -> None:
    gold = text[cut % (len(text) + 1) :][:size]
    coverage = measure([gold], [gold])
    assert coverage.gold.sum() == coverage.size[0]
    assert coverage.sound.all()
    if coverage.size[0]:
        assert found(gold, gold, "2022 was another year.") == [1]
        assert found(gold, "2022 was another year.", gold) == [2]


@laws
@given(gold=golds(), before=st.integers(0, 300), after=st.integers(0, 300))
def test_a_passage_inside_a_chunk_is_found(
    gold: tuple[str, int, int], before: int, after: int
) -> None:
    text, start, end = gold
    chunk = text[max(0, start - before) : end + after]
    assert share(text[start:end], chunk) == pytest.approx(1, abs=0.01)
    assert found(text[start:end], "nothing", chunk) == [2]


@laws
@given(text=texts, start=st.integers(0, 3000), size=st.integers(1, 40))
def test_a_short_passage_is_found_at_the_edges_of_a_chunk(
    text: str, start: int, size: int
) -> None:
    start %= len(text) - size
    gold, other = text[start : start + size], "quite another text"
    if gold[0].isalnum():
        for chunk in (f"{other}, {gold}", f"{gold}, {other}", f"{other}, {gold}."):
            assert share(gold, chunk) == 1
            assert measure([gold], [chunk]).sound.all()


@pytest.mark.parametrize("kind", SENTENCES)
def test_letters_that_are_taken_apart_are_the_same_letters(kind: str) -> None:
    whole = SENTENCES[kind].replace("|", " ")
    apart = unicodedata.normalize("NFD", whole)
    assert share(whole, apart) == share(apart, whole) == 1
    letters = Letters(apart)
    assert len(letters.places) == len(letters.letters) == len(Letters(whole).letters)


@st.composite
def rankings(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A passage, and chunks of its text in any order."""
    text, start, end = draw(golds())
    size, offset = draw(st.integers(80, 800)), draw(st.integers(0, 800))
    documents = chunks(text, size, offset)
    kept = draw(st.lists(st.sampled_from(documents), min_size=1, max_size=8))
    return text[start:end], [*dict.fromkeys(kept)]


def covered(gold: str, documents: Sequence[str]) -> list[float]:
    coverage = measure([gold], documents)
    total = coverage.gold.cumsum() / max(1, coverage.size[0])
    return [float(share) for share in total]


@laws
@given(ranking=rankings(), more=rankings())
def test_later_documents_change_nothing_before_them(
    ranking: tuple[str, list[str]], more: tuple[str, list[str]]
) -> None:
    gold, documents = ranking
    longer = [*documents, *(text for text in more[1] if text not in documents)]
    few, many = covered(gold, documents), covered(gold, longer)
    assert many[: len(few)] == pytest.approx(few)
    assert many == sorted(many)
    ranks = match([gold], documents).rank.tolist()
    assert match([gold], longer).rank.tolist()[: len(ranks)] == ranks


@laws
@given(ranking=rankings(), seed=st.integers(0, 100))
def test_reordering_changes_ranks_only(
    ranking: tuple[str, list[str]], seed: int
) -> None:
    gold, documents = ranking
    shuffled = [*documents]
    random.Random(seed).shuffle(shuffled)
    before, after = measure([gold], documents), measure([gold], shuffled)
    assert before.gold.sum() == after.gold.sum()
    assert sorted(before.length) == sorted(after.length)


@laws
@given(
    gold=golds(least=500),
    size=st.integers(150, 900),
    offsets=st.tuples(st.integers(0, 900), st.integers(0, 900)),
    kept=st.tuples(st.integers(0, 400), st.integers(0, 400)),
    seed=st.integers(0, 100),
)
def test_the_same_text_cut_elsewhere_keeps_its_coverage(
    gold: tuple[str, int, int],
    size: int,
    offsets: tuple[int, int],
    kept: tuple[int, int],
    seed: int,
) -> None:
    text, start, end = gold
    retrieved = text[max(0, start - kept[0]) : max(start + 60, end - kept[1])]
    shares = []
    for offset in offsets:
        documents = chunks(retrieved, size, offset)
        random.Random(seed).shuffle(documents)
        shares.append(share(text[start:end], *documents))
    assert shares[0] == pytest.approx(shares[1], abs=0.03)


@pytest.mark.parametrize("kind", ["english", "chinese", "csv"])
def test_a_header_that_chunks_share_does_no_harm(kind: str) -> None:
    text = made(kind, 1)
    gold = text[333:777]
    for size in (150, 250, 400):
        plain = chunks(text, size, 0)
        headed = [f"Annual report 2021 - Part four\n\n{chunk}" for chunk in plain]
        assert share(gold, *headed) >= 0.97
        some = headed[: 1 + 500 // size]
        bare = plain[: 1 + 500 // size]
        assert share(gold, *some) == pytest.approx(share(gold, *bare), abs=0.03)


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        ("a &amp; b are <b>the two</b> letters", "a & b are the two letters"),
        (
            "as was shown,[3] it is so[12] in all cases",
            "as was shown, it is so in all cases",
        ),
        ("see [the guide](https://x.org/a_b) for more", "see the guide for more"),
        ("Stra&szlig;e und Caf&#233; am Platz", "Straße und Café am Platz"),
        ("增长了３．５％，达到一千二百万", "增长了3.5%,达到一千二百万"),
    ],
)
def test_markup_makes_no_difference(gold: str, text: str) -> None:
    assert share(gold, f"Before it. {text} And after.") == 1
    assert share(text, f"Before it. {text} And after.") == 1
    assert share(text, gold) == share(gold, text) == 1


def test_numbers_at_the_edges_of_chunks_are_not_put_together() -> None:
    gold = "Of all that were asked, those who agreed were 93"
    for documents in ([gold, "2022 was a good year"], ["2022 was good", gold]):
        coverage = measure([gold], documents)
        assert coverage.gold.sum() == coverage.size[0]
        assert coverage.sound.all()


SIGNS = ["-5", "< 0.05", "x >= y", "row[1]", "C++", "€500", "1e-5", "10 ‰", "[3]", "a"]


@laws
@given(
    text=texts,
    signs=st.lists(st.sampled_from(SIGNS), min_size=1, max_size=6),
    start=st.integers(0, 2000),
    cut=st.integers(0, 10_000),
)
def test_nothing_differs_in_the_same_text_however_it_is_cut(
    text: str, signs: list[str], start: int, cut: int
) -> None:
    start %= max(1, len(text) - 200)
    gold = f"{text[start : start + 90]} {' '.join(signs)} {text[start + 90 :][:90]}"
    whole = f"Before it. {gold} After it."
    cut %= len(whole)
    for documents in ([whole], [whole[:cut], whole[cut:]], [whole[cut:], whole[:cut]]):
        assert measure([gold], documents).sound.all()


@laws
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 50),
    start=st.integers(0, 2000),
    pair=st.sampled_from(
        ["-5|5", "x < y|x >= y", "row[1]|row[7]", "€5|$5", "in C++|in C#", "14|30"]
    ),
)
def test_a_sign_that_differs_is_told_in_every_script(
    kind: str, seed: int, start: int, pair: str
) -> None:
    text = made(kind, seed)
    start %= len(text) - 200
    first, last = text[start : start + 90], text[start + 100 : start + 190]
    ours, theirs = (f"{first} is {sign} so {last}" for sign in pair.split("|"))
    coverage = measure([ours], [f"Before it. {theirs} After it."])
    assert coverage.share.max() > 0.9
    assert not coverage.sound.any()


@laws
@given(ranking=rankings(), size=st.integers(20, 120), seed=st.integers(0, 100))
def test_what_stands_between_chunks_takes_nothing_away(
    ranking: tuple[str, list[str]], size: int, seed: int
) -> None:
    gold, documents = ranking
    odd = random.Random(seed).choices("qzxjwv", k=size)
    more = [*documents[:1], "".join(odd), *documents[1:]]
    assert share(gold, *more) == share(gold, *documents)


@laws
@given(gold=golds(), other=golds())
def test_texts_that_share_nothing_cover_nothing(
    gold: tuple[str, int, int], other: tuple[str, int, int]
) -> None:
    one, two = (text[start:end] for text, start, end in (gold, other))
    letters = [Letters(text).letters for text in (one, two)]
    grams = [{text[n : n + 3] for n in range(len(text) - 2)} for text in letters]
    if grams[0].isdisjoint(grams[1]):
        assert share(one, two) == 0
