"""From a spelling to the thing it names: parameters are the fields of its dataclass."""

from dataclasses import Field, fields
from typing import Any, TypeVar

from karat.data.spelling import LETTER, Spelling, Value
from karat.errors import ParameterError, SpellingError, UnknownNameError

__all__ = ["build"]

T = TypeVar("T")


def build(cls: type[T], spelling: Spelling, kind: str) -> T:
    """Make the dataclass `cls` with the spelling's parameters and cutoff.

    Values without a name fill the fields in order, the cutoff excepted.
    """
    known = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
    in_order = [name for name in known if name != LETTER]
    given: dict[str, Any] = {}
    for place, (name, value) in enumerate(spelling.params):
        if name is None:
            if place >= len(in_order):
                raise SpellingError(str(spelling), f"too many values for {kind}")
            name = in_order[place]  # noqa: PLW2901
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


def _fit(owner: str, field: "Field[Any]", value: Value) -> Value:
    """The value in the field's own type, or a sentence saying what it must be."""
    kind = str(field.type)
    wants = next((t for t in (bool, int, float, str) if t.__name__ in kind), str)
    if wants is float and type(value) is int:
        return float(value)
    if type(value) is not wants:
        names = {bool: "true or false", int: "an integer", float: "a number"}
        raise ParameterError(owner, field.name, names.get(wants, "a word"), value)
    return value
