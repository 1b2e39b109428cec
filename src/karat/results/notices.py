"""What a result has to say besides its scores, as far as the result itself shows it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from karat.data.gold import labeller_notices
from karat.data.matches import Matches
from karat.data.queries import Query
from karat.data.runs import Notice
from karat.stats.intervals import gaffke_interval, sample_of

if TYPE_CHECKING:
    from karat.results.evaluation import Evaluation

_FEW = 0.1
_ENOUGH = 20
_NEARLY_ALL = 0.95
_STARS = 4
_HALF = 0.5
_EXAMPLES = 3
_WERE = ("questions were", "question was")


def derived_notices(result: "Evaluation") -> Iterator[Notice]:
    """Notices that follow from the result, and so hold for any part or union of it."""
    if result.labelled_by:
        yield from labeller_notices(result.labelled_by)
    good, size = good_questions(result.facts.values()) if result.facts else (0, 0)
    if size:
        yield checked_notice(good, size)
    for matcher, matches in result.matches.items():
        # A judge says itself what it could not judge, and reads texts, not names.
        if not matches.verdicts:
            yield from _little_found(matcher, matches)
    if result.policies.threshold is None:
        yield from _scales(result.matches.values())
    yield from _depth(result)
    if result.missing.any():
        yield _missing(result)
    failed: dict[int, str] = {}
    for column in result.columns.values():
        failed |= column.failures
    if failed:
        yield _failed(failed, result.queries)
    if result.ranges:
        yield _ranges(result)


def good_questions(queries: Iterable[Query]) -> tuple[int, int]:
    """How many of the questions that people checked are good, and how many there are.

    Those that were drawn at random have marks; a file from which some were dropped has
    both numbers with each question.
    """
    facts = [query.metadata for query in queries]
    for one in facts:
        match one:
            case {"checked_good": int(good), "checked_size": int(size)} if (
                0 <= good <= size
            ):
                return good, size
    marks = [one.get("checked") for one in facts]
    return marks.count("good"), marks.count("good") + marks.count("bad")


def checked_notice(good: int, size: int) -> Notice:
    """What share of the questions is good, by those that people checked."""
    sample = sample_of(np.repeat([1.0, 0.0], [good, size - good]))
    low, high = gaffke_interval(sample, (0.0, 1.0), 0.95)
    said = f"{good / size:.0%} are good, 95% interval {low:.0%} to {high:.0%}"
    text, one = (f"{what} checked by people: {said}" for what in _WERE)
    return Notice("checked", size, text, one=one)


def _ranges(result: "Evaluation") -> Notice:
    pairs = result.ranges.items()
    means = ", ".join(f"{name} {low:.4f} .. {high:.4f}" for name, (low, high) in pairs)
    rows = [v for m in result.matches.values() for v in m.verdicts.values()]
    claims = sum(verdict.failure is not None for row in rows for verdict in row)
    every = result.matches.values()
    unsplit = {place for m in every for place in m.failures.keys() - m.verdicts}
    why = f"no verdict; depending on it, means lie between {means}"
    count = claims + len(unsplit)
    return Notice("range", count, f"claims have {why}", one=f"claim has {why}")


def _little_found(matcher: str, matches: Matches) -> Iterator[Notice]:
    """A notice where so little is found that names or texts may not fit."""
    hits = matches.hits
    if len(hits.query) >= _FEW * len(hits.gold_grade):
        return
    if not len(hits.query) and not matcher.startswith("id"):
        text = f"gold items, and {matcher} found none of them in the whole run"
        one = f"gold item, and {matcher} did not find it in the whole run"
        yield Notice(f"unmatched by {matcher}", len(hits.gold_grade), text, one=one)
        return
    credits = hits.credits()
    found, total = len(credits.query), int(credits.relevant[~matches.missing].sum())
    if total >= _ENOUGH and found < _FEW * total:
        rest = f"found, of {total} in all; do run and gold use the same ids and texts?"
        text, one = (f"relevant {what} {rest}" for what in ("items", "item"))
        yield Notice("found", found, text, one=one)


def _depth(result: "Evaluation") -> Iterator[Notice]:
    """A notice where nearly all queries hold fewer documents than a metric reads."""
    found = next(iter(result.matches.values()), None)
    there = ~result.missing
    if found is None or np.count_nonzero(there) < _ENOUGH:
        return
    held = found.hits.retrieved[there]
    name, deepest = "", 0
    for label, column in result.columns.items():
        if (depth := column.depth or 0) > deepest:
            name, deepest = label, depth
    most = int(np.quantile(held, _NEARLY_ALL, method="inverted_cdf"))
    if 0 < most < deepest:
        short = int(np.count_nonzero(held < deepest))
        reads = f"fewer documents than {name} reads"
        yield Notice("depth", short, f"queries hold {reads}, nearly all {most} or less")


def _scales(found: Iterable[Matches]) -> Iterator[Notice]:
    """A notice where the lowest labels may mean no, as of stars or probabilities."""
    scales = {}
    for matches in found:
        scales[matches.hits.grade_range] = matches.hits
    for (low, high), hits in scales.items():
        if low > 0 and (high >= _STARS or low < _HALF < high):
            scale = f"have grades from {low:g} to {high:g} and none is 0"
            why = "all count as relevant; --threshold names the first grade that does"
            count = len(hits.gold_grade)
            yield Notice("grades", count, f"gold items {scale}: {why}")


def _missing(result: "Evaluation") -> Notice:
    rows = np.flatnonzero(result.missing)
    zero = result.policies.missing == "zero"
    verbs = ("score 0", "scores 0") if zero else ("are left out", "is left out")
    return Notice(
        "missing",
        len(rows),
        f"gold queries are not in the run and {verbs[0]}",
        tuple(result.queries[row] for row in rows[:_EXAMPLES]),
        f"gold query is not in the run and {verbs[1]}",
    )


def _failed(failed: Mapping[int, str], queries: Sequence[str]) -> Notice:
    reasons = tuple(f"{queries[row]}: {why}" for row, why in failed.items())
    return Notice(
        "failed",
        len(failed),
        "queries failed and are in no mean",
        reasons[:_EXAMPLES],
        "query failed and is in no mean",
    )
