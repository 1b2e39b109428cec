"""Sweeps: every setting is scored as if alone, and the choice is allowed for."""

import json
import pickle  # noqa: TID251
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from bench.sweep import bm25_factory, confirm, read_data

import karat
from karat import Sweep
from karat.extend import DataError, FormatError, MismatchError, UsageError
from karat.sweeps import Trial

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
WORDS = ["rye", "oat", "barley", "wheat", "spelt", "millet", "maize", "rice"]
chance = random.Random(0)
TEXT = " ".join(chance.choice(WORDS) + str(n) for n in range(3000))
STARTS = chance.sample(range(len(TEXT) - 80), 64)
PASSAGES = {
    f"q{n}": TEXT[TEXT.index(" ", at) + 1 : TEXT.rindex(" ", 0, at + 80)]
    for n, at in enumerate(STARTS)
}
QUERIES = {query: " ".join(text.split()[::2]) for query, text in PASSAGES.items()}
GOLD: Any = {query: {"passages": [text]} for query, text in PASSAGES.items()}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Chunks:
    """Makes keyword searches over chunks, and counts how often, and what is asked."""

    def __init__(self, failing: frozenset[str] = frozenset()) -> None:
        self.built: list[int] = []
        self.asked = 0
        self.failing = failing

    def __call__(self, size: int) -> Callable[[str], list[dict[str, Any]]]:
        self.built.append(size)
        texts = [TEXT[n : n + size] for n in range(0, len(TEXT), size)]
        words = [{*text.split()} for text in texts]

        def search(query: str) -> list[dict[str, Any]]:
            self.asked += 1
            if query in self.failing:
                raise ValueError("no such query")
            wanted = {*query.split()}
            order = sorted(range(len(texts)), key=lambda n: -len(wanted & words[n]))
            return [{"id": f"{size}-{n}", "text": texts[n]} for n in order[:10]]

        return search


def swept(factory: Any, grid: Any, **options: Any) -> Sweep:
    return karat.sweep(factory, grid, QUERIES, GOLD, **options)


def test_text_gold_serves_every_chunking_and_each_is_scored_as_alone() -> None:
    factory = Chunks()
    result = swept(factory, {"size": [40, 160, 640], "k": [1, 3]}, metrics="recall@k")
    # Settings that differ in k only are asked once.
    assert factory.built == [40, 160, 640]
    assert factory.asked == 3 * len(QUERIES)
    for trial in result.trials:
        size, k = trial.setting["size"], trial.setting["k"]
        run = karat.retrieve(Chunks()(size), QUERIES, k, cache=None)
        alone = karat.evaluate(run, gold=GOLD, metrics=[f"recall@{k}"])
        assert trial.mean("recall@k") == pytest.approx(alone.means[f"recall@{k}"])
        assert trial.mean_tokens == pytest.approx(size * k / 4, rel=0.05)
        assert trial.latency > 0
    assert result.best.setting == {"size": 640, "k": 3}
    low, high = result.interval or (0, 0)
    assert low < result.best.mean("recall@k") <= high


def test_the_front_holds_what_no_other_setting_beats() -> None:
    result = swept(Chunks(), {"size": [40, 160, 640], "k": [1, 3]})
    front = [trial.setting for trial in result.front]
    for trial in result.trials:
        beaten = any(
            other.mean("ndcg@k") >= trial.mean("ndcg@k")
            and other.mean_tokens < 0.9 * trial.mean_tokens
            and other.latency < 0.9 * trial.latency
            for other in result.trials
        )
        if beaten:
            assert trial.setting not in front
    assert result.best.setting in front
    assert {"size": 40, "k": 1} in front  # nothing takes fewer tokens


