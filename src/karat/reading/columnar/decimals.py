"""Decimal numbers in bulk: millions of texts read as `float` reads each."""

import re
from functools import cache
from math import isfinite, nan

import numpy as np

from karat.data.arrays import Bools, Floats, Ints
from karat.reading.columnar.byte_column import ByteColumn, Keys

__all__ = ["PADDING", "number", "numbers"]

PADDING = b"\n" * 32
"""What must stand before the first number and behind the last one."""

_LAST = np.array([((1 << 8 * i) - 1) << 8 * (8 - i) for i in range(9)], np.uint64)
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(r"(?=.*[0-9])[0-9]*(?:\.[0-9]*)?")
_LAYOUTS = 64
_EXPONENT = re.compile(r".*[eE][+-]?[0-9]{1,3}")
_MOST_DIGITS = 31
_EXACT_POWER = 22
_POWERS = range(-64, 251)
_ZEROS = np.uint64(0x3030303030303030)
_SIXES = np.uint64(0x0606060606060606)
_NIBBLES = np.uint64(0xF0F0F0F0F0F0F0F0)
_EXACT = np.uint64(1 << 53)
_TAIL = 1e16
_TENS = np.array([*(10**power for power in range(16)), *[0] * 16], np.uint64)
_SPLITTER = float((1 << 27) + 1)


def number(word: bytes) -> float:
    """The value of a finite decimal number; anything else is a ValueError."""
    value = float(word) if _NUMBER.fullmatch(word) else nan
    if not isfinite(value):
        raise ValueError(word)
    return value


def numbers(texts: ByteColumn) -> Floats:
    """The values of many decimal numbers, each rounded as `float` rounds it.

    Numbers with the same count of decimals are read together. What does not fit such a
    layout (more than 31 digits, an exponent beyond 200) is read by itself.

    Raises:
        ValueError: a text is not a finite decimal number.
    """
    sign = texts.data[texts.start]
    minus = sign == ord("-")
    signed = minus | (sign == ord("+"))
    digits = ByteColumn(texts.data, texts.start + signed, texts.length - signed)
    value = np.empty(len(texts))
    exponent: Ints | None = None
    alone: list[int] = []
    rest = np.arange(len(texts))
    for _ in range(_LAYOUTS):
        if not len(rest):
            break
        middle = len(rest) // 2
        sample = digits.view(rest[middle : middle + 1]).names()[0]
        if exponent is None and _EXPONENT.fullmatch(sample):
            size, exponent = _exponents(digits)
            digits = ByteColumn(texts.data, digits.start, digits.length - size)
            continue
        odd = np.ones(len(rest), np.bool_)
        if len(sample) <= _MOST_DIGITS + 1 and _DIGITS.fullmatch(sample):
            decimals = len(sample) - sample.find(".") - 1 if "." in sample else -1
            alike = digits if len(rest) == len(digits) else digits.view(rest)
            shift = 0 if exponent is None else exponent[rest]
            read = _one_digit if _vary(alike, sample, decimals) else _decimals
            value[rest], odd = read(alike, decimals, len(sample), shift)
        if odd[middle]:
            alone.append(int(rest[middle]))
            odd[middle] = False
        rest = rest[odd]
    if minus.any():
        value[minus] *= -1
    alone += rest.tolist()
    if alone:
        start, length = texts.start[alone], texts.length[alone]
        ends, text = (start + length).tolist(), texts.data.tobytes()
        pairs = zip(start.tolist(), ends, strict=True)
        value[alone] = [number(text[begin:end]) for begin, end in pairs]
    return value


def _exponents(texts: ByteColumn) -> tuple[Ints, Ints]:
    """How many bytes the exponent of each text takes, and its value; 0 without one."""
    length = texts.length
    word = texts.eights[texts.start + length - 8] & _LAST.take(length, mode="clip")
    size = np.zeros(len(texts), np.int64)
    for count in range(2, 6):
        letter = (word >> np.uint64(8 * (8 - count))) & np.uint64(0xDF)
        size[letter == ord("E")] = count
    sign = (word >> (np.maximum(9 - size, 0) << 3).astype(np.uint64)) & np.uint64(255)
    minus = sign == ord("-")
    count = size - 1 - (minus | (sign == ord("+")))
    digits = word & _LAST.take(count, mode="clip")
    digits ^= _ZEROS & _LAST.take(count, mode="clip")
    odd = (((digits + _SIXES) | digits) & _NIBBLES) != 0
    size[odd | (count < 1)] = 0
    value = _eight_digits(digits).view(np.int64)
    return size, np.where(size > 0, np.where(minus, -value, value), 0)


def _decimals(
    texts: ByteColumn, decimals: int, size: int, shift: Ints | int
) -> tuple[Floats, Bools]:
    """Values of texts with so many digits after the point, and which are others.

    Eight digits are read at a time, from the last to the first, and no more than a text
    of the given size needs; -1 decimals means without a point. The point is then moved
    to the right by the shift.
    """
    odd = np.zeros(len(texts), np.bool_)
    halves = _digits(texts, decimals, size, odd)
    odd |= texts.length <= (decimals >= 0)
    return _scaled(halves, max(decimals, 0) - shift, odd), odd


def _one_digit(
    texts: ByteColumn, decimals: int, size: int, shift: Ints | int
) -> tuple[Floats, Bools]:
    """The same for texts with one digit before the point and any number behind it."""
    del decimals, size
    first = texts.data[texts.start] - np.uint8(ord("0"))
    after = ByteColumn(texts.data, texts.start + 2, texts.length - 2, texts.eights)
    odd = (first > 9) | (texts.data[texts.start + 1] != ord("."))  # noqa: PLR2004
    count = after.length
    odd |= (count < 0) | (count >= _MOST_DIGITS)
    halves = _digits(after, -1, min(int(count.max()), _MOST_DIGITS), odd)
    if first.any():
        halves[0] += first * _TENS.take(count, mode="clip")
        if len(halves) > 1:
            halves[1] += first * _TENS.take(count - 16, mode="wrap")
        else:
            odd |= count > 15  # noqa: PLR2004
    return _scaled(halves, count - shift, odd), odd


