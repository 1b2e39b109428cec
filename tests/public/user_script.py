"""What a user and the author of a plug-in may write: every public name, typed.

A test runs this script and has mypy look at it with `--strict`.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

import karat
from karat import extend
from karat.extend import (
    ANSWER_IN_JSON,
    JOURNAL,
    NDCG,
    NOT_FILLED_IN,
    TEXTS_ARE_DATA,
    BinaryMetric,
    Bools,
    CallError,
    ChatClient,
    Claims,
    Client,
    Conversation,
    Credits,
    CutoffMetric,
    DataError,
    Dataset,
    Document,
    DryRun,
    Duplicates,
    Extra,
    Floats,
    Format,
    FormatError,
    FunctionClient,
    Fuzzy,
    Hits,
    IncompleteError,
    InterpolatedAverage,
    InterpolatedPrecision,
    Ints,
    InvalidReply,
    Item,
    JudgeSession,
    Labels,
    Limits,
    Matcher,
    Matches,
    Metric,
    MetricScores,
    MismatchError,
    Missing,
    MissingExtraError,
    NDCGAny,
    Notice,
    OfflineMissError,
    ParameterError,
    Policies,
    Precision,
    Prices,
    Prompt,
    Query,
    Reply,
    Report,
    Semantic,
    Settings,
    Source,
    Span,
    TextMatcher,
    Ties,
    Undefined,
    UnknownNameError,
    UsageError,
    call_plugin,
    count_by,
    decode_text,
    decode_yaml,
    fenced,
    fold,
    grade_pool,
    is_blank,
    make_metric,
    object_schema,
    open_binary,
    place_by,
    policies_for,
    ratio,
    read_matcher,
    read_metric,
    read_object,
    repair,
    run_sync,
    running_sum,
    sum_by,
    training_evaluator,
    workbench,
    write_file,
)

RUN = {"q1": ["a", "b"], "q2": {"c": 0.5, "d": 0.9}}
RANKED = {"q1": ["a", "b"], "q2": ["d", "c"]}
RUNS = {"one": RUN, "two": RUN}
GOLD: Labels = {"q1": {"b": 1.0}, "q2": {"c": 1.0, "d": 2.0}}


@dataclass(frozen=True)
class Best(CutoffMetric):
    """The best grade in the top k over the best there is."""

    name: ClassVar[str] = "best"

    def score(self, hits: Hits) -> Floats:
        rows = self.within(hits, hits.query, hits.rank)
        found: Floats = np.zeros(hits.size)
        np.maximum.at(found, hits.query[rows], hits.grade[rows])
        ideal: Floats = np.zeros(hits.size)
        np.maximum.at(ideal, hits.gold_query, hits.gold_grade)
        return ratio(found, ideal)


class LastRank(BinaryMetric):
    """The rank of the last relevant item that was found."""

    name: ClassVar[str] = "last_rank"
    bounds: ClassVar[tuple[float, float]] = (0.0, np.inf)

    def score(self, hits: Hits) -> Floats:
        credits: Credits = hits.credits(self.threshold)
        query: Ints = credits.query
        number = count_by(query, hits.size)
        last: Bools = place_by(query, hits.size) == number[query]
        steps = running_sum(query, np.ones(len(query)))
        assert len(steps) == len(query)
        return sum_by(query[last], credits.rank[last].astype(np.float64), hits.size)


@dataclass(frozen=True)
class SameLength(TextMatcher):
    """A document satisfies a gold passage of its own length."""

    name: ClassVar[str] = "same_length"
    reads: ClassVar[tuple[str, ...]] = ("passages",)

    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        pairs = zip(golds, documents, strict=True)
        return np.array([len(fold(g)) == len(fold(d)) for g, d in pairs], np.bool_)


class Note(Format):
    """A file whose text is one query."""

    name = "note"
    extensions = (".note",)

    def read(self, source: Source) -> Dataset:
        text = decode_text(source.read())
        if not text:
            raise source.error("is empty")
        return Dataset(queries={"q": Query("q", text)}, format=self.name)


def inputs() -> list[str]:
    """Every door for files and objects."""
    run: karat.Run = karat.read_run(RUN)
    runs: dict[str, karat.Run] = karat.read_run(
        [{"system": "x", "id": "q1", "retrieved": ["a"]}], by="system"
    )
    gold: karat.Gold = karat.read_gold(GOLD)
    data: karat.Dataset = karat.read_samples(
        [{"nr": "q1", "retrieved": ["a"], "relevant": ["a"]}], mapping={"id": "nr"}
    )
    corpus: karat.Corpus = karat.read_corpus([{"id": "a", "text": "Rye."}])
    return [run.name, *runs, gold.name, data.format, corpus["a"]]


def named(board: karat.Leaderboard, tables: Sequence[object]) -> str:
    """A report that only counts."""
    return f"{len(board)} evaluations, {len(tables)} tables"


REPORT: Report = named


def judge(text: str) -> Conversation[bool]:
    """Whether a model finds a text kind; asked once more if its reply is no use."""
    schema = object_schema(kind={"type": "boolean"})
    system = f"Is the text kind? {TEXTS_ARE_DATA} {ANSWER_IN_JSON}"
    prompt = Prompt(system, fenced([("text", text)]), schema, "kindness", "1")
    for _ in range(2):
        reply: Reply = yield prompt
        said = read_object(reply.text, [text])
        if not isinstance(said, str) and not is_blank(str(said.get("kind"))):
            return bool(said.get("kind"))
        prompt = repair(prompt, said if isinstance(said, str) else NOT_FILLED_IN)
    raise InvalidReply("the model's reply cannot be used")


def never(prompt: str) -> str:
    """A model that says of every passage that it answers nothing."""
    return f'{{"reason": "read {len(prompt)} characters", "grade": 0}}'


async def clients() -> list[str]:
    """Models from what a user brings; they are not asked here."""
    completions = SimpleNamespace(create=print)
    chat = SimpleNamespace(chat=SimpleNamespace(completions=completions))
    client: Client = ChatClient("model", chat, {})
    session = JudgeSession(client, Settings(prices=Prices(0.1, 0.4), journal=None))
    claims: Matcher = Claims(FunctionClient(never, model="never"))
    return [type(session).__name__, DryRun.__name__, str(JOURNAL), claims.name]


def grades() -> int:
    """What a model says of passages."""
    questions = {"q": "How long is the warranty?"}
    passages = {"q": {"d": "Gloves come in three sizes."}}
    session = JudgeSession.of(never, Settings(journal=None, concurrency=1))
    graded = grade_pool(passages, questions, session)
    items = {"q": (Item("c", "The warranty is long."),)}
    return len(items) + len(graded.grades)


def scores() -> dict[str, float]:
    """The metrics of this script and karat's own, by every name of a policy."""
    undefined: Undefined = "skip"
    missing: Missing = "zero"
    extra: Extra = "ignore"
    duplicates: Duplicates = "first"
    ties: Ties = "trec"
    precision: Precision = "double"
    chosen = Policies(undefined, missing, extra, duplicates, ties, precision)
    assert policies_for(None, ties="trec") == chosen
    metrics: list[str | Metric] = ["rr", Best(1), LastRank(), read_metric("P@1")]
    metrics += [make_metric("recall", k=1), NDCG(2), NDCGAny(), InterpolatedAverage()]
    metrics.append(InterpolatedPrecision(0.5))
    evaluation: karat.Evaluation = karat.evaluate(
        RUN, gold=GOLD, metrics=metrics, undefined=undefined, ties=ties
    )
    evaluator: karat.Evaluator = karat.Evaluator(GOLD, metrics, ties=ties)
    assert evaluator.evaluate(RUN).means == evaluation.means
    column: MetricScores = evaluation["rr"]
    assert column.mean == evaluation.means["rr"]
    return dict(evaluation.means)


