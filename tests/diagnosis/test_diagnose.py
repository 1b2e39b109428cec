"""A diagnosis as a user meets it: causes by ids, totals, curves, saving, errors."""

import pickle  # noqa: TID251
import random
import sys
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any

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
    assert "all unjudged below rank 1 are relevant" in table.notes[0]
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


def test_what_is_found_cannot_be_changed() -> None:
    run = {f"q{n}": ["x", f"D{n}"] for n in range(5)}
    gold = {f"q{n}": {f"d{n}": 1, "z": 0} for n in range(5)}
    found = karat.diagnose(run, gold=gold, k=2)
    doctor = karat.doctor({"q": {"a": 0}})
    (finding,), miss = found.findings, found.misses[0]
    values: list[Any] = [found, finding, miss, miss.related[0], found.todos[0]]
    values += [found.bounds["rr@2"], found.label_next[0], doctor, doctor.findings[0]]
    for one in values:
        with pytest.raises(FrozenInstanceError):
            setattr(one, fields(one)[0].name, "other")


def test_recall_is_told_at_growing_k_as_far_as_it_grows() -> None:
    run = {"q": [f"d{n}" for n in range(1100)]}
    found = karat.diagnose(run, gold={"q": ["d1049"]}, k=7)
    steps = (1, 2, 3, 5, 7, 10, 20, 30, 50, 100, 200, 500, 1000, 1050)
    assert found.recall_by_k == tuple((k, float(k == 1050)) for k in steps)
    found = karat.diagnose(run, gold={"q": ["d9", "d4"]}, k=7)
    assert [k for k, _ in found.recall_by_k] == [1, 2, 3, 5, 7, 10]
    assert [recall for _, recall in found.recall_by_k] == [0, 0, 0, 0.5, 0.5, 1]


def test_gold_text_is_counted_in_growing_budgets_as_far_as_there_is_text() -> None:
    text = "The harbour office opens at nine and closes at noon."
    sizes = {90: 1, 160: 2, 30_000: 3, 2_000: 4}
    retrieved = [
        {"id": str(n), "text": text if n == 4 else "-", "metadata": {"tokens": size}}
        for size, n in sizes.items()
    ]
    samples = [{"id": "q", "retrieved": retrieved, "reference_contexts": [text]}]
    budgets = (100, 250, 500, 1000, 2000, 4000, 8000, 16000, 32000)
    found = karat.diagnose(samples, k=2)
    assert found.coverage_by_tokens == tuple((size, 0.0) for size in budgets)
    retrieved.insert(0, {"id": "0", "text": text, "metadata": {"tokens": 0}})
    found = karat.diagnose(samples, k=2)
    assert found.coverage_by_tokens == tuple((size, 1.0) for size in budgets)
    retrieved[3:] = []
    found = karat.diagnose(samples, k=2)
    assert found.coverage_by_tokens == ((100, 1.0), (250, 1.0))


def test_ten_misses_are_shown_in_all_of_each_cause_one_at_least() -> None:
    run = {f"q{n}": ["x", "y", f"d{n}", "z", "w", "v"] for n in range(12)}
    gold: dict[str, list[str]] = {query: [row[2]] for query, row in run.items()}
    table = karat.diagnose(run, gold=gold, k=2).miss_table()
    assert len(table.rows) == 10
    assert table.title == "misses: 10 of 12; -o FILE.html has all"
    gold |= {"q0": ["X"], "q1": ["gone"]}
    table = karat.diagnose(run, gold=gold, k=2).miss_table()
    assert [row[2] for row in table.rows] == [
        *("wrong id form", "below k", "below k", "below k", "never retrieved")
    ]
    table = karat.diagnose(run, gold=gold, k=2).miss_table(1)
    assert len(table.rows) == 3
    assert karat.diagnose(run, gold=gold, k=2).miss_table(36).title == (
        "misses: 12 of 12"
    )


def test_a_page_has_every_miss_with_its_cause(found: karat.Diagnosis) -> None:
    page = found.to_html()
    for miss in found.misses:
        assert miss.cause in page
    assert "misses: 4 of 4" in page
    assert "has all" not in page
    loaded = replace(found, evaluation=None).to_html()
    assert "never retrieved" in loaded


def test_tables_are_shown_that_have_a_row(found: karat.Diagnosis) -> None:
    heads = [table.columns[0] for table in found.tables()]
    assert heads == ["cause", "query", "k", "parts of 1", "metric"]
    good = karat.diagnose({"q": ["a"]}, gold={"q": ["a"]})
    assert [t.columns[0] for t in good.tables()] == [
        "cause",
        "k",
        "parts of 1",
        "metric",
    ]


def test_candidates_that_have_nothing_in_common_with_gold_are_no_error() -> None:
    found = karat.diagnose(RUN, gold=GOLD, k=2, candidates={q: ["o"] for q in RUN})
    assert "dropped by the reranker" not in found.totals
    assert "dropped by the reranker" not in found.not_examined


