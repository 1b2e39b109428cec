"""What a comparison comes down to, and how it calls runs and queries."""

from karat import compare, evaluate, leaderboard, read_run, retrieve
from karat.extend import Query
from tests.comparison.test_compare import GOLD, NEW, OLD


def test_a_headline_is_about_all_metrics_and_candidates() -> None:
    """One run wins the first rank and loses what stands below, the other nothing."""
    gold = {f"q{n}": {"a": 1, "b": 1} for n in range(30)}
    old = {query: ["x", "a", "b"] for query in gold}
    top = {query: ["a", "x", "y", "z"] for query in gold}
    metrics = ["rr", "hit@1", "recall@2", "recall@3", "recall"]
    both = compare(old, top, gold=gold, metrics=metrics)
    assert both.headline == (
        "better on 2, worse on 2 (recall@3, recall), equal on 1: mixed"
    )
    assert both.headline in both.summary().title
    assert compare(old, old, gold=gold, metrics=["rr"]).headline == ("equal on 1")
    assert compare(old, top, gold=gold, metrics=["rr"]).headline == "better on 1 (rr)"
    several = compare(
        old, {"top": top, "same": old}, gold=gold, metrics=["rr", "recall"]
    )
    assert several.headline == (
        "better on 1, worse on 1 (recall of top), equal on 2: mixed"
    )
    pairs = compare(
        *(old, {"top": top, "same": old}),
        gold=gold,
        metrics=["rr", "recall"],
        all_pairs=True,
    )
    assert pairs.headline == several.headline
    turned = compare(top, old, gold=gold, metrics=["rr", "recall"])
    assert turned.headline == "better on 1, worse on 1 (rr): mixed"


def test_runs_keep_their_names_and_queries_their_texts() -> None:
    texts = {query: f"what is {query}?" for query in GOLD}
    old, new = (
        retrieve(lambda text, run=run: run[text[8:-1]], texts, name=name)
        for name, run in (("bm25", OLD), ("dense", NEW))
    )
    found = compare(old, new, gold=GOLD, metrics=["rr"])
    assert (found.baseline, found.candidates) == ("bm25", ("dense",))
    assert found.movers[0].text == texts[found.movers[0].query]
    scored = evaluate(NEW, gold=GOLD, metrics=["rr"], name="scored")
    assert [*leaderboard([old, new, scored], GOLD, metrics=["rr"])] == [
        *("bm25", "dense", "scored"),
    ]
    # A run that nobody named has its part as a name.
    plain = compare(read_run(OLD), new, gold=GOLD, metrics=["rr"])
    assert (plain.baseline, plain.candidates) == ("baseline", ("dense",))
    # What one of two knows is known.
    one, two = (
        evaluate(run, gold=GOLD, metrics=["rr"], queries=queries, name=name)
        for name, run, queries in (
            ("one", OLD, {query: Query(query, tags=("t",)) for query in GOLD}),
            ("two", NEW, texts),
        )
    )
    assert compare(one, two).movers[0].text == texts[compare(one, two).movers[0].query]
