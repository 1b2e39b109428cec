"""How a score comes about, in figures that can be checked by hand."""

import pytest

from karat import Gold, evaluate, explain
from karat.extend import Span

RUN = {"q": [*"xanb"]}
GOLD = {"q": {"a": 2, "b": 1, "c": 1, "n": 0}}


@pytest.mark.parametrize(
    ("metric", "workings"),
    [
        ("hit@2", "1 found in the top k"),
        ("recall", "2 found / 3 relevant"),
        ("recall@2", "1 found / 3 relevant"),
        ("recall_all@4", "2 found of 3 relevant"),
        ("precision@3", "1 positions match / 3"),
        ("precision(of=retrieved)@9", "2 positions match / 4"),
        ("f1@4", "2 x 0.5000 x 0.6667 / (0.5000 + 0.6667)"),
        ("rr", "1 / 2"),
        ("ap", "(1/2 + 2/4) / 3 relevant"),
        ("ap(of=capped)@2", "(1/2) / 2 that fit"),
        ("ndcg", "DCG 2/log2(3) + 1/log2(5) = 1.6925; ideal 2/log2(2) + 1/log2(3) +"),
        ("ndcg(gain=exp)@2", "DCG 3/log2(3) = 1.8928; ideal 3/log2(2) + 1/log2(3)"),
        ("ncg@3", "2 gained / 4 at best"),
        ("r_precision", "1 found / 3 looked at"),
        ("iprec(recall=0.25)", "1 of 3 needed: highest of 1/2, 2/4"),
        ("iprec(recall=1)", "3 of 3 needed: highest of nothing"),
        ("set_f(beta=2)", "3 x 0.5000 x 0.6667 / (2 x 0.5000 + 0.6667)"),
        ("set_ap", "(2 positions match / 4) x (2 found / 3 relevant)"),
        ("set_relative_precision", "2 found / min(3, 4)"),
        ("bpref", "(1.0000 + 0.0000) / 3 relevant"),
        ("judged@9", "3 labelled / 4 documents"),
        ("unjudged@9", "1 without judgement / 9"),
        ("rbp(gain=scaled)", "0.2 x (0.8000 + 0.2560)"),
        ("err(max_grade=2)", "0.3750 + 0.0156"),
        ("err(max_grade=2)@1", "0"),
        ("ap@1", "(0) / 3 relevant"),
        ("ap(of=capped)", "(1/2 + 2/4) / 3 that fit"),
        ("set_precision", "2 positions match / 4"),
        ("set_recall(threshold=2)", "1 found / 1 relevant"),
        ("set_relative_precision(threshold=2)", "1 found / min(1, 4)"),
        ("bing", "(1/log2(3) + 1/log2(4)) / 3 relevant"),
        ("infap", "(0.5000 + 0.5000) / 3 relevant"),
        ("judged@1", "0 labelled / 1 document"),
        ("unjudged", "1 without judgement / 4"),
        ("context_recall[id]@2", "1 found / 3 relevant"),
        ("context_recall(weights=grade)[id]@2", "2 found / 4 in the gold, by grades"),
        ("contradiction[id]", "0 contradicted / 3 relevant"),
        ("recall_capped@2", "found in top k / min(R, k)"),
    ],
)
def test_the_figures_of_one_query(metric: str, workings: str) -> None:
    rows = explain(RUN, "q", GOLD, metrics=[metric]).tables[1].rows
    assert rows[0][2].startswith(workings)


@pytest.mark.parametrize(
    ("metric", "workings"),
    [
        ("rr", "nothing relevant was found"),
        ("bing", "(0) / 3 relevant"),
        ("ap", "(0) / 3 relevant"),
        ("rbp", "0.2 x (0)"),
        ("err", "0"),
    ],
)
def test_the_figures_where_nothing_was_found(metric: str, workings: str) -> None:
    rows = explain({"q": ["x", "n"]}, "q", GOLD, metrics=[metric]).tables[1].rows
    assert rows[0][2] == workings


CHUNKS = {
    "q": [
        {"id": "c1", "source": "guide.md", "start": 0, "end": 30},
        {"id": "c2", "source": "guide.md", "start": 25, "end": 50},
    ]
}
SPANS = Gold(
    spans={"q": (Span("s1", "guide.md", 0, 20), Span("s2", "guide.md", 40, 60))}
)


@pytest.mark.parametrize(
    ("metric", "score", "workings"),
    [
        ("coverage", 30 / 40, "30 characters covered / 40 in the gold"),
        ("coverage@1", 20 / 40, "20 characters covered / 40 in the gold"),
        ("complete", 0, "1 covered to 0.9 of 2 relevant"),
        ("complete(tau=0.5)", 1, "2 covered to 0.5 of 2 relevant"),
        ("complete(tau=0.5)@1", 0, "1 covered to 0.5 of 2 relevant"),
        ("char_precision", 30 / 50, "30 characters covered / 50 retrieved"),
        (
            "char_precision(overlap=counted)",
            30 / 55,
            "30 characters covered / 55 retrieved",
        ),
        (
            "iou",
            30 / 60,
            "30 characters covered / (50 retrieved + 10 not covered)",
        ),
        (
            "iou(overlap=counted)@1",
            20 / 50,
            "20 characters covered / (30 retrieved + 20 not covered)",
        ),
        (
            "recall_at_budget(tokens=8)",
            1 / 2,
            "1 found down to rank 1 / 2 relevant",
        ),
        (
            "recall_at_budget(tokens=7)",
            0,
            "0 found down to rank 0 / 2 relevant",
        ),
    ],
)
def test_the_figures_of_one_query_with_texts(
    metric: str, score: float, workings: str
) -> None:
    assert evaluate(CHUNKS, SPANS, metrics=metric).means == {metric: score}
    rows = explain(CHUNKS, "q", SPANS, metrics=[metric]).tables[1].rows
    assert rows[0][2] == workings


def test_one_character_can_be_complete_and_no_gold_cannot() -> None:
    one = Gold(spans={"q": (Span("s1", "guide.md", 4, 5),)})
    assert evaluate(CHUNKS, one, metrics="complete@1").means == {"complete@1": 1.0}
    nothing = Gold(spans={"q": (Span("s1", "guide.md", 4, 5, grade=0.0),)})
    result = evaluate(CHUNKS, nothing, metrics=["complete", "char_precision", "iou"])
    assert [str(mean) for mean in result.means.values()] == ["nan"] * 3
    rejected = Span("s2", "guide.md", 80, 90, grade=0.0)
    more = Gold(spans={"q": (Span("s1", "guide.md", 4, 5), rejected)})
    assert evaluate(CHUNKS, more, metrics="complete@1").means == {"complete@1": 1.0}
    dots = [{"retrieved": [{"text": "Rye."}], "passages": ["..."]}]
    result = evaluate(dots, metrics=["complete", "char_precision", "iou"])
    assert [str(mean) for mean in result.means.values()] == ["nan"] * 3


@pytest.mark.parametrize(("count", "end"), [(8, "0.2097)"), (9, "0.2097 + ...)")])
def test_a_sum_shows_eight_terms(count: int, end: str) -> None:
    ids = [f"d{number}" for number in range(count)]
    rows = explain({"q": ids}, "q", {"q": ids}, metrics=["rbp"]).tables[1].rows
    assert rows[0][2].startswith("0.2 x (1.0000 + 0.8000 + ")
    assert rows[0][2].endswith(end)
