"""From where on something is wrong with a whole run: both sides of each threshold."""

import pytest

import karat

K = 3
Rankings = dict[str, list[str]]


def ranked(queries: int, rank: int, depth: int = 12) -> tuple[Rankings, Rankings]:
    """A run in which every query has documents of its own, and its gold at a rank."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    run = {f"q{n}": [f"{one}{n}" for one in letters[:depth]] for n in range(queries)}
    return run, {query: [row[rank - 1]] for query, row in run.items()}


def told(run: Rankings, gold: Rankings) -> list[str]:
    return [one.kind for one in karat.diagnose(run, gold=gold, k=K).findings]


@pytest.mark.parametrize(
    ("queries", "rank", "depth", "reversed_"),
    [
        (8, 12, 12, False),
        (9, 12, 12, True),
        # Nearer to the end, and by half as much again, as at rank 2 from there.
        (9, 3, 4, True),
        (9, 4, 6, False),
        (40, 7, 12, False),
    ],
)
def test_a_ranking_is_reversed_when_nine_queries_say_so(
    queries: int, rank: int, depth: int, *, reversed_: bool
) -> None:
    run, gold = ranked(queries, rank, depth)
    assert told(run, gold) == ["ranking reversed"] * reversed_


def test_gold_in_the_middle_says_nothing_about_the_order() -> None:
    run, gold = ranked(9, 11, 11)
    middle, own = ranked(20, 6, 11)
    run |= {f"m{q}": row for q, row in middle.items()}
    gold |= {f"m{q}": row for q, row in own.items()}
    (finding,) = karat.diagnose(run, gold=gold, k=K).findings
    assert finding.kind == "ranking reversed"
    assert finding.queries == 9
    assert finding.sentence.startswith("for 9 of 29 queries")


def rotated(queries: int, wrong: int) -> tuple[Rankings, Rankings]:
    """The first queries have each other's results, the others their own."""
    run, gold = ranked(queries, 1)
    names = [*run]
    mixed = names[1:wrong] + names[:1]
    return run | {q: run[o] for q, o in zip(names[:wrong], mixed, strict=True)}, gold


@pytest.mark.parametrize(
    ("queries", "wrong", "mixed"),
    [(9, 9, False), (10, 10, True), (60, 14, False), (60, 15, True)],
)
def test_queries_are_mixed_up_when_ten_and_a_fourth_of_all_are(
    queries: int, wrong: int, *, mixed: bool
) -> None:
    run, gold = rotated(queries, wrong)
    assert told(run, gold) == ["results of another query"] * mixed


def with_hub(queries: int, often: int, useful: int = 0) -> tuple[Rankings, Rankings]:
    """One document on top of some queries, and relevant to some of them."""
    run, gold = ranked(queries, K)
    for query in [*run][:often]:
        run[query].insert(0, "hub")
    for query in [*run][:useful]:
        gold[query].append("hub")
    return run, gold


@pytest.mark.parametrize(
    ("queries", "often", "useful", "hub"),
    [
        (9, 9, 0, False),
        (10, 10, 0, True),
        (40, 20, 0, True),
        (40, 19, 0, False),
        (40, 40, 8, True),
        (40, 40, 9, False),
    ],
)
def test_a_hub_is_in_half_of_the_rankings_and_relevant_to_a_fifth_of_those(
    queries: int, often: int, useful: int, *, hub: bool
) -> None:
    run, gold = with_hub(queries, often, useful)
    assert told(run, gold) == ["displaced by a hub"] * hub


def test_hubs_are_counted_and_what_they_displace_is_named() -> None:
    run, gold = with_hub(20, 20)
    one = karat.diagnose(run, gold=gold, k=K)
    assert one.findings[0].sentence == (
        "'hub' is in the top 3 of 20 of 20 queries, and relevant to 0 of them"
    )
    miss = one.misses[0]
    assert (
        miss.reason
        == "at rank 4, and at 3 without 1 document that most queries retrieve"
    )
    assert [(near.id, near.rank) for near in miss.related] == [("hub", 1)]
    both = {query: ["other", *row] for query, row in run.items()}
    two = karat.diagnose(both, gold=gold, k=K)
    assert two.findings[0].sentence.endswith("relevant to 0 of them; so are 1 more")
    assert "and at 3 without 2 documents" in two.misses[0].reason


