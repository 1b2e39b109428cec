"""Results as plain values: what JSON can hold, and back again by their types.

An evaluation has a head and rows for people besides, which follow from it.
"""

import json
import math
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache, partial
from json.encoder import encode_basestring
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    NoReturn,
    Self,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from karat.catalogue import Catalogue
from karat.data.arrays import Bools, Floats
from karat.data.intervals import Interval
from karat.data.runs import Notice, TopDocuments
from karat.data.tables import Table
from karat.errors import (
    DataError,
    FormatError,
    KaratError,
    MissingExtraError,
    UsageError,
)
from karat.reading.files import decode_json, decode_text, open_binary
from karat.reading.meaning.values import show
from karat.reading.source import placed
from karat.writing import write_file

if TYPE_CHECKING:
    import pandas as pd

    from karat.results.evaluation import Evaluation

Place: TypeAlias = Any
"""How messages call a value: by a text, or by what holds it and which part it is."""

Reader: TypeAlias = Callable[[Any, Place], Any]
"""Makes a value of a plain one that stands somewhere, or refuses it."""

# Scores and grades are squared and added up, which has to stay finite.
_NUMBERS: Final[Mapping[Any, tuple[set[type], str, float]]] = {
    bool: ({bool}, "true or false", 1),
    int: ({int}, "an integer", 2**31 - 1),
    float: ({int, float}, "a finite number", 1e150),
}
_NOT_FINITE: Final = {None: math.nan, "inf": math.inf, "-inf": -math.inf}
_ARRAYS: Final = {np.float64: float, np.int64: int, np.bool_: bool}
_PLAIN: Final = {str, int, bool, NoneType}
# What a list of these may hold is taken as it is.
_TEXTS: Final[Mapping[Any, set[type]]] = {str: {str}, str | None: {str, NoneType}}


