"""The normal form."""

# ruff: noqa: RUF001

import pytest

from karat.extend import fold


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Ｆｕｌｌ　ｗｉｄｔｈ ﬁne", "full width fine"),
        ("“curly” ‘quotes’ it´s", "\"curly\" 'quotes' it's"),
        ("a–b — c ‑ d − e", "a-b - c - d - e"),
        (
            "co\u00adoperate zero\u200bwidth no\u00a0break",
            "cooperate zerowidth no break",
        ),
        ("trans-\nport and trans\u00ad\r\nport", "transport and transport"),
        ("Jean-\nPierre, 2019-\n2020", "jean-pierre, 2019-2020"),
        (
            "# Title\n> quoted\n- item\n* item\n1. first",
            "title quoted item item 1. first",
        ),
        ("> - # deep", "deep"),
        (
            "**bold**, *slanted*, __both__, ~~gone~~, `code`",
            "bold, slanted, both, gone, code",
        ),
        ("**cut off", "cut off"),
        (
            'see [the page](https://a.b/c_(d) "title") or ![a cat](cat.png)',
            "see the page or a cat",
        ),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a b 1 2"),
        ("Title\n=====\ntext\n\n---\n```python\nx\n```", "title text x"),
        (
            "snake_case 2*3 2 * 3 #1 C# a|b a_b_c x[i](y)",
            "snake_case 2*3 2 * 3 #1 c# a|b a_b_c x[i](y)",
        ),
        ("snake\\_case \\*", "snake_case *"),
        ("STRASSE Straße ΣΊΣΥΦΟΣ", "strasse strasse σίσυφοσ"),
        ("  many \t\n spaces  ", "many spaces"),
        ("", ""),
        (" \n ", ""),
        ("中文　文本", "中文 文本"),
        ("ภาษาไทย", "ภาษาไทย".replace("\u0e33", "\u0e4d\u0e32")),
        ("\u202bשלום\u202c", "שלום"),
        ("👍️ 👨‍👩‍👧", "👍 👨👩👧"),
        ("か\u3099 ｶﾞ", "が ガ"),
        ("e\u0301", "é"),
    ],
)
def test_the_normal_form(text: str, normal: str) -> None:
    assert fold(text) == normal


@pytest.mark.parametrize(
    "codes",
    [
        *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x2060), (0x2066, 0x2069)),
        *((0xFE0E, 0xFE0F), (0xFEFF, 0xFEFF), (0x061C, 0x061C), (0x00AD, 0x00AD)),
    ],
)
def test_what_nobody_sees_is_nothing(codes: tuple[int, int]) -> None:
    for code in range(codes[0], codes[1] + 1):
        assert fold(f"a{chr(code)}b") == "ab"


def test_texts_are_the_same_however_often_and_however_long() -> None:
    for text in ("AB", "A" * 5_000, "AB", "A" * 5_000):
        assert fold(text) == text.lower()
