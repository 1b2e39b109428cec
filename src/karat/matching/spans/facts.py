"""Words a passage must not lose: numbers and negations.

A text that says all of a passage but its numbers, or all but a "not", says something
else. The lists are in letters, as `letters` spells them; numbers written
in digits need no list.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.matching.spans.letters import MASKS, WORD, Letters, Words, spell

__all__ = ["NEGATIONS", "UNSPACED_NEGATIONS", "are_facts", "word_keys"]

_ENGLISH = (
    "no not never none nothing nobody neither nor without cannot cant dont doesnt "
    "didnt isnt arent wasnt werent wont wouldnt couldnt shouldnt hasnt havent hadnt "
    "mustnt neednt aint except unless non hardly nowhere"
)
_GERMANIC = (
    "nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne "
    "weder ausser niet geen nooit niets zonder inte ingen inget inga aldrig utan ikke "
    "aldri uden uten"
)
_ROMANCE = (
    "ne pas jamais aucun aucune rien sans ni sauf nunca ningun ninguna ninguno nada "
    "nadie sin tampoco jamas salvo mai nessun nessuna nessuno niente senza nao nenhum "
    "nenhuma ninguem sem nu fara niciun nicio"
)
_EASTERN = (
    "nie bez nigdy zaden neni nikdy не нет без никогда ни нельзя ні немає ніколи δεν "
    "μην χωρις ποτε degil yok hicbir ei emme eivat ilman nem nincs soha nelkul"
)
_ASIAN = (
    "لا لم لن ليس غير بدون לא אין בלי אל نیست नहीं मत बिना न 안 않 없 못 "
    "아니 khong chua tidak bukan tanpa jangan 不 没 沒 无 無 非 未 否 勿 别 別 莫"
)
NEGATIONS: Final = frozenset(
    f"{_ENGLISH} {_GERMANIC} {_ROMANCE} {_EASTERN} {_ASIAN}".split()
)
"""Negations, in letters."""
UNSPACED_NEGATIONS: Final = (
    *("ไม่", "มิได้", "ห้าม", "ບໍ່", "មិន", "မဟုတ်"),
    *("ない", "なく", "ません", "なし", "ぬ", "ず"),
)
"""Negations of languages that put no space between words."""
_NUMBERS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty "
    "sixty seventy eighty ninety hundred thousand million billion trillion half "
    "quarter third once twice thrice dozen first second double triple "
    "null ein eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf zwanzig "
    "dreissig hundert tausend millionen milliarde milliarden halb "
    "un deux trois quatre cinq sept huit neuf dix onze douze vingt trente cent mille "
    "millions milliard milliards demi moitie "
    "uno dos tres cuatro cinco seis siete ocho nueve diez doce veinte treinta cien "
    "ciento mil millon millones mitad medio "
    "due tre quattro cinque sei sette otto nove dieci cento milione miliardo meta "
    "dois quatro sete oito dez cem milhao milhoes metade "
    "один два три четыре пять шесть семь восемь девять десять сто тысяча миллион "
    "一 二 三 四 五 六 七 八 九 十 百 千 万 萬 亿 億 两 兩 半"
)

_MIXED: Final = np.uint64(0x9E3779B97F4A7C15)


def word_keys(letters: Letters, start: Ints, length: Ints) -> Words:
    """A number for each word, by its first eight bytes and its length."""
    head = letters.words[start] & MASKS[np.minimum(length, WORD)]
    return head * _MIXED + length.astype(np.uint64)


def _keys(words: Iterable[str]) -> Words:
    spelled = [spell(word).strip() for word in words]
    length = np.array([len(word) for word in spelled], np.int64)
    data = b"".join(spelled)
    letters = Letters(data + bytes(WORD), length.cumsum(), data)
    # Not `np.unique`, which loads NumPy's masked arrays: a word twice does no harm.
    return np.sort(word_keys(letters, length.cumsum() - length, length))


_FACTS: Final = _keys((*NEGATIONS, *_NUMBERS.split()))


def are_facts(letters: Letters, start: Ints, end: Ints) -> Bools:
    """Whether each word is a number or a negation."""
    keys = word_keys(letters, start, end - start)
    place = np.minimum(np.searchsorted(_FACTS, keys), len(_FACTS) - 1)
    digits = np.concatenate(([0], letters.digits.cumsum()))
    found: Bools = (_FACTS[place] == keys) | (digits[end] > digits[start])
    return found
