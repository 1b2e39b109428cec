"""What is known of each miss before its cause is looked for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from karat.data.gold import Gold
from karat.data.runs import Document
from karat.diagnosis.corpus_search import LexicalRanks, closest
from karat.diagnosis.near_duplicates import group_alike
from karat.diagnosis.text_evidence import Shares, compare_with
from karat.errors import MismatchError, MissingExtraError
from karat.matching.coverage.measure import read_targets
from karat.matching.near_misses import OtherForm, other_forms
from karat.matching.texts import wanted_items
from karat.results.evaluation import Evaluation

__all__ = [
    "Given",
    "Known",
    "Missed",
    "check_corpus",
    "corpus_shares",
    "gold_of",
    "item_texts",
]

# So many documents of a ranking are read.
_READ = 100


class Missed(NamedTuple):
    """A relevant gold item that is not in the top k.

    Attributes:
        query: id of the query.
        name: of the item.
        rank: its first rank, which is below k; 0: it was not retrieved.
        found: how many relevant items of the query are in the top k.
        relevant: how many there are.
    """

    query: str
    name: str
    rank: int
    found: int
    relevant: int


class Known(NamedTuple):
    """What is known of a miss.

    Attributes:
        ids: of the documents that are the item, where gold is ids.
        form: its id as it was found in another form.
        ranked: what the documents retrieved have of its text.
        homes: what the closest documents of the corpus have of it.
    """

    ids: tuple[str, ...] = ()
    form: OtherForm | None = None
    ranked: Shares | None = None
    homes: Shares | None = None


class Given:
    """What was handed over: rankings, gold and corpus, as far as there are any.

    Args:
        result: the evaluation, with the documents that it kept.
        matcher: the matcher whose misses are examined.
        corpus: texts of all documents by id, if given.
    """

    def __init__(
        self, result: Evaluation, matcher: str, corpus: Mapping[str, str] | None
    ) -> None:
        self.gold = gold_of(result)
        self.facts, self.corpus = result.facts, corpus
        self.ids, self.judged = matcher.startswith("id"), matcher.startswith("claims")
        counts = result.matches[matcher].hits.retrieved.tolist()
        self.depth = dict(zip(result.queries, counts, strict=True))
        texts = corpus or {}
        self.kept = {
            query: [
                d if d.text is not None else replace(d, text=texts.get(d.id or ""))
                for d in documents
            ]
            for query, documents in result.kept.items()
        }
        self.has_texts = not self.judged and any(
            d.text is not None for row in self.kept.values() for d in row
        )
        self.has_questions = any(fact.text for fact in self.facts.values())

    def know(self, missed: Sequence[Missed]) -> Iterator[Known]:
        """What is known of each miss."""
        ids = [self._members(one) if self.ids else () for one in missed]
        forms = self._other_forms(missed, ids)
        ranked: list[Shares | None] = [None] * len(missed)
        homes = ranked
        if self.has_texts:
            texts = [self._texts(*pair) for pair in zip(missed, ids, strict=True)]
            rows = [self.kept.get(one.query, [])[:_READ] for one in missed]
            ranked = _best_shares(texts, rows)
            if self.corpus is not None and not self.ids:
                pairs = zip(missed, texts, strict=True)
                lost = [() if one.rank else own for one, own in pairs]
                homes = corpus_shares(lost, self.corpus)
        return map(Known, ids, forms, ranked, homes)

    @cached_property
    def groups(self) -> dict[str, int]:
        """Text -> a number that near-duplicates share."""
        rows = (row[:_READ] for row in self.kept.values())
        texts = list(dict.fromkeys(d.text for row in rows for d in row if d.text))
        return dict(zip(texts, group_alike(texts), strict=True))

    @cached_property
    def words(self) -> LexicalRanks | None:
        """Search by words, where the corpus, questions and what it takes are there."""
        if self.corpus is None or not self.has_questions or self.judged:
            return None
        try:
            return LexicalRanks(self.corpus)
        except MissingExtraError:
            return None

    def _members(self, one: Missed) -> tuple[str, ...]:
        """The ids of an item: its own, or those of the documents of its group."""
        groups = self.gold.groups.get(one.query, {})
        own = [name for name, group in groups.items() if group == one.name]
        return tuple(own) or (one.name,)

    def _texts(self, one: Missed, ids: Sequence[str]) -> tuple[str, ...]:
        """What the item says, in any of its forms."""
        if not self.ids:
            return item_texts(self.gold, one.query, self.corpus).get(one.name, ())
        known = ((self.corpus or {}).get(name) or self._seen.get(name) for name in ids)
        return tuple(text for text in known if text)

    @cached_property
    def _seen(self) -> dict[str, str]:
        """The texts of documents retrieved for any query, by id."""
        documents = (d for row in self.kept.values() for d in row)
        return {d.id: d.text for d in documents if d.id is not None and d.text}

    def _other_forms(
        self, missed: Sequence[Missed], ids: Sequence[tuple[str, ...]]
    ) -> list[OtherForm | None]:
        """For each miss, its id in another form, as retrieved or as in the corpus."""
        corpus = self.corpus or {}
        wanted: dict[str, set[str]] = {}
        for one, members in zip(missed, ids, strict=True):
            if not one.rank:
                wanted.setdefault(one.query, set()).update(members)
        lost = {n for names in wanted.values() for n in names if n not in corpus}
        everywhere = {form.wanted: form for form in other_forms(lost, corpus)}
        found: dict[tuple[str, str], OtherForm] = {}
        for query, names in wanted.items():
            found |= {(query, n): everywhere[n] for n in names if n in everywhere}
            labels = self.gold.documents.get(query, {})
            for form in other_forms(names, self.kept.get(query, ())):
                # Where the corpus has both, they are two documents.
                two = form.wanted in corpus and form.found in corpus
                if form.found not in labels and not two:
                    found[query, form.wanted] = form
        return [
            next(
                (found[key] for n in members if (key := (one.query, n)) in found), None
            )
            for one, members in zip(missed, ids, strict=True)
        ]


def check_corpus(names: set[str], corpus: Mapping[str, str]) -> None:
    """Refuse a corpus that has none of the documents, in whatever form of their ids.

    Raises:
        MismatchError: the corpus is of something else.
    """
    if names and names.isdisjoint(corpus) and not any(other_forms(names, corpus)):
        raise MismatchError(
            f"the corpus has no document of the gold or the run: its ids are such as "
            f"{next(iter(corpus))!r:.60}, theirs {min(names)!r:.60}",
            hint="a corpus has the texts of documents by id; is this another file?",
        )


def gold_of(result: Evaluation) -> Gold:
    """The gold of an evaluation, as far as it kept any."""
    if result.labels is None and "id" in result.matches:
        rows = zip(result.queries, result.matches["id"].labels(), strict=True)
        return Gold(dict(rows))
    return result.labels or Gold()


def item_texts(
    gold: Gold, query: str, corpus: Mapping[str, str] | None = None
) -> dict[str, tuple[str, ...]]:
    """The gold texts of a query by the name of their item, any of which will do.

    Args:
        gold: what should have been retrieved.
        query: id of the query.
        corpus: sources of spans that have offsets and no text.
    """
    found: dict[str, tuple[str, ...]] = {}
    for target in read_targets(gold, query):
        texts = [*target.texts]
        for number, place in enumerate(target.places):
            if texts[number] is None:
                source = (corpus or {}).get(place.source, "")
                texts[number] = source[place.start : place.end]
        found[target.name] = tuple(text for text in texts if text)
    for items, one in ((gold.answers, True), (gold.claims, False)):
        for item in wanted_items(items.get(query, ()), alternatives=one):
            found.setdefault(item.name, item.texts)
    return found


def _best_shares(
    texts: Sequence[tuple[str, ...]], rows: Sequence[Sequence[Document]]
) -> list[Shares | None]:
    """Of each item's texts, what its documents have of the one they have most of."""
    places = [n for n, own in enumerate(texts) for _ in own if rows[n]]
    pairs = [(text, rows[n]) for n, own in enumerate(texts) for text in own if rows[n]]
    best: list[Shares | None] = [None] * len(texts)
    for place, shares in zip(places, compare_with(pairs), strict=True):
        old = best[place]
        if old is None or shares.union([*shares.masks]) > old.union([*old.masks]):
            best[place] = shares
    return best


def corpus_shares(
    texts: Sequence[tuple[str, ...]], corpus: Mapping[str, str]
) -> list[Shares | None]:
    """Of each item's texts, what the documents of a corpus have of it."""
    names = [*corpus]
    every = list(dict.fromkeys(text for own in texts for text in own))
    rows = closest(every, [*corpus.values()])
    near = {
        text: [Document(names[place], corpus[names[place]]) for place in row]
        for text, row in zip(every, rows, strict=True)
    }
    # A text that nothing in the corpus resembles is compared with nothing.
    nothing = [Document(text="")]
    found = [
        max((near[text] for text in own), key=len, default=[]) or nothing
        for own in texts
    ]
    return _best_shares(texts, found)
