"""Where covered text says something else: a number, sign, negation or name differs.

What only a reader can tell is not told: an antonym ("rose" for "fell"), a verb that
denies ("failed to"), a name in a script without capitals other than Chinese.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from karat.matching.contains import splits_number, splits_word
from karat.matching.cover import Gap, Part, SharedRun
from karat.matching.letters import Letters, numbers_in
from karat.matching.normaliser import fold
from karat.matching.similarity import scorer

_NEGATIONS_TEXT = (
    "no not never none nothing nobody neither nor without cannot cant dont doesnt "
    "didnt isnt arent wasnt werent wont wouldnt couldnt shouldnt hasnt havent hadnt "
    "mustnt except unless non hardly nicht kein keine keinen keinem keiner keines "
    "nie niemals niemand nichts ohne weder niet geen nooit zonder inte ingen aldrig "
    "utan ikke aldri ne pas jamais aucun aucune rien sans ni sauf nunca ningun "
    "ninguna nada nadie sin tampoco mai nessun nessuna niente senza nao nenhum "
    "nenhuma sem fara bez nigdy не нет без никогда ни нельзя ні немає δεν μην χωρις "
    "degil yok ei ilman nem nincs لا لم لن ليس غير بدون לא אין בלי नहीं मत बिना 안 못 "
    "khong tidak bukan tanpa "
)
_NEGATIONS: Final = frozenset(_NEGATIONS_TEXT.split())
_UNSPACED_NEGATIONS: Final = re.compile(
    "[不没沒无無非未否勿别別莫않없]|아니|ไม่|มิได้|ห้าม|ບໍ່|មិន|မဟုတ်|ない|なく|ません|なし|ずに"
)
_NUMBER_WORDS_TEXT = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty "
    "sixty seventy eighty ninety hundred thousand million billion trillion half "
    "once twice dozen first second third zwei drei vier funf sechs sieben acht neun "
    "zehn elf zwolf zwanzig dreissig hundert tausend deux trois quatre cinq sept "
    "huit neuf dix vingt trente cent mille dos tres cuatro cinco seis siete ocho "
    "nueve diez veinte treinta cien mil due tre quattro cinque sei sette otto nove "
    "dieci cento один два три четыре пять шесть семь восемь девять десять сто "
    "тысяча "
)
_NUMBER_WORDS: Final = frozenset(_NUMBER_WORDS_TEXT.split())
_UNSPACED_NUMBERS: Final = re.compile(
    "[〇零一二三四五六七八九十百千万萬亿億两兩半]|สิบ|ร้อย|พัน"
)
_UNITS: Final = re.compile("[$%\u2030\u00a2-\u00a5\u20a0-\u20cf]")
# Chinese names have no capitals, and Japanese ones: any character that is replaced is
# told, but for the syllables that are mostly endings.
_HAN: Final = re.compile("[\u30a1-\u30fc\u3400-\u9fff\U00020000-\U0003ffff]")
_DIGITS: Final = re.compile(r"\d+")
_WORD: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_TYPO = 0.7


class Mismatch(NamedTuple):
    """What a passage says from letter to letter, and what a document says instead."""

    start: int
    end: int
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"{self.ours} -> {self.theirs}"


def find_differences(gold: Letters, document: Letters, part: Part) -> list[Mismatch]:
    """The numbers, signs, negations and names that differ in what is covered."""
    rows = [
        one
        for run in part.runs
        for compare in (_numbers, _signs)
        for one in compare(gold, document, run)
    ]
    for gap in part.gaps:
        ours, theirs, first = _words(gold, document, gap)
        if _contradicts(ours, theirs, first=first):
            rows.append(Mismatch(gap.start, gap.end, ours, theirs))
        elif replaced := _replaced(ours, theirs):
            rows.append(Mismatch(gap.start, gap.end, *replaced))
    return [*{str(difference): difference for difference in rows}.values()]


def _numbers(gold: Letters, document: Letters, run: SharedRun) -> Iterator[Mismatch]:
    """Numbers that have the same digits, but not the same sign or decimal point."""
    shift = run.place - run.start
    for digits in _DIGITS.finditer(gold.letters, run.start, run.end):
        start, end = digits.span()
        ours, before, _ = _number_at(gold, start, end)
        theirs, _, is_cut = _number_at(document, start + shift, end + shift)
        if ours != theirs and not (is_cut and theirs in before + ours):
            mine, other = numbers_in(ours), numbers_in(theirs)
            if mine != other:
                yield Mismatch(start, end, " ".join(mine), " ".join(other))


def _number_at(source: Letters, start: int, end: int) -> tuple[str, str, bool]:
    """The number that digits belong to, what stands before it, and if it may be cut."""
    text, places = source.text, source.places
    low, high = places[start], places[end - 1] + 1
    while splits_number(text, low):
        low -= 1
    while splits_number(text, high):
        high += 1
    is_cut = low <= places[0] + 2 or high >= places[-1] - 1
    return text[low:high], text[max(0, low - 1) : low], is_cut


def _signs(gold: Letters, document: Letters, run: SharedRun) -> Iterator[Mismatch]:
    """Signs between the same letters; most are told only where both sides have one."""
    shift, ours = run.place - run.start, gold.signs
    theirs = {(at - shift, kind): sign for (at, kind), sign in document.signs.items()}
    last = min(len(gold.letters), len(document.letters) - shift)
    for place, kind in sorted({*ours, *theirs}):
        mine, other = ours.get((place, kind), ""), theirs.get((place, kind), "")
        # A word without its last sign is another word. At an end a sign may be cut.
        is_told = (mine and other) or kind == "+"
        is_whole = place < last or kind == "["
        if is_told and is_whole and mine != other and run.start < place <= run.end:
            first = gold.letters[place - 1] if kind == "+" else ""
            rest = gold.text[gold.places[place] :][:20] if kind == "<" else ""
            number = "".join(numbers_in(rest)[:1]) if rest[:1].isdigit() else ""
            words = (first + sign + number for sign in (mine, other))
            yield Mismatch(place - 1, place, *words)


def _words(gold: Letters, document: Letters, gap: Gap) -> tuple[str, str, bool]:
    """The words of a gap on both sides, and whether a sentence begins there."""
    spans = []
    for source, start, end in ((gold, *gap[:2]), (document, *gap[2:4])):
        low = source.places[start - 1] + 1 if start else 0
        high = source.places[end] if end < len(source.places) else len(source.text)
        spans.append((source.text, low, max(low, high)))
    opens = [splits_word(text, low) for text, low, _ in spans]
    closes = [splits_word(text, high) for text, _, high in spans]
    parts = [text[low:high] for text, low, high in spans]
    if all(opens + closes + [part.isalpha() for part in parts]):
        return "", "", False
    if any(opens) or not all(part.strip(" ,.;:-\n\t") for part in parts):
        spans = [(text, _word_start(text, low), high) for text, low, high in spans]
    if any(closes):
        spans = [(text, low, _word_end(text, high)) for text, low, high in spans]
    ours, theirs = (" ".join(text[low:high].split()) for text, low, high in spans)
    before = gold.text[: spans[0][1]].rstrip()
    return ours, theirs, not before or before[-1] in '.!?:"\u201c'


def _word_start(text: str, place: int) -> int:
    place = len(text[:place].rstrip()) - 1
    while splits_word(text, place):
        place -= 1
    return max(0, place)


def _word_end(text: str, place: int) -> int:
    place += 1
    while splits_word(text, place):
        place += 1
    return min(place, len(text))


def _contradicts(ours: str, theirs: str, *, first: bool) -> bool:
    """Whether a number, negation or name is on one side only."""
    if fold(ours) == fold(theirs):
        return False
    words = [{*_WORD.findall(_plain(text))} for text in (ours, theirs)]
    if (
        numbers_in(ours) != numbers_in(theirs)
        or negates(ours) != negates(theirs)
        or words[0] & _NUMBER_WORDS != words[1] & _NUMBER_WORDS
        or _UNSPACED_NUMBERS.findall(ours) != _UNSPACED_NUMBERS.findall(theirs)
    ):
        return True
    names = [_names(ours, first=first), _names(theirs, first=first)]
    return all(names) and not any(
        scorer("levenshtein")(a, b) >= _TYPO for a in names[0] for b in names[1]
    )


def _replaced(ours: str, theirs: str) -> tuple[str, str] | None:
    """The unit, or the characters of a name, that another stands for, and that one."""
    for chars in (_UNITS, _HAN):
        mine = "".join(char for char in chars.findall(ours) if char not in theirs)
        other = "".join(char for char in chars.findall(theirs) if char not in ours)
        if mine and other:
            return mine, other
    return None


def negates(text: str) -> bool:
    """Whether a text holds a negation, in any of many languages."""
    words = {*_WORD.findall(_plain(text))}
    return bool(words & _NEGATIONS) or bool(_UNSPACED_NEGATIONS.search(text))


def _plain(text: str) -> str:
    return fold(text).replace("'", "")


def _names(text: str, *, first: bool) -> set[str]:
    """The words with a capital, but for one that begins a sentence."""
    words = _WORD.findall(text)[first:]
    return {word for word in words if word[0].isupper()}
