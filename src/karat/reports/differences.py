"""Where trec_eval prints another number on the same files, and which policy it is."""

from karat.data.evaluations import Evaluation

__all__ = ["unlike_trec_eval"]


def unlike_trec_eval(evaluation: Evaluation) -> list[str]:
    """A sentence per policy that makes a mean differ from `karat trec-eval`."""
    policies = evaluation.policies
    if policies.profile is not None and policies.profile.startswith("trec_eval"):
        return []
    lines = []
    # The binary knows no judged@k and no texts, which are undefined for other reasons.
    names = [
        name
        for name in evaluation
        if not name.startswith("judged") and evaluation.matchers[name] == "id"
    ]
    undefined = max((evaluation[name].undefined for name in names), default=0)
    if undefined and policies.undefined != "zero":
        lines.append(
            f"queries without relevant gold ({undefined} of {len(evaluation.queries)}) "
            "count 0 there (here: --undefined zero)"
        )
    missing = int(evaluation.missing.sum())
    if missing:
        lines.append(
            f"queries missing from the run ({missing}) are refused by version 10 "
            "without -c, and left out by version 9 (here: --missing skip)"
        )
    kinds = {notice.kind for notice in evaluation.warnings}
    if "duplicates" in kinds:
        lines.append("documents retrieved twice are refused there")
    if policies.ties != "trec" and "ties" in kinds:
        lines.append("equal scores are ordered by document id there (--ties trec)")
    return [f"trec_eval would differ: {line}" for line in lines]
