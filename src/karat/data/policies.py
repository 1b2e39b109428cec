"""Policies: what happens in the cases that a formula does not decide."""

from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from math import isfinite
from numbers import Real
from typing import Any, Literal, TypeAlias, get_args, get_origin

from karat.catalogue import Catalogue, plain
from karat.data.spelling import plain_numbers
from karat.errors import ParameterError, UnknownNameError, UsageError

Undefined: TypeAlias = Literal["skip", "zero", "error"]
"""What becomes of a score without a value."""
Missing: TypeAlias = Literal["zero", "skip", "error"]
"""What becomes of a gold query that the run lacks."""
Extra: TypeAlias = Literal["ignore", "error"]
"""What becomes of a run query without gold."""
Duplicates: TypeAlias = Literal["first", "collapse", "keep", "error"]
"""What becomes of a document that was retrieved twice."""
Identical: TypeAlias = Literal["keep", "ignore"]
"""What becomes of a document that has the id of its query."""
Ties: TypeAlias = Literal["trec", "input"]
"""How documents of equal scores are ordered."""
Precision: TypeAlias = Literal["double", "single"]
"""How exactly scores are compared."""


@dataclass(frozen=True)
class Policies:
    """Every switch that can change a number, with the native rule as its default.

    Attributes:
        undefined: a score without a value is left out of the mean (and counted),
            counted as 0, or an error.
        missing: a gold query the run lacks scores 0, is left out, or is an error.
        extra: a run query without gold is ignored (and counted), or an error.
        duplicates: a document retrieved twice keeps its first rank and earns nothing
            the second time; or is removed, so later documents move up; or counts as
            often as it occurs; or is an error.
        identical: a document that has the id of its query counts like any other, or is
            removed, as BEIR does where queries are documents of the corpus.
        ties: equal scores are ordered by document id, descending, as trec_eval does, or
            left in input order. Rankings given as lists have no ties.
        precision: scores are compared as double, or as single as trec_eval 9 does.
        threshold: the smallest grade that counts as relevant; None: any positive one.
        depth: read only this many documents of each ranking; None: all.
        judged_only: documents without any label are removed before ranking.
        force: score even when no gold id occurs anywhere in the run.
        profile: the named set these came from.

    Example:
        >>> from karat.extend import Policies
        >>> Policies(undefined="zero").changes()
        {'undefined': 'zero'}
    """

    undefined: Undefined = "skip"
    missing: Missing = "zero"
    extra: Extra = "ignore"
    duplicates: Duplicates = "first"
    ties: Ties = "trec"
    precision: Precision = "double"
    threshold: float | None = None
    depth: int | None = None
    judged_only: bool = False
    force: bool = False
    profile: str | None = None
    identical: Identical = "keep"

    def __post_init__(self) -> None:
        plain_numbers(self)
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                options = ", ".join(repr(choice) for choice in choices)
                raise ParameterError("evaluate", name, f"one of {options}", value)
        if self.threshold is not None:
            # 1, 1.0 and True are equal, so one would be found in a cache for another.
            object.__setattr__(self, "threshold", _as_number(self.threshold))
        for name in ("judged_only", "force"):
            if type(value := getattr(self, name)) is not bool:
                raise ParameterError("evaluate", name, "True or False", value)
        if self.depth is not None and (type(self.depth) is not int or self.depth < 1):
            raise ParameterError("evaluate", "depth", "an integer >= 1", self.depth)

    def changes(self) -> dict[str, Any]:
        """The switches that differ from the native rules."""
        pairs = asdict(self).items()
        return {name: v for name, v in pairs if v != getattr(_NATIVE, name)}


CHOICES: dict[str, tuple[str, ...]] = {
    switch.name: get_args(switch.type)
    for switch in fields(Policies)
    if get_origin(switch.type) is Literal
}
"""What each policy can be; the first is the native rule."""


def _as_number(threshold: object) -> float:
    """The threshold as the one type that all of them are compared in."""
    if isinstance(threshold, Real) and not isinstance(threshold, bool):
        with suppress(OverflowError):
            if isfinite(number := float(threshold)):
                return number
    raise ParameterError("evaluate", "threshold", "a finite number", threshold)


PROFILES: Catalogue[Policies] = Catalogue(
    "profile",
    {
        # trec_eval 9 averages over the queries both sides have; 10 refuses.
        "trec_eval-9": Policies(
            undefined="zero",
            missing="skip",
            duplicates="error",
            precision="single",
            profile="trec_eval-9",
        ),
        "trec_eval-10": Policies(
            undefined="zero",
            missing="error",
            duplicates="error",
            profile="trec_eval-10",
        ),
        # What pytrec_eval does, after documents named like their query are removed.
        "beir": Policies(
            undefined="zero",
            missing="skip",
            identical="ignore",
            precision="single",
            profile="beir",
        ),
        # k counts sessions: with id(level=session), the growing cutoff of LongMemEval.
        "longmemeval": Policies(duplicates="collapse", profile="longmemeval"),
        # Every position is read; no gold scores 0 and counts.
        "remem": Policies(undefined="zero", duplicates="keep", profile="remem"),
        # An id is dropped the second time, and one with a gain of 0 is relevant.
        "eval-harness": Policies(
            duplicates="collapse", threshold=0.0, profile="eval-harness"
        ),
        # Nothing to find is an error.
        "futureagi": Policies(undefined="error", profile="futureagi"),
    },
)


_NATIVE = Policies()


def policies_for(profile: str | None, **switches: Any) -> Policies:
    """The profile's policies, with every switch that is not None put on top.

    Example:
        >>> policies_for("trec_eval-9", missing="zero").missing
        'zero'
    """
    if profile is not None and not isinstance(profile, str):
        raise ParameterError("evaluate", "profile", "a name", profile)
    if profile is not None and plain(profile) == "ragas":
        raise UsageError(
            "there is no profile ragas: it reads ids as a set and texts at every "
            "position, which are two rules on duplicates; karat.compat.ragas has its "
            "metrics, and duplicates='collapse' or 'keep' sets either rule"
        )
    given = {name: value for name, value in switches.items() if value is not None}
    known = Policies.__dataclass_fields__
    for name in given:
        if name not in known:
            raise UnknownNameError("policy", name, known)
    if not given and profile is None:
        return _NATIVE
    try:
        return _policies(profile, **given)
    except TypeError:
        # A list, say, cannot be looked up in a cache; what is wrong with it is said.
        return _policies.__wrapped__(profile, **given)


@lru_cache(maxsize=256, typed=True)
def _policies(profile: str | None, **given: Any) -> Policies:
    return replace(_NATIVE if profile is None else PROFILES[profile], **given)
