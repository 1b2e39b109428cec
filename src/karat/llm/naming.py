"""Naming a function by all that decides what it answers, as far as that can be seen."""

import hashlib
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

__all__ = ["digest_of"]

# A function that reads more than this reads data, which is not looked through.
_MOST = 100_000
_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def digest_of(function: object) -> str | None:
    """A digest of a function's code and of the plain values that it reads.

    Other functions of its module that it calls are part of it; what it takes from
    other modules goes by name. None where it hangs on what nobody can see from here:
    values of its surroundings, or an object such as a client.

    Example:
        >>> def yes(prompt): return "yes"
        >>> digest_of(yes) == digest_of(lambda prompt: "no")
        False
        >>> digest_of([].append) is None
        True
    """
    if not isinstance(function, FunctionType):
        return None
    digest = hashlib.sha256()
    seen: set[int] = set()
    try:
        for number, part in enumerate(_parts(function, function.__module__, seen)):
            if number > _MOST:
                return None
            digest.update(part.encode("utf-8", "backslashreplace") + b"\0")
    except (_Unseen, RecursionError):
        return None
    return digest.hexdigest()


class _Unseen(Exception):  # noqa: N818
    """A function hangs on something that says nothing of itself."""


def _parts(function: FunctionType, home: str, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    if function.__closure__:
        raise _Unseen
    yield from _value(function.__defaults__)
    yield from _value(function.__kwdefaults__)
    for code in _codes(function.__code__):
        yield code.co_code.hex()
        yield repr((code.co_names, code.co_varnames, code.co_argcount))
        for constant in code.co_consts:
            if not isinstance(constant, CodeType):
                yield from _value(constant)
        for name in code.co_names:
            # Names of attributes are among them too; one that happens to be a global
            # as well only makes the digest more careful.
            if name in function.__globals__:
                yield name
                yield from _global(function.__globals__[name], home, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _global(value: object, home: str, seen: set[int]) -> Iterator[str]:
    if isinstance(value, ModuleType):
        yield value.__name__
    elif isinstance(value, FunctionType) and value.__module__ == home:
        yield from _parts(value, home, seen)
    elif isinstance(value, FunctionType | BuiltinFunctionType | type):
        if value.__module__ == home:
            raise _Unseen
        yield f"{value.__module__}.{value.__qualname__}"
    else:
        yield from _value(value)


def _value(value: Any) -> Iterator[str]:
    """A plain value, however deep; a set prints in another order in every process."""
    if isinstance(value, set | frozenset):
        yield f"set {len(value)}"
        yield from sorted("\0".join(_value(item)) for item in value)
    elif isinstance(value, dict):
        yield f"dict {len(value)}"
        for key, item in value.items():
            yield from _value(key)
            yield from _value(item)
    elif isinstance(value, list | tuple):
        yield f"{type(value).__name__} {len(value)}"
        for item in value:
            yield from _value(item)
    elif isinstance(value, _PLAIN) or value is ...:
        yield repr(value)
    else:
        raise _Unseen
