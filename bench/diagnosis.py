"""CPU time of a diagnosis: 1,000 queries x 20 documents, a corpus of 10,000 chunks."""

import random
import time

import karat

QUERIES, DEPTH, CHUNKS, LENGTH = 1000, 20, 10_000, 500


def words(dice: random.Random, count: int) -> list[str]:
    letters = "etaoinshrdlucmfwypvbgk"
    return ["".join(dice.choices(letters, k=dice.randint(3, 9))) for _ in range(count)]


def main() -> None:
    dice = random.Random(1)
    known = words(dice, 20_000)
    corpus = {
        f"c{n}": " ".join(dice.choices(known, k=90))[:LENGTH] for n in range(CHUNKS)
    }
    names = [*corpus]
    run, gold, queries = {}, {}, {}
    for number in range(QUERIES):
        query = f"q{number}"
        run[query] = dice.sample(names, DEPTH)
        gold[query] = [*dice.sample(names, 2), dice.choice(run[query])]
        queries[query] = " ".join(corpus[gold[query][0]].split()[:8])
    texts = [
        {"id": query, "retrieved": [{"id": n, "text": corpus[n]} for n in row]}
        for query, row in run.items()
    ]
    passages = [
        {"id": query, "reference_contexts": [corpus[n] for n in row]}
        for query, row in gold.items()
    ]
    for name, ranked, labels in (("ids", run, gold), ("texts", texts, passages)):
        start = time.process_time()
        found = karat.diagnose(
            ranked, gold=labels, k=10, corpus=corpus, queries=queries, candidates=ranked
        )
        took = time.process_time() - start
        print(f"{name}: {took:.1f} s of CPU, {len(found.misses)} misses")


if __name__ == "__main__":
    main()
