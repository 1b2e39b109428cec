"""Support: which documents support which claims, asked of a model and checked.

Long lists of texts are packed into as few questions as a budget of tokens allows, and
the questions of a sample are asked side by side.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import starmap
from typing import Any, NamedTuple, TypeAlias

from karat.data.gold import Item
from karat.data.judgements import Conversation, ParallelConversation, Prompt, Verdict
from karat.errors import InvalidReply
from karat.judging import prompts
from karat.judging.contexts import CONTEXT_TOKENS, Context, excerpts, pack
from karat.judging.prompts import Prompts
from karat.judging.replies import (
    ATTEMPTS,
    cut_problem,
    is_blank,
    read_flag,
    read_numbers,
    read_object,
    read_reason,
    side_by_side,
)

# The number of problems shown to the model when it is asked again.
_PROBLEMS = 25
# The number of claims in one question; the reply to more might be cut off.
_CLAIMS = 20
# What a verdict lists contexts under; a model may leave out those that are empty.
_LISTS = ("alone", "parts", "against")
_ANOTHER_FORM = "has a verdict of another form"


_Claims: TypeAlias = Mapping[int, str]
"""The text of each claim by its index; a question numbers those of a batch from 1."""


class _Answered(NamedTuple):
    """Claims beside contexts, the valid verdicts, and prompts without a valid reply."""

    claims: _Claims
    contexts: Sequence[Context]
    verdicts: Mapping[int, Verdict]
    problem: str | None = None
    invalid: Sequence[Prompt] = ()


def support(
    claims: Sequence[Item],
    contexts: Sequence[Context],
    *,
    budget: int = CONTEXT_TOKENS,
    assessor: int = 1,
    question: str | None = None,
    wording: Prompts = prompts.STANDARD,
) -> ParallelConversation[tuple[Verdict, ...]]:
    """One verdict for each claim; one that cannot be had says why.

    Contexts that do not fit into one question come in several. Claims whose parts then
    lie in different questions are asked once more, with excerpts of those parts side by
    side: the passages that share most with the claim.
    Where some claims have no valid verdict, the `result` of the error has the others.
    """
    packs = pack(contexts, budget)
    texts = [item.text for item in claims]
    ask = partial(_ask, assessor=assessor, question=question, wording=wording)
    answered = yield from side_by_side(
        ask(dict(enumerate(texts[start : start + _CLAIMS], start)), group)
        for start in range(0, len(texts), _CLAIMS)
        for group in packs
    )
    if len(packs) > 1:
        more = _follow_ups(answered, texts, budget)
        answered += yield from side_by_side(starmap(ask, more))
    verdicts = tuple(_merge(item, index, answered) for index, item in enumerate(claims))
    if invalid := [prompt for one in answered for prompt in one.invalid]:
        reason = next(one.problem for one in answered if one.problem is not None)
        usable = any(verdict.failure is None for verdict in verdicts)
        raise InvalidReply(reason, result=verdicts if usable else None, prompts=invalid)
    return verdicts


def _ask(
    claims: _Claims,
    contexts: Sequence[Context],
    assessor: int,
    question: str | None,
    wording: Prompts,
) -> Conversation[_Answered]:
    """Ask, and twice more about the claims without a valid verdict."""
    verdicts: dict[int, Verdict] = {}
    sent: list[Prompt] = []
    problems: list[str] = []
    for attempt in range(ATTEMPTS):
        rest = {n: text for n, text in claims.items() if n not in verdicts} or claims
        numbers = {index % _CLAIMS + 1: index for index in rest}
        numbered = [(number, rest[index]) for number, index in numbers.items()]
        prompt = prompts.support_prompt(numbered, contexts, assessor, question, wording)
        # Each repair adds to the last, so that no two attempts are the same prompt.
        sent.append(reduce(prompts.repair, problems, prompt))
        reply = yield sent[-1]
        wrong = cut_problem(reply, last=attempt > 0)
        if not wrong:
            valid, wrong = _read_verdicts(reply.text, numbers, contexts)
            verdicts |= valid
        problems += [wrong] if wrong else []
        if len(verdicts) == len(claims):
            return _Answered(claims, contexts, verdicts)
        if reply.cut and attempt:
            break
    return _Answered(claims, contexts, verdicts, problems[-1], sent)


def _follow_ups(
    answered: Sequence[_Answered], texts: Sequence[str], budget: int
) -> Iterator[tuple[_Claims, list[Context]]]:
    """Claims whose parts no question showed together, beside excerpts of them."""
    for index, claim in enumerate(texts):
        verdicts = [
            (one.contexts, one.verdicts[index])
            for one in answered
            if index in one.verdicts
        ]
        partly = [
            (pieces, parts)
            for pieces, one in verdicts
            if (parts := one.together or one.partial)
        ]
        if len(partly) < 2:  # noqa: PLR2004
            continue
        earliest = sorted(min(parts) for _, parts in partly)[1]
        if min(one.rank or math.inf for _, one in verdicts) <= earliest:
            continue
        passages = [
            (rank, "\n".join(text for at, text in pieces if at == rank))
            for pieces, parts in partly
            for rank in parts
        ]
        yield {index: claim}, excerpts(passages, claim, budget)


def _read_verdicts(
    text: str, numbers: Mapping[int, int], contexts: Sequence[Context]
) -> tuple[dict[int, Verdict], str]:
    """The valid verdicts of a reply, and what is wrong with the rest of it."""
    reply = read_object(text, (passage for _, passage in contexts))
    if isinstance(reply, str):
        return {}, reply
    entries = reply.get("verdicts")
    if isinstance(entries, dict):
        # Some models name each verdict by its claim.
        pairs = entries.items()
        entries = [{"claim": k, **v} for k, v in pairs if isinstance(v, dict)]
    if not isinstance(entries, list):
        return {}, "it has no list of verdicts"
    ranks = {*dict(contexts)}
    verdicts: dict[int, Verdict] = {}
    problems: list[str] = []
    seen: set[int] = set()
    for entry in entries:
        named = read_numbers(entry.get("claim")) if isinstance(entry, dict) else None
        if not named or len(named) != 1 or named[0] not in numbers:
            return {}, "it judges a claim that was not asked about"
        number = named[0]
        verdict = _read_verdict(entry, ranks)
        if number in seen:
            verdicts.pop(numbers[number], None)
            problems.append(f"claim {number} has two verdicts")
        elif isinstance(verdict, str):
            problems.append(f"claim {number} {verdict}")
        else:
            verdicts[numbers[number]] = verdict
        seen.add(number)
    problems += [f"claim {n} has no verdict" for n in numbers if n not in seen]
    more = "; ..." if len(problems) > _PROBLEMS else ""
    return verdicts, "; ".join(problems[:_PROBLEMS]) + more


def _read_verdict(entry: Mapping[str, Any], ranks: set[int]) -> Verdict | str:
    alone, parts, against = (read_numbers(entry.get(name)) for name in _LISTS)
    complete = read_flag(entry.get("complete"))
    if entry.keys().isdisjoint((*_LISTS, "complete")):
        return _ANOTHER_FORM
    if alone is None or parts is None or against is None or complete is None:
        return _ANOTHER_FORM
    if made_up := sorted({*alone, *parts, *against} - ranks):
        return f"names context {made_up[0]}, which was not shown"
    reason = read_reason(entry.get("reason"))
    if is_blank(reason):
        return "repeats the form it was shown instead of filling it in"
    if against and (both := sorted({*alone} & {*against})):
        return f"has context {both[0]} both for and against it"
    alone, parts, against = map(sorted, map(set, (alone, parts, against)))
    return Verdict(
        "",
        alone=tuple(alone),
        # Complete without parts is how some models say that one is enough.
        together=tuple(parts) if complete else (),
        partial=() if complete else tuple(parts),
        against=tuple(against),
        reason=reason,
    )


def _merge(item: Item, index: int, answered: Sequence[_Answered]) -> Verdict:
    """What all replies say about one claim; the reason is that of the best rank."""
    every: list[Verdict] = []
    alone, parts, against = set[int](), set[int](), set[int]()
    for one in answered:
        if index in one.claims and index not in one.verdicts:
            return Verdict(item.id, item.text, failure=one.problem)
        if index in one.verdicts:
            verdict = one.verdicts[index]
            every.append(verdict)
            alone.update(verdict.alone)
            parts.update(verdict.together, verdict.partial)
            against.update(verdict.against)
    together = min((v.together for v in every if v.together), key=max, default=())
    # Where nothing supports the claim, the reason is that of what comes nearest.
    best = min(
        every,
        key=lambda v: (
            v.rank or math.inf,
            not v.against,
            not (v.together or v.partial),
        ),
        default=Verdict(item.id),
    )
    return Verdict(
        item.id,
        item.text,
        tuple(sorted(alone)),
        together,
        best.reason,
        partial=() if alone or together else tuple(sorted(parts)),
        against=tuple(sorted(against - alone)),
    )


def majority(votes: Sequence[Sequence[Verdict]]) -> tuple[Verdict, ...]:
    """The verdict of most assessors on each claim, with the share that disagrees.

    Without a majority of the valid votes a claim is not supported. The ranks are those
    of the assessor in the middle of the majority. Votes that failed decide nothing, and
    do not agree with it either.
    """
    if len(votes) == 1:
        return tuple(votes[0])
    decided = []
    for ballots in zip(*votes, strict=True):
        valid = [verdict for verdict in ballots if verdict.failure is None]
        if not valid:
            decided.append(ballots[0])
            continue
        supported = sum(verdict.supported for verdict in valid) * 2 > len(valid)
        winners = [verdict for verdict in valid if verdict.supported == supported]
        winners.sort(key=lambda v: (v.rank or 0, bool(v.against), bool(v.partial)))
        middle = winners[(len(winners) - 1) // 2]
        share = len(winners) / len(ballots)
        decided.append(replace(middle, disagreement=1 - share))
    return tuple(decided)
