"""A catalogue: what karat ships of one kind, and what plug-ins add to it."""

import logging
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from karat.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
PLUGINS: dict[str, str] = {}
"""What each plug-in that was asked for is, by the module it comes from."""

_log = logging.getLogger("karat")


def call_plugin(call: Callable[[], T], what: str) -> T:
    """What anybody's code returns; whatever it raises is an error that names it.

    Args:
        call: what may raise anything, and may try to end the program.
        what: what is called, and what for: the start of the sentence.

    Example:
        >>> call_plugin(lambda: 1 / 0, "the metric 'mine' cannot be loaded")
        Traceback (most recent call last):
        karat.errors.UsageError: the metric 'mine' cannot be loaded: \
ZeroDivisionError: division by zero
    """
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text = " ".join(str(error).split())[:300]
        raise UsageError(f"{what}: {type(error).__name__}: {text}") from error


def plain(name: str) -> str:
    """The form in which names are compared: lower case, `-` and `_` alike."""
    return name.strip().lower().replace("-", "_")


def subclass_of(base: Any) -> Callable[[Any], Any]:
    """Takes classes that derive from another, and refuses what else there is."""

    def check(thing: Any) -> Any:
        if isinstance(thing, type) and issubclass(thing, base):
            return thing
        raise TypeError(f"must be a class derived from {base.__name__}, got {thing!r}")

    return check


class Catalogue(Mapping[str, T], Generic[T]):
    """Named things of one kind, shipped with karat or added by installed plug-ins.

    What a room ships is passed as it is, or as "module:name", which is imported when it
    is first asked for; so is what the entry points of a `group` name, given to `make`.
    """

    def __init__(
        self,
        kind: str,
        shipped: Mapping[str, T | str],
        group: str | None = None,
        make: Callable[[Any], T] | None = None,
    ) -> None:
        self.kind = kind
        self.group = group
        self.make = make
        self._broken: set[str] = set()
        self._things = {plain(name): thing for name, thing in shipped.items()}
        self._written = {plain(name): name for name in shipped}
        self._plugins: dict[str, dict[str, EntryPoint]] | None = None

    @property
    def shipped(self) -> tuple[str, ...]:
        """The names karat itself brings; neither things nor plug-ins are loaded."""
        return tuple(self._written)

    def __getitem__(self, name: str) -> T:
        key = plain(name)
        thing = self._things.get(key)
        if thing is None:
            plugins = self._installed()
            if key not in plugins:
                names = [self._written.get(key, key) for key in self]
                raise UnknownNameError(self.kind, name, names)
            thing = self._things[key] = self._load(name, plugins[key])
        elif isinstance(thing, str):
            module, _, attribute = thing.partition(":")
            there = vars(import_module(module))
            named = (one for one in there.values() if getattr(one, "name", "") == key)
            thing = there[attribute] if attribute else next(named)
            self._things[key] = cast("T", thing)
        return cast("T", thing)

    def _load(self, name: str, points: "Mapping[str, EntryPoint]") -> T:
        what = f"the {self.kind} {name!r} of a plug-in"
        if len(points) > 1:
            raise UsageError(f"{what} is there more than once: {', '.join(points)}")
        (point,) = points.values()
        PLUGINS[point.value.partition(":")[0].strip()] = what
        make = self.make or (lambda thing: thing)
        return call_plugin(
            lambda: make(point.load()), f"{what} cannot be loaded from {point.value}"
        )

    def usable(self, *, shipped: bool = True) -> Iterator[T]:
        """All there are, in order; a plug-in that cannot be loaded is named once."""
        for name in self if shipped else self._installed():
            if not shipped and name in self._written:
                continue
            try:
                yield self[name]
            except UsageError as error:
                if name not in self._broken:
                    self._broken.add(name)
                    _log.warning("%s", error)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return plain(name) in self._things or plain(name) in self._installed()

    def __iter__(self) -> Iterator[str]:
        yield from self._things
        yield from (name for name in self._installed() if name not in self._things)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _installed(self) -> "dict[str, dict[str, EntryPoint]]":
        # Listing installed packages reads the disk: only when a shipped name misses.
        if self.group is None:
            return {}
        if self._plugins is None:
            # Importing this takes longer than most commands need for their work.
            from importlib.metadata import entry_points  # noqa: PLC0415

            self._plugins = {}
            for point in entry_points(group=self.group):
                named = self._plugins.setdefault(plain(point.name), {})
                named[point.value] = point
        return self._plugins