def test_settings_that_are_alike_are_named_and_others_are_not() -> None:
    def build(wrong: int) -> Any:
        return lambda query: ["x", "a"] if int(query) % 10 < wrong else ["a", "x"]

    queries = {f"q{n}": str(n) for n in range(30)}
    gold = {query: ["a"] for query in queries}
    result = karat.sweep(build, {"wrong": [9, 1, 0]}, queries, gold, metrics="rr")
    assert result.best.setting == {"wrong": 0}
    assert [trial.setting["wrong"] for trial in result.alike] == [1, 0]
    assert "1 setting cannot be distinguished from it (alike)" in str(result)
    assert "wrong=0: 1.0000 (95% interval 0.8" in str(result)


def test_a_sweep_goes_on_where_it_was_stopped() -> None:
    class Stopped(Chunks):
        def __init__(self, most: int = 160) -> None:
            super().__init__()
            self.most = most

        def __call__(self, size: int) -> Any:
            if size > self.most:
                raise KeyboardInterrupt
            return super().__call__(size)

    grid = {"size": [40, 160, 640]}
    with pytest.raises(KeyboardInterrupt):
        swept(Stopped(), grid, version="1")
    factory = Stopped(640)
    result = swept(factory, grid, version="1")
    assert factory.built == [640]
    assert result.earlier == 2
    again = swept(Stopped(), grid, version="1")
    assert again == result
    assert "kept from an earlier sweep: 3 settings" in str(again)
    changes: tuple[dict[str, Any], ...] = (
        *({"version": "2"}, {"version": None}, {"version": None, "name": "words"}),
        *({"name": "other"}, {"metrics": "recall@k"}),
    )
    for changed in changes:
        factory = Stopped(640)
        swept(factory, grid, **{"version": "1", **changed})
        assert len(factory.built) == 3


def test_a_retriever_is_made_in_the_thread_that_asks_it() -> None:
    def build(rank: int) -> Callable[[str], list[str]]:
        index = threading.local()
        index.documents = [*["b"] * rank, "a"]
        return lambda _: index.documents

    result = karat.sweep(
        build, {"rank": [0, 1]}, {"q": "x"}, {"q": ["a"]}, metrics="rr"
    )
    assert [trial.failed for trial in result.trials] == [0, 0]


def test_a_failed_query_is_in_no_mean_and_is_counted() -> None:
    result = swept(Chunks(frozenset([QUERIES["q3"]])), {"size": [160]})
    assert result.trials[0].failed == 1
    assert result.trials[0].scores["ndcg@k"][3] is None
    assert "failed: 1 query, in no mean" in str(result)


