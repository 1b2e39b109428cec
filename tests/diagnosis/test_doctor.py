"""The doctor of gold: planted label errors, findings as a value, corrected copies."""

import pickle  # noqa: TID251
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import karat
from karat import Gold, GoldFindings
from karat.diagnosis.doctor import fix_gold
from karat.extend import FormatError
from tests.diagnosis import disasters, planted
from tests.diagnosis.planted import _copied, _edited

K = 5
TIMES = 25


class Errors:
    """Gold of ids in which some labels are wrong, and which ones."""

    def __init__(self, pool: dict[str, str], dice: random.Random) -> None:
        self.corpus, self.dice, self.names = dict(pool), dice, [*pool]
        dice.shuffle(self.names)
        self.gold: dict[str, dict[str, float]] = {}
        self.queries: dict[str, str] = {}
        self.runs: list[dict[str, list[str]]] = [{}, {}, {}]
        self.planted: set[tuple[str, str]] = set()

    def add(self, kind: str = "") -> str:
        """A query with one relevant document, which two of three runs find."""
        query, name = f"q{len(self.gold)}", self.names.pop()
        self.gold[query] = {name: 1.0}
        words = self.corpus[name].split()
        self.queries[query] = " ".join(words[3:12])
        for run in self.runs:
            rest = self.dice.sample(self.names, 6)
            place = self.dice.choice([0, 1, 2, 4])
            run[query] = [*rest[:place], name, *rest[place:]]
        if kind:
            self.planted.add((query, kind))
        return query

    def plant(self, times: int = TIMES) -> None:
        """Errors of every kind, and as many queries without any."""
        for _ in range(times):
            for _ in range(5):
                self.add()
            self._ids()
            self._copies()
            query = self.add("unwinnable")
            self.gold[query] |= dict.fromkeys(self.dice.sample(self.names, K + 1), 1.0)
            # Those are any documents, which is wrong, too.
            self.planted.add((query, "suspicious label"))
            query = self.add("empty text")
            self.corpus[next(iter(self.gold[query]))] = " \n"
            query = self.add("suspicious label")
            (right,) = self.gold[query]
            self.gold[query] = {self.names.pop(): 1.0}
            for run in self.runs:
                run[query] = [right, *(d for d in run[query] if d != right)]
            query = self.add("suspicious label")
            (right,) = self.gold[query]
            wrong = self.names.pop()
            labels = [right, wrong] if self.dice.random() < 0.5 else [wrong, right]
            self.gold[query] = dict.fromkeys(labels, 1.0)
            first = self.add()
            again = self.add("conflicting queries")
            self.queries[again] = f"{self.queries[first]} ?"

    def _ids(self) -> None:
        query = self.add("dangling id")
        self.gold[query] = {f"gone{query}x": 1.0, **self.gold[query]}
        query = self.add("other id form")
        (name,) = self.gold[query]
        self.gold[query] = {name.upper(): 1.0}

    def _copies(self) -> None:
        for kind, label in (
            ("unlabelled duplicate", None),
            ("conflicting grades", 0.0),
            ("near-duplicate items", 1.0),
        ):
            query = self.add(kind)
            (name,) = self.gold[query]
            self.corpus[f"{name}-b"] = _copied(self.corpus[name], self.dice)
            if label is not None:
                self.gold[query][f"{name}-b"] = label


