"""The form of saved evaluations, and the check of what a file holds against it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple, TypeAlias

from karat.errors import FormatError
from karat.reading.meaning.values import show

__all__ = ["DOCUMENT_COLUMNS", "ITEM_COLUMNS", "SCHEMA_VERSION", "check_types"]

SCHEMA_VERSION: Final = 2
"""Version of the saved form; readers accept this one and all before."""

Form: TypeAlias = Any
"""What a value must be: a kind of value, or a form made of others.

`[form]` is a list, `(form, form)` a list with an entry for each, `{"*": form}` an
object with any names, and `{"name": form, "other?": form}` one with these, of which
those with a question mark may be left out.
"""

Problem: TypeAlias = tuple[int, str] | None
"""Which of some values is wrong, and how, beginning with the place in it."""


class _Kind(NamedTuple):
    wanted: str
    types: frozenset[type]
    holds: Callable[[Any], bool] | None = None


class _OrNull(NamedTuple):
    form: Form


class _More(NamedTuple):
    """As the last entry of a list: any number of these."""

    form: Form


_OBJECT: Final = {dict}, "an object"
_LIST: Final = {list, tuple}, "a list"
_WHOLE: Final = frozenset({int})
# Scores and grades are squared and added up, which has to stay finite.
_LARGEST: Final = 1e150
_NUMBER = _Kind("a finite number", _WHOLE | {float}, lambda v: abs(v) < _LARGEST)
_TEXT = _Kind("a text", frozenset({str}))
_FLAG = _Kind("true or false", frozenset({bool}))
_INTEGER = _Kind("an integer", _WHOLE)
_COUNT = _Kind("an integer >= 0", _WHOLE, range(2**31).__contains__)
_RANK = _Kind("an integer >= 1", _WHOLE, range(1, 2**31).__contains__)
_ANY = _Kind("a plain value", frozenset())

_TEXTS = [_TEXT]
_VERDICTS = [
    {
        "claim": _TEXT,
        "alone": [_RANK],
        "together": [_RANK],
        "text?": _TEXT,
        "reason?": _TEXT,
        "failure?": _OrNull(_TEXT),
        "disagreement?": _NUMBER,
        "partial?": [_RANK],
        "against?": [_RANK],
    }
]
_USAGE = {"prompt_tokens?": _COUNT, "completion_tokens?": _COUNT, "replies?": _COUNT}
_METRIC = {
    "mean": _OrNull(_NUMBER),
    "n": _COUNT,
    "undefined": _COUNT,
    "failed": {"*": _TEXT},
    "binary": _FLAG,
    "bounds": (_OrNull(_NUMBER), _OrNull(_NUMBER)),
    "cutoffs": [_RANK],
    "matcher": _OrNull(_TEXT),
    "average?": _TEXT,
    "higher_is_better?": _OrNull(_FLAG),
    "interval?": _OrNull(
        {"low": _NUMBER, "high": _NUMBER, "level": _NUMBER, "method": _TEXT}
    ),
}
_DOCUMENT = {
    **dict.fromkeys(("id?", "text?", "source?"), _TEXT),
    "score?": _NUMBER,
    "start?": _INTEGER,
    "end?": _INTEGER,
    "metadata?": {"*": _ANY},
}

_COVERED = {
    "rank": _RANK,
    "gold": _NUMBER,
    "length": _NUMBER,
    "fresh": _NUMBER,
    "tokens": _NUMBER,
}
DOCUMENT_COLUMNS: Final = tuple(_COVERED)
"""What is saved of each document that coverage was measured of."""

_RISE = {"item": _COUNT, "item_rank": _RANK, "share": _NUMBER, "sound": _FLAG}
ITEM_COLUMNS: Final = tuple(_RISE)
"""What is saved of each rise of an item's coverage."""

_MATCH = {
    "retrieved": _COUNT,
    "items": [(_TEXT, _NUMBER, _More(_OrNull(_RANK)))],
    "gains?": [_NUMBER],
    "joint?": [(_COUNT, _RANK)],
    "coverage?": {
        "size": _NUMBER,
        "documents": [(*_COVERED.values(),)],
        "rises": [(*_RISE.values(),)],
    },
    "subtopics?": [(_COUNT, _COUNT, _NUMBER)],
    "failure?": _TEXT,
    "verdicts?": _VERDICTS,
    "usage?": _USAGE,
}
_QUERY = {
    "id": _TEXT,
    "missing": _FLAG,
    "scores": {"*": _OrNull(_NUMBER)},
    "gold_fingerprint": _TEXT,
    "matches?": {"*": _MATCH},
    "text?": _TEXT,
    "k?": _RANK,
    "own_k?": _RANK,
    "tags?": _TEXTS,
    "metadata?": {"*": _ANY},
    "documents?": [_DOCUMENT],
    "latency?": {"ms": _NUMBER, "earlier?": _FLAG, "first_call?": _FLAG},
    # What the first version has instead of matches.
    "first_ranks?": {"*": _OrNull(_RANK)},
    "retrieved?": _COUNT,
    "verdicts?": _VERDICTS,
    "usage?": _USAGE,
}
_EVALUATION = {
    "schema_version": _RANK,
    "run": _TEXT,
    "gold": _TEXT,
    "policies": {
        **dict.fromkeys(("undefined?", "missing?", "extra?", "duplicates?"), _TEXT),
        **dict.fromkeys(("ties?", "precision?", "identical?"), _TEXT),
        "threshold?": _OrNull(_NUMBER),
        "depth?": _OrNull(_RANK),
        "judged_only?": _FLAG,
        "force?": _FLAG,
        "profile?": _OrNull(_TEXT),
    },
    "provenance": {"*": _ANY},
    "metrics": {"*": _METRIC},
    "warnings": [
        {
            "kind": _TEXT,
            "count": _COUNT,
            "text": _TEXT,
            "examples": _TEXTS,
            "one?": _TEXT,
        }
    ],
    "queries": [_QUERY],
    # What the first version lacks.
    "labelled_by?": {"*": _COUNT},
    "default_matcher?": _TEXT,
    "matchers?": {"*": {"judged": _FLAG, "distinct": _FLAG, "extra": _COUNT}},
    "latency?": {
        "n": _COUNT,
        "earlier": _COUNT,
        **dict.fromkeys(("p50?", "p95?", "p99?"), _OrNull(_NUMBER)),
    },
}


