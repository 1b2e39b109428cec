"""What holds for every matcher in the catalogue, or for a declared part of it."""

import pickle  # noqa: TID251  matchers travel to worker processes
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from karat import Gold
from karat.data.memory_runs import DocumentRun
from karat.extend import (
    CutoffMetric,
    Document,
    Duplicates,
    Hits,
    Item,
    Matcher,
    Policies,
    read_matcher,
)
from karat.matching import MATCHERS
from karat.metrics import METRICS
from tests.conformance.test_metrics import plain_metric

NAMES = sorted(MATCHERS)
TEXTUAL = [name for name in NAMES if "documents" not in MATCHERS[name].reads]
laws = settings(max_examples=60, deadline=None)

SYMMETRIC = {"exact", "fuzzy", "normalized"}
DIRECTED = {"chunk", "contains", "span"}

# Pieces that are put together to texts which hold, repeat and resemble each other.
PIECES = (
    "The refund takes five days. ",
    "The refund takes fifteen days. ",
    "refund",
    "five days",
    "Date: 2023/05/30\nuser: ",
    "北京是中国的首都。",
    "คืนเงินภายในห้าวัน ",
    "Ünïcode\u0301 \u200f\u202b “quotes” ",
    "👍🏽",
    "",
    " ",
    "a",
)
texts = st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
grades = st.sampled_from([1.0, 1.0, 2.0, 0.5, 0.0, -1.0])


@st.composite
def textual_runs(draw: st.DrawFn) -> tuple[DocumentRun, Gold]:
    """Rankings and gold of all kinds: many documents satisfy many items."""
    queries = [f"q{number}" for number in range(draw(st.integers(1, 3)))]
    names = [f"d_{number}" for number in range(6)]
    rankings = {}
    kinds: dict[str, dict[str, tuple[Item, ...]]] = {"passages": {}, "answers": {}}
    documents = {}
    for query in queries:
        rankings[query] = [
            Document(id=draw(st.sampled_from([*names, None])), text=draw(texts))
            for _ in range(draw(st.integers(0, 6)))
        ]
        documents[query] = draw(st.dictionaries(st.sampled_from(names), grades))
        for kind, rows in kinds.items():
            rows[query] = tuple(
                Item(f"{kind}-{number}", draw(texts), draw(grades), group=group)
                for number, group in enumerate(
                    draw(st.lists(st.sampled_from([None, None, "g"]), max_size=4))
                )
            )
    gold = Gold(documents, **kinds, order=tuple(queries))  # type: ignore[arg-type]
    return DocumentRun(rankings), gold


def hits_of(
    matcher: Matcher, run: DocumentRun, gold: Gold, duplicates: Duplicates = "first"
) -> Hits:
    policies = Policies(force=True, duplicates=duplicates)
    hits = matcher.match(run, gold, judged=True, policies=policies).hits
    return replace(hits, own_k=np.full(hits.size, 3))


def all_matchers() -> list[Matcher]:
    return [MATCHERS[name]() for name in NAMES]


@pytest.mark.slow
@laws
@given(found=textual_runs(), duplicates=st.sampled_from(["first", "collapse", "keep"]))
def test_hits_are_laid_out_as_metrics_read_them(
    found: tuple[DocumentRun, Gold], duplicates: Duplicates
) -> None:
    for matcher in all_matchers():
        hits = hits_of(matcher, *found, duplicates)
        item = np.arange(len(hits.query)) if hits.item is None else hits.item
        rows = list(zip(hits.query, hits.rank, item, strict=True))
        assert rows == sorted(set(rows)), matcher
        assert (hits.rank >= 1).all(), matcher
        assert (hits.rank <= hits.retrieved[hits.query]).all(), matcher
        assert len(hits.gold_grade) == hits.gold_count.sum(), matcher
        assert hits.size == len(found[1].queries), matcher
        if hits.item is not None:
            assert (hits.gold_query[hits.item] == hits.query).all(), matcher


