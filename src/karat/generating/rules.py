"""Checks of a written question that need no model: they come before any call."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from karat.diagnosis.corpus_texts import (
    ALIKE,
    script_of,
    search_words,
    similarity,
    words_of,
)
from karat.generating.question_set import Candidate
from karat.matching.normaliser import is_wide

# Questions of people share one word in a row with their passages, and hardly ever
# more than three; and a third of their content words (TREC DL 2019).
_SHARED_RUN, _SHARED_WORDS = 4, 0.75
# A Chinese word has about two characters: so many pairs of them are four words.
_SHARED_PAIRS = 7
# So many words of a language tell it from others.
_TELLING = 2

_FUNCTION_WORDS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split())
    for language, words in {
        "English": "a an and are as at be been by can did do does for from had has "
        "have how in into is it its of on or that the their there they this to was "
        "were what when where which who whom whose why will with would if my i you "
        "should",
        "German": "als am an auf aus bei das dem den der des die ein eine einem einen "
        "einer es für hat heißt ich im in ist kann man mit nach nicht sich sie sind "
        "und von vom war wann warum was welche welchem welchen welcher welches wer "
        "wie wo wird wurde wurden zu zum zur über",
        "French": "au aux avec ce cette comment dans des du elle est et il ils les "
        "leur lequel où par pour pourquoi qu quand que quel quelle quelles quels qui "
        "quoi sont sur un une a été était combien",
        "Spanish": "al con cuál cuáles cuándo cuánto cuántos cómo del desde dónde el "
        "en entre es está fue fueron hay las los para por qué que quién quiénes se "
        "ser son su una uno y",
        "Italian": "al alla che chi come con cosa da dal dalla dei della delle di dove "
        "gli il in nel nella per perché quale quali quando quanti quanto sono stata "
        "stato una è e",
    }.items()
}
_NO_CONTENT: Final = frozenset().union(*_FUNCTION_WORDS.values())
_ABOUT_TEXT: Final = re.compile(
    r"\b(?:the|this|these|that|given|above)\s+(?:\w+\s+)?(?:passage|text|document|"
    r"article|excerpt|paragraph|context|author|snippet)s?\b(?! of\b)"
    r"|\baccording to\b|\b(?:mentioned|described|stated|listed|shown) (?:here|above)\b",
    re.IGNORECASE,
)
# A pronoun before any word that it could stand for; in "how long does it take" it
# stands for nothing.
_PRONOUN: Final = re.compile(
    r"(?:it(?! (?:takes?|took|costs?|means?|possible|true|legal|safe|likely|necessary|"
    r"important|better)\b)|he|she|him|her|his|hers|they|them|their|its)\b"
)
# A text may have more letters of one of these, and a question about it of another.
_JAPANESE: Final = frozenset({"Cjk", "Hiragana", "Katakana"})
_ASKED_FOR: Final = re.compile(
    "year|month|date|day|time|many|much|long|often|far|old|kind|type"
)


def content_words(text: str) -> list[str]:
    """The words of a text that say what it is about."""
    return [word for word in search_words(text) if word not in _NO_CONTENT]


class EarlierQuestions:
    """The questions so far, to tell a new one from."""

    def __init__(self, others: Iterable[str] = ()) -> None:
        self._by_words = {frozenset(content_words(text)): text for text in others}
        self._by_passage: dict[str, list[str]] = {}

    def add(self, question: str, passages: Iterable[str]) -> str:
        """Add a question; the one that it repeats, or an empty text.

        The same content words make the same question; about the same passage, nearly
        the same letters do, too.
        """
        words = frozenset(content_words(question))
        rows = [self._by_passage.setdefault(name, []) for name in passages]
        alike = (q for row in rows for q in row if similarity(q, question) >= ALIKE)
        if same := self._by_words.get(words) or next(alike, ""):
            return same
        self._by_words[words] = question
        for row in rows:
            row.append(question)
        return ""


def check_rules(one: Candidate, earlier: EarlierQuestions) -> None:
    """Check a question by rules, up to the first that it breaks."""
    for name, reason in _broken_rules(one, earlier):
        one.check(name, reason or "passes", passes=not reason)
        if reason:
            return


def _broken_rules(
    one: Candidate, earlier: EarlierQuestions
) -> Iterator[tuple[str, str]]:
    """The rules in order, and how a question breaks each; an empty text if not."""
    question, named = one.written.question, {*chain(*one.written.named)}
    yield "empty", "" if question else "the writer found nothing to ask"
    yield "language", _other_language(one)
    yield "alone", _needs_context(question)
    yield "leak", _leak(question, one.texts)
    is_whole = len(named) == len(one.texts)
    yield "one passage", "" if is_whole else "its claims do not name every passage"
    same = earlier.add(question, one.passages)
    yield "unique", f"it repeats {same!r}" if same else ""


def _other_language(candidate: Candidate) -> str:
    text = " ".join(candidate.texts)
    for part in (candidate.written.question, candidate.written.answer):
        one, other = script_of(part), script_of(text)
        if not one or not other or one == other or {one, other} <= _JAPANESE:
            one, other = _language(part), _language(text)
        if one and other and one != other:
            return f"{one}, and its passages are {other}"
    return ""


def _language(text: str) -> str:
    words = {*words_of(text)}
    hits = {name: len(words & own) for name, own in _FUNCTION_WORDS.items()}
    first, second = sorted(hits.values(), reverse=True)[:2]
    is_telling = first >= _TELLING and first > second
    return max(hits, key=hits.__getitem__) if is_telling else ""


def _needs_context(question: str) -> str:
    if match := _ABOUT_TEXT.search(question):
        return f"it speaks of {match[0].lower()!r}"
    words = words_of(question)
    for place, word in enumerate(words):
        if _PRONOUN.match(" ".join(words[place:])):
            return f"nothing before {word!r} says who or what that is"
        if word not in _NO_CONTENT and not _ASKED_FOR.fullmatch(word):
            break
    return ""


def _leak(question: str, passages: Iterable[str]) -> str:
    words, content = search_words(question), {*content_words(question)}
    size = _SHARED_PAIRS if is_wide(question) else _SHARED_RUN
    for passage in passages:
        theirs = search_words(passage)
        if shared := {*_runs(words, size)} & {*_runs(theirs, size)}:
            return f"{' '.join(min(shared))!r} occurs in a passage"
        share = len(content.intersection(theirs)) / max(1, len(content))
        if share > _SHARED_WORDS:
            return f"{share:.0%} of its content words occur in a passage"
    return ""


def _runs(words: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(size)), strict=False)
