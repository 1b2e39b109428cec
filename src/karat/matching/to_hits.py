"""From located rows to hits, for every matcher; and the refusals on the way."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from karat.data.arrays import Bools, Ints, count_by, place_by
from karat.data.gold import ColumnLabels
from karat.data.hits import GoldGrades, Hits, Subtopics
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.runs import Labels, Located, Notice, Run
from karat.errors import MismatchError, NoCommonIdError
from karat.matching.id_forms import (
    near_miss_hint,
    near_miss_notices,
    near_queries,
    other_forms,
)
from karat.reading.meaning.values import looks_like_text


def narrow(located: Located, policies: Policies) -> Located:
    """What is left when only the top `depth` or only judged documents are read.

    The depth is applied first. Then, with `judged_only`, documents without a judgement
    leave the ranking and the others move up; as in trec_eval, a negative grade marks a
    document that was pooled but not judged. That needs rows of all labelled documents,
    so the run must have been asked for them (`judged=True`).
    """
    if policies.depth is not None:
        # No ranking is longer than what counts its documents can count.
        depth = min(policies.depth, np.iinfo(np.int64).max)
        located = _keep(
            located,
            located.rank <= depth,
            located.rank,
            np.minimum(located.retrieved, depth),
        )
    if policies.judged_only:
        rows = located.grade >= 0
        size = len(located.retrieved)
        query, rank = located.query[rows], located.rank.copy()
        # Several rows may lie at one rank: one document with several gold texts.
        new = np.ones(len(query), np.bool_)
        new[1:] = (np.diff(query) != 0) | (np.diff(rank[rows]) != 0)
        left = count_by(query[new], size)
        rank[rows] = place_by(query[new], size)[new.cumsum() - 1]
        located = _keep(located, rows, rank, np.minimum(located.retrieved, left))
    return located


def _keep(located: Located, rows: Bools, rank: Ints, retrieved: Ints) -> Located:
    return located._replace(
        query=located.query[rows],
        rank=rank[rows],
        grade=located.grade[rows],
        item=None if located.item is None else located.item[rows],
        retrieved=retrieved,
    )


def lay_out(
    run: Run,
    queries: Iterable[str],
    located: Located,
    items: Sequence[str],
    gold: GoldGrades,
    *,
    judged: bool,
    policies: Policies,
    run_notices: tuple[Notice, ...] | None = None,
) -> Matches:
    """Hits from rows, narrowed; without `run_notices` those of the rows are its own."""
    missing = located.retrieved < 0
    absent = np.count_nonzero(missing)
    if absent and absent == len(missing) and not policies.force:
        raise no_common_query(run.name, run.queries(), queries)
    if policies.depth is not None or policies.judged_only:
        located = narrow(located, policies)
    hits = Hits(
        located.query,
        located.rank,
        located.grade,
        gold.count,
        gold.grade,
        np.maximum(located.retrieved, 0) if absent else located.retrieved,
        located.item,
        located.distinct,
        judged=judged,
        gold=gold,
    )
    if absent and located.extra:
        near_ones = near_queries(compress(queries, missing.tolist()), run)
        located = located._replace(notices=(*located.notices, *near_ones))
        run_notices = None if run_notices is None else (*run_notices, *near_ones)
    notices = located.notices if run_notices is None else ()
    return Matches(hits, items, missing, located.extra, notices, run_notices)


def examples(ids: Iterable[str]) -> str:
    """Three of the ids, quoted, for a message."""
    return ", ".join(repr(name[:60]) for name in sorted({*ids})[:3]) or "none"


CORPUS = "corpus=... (--corpus FILE) gives"
"""How a hint begins that names the corpus."""

Topics = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Subtopics: query id -> document id -> subtopic -> how well the document serves it."""

Groups = Mapping[str, Mapping[str, str]]
"""Alternatives: query id -> document id -> name of the group it belongs to."""


def no_common_query(
    name: str | None, queries: Sequence[str], gold: Iterable[str]
) -> MismatchError:
    """The error for a run, or queries to ask, of which gold has none."""
    near = next(other_forms({*gold}, queries), None)
    return MismatchError(
        f"run and gold have no query in common: the run has {examples(queries)}, the "
        f"gold {examples(gold)}",
        path=name,
        hint=str(near._replace(cure=""))
        if near
        else "check that both use the same query ids",
    )