@pytest.mark.slow
@pytest.mark.parametrize(
    "corpus",
    ["self-made", pytest.param("paragraphs", marks=pytest.mark.shared_data)],
)
def test_planted_label_errors_are_found(corpus: str, shared_data: Path) -> None:
    pool = (
        planted.self_made(random.Random(9))
        if corpus == "self-made"
        else planted.paragraphs(shared_data)
    )
    errors = Errors(pool, random.Random(4))
    errors.plant()
    found = karat.doctor(
        errors.gold,
        corpus=errors.corpus,
        runs=errors.runs,
        queries=errors.queries,
        k=K,
    )
    told = {(one.query, one.kind) for one in found.findings}
    right = told & errors.planted
    assert len(right) / len(told) >= 0.9, told - errors.planted
    assert len(right) / len(errors.planted) >= 0.9, errors.planted - told
    assert not found.not_examined


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize(
    "corpus", [disasters.paragraphs, disasters.chunks, disasters.abstracts]
)
def test_wrong_labels_are_found_with_one_run(
    corpus: Callable[[Path], disasters.Case], shared_data: Path
) -> None:
    """One wrong label among several, or in place of the only one."""
    case, dice = corpus(shared_data), random.Random(3)
    gold = {query: [*row] for query, row in case.gold.items()}
    wrong = set()
    for query in dice.sample([*gold], len(gold) // 2):
        other = dice.choice([*case.corpus])
        if other in gold[query]:
            continue
        if len(gold[query]) > 1:
            gold[query].insert(dice.randrange(3), other)
        else:
            gold[query] = [other]
        wrong.add((query, other))

    def suspicious(labels: dict[str, list[str]]) -> set[tuple[str, str]]:
        found = karat.doctor(
            labels,
            corpus=case.corpus,
            runs=[case.rankings],
            queries=case.queries,
            k=K,
        ).findings
        return {
            (one.query, one.item) for one in found if one.kind == "suspicious label"
        }

    told = suspicious(gold)
    assert len(told & wrong) >= 0.88 * len(wrong)
    assert len(told & wrong) >= 0.9 * len(told)
    labels = sum(map(len, case.gold.values()))
    assert len(suspicious(case.gold)) <= 0.005 * labels


def test_planted_errors_in_passages_are_found() -> None:
    dice = random.Random(2)
    corpus = planted.self_made(dice, 400)
    names = [*corpus]
    samples, told = [], set()
    for number in range(200):
        name = names[number]
        texts = [corpus[name], corpus[names[200 + number]]]
        if number % 5 == 0:
            texts.append(_edited(texts[0], dice, 0.6))
            told.add((f"q{number}", "not covered"))
        elif number % 5 == 1:
            texts.append(texts[0].upper())
            told.add((f"q{number}", "near-duplicate items"))
        samples.append({"id": f"q{number}", "reference_contexts": texts})
    found = karat.doctor(samples, corpus=corpus)
    kinds = {(one.query, one.kind) for one in found.findings}
    assert len(kinds & told) >= 0.8 * len(told)
    assert len(kinds & told) >= 0.9 * len(kinds)


def test_what_readers_refuse_is_a_finding_too(tmp_path: Path) -> None:
    qrels = tmp_path / "gold.qrels"
    qrels.write_text("q1 0 d1 1\nq1 0 d1 0\nq2 0 d2 1\n")
    (one,) = karat.doctor(qrels).findings
    assert (one.kind, one.query) == ("conflicting grades", "q1")
    assert "line 2" in one.sentence
    samples = tmp_path / "gold.jsonl"
    samples.write_text(
        '{"id": "q1", "reference_contexts": [" "]}\n{"id": "q2", "relevant": ["a"]}'
    )
    kinds = [(found.kind, found.query) for found in karat.doctor(samples).findings]
    assert ("empty text", "q1") in kinds


def test_findings_survive_saving_and_pickling(tmp_path: Path) -> None:
    found = karat.doctor(
        {"q": {"d1": 1, "D2": 1}}, corpus={"d1": "Rye.", "d2": "Oats."}
    )
    found.save(tmp_path / "f.json")
    assert GoldFindings.load(tmp_path / "f.json") == found
    assert pickle.loads(pickle.dumps(found)) == found
    (tmp_path / "f.json").write_text("{}")
    with pytest.raises(FormatError, match="not a saved findings"):
        GoldFindings.load(tmp_path / "f.json")


def test_what_is_not_given_is_not_examined() -> None:
    found = karat.doctor({"q": {"d1": 1}})
    assert not found.findings
    assert found.not_examined["dangling id"] == "--corpus"
    assert found.not_examined["suspicious label"].startswith("two runs, or one")
    assert "not examined, needs --corpus" in str(found)


def test_what_is_safe_is_corrected() -> None:
    corpus = {"d1": "Rye is a grain of the north.", "d2": "Oats are another grain."}
    corpus["d1-copy"] = "RYE is a grain of the north!"
    gold = karat.read_gold({"q": {"D2": 1, "d1": 1}, "r": {"gone": 1}})
    found = karat.doctor(gold, corpus=corpus)
    better = fix_gold(gold, found.findings)
    assert better.documents == {"q": {"d2": 1, "d1": 1, "d1-copy": 1}, "r": {"gone": 1}}
    assert better.groups == {"q": {"d1": "d1", "d1-copy": "d1"}}
    assert gold.documents["q"] == {"D2": 1, "d1": 1}
    run = {"q": ["d1-copy", "d2"], "r": ["x"]}
    assert karat.evaluate(run, gold=gold, force=True, metrics=["recall@5"]).means == {
        "recall@5": 0.0
    }
    fixed = karat.evaluate(run, gold=better, metrics=["recall@5"])
    assert fixed.means == {"recall@5": 0.5}


def test_documents_that_differ_in_a_number_are_no_duplicates() -> None:
    corpus = {
        "a": "The invoice of the harbour office is due within 30 days of the delivery.",
        "b": "The invoice of the harbour office is due within 14 days of the delivery.",
    }
    assert not karat.doctor({"q": {"a": 1}}, corpus=corpus).findings


def kinds(gold: Any, **options: Any) -> list[tuple[str, str, str]]:
    found = karat.doctor(gold, **options).findings
    return [(one.kind, one.item, one.other) for one in found]


def test_empty_and_repeated_texts_go_and_the_others_stay() -> None:
    rye, oats = "Rye is a grain of the north.", "Oats are another grain."
    samples = [
        {"id": "q", "reference_contexts": [rye, "-", oats, rye.upper()]},
        {"id": "r", "answers": ["rye", "-"], "reference_contexts": [oats]},
    ]
    gold = karat.read_gold(samples)
    better = fix_gold(gold, karat.doctor(gold).findings)
    assert [item.text for item in better.passages["q"]] == [rye, oats]
    assert better.passages["r"] == gold.passages["r"]
    assert [item.text for item in better.answers["r"]] == ["rye"]
    assert len(gold.passages["q"]) == 4


def test_an_id_gets_the_form_of_the_corpus_and_keeps_what_is_said_of_it() -> None:
    labels = {"q": {"D1": 2.0, "d2": 1.0}, "r": {"D1": 1.0, "d1": 3.0}}
    labels["s"] = {"D1": 3.0, "d1": 0.0}
    gold = Gold(
        labels,
        groups={"q": {"D1": "either", "d2": "either"}},
        subtopics={"q": {"D1": {"t": 1.0}}},
    )
    corpus = {"d1": "Rye grows.", "d2": "Oats are sown."}
    better = fix_gold(gold, karat.doctor(gold, corpus=corpus).findings)
    assert better.documents == {
        "q": {"d1": 2, "d2": 1},
        "r": {"d1": 3},
        "s": {"d1": 3},
    }
    assert better.groups == {"q": {"d1": "either", "d2": "either"}}
    assert better.subtopics == {"q": {"d1": {"t": 1.0}}}
    assert "D1" in gold.documents["q"]


def test_a_document_joins_the_alternatives_of_its_copy() -> None:
    text = "Rye is a grain of the north."
    corpus = dict.fromkeys("abc", text) | {"x": "Oats are another grain."}
    gold = karat.read_gold({"q": {"a": 2, "b": 2, "x": 1}})
    grouped = type(gold)(gold.documents, groups={"q": {"b": "either"}})
    better = fix_gold(grouped, karat.doctor(grouped, corpus=corpus).findings)
    assert better.documents == {"q": {"a": 2, "b": 2, "x": 1, "c": 2}}
    assert better.groups == {"q": dict.fromkeys("bac", "either")}
    assert kinds(better, corpus=corpus) == []


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"a": 1}, [("unlabelled duplicate", "a", "b")]),
        ({"b": 1}, [("unlabelled duplicate", "b", "a")]),
        ({"a": 1, "b": 1}, [("near-duplicate items", "a", "b")]),
        ({"b": 1, "a": 1}, [("near-duplicate items", "a", "b")]),
        ({"a": 1, "b": 0}, [("conflicting grades", "a", "b")]),
        ({"a": 0, "b": 1}, [("conflicting grades", "b", "a")]),
        ({"a": 1, "b": -1}, [("conflicting grades", "a", "b")]),
        ({"a": 1, "b": 2}, [("conflicting grades", "a", "b")]),
        ({"a": 2, "b": 1}, [("conflicting grades", "a", "b")]),
        ({"a": 0, "b": 0, "x": 1}, []),
        ({"a": 0, "x": 1}, []),
    ],
)
def test_copies_are_to_have_one_grade(
    labels: dict[str, float], expected: list[tuple[str, str, str]]
) -> None:
    corpus = {"a": "Rye is a grain of the north.", "x": "Oats are another grain."}
    corpus["b"] = corpus["a"].upper()
    assert kinds({"q": labels}, corpus=corpus) == expected


