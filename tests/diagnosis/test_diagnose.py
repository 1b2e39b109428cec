"""A diagnosis as a user meets it: causes by ids, totals, curves, saving, errors."""

import pickle  # noqa: TID251
import sys
from pathlib import Path

import pytest

import karat
from karat.diagnosis.diagnosis import CAUSES
from karat.extend import FormatError, MismatchError, ParameterError

RUN = {
    "low": ["x", "y", "a"],
    "form": ["D1", "x", "y"],
    "hop": ["m", "x"],
    "never": ["x", "y"],
    "good": ["g"],
}
GOLD = {
    "low": ["a"],
    "form": ["d1"],
    "hop": ["m", "n"],
    "never": ["z"],
    "good": ["g"],
}


@pytest.fixture
def found() -> karat.Diagnosis:
    return karat.diagnose(RUN, gold=GOLD, k=2)


def test_every_miss_has_one_cause(found: karat.Diagnosis) -> None:
    assert {miss.query: miss.cause for miss in found.misses} == {
        "low": "below k",
        "form": "wrong id form",
        "hop": "never retrieved",
        "never": "never retrieved",
    }
    assert sum(found.totals.values()) == len(found.misses) == 4
    assert (found.queries, found.relevant) == (5, 6)
    assert found.recall == pytest.approx(1.5 / 5)


def test_a_miss_below_k_says_which_k_finds_it(found: karat.Diagnosis) -> None:
    (miss,) = [miss for miss in found.misses if miss.query == "low"]
    assert (miss.rank, miss.needed_k) == (3, 3)
    assert dict(found.recall_by_k)[3] == pytest.approx(2.5 / 5)


def test_what_is_not_given_is_not_examined(found: karat.Diagnosis) -> None:
    assert found.not_examined.keys() == {n for n, c in CAUSES.items() if c.needs}
    assert "not examined, needs --corpus" in str(found)


def test_the_parts_of_headroom_add_up_to_1(found: karat.Diagnosis) -> None:
    assert sum(found.headroom.values()) == pytest.approx(1, abs=1e-12)
    assert found.oracle["recall"] == pytest.approx(2.5 / 5)


def test_to_dos_are_ranked_by_what_they_win(found: karat.Diagnosis) -> None:
    wins = [todo.wins for todo in found.todos]
    assert wins == sorted(wins, reverse=True)
    assert {todo.cause: round(todo.wins, 6) for todo in found.todos} == {
        "below k": 0.2,
        "wrong id form": 0.2,
        "never retrieved": 0.3,
    }


def test_the_reranker_is_to_blame_for_what_it_dropped() -> None:
    first = {"q": ["a", "x", "y"], "r": ["x", "y", "b"]}
    after = {"q": ["x", "y", "a"], "r": ["x", "y", "b"]}
    gold = {"q": ["a"], "r": ["b"]}
    found = karat.diagnose(after, gold=gold, k=1, candidates=first)
    assert [miss.cause for miss in found.misses] == [
        "dropped by the reranker",
        "below k",
    ]
    assert found.misses[0].facts == {"candidate_rank": 1}
    assert "dropped by the reranker" not in found.not_examined


def test_a_run_whose_ids_all_have_another_form_is_diagnosed() -> None:
    found = karat.diagnose({"q": ["D1", "D2"]}, gold={"q": ["d1", "d2"]}, k=2)
    assert found.totals == {"wrong id form": 2}
    assert any("no gold id occurs" in note for note in found.notes)


def test_a_run_without_a_common_query_is_an_error() -> None:
    with pytest.raises(MismatchError, match="no query in common"):
        karat.diagnose({"q": ["a"]}, gold={"r": ["a"]})


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "5"])
def test_k_must_be_a_number_of_documents(k: int) -> None:
    with pytest.raises(ParameterError, match="k must be an integer >= 1"):
        karat.diagnose(RUN, gold=GOLD, k=k)


