"""Scores by people and a judge combined, as `karat evaluate` and `karat compare` do."""

from collections.abc import Sequence
from dataclasses import asdict

import click

from karat.cli.command import by_flag
from karat.cli.options import Combining, Scoring, existing, named_paths
from karat.cli.outputs import Outputs
from karat.errors import UsageError
from karat.metrics import split_metrics

_FORMATS = ("html", "json", "md", "txt")
_SCORING = (
    *("k", "profile", "undefined", "missing", "extra", "duplicates", "identical"),
    *("ties", "order", "threshold", "depth", "judged_only"),
)
_OTHERS = ("runs", "metrics", "output", "json", "verbose")


def is_combined(combining: Combining) -> bool:
    """Whether people and a judge are combined; half of what that takes is refused."""
    if combining.judged is None:
        for name in ("people", "width"):
            if by_flag(name):
                raise UsageError(
                    f"--{name} is for --judged, a judge's labels of all queries; "
                    "labels to score by alone are --gold"
                )
        return False
    if combining.people is None or combining.plan is None:
        raise UsageError(
            "--judged takes --people, labels that people gave, and --plan, the file "
            "that drew them (karat label plan); a judge alone is --gold "
            f"{combining.judged}"
        )
    allowed = {*Combining.__dataclass_fields__, *_SCORING, *_OTHERS}
    for option in click.get_current_context().command.params:
        name = str(option.name)
        if name not in allowed and by_flag(name):
            typed = next(one for one in option.opts if one.startswith("--"))
            raise UsageError(f"{typed} does not go with --judged")
    return True


def show_combined(
    runs: Sequence[str],
    metrics: Sequence[str],
    scoring: Scoring,
    combining: Combining,
    output: Sequence[str],
    *,
    json: bool,
) -> None:
    """Score runs by people and a judge combined, and show it."""
    # Only who combines labels pays for importing it.
    from karat.combined_labels import combine_labels  # noqa: PLC0415

    paths = existing(runs)
    labels = [combining.judged, combining.people, combining.plan]
    target = Outputs.plan(output, [*paths, *labels], _FORMATS, json=json)
    how = asdict(scoring)
    result = combine_labels(
        dict(named_paths(paths)),
        judged=combining.judged,
        people=combining.people,
        plan=str(combining.plan),
        width=combining.width,
        **{name: how[name] for name in _SCORING if how[name] is not None},
        **({"metrics": split_metrics(metrics)} if metrics else {}),
    )
    target.deliver(result.write, result.tables())
