"""Passages of a corpus, and which of them questions are written from."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from random import Random

from karat.data.gold import Span
from karat.data.queries import Corpus
from karat.diagnosis.corpus_texts import LexicalRanks, group_alike, search_words
from karat.errors import MissingExtraError

# Characters of a passage; a longer document is cut where a sentence ends.
_LONGEST = 1500
_END = re.compile(r"[.!?][\"')\]]*\s+|[\u3002\uff01\uff1f]|\n\s*\n")
# Words of a passage that there is something to ask about.
_LEAST_WORDS = 5
# Letters of a shared word that may lead from one passage to another.
_LINK = 4
# Of ten questions, those that need two passages.
_TWO_HOPS = (2, 5, 8)


class PassageSearch:
    """Passages of a corpus by number, spans of their sources, and search by words."""

    def __init__(self, corpus: Corpus) -> None:
        self.passages: dict[str, Span] = {}
        self._texts: dict[str, str] = {}
        self._of: dict[str, list[str]] = {}
        for document, text in corpus.items():
            source, offset, title = corpus.origin(document)
            for start, end in _cut(text):
                name, body = str(len(self.passages)), max(start, title)
                first, last = offset + body - title, offset + end - title
                passage = Span(document, source, first, last, text[body:end])
                self.passages[name], self._texts[name] = passage, text[start:end]
                self._of.setdefault(document, []).append(name)
        words = LexicalRanks.of(self._texts)
        if words is None:
            raise MissingExtraError("generating questions", "bm25")
        self.words = words

    def text(self, name: str) -> str:
        """What a passage says, with a title in front if its document has one."""
        return self._texts[name]

    def passage_of(self, document: str | None, question: str) -> str | None:
        """The passage of a document that a question is most likely about."""
        names = self._of.get(document or "", [])
        if len(names) > 1:
            return (self.words.top(question, 1, names) or names)[0]
        return names[0] if names else None

    def seeds(
        self, hops: Collection[int], styles: Sequence[str], seed: int
    ) -> Iterator[tuple[tuple[str, ...], str]]:
        """What to write from: each passage once in every style, in a random order.

        One passage of each source comes before a second one of any, and of
        near-duplicates only the first is there.
        """
        chance = Random(seed)  # noqa: S311
        singles = self._singles(chance)
        pairs = self._pairs(singles, chance) if 2 in hops else []  # noqa: PLR2004
        alone = [(name,) for name in singles] if 1 in hops else []
        one, two = _in_styles(alone, styles), _in_styles(pairs, styles)
        for number in count():
            first, other = (two, one) if number % 10 in _TWO_HOPS else (one, two)
            drawn = next(first, None) or next(other, None)
            if drawn is None:
                return
            yield drawn

    def _singles(self, chance: Random) -> list[str]:
        by_source: dict[str, list[str]] = {}
        alike = group_alike([*map(self.text, self.passages)])
        for place, (name, passage) in enumerate(self.passages.items()):
            long_enough = len(search_words(self.text(name))) >= _LEAST_WORDS
            if alike[place] == place and long_enough:
                by_source.setdefault(passage.document, []).append(name)
        rows = [*by_source.values()]
        chance.shuffle(rows)
        for row in rows:
            chance.shuffle(row)
        longest = max(map(len, rows), default=0)
        return [row[turn] for turn in range(longest) for row in rows if turn < len(row)]

    def _pairs(self, names: Sequence[str], chance: Random) -> list[tuple[str, ...]]:
        """Passages of two sources that share a rare word, each in one pair at most."""
        holders: dict[str, list[str]] = {}
        for name in names:
            for word in self.words.rare_words(self.text(name)):
                if word.isalpha() and (len(word) >= _LINK or not word.isascii()):
                    holders.setdefault(word, []).append(name)
        words = sorted(word for word, row in holders.items() if len(row) > 1)
        chance.shuffle(words)
        pairs: dict[str, tuple[str, ...]] = {}
        for word in words:
            free = [name for name in holders[word] if name not in pairs]
            sources = {self.passages[name].document: name for name in reversed(free)}
            if len(sources) > 1:
                pair = tuple(sources.values())[-2:]
                pairs |= dict.fromkeys(pair, pair)
        return [*dict.fromkeys(pairs.values())]


def _in_styles(
    ways: Sequence[tuple[str, ...]], styles: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    for turn in range(len(styles)):
        for place, names in enumerate(ways):
            yield names, styles[(place + turn) % len(styles)]


def _cut(text: str) -> Iterator[tuple[int, int]]:
    """Where the passages of a text begin and end."""
    start = 0
    while len(text) - start > _LONGEST:
        piece = text[start : start + _LONGEST]
        ends = [match.end() for match in _END.finditer(piece)]
        end = start + (ends[-1] if ends else piece.rfind(" ") + 1 or _LONGEST)
        yield start, end
        start = end
    yield start, len(text)
