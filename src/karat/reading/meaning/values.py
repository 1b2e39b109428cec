"""Single values as files give them: ids, grades, cutoffs, lists in a string."""

import ast
import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from numbers import Real
from typing import Any, TypeGuard
from uuid import UUID

from karat.data.tables import counted
from karat.errors import FormatError
from karat.reading.files import decode_json
from karat.reading.meaning.aliases import infer, is_misspelt, is_record, is_row
from karat.reading.source import Notes

COERCED = (
    "{id given as a number is|ids given as numbers are} read as text: 1 and '1' are "
    "one id"
)

_WORDS = 3
_LONG = 20
_OPENINGS = ('["', "['", "[{", '{"')
_TAGS = re.compile(r"[,;]")
# What NumPy prints, and pandas writes into tables: values without commas.
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_ARRAY = re.compile(rf"\[\s*(?:{_QUOTED.pattern})(?:\s+(?:{_QUOTED.pattern}))+\s*\]")
_NUMBERS = re.compile(r"\[\s*[-+.\deE]+(?:\s+[-+.\deE]+)+\s*\]")
_TRUTH = {
    **dict.fromkeys(("true", "yes", "relevant", "correct", "good", "up", "pass"), 1.0),
    **dict.fromkeys(("false", "no", "irrelevant", "not relevant", "incorrect"), 0.0),
    **dict.fromkeys(("bad", "down", "fail", "negative"), 0.0),
    "positive": 1.0,
}
# Words without spaces, with one and the same mark between them.
_JOINED = re.compile(r"\s*[^\s,;|]+(?:(\s*[,;|]\s*)[^\s,;|]+)(?:\1[^\s,;|]+)*\s*")
_NUMBER = "number"
# The kinds of the values of a row, text or number, and what they are.
_ROWS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile("ttn|tnn|ntn"), ("query_id", "doc_id", _NUMBER)),
    (re.compile("[tn][tn]tn"), ("query_id", "", "doc_id", _NUMBER)),
    (re.compile("[tn]tnt"), ("query_id", "doc_id", _NUMBER, "")),
    (re.compile("[tn]t[tn]nn[tn]"), ("query_id", "", "doc_id", "rank", "score", "")),
)
_ENOUGH = 100
_PAIR = 2
_WORD = re.compile(r"[!-~]+(?<![.!?])")
_DEEPEST = 5
_SCALARS = (str, bytes, int, float, type(None))


def show(value: object) -> str:
    """A value as messages show it: its type and a short look."""
    if value is None:
        return "nothing (null)"
    look = repr(value) if not isinstance(value, list | dict) else _glimpse(value)
    if " at 0x" in look:
        return f"an object of {type(value).__name__}"
    look = look if len(look) <= 60 else f"{look[:57]}..."  # noqa: PLR2004
    return f"{type(value).__name__} {look}"


def _glimpse(value: list[Any] | dict[Any, Any]) -> str:
    # The repr of a large or deep value takes long, or recurses too far.
    parts = value.values() if isinstance(value, dict) else value
    if len(value) < _LONG and not any(isinstance(p, list | dict) for p in parts):
        return repr(value)
    return f"with {counted(len(value), 'entry')}"


def read_id(value: object, what: str, notes: Notes) -> str:
    """An id as text; whole numbers are written out, and that is noted."""
    if isinstance(value, str):
        if not value.strip():
            raise FormatError(f"{what} is empty")
        return value
    if isinstance(value, UUID):
        return str(value)
    # Arrays have the method too: those with a shape are no number.
    plain = not isinstance(value, bool) and not getattr(value, "shape", ())
    if plain and hasattr(value, "__index__"):
        notes.notice("coerced", COERCED, value)
        return str(value.__index__())
    raise FormatError(
        f"{what} must be a string or an integer, got {show(value)}",
        hint="put it in quotes" if isinstance(value, float | bool) else None,
    )


def as_record(row: Any) -> Any:
    """A named tuple, a dataclass or a model of pydantic as a mapping; or as is."""
    if hasattr(row, "_asdict"):
        # A query of several parts says itself which is the text.
        text = {"text": row.default_text()} if hasattr(row, "default_text") else {}
        return row._asdict() | text
    is_value = dataclasses.is_dataclass(row) or hasattr(row, "__pydantic_fields__")
    return vars(row) if is_value and not isinstance(row, type) else row


def as_records(values: Any) -> Any:
    """The same with objects that have the fields of a record as mappings."""
    first = next(iter(values), None) if isinstance(values, list) else None
    record = as_record(first)
    if record is first or not (hasattr(first, "_asdict") or is_record(infer(record))):
        return values
    return [*map(as_record, values)]


def holds_rows(values: Sequence[Any]) -> bool:
    """Whether a list holds rows of query, document and number, as tuples or the like.

    Also rows as lines of TREC qrels and runs have them, and as ir_datasets does.
    """
    first = as_record(values[0]) if values else None
    if isinstance(first, dict) and first is not values[0]:
        return is_row(infer(first))
    layouts = {_layout(row) for row in values[:_ENOUGH]}
    return len(layouts) == 1 and None not in layouts


