"""How an evaluation ends: gates that failed, and queries that could not be judged."""

import sys
from collections.abc import Sequence

import click

from karat.cli.saying import say
from karat.data.evaluations import Evaluation
from karat.data.tables import counted

__all__ = ["admit", "conclude"]

_GATE_FAILED = 1
_INCOMPLETE = 3


def conclude(
    evaluations: Sequence[Evaluation],
    broken: Sequence[str],
    gates: int,
    allowed: int = 0,
) -> None:
    """Say which gates failed and what could not be judged, and exit accordingly.

    Args:
        evaluations: what was scored.
        broken: a sentence for each gate that failed.
        gates: how many there were.
        allowed: how many queries may lack a judgement.
    """
    for sentence in broken:
        say(f"karat: gate failed: {sentence}", err=True, alarm=True)
    if broken:
        sys.exit(_GATE_FAILED)
    if gates:
        click.echo(f"karat: {gates} gate{'s' * (gates > 1)} passed", err=True)
    failed = []
    for evaluation in evaluations:
        whys = (evaluation[name].failures for name in evaluation)
        most = max(whys, key=len, default={})
        failed += [(evaluation.queries[place], why) for place, why in most.items()]
    admit(failed, allowed)


def admit(failed: Sequence[tuple[str, str]], allowed: int) -> None:
    """Say which queries could not be judged, and fail unless so many may."""
    if len(failed) > allowed:
        query, why = failed[0]
        first = "" if len(failed) == 1 else "the first "
        say(
            f"karat: {counted(len(failed), 'query')} could not be judged, {first}"
            f"{query!r}: {why}; run the same again to go on (--retry-errors asks all "
            "of them anew)",
            err=True,
        )
        sys.exit(_INCOMPLETE)
