"""A catalogue: what karat ships of one kind, and what plug-ins add to it."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from karat.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


def plain(name: str) -> str:
    """The form in which names are compared: lower case, `-` and `_` alike.

    Example:
        >>> plain("R-Precision")
        'r_precision'
    """
    return name.strip().lower().replace("-", "_")


class Catalogue(Mapping[str, T], Generic[T]):
    """Named things of one kind, shipped with karat or added by installed plug-ins.

    Listing is registering: a room passes what it ships, each thing by itself or as
    "module:name", which is imported when it is first asked for. Third parties add
    through the entry-point group, and theirs are imported then, too.

    Attributes:
        kind: the word used in error messages, as in "unknown metric".
        group: the entry-point group plug-ins use, or None when the kind is closed.

    Example:
        >>> formulas = Catalogue[object]("formula", {"root": "math:sqrt"})
        >>> formulas["root"](9)
        3.0
    """

    def __init__(
        self, kind: str, shipped: Mapping[str, T | str], group: str | None = None
    ) -> None:
        self.kind = kind
        self.group = group
        self._things = {plain(name): thing for name, thing in shipped.items()}
        self._written = {plain(name): name for name in shipped}
        self._plugins: dict[str, EntryPoint] | None = None

    @property
    def shipped(self) -> tuple[str, ...]:
        """The names karat itself brings; neither things nor plug-ins are loaded."""
        return tuple(self._written)

    def __getitem__(self, name: str) -> T:
        key = plain(name)
        thing = self._things.get(key)
        if thing is None:
            plugins = self._found_plugins()
            if key not in plugins:
                known = [self._written.get(key, key) for key in self]
                raise UnknownNameError(self.kind, name, known)
            thing = self._things[key] = self._load(plugins[key])
        elif isinstance(thing, str):
            module, _, attribute = thing.partition(":")
            thing = getattr(import_module(module), attribute)
            self._things[key] = cast("T", thing)
        return cast("T", thing)

    def _load(self, point: "EntryPoint") -> T:
        try:
            return cast("T", point.load())
        except (ImportError, AttributeError, SyntaxError) as error:
            raise UsageError(
                f"the {self.kind} {point.name!r} of a plug-in cannot be loaded from "
                f"{point.value}: {error}"
            ) from None

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return plain(name) in self._things or plain(name) in self._found_plugins()

    def __iter__(self) -> Iterator[str]:
        yield from self._things
        yield from (name for name in self._found_plugins() if name not in self._things)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _found_plugins(self) -> "dict[str, EntryPoint]":
        # Listing installed packages reads the disk: only when a shipped name misses.
        if self.group is None:
            return {}
        if self._plugins is None:
            # Importing this takes longer than most commands need for their work.
            from importlib.metadata import entry_points  # noqa: PLC0415

            found = entry_points(group=self.group)
            self._plugins = {plain(point.name): point for point in found}
        return self._plugins
