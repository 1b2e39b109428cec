"""Runs of documents with their texts."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from karat.data.policies import Policies
from karat.data.rankings.held import HeldRun
from karat.data.rankings.ranked import RankedRun
from karat.data.runs import Document, Labels, Located, Notice

__all__ = ["DocumentRun"]


class DocumentRun(HeldRun[Sequence[Document]]):
    """A run of documents with their texts; the order given is the rank."""

    @cached_property
    def ids(self) -> RankedRun:
        """The same run by document id; a document without one is known by its text."""
        return self._by(lambda d: d.text if d.id is None else d.id)

    @cached_property
    def texts(self) -> RankedRun:
        """The same run by document text."""
        return self._by(lambda document: document.text)

    def _by(self, key: Callable[[Document], str | None]) -> RankedRun:
        return RankedRun(
            {
                query: [key(d) or "" for d in docs]
                for query, docs in self._rankings.items()
            },
            self.name,
        )

    def sample_ids(self) -> list[str]:
        """A few document ids, to show what they look like."""
        return self.ids.sample_ids()

    def holds_any(self, documents: set[str]) -> bool:
        """Whether any of the documents occurs for any query."""
        return self.ids.holds_any(documents)

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents at their first position."""
        return self.ids.locate(labels, judged=judged, policies=policies)

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents in list order."""
        del policies
        for query, ranking in self._rankings.items():
            yield query, list(ranking)

    def notices(self, labels: Labels, policies: Policies) -> tuple[Notice, ...]:
        """Repeated documents and queries without labels."""
        return self.ids.notices(labels, policies)
