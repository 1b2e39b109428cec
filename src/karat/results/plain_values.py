"""Results as plain values: what JSON can hold, and back again by their types."""

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from karat.data.intervals import Interval
from karat.data.tables import Table
from karat.errors import DataError, FormatError
from karat.reading.files import decode_json, decode_text, open_binary
from karat.reading.meaning.values import show
from karat.reading.source import placed
from karat.writing import write_file


def as_plain(value: Any) -> Any:
    """A value as JSON can hold it: what is not finite becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): as_plain(entry) for name, entry in value.items()}
    if is_dataclass(value):
        return {one.name: as_plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Interval):
        return value.to_dict()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [as_plain(entry) for entry in value]
    return value


def from_plain(  # noqa: PLR0911
    kind: Any, saved: Any, place: str = "it"
) -> Any:
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
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return saved
    if origin in (Union, UnionType):
        if saved is None and NoneType in arguments:
            return None
        return from_plain(arguments[0], saved, place)
    if (kind is Interval or is_dataclass(kind)) and isinstance(saved, Mapping):
        return _instance(kind, saved)
    if origin is tuple and isinstance(saved, list | tuple):
        several = len(arguments) == 2 and arguments[1] is Ellipsis  # noqa: PLR2004
        types = arguments[:1] * len(saved) if several else arguments
        if len(types) == len(saved):
            return tuple(map(from_plain, types, saved, [place] * len(saved)))
    elif origin in (Mapping, dict) and isinstance(saved, Mapping):
        return {n: from_plain(arguments[1], value, n) for n, value in saved.items()}
    elif kind is float and isinstance(saved, int | float | None):
        return math.nan if saved is None else float(saved)
    elif saved in arguments if origin is Literal else type(saved) is kind:
        return saved
    raise FormatError(f"{place} cannot be {show(saved)}")


def _instance(kind: Any, saved: Mapping[str, Any]) -> Any:
    """A dataclass or interval; null is a field's default, or what JSON cannot hold."""
    hints = get_type_hints(kind)
    names, optional = [*hints], set[str]()
    if is_dataclass(kind):
        names = [one.name for one in fields(kind)]
        optional = {one.name for one in fields(kind) if not _needed(one)}
    values = {
        name: from_plain(hints[name], saved.get(name), name)
        for name in names
        if saved.get(name) is not None or name not in optional
    }
    return kind(**values)


def _needed(field: Any) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


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
            found: Self = from_plain(cls, saved, cls.saved_as)
        except DataError as error:
            raise placed(error, path=os.fspath(path)) from None
        return found

    def __str__(self) -> str:
        return "\n\n".join(table.as_text() for table in self.tables())

    def _repr_html_(self) -> str:
        return "".join(table.as_html() for table in self.tables())
