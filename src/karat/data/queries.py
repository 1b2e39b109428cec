"""Queries: what is known of a question besides its gold; and what an input holds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from karat.data.gold import Gold
from karat.data.runs import Notice, Run

DEFAULT_K = 5
"""What the letter in `recall@k` means when neither sample nor caller says."""


@dataclass(frozen=True, slots=True)
class Query:
    """One question and its settings.

    Attributes:
        id: names the query.
        text: what was asked, if known.
        k: the query's own cutoff, taken by metrics spelled with the letter, `recall@k`.
        tags: slices the query belongs to.
        metadata: everything else the input said about it.

    Example:
        >>> from karat.extend import Query
        >>> Query("q1", "How long is a refund?", tags=("refunds",)).tags
        ('refunds',)
    """

    id: str
    text: str | None = None
    k: int | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Dataset:
    """What an input turned out to hold: a run, gold, or both, and what was inferred.

    Attributes:
        run: what was retrieved, if the input says.
        gold: what should have been, if the input says.
        queries: texts, cutoffs and tags, where the input gives any.
        format: the format found, such as `jsonl`.
        mapping: our field name -> the input's field name, as inferred or as told.
        notices: coercions and oddities met while reading.

    Example:
        >>> import karat
        >>> samples = [{"id": 1, "retrieved": ["a"], "relevant": ["a"]}]
        >>> data = karat.read_samples(samples)
        >>> data.run.queries(), data.gold.documents, data.format
        (['1'], {'1': {'a': 1.0}}, 'objects')
    """

    run: Run | None = None
    gold: Gold | None = None
    queries: Mapping[str, Query] = field(default_factory=dict)
    format: str = ""
    mapping: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()

    def copy(self) -> Self:
        """The same with gold that no change to the caller's own can reach."""
        return replace(self, gold=self.gold and self.gold.copy())


class Corpus(Mapping[str, str]):
    """The texts of documents by id.

    Example:
        >>> corpus = Corpus({"d1": "Rye.", "d2": "Oats."}, "corpus.jsonl")
        >>> corpus["d1"], corpus
        ('Rye.', Corpus of 2 documents from corpus.jsonl)
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        name: str = "corpus",
        origins: Mapping[str, tuple[str, int]] | None = None,
        titles: Mapping[str, int] | None = None,
    ) -> None:
        self.name = name
        self._texts = texts
        self._origins, self._titles = origins or {}, titles or {}

    def origin(self, document: str) -> tuple[str, int, int]:
        """The source of a text, where it begins there, and the length of its title.

        It is a source itself, unless it is a chunk that names one and its start there;
        a title that was put in front is not part of the source.
        """
        source, start = self._origins.get(document, (document, 0))
        return source, start, self._titles.get(document, 0)

    def __getitem__(self, document: str) -> str:
        return self._texts[document]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return f"Corpus of {len(self)} documents from {self.name}"
