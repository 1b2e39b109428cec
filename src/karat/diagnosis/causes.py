"""The cause of each miss, looked for in the order of `CAUSES`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from statistics import median
from typing import Any, Final

from rapidfuzz.fuzz import partial_ratio, ratio

from karat.data.queries import Query
from karat.data.tables import counted
from karat.diagnosis.corpus_search import ALIKE, similarity
from karat.diagnosis.diagnosis import CAUSES, Miss, Related
from karat.diagnosis.evidence import ENOUGH, Given, Missed
from karat.matching.coverage.alphabet import Source

# A question that takes more documents than this is broad, and not one of several hops.
_MOST_HOPS = 5
_HOPS: Final = re.compile(r"(?i)(?:\d|multi|\b)[-_ ]?hops?(?![a-z])|multi[-_ ]?step")
# Search by words finds what it ranks at least so high.
_GOOD_RANK = 10
# So many letters in common are no accident.
_LONG = 40
# From which share or similarity on a text is nearly the gold's.
_HALF, _SIMILAR, _NEAR = 0.5, 0.7, 0.78
# How alike it must be, and how much more than others, to stand out from them.
_ODD, _MARGIN = 0.55, 0.15
# So many letters of a title may stand before the text of a chunk.
_HEADER = 200
_SHOWN, _FEW_WORDS, _WORDS = 5, 12, 2000
_ABSENT = "not in the corpus"


@dataclass(frozen=True)
class Examiner:
    """Looks for causes with what is given.

    Attributes:
        given: rankings, gold and corpus.
        k: the cutoff.
        candidates: query -> rank of each gold item before reranking, if given.
    """

    given: Given
    k: int
    candidates: Mapping[str, Mapping[str, int | None]] | None = None

    def not_examined(self) -> dict[str, str]:
        """The causes that need what is not given, and what they need."""
        given, by_words = self.given, self.given.words is not None
        examined = {
            _ABSENT: given.corpus is not None and not given.judged,
            "dropped by the reranker": self.candidates is not None,
            "embedding miss": by_words,
            "lexical gap": by_words,
        }
        needs = {
            name: cause.needs
            for name, cause in CAUSES.items()
            if cause.needs and not examined.get(name, given.has_texts)
        }
        if given.corpus is not None and given.has_questions and not by_words:
            install = "search by words: pip install 'karat[bm25]'"
            needs |= dict.fromkeys(("embedding miss", "lexical gap"), install)
        return needs

    def examine(self, missed: Sequence[Missed]) -> list[Miss]:
        """Each miss with its cause."""
        order = (
            *(self._wrong_id, self._no_document, self._twin, self._split),
            *(self._displaced, self._dropped, self._below, self._near_miss),
            *(self._no_text, self._not_found),
        )
        misses = []
        for one in self.given.know(missed):
            miss = next(filter(None, (cause(one) for cause in order)))
            text = one.ranked or one.homes
            misses.append(replace(miss, text=text.gold) if text else miss)
        return misses

    def _wrong_id(self, one: Missed) -> Miss | None:
        form, shares = one.form, one.ranked
        if form is None or (shares and not shares.whole and shares.fragments(self.k)):
            return None
        ranking = self.given.kept.get(one.query, ())
        rank = next((r for r, d in enumerate(ranking, 1) if d.id == form.found), None)
        where = f" at rank {rank}" if rank else ", in the corpus"
        return self._miss(
            one,
            "wrong id form",
            f"{form.wanted!r:.60} is there as {form.found!r:.60}, {form.how}{where}",
            needed_k=rank,
            related=(Related(id=form.found, rank=rank),),
        )

    def _no_document(self, one: Missed) -> Miss | None:
        """The miss, if no document of the corpus has the id, or it has no text."""
        if not self.given.ids or self.given.corpus is None or one.rank:
            return None
        there = [name for name in one.ids if name in self.given.corpus]
        if any(Source(self.given.corpus[name]).letters for name in there):
            return None
        reason = "no document of the corpus has this id"
        if there:
            reason = "lost in parsing: its text is empty"
        return self._miss(one, _ABSENT, reason)

    def _twin(self, one: Missed) -> Miss | None:
        """The miss, if a document in the top k says the same and is not labelled so."""
        shares = one.ranked
        if not self.given.ids or shares is None:
            return None
        labels = self.given.gold.documents.get(one.query, {})
        long = len(shares.passage.gold.letters) >= _LONG
        for number in shares.ranked(self.k):
            document = shares.documents[number]
            label = labels.get(document.id or "")
            if document.id in one.ids or (label is not None and label <= 0):
                continue
            alike = similarity(shares.gold, document.text or "")
            holds = long and shares.share(number) >= ENOUGH
            if (alike >= ALIKE or holds) and not shares.differs(number):
                how = f"{alike:.0%} alike" if alike >= ALIKE else "contains its text"
                who = "not labelled" if label is None else "labelled as another item"
                twin = shares.related(number, rank=number + 1, similarity=alike)
                return self._miss(
                    one,
                    "unlabelled twin retrieved",
                    f"{document.id!r:.60} at rank {number + 1} says the same ({how}) "
                    f"and is {who}",
                    related=(twin,),
                )
        return None

    def _split(self, one: Missed) -> Miss | None:
        """The miss, if the top k has a fragment, and only chunks together the whole."""
        shares, homes = one.ranked, one.homes
        if shares is None or shares.whole or (self.given.ids and one.rank):
            return None
        if homes is not None and homes.whole:
            return None
        every = shares.fragments(None, _HEADER)
        top = [number for number in every if number < self.k]
        union = shares.union(every)
        if homes is not None:
            union = max(union, homes.union(homes.fragments(None, _HEADER)))
        elif union < ENOUGH and not one.rank:
            # Nobody knows what other chunks there are: half of it must be here, or
            # the corpus must have the whole and not the chunks.
            top = every = shares.fragments(self.k)
            corpus = self.given.corpus
            chunks = [n for n in top if shares.documents[n].id not in (corpus or ())]
            known_whole = corpus is not None and len(chunks) == len(top)
            union = 1.0 if known_whole or shares.union(top) >= _HALF else 0.0
        if not top or union < ENOUGH:
            return None
        part = shares.union(top)
        return self._miss(
            one,
            "split over chunks",
            f"the top {self.k} has {part:.0%} of it, in {counted(len(top), 'chunk')} "
            "cut within it",
            related=tuple(shares.related(n, rank=n + 1) for n in every[:_SHOWN]),
            facts={"coverage": part, "union_coverage": shares.union(every)},
        )

    def _displaced(self, one: Missed) -> Miss | None:
        """The miss, if it would be in the top k without near-duplicates above it."""
        if not one.rank:
            return None
        above = self.given.kept.get(one.query, [])[: one.rank - 1]
        first: dict[object, int] = {}
        again = []
        for number, document in enumerate(above):
            key = self.given.groups.get(document.text or "", document.id)
            if first.setdefault(key, number) != number:
                again.append((number, first[key]))
        rank = one.rank - len(again)
        if rank > self.k:
            return None
        pairs = ((n, above[n], above[other]) for n, other in again[:_SHOWN])
        return self._miss(
            one,
            "displaced by near-duplicates",
            f"at rank {one.rank}, and at {rank} without "
            f"{counted(len(again), 'near-duplicate')} of documents above it",
            related=tuple(
                Related(d.id, n + 1, d.text, similarity(d.text or "", o.text or ""))
                for n, d, o in pairs
            ),
            facts={"rank_without_duplicates": rank},
        )

    def _dropped(self, one: Missed) -> Miss | None:
        """The miss, if the reranker moved it out of the top k or lost it."""
        rank = (self.candidates or {}).get(one.query, {}).get(one.name)
        if rank is None or (rank > self.k and one.rank):
            return None
        after = f"at rank {one.rank}" if one.rank else "not"
        return self._miss(
            one,
            "dropped by the reranker",
            f"at rank {rank} of the candidates, and {after} in what came of them",
            facts={"candidate_rank": rank},
        )

    def _below(self, one: Missed) -> Miss | None:
        reason = f"at rank {one.rank}, below k = {self.k}"
        return self._miss(one, "below k", reason) if one.rank else None

    def _near_miss(self, one: Missed) -> Miss | None:
        """The miss, if a text in the top k is nearly that of the item."""
        shares, homes = one.ranked, one.homes
        if self.given.ids or shares is None:
            return None
        top = {document.id for document in shares.documents[: self.k]}
        whole = [] if homes is None else [homes.documents[n].id for n in homes.whole]
        if whole and top.isdisjoint(whole):
            # The corpus has the text as it is: another one is another document.
            return None
        letters = shares.passage.gold.letters
        alike = [
            _window(letters, text.letters) if len(letters) >= _LONG // 2 else 0.0
            for text in shares.passage.documents[: self.k]
        ]
        best, number = 0.0, -1
        for place, own in enumerate(alike):
            share = shares.share(place)
            # Texts of one kind are all alike: a near miss stands out from the others.
            others = alike[:place] + alike[place + 1 :]
            usual = median(others) if len(others) > 1 else _HALF
            stands_out = own >= max(_ODD, usual + _MARGIN)
            near = max(own, share + _NEAR - _HALF) >= _NEAR or stands_out
            if (near or min(own, 2 * share) >= _SIMILAR) and max(share, own) > best:
                best, number = max(share, own), place
        if number < 0:
            return None
        if homes is not None and not whole and shares.is_fragment(number):
            # It is as it should be as far as it goes: the rest was lost.
            return None
        near_one = shares.related(number, rank=number + 1, similarity=best)
        differs = near_one.differs or _changes(shares.gold, near_one.text or "")
        name = "a text" if near_one.id is None else repr(near_one.id)
        return self._miss(
            one,
            "near miss in text",
            f"{name} at rank {number + 1} has {best:.0%} of it",
            related=(replace(near_one, differs=differs),),
            facts={"similarity": best},
        )

    def _no_text(self, one: Missed) -> Miss | None:
        """The miss, if the corpus does not have all of its text."""
        if one.homes is None or (union := one.homes.union()) >= ENOUGH:
            return None
        own = one.homes.ranked()[:1]
        related = tuple(one.homes.related(number, rank=None) for number in own)
        closest_one = "".join(f"; the closest is {near.id!r}" for near in related)
        lost = "lost in parsing: " if union >= _HALF else ""
        return self._miss(
            one,
            _ABSENT,
            f"{lost}the corpus has {union:.0%} of it{closest_one}",
            related=related,
            facts={"coverage": union},
        )

    def _not_found(self, one: Missed) -> Miss:
        """The miss, as search did not find what is there."""
        depth, fact = self.given.depth.get(one.query), self.given.facts.get(one.query)
        if not depth:
            reason = "nothing was retrieved for the query"
            return self._miss(one, "never retrieved", reason)
        rank, tried = self._lexical_rank(one, fact)
        words = "search by words (BM25) does not find it"
        if rank is not None:
            words = f"search by words (BM25) has it at rank {rank}"
        part = f"{one.found} of {one.relevant} gold items are in the top {self.k}"
        hops = f"{part}; {words}" if tried else part
        if one.found and _says_multi_hop(one.query, fact):
            cause, reason = "partial multi-hop", hops
        elif rank is not None and rank <= max(self.k, _GOOD_RANK):
            cause, reason = "embedding miss", words
        elif one.found and one.relevant <= _MOST_HOPS:
            cause, reason = "partial multi-hop", hops
        elif tried:
            cause, reason = "lexical gap", words
        else:
            cause = "never retrieved"
            reason = f"not among {counted(depth, 'document')} retrieved"
        told = {} if rank is None else {"bm25_rank": rank}
        return self._miss(one, cause, reason, facts=told)

    def _lexical_rank(self, one: Missed, fact: Query | None) -> tuple[int | None, bool]:
        """Where search by words finds the item, and whether that could be tried."""
        homes = [*one.ids]
        if one.homes is not None:
            own = one.homes.whole or one.homes.ranked()
            homes = [one.homes.documents[n].id or "" for n in own]
        if self.given.words is None or fact is None or not fact.text or not homes:
            return None, False
        return self.given.words.rank(fact.text, homes), True

    def _miss(self, one: Missed, cause: str, reason: str, **more: Any) -> Miss:
        more = {"rank": one.rank or None, "needed_k": one.rank or None, **more}
        fix = CAUSES[cause].action
        if more["needed_k"] and more["needed_k"] > self.k:
            fix += f"; k = {more['needed_k']} finds it, too"
        return Miss(one.query, one.name, cause, reason, fix, **more)


def _changes(gold: str, text: str) -> tuple[str, ...]:
    """The first words that a text has in place of others.

    Example:
        >>> _changes("Open until 6 on Mondays.", "It is open until 5 on Mondays.")
        ('6 -> 5',)
    """
    ours, theirs = gold.split()[:_WORDS], text.split()[:_WORDS]
    mine, other = ([word.casefold() for word in words] for words in (ours, theirs))
    aligned = SequenceMatcher(None, mine, other, autojunk=False)
    changes = [
        f"{' '.join(ours[a:b])} -> {' '.join(theirs[c:d])}"
        for how, a, b, c, d in aligned.get_opcodes()
        if how == "replace" and a > 0 and max(b - a, d - c) <= _FEW_WORDS
    ]
    return tuple(changes[:_SHOWN])


def _window(gold: str, document: str) -> float:
    """How alike a gold text is to the part of a document that is most like it."""
    alike = partial_ratio if len(document) > len(gold) else ratio
    return alike(gold, document) / 100


def _says_multi_hop(query: str, fact: Query | None) -> bool:
    """Whether a query says itself that it takes several hops, by its id or tags."""
    words = [query, *(fact.tags if fact else ())]
    for name, value in fact.metadata.items() if fact else ():
        words += [name, value] if isinstance(value, str) else [name]
    return any(map(_HOPS.search, words))
