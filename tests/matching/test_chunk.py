"""`chunk`: one text in the other, and a planted set of texts that only look so."""

import json
import random
from string import ascii_lowercase

import pytest

from karat.extend import ParameterError, read_matcher
from tests.conftest import ROOT
from tests.matching.text_runs import satisfies

REFUND = "You get a full refund within five days of delivery."
PROMISE = (
    "Our shop promises that every customer receives a full refund of the whole price "
    "within five days of delivery, whatever the reason may have been."
)
TURN = {"role": "user", "content": 'She said "hi",\nthen left for the café.'}

MATCHES = {
    "equal": (REFUND, REFUND),
    "looks differ": (
        REFUND,
        "**You get** a  full refund\nwithin five days of DELIVERY.",
    ),
    "chunk in gold": (REFUND, "full refund within five days"),
    "gold in chunk": ("full refund within five days", f"Good news! {REFUND} Enjoy."),
    "date line": (REFUND, f"Date: 2023/05/30 (Tue) 17:27\n{REFUND}"),
    "date line in small letters": (REFUND, f"  date: 2024-01-02\n{REFUND}"),
    "speaker": (REFUND, f"user: {REFUND}"),
    "date and speaker": (REFUND, f"Date: 2023/05/30\nassistant: {REFUND}"),
    "stamped speaker": (REFUND, f"[2023/05/30 17:27] user: {REFUND}"),
    "tabbed stamp": (REFUND, f"2023/05/30 17:27\tassistant: {REFUND}"),
    "speaker in gold": (f"assistant: {REFUND}", REFUND),
    "two turns": (
        "Hello there.\nHow are you?",
        "user: Hello there.\nassistant: How are you?",
    ),
    "colon in what is said": ("note: bring milk", "user: note: bring milk and eggs"),
    "a date inside": (REFUND, f"Date: today\nuser: {REFUND}\nDate: tomorrow"),
    "gold as JSON string": (json.dumps("line one\nline two"), "line one\nline two"),
    "gold as JSON message": (json.dumps(TURN), f"user: {TURN['content']}"),
    "part of JSON message": (json.dumps(TURN), 'said "hi",\nthen left for the café'),
    "gold as JSON session": (
        json.dumps(
            {"date": "2023", "messages": [TURN, {"role": "a", "content": "Bye now"}]}
        ),
        f"user: {TURN['content']}\nassistant: Bye now",
    ),
    "JSON without braces": (
        r"first line\nsecond \"line\"",
        'first line\nsecond "line"',
    ),
    "a path is no escape": (
        r"open C:\new\tools first",
        r"Please open C:\new\tools first.",
    ),
    "short but equal": ("Yes", "user: yes"),
    "Chinese": ("退款在五天内到账", "您好。退款在五天内到账。谢谢。"),
    "Thai": ("คืนเงินภายในห้าวัน", "สวัสดี คืนเงินภายในห้าวัน ขอบคุณ"),
    "Arabic with marks of direction": (
        "استرداد كامل",
        "\u200fنعم، استرداد كامل\u200f خلال",
    ),
    "cut inside words by a chunker": (PROMISE, PROMISE[14:-20]),
}

PLANTED = {
    "contradiction": (
        "Refunds take fourteen days and are paid as store credit.",
        "Refunds take five days and are paid as a full refund.",
    ),
    "one number changed": (
        "The fee is 50 euros a year.",
        "The fee is 500 euros a year.",
    ),
    "number cut at its start": (
        "5 days after delivery",
        "It ends 15 days after delivery.",
    ),
    "number cut at its end": ("The deposit is 15", "The deposit is 150 euros."),
    "decimal cut at the point": ("5 million people", "It has 1.5 million people."),
    "decimal cut after it": ("The rate is 3", "The rate is 3.75 percent."),
    "thousands cut": ("500 people came", "Some 1,500 people came."),
    "sign cut": ("5 degrees at night", "It was -5 degrees at night."),
    "negation outside": ("allowed in the park", "Dogs are not allowed in the park."),
    "negated chunk": ("Dogs are never allowed in the park.", "allowed in the park"),
    "German negation": ("erstattet den Preis", "Wer nicht erstattet den Preis"),
    "Russian negation": ("принимаем возврат", "Мы не принимаем возврат."),
    "Chinese negation": ("可以全额退款", "机票不可以全额退款。"),
    "Thai negation": ("คืนเงินได้ทุกกรณี", "เราไม่คืนเงินได้ทุกกรณี"),
    "contracted negation": ("Members can", "Members can't cancel."),
    "prefix": ("legal to park here", "It is illegal to park here."),
    "hyphenated prefix": ("refundable tickets", "We sell non-refundable tickets."),
    "id in id": ("doc-12", "doc-1"),
    "name in name": ("Annapolis is old", "polis"),
    "empty chunk": (REFUND, ""),
    "speaker only": (REFUND, "user: "),
    "date only": (REFUND, "Date: 2023/05/30"),
    "marks only": (REFUND, "** -- **"),
    "one letter": (REFUND, "a"),
    "one letter said": (REFUND, "user: a"),
    "one word of gold": (REFUND, "You"),
    "punctuation": (REFUND, "."),
    "other text behind a colon": ("a note", "user: note: totally different text"),
    "key of JSON gold": (json.dumps(TURN), "content"),
    "speaker of JSON gold": (json.dumps({"speaker": "somebody", **TURN}), "somebody"),
    "one character of Chinese": ("退款在五天内到账", "天"),
}