def test_a_sweep_is_a_value(tmp_path: Path) -> None:
    result = swept(Chunks(), {"size": [40, 640]}, metrics=["recall@k", "rr"])
    result.save(tmp_path / "sweep.json")
    assert Sweep.load(tmp_path / "sweep.json") == result
    schema = json.loads((SCHEMAS / "sweep-1.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    saved = json.loads((tmp_path / "sweep.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(saved)
    assert pickle.loads(pickle.dumps(result)) == result
    frame = result.to_frame()
    assert frame["size"].tolist() == [40, 640]
    assert frame["best"].tolist() == [False, True]
    assert "<td" in result._repr_html_()
    assert repr(result) == "<Sweep of 2 settings, 64 queries, best size=640>"
    assert "Not beaten in both: size 40, size 640." in result.plot("tokens").description
    assert "<svg" in result.to_html()
    with pytest.raises(UsageError, match="unknown cost 'token'; did you mean 'tokens'"):
        result.plot("token")
    head = '{"kind": "sweep", "schema_version": 1'
    for text, sentence in (
        ("{}", ": is not a saved sweep"),
        ("[", ":1: broken JSON"),
        ('{"kind": "comparison"}', ": is not a saved sweep"),
        ("[1]", ": is not a saved sweep"),
        (f"{head}}}", ": sweep: 'metrics' is missing"),
        (
            head + ', "metrics": ["rr"], "queries": ["q1"], "trials": '
            '[{"setting": {}, "scores": {"rr": []}}]}',
            ": does not have a score per query",
        ),
    ):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(FormatError, match=f"other.json{sentence}"):
            Sweep.load(tmp_path / "other.json")
    with pytest.raises(FormatError, match="no such file"):
        Sweep.load(tmp_path / "none.json")


def test_of_equal_settings_the_one_with_fewest_tokens_is_best() -> None:
    scores = {"rr": [1.0, 0.5]}
    trials = [
        Trial({"n": n}, scores, [tokens, tokens]) for n, tokens in ((1, 9), (2, 5))
    ]
    assert Sweep(["rr"], ["a", "b"], trials).best.setting == {"n": 2}


def test_failing_at_hard_queries_does_not_win() -> None:
    fails = Trial({"n": 1}, {"rr": [1.0, None]}, failed=1)
    tries = Trial({"n": 2}, {"rr": [1.0, 0.5]}, [1, 1])
    result = Sweep(["rr"], ["easy", "hard"], [fails, tries])
    assert result.best is tries
    with pytest.raises(DataError, match="no query has a score by rr in all settings"):
        Sweep(["rr"], ["q"], [Trial({"n": 1}, {"rr": [None]})]).best  # noqa: B018


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        ({"sise": [1]}, "unknown parameter of the factory 'sise'; did you mean 'size'"),
        ({"size": []}, "a list of one value or more, got"),
        ({"size": "40"}, "a list of one value or more, got '40'"),
        ({}, "the grid is empty"),
        ({"size": [object]}, "must be texts, numbers, true, false or None"),
        ({"size": [40], "k": [0]}, "sweep: k must be an integer >= 1, got 0"),
        ({"size": ["forty"]}, "the factory failed for size=forty: TypeError"),
    ],
)
def test_a_grid_that_cannot_be_is_said_so(grid: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        swept(Chunks(), grid)


def test_settings_may_be_listed_one_by_one() -> None:
    result = swept(Chunks(), [{"size": 40, "k": 3}, {"size": 640, "k": 1}])
    assert [trial.setting["k"] for trial in result.trials] == [3, 1]


def test_gold_queries_that_are_not_asked_are_counted() -> None:
    some = {query: text for query, text in QUERIES.items() if query != "q0"}
    result = karat.sweep(Chunks(), {"size": [160]}, some, GOLD)
    assert len(result.queries) == len(GOLD) - 1
    assert "not asked: 1 gold query without text" in str(result)
    with pytest.raises(DataError, match="query 'q0': has no text to ask"):
        karat.sweep(Chunks(), {"size": [160]}, {**QUERIES, "q0": ""}, GOLD)


def test_what_cannot_be_scored_is_said_with_its_setting() -> None:
    with pytest.raises(MismatchError, match="no query has gold"):
        karat.sweep(Chunks(), {"size": [40]}, {"other": "rye"}, GOLD)
    with pytest.raises(DataError, match=r"size=40: .*no such query"):
        swept(Chunks(frozenset(QUERIES.values())), {"size": [40]})


@pytest.mark.slow
@pytest.mark.shared_data
def test_the_winner_is_confirmed_on_held_out_queries() -> None:
    """The bar of the benchmark, on the smaller corpora and 6 of its 24 settings."""
    corpora, queries, gold = read_data()
    small = {name: corpora[name] for name in ("state_of_the_union", "wikitexts")}
    held = {
        q: own for q, own in gold.items() if any(own[0] in t for t in small.values())
    }
    result = karat.sweep(
        bm25_factory(small),
        {
            "chunker": ["sentences", "paragraphs"],
            "size": [400, 800, 1600],
            "overlap": [0],
        },
        queries,
        {query: {"passages": texts} for query, texts in held.items()},
        metrics="recall@k",
        k=5,
    )
    assert len(result.queries) > 150
    counts = confirm(result, 0.5)
    assert counts["interval"] >= 0.9
    assert counts["best is alike"] >= 0.9
