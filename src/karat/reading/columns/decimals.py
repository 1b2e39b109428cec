"""Decimal numbers in bulk: millions of texts read as `float` reads each."""

import re
from functools import cache
from math import isfinite, nan

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.reading.columns.ids import FIRST, ByteColumn, Keys, Rows

PADDING = b"\n" * 32
"""What must stand before the first number and behind the last one."""

_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MOST = 32
_EACH = np.uint64(0x0101010101010101)
_ZEROS = _EACH * np.uint64(ord("0"))
_POINTS = _EACH * np.uint64(ord(".") ^ ord("0"))
_LETTERS = _EACH * np.uint64(0x40)
_SIXES = _EACH * np.uint64(6)
_TENS = _EACH * np.uint64(0xF0)
_HIGHEST = _EACH * np.uint64(0x80)
_LAST = np.array([((1 << 8 * i) - 1) << 8 * (8 - i) for i in range(9)], np.uint64)
_POINT = 1023 + 7
"""The exponent of a float whose only bit is the highest of the first byte."""

_EIGHT = np.uint64(10**8)
_FEW = np.uint64(10**11)
_EXACT = np.uint64(1 << 53)
_EXACT_POWER = 22
_POWERS = range(-64, 251)
_SPLITTER = float((1 << 27) + 1)


def decimal(word: bytes) -> float:
    """The value of a finite decimal number; anything else is a ValueError."""
    value = float(word) if _NUMBER.fullmatch(word) else nan
    if not isfinite(value):
        raise ValueError(word)
    return value


def numbers(texts: ByteColumn) -> Floats:
    """The values of many decimal numbers, each rounded as `float` rounds it.

    The digits before the point, eight at most, and those behind it, 24 at most, are
    read eight at a time. What has more, or an exponent beyond 200, is read by itself.
    """
    sign = texts.data.take(texts.start)
    minus = sign == ord("-")
    plain = texts
    if (sign < ord(".")).any():
        signed = minus | (sign == ord("+"))
        plain = ByteColumn(texts.data, texts.start + signed, texts.length - signed)
    value, odd = _read(plain)
    if minus.any():
        value[minus] *= -1
    for row in np.flatnonzero(odd).tolist():
        start = int(texts.start[row])
        value[row] = decimal(
            texts.data[start : start + int(texts.length[row])].tobytes()
        )
    return value


def _read(texts: ByteColumn) -> tuple[Floats, Bools]:
    """The values of texts without a sign, and which of them must be read again."""
    length = texts.length
    places = np.arange(0, min(max(int(length.max(initial=0)), 1), _MOST), 8)[:, None]
    bad = np.zeros(len(texts), np.uint64)
    size = 8 * len(places)
    windows = np.ndarray(
        (len(texts.data) - size,), f"V{size}", texts.data, strides=(1,)
    )
    words = windows[texts.start].view("<u8").reshape(len(texts), len(places))
    # A digit becomes its value, and what is behind the last one becomes 0.
    parts = np.bitwise_xor(words.T, _ZEROS, order="C")
    parts &= FIRST.take(length - places, mode="clip")
    exponent: Ints | int = 0
    if (parts & _LETTERS).any():
        taken, exponent = _exponents(texts, bad)
        length = length - taken
        parts &= FIRST.take(length - places, mode="clip")
    # The first byte that is a point has its highest bit set, and no other bit is.
    point = parts[0] ^ _POINTS
    point = (point - _EACH) & ~point & _HIGHEST
    point &= -point
    found = point > 0
    odd = length <= found
    place = _exponent_of(point)
    if not found.all():
        odd |= ~found & (length > 8)  # noqa: PLR2004
        place = np.where(found, place, (_POINT + 8 * np.minimum(length, 8)).view("u8"))
    whole = _digits(parts[0] << (np.uint64(_POINT + 64) - place), bad)
    whole *= _EIGHT
    right, left = place - np.uint64(_POINT - 8), np.uint64(_POINT + 56) - place
    decimals = parts >> right
    decimals[:-1] |= parts[1:] << left
    odd |= length > _MOST
    if len(decimals) > 3:  # noqa: PLR2004
        odd |= decimals[3] > 0
    for digits in decimals[:3]:
        _digits(digits, bad)
    whole += decimals[0]
    odd |= (bad & _TENS) != 0
    others = [*decimals[1:3]]
    while others and not others[-1].any():
        others.pop()
    return _scaled(whole, others, 8 - exponent, odd), odd