def test_a_diagnosis_survives_saving_and_pickling(
    found: karat.Diagnosis, tmp_path: Path
) -> None:
    found.save(tmp_path / "d.json")
    assert karat.Diagnosis.load(tmp_path / "d.json") == found
    assert pickle.loads(pickle.dumps(found)) == found
    assert found.to_dict()["totals"] == found.totals
    (tmp_path / "bad.json").write_text('{"kind": "comparison"}')
    with pytest.raises(FormatError, match="not a saved diagnosis"):
        karat.Diagnosis.load(tmp_path / "bad.json")
    text = (tmp_path / "d.json").read_text().replace('"k": 2', '"k": "two"')
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(FormatError, match=r"diagnosis.k must be an integer, got str"):
        karat.Diagnosis.load(tmp_path / "bad.json")


def test_an_evaluation_can_be_diagnosed_too(found: karat.Diagnosis) -> None:
    result = karat.evaluate(RUN, gold=GOLD, keep=100)
    again = karat.diagnose(result, k=2)
    assert again.misses == found.misses


def test_slices_that_fare_worse_are_found_and_called_exploratory() -> None:
    queries = {f"q{n}": "How much is 5?" if n % 2 else "prices" for n in range(100)}
    run = {q: ["x"] if n % 2 else ["a"] for n, q in enumerate(queries)}
    found = karat.diagnose(run, gold={q: ["a"] for q in run}, queries=queries)
    failing = {one.name for one in found.slices if one.failing}
    assert failing == {"numbers", "begins with: how"}
    assert "exploratory" in str(found.slice_table())


@pytest.mark.parametrize("corpus", [{}, {"x": "", "z": " "}])
def test_a_corpus_without_a_word_is_no_accident(corpus: dict[str, str]) -> None:
    queries = {"never": "Where is it?"}
    found = karat.diagnose(
        {"never": ["x"]}, gold={"never": ["z"]}, corpus=corpus, queries=queries
    )
    assert found.totals == {"damaged text" if corpus else "not in the corpus": 1}


def test_an_evaluation_without_documents_says_what_it_cannot_tell() -> None:
    result = karat.evaluate(RUN, gold=GOLD)
    found = karat.diagnose(result, k=2, corpus={"a": "Rye.", "x": "Oats."})
    assert any("kept no documents" in note for note in found.notes)
    assert "split over chunks" in found.not_examined


def test_alternatives_are_one_item_of_which_any_will_do() -> None:
    gold = karat.read_gold({"q": {"a": 1, "b": 1}})
    grouped = type(gold)(gold.documents, groups={"q": {"a": "g", "b": "g"}})
    found = karat.diagnose({"q": ["x", "b"]}, gold=grouped, k=1)
    assert [(m.item, m.cause, m.rank) for m in found.misses] == [("g", "below k", 2)]


def test_a_near_miss_says_what_differs() -> None:
    text = "Goods can be returned within 30 days of delivery, even when they were used."
    near = "Goods can be returned within 14 days of delivery, if they were never used!"
    samples = [{"id": "q", "retrieved": [near], "reference_contexts": [text]}]
    (miss,) = karat.diagnose(samples, match="exact", k=1).misses
    assert miss.cause == "near miss in text"
    assert "30 -> 14" in miss.related[0].differs


def test_a_fragment_of_a_whole_document_is_a_split() -> None:
    whole = (
        "The harbour office opens at nine and closes at noon. "
        "Ships must report to it before they enter the inner harbour. "
        "Reports are taken by radio, on the channel that the chart names."
    )
    run = [{"id": "q", "retrieved": [{"id": "c1", "text": whole[:53]}, "x"]}]
    found = karat.diagnose(run, gold={"q": ["doc"]}, k=2, corpus={"doc": whole})
    assert [miss.cause for miss in found.misses] == ["split over chunks"]
    assert found.misses[0].related[0].id == "c1"


def test_a_document_without_a_text_is_named() -> None:
    with pytest.raises(FormatError, match="document 2: a document has no text"):
        karat.diagnose({"q": ["a"]}, gold={"q": ["y"]}, corpus={"a": "x", "y": None})
    with pytest.raises(FormatError, match="document 1: a document has no text"):
        karat.doctor({"q": ["a"]}, corpus={"a": None})


