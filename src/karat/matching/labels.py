"""Labels looked up in a run by id: what most evaluations come down to."""

from dataclasses import replace
from itertools import chain

from karat.data.arrays import Floats, Ints
from karat.data.gold import Gold
from karat.data.matches import Matches
from karat.data.policies import Policies
from karat.data.runs import Labels, Run
from karat.errors import MismatchError
from karat.matching.alternatives import Groups, items_of
from karat.matching.layout import examples, lay_out

__all__ = ["STRANGE_IDS", "match_labels"]

STRANGE_IDS = (
    "ids of another scheme, or re-chunked documents? match texts (match='chunk')"
)


def match_labels(
    run: Run,
    labels: Labels,
    *,
    judged: bool,
    policies: Policies,
    grades: tuple[Ints, Floats] | None = None,
    hint: str = STRANGE_IDS,
    groups: Groups | None = None,
) -> Matches:
    """Look up labels in a run and lay the rows out as hits.

    Args:
        run: what was retrieved.
        labels: what to look up.
        judged: also lay out rows of judged non-relevant documents.
        policies: how ties, duplicates and the like are treated.
        grades: the number of labels of each query and all grades, where known.
        hint: what to do when none of the labels occurs in the run.
        groups: which labels are alternatives, if any are.
    """
    count, grade = Gold(labels).grades if grades is None else grades
    # Where every label is positive there is nothing to leave out.
    positive = bool(grade.min(initial=1) > 0)
    judged = bool(judged or policies.judged_only or groups or positive)
    if groups:
        items = items_of(labels, groups)
        count, grade = items.count, items.grade
        names = [name for row in items.names for name in row]
        located = items.locate(run, labels, policies)
    else:
        names = [*chain.from_iterable(labels.values())]
        located = run.locate(labels, judged=judged, policies=policies)
    matches = lay_out(
        run, labels, located, names, (count, grade), judged=judged, policies=policies
    )
    if not len(matches.hits.query) and not policies.force:
        _refuse_no_common_id(run, labels, hint)
    return replace(matches, notices=(), run_notices=matches.notices)


def _refuse_no_common_id(run: Run, labels: Labels, hint: str) -> None:
    wanted = {document for ids in labels.values() for document in ids}
    sample = run.sample_ids()
    if not wanted or not sample or run.holds_any(wanted):
        return
    raise MismatchError(
        "no gold id occurs anywhere in the run: "
        f"the run has {examples(sample)}, the gold {examples(wanted)}",
        path=run.name,
        hint=f"{hint}, or use force=True (--force) to score it all the same",
    )
