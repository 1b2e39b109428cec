"""The doctor of gold: planted label errors, findings as a value, corrected copies."""

import pickle  # noqa: TID251
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import karat
from karat import GoldFindings
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