def test_the_table_and_the_to_do_give_one_advice() -> None:
    found = karat.diagnose({"q": ["a", "x"]}, gold={"q": ["a", "b"]}, k=2)
    (todo,) = found.todos
    assert (todo.cause, todo.advice) == ("never retrieved", CAUSES[todo.cause].advice)
    assert todo.sentence.startswith(CAUSES[todo.cause].action)


def test_bounds_say_that_documents_below_k_count() -> None:
    found = karat.diagnose({"q": ["a", "x", "y"]}, gold={"q": {"a": 1, "z": 1}}, k=1)
    table = found.bound_table()
    assert table is not None
    assert "unjudged ones below rank 1 are relevant" in table.notes[0]
    assert found.bounds["recall@1"].worst == 0.25


def test_the_id_of_a_query_decides_nothing() -> None:
    corpus = {"a": "Rye is a grain.", "b": "Oats too.", "x": "Wool.", "y": "Hay."}
    causes = []
    for name in ("2hop__1", "q1"):
        found = karat.diagnose(
            {name: ["a", "x"]},
            gold={name: ["a", "b"]},
            corpus=corpus,
            queries={name: "What is rye?"},
            k=2,
        )
        causes.append(found.misses[0].cause)
    assert causes[0] == causes[1] != "partial multi-hop"


def test_a_higher_k_wins_what_it_finds_whatever_the_cause() -> None:
    run = {"q": ["x", "y", "a"], "r": ["x", "x2", "y", "b"]}
    corpus = {"a": "Rye.", "b": "Oats.", "y": "Wool is warm.", "x": "Hay, dry."}
    corpus["x2"] = "Hay, dry!"
    found = karat.diagnose(run, gold={"q": ["a"], "r": ["b"]}, k=2, corpus=corpus)
    curve = dict(found.recall_by_k)
    (todo,) = [one for one in found.todos if one.cause == "below k"]
    assert todo.wins == pytest.approx(curve[todo.k or 0] - curve[2])
    assert not any("at most" in one.sentence for one in found.todos)


def test_misses_show_what_the_gold_says() -> None:
    samples = [
        {"id": "q", "retrieved": ["Wool."], "reference_contexts": ["Rye grows."]}
    ]
    table = str(karat.diagnose(samples, k=1).miss_table())
    assert "Rye grows." in table
    assert "passage-1" not in table


def test_docs_have_every_cause_with_its_advice() -> None:
    page = Path(__file__).parents[2] / "docs" / "diagnosis.md"
    lines = page.read_text("utf-8").splitlines()
    rows = [line.split(" | ") for line in lines if line.count(" | ") == 3]
    known = {row[0].removeprefix("| "): row[2] for row in rows}
    order = [name for name in known if name in CAUSES]
    assert order == [*CAUSES]
    assert {name: known[name] for name in CAUSES} == {
        name: cause.advice for name, cause in CAUSES.items()
    }


def test_gaps_in_ranks_are_no_documents() -> None:
    rows = [("q", "x", 1), ("q", "a", 3), ("r", "x", 1), ("r", "y", 5)]
    names = ("query", "document", "rank")
    run = [dict(zip(names, row, strict=True)) for row in rows]
    found = karat.diagnose(run, gold={"q": ["a"], "r": ["y"]}, k=2)
    assert [(m.cause, m.rank) for m in found.misses] == [("below k", 3), ("below k", 5)]


def test_all_that_search_by_words_needs_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    run, gold = {"q1": ["d1"]}, {"q1": ["d2"]}
    corpus, queries = {"d1": "rye", "d2": "oats"}, {"q1": "what is rye"}
    install = "search by words (pip install bm25s, or pip install 'karat[bm25]' "
    cases: list[tuple[dict[str, dict[str, str]], str]] = [
        ({}, f"--corpus and the texts of queries (--queries) and {install}"),
        ({"corpus": corpus}, f"the texts of queries (--queries) and {install}"),
        ({"corpus": corpus, "queries": queries}, install),
    ]
    for given, needs in cases:
        found = karat.diagnose(run, gold=gold, force=True, **given)  # type: ignore[arg-type]
        assert found.not_examined["lexical gap"].startswith(needs)
