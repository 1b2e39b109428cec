"""How metrics and matchers are written: `name(params)[matcher(params)]@k`.

Parameters are the fields of the dataclass that the name stands for.
"""

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias, TypeVar

from karat.catalogue import plain
from karat.errors import ParameterError, SpellingError, UnknownNameError

T = TypeVar("T")

Value: TypeAlias = str | int | float | bool
Cutoff: TypeAlias = int | str | None

LETTER = "k"
"""The cutoff of `recall@k`: the sample's own k, else the one given for all."""

_SHAPE = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][\w.\-]*)\s*"
    r"(?:\((?P<params>[^()\[\]]*)\))?\s*"
    r"(?:\[(?P<matcher>[^\[\]]*)\])?\s*"
    r"(?:@\s*(?P<k>[^\s@]+))?\s*"
)
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Spelling:
    """A metric or matcher as written, before any catalogue is asked."""

    name: str
    params: tuple[tuple[str | None, Value], ...] = ()
    matcher: "Spelling | None" = None
    k: Cutoff = None

    def __str__(self) -> str:
        pairs = (
            write_value(value) if name is None else f"{name}={write_value(value)}"
            for name, value in self.params
        )
        text = self.name
        if self.params:
            text += f"({', '.join(pairs)})"
        if self.matcher is not None:
            text += f"[{self.matcher}]"
        return text if self.k is None else f"{text}@{self.k}"


@lru_cache(maxsize=1024)
def parse(text: str) -> Spelling:
    """Read a spelling; what it names is looked up by whoever owns the catalogue."""
    found = _SHAPE.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise SpellingError(
            text[:_LONGEST], "expected name(params)[matcher(params)]@k, as in recall@5"
        )
    name, params, matcher, k = found.group("name", "params", "matcher", "k")
    return Spelling(
        name=plain(name),
        params=tuple(_read_params(text, params)) if params else (),
        matcher=None if matcher is None else parse(matcher),
        k=None if k is None else _read_cutoff(text, k),
    )


def write_value(value: Value | Mapping[float, float]) -> str:
    """A parameter's value as a spelling writes it."""
    if isinstance(value, Mapping):
        pairs = value.items()
        return ";".join(f"{write_value(k)}:{write_value(v)}" for k, v in pairs)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return repr(value) if isinstance(value, float) else str(value)


def _read_params(text: str, params: str) -> list[tuple[str | None, Value]]:
    pairs: list[tuple[str | None, Value]] = []
    for part in params.split(","):
        name, equals, value = part.partition("=")
        if not part.strip() or (equals and not (name.strip() and value.strip())):
            raise SpellingError(text, f"empty parameter in ({params})")
        if equals:
            pairs.append((plain(name), _read_value(value)))
        else:
            pairs.append((None, _read_value(name)))
    return pairs


def _read_value(text: str) -> Value:
    text = text.strip()
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _read_cutoff(text: str, k: str) -> int | str:
    if k.lower() == LETTER:
        return LETTER
    if not re.fullmatch(r"[0-9]{1,9}", k) or int(k) < 1:
        raise ParameterError(text, LETTER, "an integer >= 1", k)
    return int(k)


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


@dataclass(frozen=True)
class Spelled:
    """What a spelling names, a metric or a matcher: its fields are the parameters."""

    name: ClassVar[str]
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}
    limits: ClassVar[dict[str, str]] = {}

    def __post_init__(self) -> None:
        plain_numbers(self)
        for parameter, allowed in self.choices.items():
            if (value := getattr(self, parameter)) not in allowed:
                must_be = f"one of {', '.join(map(repr, allowed))}"
                raise ParameterError(self.name, parameter, must_be, value)
        for parameter, interval in self.limits.items():
            if not _lies_in(interval, value := getattr(self, parameter)):
                must_be = _in_words(interval)
                raise ParameterError(self.name, parameter, must_be, value)

    @property
    def spelling(self) -> Spelling:
        """The canonical spelling; parameters at their defaults are left out."""
        params = tuple(
            (field.name, getattr(self, field.name))
            for field in fields(self)
            if field.name != LETTER and getattr(self, field.name) != field.default
        )
        return Spelling(self.name, params, None, getattr(self, LETTER, None))

    def __str__(self) -> str:
        return str(self.spelling)


def _in_words(interval: str) -> str:
    """An interval for people: `(0, 1]` is "a number > 0 and <= 1"."""
    low, high = interval[1:-1].split(", ")
    least = f"{'>=' if interval[0] == '[' else '>'} {low}"
    most = f"{'<=' if interval[-1] == ']' else '<'} {high}"
    limits = [text for text in (least, most) if "inf" not in text]
    return f"a number {' and '.join(limits)}" if limits else "a finite number"


def _lies_in(interval: str, value: object) -> bool:
    low, high = map(float, interval[1:-1].split(","))
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return low < value < high or (
        (value == low and interval[0] == "[") or (value == high and interval[-1] == "]")
    )


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
