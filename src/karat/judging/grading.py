"""Grading: a judge grades pooled documents from 0 to 3, and its grades become gold."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from karat.data.gold import Gold
from karat.data.judgements import Conversation, Failure
from karat.data.policies import Policies
from karat.data.runs import Labels, Run
from karat.data.tables import Table, counted
from karat.errors import DataError
from karat.judging import prompts
from karat.judging.contexts import CONTEXT_TOKENS, pieces, require_texts, text_of
from karat.judging.replies import (
    NOT_FILLED_IN,
    ask_again,
    is_blank,
    read_numbers,
    read_object,
    read_reason,
)
from karat.judging.session import JudgeSession
from karat.llm.limits import Stage
from karat.reading.readers import with_texts

RELEVANT = 2
"""The smallest grade of a document that helps to answer, as the judge is told.

Metrics count any positive grade, unless `--threshold 2` says the same to them.
"""

LAST = max(prompts.GRADE_MEANINGS)
"""The best grade."""

_GRADING = (Stage("grading", "document"), Stage("taking", "vote"))

Pool = Mapping[str, Mapping[str, str]]
"""What is to be graded: query -> document -> its text."""


@dataclass(frozen=True, slots=True)
class Grade:
    """How well a document answers a query, and the share of votes that differ."""

    grade: int
    reason: str = ""
    disagreement: float = 0.0
    failed: int = 0


@dataclass(frozen=True, eq=False)
class GradedPool:
    """The grades of a pool, as gold and with their reasons; a failure is never a 0."""

    gold: Gold
    grades: Mapping[str, Mapping[str, Grade]] = field(default_factory=dict)
    failures: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def table(self, notes: Sequence[str] = ()) -> Table:
        """How many documents got which grade, and where votes differ or are missing."""
        grades = [grade for row in self.grades.values() for grade in row.values()]
        given = [grade.grade for grade in grades]
        meanings = prompts.GRADE_MEANINGS.items()
        cells = [[str(g), str(given.count(g)), text] for g, text in meanings]
        title = f"{counted(len(grades), 'document')} graded by {self.gold.name}"
        notes = [*notes, *self._vote_notes(grades)]
        return Table(["grade", "documents", "meaning"], cells, title, notes, (0, 2))

    def _vote_notes(self, grades: Sequence[Grade]) -> Iterator[str]:
        if differ := [grade.disagreement for grade in grades if grade.disagreement]:
            divided, share = counted(len(differ), "document"), sum(differ) / len(grades)
            yield f"votes: {divided} divided them; {share:.1%} differ"
        if failed := [grade.failed for grade in grades if grade.failed]:
            votes = f"{counted(sum(failed), 'vote')} without a valid answer"
            rest = f"{counted(len(failed), 'document')} whose grade rests on the others"
            yield f"votes: {votes}, on {rest}"
        if self.failures:
            yield f"failed: {counted(len(self.failures), 'document')} without a grade"

    def to_dict(self, *, texts: bool = True) -> dict[str, Any]:
        """Grades and failures in plain values; reasons may be left out."""
        return {
            "grades": [
                {
                    "query": query,
                    "document": name,
                    "grade": grade.grade,
                    "disagreement": grade.disagreement,
                    "failed_votes": grade.failed,
                    "reason": grade.reason if texts else "",
                }
                for query, row in self.grades.items()
                for name, grade in row.items()
            ],
            "failures": [
                {"query": query, "document": name, "reason": reason}
                for (query, name), reason in self.failures.items()
            ],
        }


def pool(
    runs: Iterable[Run], k: int, corpus: Mapping[str, str] | None = None
) -> dict[str, dict[str, str]]:
    """The top k documents of every run, each once, with their texts."""
    pooled: dict[str, dict[str, str]] = {}
    policies = Policies()
    for bare in runs:
        run = bare if corpus is None else with_texts(bare, corpus)
        rankings = dict(run.rankings(policies))
        require_texts(rankings, run.name, policies)
        for query, documents in rankings.items():
            row = pooled.setdefault(query, {})
            for document in documents[:k]:
                text = text_of(document, query, run.name)
                row.setdefault(document.id or text, text)
    return pooled


def unlabelled(pooled: Pool, gold: Labels, besides: Labels | None = None) -> Pool:
    """The part of a pool that has no label in the gold yet, and what is besides."""
    rest = {
        query: {
            name: text
            for name, text in row.items()
            if name not in gold.get(query, {}) or name in (besides or {}).get(query, {})
        }
        for query, row in pooled.items()
    }
    return {query: row for query, row in rest.items() if row}


def complete_gold(gold: Gold, judged: Gold) -> Gold:
    """The gold with a judge's labels for documents that have none; others stay.

    Where the labels of the gold are 0 or 1 alone, the judge's grades 2 and 3 become 1,
    since they answer the question at least in part.
    """
    added: Labels = judged.documents
    if is_binary(gold.documents):
        added = relevance(added, RELEVANT)
    documents = {query: dict(row) for query, row in gold.documents.items()}
    sources = {query: dict(row) for query, row in gold.sources.items()}
    for query, row in added.items():
        labels = documents.setdefault(query, {})
        for name, label in row.items():
            if name not in labels:
                labels[name] = label
                sources.setdefault(query, {})[name] = judged.sources[query][name]
    order = dict.fromkeys([*gold.queries, *documents])
    return replace(gold, documents=documents, sources=sources, order=tuple(order))


def grade(
    question: str,
    text: str,
    *,
    budget: int = CONTEXT_TOKENS,
    assessor: int = 1,
    wording: prompts.Prompts = prompts.STANDARD,
) -> Conversation[Grade]:
    """The grade of one document; the best piece counts where it is long."""
    best: Grade | None = None
    for piece in pieces(text, budget) if text.strip() else ():
        prompt = prompts.grade_prompt(question, piece, assessor, wording)
        graded = yield from ask_again(prompt, partial(_read, passage=piece))
        best = graded if best is None or graded.grade > best.grade else best
    return best or Grade(0, "the document holds no words")


def _read(text: str, passage: str) -> Grade | str:
    reply = read_object(text, [passage])
    if isinstance(reply, str):
        return reply
    numbers = read_numbers(reply.get("grade"))
    if not numbers or len(numbers) != 1 or numbers[0] not in prompts.GRADE_MEANINGS:
        return f"its grade is none of {[*prompts.GRADE_MEANINGS]}"
    reason = read_reason(reply.get("reason"))
    return NOT_FILLED_IN if is_blank(reason) else Grade(numbers[0], reason)


def grade_pool(
    pooled: Pool,
    questions: Mapping[str, str],
    judge: Any,
    *,
    votes: int = 1,
    budget: int = CONTEXT_TOKENS,
    first: int = 1,
) -> GradedPool:
    """Grade every document of a pool.

    Args:
        pooled: query -> document -> its text.
        questions: what each query asks.
        judge: who grades: a session, a client, a model's name or a function.
        votes: how many independent assessors decide, by their median.
        budget: tokens of a document in one question.
        first: the number of the first assessor; another one is asked anew.

    Example:
        >>> def model(prompt):
        ...     return '{"reason": "It says so.", "grade": 3}'
        >>> pool = {"q": {"d": "We refund within two days."}}
        >>> graded = grade_pool(pool, {"q": "How long is a refund?"}, model)
        >>> graded.grades["q"]["d"].grade
        3
    """
    session = JudgeSession.of(judge)
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
            wording=session.prompts,
        )
        for query, name in pairs
        for assessor in range(first, first + votes)
    ]
    voters = [query for query, _ in pairs for _ in range(votes)]
    results = session.run_jobs(jobs, _GRADING[votes > 1], voters)
    grades: dict[str, dict[str, Grade]] = {query: {} for query in pooled}
    failures: dict[tuple[str, str], str] = {}
    for index, (query, name) in enumerate(pairs):
        result = _median(results[index * votes : (index + 1) * votes])
        if isinstance(result, Failure):
            failures[query, name] = result.reason
        else:
            grades[query][name] = result
    rows, source = grades.items(), session.source
    gold = Gold(
        {q: {name: float(g.grade) for name, g in row.items()} for q, row in rows},
        sources={query: dict.fromkeys(row, source) for query, row in rows},
        name=source,
    )
    return GradedPool(gold, grades, failures)


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


def retest(
    pooled: Pool, questions: Mapping[str, str], judge: Any, *, votes: int = 1
) -> GradedPool:
    """Grade a pool once more, in other words, so that no kept reply counts as new."""
    session = JudgeSession.of(judge)
    without_limit = replace(session.settings, max_failures=None)
    session = replace(session, settings=without_limit)
    return grade_pool(pooled, questions, session, votes=votes, first=votes + 1)


def is_binary(labels: Labels) -> bool:
    """Whether the labels say relevant or not, and nothing in between."""
    return _is_scale(labels, 1)


def is_graded(labels: Labels) -> bool:
    """Whether the labels are grades as a judge gives them, from 0 to 3."""
    return _is_scale(labels, LAST)


def _is_scale(labels: Labels, last: int) -> bool:
    grades = {grade for row in labels.values() for grade in row.values()}
    return last in grades and all(g <= 0 or g in range(last + 1) for g in grades)


def relevance(labels: Labels, threshold: float | None = None) -> Labels:
    """1 for what is relevant, by default any positive grade, and 0 for the rest."""
    return {
        query: {
            name: float(grade > 0 if threshold is None else grade >= threshold)
            for name, grade in row.items()
        }
        for query, row in labels.items()
    }