def _layout(row: Any) -> tuple[str, ...] | None:
    """What the values of a row are, as far as their kinds say."""
    if not isinstance(row, list | tuple):
        return None
    kinds = "".join(
        "t" if isinstance(value, str) else "n" if isinstance(value, Real) else "?"
        for value in row
    )
    return next((names for known, names in _ROWS if known.fullmatch(kinds)), None)


def as_row(record: object, role: str | None) -> dict[str, str]:
    """What the fields of a record are if it looks like a row under foreign names."""
    cells = record if isinstance(record, Mapping) else {}
    values = [(plain_floats([c]) or [c])[0] for c in cells.values()]
    if any(isinstance(value, str) and " " in value for value in values):
        return {}
    number = "grade" if role == "gold" else "score"
    ours = {"query_id": "id", "doc_id": "document", _NUMBER: number}
    names = zip(_layout(values) or (), map(str, cells), strict=False)
    return {ours.get(kind, kind): theirs for kind, theirs in names if kind}


def named_rows(values: Sequence[Any], role: str | None) -> Iterator[Any]:
    """Tuples of query, document and number as records."""
    number = "grade" if role == "gold" else "score"
    names = [number if n == _NUMBER else n for n in _layout(values[0]) or ()]
    for row in map(as_record, values):
        if isinstance(row, list | tuple):
            pairs = zip(names, row, strict=False)
            yield {name: value for name, value in pairs if name}
        else:
            yield row


def are_ids(*columns: Iterable[Any]) -> bool:
    """Whether all of these are texts that can be ids, without looking at each."""
    for ids in columns:
        try:
            joined = "".join(ids)
        except TypeError:
            return False
        # Only where there is any space at all may one of them be nothing else.
        spaced = " " in joined or not joined.isprintable()
        if not all(map(str.strip, ids) if spaced else ids):
            return False
    return True


def read_ids(values: Sequence[Any], what: str, notes: Notes) -> Sequence[str]:
    """Several ids; a list that holds nothing but texts is returned as it is."""
    if {*map(type, values)} <= {str} and "" not in values:
        return values
    return [read_id(value, what, notes) for value in values]


def read_number(value: object, what: str) -> float:
    """A finite number; a text that spells one will do, as tables hold nothing else."""
    try:
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            if not isinstance(value, str) or "_" in value:
                raise ValueError(value)  # noqa: TRY301
            value = value.strip()
        number = float(value)
    except (ValueError, TypeError):
        raise FormatError(f"{what} must be a number, got {show(value)}") from None
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise FormatError(f"{what} must be a finite number, got {show(value)}")
    return number


def plain_floats(values: Collection[Any]) -> list[float] | None:
    """The numbers that these are or spell; None if any has to be looked at alone."""
    kinds = {*map(type, values)}
    if not kinds <= {float, int} and (kinds != {str} or "_" in "".join(values)):
        return None
    try:
        numbers = [*values] if kinds == {float} else [*map(float, values)]
    except (OverflowError, ValueError):
        return None
    return numbers if isfinite(sum(numbers)) else None


def read_grade(value: object, what: str = "grade") -> float:
    """A label: a finite number, or a word such as true for 1 and false for 0."""
    if isinstance(value, str) and (word := value.strip().lower()) in _TRUTH:
        return _TRUTH[word]
    is_bool = type(value).__name__ in {"bool", "bool_"}
    return float(bool(value)) if is_bool else read_number(value, what)


def note_unread(name: str, value: object, notes: Notes, field: str = "grade") -> None:
    """Say so if a value beside an id may be its grade or score, but is not read so."""
    try:
        number = read_number(value, name) if field == "score" else read_grade(value)
    except FormatError:
        return
    if number == 0 and field == "grade" and is_misspelt(field, name):
        raise FormatError(
            f"{name!r} holds 0 and is not read as a grade: what is not relevant would "
            "count as relevant",
            hint=f"--map grade={name} (mapping={{'grade': {name!r}}} in Python) reads "
            "it; if it holds no grades, rename it",
        )
    what = f"not read as a grade, every gold id counts as relevant; --map {field}="
    if field == "score":
        what = "not read, the order of the rows counts; --map score= or distance="
    text = f"{{value|values}} of {name!r} {{is|are}} {what}{name} reads {{it|them}}"
    notes.notice("unread", text, value)


def read_cutoff(value: object) -> int:
    """A query's own k."""
    if isinstance(value, str) and re.fullmatch(r"\s*\+?0*[1-9][0-9]{0,8}\s*", value):
        return int(value)
    if hasattr(value, "__index__") and not isinstance(value, bool):
        number = int(value.__index__())
        if 1 <= number < 10**9:
            return number
    raise FormatError(f"k must be an integer >= 1, got {show(value)}")


