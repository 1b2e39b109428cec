"""What gold is worth that is not complete: `python -m bench.few_labels [DRAWS]`.

On the topics of TREC DL 2020 and 2021, which people and models labelled: what one
relevant passage for each question does to a score, and what a few labels of people
make of a judge's.
"""

import sys
from itertools import product

import numpy as np
from bench.simulation import SHARED

import karat
from karat.stats.prediction_powered import combined_mean

Gold = dict[str, dict[str, int]]
JUDGES = ("gpt-4o", "llama3.2", "mistral")
RUNS = ("bm25", "trigram", "overlap", "bm25_noisy")
YEARS = ("dl20", "dl21")
FOLDER = SHARED / "data" / "judged_dl"


def labels(who: str, year: str) -> Gold:
    """The grades that somebody gave."""
    gold: Gold = {}
    head, *lines = (FOLDER / f"{year}.tsv").read_text("utf-8").splitlines()
    column = head.split("\t").index(who)
    for cells in (line.split("\t") for line in lines):
        gold.setdefault(cells[0], {})[cells[1]] = int(cells[column])
    return gold


def scores(gold: dict[str, Gold], run: str, metric: str) -> np.ndarray:
    """A run's scores on the topics of all years."""
    parts = [
        karat.evaluate(FOLDER / f"{year}.{run}.run", gold=gold[year], metrics=[metric])
        for year in YEARS
    ]
    return np.concatenate([part[metric].scores for part in parts])


def one_passage(draws: int) -> None:
    """How wrong gold of one relevant passage is, drawn at random."""
    dice = np.random.default_rng(0)
    gold = {year: labels("people", year) for year in YEARS}
    relevant = {
        year: {
            q: [d for d, g in row.items() if g >= 2] for q, row in gold[year].items()
        }
        for year in YEARS
    }
    every = {
        year: {q: dict.fromkeys(found, 1) for q, found in row.items() if found}
        for year, row in relevant.items()
    }
    truth = {run: scores(every, run, "precision@10") for run in RUNS}
    best, other = sorted(RUNS, key=lambda run: -truth[run].mean())[::3]
    count = 10 * np.mean(list(truth.values()))
    lost, right = 0, []
    for _ in range(draws):
        drawn = {
            year: {q: {str(dice.choice([*found])): 1} for q, found in row.items()}
            for year, row in every.items()
        }
        ours, theirs = (scores(drawn, run, "hit@10") for run in (best, other))
        lost += ours.mean() <= theirs.mean()
        right.append(ours.mean())
    print(f"relevant documents in the top 10: {count:.1f}")
    print(f"found by one relevant passage: {np.mean(right):.2f}")
    print(f"{best} {truth[best].mean():.3f}, {other} {truth[other].mean():.3f}")
    print(f"the better one does not win: {100 * lost / draws:.0f} % of {draws} draws")


def combined(draws: int) -> None:
    """How often a combined interval holds the truth, and how wide it is."""
    dice, none = np.random.default_rng(2), np.zeros(0)
    gold = {
        who: {year: labels(who, year) for year in YEARS} for who in ("people", *JUDGES)
    }
    ndcg = {
        (who, run): scores(gold[who], run, "ndcg@10")
        for who, run in product(gold, RUNS)
    }
    pairs = (
        ("bm25", None),
        ("overlap", None),
        ("trigram", None),
        ("bm25", "bm25_noisy"),
    )
    for (who, run), column in ndcg.items():
        print(f"{who}: ndcg@10 of {run} {column.mean():.3f}")
    print("judge     queries  run         correlation  covers  width")
    for judge, n, (run, other) in product(JUDGES, (10, 20, 40), pairs):
        people, judged = ndcg["people", run], ndcg[judge, run]
        if other:
            people = people - ndcg["people", other]
            judged = judged - ndcg[judge, other]
        covers, widths = 0, []
        for _ in range(draws):
            drawn = dice.integers(len(people), size=400)
            some, rest = drawn[:n], drawn[n:]
            both = combined_mean(people[some], judged[some], judged[rest]).interval
            alone = combined_mean(people[some], judged[some], none).interval
            covers += both.low <= people.mean() <= both.high
            widths.append((both.high - both.low, alone.high - alone.low))
        wide, people_alone = np.mean(widths, axis=0)
        name = f"{run} - {other}" if other else run
        related = np.corrcoef(people, judged)[0, 1]
        print(
            f"{judge:8}  {n:7}  {name:18}  {related:.2f}  {100 * covers / draws:5.1f} %"
            f"  {100 * (wide / people_alone - 1):+.0f} %",
            flush=True,
        )


if __name__ == "__main__":
    DRAWS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    one_passage(DRAWS // 5)
    combined(DRAWS)
