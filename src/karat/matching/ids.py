"""The matcher of ids: of documents, of the sessions of turns, or of sources."""

from collections import Counter
from collections.abc import Callable, Mapping, Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from karat.data.gold import Gold
from karat.data.matches import Matches
from karat.data.memory_runs import DocumentRun, RankedRun
from karat.data.policies import Policies
from karat.data.runs import Document, Labels, Notice, Run
from karat.errors import DataError, MismatchError, ParameterError
from karat.matching import Matcher
from karat.matching.id_forms import parents
from karat.matching.to_hits import match_labels


def session_of(turn: str, sep: str = "_") -> str:
    """The session a turn's id names: all that stands before its last separator."""
    return turn.rpartition(sep)[0] or turn


def source_of(document: Document) -> str:
    """The source that a document itself says it comes from."""
    if document.source is None:
        raise DataError(
            f"document {document.id or document.text or ''!r:.60} names no source",
            hint="level=source needs a field such as source beside each document's id",
        )
    return document.source


def roll_up(
    run: Run, session: Callable[[Document], str], policies: Policies
) -> RankedRun:
    """The run with every document known by its session.

    A session keeps the rank of its first turn; how its later turns are treated is the
    policy on duplicates. `collapse` lets k count sessions instead of turns, which is
    the growing cutoff of LongMemEval.
    """
    rankings = {
        query: [replace(d, id=session(d), score=None) for d in documents]
        for query, documents in run.rankings(policies)
    }
    return DocumentRun(rankings, run.name).ids


def roll_up_labels(labels: Labels, session: Callable[[str], str]) -> Labels:
    """The labels of sessions: the best grade among the turns of each."""
    rolled: dict[str, dict[str, float]] = {}
    for query, row in labels.items():
        best = rolled[query] = dict[str, float]()
        for turn, grade in row.items():
            name = session(turn)
            best[name] = max(grade, best.get(name, grade))
    return rolled


_HINTS = {
    "session": "does the gold list sessions already? say id(level=session, "
    "gold=session); what separates session and turn in an id is sep",
    "document": "documents and chunks of them must begin alike, as d7 and d7_2 do",
    "source": "the gold must list what the documents name as their source",
}


@dataclass(frozen=True)
class Id(Matcher):
    """A document satisfies a gold document when their ids are equal.

    In a conversation, documents are turns. `level=session` compares the sessions they
    belong to: what stands before the last separator of their ids. A session is found at
    the rank of its first turn. `level=document` compares documents, where one side has
    chunks of them: a chunk's id is the document's, a mark, and more (`d7_2`, `d7:4-9`,
    `a.pdf_page_3`). `level=source` compares the source that a retrieved document itself
    names, such as a file, with the gold's ids.

    Attributes:
        level: what is compared: `turn` (the id itself), `session`, `document` or
            `source`.
        sep: what separates session and turn in an id.
        gold: whether the gold lists `turn` ids or, for `level=session`, sessions.
    """

    name: ClassVar[str] = "id"
    reads: ClassVar[tuple[str, ...]] = ("documents",)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "level": ("turn", "session", "document", "source"),
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
        labels: Labels = gold.columns
        if (queries := gold.queries) != gold.columns.ids:
            labels = {query: gold.documents.get(query, {}) for query in queries}
        how: dict[str, Any] = {
            "judged": judged,
            "policies": policies,
            "groups": gold.groups,
        }
        if self.level == "turn":
            subtopics = None if gold.groups else gold.subtopics
            return match_labels(run, labels, subtopics=subtopics, **how)
        rolled, labels, notices = self._rolled(run, gold, labels, policies)
        matches = match_labels(rolled, labels, hint=_HINTS[self.level], **how)
        # Of sessions, every turn but the first would seem to be a duplicate.
        notices = (*matches.notices, *notices)
        return replace(matches, run_notices=None, notices=notices)

    def _rolled(
        self, run: Run, gold: Gold, labels: Labels, policies: Policies
    ) -> tuple[Run, Labels, tuple[Notice, ...]]:
        """The run and the labels by what is compared, and what is odd about it."""
        if self.level == "source":
            return roll_up(run, source_of, policies), labels, ()
        if self.level == "document":
            return *_by_document(run, labels, policies), ()
        sessions: dict[str, str] = {}

        def session(turn: str) -> str:
            return sessions.setdefault(turn, session_of(turn, self.sep))

        if self.gold == "turn":
            if gold.groups:
                raise DataError(
                    "turns that are alternatives cannot be rolled up to sessions",
                    path=gold.name,
                    hint="list sessions as gold, and say id(level=session, "
                    "gold=session)",
                )
            labels = roll_up_labels(labels, session)
        rolled = roll_up(run, lambda d: session(d.id or d.text or ""), policies)
        if not policies.force:
            self._check(sessions, run)
        return rolled, labels, _merged(sessions)

    def _check(self, sessions: Mapping[str, str], run: Run) -> None:
        """Refuse ids that are sessions already: all of them would be one."""
        if len(sessions) > 1 and len({*sessions.values()}) == 1:
            some = sorted(sessions)[:3]
            raise MismatchError(
                f"level=session makes all ids one session, {sessions[some[0]]!r}: "
                f"{', '.join(map(repr, some))}",
                path=run.name,
                hint="ids that are sessions already are compared by match='id'; what "
                "separates session and turn is sep, as in id(level=session, sep=:)",
            )


def _by_document(run: Run, labels: Labels, policies: Policies) -> tuple[Run, Labels]:
    """Both with chunks known by the documents that the other one has."""
    wanted = {name for row in labels.values() for name in row}
    ranked = DocumentRun(dict(run.rankings(policies)), run.name)
    there = {d.id or "" for row in ranked.by_query.values() for d in row}

    def whole(name: str, others: AbstractSet[str]) -> str:
        if name in others:
            return name
        return next((parent for parent in parents(name) if parent in others), name)

    rolled = roll_up(ranked, lambda d: whole(d.id or d.text or "", wanted), policies)
    return rolled, roll_up_labels(labels, lambda name: whole(name, there))


def _merged(sessions: Mapping[str, str]) -> tuple[Notice, ...]:
    """That ids may be sessions already: none has a turn, or no session has a number."""
    if sessions and all(turn == session for turn, session in sessions.items()):
        what = "ids have no turn behind a separator: is it another one (sep=...)?"
        return (Notice("sessions", len(sessions), what, (*sessions,)[:3]),)
    own = Counter(sessions.values())
    merged = {t: s for t, s in sessions.items() if own[s] > 1}
    if not merged or any(map(str.isdigit, "".join(merged.values()))):
        return ()
    some = tuple(f"{t!r:.40} as {s!r:.40}" for t, s in [*merged.items()][:3])
    what = "ids are compared without their turn: are they sessions already?"
    return (Notice("sessions", len(merged), what, some),)
