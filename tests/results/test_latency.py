"""How long a retriever took: in a result, on a board, saved and merged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import karat
from karat import Evaluation

DASH = "\N{EN DASH}"


def timed(times: dict[str, float], **others: Any) -> Evaluation:
    """A result of a retriever that took so many milliseconds for each query."""
    queries = {query: f"What is {query}?" for query in times}
    run = karat.retrieve(lambda _: ["b", "a"], queries, k=2, name="dense")
    result = karat.evaluate(run, gold={query: ["a"] for query in times}, metrics="rr")
    assert result.latency is not None
    others = {"first_call": frozenset(), **others}
    latency = replace(result.latency, milliseconds=times, **others)
    return replace(result, latency=latency)


def test_times_of_parts_are_merged() -> None:
    one = timed({"q1": 1, "q2": 2}, earlier={"q2"}, first_call={"q1"}, concurrency=2)
    two = timed({"q3": 3}, earlier={"q3"}, first_call=set(), concurrency=4)
    latency = Evaluation.merge([one, two]).latency
    assert latency is not None
    assert latency.milliseconds == {"q1": 1, "q2": 2, "q3": 3}
    assert (latency.earlier, latency.first_call) == ({"q2", "q3"}, {"q1"})
    assert latency.concurrency == 4
    # What one of two does not know, the other may.
    unknown = replace(two, latency=None)
    assert Evaluation.merge([unknown, one]).latency == one.latency
    silent = timed({"q3": 3}, concurrency=None)
    for parts in ([silent, one], [one, silent]):
        merged = Evaluation.merge(parts).latency
        assert merged is not None
        assert merged.concurrency == 2
    alone = Evaluation.merge([silent]).latency
    assert alone is not None
    assert alone.concurrency is None
    assert Evaluation.merge([unknown]).latency is None


def test_times_are_saved_and_loaded(tmp_path: Path) -> None:
    result = timed({"q1": 1.5, "q2": 2, "q3": 4}, earlier={"q3", "q2"})
    head = result.to_dict()["latency"]
    assert head == {"p50": 2.0, "p95": 4.0, "p99": 4.0, "n": 3}
    assert result.to_dict()["evaluation"]["latency"]["earlier"] == ["q2", "q3"]
    result.save(tmp_path / "result.json")
    assert karat.load(tmp_path / "result.json") == result
    assert "latency" not in replace(result, latency=None).to_dict()


def test_times_stand_below_the_means() -> None:
    table = timed({"q1": 1, "q2": 2, "q3": 40}, first_call={"q3"}).summary()
    assert [row[0] for row in table.rows] == ["rr", "p50 (ms)", "p95 (ms)", "p99 (ms)"]
    assert [row[1] for row in table.rows[1:]] == ["1", "2", "2"]
    assert "latency: one call at a time" in table.notes
    silent = timed({"q1": 1}, concurrency=None).summary()
    assert not [note for note in silent.notes if "latency" in note]


def test_a_board_has_times_where_any_run_has() -> None:
    fast = timed({"q1": 1, "q2": 2, "q3": 3})
    plain = replace(fast, run="bm25", latency=None)
    board = karat.Leaderboard({"bm25": plain, "dense": fast}).summary(None)
    assert board.columns == ["run", "rr", "p50 (ms)", "p95 (ms)", "p99 (ms)"]
    assert [row[2:] for row in board.rows] == [[DASH, DASH, DASH], ["2", "3", "3"]]
    assert "dense: latency: one call at a time" in board.notes