def test_evidence_shows_the_stretches_that_both_texts_share() -> None:
    gold = "Goods can be returned within 30 days of delivery, even when they were used."
    text = "See: goods can be returned within 14 days of delivery, when they were used."
    samples = [{"id": "q", "retrieved": ["-", text], "reference_contexts": [gold]}]
    (miss,) = karat.diagnose(samples, match="exact", k=2).misses
    (near,) = miss.related
    assert near.rank == 2
    ours, theirs = (
        [whole[low:high] for low, high in ranges]
        for whole, ranges in ((gold, near.gold), (text, near.spans))
    )
    assert ours == [
        "Goods can be returned within",
        "days of delivery",
        "when they were used",
    ]
    assert theirs == [ours[0].lower(), *ours[1:]]


def test_a_text_of_a_few_letters_is_no_near_miss_of_others() -> None:
    samples = [
        {"id": "q", "retrieved": ["Wool."], "reference_contexts": ["Rye grows."]}
    ]
    (miss,) = karat.diagnose(samples, match="exact", k=1).misses
    assert miss.cause == "never retrieved"


@pytest.mark.parametrize(
    ("letters", "cause"), [(39, "near miss in text"), (40, "split over chunks")]
)
def test_half_of_a_text_is_a_fragment_where_the_rest_is_not_known(
    letters: int, cause: str
) -> None:
    text = "".join(random.Random(4).choices(ascii_lowercase, k=80))
    samples = [{"id": "q", "retrieved": [text[:letters]], "reference_contexts": [text]}]
    (miss,) = karat.diagnose(samples, k=1).misses
    assert miss.cause == cause


def causes(corpus: dict[str, str], question: str, gold: str = "gold") -> list[str]:
    """Causes of a document that is not among those retrieved."""
    found = karat.diagnose(
        {"q": ["n1", "n2"]},
        gold={"q": [gold]},
        corpus=corpus,
        queries={"q": question},
        k=2,
    )
    return [f"{miss.cause}: {miss.reason}" for miss in found.misses]


NOTES = {f"n{n}": f"Oats and wool of the year {n}, sold at noon." for n in range(40)}


@pytest.mark.parametrize(
    ("question", "text", "damaged"),
    [
        ("\u041a\u0442\u043e?", "Rye is a grain.", True),
        ("\u041a\u043e?", "Rye is a grain.", False),
        ("Who?", "\u0420\u043e\u0436\u044c.", True),
        ("Ho?", "\u0420\u043e\u0436\u044c.", False),
        ("Who?", "\u0420\u043e.", False),
        ("Who?", "Rye is a grain.", False),
    ],
)
def test_three_letters_tell_a_script(
    question: str, text: str, *, damaged: bool
) -> None:
    (told,) = causes({**NOTES, "gold": text}, question)
    assert told.startswith("damaged text: its text is in ") == damaged


@pytest.mark.parametrize(("size", "damaged"), [(10, True), (11, False)])
def test_a_text_of_less_than_a_fourth_of_the_usual_size_is_cut_off(
    size: int, *, damaged: bool
) -> None:
    """Where texts do not end as sentences do; where they do, their end tells."""
    notes = {
        name: f"oats and wool of the year {n:02}, sold at noon"
        for n, name in enumerate(NOTES)
    }
    assert {*map(len, notes.values())} == {42}
    (told,) = causes({**notes, "gold": "rye and barley"[:size]}, "When?")
    assert told.startswith("damaged text: its text is cut off") == damaged
    (told,) = causes(
        {**NOTES, "gold": "Rye and barley of the year before las"}, "When?"
    )
    assert told.startswith("damaged text: its text is cut off: it ends in ")


def test_a_long_text_among_short_ones_is_not_called_foreign() -> None:
    """Of many texts some are looked at, and here none of twenty words."""
    notes = {f"n{n}": "oats of here." for n in range(1002)}
    names = [*notes]
    notes[names[501]] = " ".join(f"word{n}" for n in range(30)) + "."
    (told,) = causes(notes, "When?", names[501])
    assert not told.startswith("damaged")


def test_words_that_only_other_documents_have_do_not_find_it() -> None:
    corpus = {**NOTES, "gold": "Rye is a grain of the north."}
    corpus |= {f"b{n}": f"Who sows barley in year {n}?" for n in range(5)}
    (told,) = causes(corpus, "Who sows barley?")
    assert told == "lexical gap: search by words (BM25) does not find it"
    (told,) = causes(corpus, "What is rye?")
    assert told == "embedding miss: search by words (BM25) has it at rank 1"


def test_a_passage_of_a_few_letters_is_looked_for_in_the_corpus() -> None:
    samples = [{"id": "q", "reference_contexts": ["Rye 7", "Rye 8"]}]
    found = karat.doctor(samples, corpus={"a": "Oats.", "b": "See: rye 7, sown."})
    assert [(one.kind, one.item) for one in found.findings] == [
        ("not covered", "passage-2")
    ]


