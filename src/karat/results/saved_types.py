"""The check of a saved evaluation against the JSON Schema of its version."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from types import NoneType
from typing import Any, Final, TypeAlias

from karat.errors import FormatError
from karat.reading.meaning.values import show

Schema: TypeAlias = Mapping[str, Any]

Problem: TypeAlias = tuple[int, str] | None
"""Which of some values is wrong, and how, beginning with the place in it."""

_KINDS: Final[Mapping[str, tuple[set[type], str]]] = {
    "string": ({str}, "a text"),
    "boolean": ({bool}, "true or false"),
    "integer": ({int}, "an integer"),
    "number": ({int, float}, "a finite number"),
    "object": ({dict}, "an object"),
    "array": ({list, tuple}, "a list"),
    "any": ({str, bool, int, float, dict, list, tuple, NoneType}, "a plain value"),
}
# Scores and grades are squared and added up, which has to stay finite.
_LARGEST: Final = 1e150
_LARGEST_INTEGER: Final = 2**31


def check_types(saved: Mapping[str, Any]) -> None:
    """Refuse a saved evaluation that does not follow the published schema.

    Raises:
        FormatError: it says which value, and what it should be.
    """
    forms = _forms()
    if problem := _Checker(forms).check(forms["evaluation"], [saved]):
        raise FormatError(f"is not a whole evaluation: {problem[1].lstrip('.: ')}")


@cache
def _forms() -> Mapping[str, Schema]:
    path = Path(__file__).with_name("evaluation-2.schema.json")
    forms: Mapping[str, Schema] = json.loads(path.read_text("utf-8"))["$defs"]
    return forms


class _Checker:
    """Looks at all values of one place together, a step per field and not per value.

    So a hundred thousand queries take a moment. Of JSON Schema it knows what the
    schemas of evaluations use.
    """

    def __init__(self, forms: Mapping[str, Schema]) -> None:
        self._forms = forms

    def check(self, form: Schema, values: Sequence[Any]) -> Problem:
        """The first value that does not have the form."""
        if "$ref" in form:
            form = self._forms[form["$ref"].rpartition("/")[2]]
        kind = form.get("type", "any")
        if "oneOf" in form or isinstance(kind, list):
            # Or null.
            form = form["oneOf"][1] if "oneOf" in form else {**form, "type": kind[0]}
            if None not in values:
                return self.check(form, values)
            places = [at for at, value in enumerate(values) if value is not None]
            return _at(places, self.check(form, [values[at] for at in places]))
        types, wanted, holds = _rule(form, kind)
        right = {*map(type, values)} <= types
        if not right or (holds and not all(map(holds, values))):
            for at, value in enumerate(values):
                if type(value) not in types or (holds and not holds(value)):
                    return at, f" must be {wanted}, got {show(value)}"
        if values and kind == "object":
            return self._check_objects(form, values)
        if values and kind == "array":
            return self._check_lists(form, values)
        return None

    def _check_objects(self, form: Schema, values: Sequence[Any]) -> Problem:
        counts = Counter(chain.from_iterable(values))
        known = form.get("properties", {})
        others = form.get("additionalProperties", {})
        odd = {n for n in counts if others is False and n not in known}
        if odd := odd | {n for n in counts if not isinstance(n, str)}:
            at = next(at for at, v in enumerate(values) if not odd.isdisjoint(v))
            name = next(name for name in values[at] if name in odd)
            return at, f" has a field that karat does not know: {name!r}"
        if not known:
            entries = [entry for value in values for entry in value.values()]
            found = _at_entry(values, self.check(others, entries))
            return found and (found[0], f".{[*values[found[0]]][found[1]]}{found[2]}")
        needed = form.get("required", ())
        for name in (name for name in known if counts[name] or name in needed):
            places: Sequence[int] = range(len(values))
            if counts[name] < len(values):
                if name in needed:
                    at = next(at for at in places if name not in values[at])
                    return at, f": {name!r} is missing"
                places = [at for at in places if name in values[at]]
            if problem := self.check(known[name], [values[at][name] for at in places]):
                return _at(places, problem, f".{name}")
        return None

    def _check_lists(self, form: Schema, values: Sequence[Any]) -> Problem:
        sizes = [*map(len, values)]
        least, most = form.get("minItems", 0), form.get("maxItems", max(sizes))
        if min(sizes) < least or max(sizes) > most:
            at = next(at for at, n in enumerate(sizes) if not least <= n <= most)
            return at, f" must have {least} entries, got {sizes[at]}"
        first = form.get("prefixItems", ())
        for place, kind in enumerate(first):
            if problem := self.check(kind, [value[place] for value in values]):
                return problem[0], f"[{place}]{problem[1]}"
        start = len(first)
        entries = [entry for value in values for entry in value[start:]]
        problem = self.check(form.get("items", {}), entries)
        found = _at_entry(
            [value[start:] for value in values] if problem else (), problem
        )
        return found and (found[0], f"[{start + found[1]}]{found[2]}")


def _rule(
    form: Schema, kind: str
) -> tuple[set[type], str, Callable[[Any], bool] | None]:
    """The types that a value may have, what it must be in words, and what holds."""
    if "enum" in form or "const" in form:
        allowed = form["enum"] if "enum" in form else [form["const"]]
        words = f"one of {', '.join(map(repr, allowed))}"
        return {*map(type, allowed)}, words, allowed.__contains__
    types, wanted = _KINDS[kind]
    if kind == "integer":
        least = form.get("minimum", -_LARGEST_INTEGER)
        words = f"{wanted} >= {least}" if "minimum" in form else wanted
        return types, words, range(least, _LARGEST_INTEGER).__contains__
    if kind == "number":
        low, high = form.get("minimum", -_LARGEST), form.get("maximum", _LARGEST)
        return types, wanted, lambda value: low <= value <= high
    return types, wanted, _is_plain if kind == "any" else None


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold it: all numbers in it are finite."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _at(places: Sequence[int], problem: Problem, before: str = "") -> Problem:
    """The problem of a part, told of the values that the parts are of."""
    return problem and (places[problem[0]], before + problem[1])


def _at_entry(values: Sequence[Any], problem: Problem) -> tuple[int, int, str] | None:
    """The problem of an entry of all values: whose it is, its place there, and what."""
    if problem is None:
        return None
    ends = [*accumulate(map(len, values))]
    at = next(at for at, end in enumerate(ends) if problem[0] < end)
    return at, problem[0] - ends[at] + len(values[at]), problem[1]