@pytest.mark.parametrize(
    ("queries", "cut", "few"),
    [(20, 2, False), (20, 3, True), (40, 3, False), (40, 4, True)],
)
def test_too_few_documents_are_told_for_three_and_a_tenth_of_the_queries(
    queries: int, cut: int, *, few: bool
) -> None:
    run, gold = ranked(queries, 1)
    for query in [*run][:cut]:
        run[query], gold[query] = run[query][: K - 1], ["gone"]
    assert told(run, gold) == ["fewer than k retrieved"] * few
    for query in [*run][:cut]:
        run[query].append("last")
    assert told(run, gold) == []


@pytest.mark.parametrize(
    ("queries", "tied", "ties"),
    [(6, 2, False), (6, 3, True), (30, 9, False), (30, 10, True)],
)
def test_ties_are_told_for_three_and_a_third_of_the_queries(
    queries: int, tied: int, *, ties: bool
) -> None:
    # Of equal scores the later name is first: the gold falls to rank 4.
    rankings, gold = ranked(queries, K)
    run = {q: {d: -float(n) for n, d in enumerate(r)} for q, r in rankings.items()}
    for query in [*run][:tied]:
        run[query][rankings[query][K]] = run[query][rankings[query][K - 1]]
    found = karat.diagnose(run, gold=gold, k=K)
    assert [one.kind for one in found.findings] == ["tied at the cut"] * ties
    assert found.totals == {"tied at the cut": tied}


@pytest.mark.parametrize(
    ("misses", "formed", "wrong"),
    [(3, 2, False), (3, 3, True), (12, 3, False), (12, 4, True)],
)
def test_a_cause_of_a_third_of_the_misses_is_told_of_the_run(
    misses: int, formed: int, *, wrong: bool
) -> None:
    run, gold = ranked(misses, 5)
    for query in [*run][:formed]:
        gold[query] = [gold[query][0].upper()]
    run["r"], gold["r"] = ["good"], ["good"]
    assert told(run, gold) == ["wrong id form"] * wrong


def shared(lost: int, elsewhere: int, queries: int = 40) -> tuple[Rankings, Rankings]:
    """Twenty documents, each retrieved by half of the queries, and gold not found.

    Of some queries it is retrieved by nobody, of others by other queries.
    """
    names = [f"d{n}" for n in range(20)]
    rows = {f"q{n}": (names[n % 20 :] + names[: n % 20]) for n in range(queries)}
    gold = {query: row[:1] for query, row in rows.items()}
    for number, query in enumerate([*rows][: lost + elsewhere]):
        gold[query] = [f"lost-{query}" if number < lost else rows[query][15]]
    return {query: row[:10] for query, row in rows.items()}, gold


@pytest.mark.parametrize(
    ("lost", "elsewhere", "never"),
    [(4, 0, False), (5, 0, True), (5, 15, True), (5, 16, False)],
)
def test_documents_that_nobody_retrieves_are_five_and_a_fourth_of_what_is_missed(
    lost: int, elsewhere: int, *, never: bool
) -> None:
    run, gold = shared(lost, elsewhere)
    assert told(run, gold) == ["retrieved by no query"] * never


def test_of_broad_queries_much_may_well_be_retrieved_by_nobody() -> None:
    run, gold = shared(6, 0)
    few, many = (
        {q: [*r, *(f"{q}{n}" for n in range(more))] for q, r in gold.items()}
        for more in (4, 5)
    )
    assert told(run, few) == ["retrieved by no query"]
    assert told(run, many) == []


def test_what_every_query_retrieves_alone_is_no_sign_of_a_gap() -> None:
    """Where no document is retrieved twice, gold that nobody retrieves is usual."""
    run, gold = ranked(20, 1)
    for query in [*run][:10]:
        gold[query] = [f"lost-{query}"]
    assert told(run, gold) == []


@pytest.mark.parametrize(("lost", "never"), [(13, False), (14, True)])
def test_gold_that_nobody_retrieves_is_a_fourth_more_than_is_usual(
    lost: int, *, never: bool
) -> None:
    """A tenth of what is found is retrieved by its query alone: 35 % of 40 are 14."""
    run, gold = shared(lost, 40 - lost, queries=100)
    for query in [*run][-6:]:
        run[query][0] = gold[query][0] = f"own-{query}"
    assert told(run, gold) == ["retrieved by no query"] * never
