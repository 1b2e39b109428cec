"""Results as plain values: what JSON can hold, and back again by their types.

An evaluation has a head and rows for people besides, which follow from it.
"""

import json
import math
import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import accumulate, chain, pairwise
from json.encoder import encode_basestring
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from karat.data.arrays import Bools, Floats
from karat.data.intervals import Interval
from karat.data.queries import Query
from karat.data.runs import Notice, TopDocuments
from karat.data.tables import Table
from karat.errors import DataError, FormatError, KaratError
from karat.reading.files import decode_json, decode_text, open_binary
from karat.reading.meaning.values import show
from karat.reading.source import placed
from karat.writing import write_file

if TYPE_CHECKING:
    from karat.results.evaluation import Evaluation

Place: TypeAlias = Callable[[int], str]
"""How a message calls the value of that number."""

# Scores and grades are squared and added up, which has to stay finite.
_SCALARS: Final[Mapping[Any, tuple[set[type], str, float]]] = {
    str: ({str}, "a text", 0),
    bool: ({bool}, "true or false", 0),
    int: ({int}, "an integer", 2**31 - 1),
    float: ({int, float}, "a finite number", 1e150),
}
_NOT_FINITE: Final = {None: math.nan, "inf": math.inf, "-inf": -math.inf}
_WORD: Final = str | NoneType
_ARRAYS: Final = {np.float64: float, np.int64: int, np.bool_: bool}


def as_plain(value: Any) -> Any:  # noqa: PLR0911
    """A value as JSON can hold it: arrays as lists, NaN as null, infinity as `inf`.

    A field is left out where its default is None or empty and so is its value, and one
    with `saved: False` in its metadata always.
    """
    if isinstance(value, str | int | NoneType):
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
        own = ((one, getattr(value, one.name)) for one in saved_fields(kind))
        return {
            one.name: as_plain(entry)
            for one, entry in own
            if is_needed(one) or not _is_empty(one, entry)
        }
    if isinstance(value, Mapping):
        return {str(name): as_plain(entry) for name, entry in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Sequence):
        simple = {*map(type, value)} <= {str, int, NoneType}
        return [*value] if simple else [*map(as_plain, value)]
    return value


def _plain_array(array: Any) -> list[Any]:
    """Its entries; whole numbers as integers, which take half the time."""
    if array.dtype.kind != "f":
        return [*array.tolist()]
    whole = (array < _SCALARS[int][2]) & (array == np.trunc(array))
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
    if isinstance(value, Mapping):
        return not value and field.default_factory is dict
    simple = value is None or isinstance(value, tuple)
    return simple and not value and field.default == value


def from_plain(kind: Any, saved: Any, place: str = "it") -> Any:
    """The value of a type that `as_plain` made plain, with every type checked.

    Args:
        kind: a dataclass, or what the field of one may be.
        saved: the plain value.
        place: how a message calls it.

    Raises:
        FormatError: a value has another type than it should.

    Example:
        >>> from_plain(tuple[float | None, ...], [1, None])
        (1.0, None)
    """
    return _read(kind, [saved], lambda _: place)[0]


def _read(kind: Any, values: list[Any], place: Place) -> list[Any]:  # noqa: PLR0911
    """Values of one kind together: many take a step per field, not per value."""
    origin, inner = get_origin(kind), get_args(kind)
    if not values:
        return []
    if origin in (Union, UnionType):
        if NoneType not in inner or None not in values:
            return _read(inner[0], values, place)
        rows = [at for at, value in enumerate(values) if value is not None]
        present = [values[at] for at in rows]
        read = iter(_read(inner[0], present, _entry(place, "", rows)))
        return [None if value is None else next(read) for value in values]
    if origin is np.ndarray:
        (dtype,) = get_args(inner[1])
        return [_array(dtype, value, place(at)) for at, value in enumerate(values)]
    if kind is Interval or is_dataclass(kind):
        return _instances(kind, values, place)
    if origin in (Mapping, dict):
        return _mappings(inner, values, place)
    if origin in (tuple, Sequence, Collection):
        return _lists(origin, inner, values, place)
    if kind in (Any, object):
        return _checked(values, _is_plain, "a plain value", place)
    if origin is Literal:
        choices = ", ".join(map(repr, inner))
        kinds = {*map(type, inner)}
        return _checked(
            values,
            lambda v: type(v) in kinds and v in inner,
            f"one of {choices}",
            place,
        )
    return _scalars(kind, values, place)


def _checked(
    values: list[Any], holds: Callable[[Any], bool], wanted: str, place: Place
) -> list[Any]:
    """The values, where all are as they should be."""
    if not all(map(holds, values)):
        at = next(at for at, value in enumerate(values) if not holds(value))
        raise FormatError(f"{place(at)} must be {wanted}, got {show(values[at])}")
    return values


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold it: all numbers in it are finite."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _scalars(kind: Any, values: list[Any], place: Place) -> list[Any]:
    """Texts, truth values and numbers of a size that can be computed with."""
    types, wanted, largest = _SCALARS[kind]

    def holds(value: Any) -> bool:
        if type(value) in types:
            return not largest or abs(value) <= largest
        return kind is float and isinstance(value, _WORD) and value in _NOT_FINITE

    right = {*map(type, values)} <= types
    if not right or (largest and max(map(abs, values)) > largest):
        _checked(values, holds, wanted, place)
    if kind is not float or right:
        return values if kind is not float else [*map(float, values)]
    return [_NOT_FINITE[v] if isinstance(v, _WORD) else float(v) for v in values]


