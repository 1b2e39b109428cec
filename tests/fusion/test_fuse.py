"""Fusion by hand, and the laws that every method obeys."""

import itertools
import pickle  # noqa: TID251

import numpy as np
import pytest

import karat
from karat import Run, fuse
from karat.data.memory_runs import DocumentRun
from karat.extend import (
    DataError,
    Document,
    ParameterError,
    Policies,
    UnknownNameError,
    UsageError,
)
from karat.fusion import METHODS, NORMS

ONE = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"x": 9.0}}
OTHER = {"q1": {"c": 0.9, "a": 0.5, "d": 0.1}, "q3": {"y": 1.0}}


def scores(run: Run) -> dict[str, dict[str, float]]:
    return {
        query: {str(d.id): float(d.score or 0.0) for d in documents}
        for query, documents in run.rankings(Policies())
    }


@pytest.mark.parametrize(
    ("method", "norm", "expected"),
    [
        ("rrf", None, {"a": 1 / 61 + 1 / 62, "b": 1 / 62, "c": 1 / 63 + 1 / 61}),
        ("sum", "none", {"a": 3.5, "b": 2.0, "c": 1.9, "d": 0.1}),
        ("sum", "min-max", {"a": 1.5, "b": 0.5, "c": 1.0, "d": 0.0}),
        ("sum", "sum", {"a": 2 / 3 + 1 / 3, "b": 1 / 3, "c": 2 / 3, "d": 0.0}),
        ("sum", "rank", {"a": 1 + 2 / 3, "b": 2 / 3, "c": 1 / 3 + 1, "d": 1 / 3}),
        ("mnz", "none", {"a": 7.0, "b": 2.0, "c": 3.8, "d": 0.1}),
        ("anz", "none", {"a": 1.75, "b": 2.0, "c": 0.95, "d": 0.1}),
        ("min", "none", {"a": 0.5, "b": 2.0, "c": 0.9, "d": 0.1}),
        ("max", "none", {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.1}),
        ("med", "none", {"a": 1.75, "b": 2.0, "c": 0.95, "d": 0.1}),
        ("borda", None, {"a": 4 + 3, "b": 3 + 1, "c": 2 + 4, "d": 1 + 2}),
    ],
)
def test_two_small_runs(
    method: str, norm: str | None, expected: dict[str, float]
) -> None:
    fused = scores(fuse([ONE, OTHER], method, norm=norm))["q1"]  # type: ignore[arg-type]
    for document, score in expected.items():
        assert fused[document] == pytest.approx(score, abs=1e-12)
    assert {*fused} == {*"abcd"}
    assert [*fused.values()] == sorted(fused.values(), reverse=True)


def test_z_scores_have_mean_0_and_deviation_1() -> None:
    z = (np.array([3.0, 2.0, 1.0]) - 2.0) / np.sqrt(2 / 3)
    fused = scores(fuse([ONE, {"q1": {"b": 1.0}}], "sum", norm="z"))["q1"]
    assert [fused[d] for d in "abc"] == pytest.approx(z.tolist())


def test_queries_are_those_of_any_run() -> None:
    fused = fuse({"one": ONE, "other": OTHER})
    assert fused.queries() == ["q1", "q2", "q3"]
    assert scores(fused)["q3"] == {"y": 1 / 61}


def test_weights_multiply_what_a_run_gives() -> None:
    for method in METHODS:
        plain = scores(fuse([ONE, OTHER], method))["q1"]  # type: ignore[arg-type]
        twice = scores(fuse([ONE, OTHER], method, weights=[2, 2]))["q1"]  # type: ignore[arg-type]
        assert twice == pytest.approx({d: 2 * s for d, s in plain.items()})
    only = scores(fuse([ONE, OTHER], weights=[1, 0]))["q1"]
    assert [*only][:3] == ["a", "b", "c"]


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_runs_does_not_matter(method: str) -> None:
    dice = np.random.default_rng(0)
    runs = [
        {
            f"q{q}": {f"d{d}": float(dice.random()) for d in dice.permutation(30)[:12]}
            for q in range(5)
        }
        for _ in range(3)
    ]
    first = scores(fuse(runs, method))  # type: ignore[arg-type]
    for order in itertools.permutations(runs):
        again = scores(fuse([*order], method))  # type: ignore[arg-type]
        for query, expected in first.items():
            assert again[query] == pytest.approx(expected, abs=1e-12)


def test_equal_scores_rank_by_id_descending_and_lists_as_given() -> None:
    tied = {"q": {"a": 1.0, "c": 1.0, "b": 1.0}}
    by_score = scores(fuse([tied, {"q": ["z"]}]))["q"]
    assert by_score == pytest.approx(
        {"z": 1 / 61, "c": 1 / 61, "b": 1 / 62, "a": 1 / 63}
    )
    listed = scores(fuse([{"q": ["a", "c", "b"]}, {"q": ["z"]}]))["q"]
    assert listed == pytest.approx({"a": 1 / 61, "z": 1 / 61, "c": 1 / 62, "b": 1 / 63})


def test_scores_in_any_order_are_ranked() -> None:
    mixed = {"q": {"b": 2.0, "a": 3.0, "c": 1.0}}
    assert scores(fuse([mixed, OTHER]))["q"] == pytest.approx(
        {"a": 1 / 61, "b": 1 / 62, "c": 1 / 63}
    )


