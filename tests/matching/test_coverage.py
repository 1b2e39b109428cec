"""Coverage against oracles: sets of characters, and the plain way of looking."""

import csv
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given, settings, strategies as st

from karat import Gold, evaluate
from karat.data.memory_runs import DocumentRun
from karat.extend import Document, Item, Span as GoldSpan, fold
from karat.matching.letters import Letters
from tests.matching.coverage_oracle import covered
from tests.matching.test_span import measure, share

Place = tuple[str, int, int]
laws = settings(max_examples=150, deadline=None)

places = st.tuples(
    st.sampled_from(["a", "b"]), st.integers(0, 30), st.integers(1, 15)
).map(lambda place: (place[0], place[1], place[1] + place[2]))


def characters(stretches: Sequence[Place]) -> set[tuple[str, int]]:
    return {(doc, at) for doc, start, end in stretches for at in range(start, end)}


@pytest.mark.slow
@laws
@given(
    gold=st.lists(places, min_size=1, max_size=4, unique=True),
    documents=st.lists(places, max_size=6, unique=True),
    k=st.integers(1, 7),
    tau=st.sampled_from([0.3, 0.5, 0.9, 1.0]),
)
@example(gold=[("a", 0, 10), ("a", 5, 15)], documents=[("a", 0, 15)], k=1, tau=1.0)
def test_offsets_agree_with_sets_of_characters(
    gold: list[Place], documents: list[Place], k: int, tau: float
) -> None:
    spans = tuple(GoldSpan(f"s{n}", *place) for n, place in enumerate(gold))
    found = [Document(source=doc, start=a, end=b) for doc, a, b in documents]
    metrics = (
        f"coverage@{k}",
        f"complete(tau={tau})@{k}",
        f"char_precision@{k}",
        f"char_precision(overlap=counted)@{k}",
        f"iou@{k}",
        f"iou(overlap=counted)@{k}",
        f"recall[span(tau={tau})]@{k}",
    )
    result = evaluate(
        DocumentRun({"q": found}),
        gold=Gold(spans={"q": spans}),
        metrics=metrics,
        force=True,
    )
    wanted, read = characters(gold), characters(documents[:k])
    charged = sum(end - start for _, start, end in documents[:k])
    common = len(wanted & read)
    shares = [len(characters([p]) & read) / len(characters([p])) for p in gold]
    enough = [share >= tau - 1e-9 for share in shares]
    expected = (
        common / len(wanted),
        float(all(enough)),
        common / len(read) if read else 0.0,
        common / charged if charged else 0.0,
        common / len(wanted | read),
        common / (charged + len(wanted) - common),
        sum(enough) / len(enough),
    )
    assert [*result.means.values()] == pytest.approx(expected, abs=1e-12)


_PLAIN = (
    "time person year way day thing man world life hand part child eye woman place "
    "work week case point government company number group problem fact"
)
WORDS = [*_PLAIN.split(), "14", "3.5", "2019", "%"]
prose = st.lists(st.sampled_from(WORDS), min_size=4, max_size=40).map(" ".join)


@pytest.mark.slow
@laws
@given(gold=prose, documents=st.lists(prose, max_size=4), data=st.data())
def test_texts_agree_with_the_plain_way(
    gold: str, documents: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(gold) - 1))
    end = data.draw(st.integers(start, len(gold)))
    around = "q" * 40
    documents = [f"{around} {text} {around}" for text in (*documents, gold[start:end])]
    assert share(gold, *documents) >= covered(gold, documents) - 1e-9


@pytest.mark.slow
@laws
@given(
    queries=st.lists(
        st.tuples(
            st.lists(prose | st.sampled_from(WORDS), max_size=3),
            st.lists(prose | st.sampled_from(["", *WORDS]), max_size=3),
        ),
        min_size=2,
        max_size=4,
    ),
    data=st.data(),
)
def test_queries_measured_together_do_not_see_each_other(
    queries: list[tuple[list[str], list[str]]], data: st.DataObject
) -> None:
    for golds, documents in queries:
        for gold in golds:
            cut = data.draw(st.integers(0, len(gold)))
            documents[:] = [f"x {gold[:cut]}", *documents, f"{gold[cut:]} y"]
    passages = {
        f"q{n}": tuple(Item(f"p{m}", gold) for m, gold in enumerate(golds))
        for n, (golds, _) in enumerate(queries)
    }
    rankings = {
        f"q{n}": [Document(f"d{m}", text) for m, text in enumerate(documents)]
        for n, (_, documents) in enumerate(queries)
    }
    metrics = ["coverage", "complete", "iou", "recall[span(0.5)]", "rr[span]"]

    def scores(*names: str) -> list[list[float]]:
        run = DocumentRun({name: rankings[name] for name in names})
        gold = Gold(passages={name: passages[name] for name in names}, order=names)
        result = evaluate(run, gold=gold, metrics=metrics, match="span", force=True)
        columns = [result[metric].scores.tolist() for metric in metrics]
        return [[*row] for row in zip(*columns, strict=True)]

    alone = [scores(name)[0] for name in rankings]
    np.testing.assert_array_equal(scores(*rankings), alone)


