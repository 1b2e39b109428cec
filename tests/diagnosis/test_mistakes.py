"""Ordinary mistakes, each with what a diagnosis must say of it, fixed beforehand."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

import karat
from tests.diagnosis import disasters
from tests.diagnosis.disasters import Case, K
from tests.diagnosis.planted import (
    _copied,
    cyrillic,
    foreign,
    look_alike,
    self_made,
)

NONE = ""
LATE = 30


def good_run(queries: int = 40, size: int = 600) -> Case:
    """A run that finds nearly all: a fourth of its gold is at rank 1."""
    dice = random.Random(8)
    corpus = self_made(dice, size)
    names = dice.sample([*corpus], size)
    run, gold, asked = {}, {}, {}
    for number in range(queries):
        query, name = f"q{number}", names[number]
        rest = [n for n in dice.sample(names, LATE) if n != name]
        place = dice.choice([0, 1, 2, 3, 4, 7, 12])
        ranking = [*rest[:place], name, *rest[place:]]
        run[query] = {d: 1 / (n + 1) for n, d in enumerate(ranking)}
        gold[query] = [name]
        asked[query] = " ".join(corpus[name].split()[-12:])
    return Case(run, gold, corpus, asked)


def change(case: Case, names: set[str], new: Callable[[str], str]) -> Case:
    """The corpus with other texts of some documents, which nobody retrieves."""
    corpus = {n: new(t) if n in names else t for n, t in case.corpus.items()}
    rows = case.rankings.items()
    lost = case.with_rankings({q: [d for d in r if d not in names] for q, r in rows})
    return replace(lost, corpus=corpus)


def some_gold(case: Case, share: float) -> set[str]:
    names = [name for row in case.gold.values() for name in row]
    return {*names[: int(share * len(names))]}


def renamed(case: Case, new: Callable[[str], str], *, gold: bool = False) -> Case:
    """Other ids in the run, or in the gold, than in the rest."""
    if gold:
        rows = case.gold.items()
        return replace(case, gold={q: [*map(new, row)] for q, row in rows})
    run = {q: {new(d): s for d, s in row.items()} for q, row in case.run.items()}
    return replace(case, run=run)


def everywhere(case: Case, place: int, share: float, *documents: str) -> Case:
    dice, rankings = random.Random(1), {}
    for query, row in case.rankings.items():
        rest = [d for d in row if d not in documents]
        inside = dice.random() < share
        rankings[query] = [*rest[:place], *documents, *rest[place:]] if inside else rest
    return case.with_rankings(rankings)


def cut_off(case: Case, share: float, size: int) -> Case:
    dice, rows = random.Random(2), case.rankings.items()
    return case.with_rankings(
        {q: r[:size] if dice.random() < share else r for q, r in rows}
    )


def without(case: Case, lost: set[str]) -> Case:
    rows = case.rankings.items()
    return case.with_rankings({q: [d for d in r if d not in lost] for q, r in rows})


def mistakes() -> dict[str, tuple[Callable[[Case], Case], str]]:  # noqa: C901
    """What was done to a good run, and what must be told first."""
    dice = random.Random(4)

    def with_prefix(case: Case) -> Case:
        other = {n: f"wiki:{n}" if k % 4 == 0 else n for k, n in enumerate(case.corpus)}
        moved = Case(
            {q: {other[d]: s for d, s in row.items()} for q, row in case.run.items()},
            {q: [other[d] for d in row] for q, row in case.gold.items()},
            {other[n]: text for n, text in case.corpus.items()},
            case.queries,
        )
        return without(moved, {n for n in moved.corpus if n.startswith("wiki:")})

    def few_queries(case: Case) -> Case:
        names = [*case.run][:12]
        return replace(
            disasters.reverse(case, dice),
            run={q: {d: -s for d, s in case.run[q].items()} for q in names},
            gold={q: case.gold[q] for q in names},
        )

    def gold_rotated(case: Case) -> Case:
        names = [*case.gold]
        turned = dict(zip(names, [case.gold[q] for q in names[1:] + names[:1]]))  # noqa: B905
        return replace(case, gold=turned)

    def by_name(case: Case) -> Case:
        rows = [case.run[query] for query in sorted(case.run)]
        return replace(case, run=dict(zip(case.run, rows, strict=True)))

    def rounded(case: Case) -> Case:
        rows = case.run.items()
        run = {q: {d: round(s, 1) / 10 for d, s in r.items()} for q, r in rows}
        return replace(case, run={q: dict.fromkeys(r, 0.5) for q, r in run.items()})

    def any_ranking(case: Case) -> Case:
        names = [*case.corpus]
        return case.with_rankings({q: dice.sample(names, LATE) for q in case.run})

    def small_corpus(case: Case) -> Case:
        few = {n: case.corpus[n] for n in [*case.corpus][:12]}
        names = [*few]
        rankings = {q: dice.sample(names, 12) for q in case.run}
        gold = {q: [dice.choice(names)] for q in case.run}
        return replace(case.with_rankings(rankings), corpus=few, gold=gold)

    def one_query(case: Case) -> Case:
        run = {"q0": dict(reversed(case.run["q0"].items()))}
        return replace(case, run=run, gold={"q0": case.gold["q0"]})

    def broad(case: Case) -> Case:
        names = [*case.corpus]
        rows = case.gold.items()
        return replace(case, gold={q: [*r, *dice.sample(names, 14)] for q, r in rows})

    def useful_hub(case: Case) -> Case:
        hub = [*case.corpus][-1]
        rows = case.gold.items()
        both = replace(case, gold={q: [*r, hub] for q, r in rows})
        return everywhere(both, 0, 1.0, hub)

    def half_wrong(case: Case) -> Case:
        return disasters.shift_half(case, dice)

    hubs = ["note-3", "note-4"]
    order, other = "ranking reversed", "results of another query"
    hub, few = "displaced by a hub", "fewer than k retrieved"
    form, lost = "wrong id form", "retrieved by no query"
    text, tie = "damaged text", "tied at the cut"
    return {
        "distances as scores": (lambda c: disasters.reverse(c, dice), order),
        "distances, 12 queries": (few_queries, order),
        "results one row too late": (lambda c: disasters.shift(c, dice), other),
        "gold one row too late": (gold_rotated, other),
        "joined by row, sorted by name": (by_name, other),
        "half joined wrongly": (half_wrong, other),
        "shuffled results": (lambda c: disasters.shuffle(c, dice), other),
        "one document on top": (lambda c: everywhere(c, 0, 1.0, hubs[0]), hub),
        "one at rank 3 of many": (lambda c: everywhere(c, 2, 0.7, hubs[0]), hub),
        "two on top": (lambda c: everywhere(c, 0, 1.0, *hubs), hub),
        "three documents each": (lambda c: cut_off(c, 1.0, 3), few),
        "nothing for a fifth": (lambda c: cut_off(c, 0.25, 0), few),
        "one document for a fifth": (lambda c: cut_off(c, 0.25, 1), few),
        "equal scores": (lambda c: disasters.ties(c, dice), tie),
        "rounded scores": (rounded, tie),
        "ids in capitals": (lambda c: renamed(c, str.upper), form),
        "ids with a folder": (lambda c: renamed(c, "docs/{}".format), form),
        "ids with an ending": (lambda c: renamed(c, "{}.md".format), form),
        "chunks against documents": (lambda c: renamed(c, "{}_0".format), form),
        "chunks by characters": (lambda c: renamed(c, "{}:0-400".format), form),
        "pages against documents": (lambda c: renamed(c, "{}_page_3".format), form),
        "gold of chunks": (lambda c: renamed(c, "{}#2".format, gold=True), form),
        "a source not indexed": (with_prefix, lost),
        "the end not indexed": (
            lambda c: without(c, {*[*c.corpus][len(c.corpus) // 2 :]}),
            lost,
        ),
        "every second not indexed": (lambda c: without(c, {*[*c.corpus][::2]}), lost),
        "empty texts": (lambda c: change(c, some_gold(c, 0.6), lambda _: ""), text),
        "look-alike letters": (
            lambda c: change(c, some_gold(c, 0.6), lambda t: look_alike(t, dice)),
            text,
        ),
        "cut texts": (
            lambda c: change(c, some_gold(c, 0.6), lambda t: t[:4]),
            text,
        ),
        "another language": (
            lambda c: change(c, some_gold(c, 0.6), lambda t: foreign(t, dice)),
            text,
        ),
        "another script": (
            lambda c: change(c, some_gold(c, 0.6), lambda t: cyrillic(t, dice)),
            text,
        ),
        "nothing wrong": (lambda c: c, NONE),
        "any ranking": (any_ranking, NONE),
        "a small corpus": (small_corpus, NONE),
        "one query": (one_query, NONE),
        "broad questions": (broad, NONE),
        "a document that answers all": (useful_hub, NONE),
    }


@pytest.mark.parametrize("name", mistakes())
def test_a_mistake_about_the_run_is_told_first(name: str) -> None:
    change_, expected = mistakes()[name]
    case = change_(good_run())
    found = karat.diagnose(
        case.run, gold=case.gold, corpus=case.corpus, queries=case.queries, k=K
    )
    assert [one.kind for one in found.findings] == ([expected] if expected else [])


HARBOUR = (
    "The harbour office of Larkmoor opened in 1954 and employs 120 people. Ships must "
    "report to it before they enter the inner harbour, and pay within 30 days."
)
MILL = "The mill of Tarnby was sold to Quenlis Orvad, who turned it into a school."
ORVAD = "Quenlis Orvad was born in Hesk and taught music. She never married."
OATS = "Oats are sown in spring and cut in late summer, before the rains begin."
WOOL = "Wool is washed twice in cold water and dried in the shade for a week."
HAY = "Hay that is stored damp may catch fire by itself, even in an open barn."
NOTES = {
    f"n{number}": text
    for number, text in enumerate(self_made(random.Random(3), 60).values())
}
ASKED = "When did the harbour office of Larkmoor open?"
MULTI = "Who bought the mill of Tarnby?"
OTHERS = ["oats", "wool", "hay"]
TEXTS = {"harbour": HARBOUR, "mill": MILL, "orvad": ORVAD, "oats": OATS, "wool": WOOL}
TEXTS |= {"hay": HAY, **NOTES}


@pytest.mark.parametrize(
    ("ranking", "gold", "question", "more", "cause"),
    [
        (
            ["old", *OTHERS],
            ["harbour"],
            ASKED,
            {"old": HARBOUR.replace("1954", "1945")},
            "contradicting copy retrieved",
        ),
        (
            ["old", *OTHERS, "harbour"],
            ["harbour"],
            ASKED,
            {"old": HARBOUR.replace("30 days", "14 days")},
            "contradicting copy retrieved",
        ),
        (
            ["old", *OTHERS],
            ["harbour"],
            ASKED,
            {"old": HARBOUR.replace("must report", "must not report")},
            "contradicting copy retrieved",
        ),
        (
            ["copy", *OTHERS],
            ["harbour"],
            ASKED,
            {"copy": f"<p>{HARBOUR}</p>\n"},
            "unlabelled twin retrieved",
        ),
        (["harbour", *OTHERS], ["n7"], ASKED, {}, "label in doubt"),
        (["mill", *OTHERS], ["mill", "n5"], MULTI, {}, "label in doubt"),
        (["mill", *OTHERS], ["mill", "orvad"], MULTI, {}, "partial multi-hop"),
        ([*OTHERS, "n1"], ["harbour"], ASKED, {}, "embedding miss"),
        ([*OTHERS, "n1"], ["gone"], ASKED, {}, "not in the corpus"),
        ([*OTHERS, "n1", "harbour"], ["harbour"], ASKED, {}, "below k"),
    ],
)
def test_a_mistake_about_a_miss_is_its_cause(
    ranking: list[str],
    gold: list[str],
    question: str,
    more: dict[str, str],
    cause: str,
) -> None:
    found = karat.diagnose(
        {"q": ranking},
        gold={"q": gold},
        corpus={**TEXTS, **more},
        queries={"q": question},
        k=3,
    )
    assert [miss.cause for miss in found.misses] == [cause]


def test_a_copy_is_no_contradiction() -> None:
    dice = random.Random(6)
    for number in range(20):
        copy = _copied(HARBOUR, dice)
        found = karat.diagnose(
            {"q": ["copy", "hay"]},
            gold={"q": ["harbour"]},
            corpus={**TEXTS, "copy": copy},
            k=2,
        )
        assert found.misses[0].cause == "unlabelled twin retrieved", (number, copy)


def test_scores_tell_how_far_below_a_miss_is() -> None:
    run = {"q": {"oats": 0.9, "wool": 0.7, "harbour": 0.6}}
    (miss,) = karat.diagnose(run, gold={"q": ["harbour"]}, k=2).misses
    assert miss.facts["score_margin"] == pytest.approx(0.1)
    run = {"q": {"oats": 0.9, "wool": 0.6, "zharbour": 0.6}}
    found = karat.diagnose(run, gold={"q": ["zharbour", "wool"]}, k=2)
    assert [miss.cause for miss in found.misses] == ["tied at the cut"]
