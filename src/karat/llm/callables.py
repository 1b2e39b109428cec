"""Python functions as clients."""

import asyncio
import hashlib
import inspect
import traceback
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

from karat.data.judgements import Prompt, Reply
from karat.errors import CallError, Refused, Transient
from karat.llm.credentials import check_parameters, redact

Answerer: TypeAlias = Callable[[str], str | Awaitable[str]]
# asyncio's own pool has a handful of threads; calls mostly wait.
_THREADS = 64
# A function that reads more plain values than this has no digest.
_MAX_DIGEST_PARTS = 100_000
_PLAIN = (str, bytes, int, float, complex, bool, type(None))


class FunctionClient:
    """A function, plain or async, that answers prompts.

    It is given the instruction and the question as one text. An `OSError` or
    `TimeoutError` it raises is tried again; any other error fails the row.

    Replies are kept under the function's name and a digest of its code and the plain
    values it reads, so that an edited function is asked again. A function that depends
    on anything else, such as a client object or a value of an enclosing function, has
    no digest: give it a `model` name, or its replies are used in this process only.

    Attributes:
        endpoint: `python:` and the function's name.
        model: what its replies are kept under.
        parameters: anything else that decides the answers.
        is_async: whether the function is to be awaited.
        persistent: whether another process can use its replies.
        label: its name in labels: `model` if given, else the function's name.

    Example:
        >>> def yes(prompt): return "yes"
        >>> FunctionClient(yes, model="always-yes").model
        'always-yes'
    """

    def __init__(
        self,
        function: Answerer,
        model: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        check_parameters(parameters or {})
        self._call = ThreadedFunction(function)
        self.is_async = self._call.is_async
        # A thread cannot be stopped: a second call would run beside the first.
        self.stoppable = self.is_async
        name = getattr(function, "__qualname__", type(function).__qualname__)
        module = getattr(function, "__module__", None) or type(function).__module__
        self.endpoint = f"python:{module}.{name}"
        digest = _digest(function) if model is None else None
        self.persistent = model is not None or digest is not None
        temporary = f"this process {uuid.uuid4().hex[:12]}"
        self.model = model or (f"code {digest[:12]}" if digest else temporary)
        self.label = model or self.endpoint
        self.parameters: Mapping[str, Any] = dict(parameters or {})

    def __repr__(self) -> str:
        return f"FunctionClient({self.endpoint!r}, model={self.model!r})"

    async def complete(self, prompt: Prompt) -> Reply:
        """The function's answer to a prompt."""
        text, error = await self._call(f"{prompt.system}\n\n{prompt.user}")
        if error is not None:
            raise to_call_error(self.endpoint, error)
        if not isinstance(text, str):
            raise Refused(
                f"{self.endpoint} must return a text, got {type(text).__name__}",
                always=True,
            )
        return Reply(text)


class ThreadedFunction:
    """A function that can be called without blocking the event loop.

    Attributes:
        is_async: whether it is a coroutine function, or an object called as one; any
            other function runs in a thread.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._threads: ThreadPoolExecutor | None = None
        candidates = (function, getattr(function, "__call__", None))  # noqa: B004
        self.is_async = any(map(inspect.iscoroutinefunction, candidates))

    async def __call__(self, *args: Any, **named: Any) -> tuple[Any, Exception | None]:
        """What the function returns, or else the exception it raises."""
        task = asyncio.ensure_future(
            self._start(partial(_call, self._function, *args, **named))
        )
        try:
            # Not awaited: that would raise what the function raises.
            await asyncio.wait([task])
        finally:
            task.cancel()
        error = task.exception()
        if error is None:
            return task.result(), None
        if isinstance(error, Exception):
            return None, error
        raise error

    async def _start(self, call: Callable[[], Any]) -> Any:
        if self.is_async:
            return await call()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, "karat-answers")
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(self._threads, call)
        return await answer if inspect.isawaitable(answer) else answer


def _call(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    try:
        return function(*args, **named)
    except StopIteration as end:
        # Python 3.11 would wait forever for a thread that ends this way.
        raise RuntimeError("no more answers (StopIteration)") from end


def to_call_error(
    endpoint: str, error: Exception, redact: Callable[[str], str] = redact
) -> CallError:
    """The call error for an exception that a user's function or client raised.

    An `OSError` or `TimeoutError` may pass, any other would come again. The exception
    is kept as the cause, unless its traceback shows a secret: in a cause, a note or a
    line of code.
    """
    shown = "".join(traceback.format_exception(error))
    is_clean = redact(shown) == shown
    if isinstance(error, CallError):
        return error if is_clean else _redacted(error, redact)
    kind = Transient if isinstance(error, OSError | TimeoutError) else Refused
    problem = kind(
        f"{endpoint} raised {type(error).__name__}",
        detail=" ".join(redact(str(error)).split()) or None,
    )
    if is_clean:
        problem.__cause__ = error
    return problem


def _redacted(error: CallError, redact: Callable[[str], str]) -> CallError:
    """The error without secrets, causes, notes and traceback."""
    error.reason = redact(error.reason)
    error.detail = None if error.detail is None else redact(error.detail)
    error.args = (redact(str(error)),)
    error.__cause__ = error.__context__ = None
    vars(error).pop("__notes__", None)
    return error.with_traceback(None)


class _NoDigest(Exception):  # noqa: N818
    """A function depends on a value that has no digest."""


def _digest(function: object) -> str | None:
    """A digest of a function's code and of the plain values that it reads.

    Other functions of its module that it calls are part of it; what it takes from
    other modules goes by name. None if it depends on anything else: values of an
    enclosing function, or an object such as a client.

    Example:
        >>> def yes(prompt): return "yes"
        >>> _digest(yes) == _digest(lambda prompt: "no")
        False
        >>> _digest([].append) is None
        True
    """
    if not isinstance(function, FunctionType):
        return None
    digest = hashlib.sha256()
    try:
        for number, part in enumerate(_function_parts(function, set())):
            if number > _MAX_DIGEST_PARTS:
                return None
            digest.update(part.encode("utf-8", "backslashreplace") + b"\0")
    except (_NoDigest, RecursionError):
        return None
    return digest.hexdigest()


def _function_parts(function: FunctionType, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    if function.__closure__:
        raise _NoDigest
    yield from _value_parts(function.__defaults__)
    yield from _value_parts(function.__kwdefaults__)
    for code in _nested_codes(function.__code__):
        yield code.co_code.hex()
        yield repr((code.co_names, code.co_varnames, code.co_argcount))
        for constant in code.co_consts:
            if not isinstance(constant, CodeType):
                yield from _value_parts(constant)
        for name in code.co_names:
            # These include names of attributes; one that is a global as well only
            # makes the digest stricter.
            if name in function.__globals__:
                yield name
                value = function.__globals__[name]
                yield from _global_parts(value, function.__module__, seen)


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_codes(constant)


def _global_parts(value: object, module: str, seen: set[int]) -> Iterator[str]:
    if isinstance(value, ModuleType):
        yield value.__name__
    elif isinstance(value, FunctionType) and value.__module__ == module:
        yield from _function_parts(value, seen)
    elif isinstance(value, FunctionType | BuiltinFunctionType | type):
        if value.__module__ == module:
            raise _NoDigest
        yield f"{value.__module__}.{value.__qualname__}"
    else:
        yield from _value_parts(value)


def _value_parts(value: Any) -> Iterator[str]:
    """A plain value, however deep; sets are sorted, since their order is random."""
    if isinstance(value, set | frozenset):
        yield f"set {len(value)}"
        yield from sorted("\0".join(_value_parts(item)) for item in value)
    elif isinstance(value, dict):
        yield f"dict {len(value)}"
        for key, item in value.items():
            yield from _value_parts(key)
            yield from _value_parts(item)
    elif isinstance(value, list | tuple):
        yield f"{type(value).__name__} {len(value)}"
        for item in value:
            yield from _value_parts(item)
    elif isinstance(value, _PLAIN) or value is ...:
        yield repr(value)
    else:
        raise _NoDigest
