"""Where in a text each of its letters came from: the slow way, for a closer look."""

from itertools import chain

from karat.matching.normaliser import BROKEN, LINKS
from karat.matching.spans.letters import spell

__all__ = ["trace"]


def trace(text: str, *, join_lines: bool) -> tuple[bytes, list[int], list[int]]:
    """What `spell` makes of a text, and which character each byte came from.

    Args:
        text: the text.
        join_lines: words broken at the end of a line are put together first.

    Returns:
        The spelled text; the index of the character of each byte; and one more.

    Example:
        >>> trace("Né!", join_lines=False)
        (b'ne ', [0, 1, 2], [1, 2, 3])
    """
    kept = list(range(len(text)))
    if join_lines:
        for found in reversed([*BROKEN.finditer(text)]):
            del kept[slice(*found.span())]
        text = BROKEN.sub("", text)
    if "](" in text:
        inner = (
            (found.start(), found.start(1), found.end(1), found.end())
            for found in LINKS.finditer(text)
        )
        for start, low, high, end in reversed([*inner]):
            kept[start:end] = kept[low:high]
        text = LINKS.sub(r"\1", text)
    parts = [spell(char) for char in text]
    origin = [place for place, part in zip(kept, parts, strict=True) for _ in part]
    return bytes(chain.from_iterable(parts)), origin, [place + 1 for place in origin]
