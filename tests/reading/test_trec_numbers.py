"""Numbers read in bulk are the numbers `float` reads, to the last bit."""

from decimal import Decimal, localcontext
from math import nextafter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from karat.reading.columns import decimals
from karat.reading.columns.decimals import PADDING, decimal, numbers
from karat.reading.columns.ids import ByteColumn


def words(texts: list[str]) -> ByteColumn:
    """Words as they stand in a file: with a blank between two."""
    parts = [text.encode() for text in texts]
    length = np.array([len(part) for part in parts])
    start = len(PADDING) + np.cumsum(length + 1) - length - 1
    text = PADDING + b" ".join(parts) + PADDING
    return ByteColumn(np.frombuffer(text, np.uint8), start, length)


@st.composite
def near_middles(draw: st.DrawFn) -> str:
    """A decimal next to the middle of two floats, where rounding is hardest."""
    low = draw(st.floats(1e-3, 1e9))
    with localcontext() as context:
        context.prec = 60
        middle = (Decimal(low) + Decimal(nextafter(low, 2 * low))) / 2
        return f"{middle:.{draw(st.integers(8, 22))}f}"


_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_TEXTS = st.one_of(
    _FLOATS.map(repr),
    st.floats(-1e9, 1e9).map(repr),
    st.floats(-1e4, 1e4, width=32).map(repr),
    st.builds("{:.{}f}".format, st.floats(-1e12, 1e12), st.integers(0, 20)),
    st.builds("{:.17g}".format, st.floats(-1e3, 1e3)),
    st.builds("{:.{}e}".format, st.floats(-1e3, 1e3), st.integers(0, 25)),
    # Rounded to few digits, the largest floats would be none any more.
    st.builds("{:.{}E}".format, st.floats(-1e308, 1e308), st.integers(0, 20)),
    st.builds("{:.{}f}".format, st.floats(-1e3, 1e3), st.integers(18, 30)),
    st.from_regex(r"\A[+-]?[0-9]{1,3}(\.[0-9]{0,20})?[eE][+-]?[0-9]{1,2}\Z"),
    st.integers(-(10**22), 10**22).map(str),
    st.from_regex(r"\A[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})\Z"),
    near_middles(),
)


@given(st.lists(_TEXTS, min_size=1, max_size=80))
def test_numbers_in_bulk_are_rounded_as_float_rounds_them(texts: list[str]) -> None:
    got = numbers(words(texts))
    expected = np.array([float(text) for text in texts])
    assert got.view(np.int64).tolist() == expected.view(np.int64).tolist()


def test_exponents_and_long_numbers_are_read_in_bulk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = np.random.default_rng(3)
    values = (10 ** draw.uniform(-12, 3, 20_000)).tolist()
    monkeypatch.setattr(decimals, "decimal", None)
    for layout in ("{:.17e}", "{:.6e}", "{:E}", "{:.20f}", "{:.24f}"):
        texts = [layout.format(value) for value in values]
        assert numbers(words(texts)).tolist() == [float(text) for text in texts]


def test_many_layouts_in_one_block_are_all_read() -> None:
    values = np.random.default_rng(7).standard_normal(30_000) * 100
    texts = [repr(value) for value in values.tolist()]
    assert numbers(words(texts)).tolist() == values.tolist()
    short = [repr(round(value, i % 17)) for i, value in enumerate(values.tolist())]
    assert numbers(words(short)).tolist() == [float(text) for text in short]


_BAD = [
    "nan",
    "inf",
    "-inf",
    "infinity",
    "1_0",
    ".",
    "-",
    "+",
    "-.",
    "1.2.3",
    "1e",
    "e5",
]
_BAD += [
    "1e999",
    "0x10",
    "12a",
    "--1",
    "+-1",
    "1-2",
    "..",
    "5.5.",
    "1,5",
    "/",
    ":",
    "1:2",
]
_BAD += [
    "1/2.5",
    "1e5.5",
    "1d5",
    "\u0663",
    "½",
    "1\x00",
    "'1'",
    "1.5f",
    ";.5",
    "99999999:",
]


@pytest.mark.parametrize("bad", _BAD)
@pytest.mark.parametrize("good", ["", "1.5", "12", "123456789", "1." + "2" * 15])
@pytest.mark.parametrize("place", [0, 20, 40])
def test_anything_else_is_refused_wherever_it_stands(
    bad: str, good: str, place: int
) -> None:
    texts = [good] * 40 if good else []
    texts.insert(place, bad)
    with pytest.raises(ValueError, match=r".*"):
        numbers(words(texts))
    with pytest.raises(ValueError, match=r".*"):
        decimal(bad.encode())


@given(st.lists(st.text("ab\xe9", min_size=1, max_size=40), min_size=1))
def test_words_are_grouped_compared_and_ordered_by_their_bytes(
    texts: list[str],
) -> None:
    some = words(texts)
    parts = [text.encode() for text in texts]
    assert some.names() == texts
    first, which = some.distinct()
    assert [texts[i] for i in first] == [*dict.fromkeys(texts)]
    assert [texts[first[i]] for i in which] == texts
    firsts = [i for i, p in enumerate(parts) if i == 0 or parts[i - 1] != p]
    assert some.starts().tolist() == firsts
    order = np.lexsort(some.descending_words()[::-1])
    assert [parts[i] for i in order] == sorted(parts, reverse=True)
    others = ByteColumn.of(texts[::-1])
    assert some.equal(others).tolist() == [
        a == b for a, b in zip(parts, parts[::-1], strict=True)
    ]
    keys = dict(zip(texts, some.keys().tolist(), strict=True))
    assert ByteColumn.of(list(keys)).keys().tolist() == list(keys.values())