def test_a_document_listed_twice_counts_at_its_first_rank() -> None:
    fused = scores(fuse([{"q": ["a", "a", "b"]}, {"q": ["c"]}]))["q"]
    assert fused["a"] == pytest.approx(1 / 61)
    assert fused["b"] == pytest.approx(1 / 62)


def test_documents_with_texts_keep_their_order_and_scores() -> None:
    documents = [Document(id="a", score=0.5), Document(id="b", score=0.7)]
    run = DocumentRun({"q": documents}, "texts")
    other = {"q": {"b": 1.0}}
    assert [*scores(fuse([run, other]))["q"]] == ["b", "a"]
    summed = scores(fuse([run, other], "sum", norm="none"))["q"]
    assert summed == pytest.approx({"b": 1.7, "a": 0.5})
    unnamed = DocumentRun({"q": [Document(text="only a text")]}, "texts")
    assert "only a text" in scores(fuse([unnamed, other]))["q"]


@pytest.mark.parametrize("norm", NORMS)
def test_every_norm_takes_equal_scores_and_empty_rankings(norm: str) -> None:
    flat = {"q": {"a": 2.0, "b": 2.0}, "empty": {}}
    fused = scores(fuse([flat, {"q": {"c": 1.0}}], "sum", norm=norm))  # type: ignore[arg-type]
    assert fused["empty"] == {}
    if norm != "rank":
        assert fused["q"]["a"] == fused["q"]["b"]
    assert all(map(np.isfinite, fused["q"].values()))


def test_depth_keeps_the_best() -> None:
    dice = np.random.default_rng(1)
    runs = [{"q": {f"d{i}": float(dice.integers(9)) for i in range(60)}} for _ in "ab"]
    whole = [*scores(fuse(runs, "sum"))["q"].items()]
    for depth in (1, 5, 59, 60, 99):
        cut = [*scores(fuse(runs, "sum", depth=depth))["q"].items()]
        assert cut == whole[:depth]


def test_the_fused_run_is_a_run_like_any_other() -> None:
    fused = fuse([ONE, OTHER], name="hybrid")
    assert fused.name == "hybrid"
    gold = {"q1": ["c", "d"], "q3": ["y"]}
    result = karat.evaluate(fused, gold=gold, metrics=["rr", "recall@2"])
    plain = karat.evaluate(scores(fused), gold=gold, metrics=["rr", "recall@2"])
    assert result.means == plain.means
    assert fused.holds_any({"d"})
    assert scores(pickle.loads(pickle.dumps(fused))) == scores(fused)


def test_files_are_runs_too(tmp_path: object) -> None:
    path = f"{tmp_path}/one.run"
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write("q1 Q0 a 1 3 one\nq1 Q0 b 2 2 one\nq1 Q0 c 3 1 one\n")
    assert scores(fuse([path, OTHER]))["q1"] == scores(fuse([ONE, OTHER]))["q1"]


def test_what_cannot_be_fused_is_said() -> None:
    with pytest.raises(UsageError, match="two or more runs, got 1"):
        fuse([ONE])
    with pytest.raises(UsageError, match="a list or a mapping of names"):
        fuse("one.run")
    with pytest.raises(UnknownNameError, match="unknown fusion method 'rff'; did you"):
        fuse([ONE, OTHER], "rff")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="unknown norm 'minmax'; did you mean"):
        fuse([ONE, OTHER], "sum", norm="minmax")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="rrf reads ranks only"):
        fuse([ONE, OTHER], norm="z")
    with pytest.raises(ParameterError, match="one for each of 2 runs"):
        fuse([ONE, OTHER], weights=[1])
    for wrong in ([0, 0], [-1, 2], [float("nan"), 1]):
        with pytest.raises(ParameterError, match="0 or more, and not all 0"):
            fuse([ONE, OTHER], weights=wrong)
    with pytest.raises(ParameterError, match="depth must be an integer >= 1"):
        fuse([ONE, OTHER], depth=0)
    with pytest.raises(ParameterError, match="k must be 0 or more"):
        fuse([ONE, OTHER], k=-1)


def test_scores_that_are_missing_or_no_numbers_are_said() -> None:
    with pytest.raises(DataError, match="'listed' has no scores, which sum reads"):
        fuse({"listed": {"q1": ["a"]}, "other": OTHER}, "sum")
    assert fuse([{"q1": ["a"]}, OTHER], "sum", norm="rank").queries()
    for bad in (float("nan"), float("inf"), "high"):
        with pytest.raises(DataError, match=r"must be a (finite )?number"):
            fuse([{"q1": {"a": bad, "b": 1.0}}, OTHER])


def test_an_empty_list_beside_scores_gives_nothing() -> None:
    fused = fuse([{"q": []}, {"q": {"a": 1.0}}], "sum")
    assert [[d.id for d in found] for _, found in fused.rankings(Policies())] == [["a"]]


def test_gaps_between_ranks_are_kept() -> None:
    rows = [{"query": "q", "document": d, "rank": r} for d, r in (("a", 1), ("b", 7))]
    fused = scores(fuse([rows, {"q": ["b"]}]))["q"]
    assert fused == {"b": 1 / 67 + 1 / 61, "a": 1 / 61}
    steps = scores(fuse([rows, {"q": ["b"]}], "sum", norm="rank"))["q"]
    assert steps == {"b": 1.5, "a": 1.0}
    table = karat.complementarity([rows, {"q": ["a"]}], {"q": ["b"]}, k=2)
    assert table.union == 0.0
