"""Coverage computed the plain way, to hold the real one against."""

import re
import unicodedata
from collections.abc import Sequence

_NUMBER = re.compile(r"(?<=\d)([^a-z\d%$<]+)(?=\d)")


def letters(text: str) -> str:
    """The letters of an English text; between numbers `.`, `,` or `|`."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    marked = _NUMBER.sub(lambda gap: gap[1] if gap[1] in (".", ",") else "|", plain)
    kept = re.sub(r"(?<!\d)[.,|]|[.,|](?!\d)|[^a-z\d%$<.,|]", "", marked)
    return re.sub(r"(?<!\d)[.,|]|[.,|](?!\d)", "", kept)


def covered(gold: str, documents: Sequence[str]) -> float:
    """The share of the gold's letters that the documents cover.

    For gold of four words or more, and without the fragments at edges.
    """
    words = [letters(word) for word in re.findall(r"[^\s\-/|]+", gold)]
    words = [word for word in words if word]
    stream = letters("".join(documents))
    whole = letters(gold)
    assert whole.replace("|", "") == "".join(words)
    places, place = [], 0
    for word in words:
        place = whole.index(word, place)
        places.append((place, place + len(word)))
        place += len(word)
    mine = [False] * len(whole)
    for first, last in zip(places, places[3:], strict=False):
        low, high = first[0], last[1]
        for copy in re.finditer(f"(?={re.escape(whole[low:high])})", stream):
            at = copy.start()
            if _inside(stream, at) or _inside(stream, at + high - low):
                continue
            start, end = low, high
            while start and at and whole[start - 1] == stream[at - 1]:
                start, at = start - 1, at - 1
            at += end - start
            while end < len(whole) and at < len(stream) and whole[end] == stream[at]:
                end, at = end + 1, at + 1
            mine[start:end] = [True] * (end - start)
            break
    counted = [m for m, char in zip(mine, whole, strict=True) if char != "|"]
    return sum(counted) / len(counted)


def _inside(stream: str, place: int) -> bool:
    """Whether a place lies inside a number."""
    around = stream[max(0, place - 1) : place + 1]
    return len(around) > 1 and place > 0 and all(c in "0123456789.," for c in around)
