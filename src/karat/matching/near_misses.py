"""Ids of gold that the run has in another form, looked for where ids do not join."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

from karat.data.arrays import Bools, Ints
from karat.data.gold import ColumnLabels
from karat.data.memory_runs import DocumentRun, RankedRun, ScoredRun
from karat.data.runs import Labels, Notice, Run
from karat.matching.id_forms import ALIKE, OtherForm, other_forms

# To see whether there is anything to count, the first ids of some rankings do.
_FIRST = 25
_PROBE = 500
_FEW = 50
_IN_MEMORY = (DocumentRun, RankedRun, ScoredRun)
_MOST = 200_000
_MARKS = "/\\ #:@|?%'\".+-_=&,;[]()"
# What ids with several forms have, where all have as many marks.
_ODD = re.compile(r"[/\\ \t\r%'\"]|^\d+\.0|\d[eE]\+\d|\.[a-z]\w{0,3}$", re.MULTILINE)
_DIGITS = re.compile(r"^\d+$", re.MULTILINE)


def near_miss_notices(
    run: Run, labels: ColumnLabels, missed: Bools
) -> tuple[Notice, ...]:
    """What is to be said of relevant ids that only another form of id would find."""
    every = missed.nonzero()[0]
    if not len(every):
        return ()
    queries, names, query_of = labels.ids, labels.names, labels.grades.query

    def pairs(rows: Ints) -> tuple[list[str], list[str]]:
        number = query_of[rows].tolist()
        return [queries[n] for n in number], [names[row] for row in rows.tolist()]

    if isinstance(run, _IN_MEMORY):
        some, head = pairs(every[:_FEW]), run
    else:
        # Of a file, what comes first is looked at, whichever queries that are.
        head = RankedRun(run.ids_of(_All(), first=_FIRST))
        here = np.array([query in head.by_query for query in queries], np.bool_)
        some = pairs(every[here[query_of[every]]])
    if not _may_differ(head, *some):
        return ()
    if next(_misses(head, _by_query(*some), _PROBE, _FIRST), None) is None:
        return ()
    forms = _misses(run, _by_query(*pairs(every[:_MOST])), _MOST)
    return _notices(forms, "ids are", "id is")


def near_queries(queries: Iterable[str], run: Run) -> tuple[Notice, ...]:
    """What is to be said of missing queries that the run has in another form."""
    return _notices(other_forms({*queries}, run.queries()), "queries are", "query is")


def _notices(forms: Iterable[OtherForm], several: str, one: str) -> tuple[Notice, ...]:
    by_form: dict[str, list[OtherForm]] = {}
    for miss in forms:
        cure = miss.cure if several == "ids are" else ""
        by_form.setdefault(miss.how + cure, []).append(miss)
    return tuple(
        Notice(
            "near misses",
            len(misses),
            f"gold {several} not in the run as they are written, but {how}",
            tuple(f"{m.wanted!r:.40} and {m.found!r:.40}" for m in misses[:3]),
            f"gold {one} not in the run as it is written, but {how}",
        )
        for how, misses in by_form.items()
    )


class _All:
    """Holds every id."""

    def __contains__(self, name: object) -> bool:
        return True


def near_miss_hint(run: Run, labels: Labels) -> str | None:
    """How run and gold name documents differently, if that can be seen."""
    wanted = {query: {*row} for query, row in labels.items()}
    miss = next(_misses(run, wanted, _MOST), None)
    return None if miss is None else str(miss)


def _misses(
    run: Run, wanted: Mapping[str, set[str]], most: int, first: int = _MOST
) -> Iterator[OtherForm]:
    rankings: Mapping[str, Any]
    rankings = run.by_query if isinstance(run, _IN_MEMORY) else run.ids_of(wanted)
    for query, ids in wanted.items():
        if not ids or most <= 0:
            continue
        ranking = rankings.get(query, ())
        some = [*islice(iter(ranking), min(most, first))]
        yield from other_forms(ids, some)
        most -= len(some)


def _by_query(queries: list[str], wanted: list[str]) -> dict[str, set[str]]:
    ids: dict[str, set[str]] = {}
    for query, name in zip(queries, wanted, strict=True):
        ids.setdefault(query, set()).add(name)
    return ids


def _may_differ(run: Any, queries: list[str], wanted: list[str]) -> bool:
    """Whether ids are such that another form of them could match, seen at a glance.

    Most runs miss some of their gold, and most ids have one form: all that is looked at
    is looked at in one piece, without a step per id.
    """
    rankings = map(run.by_query.get, dict.fromkeys(queries), repeat(()))
    some = chain.from_iterable(map(islice, rankings, repeat(_FIRST)))
    try:
        names = [*islice(some, _PROBE)]
        retrieved = "\n".join(names)
        gold = "\n".join(wanted)
    except TypeError:
        # Documents have more than an id.
        return True
    both = f"\n{gold}\n{retrieved}"
    if not both.isascii() or "\n0" in both:
        return True
    # Where ids are written in one way, each has as many marks as the others.
    if any(
        gold.count(mark) * len(names) != retrieved.count(mark) * len(wanted)
        for mark in filter(both.__contains__, _MARKS)
    ):
        return True
    odd = any(map(both.__contains__, "/\\ \t\r%'\".+"))
    if (odd and _ODD.search(both)) or (
        (_DIGITS.search(gold) is None) != (_DIGITS.search(retrieved) is None)
    ):
        return True
    if (folded := both.lower()) == both and "_" not in both:
        return False
    # Whether any two ids differ in nothing else.
    ids = {*folded.translate(ALIKE).split("\n")}
    return len(ids) < len({*both.split("\n")})
