"""Relevance: a judge grades pooled documents, and its grades become gold."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from karat.data.gold import Gold
from karat.data.judgements import Conversation, Failure
from karat.data.policies import Policies
from karat.data.runs import Labels, Run
from karat.errors import DataError, InvalidReply
from karat.judging import prompts
from karat.judging.packing import pieces
from karat.judging.replies import (
    PARROTED,
    Answer,
    ask,
    is_blank,
    read_numbers,
    read_object,
    read_reason,
)
from karat.judging.scales import on_scale_of
from karat.judging.session import JudgeSession
from karat.judging.support import BUDGET
from karat.llm import Stage

__all__ = [
    "Grade",
    "Graded",
    "completed",
    "grade",
    "grade_pool",
    "pool",
    "tolerant",
    "unlabelled",
]

_GRADING = (Stage("grading", "document"), Stage("taking", "vote"))

Pool = Mapping[str, Mapping[str, str]]
"""What is to be graded: query -> document -> its text."""


@dataclass(frozen=True, slots=True)
class Grade:
    """How well one document answers one query, and why.

    Attributes:
        grade: 0 to 3.
        reason: the judge's own sentence.
        disagreement: share of the valid votes that gave another grade.
        failed: number of votes without a valid answer.
    """

    grade: int
    reason: str = ""
    disagreement: float = 0.0
    failed: int = 0


@dataclass(frozen=True, eq=False)
class Graded:
    """What came of grading a pool.

    Attributes:
        gold: the grades, each with its source.
        grades: query -> document -> grade with its reason.
        failures: (query, document) -> why there is no grade; never a 0.
    """

    gold: Gold
    grades: Mapping[str, Mapping[str, Grade]] = field(default_factory=dict)
    failures: Mapping[tuple[str, str], str] = field(default_factory=dict)


def pool(
    runs: Iterable[Run],
    k: int,
    corpus: Mapping[str, str] | None = None,
    policies: Policies | None = None,
) -> dict[str, dict[str, str]]:
    """The top k documents of every run, each once, with their texts.

    Args:
        runs: what systems retrieved for the same queries.
        k: how deep.
        corpus: texts by document id, for runs that hold ids only.
        policies: how ties are ordered.
    """
    texts = corpus or {}
    pooled: dict[str, dict[str, str]] = {}
    for run in runs:
        for query, documents in run.rankings(policies or Policies()):
            row = pooled.setdefault(query, {})
            for document in documents[:k]:
                name = document.id or document.text or ""
                text = texts.get(name) if document.text is None else document.text
                if text is None:
                    raise DataError(
                        f"document {name!r} has no text, and a judge must read it",
                        path=run.name,
                        query=query,
                        hint="--corpus FILE gives texts by document id",
                    )
                row.setdefault(name, text)
    return pooled


def unlabelled(pooled: Pool, gold: Labels, besides: Labels | None = None) -> Pool:
    """The part of a pool that has no label yet: the holes of an incomplete gold.

    Args:
        pooled: query -> document -> its text.
        gold: the labels there are.
        besides: documents that are kept though they have labels, to compare them.

    Example:
        >>> unlabelled({"q": {"a": "Rye.", "b": "Tea."}}, {"q": {"a": 1}})
        {'q': {'b': 'Tea.'}}
    """
    holes = {
        query: {
            name: text
            for name, text in row.items()
            if name not in gold.get(query, {}) or name in (besides or {}).get(query, {})
        }
        for query, row in pooled.items()
    }
    return {query: row for query, row in holes.items() if row}


def completed(gold: Gold, judged: Gold) -> Gold:
    """The gold with a judge's labels in its holes; labels that it has stay as they are.

    Every label still says whose it is, and the judge's are on the scale of the others.
    """
    judged = on_scale_of(gold.documents, judged)
    documents = {query: dict(row) for query, row in gold.documents.items()}
    sources = {query: dict(row) for query, row in gold.sources.items()}
    for query, row in judged.documents.items():
        labels = documents.setdefault(query, {})
        for name, given in row.items():
            if name not in labels:
                labels[name] = given
                sources.setdefault(query, {})[name] = judged.sources[query][name]
    order = dict.fromkeys([*gold.queries, *documents])
    return replace(gold, documents=documents, sources=sources, order=tuple(order))


def grade(
    question: str, text: str, *, budget: int = BUDGET, assessor: int = 1
) -> Conversation[Grade]:
    """The grade of one document; the best piece counts where it is long."""
    best: Grade | None = None
    for piece in pieces(text, budget) if text.strip() else ():
        read = partial(_read, passage=piece)
        answers = yield from ask(prompts.grade(question, piece, assessor), read)
        found = answers[-1]
        if found.value is None:
            raise InvalidReply(found.problem or "")
        best = found.value if best is None or found.value.grade > best.grade else best
    return best or Grade(0, "the document holds no words")


def _read(text: str, passage: str) -> Answer[Grade | None]:
    reply = read_object(text, [passage])
    if isinstance(reply, str):
        return Answer(None, reply)
    said = read_numbers(reply.get("grade"))
    if not said or len(said) != 1 or said[0] not in prompts.GRADES:
        return Answer(None, f"its grade is none of {[*prompts.GRADES]}")
    reason = read_reason(reply.get("reason"))
    return (
        Answer(None, PARROTED) if is_blank(reason) else Answer(Grade(said[0], reason))
    )


def grade_pool(
    pooled: Pool,
    questions: Mapping[str, str],
    judge: Any,
    *,
    votes: int = 1,
    budget: int = BUDGET,
    first: int = 1,
) -> Graded:
    """Grade every document of a pool.

    Args:
        pooled: query -> document -> its text.
        questions: what each query asks.
        judge: who grades: a bench, a client, a model's name or a function.
        votes: how many independent assessors decide, by their median.
        budget: tokens of a document in one question.
        first: the number of the first assessor; another one is asked anew.
    """
    bench = JudgeSession.of(judge)
    for query in pooled:
        if not questions.get(query, "").strip():
            raise DataError(
                "has no text, and a judge must know what was asked",
                query=query,
                hint="--queries FILE gives the texts of queries by id",
            )
    pairs = [(query, name) for query, row in pooled.items() for name in row]
    jobs = [
        partial(
            grade,
            questions[query],
            pooled[query][name],
            budget=budget,
            assessor=assessor,
        )
        for query, name in pairs
        for assessor in range(first, first + votes)
    ]
    asked = [query for query, _ in pairs for _ in range(votes)]
    heard = bench.run_jobs(jobs, _GRADING[votes > 1], asked)
    grades: dict[str, dict[str, Grade]] = {query: {} for query in pooled}
    failures: dict[tuple[str, str], str] = {}
    for place, (query, name) in enumerate(pairs):
        found = _median(heard[place * votes : (place + 1) * votes])
        if isinstance(found, Failure):
            failures[query, name] = found.reason
        else:
            grades[query][name] = found
    gold = Gold(
        documents={
            query: {name: float(said.grade) for name, said in row.items()}
            for query, row in grades.items()
        },
        sources={
            query: dict.fromkeys(row, bench.source) for query, row in grades.items()
        },
        name=bench.source,
    )
    return Graded(gold, grades, failures)


def _median(votes: Sequence[Grade | Failure]) -> Grade | Failure:
    """The grade in the middle (the lower of two), with the share that differs."""
    valid = sorted(
        (vote for vote in votes if isinstance(vote, Grade)), key=lambda v: v.grade
    )
    if not valid:
        return votes[0]
    middle = valid[(len(valid) - 1) // 2]
    same = sum(vote.grade == middle.grade for vote in valid)
    failed = len(votes) - len(valid)
    return Grade(middle.grade, middle.reason, 1 - same / len(valid), failed)


def tolerant(bench: JudgeSession) -> JudgeSession:
    """The same bench, but any number may fail: where that is what is to be found."""
    return replace(bench, settings=replace(bench.settings, max_failures=None))