def test_passages_that_say_the_same_are_to_have_one_grade() -> None:
    text = "Rye is a grain of the north."
    found = {}
    for grades in ((1, 1), (2, 1), (1, 0), (0, 0)):
        passages = [
            {"id": f"p{n}", "text": text + "!" * n, "grade": grade}
            for n, grade in enumerate(grades)
        ]
        (one,) = kinds([{"id": "q", "passages": [*passages, "Oats."]}])
        found[grades] = one
    assert found == {
        (1, 1): ("near-duplicate items", "p1", "p0"),
        (2, 1): ("near-duplicate items", "p1", "p0"),
        (1, 0): ("conflicting grades", "p0", "p1"),
        (0, 0): ("near-duplicate items", "p1", "p0"),
    }


def test_what_does_not_fit_in_the_top_k_cannot_be_won() -> None:
    gold = {"q": dict.fromkeys("abc", 1.0) | {"x": 0.0}}
    assert kinds(gold, k=3) == []
    assert kinds(gold, k=2) == [("unwinnable", "", "")]
    labels = karat.read_gold(gold)
    grouped = type(labels)(labels.documents, groups={"q": {"a": "g", "b": "g"}})
    assert kinds(grouped, k=2) == []
    assert kinds({"q": {"a": 0.0}}) == [("no relevant gold", "", "")]


