"""Questions and labels that people made, in the place of a writer and a judge."""

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import karat
from karat.extend import Settings
from tests.generating.scripted import texts_in

NOTHING_KEPT = Settings(journal=None)
RUNS = ("bm25", "bm25_noisy", "overlap", "trigram")
UNDECIDED = {"reason": "recorded", "parts": [], "complete": False, "against": []}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class Annotated:
    """Writes a question of MuSiQue about its two passages, and judges by annotations.

    A hop's answer stands in the paragraph of that hop; or, where one is to be enough,
    in that of the first hop.
    """

    def __init__(self, row: Any, texts: dict[str, str], *, one_enough: bool) -> None:
        self.row, self.texts = row, texts
        self.sources = {
            f"{hop['question']} {hop['answer']}": texts[
                row["hops"][0 if one_enough else place]["doc_id"]
            ]
            for place, hop in enumerate(row["hops"])
        }

    def __call__(self, prompt: str) -> str:
        shown = texts_in(prompt)
        if "claim" in shown:
            places = map(int, re.findall(r"\[begin context (\d+)", prompt))
            contexts = dict(zip(shown["context"], places, strict=True))
            verdicts = [
                {"claim": n, "alone": [contexts[self.sources[claim]]]} | UNDECIDED
                for n, claim in enumerate(shown["claim"], 1)
            ]
            return json.dumps({"verdicts": verdicts})
        if "question" in shown:
            reply = {"reason": "clear", "clear": True, "answer": "", "grade": 0}
            return json.dumps(reply)
        claims = [
            {
                "text": f"{hop['question']} {hop['answer']}",
                "importance": "vital",
                "passages": [1 + shown["passage"].index(self.texts[hop["doc_id"]])],
            }
            for hop in self.row["hops"]
        ]
        written = {"question": self.row["query"], "answer": self.row["answer"]}
        return json.dumps({**written, "claims": claims})


@pytest.mark.shared_data
@pytest.mark.parametrize("one_enough", [False, True])
def test_questions_of_musique_need_both_passages_as_annotated(
    shared_data: Path, *, one_enough: bool
) -> None:
    folder = shared_data / "musique100"
    corpus = {row["doc_id"]: row for row in lines(folder / "corpus.jsonl")}
    rows = [row for row in lines(folder / "queries.jsonl") if len(row["hops"]) == 2]
    outcomes: Counter[str] = Counter()
    for row in rows:
        # A rare word that both have makes them a pair.
        texts = {
            name: f"{corpus[name]['text']} Quernstone." for name in row["gold_doc_ids"]
        }
        model = Annotated(row, texts, one_enough=one_enough)
        made = karat.generate(texts, 1, model=model, hops=[2], settings=NOTHING_KEPT)
        outcomes["kept" if made.queries else made.dropped[0][1]] += 1
        for labels in made.gold.documents.values():
            assert {d for d, grade in labels.items() if grade >= 2} == {*texts}
    decided = "one passage" if one_enough else "kept"
    # Questions that share too much with a passage come to no judge.
    assert outcomes.keys() <= {decided, "leak"}
    assert outcomes[decided] > outcomes["leak"]
    assert outcomes.total() == len(rows)


def pooled(
    rankings: list[list[str]], labels: dict[str, int], seed: str, k: int
) -> set[str]:
    """The slow way: the top k of each, and the next while most are relevant."""
    graded = {seed}
    relevant = {seed}
    for start in range(0, 60, k):
        layer = {d for row in rankings for d in row[start : start + k]} - graded
        fresh = {d for d in layer if labels.get(d, 0) >= 2}
        graded |= layer
        relevant |= fresh
        if 2 * len(fresh) <= len(layer) or len(relevant) > 30:
            break
    return relevant


def recorded(
    folder: Path, judge: str
) -> tuple[dict[str, dict[str, int]], list[dict[str, dict[str, float]]]]:
    """The labels that somebody gave, and the scores of four runs."""
    labels: dict[str, dict[str, int]] = defaultdict(dict)
    runs: list[dict[str, dict[str, float]]] = [{} for _ in RUNS]
    for year in ("dl20", "dl21"):
        with (folder / f"{year}.tsv").open(encoding="utf-8") as table:
            for row in csv.DictReader(table, delimiter="\t"):
                labels[row["query"]][row["document"]] = int(row[judge])
        for run, name in zip(runs, RUNS, strict=True):
            path = folder / f"{year}.{name}.run"
            for line in path.read_text("utf-8").splitlines():
                query, _, document, _, score, _ = line.split()
                run.setdefault(query, {})[document] = float(score)
    return labels, runs


@pytest.mark.shared_data
@pytest.mark.parametrize("judge", ["people", "gpt-4o", "llama3.2", "mistral"])
def test_completion_joins_what_the_recorded_labels_say(
    shared_data: Path, judge: str
) -> None:
    """Whose labels they are judges, and four runs are the retrievers."""
    labels, runs = recorded(shared_data / "judged_dl", judge)
    assert (len(labels), sum(map(len, labels.values()))) == (107, 3544)
    topic_of = {d: query for query, row in labels.items() for d in row}
    corpus = {d: " ".join(f"w{d}x{n}" for n in range(9)) for d in topic_of}
    by_text = {text: document for document, text in corpus.items()}
    rankings = {
        query: [sorted(run[query], key=lambda d: -run[query][d]) for run in runs]
        for query in labels
    }
    seeds: dict[str, str] = {}

    def model(prompt: str) -> str:
        shown = texts_in(prompt)
        document = by_text.get(shown.get("passage", [""])[0], "")
        if "claim" in shown:
            return json.dumps({"verdicts": [{"claim": 1, "alone": [1]} | UNDECIDED]})
        if "question" not in shown:
            topic = topic_of[document]
            seeds.setdefault(topic, document)
            claim = {"text": "It is.", "importance": "vital", "passages": [1]}
            written = {"question": f"topic {topic} of people", "answer": "It is."}
            return json.dumps({**written, "claims": [claim]})
        topic = shown["question"][0].split()[1]
        grade = labels[topic].get(document, 0)
        reply = {"reason": "recorded", "grade": grade, "clear": True, "answer": ""}
        return json.dumps(reply)

    def ranked(place: int) -> Callable[[str, int], list[str]]:
        return lambda query, k: rankings[query.split()[1]][place][:k]

    made = karat.generate(
        corpus,
        107,
        model=model,
        hops=[1],
        retrievers=[*map(ranked, range(4))],
        k=10,
        settings=NOTHING_KEPT,
    )
    joined = {
        str(query.text).split()[1]: made.gold.documents[query.id]
        for query in made.queries.values()
    }
    vague = {text.split()[1] for text, check, _ in made.dropped if check == "vague"}
    assert len(joined) + len(vague) > 90
    assert {*made.counts} <= {"unique", "vague"}
    for topic, document in seeds.items():
        expected = pooled(rankings[topic], labels[topic], document, 10)
        assert (topic in vague) == (len(expected) > 30)
        if topic in joined:
            positive = {d for d, grade in joined[topic].items() if grade > 0}
            assert positive == expected
