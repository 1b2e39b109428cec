"""Whole runs that are wrong, made of runs that are right."""

import csv
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import bm25s

K = 5


@dataclass(frozen=True)
class Case:
    """A run with its gold.

    Attributes:
        run: query -> document -> score.
        gold: query -> relevant documents.
        corpus: texts of all documents.
        queries: what is asked.
    """

    run: dict[str, dict[str, float]]
    gold: dict[str, list[str]]
    corpus: dict[str, str]
    queries: dict[str, str]

    def with_rankings(self, rankings: dict[str, list[str]]) -> "Case":
        """The same with other documents, in this order."""
        run = {q: {d: -float(n) for n, d in enumerate(r)} for q, r in rankings.items()}
        return replace(self, run=run)

    @property
    def rankings(self) -> dict[str, list[str]]:
        return {q: sorted(row, key=lambda d: -row[d]) for q, row in self.run.items()}


def searched(
    corpus: dict[str, str], queries: dict[str, str], depth: int
) -> dict[str, dict[str, float]]:
    """What search by words finds."""
    index, names = bm25s.BM25(), [*corpus]
    index.index(
        [text.casefold().split() for text in corpus.values()], show_progress=False
    )
    known = {word for text in corpus.values() for word in text.casefold().split()}
    run = {}
    for query, text in queries.items():
        words = [word for word in text.casefold().split() if word in known]
        scores = index.get_scores(words) if words else [0.0] * len(names)
        best = sorted(range(len(names)), key=lambda n: -scores[n])[:depth]
        run[query] = {names[n]: float(scores[n]) for n in best if scores[n] > 0}
    return run


def paragraphs(folder: Path, run: str = "minilm") -> Case:
    """Questions of several hops, and what an embedding model retrieved."""
    folder = folder / "musique100"
    lines = (folder / "corpus.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    corpus = {row["doc_id"]: f"{row['title']}. {row['text']}" for row in rows}
    lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    scores: dict[str, dict[str, float]] = {}
    for line in (folder / f"run.{run}.trec").read_text().splitlines():
        query, _, document, _, score, _ = line.split()
        scores.setdefault(query, {})[document] = float(score)
    gold = {row["query_id"]: row["gold_doc_ids"] for row in asked}
    return Case(scores, gold, corpus, {row["query_id"]: row["query"] for row in asked})


def chunks(folder: Path, size: int = 600, depth: int = 30) -> Case:
    """Questions about long texts of several kinds, cut in chunks."""
    folder = folder / "chunking_eval"
    corpus = {}
    for path in sorted(folder.glob("*.md")):
        text = path.read_text("utf-8")
        for at in range(0, len(text), size):
            corpus[f"{path.stem}-{at // size}"] = text[at : at + size]
    gold, queries = {}, {}
    csv.field_size_limit(1 << 24)
    with (folder / "questions_df.csv").open(encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file)):
            spans = json.loads(row["references"])
            places = {
                place
                for span in spans
                for place in range(
                    span["start_index"] // size, (span["end_index"] - 1) // size + 1
                )
            }
            names = [f"{row['corpus_id']}-{place}" for place in sorted(places)]
            if all(name in corpus for name in names):
                gold[f"q{number}"] = names
                queries[f"q{number}"] = row["question"]
    return Case(searched(corpus, queries, depth), gold, corpus, queries)


def abstracts(folder: Path, depth: int = 30) -> Case:
    """Questions of doctors, and the parts of abstracts that answer them."""
    text = (folder / "pubmedqa" / "pqal_first300.json").read_text("utf-8")
    corpus: dict[str, str] = {}
    gold, queries = {}, {}
    for name, row in json.loads(text).items():
        queries[name] = row["QUESTION"]
        gold[name] = [f"{name}-{n}" for n in range(len(row["CONTEXTS"]))]
        corpus |= dict(zip(gold[name], row["CONTEXTS"], strict=True))
    return Case(searched(corpus, queries, depth), gold, corpus, queries)


def reverse(case: Case, _: random.Random) -> Case:
    run = {q: {d: -score for d, score in row.items()} for q, row in case.run.items()}
    return replace(case, run=run)