def items_of(labels: Labels, groups: Groups) -> tuple[list[str], GoldGrades, Ints]:
    """Names and grades of items, a group as its best, and the item of each label."""
    names: list[str] = []
    grades: list[float] = []
    of_label: list[int] = []
    counts: list[int] = []
    for query, row in labels.items():
        group_of = groups.get(query, {})
        # A group may be called like a document.
        places: dict[tuple[str, bool], int] = {}
        for document, grade in row.items():
            grouped = grade > 0 and document in group_of
            key = (group_of[document] if grouped else document, grouped)
            place = places.setdefault(key, len(grades))
            if place == len(grades):
                grades.append(grade)
            grades[place] = max(grades[place], grade)
            of_label.append(place)
        names += (name for name, _ in places)
        counts.append(len(places))
    gold = GoldGrades(np.array(counts, np.int64), np.array(grades, np.float64))
    return names, gold, np.array(of_label, np.int64)


STRANGE_IDS = (
    "ids of another scheme, or re-chunked documents? match texts (match='chunk')"
)


def match_labels(
    run: Run,
    labels: Labels,
    *,
    judged: bool,
    policies: Policies,
    hint: str = STRANGE_IDS,
    groups: Groups | None = None,
    subtopics: Topics | None = None,
) -> Matches:
    """Look up labels in a run and lay the rows out as hits."""
    labels = ColumnLabels.of(labels)
    gold, names = labels.grades, labels.names
    # Where every label is positive there is nothing to leave out.
    positive = gold.range[0] > 0
    judged = bool(judged or policies.judged_only or groups or positive)
    located = run.locate(labels, judged=judged, policies=policies)
    if groups:
        names, gold, of_label = items_of(labels, groups)
        item = of_label[located.item]
        located = located._replace(grade=gold.grade[item], item=item, distinct=False)
    if policies.identical == "ignore":
        located = _ignore_identical(run, labels, located, policies)
    notices = located.notices
    if policies.judged_only and positive:
        what = "no document judged non-relevant, so judged_only leaves only relevant"
        text, one = (f"{q} {what} ones" for q in ("queries have", "query has"))
        notices += (Notice("judged_only", len(labels), text, one=one),)
    if not groups and located.item is not None:
        missed = gold.grade > 0
        missed[located.item] = False
        notices += near_miss_notices(run, labels, missed)
    matches = lay_out(
        run,
        labels,
        located,
        names,
        gold,
        judged=judged,
        policies=policies,
        run_notices=notices,
    )
    if not len(matches.hits.query) and not policies.force:
        _refuse_no_common_id(run, labels, hint)
    if subtopics:
        topics = _topics(labels, subtopics)
        matches = replace(matches, hits=replace(matches.hits, subtopics=topics))
    return matches


def _topics(labels: Labels, subtopics: Topics) -> Subtopics:
    """The subtopics of labelled documents, numbered within each query."""
    rows: list[tuple[int, int, float]] = []
    first = 0
    for query, row in labels.items():
        place = {name: first + number for number, name in enumerate(row)}
        number: dict[str, int] = {}
        for name, grades in sorted(subtopics.get(query, {}).items(), reverse=True):
            for topic, grade in grades.items() if name in place else ():
                at = number.setdefault(topic, len(number))
                rows.append((place[name], at, grade))
        first += len(row)
    return Subtopics.of(rows)


def _ignore_identical(
    run: Run, labels: Labels, located: Located, policies: Policies
) -> Located:
    """What is left without documents that have their query's id; others move up."""
    own = run.locate({q: {q: 1.0} for q in labels}, judged=True, policies=policies)
    place = np.full(len(labels), np.iinfo(np.int64).max)
    # Written from the end, the first of several stays.
    place[own.query[::-1]] = own.rank[::-1]
    mine = place[located.query]
    rank = located.rank - (located.rank > mine)
    left = located.retrieved - np.isin(np.arange(len(labels)), own.query)
    return _keep(located, located.rank != mine, rank, left)


def _texts_hint(retrieved: list[str], wanted: list[str]) -> str | None:
    """What to do where one side holds ids and the other one texts."""
    if looks_like_text(retrieved) and not looks_like_text(wanted):
        return f"the run holds texts: {CORPUS} those of the gold's documents"
    if looks_like_text(wanted) and not looks_like_text(retrieved):
        return f"the gold holds texts: {CORPUS} those of the run's documents"
    return None


def _refuse_no_common_id(run: Run, labels: ColumnLabels, hint: str) -> None:
    wanted = {*labels.names}
    sample = run.sample_ids()
    if not wanted or not sample or run.holds_any(wanted):
        return
    if hint == STRANGE_IDS:
        near = near_miss_hint(run, labels)
        hint = near or _texts_hint(sample, [*wanted]) or hint
    raise NoCommonIdError(
        "no gold id occurs anywhere in the run: "
        f"the run has {examples(sample)}, the gold {examples(wanted)}",
        path=run.name,
        hint=f"{hint}; force=True (--force) scores it anyway",
    )