MIXED = st.lists(
    st.sampled_from(
        [
            *WORDS[:6],
            "中文文本",
            "ภาษาไทย",
            "Ünï",
            "1,5",
            "n't",
            "-\n",
            "* ",
            "🙂",
            "한글",
        ]
    ),
    min_size=1,
    max_size=30,
).map(" ".join)


@given(st.text() | MIXED)
def test_letters_are_those_of_the_normal_form(text: str) -> None:
    assume(not {*"[<&"} & {*text} and not text.lstrip()[:1].isdigit())
    assert Letters(text).letters == Letters(fold(text)).letters


@given(st.text() | MIXED | st.just("see [the page](https://a.b/c) for-\nward &lt;"))
def test_every_letter_is_traced_to_where_it_came_from(text: str) -> None:
    source = Letters(text)
    assert len(source.letters) == len(source.places)
    assert source.places == sorted(source.places)
    for letter, place in zip(source.letters, source.places, strict=True):
        assert letter in Letters(text[place]).letters or text[place] == "&"


def test_overlapping_chunks_are_read_once() -> None:
    words = [f"w{number}x" for number in range(200)]
    text = " ".join(words)
    chunks = [text[at : at + 300] for at in range(0, len(text), 225)]
    merged = measure([text[:100]], chunks)
    assert merged.fresh.sum() == measure([text[:100]], [text]).length.sum()
    assert merged.length.sum() > merged.fresh.sum()
    backwards = measure([text[:100]], chunks[::-1])
    assert backwards.fresh.sum() == merged.fresh.sum()


def test_tokens_are_counted_or_taken_as_given() -> None:
    texts = [
        Document(str(tokens), "x" * 40, metadata={"tokens": tokens})
        for tokens in (None, 7, 0, -1)
    ]
    assert measure(["one two three four"], texts).tokens.tolist() == [10, 7, 0, 10]


def test_a_budget_is_used_in_rank_order() -> None:
    gold = "alpha beta gamma delta"
    run = DocumentRun(
        {
            "q": [
                Document("a", "other words", metadata={"tokens": 60}),
                Document("b", gold, metadata={"tokens": 50}),
            ]
        }
    )
    labels = Gold(passages={"q": (Item("p", gold),)})
    metrics = ["recall_at_budget(tokens=109)", "recall_at_budget(tokens=110)"]
    result = evaluate(run, gold=labels, metrics=metrics)
    assert [*result.means.values()] == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gold", "documents"),
    [
        ("a" * 1_000_000, ["a" * 1_000_000]),
        ("word " * 100_000, ["word " * 100_000, "word " * 10]),
        ("tick tock " * 50_000, ["tock tick " * 50_000]),
        ("1 2 3 4 5 6 7 8 9 0 " * 20_000, ["9 8 7 6 5 4 3 2 1 0 " * 20_000]),
        ("*" * 1_000_000, ["_*#>|[" * 100_000]),
        ("alpha beta " + "x" * 10, ["[a](" * 200_000]),
    ],
    ids=["letter", "word", "two words", "digits", "marks", "links"],
)
def test_pathological_texts_come_to_an_end(gold: str, documents: list[str]) -> None:
    coverage = measure([gold], documents)
    assert coverage.gold.sum() <= coverage.size[0]


@pytest.mark.slow
def test_a_passage_of_ten_megabytes() -> None:
    source = random.Random(0)
    vocabulary = ["".join(source.choices("etaoinshrdlu", k=6)) for _ in range(5000)]
    passage = " ".join(source.choices(vocabulary, k=1_400_000))
    coverage = measure([passage], [passage[1_000_000:3_000_000], passage[:2000]])
    assert coverage.gold.sum() / coverage.size[0] == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("gold", "chunk", "covered"),
    [
        (
            "Please note that a refund window is thirty days.",
            "The refund window is thirty",
            0.5128,
        ),
        ("天十电政邮三户你知二许三统", "十电政三户你知二许三统", 1.0),
    ],
)
def test_a_few_other_letters_may_stand_where_a_chunk_was_cut(
    gold: str, chunk: str, covered: float
) -> None:
    assert share(gold, chunk) == pytest.approx(covered, abs=5e-5)


@pytest.mark.slow
@pytest.mark.shared_data
def test_coverage_is_right_on_real_corpora(shared_data: Path) -> None:
    folder = shared_data / "chunking_eval"
    source = random.Random(0)
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    texts = {
        name: (folder / f"{name}.md").read_bytes().decode()
        for name in {row["corpus_id"] for row in rows}
    }
    for size, overlap in ((300, 0), (800, 200)):
        errors = []
        for row in source.sample(rows, 120):
            text = texts[row["corpus_id"]]
            chunks = [(at, at + size) for at in range(0, len(text), size - overlap)]
            gold = source.choice(json.loads(row["references"]))
            low, high = gold["start_index"], gold["end_index"]
            kept = [c for c in chunks if c[0] < high and c[1] > low]
            kept = [c for c in kept if source.random() < 0.7]
            kept += source.sample(chunks, 5)
            source.shuffle(kept)
            mine = np.zeros(high - low, np.bool_)
            for start, end in kept:
                mine[max(0, start - low) : max(0, end - low)] = True
            got = share(gold["content"], *(text[a:b] for a, b in kept))
            errors.append(abs(got - mine.mean()))
        assert np.mean(errors) <= 0.02
