"""Matchers that ask whether two things are equal: ids, or texts."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np

from karat.data.gold import Gold
from karat.data.hits import Hits
from karat.data.narrowing import narrow
from karat.data.policies import Policies
from karat.data.rankings import DocumentRun
from karat.data.runs import Labels, Run
from karat.errors import MismatchError
from karat.matching.matcher import FirstRanks, Matched, Matcher

__all__ = ["Exact", "Id"]


@dataclass(frozen=True)
class Equality(Matcher):
    """A matcher that looks keys of the gold up in the run."""

    @abstractmethod
    def keys(self, run: Run, gold: Gold) -> tuple[Run, Labels]:
        """The run by the key compared, and the gold's keys with their grades."""

    def match(
        self, run: Run, gold: Gold, *, judged: bool, policies: Policies
    ) -> Matched:
        """Look up the gold's keys in the run."""
        run, labels = self.keys(run, gold)
        return match_labels(run, labels, judged=judged, policies=policies)

    def first_ranks(
        self, run: Run, gold: Gold, policies: Policies
    ) -> Sequence[FirstRanks]:
        """Where each gold key was first found."""
        run, labels = self.keys(run, gold)
        # Numbered instead of graded, every row tells which label it belongs to.
        numbered = {
            query: {key: number + 1.0 for number, key in enumerate(row)}
            for query, row in labels.items()
        }
        located = run.locate(numbered, judged=True, policies=policies)
        ranks: list[dict[str, int | None]] = [dict.fromkeys(r) for r in labels.values()]
        keys = [list(row) for row in labels.values()]
        for query, number, rank in zip(
            located.query.tolist(),
            located.grade.tolist(),
            located.rank.tolist(),
            strict=True,
        ):
            key = keys[query][int(number) - 1]
            ranks[query][key] = min(rank, ranks[query][key] or rank)
        retrieved = np.maximum(located.retrieved, 0).tolist()
        return [FirstRanks(*pair) for pair in zip(ranks, retrieved, strict=True)]


@dataclass(frozen=True)
class Id(Equality):
    """A document satisfies a gold document when their ids are equal."""

    name: ClassVar[str] = "id"
    reads: ClassVar[tuple[str, ...]] = ("documents",)

    def keys(self, run: Run, gold: Gold) -> tuple[Run, Labels]:
        """Document ids on both sides."""
        return run, _in_order(gold, gold.documents)


@dataclass(frozen=True)
class Exact(Equality):
    """A document satisfies a gold passage when their texts are equal."""

    name: ClassVar[str] = "exact"
    reads: ClassVar[tuple[str, ...]] = ("passages",)

    def keys(self, run: Run, gold: Gold) -> tuple[Run, Labels]:
        """Texts on both sides, as if they were ids."""
        labels = {
            query: {item.text: item.grade for item in items}
            for query, items in gold.passages.items()
        }
        texts = run.texts if isinstance(run, DocumentRun) else run
        return texts, _in_order(gold, labels)


def match_labels(
    run: Run, labels: Labels, *, judged: bool, policies: Policies
) -> Matched:
    """Look up labels in a run and lay the rows out as hits."""
    count = np.fromiter(map(len, labels.values()), np.int64, len(labels))
    grade = np.fromiter(
        chain.from_iterable(map(dict.values, labels.values())),  # type: ignore[arg-type]
        np.float64,
        int(count.sum()),
    )
    # Where every label is positive there is nothing to leave out.
    judged = judged or policies.judged_only or not (grade <= 0).any()
    located = run.locate(labels, judged=judged, policies=policies)
    missing = located.retrieved < 0
    if missing.all() and len(labels):
        _refuse_no_common_query(run, labels)
    if policies.depth is not None or policies.judged_only:
        located = narrow(located, policies)
    hits = Hits(
        query=located.query,
        rank=located.rank,
        grade=located.grade,
        gold_count=count,
        gold_grade=grade,
        retrieved=np.maximum(located.retrieved, 0),
        item=located.item,
        judged=judged,
    )
    if not len(hits.query) and not policies.force:
        _refuse_no_common_id(run, labels)
    return Matched(hits, missing, located.extra, located.notices)


def _in_order(gold: Gold, labels: Labels) -> Labels:
    """The labels of every query of the gold, in its order, empty where it has none."""
    if gold.order is None or list(labels) == list(gold.order):
        return labels
    return {query: labels.get(query, {}) for query in gold.order}


def _refuse_no_common_query(run: Run, labels: Labels) -> None:
    raise MismatchError(
        "run and gold have no query in common: "
        f"the run has {_examples(run.queries())}, the gold {_examples(labels)}",
        path=run.name,
        hint="check that both use the same query ids",
    )


def _refuse_no_common_id(run: Run, labels: Labels) -> None:
    wanted = {document for ids in labels.values() for document in ids}
    sample = run.sample_ids()
    if not wanted or not sample or run.holds_any(wanted):
        return
    raise MismatchError(
        "no gold id occurs anywhere in the run: "
        f"the run has {_examples(sample)}, the gold {_examples(wanted)}",
        path=run.name,
        hint="ids of another scheme, or re-chunked documents? match texts instead "
        "(match='exact'), or use force=True (--force) to score it all the same",
    )


def _examples(ids: Iterable[str]) -> str:
    return ", ".join(repr(name[:60]) for name in sorted(ids)[:3]) or "none"
