"""From a spelling to the thing it names: parameters are the fields of its dataclass."""

from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from numbers import Integral, Real
from typing import Any, TypeVar

from karat.data.spelling import LETTER, Spelling, Value
from karat.errors import ParameterError, SpellingError, UnknownNameError

__all__ = ["build", "plain_numbers", "require_choices"]

T = TypeVar("T")


def build(cls: type[T], spelling: Spelling, kind: str) -> T:
    """Make the dataclass `cls` with the spelling's parameters and cutoff.

    A value without a name fills the first free field whose type it fits, the cutoff
    excepted: a lone number in `fuzzy(0.8)` is the threshold.
    """
    known = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
    in_order = [name for name in known if name != LETTER]
    given: dict[str, Any] = {}
    for name, value in spelling.params:
        if name is None:
            free = [known[field] for field in in_order if field not in given]
            if not free:
                raise SpellingError(str(spelling), f"too many values for {kind}")
            name = next((f for f in free if _fits(f, value)), free[0]).name  # noqa: PLW2901
        if name not in in_order:
            raise UnknownNameError(f"parameter of {spelling.name}", name, in_order)
        if name in given:
            raise SpellingError(str(spelling), f"{name} is given twice")
        given[name] = _fit(spelling.name, known[name], value)
    if spelling.k is not None:
        if LETTER not in known:
            raise SpellingError(str(spelling), f"{spelling.name} takes no cutoff @k")
        given[LETTER] = spelling.k
    return cls(**given)


def plain_numbers(thing: Any) -> None:
    """Make the numbers of NumPy and the like, among a value's fields, Python's own.

    They would be written differently in its spelling, and JSON has no word for them.
    """
    for field in fields(thing):
        value = getattr(thing, field.name)
        if type(value) in _OURS or not isinstance(value, Real):
            continue
        number = int(value) if isinstance(value, Integral) else float(value)
        object.__setattr__(thing, field.name, number)


_OURS = frozenset({bool, int, float, str, type(None)})


def require_choices(thing: Any, choices: Mapping[str, Sequence[str]]) -> None:
    """Refuse a metric or matcher with a parameter that is none of its choices."""
    for parameter, allowed in choices.items():
        value = getattr(thing, parameter)
        if value not in allowed:
            options = ", ".join(repr(choice) for choice in allowed)
            raise ParameterError(thing.name, parameter, f"one of {options}", value)


def _kind(field: "Field[Any]") -> type[Value]:
    kind = str(field.type)
    return next((t for t in (bool, int, float, str) if t.__name__ in kind), str)


def _fits(field: "Field[Any]", value: Value) -> bool:
    kind = _kind(field)
    return type(value) is kind or (kind is float and type(value) is int)


def _fit(owner: str, field: "Field[Any]", value: Value) -> Value:
    """The value in the field's own type, or a sentence saying what it must be."""
    kind = _kind(field)
    if not _fits(field, value):
        names = {bool: "true or false", int: "an integer", float: "a number"}
        raise ParameterError(owner, field.name, names.get(kind, "a word"), value)
    return float(value) if kind is float else value
