"""Compare runs on the same queries: the front door of comparisons."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args

import numpy as np

from karat.comparison.changes import RunChange, changes_at, movers_of, slices_of
from karat.comparison.comparison import Comparison
from karat.comparison.differences import (
    Difference,
    Pairing,
    Test,
    measure,
    pair_up,
    with_adjusted,
)
from karat.data.tables import steps
from karat.errors import UsageError
from karat.evaluation import check_options
from karat.leaderboards import as_scored, evaluations_of, name_of
from karat.metrics import Metric, read_metric, split_metrics
from karat.results.evaluation import Evaluation
from karat.results.leaderboard import leading, notice_lines
from karat.stats.multiple_tests import Adjusted, benjamini_hochberg, holm, max_t
from karat.stats.sign_flip import Flips, flipped
from karat.version import __version__

TESTS: tuple[Test, ...] = get_args(Test)
"""The tests there are, the default first."""
CORRECTIONS = ("maxt", "holm", "bh", "none")
"""How p may be corrected for the number of comparisons."""


def compare(  # noqa: PLR0913
    baseline: Any,
    *candidates: Any,
    gold: Any = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    margin: Mapping[str, float] | None = None,
    all_pairs: bool = False,
    by_tag: bool = False,
    cluster: str | None = None,
    test: Test = "sign-flip",
    correction: str | None = None,
    force: bool = False,
    **options: Any,
) -> Comparison:
    """Say whether candidates are better than a baseline, by how much, and how.

    Args:
        baseline: a run in any form that `evaluate` takes, an evaluation, or the path of
            a saved one.
        candidates: what is compared with it; a mapping names its runs.
        gold: what should have been retrieved; None for evaluations and for samples
            that carry their own.
        metrics: spellings or instances; default: those of the baseline.
        margin: metric -> the largest difference that does not matter.
        all_pairs: compare every run with every other, not with the baseline only.
        by_tag: compare on the queries of each tag, too.
        cluster: a field of the queries; those with the same value belong together.
        test: `sign-flip`, on which verdicts rest; `t` and `wilcoxon` on request.
        correction: of p for the number of comparisons by one metric: `maxt`, `holm`,
            `bh` (the rate of false findings) or `none`; default: `maxt` against a
            baseline, `holm` for all pairs and for other tests.
        force: compare evaluations by other matchers or policies, and score runs
            without a common id.
        options: the other options of `evaluate`.

    Raises:
        UsageError: evaluations that were not scored in the same way.
        DataError: input that cannot be scored, or nothing in common.

    Example:
        >>> old = {f"q{n}": ["x", "a"] for n in range(20)}
        >>> new = {f"q{n}": ["a", "x"] for n in range(20)}
        >>> gold = {f"q{n}": ["a"] for n in range(20)}
        >>> compare(old, new, gold=gold, metrics=["rr"])["rr"].verdict
        'better'
    """
    named = [*_named("baseline", [baseline]), *_named("candidate", candidates)]
    if len(named) < 2:  # noqa: PLR2004
        raise UsageError("nothing to compare: name a baseline and one more run")
    check_options("compare", options, refused=("judged",))
    _check_choices(test, correction, margin, cluster)
    scoring = dict(options)
    told = [name for name, value in options.items() if value is not None]
    if metrics is not None:
        scoring["metrics"] = metrics
    if force:
        scoring["force"] = True
    baseline, *others = evaluations_of(named, gold, scoring, told)
    asked = _metrics(baseline, others, metrics)
    margins = _margins(margin or {}, asked, baseline)
    # Those with the baseline come first.
    pairs = [*combinations((baseline, *others), 2)]
    pairs = pairs if all_pairs else pairs[: len(others)]
    pairings = [pair_up(one, two, force=force, cluster=cluster) for one, two in pairs]
    own = pairings[: len(others)]
    alike = len({*map(attrgetter("queries"), pairings)}) == 1
    if len(pairings) == 1:
        correction = "none"
    else:
        correction = _correction(correction, test, alike=alike, all_pairs=all_pairs)
    rows: list[dict[str, Flips]] = [{}] * len(pairings)
    if test == "sign-flip":
        rows = _flips(asked, pairings, own, alike=alike)
    differences = _differences(asked, pairings, rows, margins, test, correction)
    changes, other_depths = _changes(own, asked)
    first = leading({metric: baseline[metric] for metric in asked})
    return Comparison(
        baseline=baseline.run,
        candidates=tuple(map(attrgetter("run"), others)),
        differences=tuple(differences),
        changes=changes,
        other_depths=other_depths,
        movers=movers_of([*dict.fromkeys([first, *asked])], own),
        slices=slices_of(asked, own[0], margins, test) if by_tag else {},
        added=_united(own, "added"),
        removed=_united(own, "removed"),
        relabelled=_united(own, "relabelled"),
        notes=(
            *_notes(differences, changes, cluster=cluster),
            *notice_lines([baseline, *others]),
        ),
        provenance={
            "karat": __version__,
            "gold": baseline.gold,
            "tags": {one.run: one.tag for one in (baseline, *others) if one.tag},
        },
        test=test,
        correction=correction,
    )


def _correction(asked: str | None, test: Test, *, alike: bool, all_pairs: bool) -> str:
    """How p is corrected: as asked, else by MaxT where it can be, else by Holm."""
    if asked == "maxt" and not alike:
        raise UsageError(
            "MaxT needs the same queries in all runs, and these have others: take holm"
        )
    together = alike and not all_pairs and test == "sign-flip"
    return asked or ("maxt" if together else "holm")


def _differences(
    metrics: Sequence[str],
    pairings: Sequence[Pairing],
    rows: Sequence[Mapping[str, Flips]],
    margins: Mapping[str, float],
    test: Test,
    correction: str,
) -> list[Difference]:
    """The differences of each pair by each metric."""
    differences: list[Difference] = []
    for metric in steps(metrics, len(metrics), "comparing by metrics"):
        family: list[Adjusted | None] = [None] * len(pairings)
        if correction == "maxt":
            family = [*max_t([row[metric] for row in rows])]
        measured = [
            measure(
                pairing,
                metric,
                margin=margins.get(metric),
                test=test,
                flips=row.get(metric),
                family=one,
            )
            for pairing, row, one in zip(pairings, rows, family, strict=True)
        ]
        if correction in _CORRECT:
            p = np.array([one.p for one in measured])
            measured = [*map(with_adjusted, measured, _CORRECT[correction](p).tolist())]
        differences += measured
    return differences


def _flips(
    metrics: Sequence[str],
    pairings: Sequence[Pairing],
    own: Sequence[Pairing],
    *,
    alike: bool,
) -> list[dict[str, Flips]]:
    """The differences of each pair by each metric, with signs flipped.

    Two candidates differ by what they differ from the baseline, and so do their flipped
    sums: the pairs without the baseline, which come after those with it, cost nothing.
    """
    tables = [pairing.differences(metrics) for pairing in pairings]
    first = tables[0][1]
    alike = alike and all((known == first).all() for _, known in tables)
    rows = []
    pairs = zip(own if alike else pairings, tables, strict=False)
    for pairing, (values, known) in pairs:
        flips = flipped(values, known=known, clusters=pairing.clusters)
        rows.append(dict(zip(metrics, flips, strict=True)))
    if len(rows) < len(pairings):
        rows += [
            {metric: two[metric] - one[metric] for metric in metrics}
            for one, two in combinations(rows, 2)
        ]
    return rows


def _changes(
    pairings: Sequence[Pairing], metrics: Sequence[str]
) -> tuple[dict[str, RunChange], dict[str, tuple[RunChange, ...]]]:
    """The kind of change of each candidate at the first depth, and at the others."""
    changes, other_depths = {}, {}
    for pairing in pairings:
        run, found = pairing.candidate.run, changes_at(pairing, metrics)
        if found:
            changes[run] = found[0]
        if found[1:]:
            other_depths[run] = tuple(found[1:])
    return changes, other_depths


def _named(role: str, given: Sequence[Any]) -> list[tuple[str, Any]]:
    """Each run with its name: its own, that of its file, or its role."""
    named: list[tuple[str, Any]] = []
    for number, one in enumerate(given, 1):
        if role == "candidate" and _is_mapping_of_runs(one):
            for name, run in one.items():
                scored = as_scored(run)
                own = run if scored is None else replace(scored, run=str(name))
                named.append((str(name), own))
        else:
            own = f"{role} {number}" if len(given) > 1 else role
            named.append((name_of(one, own), one))
    return named


def _united(pairings: Sequence[Pairing], kind: str) -> tuple[str, ...]:
    queries = chain.from_iterable(map(attrgetter(kind), pairings))
    return tuple(dict.fromkeys(queries))


def _is_mapping_of_runs(given: Any) -> bool:
    """Whether it is runs by name, and not a run itself."""
    if not isinstance(given, Mapping) or isinstance(given, Evaluation) or not given:
        return False
    first = next(iter(given.values()))
    if isinstance(first, Evaluation | str | Path):
        return True
    # In a run, a query has documents with scores; in a mapping of runs, a run has
    # queries with rankings.
    return isinstance(first, Mapping) and any(
        isinstance(value, Mapping | list | tuple) for value in first.values()
    )


def _metrics(
    baseline: Evaluation,
    others: Sequence[Evaluation],
    asked: str | Metric | Iterable[str | Metric] | None,
) -> list[str]:
    """The metrics to compare by: those asked for, else those that all have."""
    if asked is None:
        shared = {*baseline}.intersection(*others)
        columns = baseline.columns.items()
        common = [m for m, one in columns if m in shared and one.average == "mean"]
        if not common:
            raise UsageError(
                f"{baseline.run} has scores by {', '.join(baseline)}, "
                f"{others[0].run} by {', '.join(others[0])}: no metric in common"
            )
        return [name for name in common if not name.startswith("judged@")] or common
    labels: dict[str, None] = {}
    for metric in map(str, split_metrics(asked)):
        for one in (baseline, *others):
            if metric not in one:
                raise UsageError(
                    f"{one.run} has no scores by {metric}; it has {', '.join(one)}"
                )
        if (average := baseline[metric].average) != "mean":
            raise UsageError(
                f"{metric} is reported as a {average} over queries, and differences "
                "are compared by their mean: compare a metric such as ap"
            )
        labels[baseline[metric].metric] = None
    return [*labels]


def _margins(
    margin: Any, metrics: Sequence[str], baseline: Evaluation
) -> dict[str, float]:
    if not isinstance(margin, Mapping):
        raise UsageError(f"a margin is given by metric, as in {{'ndcg@10': {margin}}}")
    margins = {}
    for name, value in margin.items():
        label = name if name in metrics else str(read_metric(name))
        if label not in metrics:
            raise UsageError(
                f"a margin for {name}, which is not compared: {', '.join(metrics)}"
            )
        low, high = baseline[label].bounds
        if not isinstance(value, int | float) or not 0 < value < high - low:
            least = f"between 0 and {high - low:g}"
            raise UsageError(f"the margin for {name} must be {least}, got {value!r}")
        margins[label] = float(value)
    return margins


_CORRECT = {"holm": holm, "bh": benjamini_hochberg}


def _check_choices(test: Any, correction: Any, margin: Any, cluster: Any) -> None:
    if test not in TESTS:
        raise UsageError(f"no test {test!r}; there are {', '.join(TESTS)}")
    if correction not in (None, *CORRECTIONS):
        known = ", ".join(CORRECTIONS)
        raise UsageError(f"no correction {correction!r}; there are {known}")
    if correction == "maxt" and test != "sign-flip":
        raise UsageError(f"MaxT flips signs: use holm with the {test} test")
    if test == "wilcoxon" and (cluster is not None or margin):
        what = "clusters" if cluster is not None else "interval to hold to a margin"
        raise UsageError(f"the wilcoxon test supports no {what}: use sign-flip or t")


def _notes(
    differences: Sequence[Difference],
    changes: Mapping[str, RunChange],
    *,
    cluster: str | None,
) -> list[str]:
    notes = []
    if cluster is not None:
        notes.append(f"queries of one {cluster} are counted as one cluster")
    if left := max(map(attrgetter("left_out"), differences)):
        notes.append(
            f"common queries without a score in one of the runs, left out: {left}"
        )
    if not changes:
        notes.append(
            "the kind of change was not examined: these are scores without hits"
        )
    return notes
