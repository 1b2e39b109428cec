"""Support: which documents support which claims, asked of a model and checked.

Long lists of texts are packed into as few questions as a budget of tokens allows.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from karat.data.gold import Item
from karat.data.judgements import Conversation, Prompt, Reply
from karat.data.verdicts import Verdict
from karat.errors import InvalidReply
from karat.judging import prompts
from karat.judging.replies import (
    Answer,
    ask,
    is_blank,
    read_flag,
    read_numbers,
    read_object,
    read_reason,
)
from karat.llm.budget import tokens_of

__all__ = ["BUDGET", "Context", "majority", "pack", "pieces", "support"]

Context: TypeAlias = tuple[int, str]
"""A document under judgement: its rank and its text."""

BUDGET = 6000
"""How many tokens of contexts one question may hold by default."""

# The number of problems shown to the model when it is asked again.
_PROBLEMS = 25
# The number of claims in one question; the reply to more might be cut off.
_CLAIMS = 20
_OVERLAP = 0.1


@dataclass(frozen=True, slots=True)
class _Finding:
    """What one reply says about one claim."""

    alone: frozenset[int] = frozenset()
    parts: frozenset[int] = frozenset()
    complete: bool = False
    reason: str = ""

    @property
    def rank(self) -> float:
        """The rank at which the claim is found, by this reply."""
        completed = max(self.parts) if self.complete else float("inf")
        return min([*self.alone, completed])


_Findings = dict[int, _Finding]


def support(
    claims: Sequence[Item],
    contexts: Sequence[Context],
    *,
    budget: int = BUDGET,
    assessor: int = 1,
) -> Conversation[tuple[Verdict, ...]]:
    """One verdict for each claim, or `InvalidReply` where a reply cannot be used.

    Contexts that do not fit into one question come in several. Claims whose parts then
    lie in different questions are asked once more, with those parts side by side.

    Args:
        claims: what should be supported.
        contexts: rank and text of each document.
        budget: tokens of contexts in one question.
        assessor: which of several independent votes this is.
    """
    verdicts: list[Verdict] = []
    for start in range(0, len(claims), _CLAIMS):
        batch = claims[start : start + _CLAIMS]
        verdicts += yield from _judge(batch, contexts, budget, assessor)
    return tuple(verdicts)


def _judge(
    claims: Sequence[Item], contexts: Sequence[Context], budget: int, assessor: int
) -> Generator[Prompt, Reply, list[Verdict]]:
    numbered = [(number, item.text) for number, item in enumerate(claims, 1)]
    findings: list[_Findings] = []
    for group in pack(contexts, budget):
        findings += [(yield from _question(numbered, group, assessor))]
    for number, text in numbered if len(findings) > 1 else ():
        if apart := _apart(number, findings):
            parts = _truncated(contexts, apart, budget)
            question = _question([(number, text)], parts, assessor)
            findings += [(yield from question)]
    return [
        _merge(item, [found[number] for found in findings if number in found])
        for number, item in enumerate(claims, 1)
    ]


def _question(
    claims: Sequence[tuple[int, str]], contexts: Sequence[Context], assessor: int
) -> Generator[Prompt, Reply, _Findings]:
    """What the model says about these claims: one valid finding for each."""
    numbers = [number for number, _ in claims]
    read = partial(_read, numbers=numbers, contexts=contexts)
    answers = yield from ask(prompts.support(claims, contexts, assessor), read)
    valid: _Findings = {}
    for answer in answers:
        valid |= answer.value
    if len(valid) < len(claims):
        raise InvalidReply(answers[-1].problem or "")
    return valid


def _read(
    text: str, numbers: Sequence[int], contexts: Sequence[Context]
) -> Answer[_Findings]:
    """The valid findings of a reply; one made-up claim and none of it counts."""
    reply = read_object(text, (shown for _, shown in contexts))
    if isinstance(reply, str):
        return Answer({}, reply)
    entries = reply.get("verdicts")
    if not isinstance(entries, list):
        return Answer({}, "it has no list of verdicts")
    ranks = {rank for rank, _ in contexts}
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
    alone, parts = read_numbers(entry.get("alone")), read_numbers(entry.get("parts"))
    complete = read_flag(entry.get("complete"))
    if alone is None or parts is None or complete is None:
        return "has a verdict of another form"
    if made_up := sorted({*alone, *parts} - shown):
        return f"names context {made_up[0]}, which was not shown"
    if complete and not parts:
        # Complete without parts is how some models say that one is enough.
        complete = False
    reason = read_reason(entry.get("reason"))
    if is_blank(reason):
        return "repeats the form it was shown instead of filling it in"
    return _Finding(frozenset(alone), frozenset(parts), complete, reason)


def _apart(number: int, findings: Sequence[_Findings]) -> set[int]:
    """The parts of a claim that no question showed together, if they could help."""
    found = [group[number] for group in findings if number in group]
    groups = [set(finding.parts) for finding in found if finding.parts]
    parts = set().union(*groups)
    if len(groups) < 2 or len(parts) < 2:  # noqa: PLR2004
        return set()
    earliest = sorted(min(group) for group in groups)[1]
    return parts if min(finding.rank for finding in found) > earliest else set()


def _truncated(
    contexts: Sequence[Context], ranks: set[int], budget: int
) -> list[Context]:
    """The contexts of these ranks, each cut so that all fit into one question."""
    chosen = [(rank, text) for rank, text in contexts if rank in ranks]
    share = max(1, budget // len(chosen))
    return [
        (rank, text[: max(1, len(text) * share // max(1, tokens_of(text)))])
        if tokens_of(text) > share
        else (rank, text)
        for rank, text in chosen
    ]


def _merge(item: Item, found: Sequence[_Finding]) -> Verdict:
    """What all replies say about one claim; the reason is that of the best rank."""
    alone = {rank for finding in found for rank in finding.alone}
    complete = [finding.parts for finding in found if finding.complete]
    completing = min(complete, key=max, default=frozenset[int]())
    best = min(found, key=lambda finding: finding.rank, default=_Finding())
    return Verdict(
        item.id,
        item.text,
        tuple(sorted(alone)),
        tuple(sorted(completing)),
        best.reason,
    )


def pieces(text: str, budget: int) -> list[str]:
    """The text in overlapping pieces that fit the budget; mostly one, itself.

    Example:
        >>> pieces("abcd" * 4, 4), len(pieces("abcd" * 4, 2))
        (['abcdabcdabcdabcd'], 2)
    """
    total = tokens_of(text)
    if total <= budget:
        return [text]
    size = max(1, len(text) * budget // total)
    step = max(1, size - int(size * _OVERLAP))
    last = max(1, len(text) - size + step)
    return [text[start : start + size] for start in range(0, last, step)]


def pack(contexts: Sequence[Context], budget: int) -> list[list[Context]]:
    """The contexts in groups that fit the budget, in order of rank.

    Example:
        >>> pack([(1, "aaaa"), (2, "bbbb"), (3, "cccc")], budget=2)
        [[(1, 'aaaa'), (2, 'bbbb')], [(3, 'cccc')]]
    """
    # No character is more than a token: most lists fit without counting.
    if contexts and sum(len(text) for _, text in contexts) <= budget:
        return [[*contexts]]
    packs: list[list[Context]] = []
    room = 0
    for rank, text in _cut(contexts, budget):
        need = tokens_of(text)
        if need > room or not packs:
            packs.append([])
            room = budget
        packs[-1].append((rank, text))
        room -= need
    return packs


def _cut(contexts: Sequence[Context], budget: int) -> Iterator[Context]:
    for rank, text in contexts:
        yield from ((rank, piece) for piece in pieces(text, budget))


def majority(votes: Sequence[Sequence[Verdict]]) -> tuple[Verdict, ...]:
    """The verdict of most assessors on each claim, with the share that disagrees.

    Without a majority a claim is not supported. The ranks are those of the assessor in
    the middle of the majority. Assessors without a valid verdict do not vote.
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
    winners.sort(key=lambda verdict: verdict.rank or 0)
    middle = winners[(len(winners) - 1) // 2]
    return replace(middle, disagreement=1 - len(winners) / len(valid))