@pytest.mark.parametrize(
    ("tops", "doubted"),
    [
        ("xx", True),
        ("xy", False),
        ("xxy", True),
        ("xxyy", True),
        ("xxyzw", False),
        ("xxxyz", True),
        ("xxyyzw", False),
        # What is known not to be relevant speaks for nothing.
        ("nn", False),
    ],
)
def test_half_of_the_runs_and_two_outvote_a_label(tops: str, *, doubted: bool) -> None:
    runs = [{"q": [top, "u", "v"]} for top in tops]
    gold = {"q": {"a": 1, "n": 0}}
    expected = [("suspicious label", "a", "x")] * doubted
    assert kinds(gold, runs=runs) == expected
    # One run that finds it will do, if it has it in the top k.
    runs[0]["q"][1] = "a"
    assert kinds(gold, runs=runs, k=2) == []
    assert kinds(gold, runs=runs, k=1) == expected


@pytest.mark.parametrize(
    ("asked", "doubted"),
    [
        ("Where does rye grow?", False),
        ("Where do oats grow?", True),
        ("Who is it?", False),
        # Both are found alike.
        ("Which of them is a grain?", False),
    ],
)
def test_words_speak_for_a_label_or_against_it(asked: str, *, doubted: bool) -> None:
    corpus = {"a": "Rye is a grain of here", "x": "Oats are a grain of there"}
    corpus |= {"u": "Wool keeps warm", "v": "Hay burns"}
    runs = [{"q": ["x", "u", "v"]}] * 2
    found = kinds({"q": {"a": 1}}, runs=runs, corpus=corpus, queries={"q": asked})
    assert found == [("suspicious label", "a", "x")] * doubted


NOTES = planted.self_made(random.Random(5), 60)
RYE = "Rye is sown in autumn, before the first frost."


