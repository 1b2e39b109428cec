"""Support: which documents support which claims, asked of a model and checked.

Long lists of texts are packed into as few questions as a budget of tokens allows, and
the questions of a sample are asked side by side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from karat.data.gold import Item
from karat.data.judgements import ParallelConversation, Prompt, Reply, Verdict
from karat.errors import InvalidReply
from karat.judging import prompts
from karat.judging.contexts import BUDGET, Context, excerpts, pack
from karat.judging.prompts import Prompts
from karat.judging.replies import (
    Answer,
    is_blank,
    read_flag,
    read_numbers,
    read_object,
    read_reason,
    read_reply,
)

__all__ = ["majority", "support"]

# The number of problems shown to the model when it is asked again.
_PROBLEMS = 25
# The number of claims in one question; the reply to more might be cut off.
_CLAIMS = 20


@dataclass(frozen=True, slots=True)
class _Finding:
    """What one reply says about one claim."""

    alone: frozenset[int] = frozenset()
    parts: frozenset[int] = frozenset()
    complete: bool = False
    against: frozenset[int] = frozenset()
    reason: str = ""

    @property
    def rank(self) -> float:
        """The rank at which the claim is found, by this reply."""
        completed = max(self.parts) if self.complete else float("inf")
        return min([*self.alone, completed])


_Findings: TypeAlias = dict[int, _Finding]


class _Question(NamedTuple):
    """Claims, numbered, beside contexts.

    Attributes:
        batch: index of the first claim; claims are numbered from 1 in each batch.
        claims: number and text of each claim.
        contexts: rank and text of each document; a long one may come in pieces.
        assessor: which of several independent votes this is.
        asked: what the query asks, if that is known.
        prompts: the instructions.
    """

    batch: int
    claims: Sequence[tuple[int, str]]
    contexts: Sequence[Context]
    assessor: int
    asked: str | None
    prompts: Prompts

    @property
    def prompt(self) -> Prompt:
        shown = (self.claims, self.contexts, self.assessor, self.asked)
        return prompts.support(*shown, self.prompts)

    def text(self, rank: int) -> str:
        """What the question shows of a document."""
        return "\n".join(text for shown, text in self.contexts if shown == rank)


class _Answered(NamedTuple):
    """A question, what was found, and what is wrong with the claims not found.

    Attributes:
        question: what was asked.
        findings: valid findings by the number of the claim.
        problem: why the others have none.
        invalid: the prompts whose replies could not be used.
    """

    question: _Question
    findings: _Findings
    problem: str | None = None
    invalid: tuple[Prompt, ...] = ()


def support(
    claims: Sequence[Item],
    contexts: Sequence[Context],
    *,
    budget: int = BUDGET,
    assessor: int = 1,
    question: str | None = None,
    prompts: Prompts | None = None,
) -> ParallelConversation[tuple[Verdict, ...]]:
    """One verdict for each claim; one that cannot be had says why.

    Contexts that do not fit into one question come in several. Claims whose parts then
    lie in different questions are asked once more, with excerpts of those parts side by
    side: the passages that share most with the claim.

    Args:
        claims: what should be supported.
        contexts: rank and text of each document.
        budget: tokens of contexts in one question.
        assessor: which of several independent votes this is.
        question: what was asked, if that is known.
        prompts: the instructions.

    Raises:
        InvalidReply: for some claims there is no valid verdict; its `result` has the
            verdicts of the others, if there are any.
    """
    packs = pack(contexts, budget)
    constant = (assessor, question, prompts or Prompts())
    questions = [
        _Question(start, [*enumerate(texts, 1)], group, *constant)
        for start in range(0, len(claims), _CLAIMS)
        for texts in [[item.text for item in claims[start : start + _CLAIMS]]]
        for group in packs
    ]
    answered = yield from _ask(questions)
    if len(packs) > 1:
        answered += yield from _ask(_follow_ups(answered, len(claims), budget))
    verdicts = tuple(_merge(item, index, answered) for index, item in enumerate(claims))
    if invalid := [prompt for one in answered for prompt in one.invalid]:
        reason = next(one.problem for one in answered if one.problem is not None)
        usable = any(verdict.failure is None for verdict in verdicts)
        raise InvalidReply(reason, result=verdicts if usable else None, prompts=invalid)
    return verdicts


def _ask(
    questions: Sequence[_Question],
) -> ParallelConversation[list[_Answered]]:
    """Ask all questions, and once more for the claims without a valid finding."""
    if not questions:
        return []
    sent = [question.prompt for question in questions]
    replies = yield sent
    answers = [_read(r, q, last=False) for r, q in zip(replies, questions, strict=True)]
    again = {
        index: prompts.repair(_missing(questions[index], answer.value).prompt, problem)
        for index, answer in enumerate(answers)
        if (problem := answer.problem) is not None
    }
    repaired = dict(zip(again, (yield [*again.values()]), strict=True)) if again else {}
    answered = []
    for index, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        if index not in again:
            answered.append(_Answered(question, answer.value))
            continue
        rest = _missing(question, answer.value)
        second = _read(repaired[index], rest, last=True)
        findings = answer.value | second.value
        if len(findings) == len(question.claims):
            answered.append(_Answered(question, findings))
        else:
            invalid = (sent[index], again[index])
            problem = second.problem or answer.problem
            answered.append(_Answered(question, findings, problem, invalid))
    return answered


def _missing(question: _Question, findings: _Findings) -> _Question:
    """The question about those claims that have no finding yet."""
    rest = [
        (number, text) for number, text in question.claims if number not in findings
    ]
    return question._replace(claims=rest or question.claims)


def _follow_ups(
    answered: Sequence[_Answered], claims: int, budget: int
) -> list[_Question]:
    """Questions about claims whose parts no question showed together."""
    questions = []
    for index in range(claims):
        start, number = index - index % _CLAIMS, index % _CLAIMS + 1
        shown = [
            (one.question, one.findings[number])
            for one in answered
            if one.question.batch == start and number in one.findings
        ]
        partial = [(question, found.parts) for question, found in shown if found.parts]
        if len(partial) < 2:  # noqa: PLR2004
            continue
        earliest = sorted(min(parts) for _, parts in partial)[1]
        if min(found.rank for _, found in shown) <= earliest:
            continue
        question = partial[0][0]
        claim = dict(question.claims)[number]
        passages = [
            (rank, question.text(rank))
            for question, parts in partial
            for rank in sorted(parts)
        ]
        questions.append(
            question._replace(
                claims=[(number, claim)], contexts=excerpts(passages, claim, budget)
            )
        )
    return questions


def _read(reply: Reply, question: _Question, *, last: bool) -> Answer[_Findings]:
    return read_reply(reply, lambda text: _read_findings(text, question), last=last)


def _read_findings(text: str, question: _Question) -> Answer[_Findings]:
    """The valid findings of a reply; one made-up claim and none of it counts."""
    reply = read_object(text, (shown for _, shown in question.contexts))
    if isinstance(reply, str):
        return Answer({}, reply)
    entries = reply.get("verdicts")
    if isinstance(entries, dict):
        # Some models name each verdict by its claim.
        pairs = entries.items()
        entries = [{"claim": k, **v} for k, v in pairs if isinstance(v, dict)]
    if not isinstance(entries, list):
        return Answer({}, "it has no list of verdicts")
    ranks = {rank for rank, _ in question.contexts}
    numbers = [number for number, _ in question.claims]
    findings: _Findings = {}
    problems: list[str] = []
    seen: set[int] = set()
    for entry in entries:
        named = read_numbers(entry.get("claim")) if isinstance(entry, dict) else None
        if not named or len(named) != 1 or named[0] not in numbers:
            return Answer({}, "it judges a claim that was not asked about")
        number = named[0]
        finding = _read_finding(entry, ranks)
        if number in seen:
            findings.pop(number, None)
            problems.append(f"claim {number} has two verdicts")
        elif isinstance(finding, str):
            problems.append(f"claim {number} {finding}")
        else:
            findings[number] = finding
        seen.add(number)
    problems += [f"claim {n} has no verdict" for n in numbers if n not in seen]
    shown = "; ".join(problems[:_PROBLEMS])
    return Answer(
        findings, f"{shown}; ..." if len(problems) > _PROBLEMS else shown or None
    )


def _read_finding(entry: Mapping[str, Any], shown: set[int]) -> _Finding | str:
    alone, parts, against = (
        read_numbers(entry.get(name)) for name in ("alone", "parts", "against")
    )
    complete = read_flag(entry.get("complete"))
    if alone is None or parts is None or against is None or complete is None:
        return "has a verdict of another form"
    if made_up := sorted({*alone, *parts, *against} - shown):
        return f"names context {made_up[0]}, which was not shown"
    if complete and not parts:
        # Complete without parts is how some models say that one is enough.
        complete = False
    reason = read_reason(entry.get("reason"))
    if is_blank(reason):
        return "repeats the form it was shown instead of filling it in"
    if against and (both := sorted({*alone} & {*against})):
        return f"has context {both[0]} both for and against it"
    ranks = frozenset(alone), frozenset(parts)
    return _Finding(*ranks, complete, frozenset(against), reason)


def _merge(item: Item, index: int, answered: Sequence[_Answered]) -> Verdict:
    """What all replies say about one claim; the reason is that of the best rank."""
    start, number = index - index % _CLAIMS, index % _CLAIMS + 1
    found: list[_Finding] = []
    for one in answered:
        if one.question.batch != start:
            continue
        if number in one.findings:
            found.append(one.findings[number])
        elif any(asked == number for asked, _ in one.question.claims):
            return Verdict(item.id, item.text, failure=one.problem)
    alone = {rank for finding in found for rank in finding.alone}
    against = {rank for finding in found for rank in finding.against} - alone
    complete = [finding.parts for finding in found if finding.complete]
    together = min(complete, key=max) if complete else ()
    partial: set[int] = set()
    if not alone and not together:
        partial = {rank for finding in found for rank in finding.parts}
    # Where nothing supports the claim, the reason is that of what comes nearest.
    best = found[0] if found else _Finding()
    for other in found[1:]:
        nearer = (other.rank, not other.against, not other.parts)
        if nearer < (best.rank, not best.against, not best.parts):
            best = other
    return Verdict(
        item.id,
        item.text,
        tuple(sorted(alone)),
        tuple(sorted(together)),
        best.reason,
        partial=tuple(sorted(partial)),
        against=tuple(sorted(against)),
    )


def majority(votes: Sequence[Sequence[Verdict]]) -> tuple[Verdict, ...]:
    """The verdict of most assessors on each claim, with the share that disagrees.

    Without a majority of the valid votes a claim is not supported. The ranks are those
    of the assessor in the middle of the majority. Votes that failed decide nothing, and
    do not agree with it either.
    """
    if len(votes) == 1:
        return tuple(votes[0])
    return tuple(_vote(list(ballots)) for ballots in zip(*votes, strict=True))


def _vote(ballots: list[Verdict]) -> Verdict:
    valid = [verdict for verdict in ballots if verdict.failure is None]
    if not valid:
        return ballots[0]
    supported = sum(verdict.supported for verdict in valid) * 2 > len(valid)
    winners = [verdict for verdict in valid if verdict.supported == supported]
    winners.sort(key=lambda v: (v.rank or 0, bool(v.against), bool(v.partial)))
    middle = winners[(len(winners) - 1) // 2]
    return replace(middle, disagreement=1 - len(winners) / len(ballots))
