"""Contexts: the texts that a judge reads, in questions that fit a budget of tokens."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from karat.data.policies import Policies
from karat.data.runs import Document, ranks_of
from karat.errors import DataError
from karat.llm.limits import tokens_of
from karat.reading.meaning.values import looks_like_id

Context: TypeAlias = tuple[int, str]
"""A document under judgement: its rank and its text."""

CONTEXT_TOKENS = 6000
"""How many tokens of contexts one question may hold by default."""

_OVERLAP = 0.1
_OMISSION = "\n[...]\n"
# Letters in a row that an excerpt shares with a claim.
_GRAM = 3
# Excerpts that share nearly as much as the best one are as good, if they lack only
# what stands in the text three times or more.
_NEARLY = 0.02
_COMMON = 0.4


def require_texts(
    rankings: Mapping[str, Sequence[Document]], name: str, policies: Policies
) -> None:
    """Refuse a run of ids: a judge that reads `doc_17` as a text finds no support."""
    documents = [*chain.from_iterable(rankings.values())]
    if any(document.id is not None for document in documents):
        return
    texts = [d.text for d in documents if d.text is not None and d.text.strip()]
    if policies.force or not texts or not all(map(looks_like_id, texts)):
        return
    raise DataError(
        f"what was retrieved looks like ids, such as {texts[0]!r}, and a judge must "
        "read texts",
        path=name,
        hint="--corpus FILE gives texts by document id; force=True (--force) has the "
        "judge read them as they are",
    )


def text_of(document: Document, query: str, path: str) -> str:
    """The text of a document, which a judge must read."""
    if document.text is None:
        raise DataError(
            f"document {document.id!r} has no text, and a judge must read it",
            path=path,
            query=query,
            hint="--corpus FILE gives texts by document id, if the samples do not",
        )
    return document.text


def contexts_of(
    documents: Sequence[Document], query: str, path: str, policies: Policies
) -> list[Context]:
    """Rank and text of each document that a judge has to read.

    A text retrieved before earns nothing the second time, so it is not shown again
    (`duplicates="keep"` shows it); documents without words support nothing.
    """
    contexts: list[Context] = []
    seen: set[str] = set()
    removed = 0
    for position, document in zip(ranks_of(documents), documents, strict=True):
        text = text_of(document, query, path)
        repeated = text in seen and policies.duplicates != "keep"
        if repeated and policies.duplicates == "error":
            problem = f"rank {position} repeats a text retrieved before"
            raise DataError(problem, query=query)
        removed += repeated and policies.duplicates == "collapse"
        rank = position - removed
        if policies.depth is not None and rank > policies.depth:
            break
        seen.add(text)
        if text.strip() and not repeated:
            contexts.append((rank, text))
    return contexts


def pieces(text: str, budget: int) -> list[str]:
    """The text in overlapping pieces that fit the budget; mostly one, itself."""
    total = tokens_of(text)
    if total <= budget:
        return [text]
    size = max(1, len(text) * budget // total)
    step = max(1, size - int(size * _OVERLAP))
    last = max(1, len(text) - size + step)
    return [text[start : start + size] for start in range(0, last, step)]


def pack(contexts: Sequence[Context], budget: int) -> list[list[Context]]:
    """The contexts in groups that fit the budget, in order of rank."""
    # No character is more than a token: most lists fit without counting.
    if contexts and sum(len(text) for _, text in contexts) <= budget:
        return [[*contexts]]
    packs: list[list[Context]] = []
    room = 0
    for rank, text in contexts:
        for piece in pieces(text, budget):
            need = tokens_of(piece)
            if need > room or not packs:
                packs.append([])
                room = budget
            packs[-1].append((rank, piece))
            room -= need
    return packs


def excerpts(passages: Sequence[Context], claim: str, budget: int) -> list[Context]:
    """Of each passage what shares most with the claim, so that all fit the budget."""
    share = max(1, budget // len(passages))
    texts: dict[int, list[str]] = {}
    for rank, text in passages:
        texts.setdefault(rank, []).append(_excerpt(text, claim, share))
    return [(rank, _OMISSION.join(texts[rank])) for rank in sorted(texts)]


def _excerpt(text: str, claim: str, budget: int) -> str:
    """The part of a text that shares most with a claim, with its neighbourhood.

    What is shared counts by how rare it is: each run of three letters of the claim
    weighs as much as all its occurrences in the text together.
    """
    total = tokens_of(text)
    if total <= budget:
        return text
    size = max(1, len(text) * budget // total)
    lower, wanted = text.lower(), claim.lower()
    lower = lower if len(lower) == len(text) else text
    grams = {wanted[at : at + _GRAM] for at in range(len(wanted) - _GRAM + 1)}
    places: dict[str, list[int]] = {}
    for at in range(len(lower) - _GRAM + 1):
        if (gram := lower[at : at + _GRAM]) in grams:
            places.setdefault(gram, []).append(at)
    weight = np.zeros(len(text) + 1)
    for positions in places.values():
        weight[np.array(positions) + 1] = 1 / len(positions)
    sums = weight.cumsum()
    # A run counts where all its letters lie within the excerpt.
    starts, whole = len(text) - size + 1, max(1, size - _GRAM + 1)
    shared = sums[whole : whole + starts] - sums[:starts]
    best = int(shared.argmax())
    # The middle of the best stretch, so that what is shared has text on both sides.
    worse = shared < shared[best] - min(_NEARLY * shared[best], _COMMON)
    low = best - int(np.append(worse[:best][::-1], True).argmax())
    high = best + int(np.append(worse[best:], True).argmax()) - 1
    start = (low + high) // 2
    return text[start : start + size]