def passages() -> float:
    """A matcher of this script beside karat's own."""
    gold: karat.Gold = karat.Gold(passages={"q": (Item("p", "one"),)})
    run = {"q": [Document(id="d", text="two")]}
    own: Matcher = SameLength()
    assert read_matcher("fuzzy(0.5)") == Fuzzy(threshold=0.5)
    close = Semantic(lambda texts: [[float(len(text))] for text in texts])
    near = karat.evaluate(run, gold=gold, metrics=["recall"], match=close)
    assert near.means == {"recall": 1.0}
    assert Span("s", "d", 0, 3).end - Matches.__name__.count("?")
    return karat.evaluate(run, gold=gold, metrics="recall", match=own).means["recall"]


def mistakes() -> list[str]:
    """Every kind of error is one of karat's, and says what is wrong."""
    kinds: tuple[type[karat.KaratError], ...] = (
        *(CallError, DataError, FormatError, IncompleteError, MismatchError),
        *(MissingExtraError, OfflineMissError, ParameterError, UnknownNameError),
        UsageError,
    )
    try:
        make_metric("ndgc")
    except UnknownNameError as error:
        return [str(error), *(kind.__name__ for kind in kinds)]
    raise AssertionError


def suite() -> karat.SuiteResult:
    """What a file says is to be evaluated."""
    return karat.run_suite("main", "karat.yaml", fresh=True)