@pytest.mark.parametrize("case", MATCHES)
def test_texts_that_hold_each_other_match(case: str) -> None:
    assert satisfies("chunk", *MATCHES[case])


@pytest.mark.parametrize("case", PLANTED)
def test_texts_that_only_look_alike_do_not(case: str) -> None:
    gold, document = PLANTED[case]
    assert not satisfies("chunk", gold, document)
    if "JSON" not in case:  # only gold is unescaped
        assert not satisfies("chunk", document, gold)


def test_least_says_how_much_a_contained_text_must_hold() -> None:
    assert satisfies("chunk(least=3)", REFUND, "You")
    assert not satisfies("chunk(least=30)", REFUND, "full refund within five days")
    with pytest.raises(ParameterError, match="least must be an integer >= 1"):
        read_matcher("chunk(least=0)")


def test_a_long_chunk_is_never_cut_inside_a_number() -> None:
    gold = (
        "Throughout the whole of last year our company has sold more than 1500 bicycles"
    )
    assert satisfies("chunk", gold, gold[3:-7])
    assert satisfies("chunk", gold, gold[3 : gold.index(" bic")])
    assert not satisfies("chunk", gold, gold[3 : gold.index("00 bic")])


def test_a_chunk_of_fifty_letters_may_be_cut_inside_a_word_but_not_from_its_not() -> (
    None
):
    letters = "".join(random.Random(2).choices(ascii_lowercase, k=80))
    assert satisfies("chunk", letters, letters[10:60])
    assert not satisfies("chunk", letters, letters[10:59])
    said = f"{letters[:40]} {letters[40:]}"
    assert satisfies("chunk", f"It is so {said}", said)
    assert not satisfies("chunk", f"It is not {said}", said)


@pytest.mark.parametrize(
    ("letter", "counts"),
    [("\u3400", 2), ("\u9fff", 2), ("\U00020000", 2), ("\ua960", 1), ("\uac00", 1)],
)
def test_a_chinese_character_counts_as_two_letters(letter: str, counts: int) -> None:
    for least in (1, 2, 3):
        found = satisfies(
            f"chunk(least={least})", f"{letter}!", f"see: {letter}! there"
        )
        assert found == (least <= counts)


def test_a_paragraph_that_begins_with_date_is_kept() -> None:
    gold = (
        "Date: the fruit of the palm, sweet and sticky, is eaten dried or fresh in all "
    )
    assert satisfies("chunk", f"{gold}lands.", f"Fruit\n{gold}lands.")
    assert not satisfies("chunk", f"{gold}lands.", f"{gold}seasons.")


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a": ' * 50_000, '"unfinished', '["a", 1', "{}", "[1, 2]"]
)
def test_gold_that_is_no_json_is_compared_as_it_is(text: str) -> None:
    assert satisfies("chunk", f"{text} and words", f"see: {text} and words")


def test_what_the_original_counts_rightly_is_counted() -> None:
    golden = json.loads((ROOT / "tests/golden/remem.json").read_text("utf-8"))
    # What its rule lets through by comparing too little, or nothing at all.
    mistaken = (
        "false positive",
        "only 'Time'",
        "matches everything",
        "only text before",
    )
    checked = 0
    for case in golden["cases"]:
        inputs = case["inputs"]
        if case["metric"] != "is_chunk_from_original" or case["expected"] is not True:
            continue
        if not inputs["chunk"] or any(words in case["note"] for words in mistaken):
            assert not satisfies("chunk", inputs["original"], inputs["chunk"]), case
        else:
            assert satisfies("chunk", inputs["original"], inputs["chunk"]), case
        checked += 1
    assert checked > 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gold", "document"),
    [
        ("a" * 1_000_000, "a" * 999_999),
        ("word " * 100_000, "word " * 99_999),
        ("ab " * 50_000, "b a" * 1000),
        ("x" * 10_000_000, "x y z" * 100),
    ],
)
def test_pathological_texts_end(gold: str, document: str) -> None:
    for matcher in ("chunk", "contains(boundary=token)", "normalized"):
        satisfies(matcher, gold, document)
        satisfies(matcher, document, gold)
