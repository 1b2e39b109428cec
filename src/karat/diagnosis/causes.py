"""The cause of each miss, looked for in the order of `CAUSES`."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from karat.data.gold import Gold
from karat.data.queries import Query
from karat.data.runs import Document
from karat.diagnosis.misses import CAUSES, Miss, Related
from karat.matching.near_misses import OtherForm, other_forms

__all__ = ["Examiner", "Missed", "is_multi_hop"]

# A question that takes more documents than this is broad, and not one of several hops.
_MOST_HOPS = 5
_HOPS = ("hop", "multi", "bridge")


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


class Examiner:
    """Looks for causes with what is given.

    Args:
        gold: what should have been retrieved.
        facts: what is known of the queries.
        kept: the documents of each query, in rank order.
        k: the cutoff.
        ids: whether gold is ids, and not texts.
        candidates: query -> rank of each gold item before reranking, if given.
    """

    def __init__(
        self,
        gold: Gold,
        facts: Mapping[str, Query],
        kept: Mapping[str, Sequence[Document]],
        k: int,
        *,
        ids: bool,
        candidates: Mapping[str, Mapping[str, int | None]] | None,
    ) -> None:
        self.gold, self.facts, self.kept, self.k = gold, facts, kept, k
        self.ids, self.candidates = ids, candidates

    def not_examined(self) -> dict[str, str]:
        """The causes that need what is not given, and what they need."""
        return {
            name: cause.needs
            for name, cause in CAUSES.items()
            if cause.needs
            and not (cause.needs == "--candidates" and self.candidates is not None)
        }

    def examine(self, missed: Sequence[Missed]) -> list[Miss]:
        """Each miss with its cause."""
        forms = self._other_forms(missed) if self.ids else {}
        return [self._examine(one, forms) for one in missed]

    def _examine(self, one: Missed, forms: Mapping[tuple[str, str], OtherForm]) -> Miss:
        if (form := forms.get((one.query, one.name))) is not None:
            return self._wrong_id(one, form)
        if (dropped := self._dropped(one)) is not None:
            return dropped
        if one.rank:
            return Miss(
                one.query,
                one.name,
                "below k",
                f"at rank {one.rank}, below k = {self.k}",
                f"k = {one.rank} finds it, and so would a better order",
                rank=one.rank,
                needed_k=one.rank,
            )
        if is_multi_hop(one, self.facts.get(one.query)):
            return Miss(
                one.query,
                one.name,
                "partial multi-hop",
                f"{one.found} of {one.relevant} gold items are in the top {self.k}",
                CAUSES["partial multi-hop"].action,
            )
        depth = len(self.kept.get(one.query, ()))
        return Miss(
            one.query,
            one.name,
            "never retrieved",
            f"not among {depth} documents retrieved"
            if depth
            else "nothing was retrieved for the query",
            CAUSES["never retrieved"].action,
        )

    def _other_forms(
        self, missed: Sequence[Missed]
    ) -> dict[tuple[str, str], OtherForm]:
        """Gold ids that were retrieved in another form, by query and item."""
        wanted: dict[str, dict[str, str]] = {}
        for one in missed:
            if not one.rank:
                members = self._members(one)
                wanted.setdefault(one.query, {}).update(
                    dict.fromkeys(members, one.name)
                )
        found: dict[tuple[str, str], OtherForm] = {}
        for query, names in wanted.items():
            labels = self.gold.documents.get(query, {})
            for form in other_forms({*names}, self.kept.get(query, ())):
                if form.found not in labels:
                    found.setdefault((query, names[form.wanted]), form)
        return found

    def _members(self, one: Missed) -> list[str]:
        """The ids of an item: its own, or those of the documents of its group."""
        groups = self.gold.groups.get(one.query, {})
        own = [name for name, group in groups.items() if group == one.name]
        return own or [one.name]

    def _wrong_id(self, one: Missed, form: OtherForm) -> Miss:
        ranking = self.kept.get(one.query, ())
        rank = next((r for r, d in enumerate(ranking, 1) if d.id == form.found), None)
        where = f" at rank {rank}" if rank else ""
        return Miss(
            one.query,
            one.name,
            "wrong id form",
            f"{form.wanted!r:.60} is there as {form.found!r:.60}, {form.how}{where}",
            "write the id in gold and run in the same form",
            needed_k=rank,
            related=(Related(id=form.found, rank=rank),),
        )

    def _dropped(self, one: Missed) -> Miss | None:
        """The miss, if the reranker moved it out of the top k or lost it."""
        rank = (self.candidates or {}).get(one.query, {}).get(one.name)
        if rank is None or (rank > self.k and one.rank):
            return None
        after = f"at rank {one.rank}" if one.rank else "not"
        return Miss(
            one.query,
            one.name,
            "dropped by the reranker",
            f"at rank {rank} of the candidates, and {after} in what came of them",
            f"k = {one.rank} finds it" if one.rank else CAUSES[_DROPPED].action,
            rank=one.rank or None,
            needed_k=one.rank or None,
            facts={"candidate_rank": rank},
        )


_DROPPED = "dropped by the reranker"


def is_multi_hop(one: Missed, fact: Query | None) -> bool:
    """Whether part of what a question needs was found, and it takes a few documents."""
    if not one.found:
        return False
    return one.relevant <= _MOST_HOPS or is_declared_multi_hop(one.query, fact)


def is_declared_multi_hop(query: str, fact: Query | None) -> bool:
    """Whether a query says itself that it takes several hops, by its id or tags."""
    words = [query]
    if fact is not None:
        values = (str(v) for v in fact.metadata.values() if isinstance(v, str))
        words += [*fact.tags, *values, *(n for n in fact.metadata if "hops" in n)]
    return any(hint in word.casefold() for word in words for hint in _HOPS)
