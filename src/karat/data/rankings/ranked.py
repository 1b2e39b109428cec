"""Runs given as lists of ids: the place in the list is the rank."""

from collections.abc import Collection, Iterator, Sequence

from karat.data.identity import as_id
from karat.data.policies import Policies
from karat.data.rankings.held import HeldRun, located
from karat.data.runs import Document, Labels, Located, Notice
from karat.errors import DataError

__all__ = ["RankedRun"]

# Below this many labels it is cheaper to intersect first and ask for positions later.
_FEW = 8
# A short ranking is looked up in the labels as they are, a long one in a set of them.
_LONG = 32


class RankedRun(HeldRun[Sequence[str]]):
    """A run given as `{query: [document, ...]}`; the order of the list is the rank."""

    def locate(self, labels: Labels, *, judged: bool, policies: Policies) -> Located:
        """Find labelled documents at their first position."""
        try:
            if policies.duplicates == "keep":
                return self._locate_all(labels, judged=judged)
            run = self if policies.duplicates == "first" else self._distinct(policies)
            return run._locate_first(labels, judged=judged)  # noqa: SLF001
        except TypeError:
            # Optimistic above, precise here: say which id of which query is wrong.
            for query, ranking in self._rankings.items():
                for document in ranking:
                    as_id(document, query=query)
            raise

    def _locate_first(self, labels: Labels, *, judged: bool) -> Located:
        rows, sizes = self._asked(labels, ())
        found: list[int] = []
        places: list[int] = []
        grades: list[float] = []
        for ranking, wanted in zip(rows, labels.values(), strict=True):
            hits: Collection[str]
            if len(wanted) >= _FEW:
                # A grade of 0 is as good as none, unless the judged are asked for.
                known = wanted.__contains__ if judged else wanted.get
                hits = dict.fromkeys(filter(known, ranking))
                place = 0
                for document in hits:
                    # They come in order of rank: go on where the last one stood.
                    place = ranking.index(document, place)
                    places.append(place)
                    grades.append(wanted[document])
            else:
                long = len(ranking) > _LONG
                hits = (
                    {*wanted}.intersection(ranking) if long else wanted.keys() & ranking
                )
                for document in hits:
                    places.append(ranking.index(document))
                    grades.append(wanted[document])
            found.append(len(hits))
        return located(
            found,
            places,
            grades,
            sizes=sizes,
            rankings=self._rankings,
            judged=judged,
        )

    def rankings(self, policies: Policies) -> Iterator[tuple[str, list[Document]]]:
        """Each query's documents in list order."""
        del policies  # a list has no ties
        for query, ranking in self._rankings.items():
            yield query, [Document(id=document) for document in ranking]

    def notices(self, labels: Labels, policies: Policies) -> tuple[Notice, ...]:
        """Repeated documents, numbers among ids and queries without labels."""
        repeated = {
            query: extra
            for query, ranking in self._rankings.items()
            if (extra := len(ranking) - len(set(ranking)))
        }
        return self._told(labels, policies, duplicates=repeated)

    def _locate_all(self, labels: Labels, *, judged: bool) -> Located:
        """Every occurrence of a labelled document is a row of its item."""
        rows, sizes = self._asked(labels, ())
        found: list[int] = []
        places: list[int] = []
        grades: list[float] = []
        items: list[int] = []
        start = 0
        for ranking, wanted in zip(rows, labels.values(), strict=True):
            number = {document: start + i for i, document in enumerate(wanted)}
            start += len(wanted)
            before = len(places)
            for place, document in enumerate(ranking):
                grade = wanted.get(document)
                if grade is not None and (judged or grade > 0):
                    places.append(place)
                    grades.append(grade)
                    items.append(number[document])
            found.append(len(places) - before)
        return located(
            found,
            places,
            grades,
            sizes=sizes,
            rankings=self._rankings,
            items=items,
        )

    def _distinct(self, policies: Policies) -> "RankedRun":
        distinct = {
            query: list(dict.fromkeys(r)) for query, r in self._rankings.items()
        }
        if policies.duplicates == "error":
            for query, ranking in self._rankings.items():
                if len(distinct[query]) < len(ranking):
                    twice = next(d for i, d in enumerate(ranking) if d in ranking[:i])
                    raise DataError(
                        f"document {twice!r} was retrieved more than once",
                        query=query,
                        hint="duplicates='first' scores its first rank only",
                    )
        return RankedRun(distinct, self.name)
