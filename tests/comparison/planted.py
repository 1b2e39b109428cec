"""Runs with planted faults, and the kind of change that each fault is."""

import random
from collections.abc import Iterator
from typing import NamedTuple

Run = dict[str, list[str]]
Gold = dict[str, dict[str, int]]


class Planted(NamedTuple):
    """A run before and after a fault, and the kind that a comparison must find."""

    fault: str
    kind: str
    before: Run
    after: Run
    gold: Gold


def base(dice: random.Random, queries: int = 60, depth: int = 50) -> tuple[Run, Gold]:
    """A run that finds most of its gold, mostly near the top."""
    run: Run = {}
    gold: Gold = {}
    for number in range(queries):
        name = f"q{number}"
        documents = [f"{name}-d{place}" for place in range(depth)]
        places = {min(int(dice.expovariate(0.15)), depth - 1) for _ in range(4)}
        gold[name] = {documents[place]: dice.randint(1, 3) for place in places}
        if dice.random() < 0.4:
            gold[name][f"{name}-never"] = 1
        run[name] = documents
    return run, gold


def dropped(run: Run, gold: Gold, dice: random.Random) -> Run:
    """Relevant documents are no longer retrieved."""
    return {
        query: [d for d in row if d not in gold[query] or dice.random() > 0.5]
        for query, row in run.items()
    }


def truncated(run: Run, gold: Gold, dice: random.Random) -> Run:
    """Lists are cut short."""
    del gold
    cut = dice.choice([2, 3, 5, 8])
    return {query: row[:cut] for query, row in run.items()}


def shuffled(run: Run, gold: Gold, dice: random.Random) -> Run:
    """The top 10 are in any order."""
    del gold
    after = {}
    for query, row in run.items():
        top = row[:10]
        dice.shuffle(top)
        after[query] = top + row[10:]
    return after


def shifted(run: Run, gold: Gold, dice: random.Random) -> Run:
    """Other documents stand above all."""
    del gold
    size = dice.randint(2, 6)
    return {
        query: [f"{query}-new{place}" for place in range(size)] + row
        for query, row in run.items()
    }


FAULTS = {
    dropped: "coverage",
    truncated: "coverage",
    shuffled: "ranking",
    shifted: "ranking",
}


def planted(cases: int, seed: int = 0) -> Iterator[Planted]:
    """So many cases, every fault equally often."""
    dice = random.Random(seed)
    faults = [*FAULTS.items()]
    for number in range(cases):
        fault, kind = faults[number % len(faults)]
        run, gold = base(dice)
        yield Planted(fault.__name__, kind, run, fault(run, gold, dice), gold)