def _vary(texts: ByteColumn, sample: str, decimals: int) -> bool:
    """Whether more texts have one digit before the point than so many behind it."""
    if sample[1:2] != "." or decimals >= _MOST_DIGITS:
        return False
    front = texts.data[texts.start + 1] == ord(".")
    back = texts.data[texts.start + texts.length - decimals - 1] == ord(".")
    return bool(np.count_nonzero(front) > np.count_nonzero(back))


def _digits(texts: ByteColumn, decimals: int, size: int, odd: Bools) -> list[Keys]:
    """The digits as numbers of 16, the last first; marks texts with anything else."""
    length = texts.length
    end = texts.start + length
    parts = [
        texts.eights[end - 8 - at] & _LAST.take(length - at, mode="clip")
        for at in range(0, size, 8)
    ]
    odd |= length > 8 * len(parts)
    if decimals >= 0:
        odd |= _take_out_point(parts, decimals)
        length = length - 1
        parts = parts[: -(-int(length.max()) // 8)]
    odd |= length > _MOST_DIGITS
    halves = [np.zeros(len(texts), np.uint64) for _ in range(-(-len(parts) // 2) or 1)]
    for place, part in enumerate(parts):
        digits = _ZEROS & _LAST.take(length - 8 * place, mode="clip")
        digits ^= part
        odd |= (((digits + _SIXES) | digits) & _NIBBLES) != 0
        halves[place // 2] += _eight_digits(digits) * np.uint64(10 ** (place % 2 * 8))
    return halves


def _scaled(halves: list[Keys], exponent: Ints | int, odd: Bools) -> Floats:
    """Numbers divided by powers of ten; marks where the rounding is unsure."""
    wide = halves[0] > _EXACT
    if len(halves) > 1:
        wide |= halves[1] > 0
    if isinstance(exponent, int) and exponent <= _EXACT_POWER:
        value: Floats = halves[0] / 10.0**exponent
    else:
        exponent = np.broadcast_to(exponent, len(odd))
        odd |= (exponent < _POWERS[0]) | (exponent > _POWERS[-1])
        wide |= (exponent < 0) | (exponent > _EXACT_POWER)
        value = halves[0] / _powers()[0].take(exponent - _POWERS[0], mode="clip")
    rows = np.flatnonzero(wide & ~odd)
    if len(rows):
        wanted = exponent if isinstance(exponent, int) else exponent[rows]
        power, rest = (column[wanted - _POWERS[0]] for column in _powers())
        high, low = _pair(*(half[rows] for half in halves))
        value[rows], unsure = _divide(high, low, power, rest)
        odd[rows[unsure]] = True
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


def _take_out_point(parts: list[Keys], decimals: int) -> Bools:
    """Close the gap at the point; says where there is no point in that place."""
    place, byte = divmod(decimals, 8)
    at = 8 * (7 - byte)
    before = np.uint64((1 << at) - 1)
    missing: Bools = (parts[place] >> np.uint64(at)) & np.uint64(255) != ord(".")
    for index in range(place, len(parts)):
        part = parts[index]
        moved = (part & before if index == place else part) << np.uint64(8)
        if index == place:
            moved |= part & _LAST[byte]
        if index + 1 < len(parts):
            moved |= parts[index + 1] >> np.uint64(56)
        parts[index] = moved
    return missing


def _eight_digits(digits: Keys) -> Keys:
    """Eight digits, the first in the lowest byte, as a number: pairs, fours, all."""
    digits = digits * np.uint64(2561)
    digits >>= np.uint64(8)
    digits &= np.uint64(0x00FF00FF00FF00FF)
    digits *= np.uint64(6553601)
    digits >>= np.uint64(16)
    digits &= np.uint64(0x0000FFFF0000FFFF)
    digits *= np.uint64(42949672960001)
    digits >>= np.uint64(32)
    return digits


def _pair(low: Keys, high: Keys | None = None) -> tuple[Floats, Floats]:
    """A whole number as two floats, given its last 16 digits and those before."""
    first = low.astype(np.float64)
    rest = (low - first.astype(np.uint64)).view(np.int64).astype(np.float64)
    if high is None:
        return first, rest
    head = high.astype(np.float64)
    product = head * _TAIL
    total = product + first
    # What adding lost, and what multiplying did.
    rest += first - (total - product)
    return total, rest + _product_error(head, _TAIL, product)


def _product_error(one: Floats, other: Floats | float, product: Floats) -> Floats:
    """What rounding took from a product, exactly (Dekker)."""
    head, other_head = one * _SPLITTER, other * _SPLITTER
    head, other_head = head - (head - one), other_head - (other_head - other)
    tail, other_tail = one - head, other - other_head
    error = head * other_head - product + head * other_tail + tail * other_head
    return error + tail * other_tail


def _divide(
    high: Floats, low: Floats, power: Floats, rest: Floats
) -> tuple[Floats, Bools]:
    """Divide numbers, each given as two floats, and say where it is too close to call.

    The quotient's error is found and added back, once a little too small and once too
    large: where both round alike, the truth does too.
    """
    quotient = high / power
    product = quotient * power
    error = _product_error(quotient, power, product)
    correction = (high - product - error - quotient * rest + low) / power
    below = quotient + correction * (1 - 1e-12)
    above = quotient + correction * (1 + 1e-12)
    return above, below != above