def as_plain(value: Any) -> Any:  # noqa: PLR0911
    """A value as JSON can hold it: arrays as lists, NaN as null, infinity as `inf`.

    A field is left out where its default is None or empty and so is its value, and one
    with `saved: False` in its metadata always.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None if math.isnan(value) else str(float(value))
    if isinstance(value, np.ndarray):
        return _plain_array(value)
    if isinstance(value, Interval):
        return value.to_dict()
    if is_dataclass(value):
        kind: Any = type(value)
        return {
            one.name: as_plain(entry)
            for one in saved_fields(kind)
            if not _is_empty(one, entry := getattr(value, one.name))
        }
    if isinstance(value, Mapping):
        return {str(name): as_plain(entry) for name, entry in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [*value] if {*map(type, value)} <= _PLAIN else [*map(as_plain, value)]
    return value


def _plain_array(array: Any) -> list[Any]:
    """Its entries; whole numbers as integers, which take half the time."""
    if array.dtype.kind != "f":
        return [*array.tolist()]
    whole = (array < _NUMBERS[int][2]) & (array == np.trunc(array))
    # No integer is a negative zero.
    if whole.all() and not np.signbit(array).any():
        return [*array.astype(np.int64).tolist()]
    plain = array.tolist()
    return [*plain] if np.isfinite(array).all() else [*map(as_plain, plain)]


@cache
def saved_fields(kind: Any) -> tuple[Field[Any], ...]:
    """The fields of a dataclass that are saved."""
    every = fields(kind)
    return tuple(one for one in every if one.init and one.metadata.get("saved", True))


def is_needed(field: Field[Any]) -> bool:
    """Whether a field has no default."""
    return field.default is MISSING and field.default_factory is MISSING


def _is_empty(field: Field[Any], value: Any) -> bool:
    """Whether it has nothing to say, as by default."""
    if value is None or isinstance(value, tuple):
        return not value and value == field.default
    return field.default_factory is dict and not value


def from_plain(kind: Any, saved: Any, place: Place = "it") -> Any:
    """The value of a type that `as_plain` made plain, with every type checked.

    Example:
        >>> from_plain(tuple[float | None, ...], [1, None])
        (1.0, None)
    """
    return _reader(kind)(saved, place)


def parts_of_type(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """What a type is made of; `NDArray` is an alias of its own since NumPy 2.5."""
    origin, inner = get_origin(kind), get_args(kind)
    if hasattr(origin, "__value__"):
        return parts_of_type(origin.__value__[inner])
    return origin, inner


@cache
def _reader(kind: Any) -> Reader:  # noqa: PLR0911
    """What reads values of a kind, made once for all of them."""
    origin, inner = parts_of_type(kind)
    if origin in (Union, UnionType):
        read = _reader(inner[0])
        if NoneType not in inner:
            return read
        return lambda saved, place: None if saved is None else read(saved, place)
    if origin is np.ndarray:
        return partial(_array, *get_args(inner[1]))
    if kind is Interval or is_dataclass(kind):
        return partial(_instance, kind)
    if origin in (Mapping, dict):
        return partial(_mapping, *inner)
    if origin is tuple and inner[-1] is not Ellipsis:
        return partial(_row, inner)
    if origin in (tuple, Sequence, Collection):
        made = {tuple: tuple, Sequence: list, Collection: frozenset}[origin]
        return partial(_list, made, inner[0])
    if origin is Literal:
        kinds = {*map(type, inner)}
        wanted = f"one of {', '.join(map(repr, inner))}"
        return _checked(wanted, lambda v: type(v) in kinds and v in inner)
    if kind is str:
        return _checked("a text", lambda value: isinstance(value, str))
    return _number(kind) if kind in _NUMBERS else _checked("a plain value", _is_plain)


def _refuse(saved: Any, place: Place, wanted: str) -> NoReturn:
    raise FormatError(f"{_name(place)} must be {wanted}, got {show(saved)}")


def _name(place: Place) -> str:
    if isinstance(place, str):
        return place
    holder, part = place
    return _name(holder) + (f"[{part}]" if isinstance(part, int) else f".{part}")


def _checked(wanted: str, holds: Callable[[Any], bool]) -> Reader:
    """What takes values as they are, where they are as they should be."""

    def read(saved: Any, place: Place) -> Any:
        return saved if holds(saved) else _refuse(saved, place, wanted)

    return read


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold it: all numbers in it are finite."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _number(kind: Any) -> Reader:
    """What reads truth values, and numbers of a size that can be computed with."""
    types, wanted, largest = _NUMBERS[kind]

    def read(saved: Any, place: Place) -> Any:
        if type(saved) in types and -largest <= saved <= largest:
            return kind(saved)
        if kind is float and isinstance(saved, str | None) and saved in _NOT_FINITE:
            return _NOT_FINITE[saved]
        return _refuse(saved, place, wanted)

    return read


def _array(dtype: Any, saved: Any, place: Place) -> Any:
    """An array of finite numbers, with null for NaN, or of truth values."""
    if not isinstance(saved, list):
        _refuse(saved, place, "a list")
    types, wanted, largest = _NUMBERS[_ARRAYS[dtype]]
    types = types | {NoneType} if dtype is np.float64 else types
    if {*map(type, saved)} <= types:
        with suppress(OverflowError):
            array = np.array(saved, dtype)
            if not (np.abs(array) > largest).any():
                return array
    wrong = (type(v) not in types or abs(v or 0) > largest for v in saved)
    at = [*wrong].index(True)
    return _refuse(saved[at], (place, at), wanted)


def _list(
    made: Callable[[Iterable[Any]], Any], kind: Any, saved: Any, place: Place
) -> Any:
    if not isinstance(saved, list):
        _refuse(saved, place, "a list")
    if {*map(type, saved)} <= _TEXTS.get(kind, set()):
        return made(saved)
    read = _reader(kind)
    return made([read(entry, (place, n)) for n, entry in enumerate(saved)])


def _row(kinds: Sequence[Any], saved: Any, place: Place) -> tuple[Any, ...]:
    """A tuple of so many values, each of its own kind."""
    if not isinstance(saved, list) or len(saved) != len(kinds):
        _refuse(saved, place, f"a list of {len(kinds)} entries")
    rows = enumerate(zip(kinds, saved, strict=True))
    return tuple(_reader(kind)(entry, (place, n)) for n, (kind, entry) in rows)


def _mapping(key: Any, kind: Any, saved: Any, place: Place) -> dict[Any, Any]:
    if not isinstance(saved, dict):
        _refuse(saved, place, "an object")
    if key is int and not all(map(str.isdecimal, saved)):
        _refuse(saved, place, "an object by whole numbers")
    read = _reader(kind)
    return {key(name): read(entry, (place, name)) for name, entry in saved.items()}


def _instance(kind: Any, saved: Any, place: Place) -> Any:
    """A dataclass or an interval; a field that is not there has its default."""
    if not isinstance(saved, dict):
        _refuse(saved, place, "an object")
    readers, needed = _fields(kind)
    if not needed <= saved.keys() <= readers.keys():
        lacks = needed - saved.keys()
        odd = min(lacks or saved.keys() - readers.keys())
        what = ": {!r} is missing", " has a field that karat does not know: {!r}"
        raise FormatError(_name(place) + what[not lacks].format(odd))
    parts = {name: readers[name](v, (place, name)) for name, v in saved.items()}
    try:
        return kind(**parts)
    except KaratError as error:
        raise FormatError(f"{_name(place)}: {error}") from None


@cache
def _fields(kind: Any) -> tuple[dict[str, Reader], set[str]]:
    """What reads each field of a class, and which fields must be there."""
    hints = get_type_hints(kind)
    needed = {*hints}
    if is_dataclass(kind):
        own = saved_fields(cast("Any", kind))
        hints = {one.name: hints[one.name] for one in own}
        needed = {one.name for one in own if is_needed(one)}
    return {name: _reader(hint) for name, hint in hints.items()}, needed


SHOWN: Catalogue[Callable[..., Any]] = Catalogue(
    "way to show",
    {
        "chart": "karat.reports.figures:plot",
        "csv": "karat.reports.files:rows_as_csv",
        "latex": "karat.reports.files:as_latex",
        "page": "karat.reports.page:as_html",
        "paper": "karat.reports.files:paper_table",
        "tables": "karat.reports.markup:page_of",
    },
)
"""How results are shown, by rooms above this one that are loaded when asked for."""


class SavedResult(ABC):
    """What is saved as JSON, or as a page."""

    @abstractmethod
    def to_json(self) -> str:
        """Everything as JSON, which `load` reads back."""

    @abstractmethod
    def to_html(self) -> str:
        """A page that a browser shows, in one file."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to JSON, which `load` reads back, or to a page (`.html`).

        Raises:
            UsageError: the extension is of another format.
        """
        extension = Path(path).suffix.lower()
        if extension not in {"", ".json", ".html"}:
            raise UsageError(
                f"{os.fspath(path)}: the extension chooses the format, one of .json, "
                ".html"
            )
        page = extension == ".html"
        write_file(path, self.to_html() if page else self.to_json() + "\n")

    def show(self) -> "EmbeddedPage | None":
        """Open the page: below the cell of a notebook, else in the browser."""
        page = self.to_html()
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        marimo = sys.modules.get("marimo")
        if hasattr(shell, "kernel") or (marimo and marimo.running_in_notebook()):
            return EmbeddedPage(page)
        # Only who looks at a page pays for importing these.
        import webbrowser  # noqa: PLC0415
        from tempfile import NamedTemporaryFile  # noqa: PLC0415

        with NamedTemporaryFile(suffix=".html", delete=False) as file:
            file.write(page.encode())
        webbrowser.open(Path(file.name).as_uri())
        return None

    def __rich__(self) -> str:
        # Rich escapes nothing by itself: brackets in spellings are not its markup.
        return str(self).replace("[", "\\[")


class EmbeddedPage:
    """A page below the cell of a notebook, whose scripts reach nothing outside it."""

    def __init__(self, page: str) -> None:
        self._page = page

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415  loaded for few results

        return (
            f'<iframe srcdoc="{escape(self._page)}" title="karat" '
            'sandbox="allow-scripts allow-downloads" '
            'style="width:100%;height:80vh;border:0"></iframe>'
        )


def frame_of(rows: Iterable[Mapping[str, Any]]) -> "pd.DataFrame":
    """Rows as a pandas DataFrame."""
    try:
        import pandas as pd  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError("to_frame()", "frames") from None
    return pd.DataFrame(rows)


class PlainResult(SavedResult):
    """A frozen value that is shown as tables, and saves and loads."""

    saved_as: ClassVar[str]
    schema_version: ClassVar[int] = 1

    @abstractmethod
    def tables(self) -> list[Table]:
        """All that a person is shown."""

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain values."""
        head = {"schema_version": self.schema_version, "kind": self.saved_as}
        return {**head, **as_plain(self)}

    def to_json(self) -> str:
        """Everything as JSON; `load` reads it back."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)

    def write(self, format: str) -> str:
        """The text of a file: html, json, md or txt."""
        if format == "html":
            return self.to_html()
        if format == "json":
            return self.to_json() + "\n"
        if format == "md":
            return "\n\n".join(table.as_markdown() for table in self.tables()) + "\n"
        return str(self) + "\n"

    def to_html(self) -> str:
        """A page that a browser shows: one file."""
        tables = self.tables()
        return str(SHOWN["tables"](tables[0].title, tables))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """What `save` wrote.

        Raises:
            FormatError: the file cannot be read, or holds something else.
        """
        try:
            with open_binary(path) as stream:
                saved = decode_json(decode_text(stream.read()))
            known = isinstance(saved, dict) and saved.get("kind") == cls.saved_as
            if not known or saved.get("schema_version") != cls.schema_version:
                raise FormatError(f"is not a saved {cls.saved_as} of this karat")
            names = saved.keys() & {one.name for one in saved_fields(cls)}
            own = {name: saved[name] for name in names}
            found: Self = from_plain(cls, own, cls.saved_as)
        except DataError as error:
            raise placed(error, path=os.fspath(path)) from None
        return found

    def __str__(self) -> str:
        return "\n\n".join(table.as_text() for table in self.tables())

    def __repr__(self) -> str:
        title = next((table.title for table in self.tables() if table.title), "")
        return f"<{type(self).__name__} {title}>"

    def _repr_html_(self) -> str:
        return "".join(table.as_html() for table in self.tables())


SCHEMA_VERSION: Final = 3
"""Version of the saved form."""

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


@dataclass(frozen=True)
class Summary:
    """What a metric comes to.

    Attributes:
        mean: the mean over the defined scores; null without any.
        interval: the confidence interval of the mean.
        n: number of queries in the mean.
        undefined: number of queries for which the metric says nothing.
        failed: query -> why its score could not be computed.
    """

    mean: float
    interval: Interval | None
    n: int
    undefined: int
    failed: Mapping[str, str]


@dataclass(frozen=True)
class Head:
    """What a file says first, for people and programs; all follows from the value.

    Attributes:
        schema_version: version of the saved form.
        run: name of the run.
        gold: name of the gold.
        metrics: spelling of the metric -> what it comes to.
        warnings: all that a reader should know.
        latency: percentiles of the time that the retriever took, in milliseconds.
    """

    schema_version: Literal[3]
    run: str
    gold: str
    metrics: Mapping[str, Summary]
    warnings: tuple[Notice, ...]
    latency: Mapping[str, float | None] | None = None


@dataclass(frozen=True)
class Row:
    """What a query scored, for people and programs; karat itself does not read it.

    Attributes:
        id: names the query.
        missing: whether the run does not have it.
        scores: metric -> score, or null where there is none.
    """

    id: str
    missing: bool
    scores: Mapping[str, float | None]


def to_dict(result: "Evaluation") -> dict[str, Any]:
    """Everything, in plain values."""
    rows = zip(
        result.queries, result.missing.tolist(), result.scores_by_query(), strict=True
    )
    return {
        **_head(result),
        "evaluation": plain_evaluation(result),
        "queries": [as_plain(Row(*row)) for row in rows],
    }


def plain_evaluation(result: "Evaluation") -> dict[str, Any]:
    """The evaluation itself in plain values, with digests in place of the labels."""
    # Of a query whose id is all that is known, nothing is known.
    facts = {
        query: fact
        for query, fact in result.facts.items()
        if fact.text is not None or fact.k is not None or fact.tags or fact.metadata
    }
    kept = TopDocuments.of(result.kept)
    plain: dict[str, Any] = as_plain(
        replace(result, facts=facts, kept=kept, fingerprints=[*result.digests])
    )
    return plain


def evaluation_json(result: "Evaluation") -> str:
    """Everything as JSON: a line per field of the evaluation, and a line per query."""
    start = "\n    "
    head = json.dumps(_head(result), ensure_ascii=False, indent=2)
    fields = plain_evaluation(result).items()
    value = f",{start}".join(f"{_encode(name)}: {_encode(one)}" for name, one in fields)
    rows = f",{start}".join(_rows(result))
    return (
        f'{head.removesuffix("}").rstrip()},\n  "evaluation": {{{start}{value}\n'
        f'  }},\n  "queries": [{start}{rows}\n  ]\n}}'
    )


def _head(result: "Evaluation") -> dict[str, Any]:
    latency = result.latency
    head = Head(
        schema_version=SCHEMA_VERSION,
        run=result.run,
        gold=result.gold,
        metrics={
            name: Summary(
                mean=column.mean,
                interval=column.interval,
                n=column.n,
                undefined=column.undefined,
                failed={result.queries[at]: why for at, why in column.failures.items()},
            )
            for name, column in result.columns.items()
        },
        warnings=result.warnings,
        latency=None if latency is None else {**latency.percentiles, "n": latency.n},
    )
    plain: dict[str, Any] = as_plain(head)
    return plain


def _rows(result: "Evaluation") -> Iterator[str]:
    """A row per query, from columns of texts that go into one template."""
    names = (f"{_encode(name).replace('%', '%%')}: %s" for name in result.columns)
    template = f'{{"id": %s, "missing": %s, "scores": {{{", ".join(names)}}}}}'
    scores = [_texts(column.scores) for column in result.columns.values()]
    ids = map(encode_basestring, result.queries)
    columns = zip(ids, _texts(result.missing), *scores, strict=True)
    return map(template.__mod__, columns)


def _texts(values: Bools | Floats) -> list[str]:
    """The entries as JSON has them, each that occurs written once."""
    plain = as_plain(values)
    distinct = [*dict.fromkeys(plain)]
    texts = dict(zip(distinct, _encode(distinct)[1:-1].split(", "), strict=False))
    return [*map(texts.__getitem__, plain)]