@pytest.mark.slow
@laws
@given(found=textual_runs(), duplicates=st.sampled_from(["first", "collapse", "keep"]))
def test_an_item_is_credited_once_at_its_first_rank(
    found: tuple[DocumentRun, Gold], duplicates: Duplicates
) -> None:
    for matcher in all_matchers():
        hits = hits_of(matcher, *found, duplicates)
        credits = hits.credits()
        paid = np.bincount(credits.query, minlength=hits.size)
        assert (paid <= credits.relevant).all(), matcher
        assert (credits.slot >= credits.order).all(), matcher
        assert (credits.slot >= credits.rank).all(), matcher
        if hits.item is not None:
            items = {*hits.item[hits.relevant()].tolist()}
            assert len(items) == len(credits.query), matcher


@pytest.mark.slow
@laws
@given(found=textual_runs())
def test_no_metric_leaves_its_bounds_over_any_matcher(
    found: tuple[DocumentRun, Gold],
) -> None:
    metrics = [plain_metric(name) for name in METRICS]
    metrics += [replace(m, k=2) for m in metrics if isinstance(m, CutoffMetric)]
    for matcher in all_matchers():
        hits = hits_of(matcher, *found)
        for metric in metrics:
            if metric.matcher == "span" and hits.coverage is None:
                continue
            if type(metric).__module__ == "karat.metrics.diversity":
                continue
            low, high = metric.bounds
            scores = metric.score(hits)
            defined = scores[~np.isnan(scores)]
            within = (defined >= low) & (defined <= high + 1e-12)
            assert within.all(), (str(metric), str(matcher), defined)


@pytest.mark.slow
@laws
@given(found=textual_runs())
def test_first_ranks_are_those_of_the_hits(found: tuple[DocumentRun, Gold]) -> None:
    for matcher in all_matchers():
        policies = Policies(force=True)
        matches = matcher.match(*found, judged=True, policies=policies)
        hits, ranks = matches.hits, matches.first_ranks()
        assert len(ranks) == hits.size
        for query, row in enumerate(ranks):
            mine = hits.query == query
            firsts = sorted(hits.rank[mine & hits.first].tolist())
            assert sorted(r for r in row.values() if r is not None) == firsts
            assert len(row) == hits.gold_count[query], matcher


@pytest.mark.slow
@laws
@given(found=textual_runs())
def test_the_same_input_gives_the_same_hits(found: tuple[DocumentRun, Gold]) -> None:
    for matcher in all_matchers():
        one, two = hits_of(matcher, *found), hits_of(matcher, *found)
        for column in ("query", "rank", "grade", "item"):
            left, right = getattr(one, column), getattr(two, column)
            np.testing.assert_array_equal(left, right, err_msg=str(matcher))


@pytest.mark.slow
@laws
@given(found=textual_runs())
def test_the_order_of_queries_changes_nothing(found: tuple[DocumentRun, Gold]) -> None:
    run, gold = found
    backwards = replace(gold, order=tuple(reversed(gold.queries)))
    recall = METRICS["recall"]()
    for matcher in all_matchers():
        forth = recall.score(hits_of(matcher, run, gold))
        back = recall.score(hits_of(matcher, run, backwards))
        np.testing.assert_array_equal(forth, back[::-1], err_msg=str(matcher))


@pytest.mark.slow
@laws
@given(found=textual_runs(), tail=texts)
def test_what_comes_later_changes_nothing_before(
    found: tuple[DocumentRun, Gold], tail: str
) -> None:
    run, gold = found
    longer = DocumentRun(
        {
            query: [*documents, Document("new", tail)]
            for query, documents in run.rankings(Policies())
        }
    )
    for matcher in all_matchers():
        short, long = hits_of(matcher, run, gold), hits_of(matcher, longer, gold)
        before = long.rank <= short.retrieved[long.query]
        np.testing.assert_array_equal(long.rank[before], short.rank, str(matcher))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_retrieved_and_nothing_wanted_are_no_trouble(name: str) -> None:
    items = (Item("i", "Something to look for."),)
    gold = Gold(
        {"a": {"d": 1.0}, "b": {}, "c": {"d": 1.0}},
        passages={"a": items, "c": items},
        answers={"a": items, "c": items},
        order=("a", "b", "c"),
    )
    run = DocumentRun({"a": [], "b": [Document("d", "Something to look for.")]})
    matched = MATCHERS[name]().match(
        run, gold, judged=True, policies=Policies(force=True)
    )
    assert matched.hits.gold_count.tolist() == [1, 0, 1]
    assert matched.hits.retrieved.tolist() == [0, 1, 0]
    assert matched.missing.tolist() == [False, False, True]
    assert len(matched.hits.query) == 0


