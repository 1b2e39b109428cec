"""The types that a saved evaluation is made of, checked before anything is read."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from karat.errors import FormatError
from karat.reading.meaning.values import show

__all__ = ["check_types"]

Check: TypeAlias = Callable[[Any], str | None]
"""Says what is wrong with a value, beginning with its place; None: nothing is."""

_LARGEST: Final = 1e150
"""Scores and grades are squared and added up, which has to stay finite."""

_MOST: Final = 2**31

_USUAL: Final = {"id", "missing", "scores", "gold_fingerprint", "matches"}
_USUAL_MATCH: Final = {"retrieved", "items"}


def check_types(saved: Mapping[str, Any], version: int) -> None:
    """Refuse a saved evaluation in which a value has another type than it should.

    Raises:
        FormatError: it says which value, and what it should be.
    """
    if version > 1 and _usual(saved.get("queries")):
        # Nothing is wrong with the rows: what is left is checked without them.
        saved = {**saved, "queries": []}
    if problem := (_FIRST if version == 1 else _SECOND)(saved):
        raise FormatError(f"is not a whole evaluation: {problem.lstrip('.: ')}")


def _usual(rows: Any) -> bool:  # noqa: PLR0911
    """Whether all rows have the usual fields, and only values that these may have.

    A step per row and not per value: a hundred thousand rows take a moment. Rows that
    are not usual may still be right, and are looked at value by value.
    """
    if type(rows) is not list or {*map(type, rows)} - {dict}:
        return False
    if any(row.keys() != _USUAL for row in rows):
        return False
    scores, matches = [r["scores"] for r in rows], [r["matches"] for r in rows]
    texts = [value for row in rows for value in (row["id"], row["gold_fingerprint"])]
    if {*map(type, texts)} - {str} or {type(row["missing"]) for row in rows} - {bool}:
        return False
    if {*map(type, scores), *map(type, matches)} - {dict}:
        return False
    found = [match for row in matches for match in row.values()]
    if {*map(type, found)} - {dict} or any(m.keys() != _USUAL_MATCH for m in found):
        return False
    lists = [match["items"] for match in found]
    if {*map(type, lists)} - {list}:
        return False
    items = [item for row in lists for item in row]
    if {*map(type, items)} - {list} or any(len(item) < 2 for item in items):  # noqa: PLR2004
        return False
    names = {name for row in (*scores, *matches) for name in row}
    numbers = [value for row in scores for value in row.values() if value is not None]
    numbers += [item[1] for item in items]
    ranks = [rank for item in items for rank in item[2:] if rank is not None]
    counts = [match["retrieved"] for match in found]
    named = {type(item[0]) for item in items} | {*map(type, names)}
    return named <= {str} and _small(numbers, ranks, counts)


def _small(numbers: list[Any], ranks: list[Any], counts: list[Any]) -> bool:
    """Whether numbers are finite, and ranks and counts are such."""
    if {*map(type, numbers)} - {int, float} or {*map(type, ranks + counts)} - {int}:
        return False
    return (
        sum(map(abs, numbers)) < _LARGEST
        and min(ranks, default=1) > 0
        and min(counts, default=0) >= 0
        and max(ranks + counts, default=0) < _MOST
    )


def _is(wanted: str, test: Callable[[Any], bool]) -> Check:
    return lambda value: (
        None if test(value) else f" must be {wanted}, got {show(value)}"
    )


def _or_null(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _list(check: Check, size: int | None = None) -> Check:
    def of(value: Any) -> str | None:
        if not isinstance(value, list | tuple):
            return f" must be a list, got {show(value)}"
        if size is not None and len(value) != size:
            return f" must have {size} entries, got {len(value)}"
        for place, entry in enumerate(value):
            if problem := check(entry):
                return f"[{place}]{problem}"
        return None

    return of


def _row(*checks: Check, more: Check | None = None) -> Check:
    """A list whose first entries have a type each, and whose others have one."""

    def of(value: Any) -> str | None:
        if not isinstance(value, list | tuple):
            return f" must be a list, got {show(value)}"
        if len(value) < len(checks) or (more is None and len(value) > len(checks)):
            return f" must have {len(checks)} entries, got {len(value)}"
        for place, entry in enumerate(value):
            check = checks[place] if place < len(checks) else more
            if check is not None and (problem := check(entry)):
                return f"[{place}]{problem}"
        return None

    return of


def _object(check: Check) -> Check:
    """An object whose values all have one type."""

    def of(value: Any) -> str | None:
        if not isinstance(value, Mapping):
            return f" must be an object, got {show(value)}"
        for name, entry in value.items():
            if not isinstance(name, str):
                return f" has a key that is no text: {show(name)}"
            if problem := check(entry):
                return f".{name}{problem}"
        return None

    return of


def _fields(required: Mapping[str, Check], **optional: Check) -> Check:
    """An object with fields of its own types each."""
    known = {**required, **optional}

    def of(value: Any) -> str | None:
        if not isinstance(value, Mapping):
            return f" must be an object, got {show(value)}"
        for name, entry in value.items():
            check = known.get(name)
            if check is None:
                return f" has a field that karat does not know: {name!r}"
            if problem := check(entry):
                return f".{name}{problem}"
        for name in required:
            if name not in value:
                return f": {name!r} is missing"
        return None

    return of


def _plain(value: Any) -> str | None:
    """Anything that JSON can hold: all numbers in it are finite."""
    if isinstance(value, Mapping):
        return _object(_plain)(value)
    if isinstance(value, list | tuple):
        return _list(_plain)(value)
    if value is None or isinstance(value, str | bool | int):
        return None
    return _NUMBER(value)


_NUMBER = _is(
    "a finite number",
    lambda value: type(value) in (int, float) and abs(value) < _LARGEST,
)
_TEXT = _is("a text", lambda value: isinstance(value, str))
_FLAG = _is("true or false", lambda value: isinstance(value, bool))
_COUNT = _is("an integer >= 0", lambda value: type(value) is int and 0 <= value < _MOST)
_RANK = _is("an integer >= 1", lambda value: type(value) is int and 0 < value < _MOST)
_INTEGER = _is("an integer", lambda value: type(value) is int)

_VERDICTS = _list(
    _fields(
        {"claim": _TEXT, "alone": _list(_RANK), "together": _list(_RANK)},
        text=_TEXT,
        reason=_TEXT,
        failure=_or_null(_TEXT),
        disagreement=_NUMBER,
        partial=_list(_RANK),
        against=_list(_RANK),
    )
)
_USAGE = _fields({}, prompt_tokens=_COUNT, completion_tokens=_COUNT, replies=_COUNT)
_METRIC = _fields(
    {
        "mean": _or_null(_NUMBER),
        "n": _COUNT,
        "undefined": _COUNT,
        "failed": _object(_TEXT),
        "binary": _FLAG,
        "bounds": _list(_or_null(_NUMBER), 2),
        "cutoffs": _list(_RANK),
        "matcher": _or_null(_TEXT),
    },
    average=_TEXT,
    higher_is_better=_or_null(_FLAG),
    interval=_or_null(
        _fields({"low": _NUMBER, "high": _NUMBER, "level": _NUMBER, "method": _TEXT})
    ),
)
_NOTICE = _fields(
    {"kind": _TEXT, "count": _COUNT, "text": _TEXT, "examples": _list(_TEXT)},
    one=_TEXT,
)
_HEAD: Mapping[str, Check] = {
    "schema_version": _RANK,
    "run": _TEXT,
    "gold": _TEXT,
    "policies": _fields(
        {},
        **dict.fromkeys(
            ("undefined", "missing", "extra", "duplicates", "ties", "precision"), _TEXT
        ),
        threshold=_or_null(_NUMBER),
        depth=_or_null(_RANK),
        judged_only=_FLAG,
        force=_FLAG,
        profile=_or_null(_TEXT),
        identical=_TEXT,
    ),
    "provenance": _object(_plain),
    "metrics": _object(_METRIC),
    "warnings": _list(_NOTICE),
}
_QUERY: Mapping[str, Check] = {
    "id": _TEXT,
    "missing": _FLAG,
    "scores": _object(_or_null(_NUMBER)),
    "gold_fingerprint": _TEXT,
}
_FIRST = _fields(
    {
        **_HEAD,
        "queries": _list(
            _fields(
                {
                    **_QUERY,
                    "first_ranks": _object(_or_null(_RANK)),
                    "retrieved": _COUNT,
                    "tags": _list(_TEXT),
                },
                verdicts=_VERDICTS,
                usage=_USAGE,
            )
        ),
    }
)
_MATCH = _fields(
    {
        "retrieved": _COUNT,
        "items": _list(_row(_TEXT, _NUMBER, more=_or_null(_RANK))),
    },
    gains=_list(_NUMBER),
    joint=_list(_row(_COUNT, _RANK)),
    coverage=_fields(
        {
            "size": _NUMBER,
            "documents": _list(_row(_RANK, _NUMBER, _NUMBER, _NUMBER, _NUMBER)),
            "rises": _list(_row(_COUNT, _RANK, _NUMBER, _FLAG)),
        }
    ),
    subtopics=_list(_row(_COUNT, _COUNT, _NUMBER)),
    failure=_TEXT,
    verdicts=_VERDICTS,
    usage=_USAGE,
)
_DOCUMENT = _fields(
    {},
    **dict.fromkeys(("id", "text", "source"), _TEXT),
    score=_NUMBER,
    start=_INTEGER,
    end=_INTEGER,
    metadata=_object(_plain),
)
_SECOND = _fields(
    {
        **_HEAD,
        "labelled_by": _object(_COUNT),
        "default_matcher": _TEXT,
        "matchers": _object(
            _fields({"judged": _FLAG, "distinct": _FLAG, "extra": _COUNT})
        ),
        "queries": _list(
            _fields(
                {**_QUERY, "matches": _object(_MATCH)},
                text=_TEXT,
                k=_RANK,
                own_k=_RANK,
                tags=_list(_TEXT),
                metadata=_object(_plain),
                documents=_list(_DOCUMENT),
                latency=_fields({"ms": _NUMBER}, earlier=_FLAG, first_call=_FLAG),
            )
        ),
    },
    latency=_fields(
        {"n": _COUNT, "earlier": _COUNT},
        **dict.fromkeys(("p50", "p95", "p99"), _or_null(_NUMBER)),
    ),
)
