"""How an evaluation ends: gates that failed, and queries that could not be judged."""

import sys
from collections.abc import Collection, Iterable, Sequence

import click

from karat.cli.saying import say
from karat.data.tables import counted
from karat.results.evaluation import Evaluation

__all__ = ["admit", "conclude"]

_GATE_FAILED = 1
_INCOMPLETE = 3
_LONGER = "--max-tokens"
_PASSING = "transient"


def conclude(
    evaluations: Iterable[Evaluation],
    broken: Sequence[str],
    gates: int,
    allowed: int = 0,
    kinds: Collection[str] = (),
) -> None:
    """Say which gates failed and what could not be judged, and exit accordingly.

    Args:
        evaluations: what was scored.
        broken: a sentence for each gate that failed.
        gates: how many there were.
        allowed: how many queries may lack a judgement.
        kinds: in which ways judgements failed.
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
    admit(failed, allowed, kinds)


def admit(
    failed: Sequence[tuple[str, str]], allowed: int, kinds: Collection[str] = ()
) -> None:
    """Say which queries could not be judged, and fail unless so many may."""
    if len(failed) > allowed:
        query, why = failed[0]
        first = "" if len(failed) == 1 else "the first "
        alike = len({reason for _, reason in failed}) == 1 < len(failed)
        say(
            f"karat: {counted(len(failed), 'query')} could not be judged, {first}"
            f"{query!r}{', all' if alike else ''}: {why}{_advice(why, kinds)}",
            err=True,
        )
        sys.exit(_INCOMPLETE)


def _advice(why: str, kinds: Collection[str]) -> str:
    """What may help, unless the reason says it itself."""
    # Asked again as it is, a reply would be cut off again.
    if _LONGER in why:
        return ""
    if {*kinds} == {_PASSING}:
        return "; run the same again to go on"
    anew = "--retry-errors asks anew, and another --model may do better"
    if _PASSING in kinds:
        return f"; run the same again for what failed in passing; for the rest, {anew}"
    return f"; {anew}"