def satisfies(matcher: Matcher, gold: str, document: str) -> bool:
    items = {"q": (Item("i", gold),)}
    labels = Gold(passages=items, answers=items)
    run = DocumentRun({"q": [Document("d", document)]})
    return len(hits_of(matcher, run, labels).query) > 0


@pytest.mark.parametrize("name", TEXTUAL)
@pytest.mark.parametrize(
    "text",
    [
        "The refund takes five days after we have received the parcel.",
        "北京是中国的首都、也是全国的政治文化中心。",
        "การคืนเงินจะใช้เวลาภายในห้าวันทำการหลังจากได้รับพัสดุ",
        "Возврат средств занимает пять дней после получения посылки.",
        "استرداد المبلغ يستغرق خمسة أيام بعد استلام الطرد.",
        "Emoji 👍🏽 and marks: cafe\u0301, naïve, “quoted” — all of them at once.",
    ],
)
def test_every_text_satisfies_itself(name: str, text: str) -> None:
    assert satisfies(MATCHERS[name](), text, text)


@pytest.mark.parametrize("name", TEXTUAL)
@pytest.mark.parametrize("document", ["", " ", "\n", "a", ".", "5", "user: ", "\u200b"])
def test_empty_and_one_letter_documents_satisfy_nothing(
    name: str, document: str
) -> None:
    gold = "You get a full refund within five days, a promise we keep."
    assert not satisfies(MATCHERS[name](), gold, document)


def test_every_matcher_of_texts_is_symmetric_or_is_not() -> None:
    assert {*TEXTUAL} <= SYMMETRIC | DIRECTED
    assert not SYMMETRIC & DIRECTED


@laws
@given(one=texts, two=texts)
def test_symmetric_matchers_do_not_ask_which_text_is_gold(one: str, two: str) -> None:
    for name in SYMMETRIC & {*TEXTUAL}:
        matcher = MATCHERS[name]()
        assert satisfies(matcher, one, two) == satisfies(matcher, two, one), name


@pytest.mark.parametrize("name", NAMES)
def test_a_matcher_is_a_value_that_can_be_written_and_sent(name: str) -> None:
    matcher = MATCHERS[name]()
    assert str(matcher) == name == matcher.name
    assert read_matcher(str(matcher)) == matcher
    assert pickle.loads(pickle.dumps(matcher)) == matcher
    assert hash(read_matcher(name)) == hash(matcher)


@pytest.mark.parametrize(
    "spelling",
    [
        "id(level=session)",
        "id(level=session, sep=:, gold=session)",
        "chunk(least=20)",
        "contains(boundary=none)",
        "fuzzy(similarity=partial, threshold=0.75, strict=true)",
    ],
)
def test_parameters_are_written_as_they_are_read(spelling: str) -> None:
    matcher = read_matcher(spelling)
    assert str(matcher) == spelling
    assert read_matcher(str(matcher)) == matcher
    assert matcher != type(matcher)()


@pytest.mark.parametrize("name", NAMES)
def test_a_matcher_says_what_it_means(name: str) -> None:
    matcher = MATCHERS[name]
    assert matcher.name == name
    first = (matcher.__doc__ or "").splitlines()[0]
    assert first.startswith("A document satisfies ")
    assert first.endswith(".")
    assert len(matcher.reads) > 0
