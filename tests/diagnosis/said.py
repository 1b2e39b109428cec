"""What is said of planted faults, kept to the letter in `said.json`.

`python -m tests.diagnosis.said` writes that file anew: read what changed in it.
"""

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import karat
from tests.diagnosis import planted
from tests.diagnosis.disasters import K
from tests.diagnosis.test_doctor import Errors
from tests.diagnosis.test_mistakes import good_run, mistakes
from tests.diagnosis.test_planted import diagnosed

FILE = Path(__file__).with_name("said.json")
# So many misses show what is said of one mistake.
SOME = 4


def misses_of(found: karat.Diagnosis) -> Iterator[str]:
    """What is said of each miss."""
    for miss in found.misses:
        near = [(one.id, one.rank, *one.differs) for one in miss.related]
        facts = {name: round(value, 4) for name, value in miss.facts.items()}
        yield f"{miss.query}: {miss.cause}: {miss.reason}. {miss.fix}; {near} {facts}"


def of_planted(*, texts: bool) -> Iterator[str]:
    """What is said of faults of every cause."""
    pool = planted.self_made(random.Random(3), 300)
    planter = planted.Planter(pool, random.Random(7), texts=texts)
    for cause in planter.faults:
        planter.plant(cause, 2)
    found = diagnosed(planter.planted, texts=texts)
    yield from misses_of(found)
    for table in (found.summary(), *found.curve_tables(), found.bound_table()):
        yield from map(str, (table.title, table.columns, *table.rows, *table.notes))


def of_labels() -> Iterator[str]:
    """What is said of wrong labels of every kind."""
    errors = Errors(planted.self_made(random.Random(9), 500), random.Random(4))
    errors.plant(2)
    options: Any = {"corpus": errors.corpus, "queries": errors.queries, "k": K}
    for runs in (errors.runs, errors.runs[:1], []):
        found = karat.doctor(errors.gold, runs=runs, **options)
        yield from (
            f"{one.query}: {one.kind}: {one.sentence}" for one in found.findings
        )
        yield from map(str, found.summary().rows)


def of_slices() -> Iterator[str]:
    """What kinds of queries and documents there are, and how they fare."""
    asked = [
        "How much is 5?",
        f"Which of {'the many old ' * 4} roads has nobody used since Monday?",
        "Where is no harbour for small boats?",
        "\u041a\u0442\u043e \u043a\u0443\u043f\u0438\u043b \u0434\u043e\u043c?",
    ]
    run: dict[str, Any] = {}
    gold, queries = {}, {}
    corpus = {"x": "Rye."}
    for number in range(100):
        query, kind = f"q{number}", number % 4
        folder = ("wiki/", "note-", "", "7:")[kind]
        names = [f"{folder}{number}{letter}" for letter in "abcd"[: kind + 1]]
        gold[query], queries[query] = names, asked[kind]
        hit = number % (kind + 2)
        run[query] = [{"id": name if hit else "x", "source": "web"} for name in names]
        corpus |= dict.fromkeys(names, asked[kind] * (1 + number // 30))
    samples = [{"id": query, "retrieved": row} for query, row in run.items()]
    options: Any = {"corpus": corpus, "queries": queries, "k": K}
    found = karat.diagnose(samples, gold=gold, **options)
    for one in (*found.slices, *found.document_slices):
        shares = (one.recall, one.others, one.p, one.adjusted_p)
        rounded = " ".join(f"{share:.6f}" for share in shares)
        yield f"{one.name}: {one.queries} {rounded} {one.failing}"
    yield from map(str, found.slice_table().rows)


def of_mistake(name: str) -> Iterator[str]:
    """What is said of a run with a mistake."""
    case = mistakes()[name][0](good_run())
    found = karat.diagnose(
        case.run, gold=case.gold, corpus=case.corpus, queries=case.queries, k=K
    )
    yield from (one.sentence for one in found.findings)
    yield from (todo.sentence for todo in found.todos)
    yield from islice(misses_of(found), SOME)


CASES: dict[str, Callable[[], Iterator[str]]] = {
    "planted, ids": lambda: of_planted(texts=False),
    "planted, texts": lambda: of_planted(texts=True),
    "wrong labels": of_labels,
    "slices": of_slices,
    **{name: partial(of_mistake, name) for name in mistakes()},
}

if __name__ == "__main__":
    said = {name: [*lines()] for name, lines in CASES.items()}
    FILE.write_text(json.dumps(said, ensure_ascii=False, indent=1) + "\n", "utf-8")