def check_types(saved: Mapping[str, Any]) -> None:
    """Refuse a saved evaluation in which a value has another type than it should.

    Raises:
        FormatError: it says which value, and what it should be.
    """
    if problem := _check(_EVALUATION, [saved]):
        raise FormatError(f"is not a whole evaluation: {problem[1].lstrip('.: ')}")


def _check(form: Form, values: Sequence[Any]) -> Problem:  # noqa: PLR0911
    """The first value that does not have the form.

    All values of one place are looked at together: a step per field and not per value,
    so that a hundred thousand queries take a moment.
    """
    if not values:
        return None
    if isinstance(form, _Kind):
        return _check_plain(values) if form is _ANY else _check_kind(form, values)
    if isinstance(form, _OrNull):
        if None not in values:
            return _check(form.form, values)
        places = [at for at, value in enumerate(values) if value is not None]
        return _at(places, _check(form.form, [values[at] for at in places]))
    kinds, wanted = _OBJECT if isinstance(form, dict) else _LIST
    if {*map(type, values)} - kinds:
        at = next(at for at, value in enumerate(values) if type(value) not in kinds)
        return at, f" must be {wanted}, got {show(values[at])}"
    if isinstance(form, tuple):
        return _check_row(form, values)
    if isinstance(form, list):
        return _check_entries(form[0], values)
    return _check_fields(form, values)


def _at(places: Sequence[int], problem: Problem, before: str = "") -> Problem:
    """The problem of a part, told of the values that the parts are of."""
    return problem and (places[problem[0]], before + problem[1])


def _check_kind(kind: _Kind, values: Sequence[Any]) -> Problem:
    holds = kind.holds
    if {*map(type, values)} <= kind.types and (not holds or all(map(holds, values))):
        return None
    wrong = (type(v) not in kind.types or (holds and not holds(v)) for v in values)
    at = next(at for at, is_wrong in enumerate(wrong) if is_wrong)
    return at, f" must be {kind.wanted}, got {show(values[at])}"


def _check_entries(form: Form, values: Sequence[Any], start: int = 0) -> Problem:
    """The entries of all lists, from one on, or of all objects."""
    objects = isinstance(values[0], dict)
    if objects:
        entries = [entry for value in values for entry in value.values()]
    else:
        entries = [entry for value in values for entry in value[start:]]
    problem = _check(form, entries)
    if problem is None:
        return None
    ends = [*accumulate(len(value) - start for value in values)]
    at = next(at for at, end in enumerate(ends) if problem[0] < end)
    place = problem[0] - ends[at] + len(values[at])
    return at, (f".{[*values[at]][place]}" if objects else f"[{place}]") + problem[1]


def _check_row(forms: tuple[Form, ...], values: Sequence[Any]) -> Problem:
    more = forms[-1] if isinstance(forms[-1], _More) else None
    first = forms[:-1] if more else forms
    sizes = [*map(len, values)]
    if min(sizes) < len(first) or (more is None and max(sizes) > len(first)):
        at = next(at for at, size in enumerate(sizes) if size != len(first))
        return at, f" must have {len(first)} entries, got {sizes[at]}"
    for place, form in enumerate(first):
        if problem := _check(form, [value[place] for value in values]):
            return problem[0], f"[{place}]{problem[1]}"
    return _check_entries(more.form, values, len(first)) if more else None


def _check_fields(form: dict[str, Form], values: Sequence[Any]) -> Problem:
    counts = Counter(chain.from_iterable(values))
    names = counts.keys()
    known = names if "*" in form else {name.removesuffix("?") for name in form}
    if odd := {n for n in names if n not in known or not isinstance(n, str)}:
        at = next(at for at, value in enumerate(values) if not odd.isdisjoint(value))
        name = next(name for name in values[at] if name in odd)
        return at, f" has a field that karat does not know: {name!r}"
    if "*" in form:
        return _check_entries(form["*"], values)
    for field, kind in form.items():
        name = field.removesuffix("?")
        places: Sequence[int] = range(len(values))
        if counts[name] < len(values):
            places = [at for at in places if name in values[at]] if counts[name] else []
            if name == field:
                at = next(at for at, value in enumerate(values) if name not in value)
                return at, f": {name!r} is missing"
        if problem := _check(kind, [values[at][name] for at in places]):
            return _at(places, problem, f".{name}")
    return None


def _check_plain(values: Sequence[Any]) -> Problem:
    """Anything that JSON can hold: all numbers in it are finite."""
    for at, value in enumerate(values):
        form: Form = _NUMBER
        if isinstance(value, dict):
            form = {"*": _ANY}
        elif isinstance(value, list):
            form = [_ANY]
        elif value is None or isinstance(value, str | bool | int):
            continue
        if problem := _check(form, [value]):
            return at, problem[1]
    return None
