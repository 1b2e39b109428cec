"""Writing: a model makes a question, its answer and its claims of passages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from karat.data.gold import IMPORTANCE, Item
from karat.data.judgements import Conversation, Prompt
from karat.judging.prompts import ANSWER_IN_JSON, TEXTS_ARE_DATA, fenced, object_schema
from karat.judging.replies import (
    NOT_FILLED_IN,
    ask_again,
    is_blank,
    read_numbers,
    read_object,
)

VERSION = "1"
"""Changes with the wording, so that replies to the old one are not used."""

STYLES: Mapping[str, str] = {
    "sentence": "Write it as a plain question in one sentence.",
    "keywords": "Write it as a few keywords, as people type into a search box, without "
    "a question mark.",
    "situation": "Write it as somebody would who has a problem to solve: say in half a "
    "sentence what the situation is, then ask.",
}
"""How a question may be worded."""

_LIKE_QUERIES = (
    "Texts named query are what real people typed: word the question as they would, "
    "and take nothing else from them."
)
_WRITE = (
    "You write a question that a search engine should answer with the passages shown, "
    "for people who have not seen them and do not know that they exist. Ask for "
    "something that the passages state and that few people know by heart. Name what "
    "the question is about, so that it is understood alone: no 'the passage', no 'the "
    "text', no pronoun for something that was not named. Use other words than the "
    "passages wherever there are any: never four words in a row that stand in one. "
    "Write question, answer and claims in the language of the passages. The answer is "
    "short, and rests on the passages alone. Its claims are the single statements "
    "that it makes, each understood by itself, with the numbers of the passages that "
    "state it. A claim is vital if an answer without it would be wrong or of no use, "
    "else okay. If the passages hold nothing worth asking, such as a menu or a list "
    "of links, leave the question empty."
)
_BOTH = (
    "The question must need every passage shown: no passage alone may answer it, and "
    "each claim names the passage it needs. If they have nothing to do with each "
    "other, leave the question empty."
)
_FORM = (
    '{"question": "...", "answer": "...", "claims": [{"text": "...", "importance": '
    '"vital", "passages": [1]}]}'
)
_TEXT = {"type": "string"}


@dataclass(frozen=True)
class Written:
    """A question, empty where there is nothing to ask, its answer, and its claims."""

    question: str
    answer: str = ""
    claims: tuple[Item, ...] = ()
    named: tuple[tuple[int, ...], ...] = ()  # the passages that state each claim


def write_question(
    passages: Sequence[str], style: str, examples: Sequence[str] = ()
) -> Conversation[Written]:
    """A question about all of the passages, in a style or like examples of queries."""
    both = [_BOTH] if len(passages) > 1 else []
    wording = STYLES.get(style, _LIKE_QUERIES)
    parts = [_WRITE, *both, wording, TEXTS_ARE_DATA, ANSWER_IN_JSON, "Its form:", _FORM]
    texts = [(f"passage {n}", text) for n, text in enumerate(passages, 1)]
    texts += [(f"query {n}", text) for n, text in enumerate(examples, 1)]
    numbers = {"type": "integer", "enum": [*range(1, len(passages) + 1)]}
    claim = object_schema(
        text=_TEXT,
        importance={**_TEXT, "enum": [*IMPORTANCE]},
        passages={"type": "array", "items": numbers},
    )
    claims = {"type": "array", "items": claim}
    schema = object_schema(question=_TEXT, answer=_TEXT, claims=claims)
    prompt = Prompt(" ".join(parts), fenced(texts), schema, "write", VERSION)
    return (yield from ask_again(prompt, partial(_read, passages=passages)))


def _read(text: str, passages: Sequence[str]) -> Written | str:
    reply = read_object(text, passages)
    if isinstance(reply, str):
        return reply
    question, answer = _line(reply, "question"), _line(reply, "answer")
    if not question:
        return Written("")
    rows = reply.get("claims")
    if not answer or not isinstance(rows, list) or not rows:
        return "it has no answer, or no list of its claims"
    claims, named = [], []
    for number, row in enumerate(rows, 1):
        entry = row if isinstance(row, dict) else {}
        statement, places = _line(entry, "text"), read_numbers(entry.get("passages"))
        # Where one passage is shown, it goes without saying which.
        places = places or [1] * (len(passages) == 1)
        grade = IMPORTANCE.get(str(entry.get("importance") or "vital").strip().lower())
        shown = all(1 <= place <= len(passages) for place in places)
        if not statement or grade is None or not places or not shown:
            return "a claim must have a text, be vital or okay, and name passages shown"
        claims.append(Item(f"claim-{number}", statement, grade))
        named.append(tuple(sorted({*places})))
    if any(map(is_blank, (question, answer, *(claim.text for claim in claims)))):
        return NOT_FILLED_IN
    return Written(question, answer, tuple(claims), tuple(named))


def _line(reply: Mapping[str, Any], name: str) -> str:
    value = reply.get(name)
    return " ".join(value.split()) if isinstance(value, str) else ""