def _exponents(texts: ByteColumn, bad: Keys) -> tuple[Ints, Ints]:
    """How many bytes the exponent of each text takes, and its value; 0 without one."""
    word = texts.eights(texts.start + texts.length - 8) ^ _ZEROS
    word &= _LAST.take(texts.length, mode="clip")
    letter = word & _LETTERS
    found = letter > 0
    place = _exponent_of(letter).view(np.int64)
    size = np.where(found, 8 - ((place - 1023) >> 3), 0)
    sign = word >> (place - 1029).view(np.uint64)
    wrong = (sign & np.uint64(0xDF)) != ord("E") ^ 0x10
    sign = (sign >> np.uint64(8)) & np.uint64(255)
    minus = found & (sign == ord("-") ^ ord("0"))
    count = size - 1
    count -= minus | (sign == ord("+") ^ ord("0"))
    bad[found & (wrong | (count < 1))] = _TENS
    value = _digits(word & _LAST.take(count, mode="clip"), bad).view(np.int64)
    return size, np.where(minus, -value, value)


def _exponent_of(bits: Keys) -> Keys:
    """The highest bit of each number: 1023 for the lowest one, and 0 without any."""
    return bits.astype(np.float64).view(np.uint64) >> np.uint64(52)


def _digits(digits: Keys, bad: Keys) -> Keys:
    """Eight digits, the first in the lowest byte, as a number: pairs, fours, all."""
    bad |= digits
    bad |= digits + _SIXES
    digits *= np.uint64(2561)
    digits >>= np.uint64(8)
    digits &= np.uint64(0x00FF00FF00FF00FF)
    digits *= np.uint64(6553601)
    digits >>= np.uint64(16)
    digits &= np.uint64(0x0000FFFF0000FFFF)
    digits *= np.uint64(42949672960001)
    digits >>= np.uint64(32)
    return digits


def _scaled(whole: Keys, decimals: list[Keys], power: Ints | int, odd: Bools) -> Floats:
    """Numbers divided by powers of ten; marks where the rounding is unsure."""
    wide = whole > _EXACT
    for digits in decimals:
        wide |= digits > 0
    if isinstance(power, int):
        value: Floats = whole / 10.0**power
    else:
        odd |= (power < _POWERS[0]) | (power > _POWERS[-1] - 16)
        wide |= (power < 0) | (power > _EXACT_POWER)
        value = whole / _powers()[0].take(power - _POWERS[0], mode="clip")
    wide &= ~odd
    if not wide.any():
        return value
    rows: Rows = slice(None) if wide.all() else np.flatnonzero(wide)
    number, fraction = whole[rows], np.zeros(len(whole[rows]))
    power, unit = np.broadcast_to(power, len(whole))[rows], fraction + 1
    for column in decimals:
        digits = column[rows]
        # Nineteen digits make an integer; what else there is adds a fraction.
        few = number < _FEW
        if not few.any():
            unit = unit * 1e-8
            fraction += unit * digits
            continue
        longer = number * _EIGHT + digits
        power = power + 8 * few
        if few.all():
            number = longer
            continue
        number = np.where(few, longer, number)
        unit = np.where(few, 1.0, unit * 1e-8)
        fraction += np.where(few, 0.0, unit * digits)
    high = number.astype(np.float64)
    fraction += (number - high.astype(np.uint64)).view(np.int64)
    powers, rests = _powers()
    divisor, rest = powers.take(power - _POWERS[0]), rests.take(power - _POWERS[0])
    # The quotient's error is found and added back, once a little too small and once
    # too large: where both round alike, the truth does too.
    quotient = high / divisor
    product = quotient * divisor
    error = _product_error(quotient, divisor, product)
    correction = (high - product - error - quotient * rest + fraction) / divisor
    value[rows] = sure = quotient + correction * (1 + 1e-9)
    odd[rows] = sure != quotient + correction * (1 - 1e-9)
    return value


@cache
def _powers() -> tuple[Floats, Floats]:
    """Powers of ten, each as two floats that add up to it within 2**-106."""
    powers = [float(f"1e{power}") for power in _POWERS]
    rest = []
    for power, near in zip(_POWERS, powers, strict=True):
        above, below = 10 ** max(power, 0), 10 ** max(-power, 0)
        numerator, denominator = near.as_integer_ratio()
        exact = above * denominator - numerator * below
        rest.append(exact / (below * denominator))
    return np.array(powers), np.array(rest)


def _product_error(one: Floats, other: Floats, product: Floats) -> Floats:
    """What rounding took from a product, exactly (Dekker)."""
    head, other_head = one * _SPLITTER, other * _SPLITTER
    head, other_head = head - (head - one), other_head - (other_head - other)
    tail, other_tail = one - head, other - other_head
    error = head * other_head - product + head * other_tail + tail * other_head
    return error + tail * other_tail
