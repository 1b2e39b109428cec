"""`contains` and `containment@k`: an acceptable answer in the retrieved texts."""

import pytest

import karat
from karat.extend import ParameterError, read_matcher
from karat.matching.contains import splits_number, splits_word
from tests.matching.text_runs import satisfies

HELD = {
    "as it stands": ("14 days", "Refunds within 14 days."),
    "case and white space": ("Eiffel  TOWER", "the eiffel\ntower"),
    "Markdown": ("Eiffel Tower", "the **Eiffel** Tower"),
    "dashes and quotes": (
        "“state-of-the-art”",
        'a "state\u2010of\u2010the\u2010art" lab',
    ),
    "sharp s": ("STRASSE", "In der Straße"),
    "full width": ("2024", "２０２４年"),
    "composed or not": ("café", "the cafe\u0301 is open"),
    "Japanese": ("東京", "日本の首都は東京です。"),
    "Korean": ("서울", "수도는 서울은 크다"),
    "emoji": ("👍🏽 yes", "ok 👍🏽 yes!"),
}
ONLY_IN_WORDS = {
    "digits": ("5", "since 2015"),
    "part of a word": ("art", "a party"),
    "decimal": ("1.5", "11.5 litres"),
    "cut from its mark": ("e", "e\u0301t"),
    "Hindi letter without its sign": ("क", "कि"),
    "Hindi part of a word": ("ताब", "किताब"),
    "negated": ("can", "it can't"),
}


@pytest.mark.parametrize("case", HELD)
def test_an_answer_is_found_whatever_it_looks_like(case: str) -> None:
    assert satisfies("contains", *HELD[case])
    assert satisfies("contains(boundary=token)", *HELD[case])


@pytest.mark.parametrize("case", ONLY_IN_WORDS)
def test_token_boundaries_refuse_parts_of_words(case: str) -> None:
    assert not satisfies("contains(boundary=token)", *ONLY_IN_WORDS[case])


def test_plain_containment_asks_for_no_boundaries() -> None:
    assert satisfies("contains(none)", "5", "since 2015")
    assert not satisfies("contains", "5", "since 2015")


def test_a_later_whole_word_is_found() -> None:
    assert satisfies("contains(token)", "art", "a party of art lovers")
    assert satisfies("contains(token)", "is", "this is it")


def test_the_answer_does_not_hold_the_document() -> None:
    assert not satisfies("contains", "within 14 days", "14 days")


def test_an_answer_never_spans_two_documents() -> None:
    sample = {"id": "q", "answers": ["14 days"], "retrieved_texts": ["in 14", "days"]}
    assert karat.evaluate([sample], metrics=["containment@5"]).means == {
        "containment@5": 0.0
    }


def test_other_boundaries_are_an_error() -> None:
    with pytest.raises(ParameterError, match="one of 'token', 'none'"):
        read_matcher("contains(boundary=word)")


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("no cost", {1, 4, 5, 6}),
        ("don't", {1, 2, 3}),
        ("non-toxic", {1, 2, 4, 5, 6, 7, 8}),
        ("1,500.75", {1, 2, 3, 4, 5, 6, 7}),
        ("5, 6", set()),
        ("at -5", {1, 4}),
        ("2019-2020", {1, 2, 3, 6, 7, 8}),
        ("北京abc是", {3, 4}),
        ("किताब", {1, 2, 3, 4}),
        ("กิน", {1}),
    ],
)
def test_where_words_are_split(text: str, inside: set[int]) -> None:
    assert {p for p in range(-1, len(text) + 2) if splits_word(text, p)} == inside


def test_a_number_is_no_word() -> None:
    assert not splits_number("word", 2)
    assert splits_number("w0rd 15", 6)


SEED = {
    "id": "q-1",
    "expected_output": ["doc-3", "doc-9"],
    "answers": ["30 days", "thirty days"],
    "metadata": {"k": 5},
    "retrieved": [
        {"id": "doc-7", "text": "Our shops are open on weekdays."},
        {"id": "doc-3", "text": "Refunds are possible."},
        {"id": "doc-1", "text": "The refund window is **Thirty   days**."},
        {"id": "doc-9", "text": "Returns are free."},
        {"id": "doc-2", "text": "We ship everywhere."},
    ],
}


def test_id_metrics_and_containment_stand_side_by_side_on_one_sample() -> None:
    # The five aliases of the eval-harness documentation, its worked table, and an
    # answer in a field of its own.
    result = karat.evaluate(
        [SEED],
        metrics=[
            "retrieval-hit-at-k",
            "retrieval-recall-at-k",
            "retrieval-mrr",
            "retrieval-ndcg-at-k",
            "answer-containment-at-k",
        ],
    )
    assert {name: round(mean, 4) for name, mean in result.means.items()} == {
        "hit@k": 1.0,
        "recall@k": 1.0,
        "rr": 0.5,
        "ndcg@k": 0.6509,
        "containment@k": 1.0,
    }
    assert {*result.matchers.values()} == {"id", "contains"}
    assert result.matchers["containment@k"] == "contains"
    assert result["answer-containment-at-k"].cutoffs == (5,)


def test_containment_counts_only_the_top_k() -> None:
    means = karat.evaluate([SEED], metrics=["containment@2", "containment@3"]).means
    assert means == {"containment@2": 0.0, "containment@3": 1.0}


def test_containment_is_undefined_without_answers_and_that_is_counted() -> None:
    without = {**SEED, "id": "q-2"}
    del without["answers"]
    result = karat.evaluate([SEED, without], metrics=["recall@5", "containment@5"])
    containment = result["containment@5"]
    assert (containment.mean, containment.n, containment.undefined) == (1.0, 1, 1)
    assert result["recall@5"].n == 2


def test_boundaries_can_be_asked_of_containment() -> None:
    sample = {"id": "q", "answers": ["5"], "retrieved_texts": ["since 2015"]}
    metrics = ["containment@5", "containment[contains(boundary=none)]@5"]
    assert karat.evaluate([sample], metrics=metrics).means == {
        "containment@5": 0.0,
        "containment[contains(boundary=none)]@5": 1.0,
    }