def _array(dtype: Any, saved: Any, place: str) -> Any:
    """An array of finite numbers, with null for NaN, or of truth values."""
    _checked([saved], _is_list, "a list", lambda _: place)
    types, wanted, largest = _SCALARS[_ARRAYS[dtype]]
    types = types | {NoneType} if dtype is np.float64 else types
    right = {*map(type, saved)} <= types
    if right:
        try:
            array = np.array(saved, dtype)
            right = not (largest and (np.abs(array) > largest).any())
        except OverflowError:
            right = False
    if not right:
        _checked(
            saved,
            lambda v: type(v) in types and (not v or not largest or abs(v) <= largest),
            wanted,
            lambda at: f"{place}[{at}]",
        )
    return array


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


def _lists(
    origin: Any, inner: tuple[Any, ...], values: list[Any], place: Place
) -> list[Any]:
    _checked(values, _is_list, "a list", place)
    if origin is tuple and inner[-1] is not Ellipsis:
        size = len(inner)
        _checked(values, lambda v: len(v) == size, f"a list of {size} entries", place)
        columns = [
            _read(
                kind,
                [value[n] for value in values],
                _entry(place, f"[{n}]", range(len(values))),
            )
            for n, kind in enumerate(inner)
        ]
        return [*zip(*columns, strict=True)]
    made = {tuple: tuple, Sequence: list, Collection: frozenset}[origin]
    rows = _entries(inner[0], values, lambda at, n: f"{place(at)}[{n}]")
    return [*map(made, rows)]


def _entry(place: Place, name: str, rows: Sequence[int]) -> Place:
    """How a part of some of the values is called."""
    return lambda at: f"{place(rows[at])}{name}"


def _mappings(
    inner: tuple[Any, ...], values: list[Any], place: Place
) -> list[dict[Any, Any]]:
    _checked(values, _is_object, "an object", place)
    names: list[list[Any]] = [[*value] for value in values]
    entries = [[*value.values()] for value in values]
    rows = _entries(inner[1], entries, lambda at, n: f"{place(at)}.{names[at][n]}")
    if inner[0] is int:
        for at, own in enumerate(names):
            if not all(map(str.isdecimal, own)):
                raise FormatError(f"{place(at)} must be an object by whole numbers")
        names = [[*map(int, own)] for own in names]
    return [dict(zip(*pair, strict=True)) for pair in zip(names, rows, strict=True)]


def _entries(
    kind: Any, lists: Sequence[Any], place: Callable[[int, int], str]
) -> list[list[Any]]:
    """What each of several lists holds, read together."""
    ends = [0, *accumulate(map(len, lists))]

    def entry(at: int) -> str:
        row = bisect_right(ends, at) - 1
        return place(row, at - ends[row])

    read = _read(kind, [*chain.from_iterable(lists)], entry)
    return [read[a:b] for a, b in pairwise(ends)]


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _instances(kind: Any, values: list[Any], place: Place) -> list[Any]:
    """Dataclasses or intervals; a field that is not there has its default."""
    _checked(values, _is_object, "an object", place)
    hints = _hints(kind)
    names, needed = {*hints}, {*hints}
    if is_dataclass(kind):
        own = saved_fields(cast("Any", kind))
        names = {one.name for one in own}
        needed = {one.name for one in own if is_needed(one)}
    made: list[dict[str, Any]] = [{} for _ in values]
    for at, value in enumerate(values):
        if not needed <= value.keys() <= names:
            what = ": {!r} is missing", " has a field that karat does not know: {!r}"
            lacks = needed - value.keys()
            odd = min(lacks or value.keys() - names)
            raise FormatError(place(at) + what[not lacks].format(odd))
    for name in (name for name in hints if name in names):
        rows = [at for at, value in enumerate(values) if name in value]
        saved = [values[at][name] for at in rows]
        read = _read(hints[name], saved, _entry(place, f".{name}", rows))
        for at, entry in zip(rows, read, strict=True):
            made[at][name] = entry
    return [_instance(kind, fields, place, at) for at, fields in enumerate(made)]


def _instance(kind: Any, fields: dict[str, Any], place: Place, at: int) -> Any:
    try:
        return kind(**fields)
    except KaratError as error:
        raise FormatError(f"{place(at)}: {error}") from None


class PlainResult(ABC):
    """A frozen value that is shown as tables, and saves and loads.

    Attributes:
        saved_as: what its files are called.
        schema_version: version of the saved form.
    """

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
        """The text of a file: json, md or txt."""
        if format == "json":
            return self.to_json() + "\n"
        if format == "md":
            return "\n\n".join(table.as_markdown() for table in self.tables()) + "\n"
        return str(self) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a JSON file."""
        write_file(path, self.to_json() + "\n")

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
        query: fact for query, fact in result.facts.items() if fact != Query(query)
    }
    kept = TopDocuments.of(result.kept)
    plain: dict[str, Any] = as_plain(
        replace(result, facts=facts, kept=kept, fingerprints=[*result.digests])
    )
    return plain


def as_json(result: "Evaluation", *, indent: int | None = 2) -> str:
    """Everything as JSON: a line per field of the evaluation, and a line per query."""
    if indent is None:
        return _encode(to_dict(result))
    pad = " " * indent
    start = f"\n{pad}{pad}"
    head = json.dumps(_head(result), ensure_ascii=False, indent=indent)
    fields = plain_evaluation(result).items()
    value = f",{start}".join(f"{_encode(name)}: {_encode(one)}" for name, one in fields)
    rows = f",{start}".join(_rows(result))
    return (
        f'{head.removesuffix("}").rstrip()},\n{pad}"evaluation": {{{start}{value}\n'
        f'{pad}}},\n{pad}"queries": [{start}{rows}\n{pad}]\n}}'
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
