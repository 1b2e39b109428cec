"""Decimal numbers in bulk: millions of texts read as `float` reads each."""

import re
from math import isfinite, nan

import numpy as np

from karat.data.arrays import Bools, Floats
from karat.reading.columnar.byte_column import ByteColumn, Keys

__all__ = ["PADDING", "number", "numbers"]

PADDING = b"\n" * 32
"""What must stand before the first number and behind the last one."""

_LAST = np.array([((1 << 8 * i) - 1) << 8 * (8 - i) for i in range(9)], np.uint64)
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(r"(?=.*[0-9])[0-9]*(?:\.[0-9]*)?")
_LAYOUTS = 64
_MOST_DIGITS = 19
_ZEROS = np.uint64(0x3030303030303030)
_SIXES = np.uint64(0x0606060606060606)
_NIBBLES = np.uint64(0xF0F0F0F0F0F0F0F0)
_EXACT = np.uint64(1 << 53)
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
    layout (an exponent, more than 19 digits) is read by itself.

    Raises:
        ValueError: a text is not a finite decimal number.
    """
    sign = texts.data[texts.start]
    minus = sign == ord("-")
    signed = minus | (sign == ord("+"))
    digits = ByteColumn(texts.data, texts.start + signed, texts.length - signed)
    value = np.empty(len(texts))
    alone: list[int] = []
    rest = np.arange(len(texts))
    for _ in range(_LAYOUTS):
        if not len(rest):
            break
        middle = len(rest) // 2
        sample = digits.view(rest[middle : middle + 1]).names()[0]
        odd = np.ones(len(rest), np.bool_)
        if len(sample) <= _MOST_DIGITS + 1 and _DIGITS.fullmatch(sample):
            decimals = len(sample) - sample.find(".") - 1 if "." in sample else -1
            alike = digits if len(rest) == len(digits) else digits.view(rest)
            value[rest], odd = _decimals(alike, decimals, len(sample))
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


def _decimals(texts: ByteColumn, decimals: int, size: int) -> tuple[Floats, Bools]:
    """Values of texts with so many digits after the point, and which are others.

    Eight digits are read at a time, from the last to the first, and no more than a text
    of the given size needs; -1 decimals means without a point.
    """
    length = texts.length
    end = texts.start + length
    parts = [
        texts.eights[end - 8 - at] & _LAST.take(length - at, mode="clip")
        for at in range(0, size, 8)
    ]
    odd = length > 8 * len(parts)
    if decimals >= 0:
        odd |= _take_out_point(parts, decimals)
        length = length - 1
        parts = parts[: -(-int(length.max()) // 8)]
    odd |= (length < 1) | (length > _MOST_DIGITS)
    whole = np.zeros(len(texts), np.uint64)
    for place, part in enumerate(parts):
        digits = _ZEROS & _LAST.take(length - 8 * place, mode="clip")
        digits ^= part
        odd |= (((digits + _SIXES) | digits) & _NIBBLES) != 0
        whole += _eight_digits(digits) * np.uint64(10 ** (8 * place))
    power = 10.0 ** max(decimals, 0)
    value = whole / power
    wide = np.flatnonzero((whole > _EXACT) & ~odd)
    if len(wide):
        value[wide], unsure = _divide(whole[wide], power)
        odd[wide[unsure]] = True
    return value, odd


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


def _divide(whole: Keys, power: float) -> tuple[Floats, Bools]:
    """Divide integers beyond 2**53, and say where the rounding is too close to call.

    The quotient's error is found exactly (Dekker's product) and added back, once a
    little too small and once too large: where both round alike, the truth does too.
    """
    high = whole.astype(np.float64)
    low = (whole - high.astype(np.uint64)).view(np.int64).astype(np.float64)
    quotient = high / power
    product = quotient * power
    head = quotient * _SPLITTER
    head -= head - quotient
    tail = quotient - head
    power_head = power * _SPLITTER - (power * _SPLITTER - power)
    power_tail = power - power_head
    error = head * power_head - product + head * power_tail + tail * power_head
    error += tail * power_tail
    correction = (high - product - error + low) / power
    below = quotient + correction * (1 - 1e-12)
    above = quotient + correction * (1 + 1e-12)
    return above, below != above
