"""`karat fuse`: a run written from several, and the table of what each adds."""

import json
from pathlib import Path

import pytest

import karat as package
from tests.cli.conftest import Karat

RUNS = ("keyword.run", "dense.run")


def test_the_written_run_scores_as_the_fused_one(karat: Karat) -> None:
    done = karat("fuse", *RUNS, "-o", "hybrid.run")
    assert done == (0, "", "karat: wrote hybrid.run\n")
    fused = package.fuse([*RUNS])
    metrics = ["recall@5", "ndcg@10", "rr"]
    expected = package.evaluate(fused, gold="gold.qrels", metrics=metrics).means
    written = package.evaluate("hybrid.run", gold="gold.qrels", metrics=metrics).means
    assert written == pytest.approx(expected)


def test_distances_are_told(karat: Karat, folder: Path) -> None:
    near = {f"q{n}": {"a": 0.1, "b": 0.9} for n in range(3)}
    (folder / "near.json").write_text(json.dumps(near))
    why = (
        "3 queries of {} have scores that contradict the order given: are they "
        "distances? fusion takes larger as better; negate them, or pass lists without "
        "scores (for example q0, q1, q2)"
    )
    done = karat("fuse", "near.json", "dense.run", "-o", "hybrid.run")
    assert done.err.splitlines()[0] == f"karat: {why.format('near.json')}"
    fused = package.fuse({"near": near, "other": {"q0": ["b"]}})
    assert [*map(str, fused.retrieval.notices)] == [why.format("near")]


def test_method_weights_norm_and_depth(karat: Karat) -> None:
    options = ("--method", "sum", "--weights", "0.3,0.7", "--norm", "z", "--depth", "3")
    assert karat("fuse", *RUNS, "-o", "hybrid.json", *options).code == 0
    expected = package.fuse([*RUNS], "sum", weights=[0.3, 0.7], norm="z", depth=3)
    metrics = ["recall@3", "rr"]
    ours = package.evaluate("hybrid.json", gold="gold.qrels", metrics=metrics)
    theirs = package.evaluate(expected, gold="gold.qrels", metrics=metrics)
    assert ours.means == pytest.approx(theirs.means)


def test_gold_shows_what_each_run_adds(karat: Karat, folder: Path) -> None:
    before = {*folder.iterdir()}
    done = karat("fuse", *RUNS, "--gold", "gold.qrels", "-k", "5")
    assert (done.code, done.err) == (0, "")
    for word in ("keyword.run", "dense.run", "recall@5", "only here", "union of all"):
        assert word in done.out
    assert {*folder.iterdir()} == before
    whole = json.loads(karat("fuse", *RUNS, "--gold", "gold.qrels", "--json").out)
    assert whole["k"] == 10
    assert (
        f"fused (rrf) {whole['fused']:.4f}"
        in karat(*("fuse", *RUNS, "--gold", "gold.qrels")).out
    )
    assert whole["overlap"][0]["runs"] == [*RUNS]


def test_the_run_on_stdout_keeps_the_table_apart(karat: Karat) -> None:
    done = karat("fuse", *RUNS, "-o", "-", "--to", "trec_run", "--gold", "gold.qrels")
    assert done.code == 0
    assert all(line.count(" ") == 5 for line in done.out.splitlines())
    assert "union of all" in done.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (RUNS, "nothing to do: name a run to write"),
        ((RUNS[0], "-o", "x.run"), "fuse takes two or more runs, got 1"),
        ((*RUNS, "-o", "-"), "--to names the format of -"),
        ((*RUNS, "-o", "dense.run"), "dense.run is an input"),
        ((*RUNS, "-o", "x.run", "--weights", "a,b"), "expected numbers like 0.7,0.3"),
        ((*RUNS, "-o", "x.run", "--weights", "1"), "one for each of 2 runs"),
        ((*RUNS, "-o", "x.run", "--norm", "z"), "rrf reads ranks only"),
        (("gone.run", "dense.run", "-o", "x.run"), "gone.run"),
    ],
)
def test_mistakes_are_sentences(
    karat: Karat, options: tuple[str, ...], sentence: str
) -> None:
    done = karat("fuse", *options)
    assert done.code == 2
    assert sentence in " ".join(done.err.split())