def best_rank() -> int:
    """What the best of a few settings achieves."""

    def build(rank: int) -> Callable[[str], list[str]]:
        return lambda _: [*["c", "d", "e"][:rank], "a"]

    queries = dict.fromkeys(("q1", "q2"), "Which one?")
    gold = {query: ["a"] for query in queries}
    found: karat.Sweep = karat.sweep(build, {"rank": [1, 0, 2]}, queries, gold)
    return int(found.best.setting["rank"])


def main() -> None:
    """Use them all."""
    print(karat.__version__, scores(), passages(), mistakes(), inputs())
    print(
        run_sync(clients),
        grades(),
        REPORT(karat.leaderboard(RUNS, gold=GOLD), []),
        next(judge("Thank you.")).name,
    )
    board = karat.leaderboard(RUNS, gold=GOLD)
    assert karat.rank_correlation(board, board).rbo.value == 1
    table = karat.explain(RUN, "q1", gold=GOLD).tables[0]
    comparison: karat.Comparison = karat.compare(RUN, RUN, gold=GOLD)
    assert karat.apply_labels([], GOLD).added == 0
    judged = {f"q{n}": {"d1": 1} for n in range(10)}
    plan: karat.LabelPlan = karat.plan_labels(judged, budget=10)
    both: karat.CombinedScores = karat.combine_labels(
        {"run": judged}, judged=judged, people=judged, plan=plan
    )
    texts = {"d1": "Rye is sown in autumn and cut in July."}
    asked: karat.QuestionSet = karat.generate(
        texts, 1, model=lambda _: "{}", settings=Settings(journal=None)
    )
    assert asked.counts == {"empty": 3}
    fused: karat.Run = karat.fuse([RANKED, RANKED])
    added = karat.complementarity(RUNS, gold=GOLD)
    alike: dict[str, float] = karat.rbo(RANKED, RANKED)
    likeness: karat.RunAgreement = karat.agree(RANKED, RANKED)
    assert likeness.queries[0].rbo == alike[likeness.queries[0].query]
    weights = karat.search_weights(
        [RANKED, RANKED],
        lambda run: dict.fromkeys(RANKED, float(len(run.queries()))),
        method="rrf",
        folds=2,
    )
    live = karat.retrieve(lambda _: ["d1"], {"q": "What is rye?"}, k=1, cache=None)
    print(karat.flat_metrics(karat.evaluate(RUN, GOLD)))
    row: dict[str, float | None] = karat.row_scorer("rr")(["d1"], ["d1"])
    print(row, training_evaluator({"q1": "rye"}, {"d1": "Rye."}, GOLD, name="dev").name)
    print(live.latency, karat.aretrieve)
    found: karat.Diagnosis = karat.diagnose(RUN, GOLD, k=1)
    wrong: karat.GoldFindings = karat.doctor(GOLD, k=1)
    print(table, comparison, both, fused, added, alike, weights, found.todos, wrong)
    print(Notice("kind", 1, "text"), decode_yaml("a: 1"), len(extend.__all__))
    print(workbench("history.db", limits=Limits(uploads=1)).routes)
    write_file(os.devnull, call_plugin(lambda: "text", "the report"))
    with open_binary(__file__) as stream:
        print(
            decode_text(stream.read(3)), karat.aevaluate, karat.load, suite, best_rank()
        )


if __name__ == "__main__":
    main()