def read_tags(value: object) -> tuple[str, ...]:
    """Tags from a list, or from one text at commas and semicolons; each once."""
    value = unpack(value)
    parts = _TAGS.split(value) if isinstance(value, str) else value
    if not is_list(parts) or not all(isinstance(part, str | int) for part in parts):
        raise FormatError(f"tags must be a text or a list of texts, got {show(value)}")
    return tuple(dict.fromkeys(tag for part in parts if (tag := str(part).strip())))


def read_text(value: object, what: str) -> str:
    """A text that says something."""
    if not isinstance(value, str):
        raise FormatError(f"{what} must be a text, got {show(value)}")
    return value


def note_joined(value: object, what: str, notes: Notes) -> None:
    """Say so if a text that is taken for one id seems to hold several."""
    if not isinstance(value, str):
        return
    words = value.split()
    numbered = len(words) > 1 and all(re.search(r"\d", word) for word in words)
    if numbered or _JOINED.fullmatch(value):
        text = f"{{{what} read as one id|{what}s read as one id each}}"
        notes.notice("joined", f'{text}; a list is JSON: ["a", "b"]', value)


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a list or the like, not a text or a mapping."""
    if type(value) is list:
        return True
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def is_pair(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether a value is a document and its score."""
    if not isinstance(value, list | tuple) or len(value) != _PAIR:
        return False
    document, number = value
    # A number may be one of a library, such as NumPy's, whose arrays are none.
    numeric = hasattr(number, "__float__") and not getattr(number, "shape", ())
    bare = isinstance(number, bool) or isinstance(document, list | tuple | None)
    return numeric and not bare


def is_scores(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping holds nothing but numbers."""
    return all(isinstance(number, int | float | Real) for number in value.values())


def looks_like_text(values: Sequence[str]) -> bool:
    """Whether most of these strings are prose rather than ids.

    Prose has three words or more, or is long and not ASCII: many scripts do without
    spaces.
    """
    values = values[:1000]
    together = "".join(values)
    if together.isascii() and len(together.split(maxsplit=1)) <= 1:
        # No blank between any two letters.
        return False
    prose = sum(
        len(value.split(maxsplit=_WORDS)) >= _WORDS
        or (len(value) > _LONG and not value.isascii())
        for value in values
    )
    return prose * 2 > len(values)


def looks_like_id(text: str) -> bool:
    """Whether a text is one word of ASCII and no sentence, as ids are."""
    return _WORD.fullmatch(text) is not None


def unpack(value: object) -> Any:
    """A list or mapping written into a string, as tables and logs do; else the value.

    JSON, or the way Python prints lists, which is what pandas writes into tables.
    """
    if type(value) is list or type(value) is dict:
        return value
    if isinstance(value, str):
        text = value.strip()
        if text[:1] + text[-1:] in {"[]", "{}"} or text.startswith(_OPENINGS):
            return _unpack_text(text)
        return value
    # Arrays of NumPy, Arrow and pandas.
    if hasattr(value, "tolist") and not isinstance(value, Mapping):
        return value.tolist()
    return value


def _unpack_text(text: str) -> Any:
    try:
        return decode_json(text)
    except FormatError as error:
        if "'" in text and _ARRAY.fullmatch(text):
            return [ast.literal_eval(word) for word in _QUOTED.findall(text)]
        if _NUMBERS.fullmatch(text):
            return [_plain_number(word) for word in text[1:-1].split()]
        if "..." in text and "," not in text:
            raise FormatError("was shortened by NumPy when it was written") from None
        if "'" in text:
            # Python's own parser stops at 200 levels of brackets.
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                return ast.literal_eval(text)
        raise FormatError(
            f"looks like a list or mapping but is not JSON: {error.problem}"
        ) from None


def _plain_number(word: str) -> int | float:
    with suppress(ValueError):
        return int(word)
    return read_number(word, "a number in a list")


def value_at(record: object, path: str) -> Any:
    """A field by its name, or by the dotted path to it; a list gives one value each."""
    found = _get(record, path)
    if found is not None or "." not in path:
        return found
    first, *rest = path.split(".")
    return _descend(_get(record, first), rest)


def _get(thing: object, name: str) -> Any:
    """A field of a mapping, or an attribute of an object."""
    if isinstance(thing, Mapping):
        return thing.get(name)
    found = None if isinstance(thing, _SCALARS) else getattr(thing, name, None)
    return None if callable(found) else found


def _descend(value: Any, parts: list[str]) -> Any:
    if not parts:
        return value
    value = unpack(value)
    if is_list(value):
        found = [_descend(entry, parts) for entry in value]
        return None if found and all(entry is None for entry in found) else found
    return _descend(_get(value, parts[0]), parts[1:])


def paths_in(value: object, before: str = "") -> Iterator[tuple[str, Any]]:
    """The fields of a mapping and of those inside it: the path to each, its value."""
    deep = before.count(".") > _DEEPEST
    for name, inner in value.items() if isinstance(value, Mapping) and not deep else ():
        yield f"{before}{name}", inner
        yield from paths_in(inner, f"{before}{name}.")
