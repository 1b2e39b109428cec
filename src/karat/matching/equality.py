"""Matchers that ask whether two things are equal: ids, or texts."""

from dataclasses import dataclass, replace
from functools import partial
from operator import eq
from typing import ClassVar

import numpy as np

from karat.data.arrays import Bools
from karat.data.gold import Gold
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.runs import Labels, Run
from karat.data.sessions import roll_up, roll_up_labels, session_of, source_of
from karat.errors import DataError, ParameterError
from karat.matching.labels import STRANGE_IDS, match_labels
from karat.matching.matcher import Matcher
from karat.matching.normaliser import fold
from karat.matching.pairwise import TextMatcher

__all__ = ["Exact", "Id", "Normalized"]

_HINTS = {
    "session": "does the gold list sessions already? say id(level=session, "
    "gold=session); what separates session and turn in an id is sep",
    "source": "the gold must list what the documents name as their source",
}


@dataclass(frozen=True)
class Id(Matcher):
    """A document satisfies a gold document when their ids are equal.

    In a conversation, documents are turns. `level=session` compares the sessions they
    belong to: what stands before the last separator of their ids. A session is found at
    the rank of its first turn. `level=source` compares the source that a retrieved
    document itself names, such as a file, with the gold's ids.

    Attributes:
        level: what is compared: `turn` (the id itself), `session` or `source`.
        sep: what separates session and turn in an id.
        gold: whether the gold lists `turn` ids or, for `level=session`, sessions.
    """

    name: ClassVar[str] = "id"
    reads: ClassVar[tuple[str, ...]] = ("documents",)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "level": ("turn", "session", "source"),
        "gold": ("turn", "session"),
    }

    level: str = "turn"
    sep: str = "_"
    gold: str = "turn"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.sep:
            raise ParameterError(self.name, "sep", "one character or more", self.sep)

    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matches:
        """Look up the gold's ids in the run."""
        compared, labels = self._keys(run, gold, policies)
        matches = match_labels(
            compared,
            labels,
            judged=judged,
            policies=policies,
            grades=gold.grades if labels is gold.documents else None,
            hint=_HINTS.get(self.level, STRANGE_IDS),
            groups=gold.groups,
        )
        # Of sessions, every turn but the first would seem to be a duplicate.
        return matches if compared is run else replace(matches, run_notices=None)

    def _keys(self, run: Run, gold: Gold, policies: Policies) -> tuple[Run, Labels]:
        """The run and the labels, both by what is compared."""
        labels = _in_order(gold)
        if self.level == "turn":
            return run, labels
        if self.level == "source":
            return roll_up(run, source_of, policies), labels
        session = partial(session_of, sep=self.sep)
        if self.gold == "turn":
            if gold.groups:
                raise DataError(
                    "turns that are alternatives cannot be rolled up to sessions",
                    path=gold.name,
                    hint="list sessions as gold, and say id(level=session, "
                    "gold=session)",
                )
            labels = roll_up_labels(labels, session)
        return roll_up(run, lambda d: session(d.id or d.text or ""), policies), labels


@dataclass(frozen=True)
class Exact(TextMatcher):
    """A document satisfies a gold passage when their texts are equal."""

    name: ClassVar[str] = "exact"
    reads: ClassVar[tuple[str, ...]] = ("passages",)

    def satisfied(self, golds: list[str], documents: list[str]) -> Bools:
        """Whether both texts of each pair are equal."""
        return np.fromiter(map(eq, golds, documents), np.bool_, len(golds))


@dataclass(frozen=True)
class Normalized(Exact):
    """A document satisfies a gold passage when their texts are equal, looks aside.

    White space, case, quotes, dashes, Markdown marks and the like make no difference.
    """

    name: ClassVar[str] = "normalized"

    def read_document(self, text: str) -> str:
        """The text in normal form."""
        return fold(text)

    def read_gold(self, text: str) -> tuple[str, ...]:
        """The text in normal form."""
        return (fold(text),)


def _in_order(gold: Gold) -> Labels:
    """The ids of every query of the gold, in its order, none where it has none."""
    labels = gold.documents
    queries = gold.queries
    if len(labels) == len(queries) and list(labels) == queries:
        return labels
    return {query: labels.get(query, {}) for query in queries}