@pytest.mark.parametrize(("same", "twin"), [(87, True), (86, False)])
def test_near_duplicates_have_87_in_100_letters_in_common(
    same: int, *, twin: bool
) -> None:
    text = "".join(random.Random(4).choices("abcdefghijklm", k=100))
    places = range(40, 140 - same)
    copy = "".join("z" if n in places else letter for n, letter in enumerate(text))
    corpus = {**NOTES, "gold": f"{text}.", "n1": f"{copy}."}
    (told,) = causes(corpus, "What is it?")
    expected = "unlabelled twin retrieved: 'n1' at rank 1 says the same (87% alike)"
    assert told.startswith(expected) == twin
    found = karat.doctor({"q": {"gold": 1}}, corpus=corpus).findings
    assert [(one.kind, one.other) for one in found] == [
        ("unlabelled duplicate", "n1")
    ] * twin


def test_a_text_in_look_alike_letters_is_named() -> None:
    gold = "Rye is a grain of the cold north, and is sown in autumn."
    odd = gold.replace("a", "\u0430").replace("o", "\u043e")
    samples = [{"id": "q", "retrieved": ["Wool."], "reference_contexts": [gold]}]
    corpus = {**NOTES, "rye": odd}
    (miss,) = karat.diagnose(samples, corpus=corpus, k=1).misses
    assert (miss.cause, miss.reason) == (
        "damaged text",
        "'rye' has it in look-alike letters",
    )
    assert [near.id for near in miss.related] == ["rye"]
    # Where the corpus has it as it is, too, nothing is wrong with that.
    corpus["good"] = gold
    (miss,) = karat.diagnose(samples, corpus=corpus, k=1).misses
    assert miss.cause == "never retrieved"


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        # Where the gold text is nowhere, this may be it, and the gold be wrong.
        ([("30", "14")], "near miss in text"),
        ([("30", "14"), ("", "")], "contradicting copy retrieved"),
        # Another form of the same text is found by a matcher, or is not wanted.
        ([("days", "DAYS"), ("", "")], "below k"),
    ],
)
def test_a_copy_of_a_text_contradicts_it_if_it_is_there_itself(
    changes: list[tuple[str, str]], cause: str
) -> None:
    gold = "Goods can be returned within 30 days of delivery, even when they were used."
    texts = [gold.replace(old, new) for old, new in changes]
    samples = [{"id": "q", "retrieved": texts, "reference_contexts": [gold]}]
    (miss,) = karat.diagnose(samples, match="exact", k=1).misses
    assert miss.cause == cause


def test_where_kinds_of_queries_and_documents_begin_and_end() -> None:
    words, gold, queries = (5, 6, 14, 15), {}, {}
    corpus = {f"short-{n}": "x" * 10 for n in range(100)}
    for number in range(80):
        query, kind = f"q{number}", number % 4
        names = [f"{number}{letter}" for letter in "abcd"[: kind + 1]]
        gold[query], queries[query] = names, " ".join(["rye"] * words[kind])
        # A median of 20 letters.
        corpus |= dict.fromkeys(names, "x" * (9, 20, 40, 41)[kind])
    run = {query: ["short-1"] for query in gold}
    found = karat.diagnose(run, gold=gold, corpus=corpus, queries=queries, force=True)
    assert {one.name: one.queries for one in found.slices} == {
        "length: short": 20,
        "length: medium": 40,
        "length: long": 20,
        "gold items: 1": 20,
        "gold items: 2": 20,
        "gold items: 3 or more": 40,
    }
    lengths = {s.name: s.queries for s in found.document_slices if "length" in s.name}
    assert lengths == {
        "document length: short": 20,
        "document length: medium": 100,
        "document length: long": 80,
    }


@pytest.mark.parametrize(("more", "damaged"), [(3, True), (4, False)])
def test_a_short_text_is_not_cut_off_where_a_tenth_of_all_are_short(
    more: int, *, damaged: bool
) -> None:
    """Four of 44, and five of 45."""
    corpus = {name: text.rstrip(".") for name, text in NOTES.items()}
    corpus |= {f"short-{n}": "hay" for n in range(more)}
    (told,) = causes({**corpus, "gold": "rye"}, "When?")
    assert told.startswith("damaged text: its text is cut off") == damaged


def test_reranked_perfectly_all_that_was_retrieved_is_on_top() -> None:
    run, gold = {"q": ["x", "a", "y", "b"]}, {"q": {"a": 2, "b": 1}}
    found = karat.diagnose(run, gold=gold, k=2)
    assert found.oracle == pytest.approx({"recall": 1.0, "ndcg": 1.0})
    assert min(found.headroom[part] for part in ("ordering", "cutoff")) > 0.1