def unsupported(
    label: str, *, rank: int = 0, more: str = "", place: int = 0, k: int = K
) -> bool:
    """Whether a label is doubted that stands beside a good one."""
    names = [*NOTES]
    corpus = {n: NOTES[n] for n in names[:place]}
    corpus |= {"rye": f"{RYE} {more}".strip()} | {n: NOTES[n] for n in names[place:]}
    ranking = ["rye", *(n for n in names if n != label)][:30]
    if rank:
        ranking.insert(rank - 1, label)
    found = karat.doctor(
        {"q": {"rye": 1, label: 1}},
        corpus=corpus,
        runs=[{"q": ranking}],
        queries={"q": "When is rye sown?"},
        k=k,
    )
    told = [(one.kind, one.item, one.other) for one in found.findings]
    assert told in ([], [("suspicious label", label, "rye")])
    return bool(told)


def test_a_label_is_doubted_if_nothing_leads_to_it() -> None:
    label = [*NOTES][30]
    assert unsupported(label)
    assert not unsupported(label, more="Dupume was told of it.")
    # A run that has it among the first twenty, or the top k, speaks for it.
    assert not unsupported(label, rank=20)
    assert unsupported(label, rank=21)
    assert not unsupported(label, rank=21, k=21)
    # Neighbours in the corpus are parts of one document.
    assert not unsupported(label, place=28)
    assert not unsupported(label, place=33)
    assert unsupported(label, place=27)
    assert unsupported(label, place=34)


def test_a_mapping_may_be_about_the_gold_or_the_runs_only() -> None:
    run, relevant = {"q": ["x"], "r": ["b"]}, {"q": ["a"], "r": ["b"]}
    gold = [{"qid": query, "relevant": row} for query, row in relevant.items()]
    found = karat.doctor(gold, runs=[run, run], mapping={"id": "qid"})
    assert [(one.query, one.other) for one in found.findings] == [("q", "x")]
    rows = [{"no": query, "document": d} for query, (d,) in run.items()]
    gold = [{"id": query, "relevant": row} for query, row in relevant.items()]
    again = karat.doctor(gold, runs=[rows, rows], mapping={"query": "no"})
    assert again.findings == found.findings


def test_the_summary_counts_findings_queries_and_what_can_be_fixed() -> None:
    corpus = {"d1": "Rye grows.", "d2": "Oats are sown."}
    gold = {"q": {"D1": 1, "D2": 1, "gone": 1}, "r": {"D1": 1}}
    found = karat.doctor(gold, corpus=corpus)
    form, lost = "'D1' is 'd1' in the corpus, ", "'gone' is not in the corpus"
    table = found.summary()
    rows = [[*row[:4], row[4].partition("in another")[0]] for row in table.rows]
    assert rows == [
        ["dangling id", "1", "1", "0", lost],
        ["other id form", "3", "2", "3", form],
    ]
    assert table.title.endswith("2 queries, 4 gold items, 4 findings")
    some = found.finding_table(2)
    assert some.title == "findings: 2 of 4"
    assert [row[0] for row in some.rows] == ["q", "q"]
    assert "nothing was found to be wrong" in str(karat.doctor({"q": {"a": 1}}))
    assert "nothing was found" not in str(found)


@pytest.mark.parametrize(("better", "doubted"), [(11, False), (12, True)])
def test_words_lead_to_three_in_a_hundred_documents(
    better: int, *, doubted: bool
) -> None:
    corpus = {f"n{n}": f"Oats and wool of the year {n}." for n in range(380)}
    corpus |= {"a": "Rye, rye and rye again.", "h": "Hay.", "i": "Hay!", "j": "Hm."}
    corpus |= {f"b{n}": "Rye, rye and rye again." for n in range(1, better)}
    corpus["label"] = "Some rye may perhaps grow in that far valley too."
    corpus |= {f"m{n}": "Wool." for n in range(400 - len(corpus))}
    assert len(corpus) == 400
    run = {"q": ["a", *(f"n{n}" for n in range(30))]}
    found = karat.doctor(
        {"q": {"a": 1, "label": 1}}, corpus=corpus, runs=[run], queries={"q": "rye"}
    )
    doubts = [one.item for one in found.findings if one.kind == "suspicious label"]
    assert doubts == ["label"] * doubted