def shift(case: Case, dice: random.Random) -> Case:
    names, by = [*case.run], dice.choice([1, -1, 3])
    return replace(
        case,
        run={q: case.run[names[(n + by) % len(names)]] for n, q in enumerate(names)},
    )


def shuffle(case: Case, dice: random.Random) -> Case:
    names = [*case.run]
    others = dice.sample(names, len(names))
    return replace(
        case, run={q: case.run[o] for q, o in zip(names, others, strict=True)}
    )


def shift_half(case: Case, _: random.Random) -> Case:
    names = [*case.run]
    half = len(names) // 2
    run = dict(case.run)
    for one, other in zip(names[half:], [*names[half + 1 :], names[half]], strict=True):
        run[one] = case.run[other]
    return replace(case, run=run)


def one_hub(case: Case, dice: random.Random) -> Case:
    hub = dice.choice([*case.corpus])
    rows = case.rankings.items()
    return case.with_rankings({q: [hub, *(d for d in r if d != hub)] for q, r in rows})


def some_hubs(case: Case, dice: random.Random) -> Case:
    hubs, rankings = dice.sample([*case.corpus], 3), {}
    for query, row in case.rankings.items():
        rest = [d for d in row if d not in hubs]
        rankings[query] = [*hubs, *rest] if dice.random() < 0.8 else rest
    return case.with_rankings(rankings)


def all_shallow(case: Case, _: random.Random) -> Case:
    return case.with_rankings({q: r[: K - 2] for q, r in case.rankings.items()})


def some_shallow(case: Case, dice: random.Random) -> Case:
    rows = case.rankings.items()
    return case.with_rankings(
        {q: r[: dice.randrange(K - 1)] if dice.random() < 0.3 else r for q, r in rows}
    )


def _without(case: Case, lost: set[str]) -> Case:
    rows = case.rankings.items()
    return case.with_rankings({q: [d for d in r if d not in lost] for q, r in rows})


def random_shard(case: Case, dice: random.Random) -> Case:
    names = [*case.corpus]
    return _without(case, {*dice.sample(names, len(names) // 3)})


def block_shard(case: Case, dice: random.Random) -> Case:
    names = [*case.corpus]
    start = dice.randrange(len(names) * 3 // 4)
    return _without(case, {*names[start : start + len(names) // 4]})


def prefix_shard(case: Case, dice: random.Random) -> Case:
    other = {n: f"old/{n}" if dice.random() < 0.2 else n for n in case.corpus}
    moved = Case(
        {q: {other[d]: s for d, s in row.items()} for q, row in case.run.items()},
        {q: [other[d] for d in row] for q, row in case.gold.items()},
        {other[n]: text for n, text in case.corpus.items()},
        case.queries,
    )
    return _without(moved, {name for name in moved.corpus if name.startswith("old/")})


def ties(case: Case, _: random.Random) -> Case:
    run = {q: dict.fromkeys(row, 1.0) for q, row in case.run.items()}
    return replace(case, run=run)


def folder_ids(case: Case, _: random.Random) -> Case:
    rows = case.rankings.items()
    return case.with_rankings({q: [f"docs/{d}" for d in r] for q, r in rows})


def damage(case: Case, dice: random.Random) -> Case:
    names = sorted({name for row in case.gold.values() for name in row})
    lost = {*dice.sample(names, len(names) * 2 // 3)}
    letters = str.maketrans("aeop", "\u0430\u0435\u043e\u0440")
    corpus = {
        n: text if n not in lost else dice.choice(["", text.translate(letters)])
        for n, text in case.corpus.items()
    }
    return replace(_without(case, lost), corpus=corpus)


def clean(case: Case, _: random.Random) -> Case:
    return case


DISASTERS: dict[Callable[[Case, random.Random], Case], str] = {
    clean: "",
    reverse: "ranking reversed",
    shift: "results of another query",
    shuffle: "results of another query",
    shift_half: "results of another query",
    one_hub: "displaced by a hub",
    some_hubs: "displaced by a hub",
    all_shallow: "fewer than k retrieved",
    some_shallow: "fewer than k retrieved",
    random_shard: "retrieved by no query",
    block_shard: "retrieved by no query",
    prefix_shard: "retrieved by no query",
    ties: "tied at the cut",
    folder_ids: "wrong id form",
    damage: "damaged text",
}
