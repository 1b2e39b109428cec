"""What is known of each miss before its cause is looked for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from karat.data.arrays import Bools, Ints, count_by
from karat.data.gold import Gold
from karat.data.runs import Document, ranks_of
from karat.data.tables import steps
from karat.diagnosis.corpus_texts import (
    Habits,
    LexicalRanks,
    group_alike,
    has_look_alikes,
    most_alike,
    without_look_alikes,
)
from karat.diagnosis.diagnosis import Related
from karat.diagnosis.headroom import gains_of
from karat.errors import MismatchError
from karat.matching.cover import HEADER_SLACK
from karat.matching.id_forms import OtherForm, other_forms
from karat.matching.letters import Letters
from karat.matching.span import Passage, compare_letters, read_targets
from karat.matching.texts import wanted_items
from karat.reading.readers import read_corpus
from karat.results.evaluation import Evaluation, gold_of

ENOUGH = 0.9
"""The share of a gold text that makes a document have it."""

DEPTH = 1000
"""So many documents of each ranking are looked at."""

# So many of them are read, and so many misses looked up in what was retrieved.
_READ, _LOOKED_UP = 100, 300


class Shares(NamedTuple):
    """What documents have of one gold text."""

    gold: str
    documents: Sequence[Document]  # in rank order
    masks: dict[int, Bools]  # document -> which letters it has
    passage: Passage  # the comparison behind it

    @classmethod
    def of(cls, gold: str, documents: Sequence[Document]) -> "Shares":
        """What these documents have of a gold text."""
        sources = Letters.read([document.text or "" for document in documents])
        (passage,), _ = compare_letters([gold], sources)
        masks: dict[int, Bools] = {}
        size = len(passage.gold.letters)
        for part in passage.parts:
            mask = masks.setdefault(part.document, np.zeros(size, np.bool_))
            for run in part.runs:
                mask[run.start : run.end] = True
            for gap in part.gaps:
                mask[gap.start : gap.end] |= gap.covered
        return cls(gold, documents, masks, passage)

    def share(self, number: int) -> float:
        """The share that one document has."""
        mask = self.masks.get(number)
        return float(mask.mean()) if mask is not None and mask.size else 0.0

    def union(self, numbers: Sequence[int] | None = None) -> float:
        """The share that some documents, or all, have together."""
        rows = self.masks if numbers is None else numbers
        own = [self.masks[number] for number in rows if number in self.masks]
        return float(np.logical_or.reduce(own).mean()) if own else 0.0

    def ranked(self, most: int | None = None) -> list[int]:
        """The documents among the first ones that have any of it, most first."""
        own = [number for number in self.masks if most is None or number < most]
        return sorted(own, key=lambda number: (-self.share(number), number))

    def differs(self, number: int) -> tuple[str, ...]:
        """Numbers, signs, negations and names that a document has otherwise."""
        every = self.passage.differences
        return tuple(str(what) for first, _, what in every if first == number)

    def is_fragment(self, number: int, header: int = HEADER_SLACK) -> bool:
        """Whether a document has all of a stretch, and was cut where that ends."""
        size = len(self.passage.documents[number].letters)
        whole = len(self.passage.gold.letters)
        for part in self.passage.parts:
            if part.document != number:
                continue
            first, last = part.runs[0], part.runs[-1]
            opens = first.start <= HEADER_SLACK or first.place <= header
            left = min(whole - last.end, size - last.place_end)
            inside = self.masks[number][first.start : last.end].mean()
            if opens and left <= HEADER_SLACK and inside >= ENOUGH:
                return True
        return False

    def fragments(self, most: int | None, header: int = HEADER_SLACK) -> list[int]:
        """The documents among the first ones that are fragments of it."""
        return [n for n in self.ranked(most) if self.is_fragment(n, header)]

    @property
    def whole(self) -> list[int]:
        """The documents that have all of it."""
        return [n for n in sorted(self.masks) if self.share(n) >= ENOUGH]

    def related(
        self, number: int, *, rank: int | None, similarity: float | None = None
    ) -> Related:
        """A document as evidence, with the stretches that both share."""
        document = self.documents[number]
        parts = (part for part in self.passage.parts if part.document == number)
        runs = next((part.runs for part in parts), ())
        ours = self.passage.gold.places
        theirs = self.passage.documents[number].places
        return Related(
            id=document.id,
            rank=rank,
            text=document.text,
            similarity=self.share(number) if similarity is None else similarity,
            gold=tuple((ours[run.start], ours[run.end - 1] + 1) for run in runs),
            spans=tuple(
                (theirs[run.place], theirs[run.place_end - 1] + 1) for run in runs
            ),
            differs=self.differs(number),
        )


@dataclass(eq=False)
class MissedItem:
    """A relevant gold item that is not in the top k, and what is known of it."""

    query: str
    name: str
    rank: int  # its first rank, which is below k; 0: it was not retrieved
    hits: int  # how many relevant items of the query are in the top k
    relevant: int  # how many there are
    ids: tuple[str, ...]  # of the documents that are the item, where gold is ids
    texts: tuple[str, ...]  # what it says, in any of its forms, as far as known
    form: OtherForm | None = None  # its id as it was found in another form
    ranked: Shares | None = None  # what the documents retrieved have of its text
    homes: Shares | None = None  # what the closest documents of the corpus have of it
    disguise: str | None = None  # the document that has it in look-alike letters


class RunEvidence:
    """What there is to go by: rankings, gold and corpus, as far as they are given."""

    def __init__(
        self,
        result: Evaluation,
        corpus: Mapping[str, str] | None,
        k: int,
        candidates: Evaluation | None = None,
    ) -> None:
        matcher, queries = result.default_matcher, np.arange(len(result.queries))
        self.matches = result.matches[matcher]
        self.threshold = result.policies.threshold
        self.gains = gains_of(self.matches, queries, self.threshold)
        # How many relevant items each query has.
        self.relevant = count_by(self.gains.query, self.gains.size)
        # Query -> relevant item -> its first rank; 0: it was not retrieved.
        self.items: dict[str, dict[str, int]] = {query: {} for query in result.queries}
        places, ranks = self.gains.query.tolist(), self.gains.rank.tolist()
        for place, name, rank in zip(places, self.gains.name, ranks, strict=True):
            self.items[result.queries[place]][name] = rank
        self.k, self.candidates = k, None
        if candidates is not None:
            rows = candidates.matches[matcher].first_ranks()
            self.candidates = dict(zip(candidates.queries, rows, strict=True))
        self.gold = gold_of(result)
        self.facts, self.corpus = result.facts, corpus
        self.ids, self.judged = matcher.startswith("id"), matcher.startswith("claims")
        counts = self.matches.hits.retrieved.tolist()
        self.depth = dict(zip(result.queries, counts, strict=True))
        self.rankings: dict[str, list[Document]] = {}
        self.has_texts = False
        for query, documents in result.kept.items():
            row = self.rankings[query] = [*_at_their_ranks(documents)]
            for place, document in enumerate(row):
                if document.text is None and corpus:
                    text = corpus.get(document.id or "")
                    row[place] = document = replace(document, text=text)  # noqa: PLW2901
                self.has_texts |= document.text is not None and not self.judged
        # What queries ask, where known.
        self.questions = {q: one.text for q, one in self.facts.items() if one.text}

    def hits_within(self, k: int | None) -> Ints:
        """How many relevant items of each query are in the top k, or anywhere."""
        return count_by(self.gains.query[self.gains.within(k)], self.gains.size)

    @cached_property
    def missed(self) -> list[MissedItem]:
        """The relevant items that are not in the top k, with what is known of each."""
        k = self.k
        missed, absent = [], []
        within = self.hits_within(k).tolist()
        for hits, (query, ranks) in zip(within, self.items.items(), strict=True):
            for name, rank in ranks.items():
                if not 0 < rank <= k:
                    ids = self._ids(query, name)
                    texts = self._texts(query, name, ids)
                    one = MissedItem(query, name, rank, hits, len(ranks), ids, texts)
                    missed.append(one)
                    absent += [] if rank else [one]
        self._look_for_forms(absent)
        if self.has_texts:
            for one in steps(missed, len(missed), "reading texts of misses"):
                row = self.rankings.get(one.query, [])[:_READ]
                one.ranked = _best_shares(one.texts, row)
            if self.corpus is not None and not self.ids:
                self._look_for_homes(absent, self.corpus)
        return missed

    def _look_for_homes(
        self, missed: Sequence[MissedItem], corpus: Mapping[str, str]
    ) -> None:
        """Where the corpus has each item, and where in look-alike letters."""
        texts = [one.texts for one in missed]
        odd = {name: text for name, text in corpus.items() if has_look_alikes(text)}
        plain = {name: without_look_alikes(text) for name, text in odd.items()}
        for one, homes in zip(missed, corpus_shares(texts, corpus), strict=True):
            one.homes = homes
        for one, other in zip(missed, corpus_shares(texts, plain), strict=True):
            if other and other.whole:
                one.disguise = other.documents[other.whole[0]].id

    def hits(self, query: str, k: int | None = None) -> list[Document]:
        """The documents in the top k, or anywhere, that have relevant items."""
        ranking = self.rankings.get(query, [])[:k]
        ranks = self.items.get(query, {}).values()
        return [ranking[rank - 1] for rank in ranks if 0 < rank <= len(ranking)]

    @cached_property
    def owners(self) -> dict[str, list[tuple[int, str]]]:
        """Document -> the ranks in the top k that it has, and for which queries."""
        owners: dict[str, list[tuple[int, str]]] = {}
        for query, row in self.rankings.items():
            for rank, document in enumerate(row[: self.k], 1):
                owners.setdefault(key_of(document), []).append((rank, query))
        owners.pop("", None)
        return owners

    @cached_property
    def often(self) -> Counter[str]:
        """Document -> how many queries retrieve it, at any rank."""
        often: Counter[str] = Counter()
        for row in self.rankings.values():
            often.update({*map(key_of, row)})
        return often

    @cached_property
    def documents(self) -> dict[MissedItem, tuple[str, ...]]:
        """Missed item -> the keys of the documents that have it, where known."""
        keys = {one: one.ids or _whole(one.homes) for one in self.missed}
        if self.ids or self.corpus is not None or not self.has_texts:
            return keys
        # Without a corpus, what other queries retrieved is one.
        rows = (row[: self.k] for row in self.rankings.values())
        texts = {key_of(d): d.text or "" for row in rows for d in row}
        some = self.missed[:: max(1, len(self.missed) // _LOOKED_UP)]
        near = corpus_shares([one.texts for one in some], texts)
        return keys | dict(zip(some, map(_whole, near), strict=True))

    @cached_property
    def groups(self) -> dict[str, int]:
        """Text -> a number that near-duplicates share."""
        rows = (row[:_READ] for row in self.rankings.values())
        texts = list(dict.fromkeys(d.text for row in rows for d in row if d.text))
        return dict(zip(texts, group_alike(texts), strict=True))

    @cached_property
    def words(self) -> LexicalRanks | None:
        """Search by words, where the corpus, questions and what it takes are there."""
        if self.corpus is None or self.judged or not self.questions:
            return None
        return LexicalRanks.of(self.corpus)

    @cached_property
    def habits(self) -> Habits:
        """What the texts of the corpus are like."""
        return Habits.of(self.corpus or {})

    def _ids(self, query: str, item: str) -> tuple[str, ...]:
        """The ids of an item: its own, or those of the documents of its group."""
        if not self.ids:
            return ()
        groups = self.gold.groups.get(query)
        if not groups:
            return (item,)
        return tuple(name for name, group in groups.items() if group == item) or (item,)

    def _texts(self, query: str, item: str, ids: Sequence[str]) -> tuple[str, ...]:
        """What an item says, in any of its forms."""
        if not self.ids:
            return item_texts(self.gold, query, self.corpus).get(item, ())
        if self.corpus is None and not self.has_texts:
            return ()
        corpus = self.corpus or {}
        texts = (corpus.get(name) or self._seen.get(name) for name in ids)
        return tuple(filter(None, texts))

    def other_texts(self, one: MissedItem) -> list[str]:
        """What the other relevant items of its query say, as far as known."""
        others = (name for name in self.items[one.query] if name != one.name)
        return [t for name in others for t in self._texts(one.query, name, [name])]

    @cached_property
    def _seen(self) -> dict[str, str]:
        """The texts of documents retrieved for any query, by id."""
        documents = (d for row in self.rankings.values() for d in row)
        return {d.id: d.text for d in documents if d.id is not None and d.text}

    def _look_for_forms(self, missed: Sequence[MissedItem]) -> None:
        """The id of each in another form, as retrieved or as in the corpus."""
        corpus = self.corpus or {}
        by_query: dict[str, list[MissedItem]] = {}
        for one in missed:
            by_query.setdefault(one.query, []).append(one)
        everywhere: dict[str, OtherForm] = {}
        if corpus:
            missing = {name for one in missed for name in one.ids if name not in corpus}
            everywhere = {form.wanted: form for form in other_forms(missing, corpus)}
        for query, own in by_query.items():
            labels, forms = self.gold.documents.get(query, {}), dict(everywhere)
            names = {*chain.from_iterable(map(attrgetter("ids"), own))}
            for form in other_forms(names, self.rankings.get(query, ())):
                # Where the corpus has both, they are two documents.
                two = form.wanted in corpus and form.found in corpus
                if form.found not in labels and not two:
                    forms[form.wanted] = form
            for one in own:
                one.form = next(filter(None, map(forms.get, one.ids)), None)


def key_of(document: Document) -> str:
    """What tells a document from others: its id, else its text."""
    return document.id if document.id is not None else document.text or ""


def _whole(shares: Shares | None) -> tuple[str, ...]:
    """The ids of the documents that have all of a text."""
    if shares is None:
        return ()
    return tuple(shares.documents[place].id or "" for place in shares.whole)


def _at_their_ranks(documents: Sequence[Document]) -> Sequence[Document]:
    """The documents, with empty ones where the ranks of a table have gaps."""
    ranks = ranks_of(documents)
    if ranks == [*range(1, len(ranks) + 1)]:
        return documents
    by_rank = dict(zip(ranks, documents, strict=True))
    return [by_rank.get(n + 1, Document()) for n in range(min(max(ranks), DEPTH))]


def corpus_texts(corpus: Any) -> Mapping[str, str] | None:
    """The texts by id of a mapping or a file; of an empty mapping none."""
    empty = isinstance(corpus, Mapping) and not corpus
    return corpus if corpus is None or empty else read_corpus(corpus)


def check_corpus(names: set[str], corpus: Mapping[str, str]) -> None:
    """Refuse a corpus that has none of the documents, in whatever form of their ids."""
    if names and names.isdisjoint(corpus) and not any(other_forms(names, corpus)):
        raise MismatchError(
            f"the corpus has no document of the gold or the run: its ids are such as "
            f"{next(iter(corpus))!r:.60}, theirs {min(names)!r:.60}",
            hint="a corpus has the texts of documents by id; is this another file?",
        )


def item_texts(
    gold: Gold, query: str, corpus: Mapping[str, str] | None = None
) -> dict[str, tuple[str, ...]]:
    """The gold texts of a query by the name of their item, any of which will do."""
    by_name: dict[str, tuple[str, ...]] = {}
    for target in read_targets(gold, query):
        texts = [*target.texts]
        for number, place in enumerate(target.places):
            if not texts[number]:
                source = (corpus or {}).get(place.source, "")
                texts[number] = source[place.start : place.end]
        by_name[target.name] = tuple(text for text in texts if text)
    for items, one in ((gold.answers, True), (gold.claims, False)):
        for item in wanted_items(items.get(query, ()), alternatives=one):
            by_name.setdefault(item.name, item.texts)
    return by_name


def _best_shares(texts: Sequence[str], documents: Sequence[Document]) -> Shares | None:
    """Of an item's texts, what documents have of the one they have most of."""
    every = (Shares.of(text, documents) for text in texts if documents)
    return max(every, key=Shares.union, default=None)


def corpus_shares(
    texts: Sequence[tuple[str, ...]], corpus: Mapping[str, str]
) -> list[Shares | None]:
    """Of each item's texts, what the documents of a corpus have of it."""
    every = list(dict.fromkeys(text for own in texts for text in own))
    names, rows = [*corpus], most_alike(every, [*corpus.values()])
    near = {
        text: [Document(names[place], corpus[names[place]]) for place in row]
        for text, row in zip(every, rows, strict=True)
    }
    # A text that nothing in the corpus resembles is compared with nothing.
    nothing = [Document(text="")]
    return [
        _best_shares(own, max((near[t] for t in own), key=len, default=()) or nothing)
        for own in texts
    ]
