"""Every error karat raises on purpose.

    KaratError
    ├── UsageError (ValueError)            a call or option that cannot be
    │   ├── SpellingError                  a metric or matcher that does not parse
    │   ├── ParameterError                 a parameter with a value it cannot take
    │   └── UnknownNameError (LookupError) a name no catalogue knows
    ├── DataError (ValueError)             input that cannot be scored, and where
    │   ├── FormatError                    a file or object that cannot be read
    │   │   └── MissingFieldError          a field the user named and the file lacks
    │   └── MismatchError                  run and gold that do not belong together
    ├── MissingExtraError (ImportError)    an optional part that is not installed
    ├── IncompleteError (RuntimeError)     work that stopped early and can go on
    ├── OfflineMissError (LookupError)     a reply the journal does not hold, offline
    └── CallError (RuntimeError)           an outside call that brought no answer
        ├── Transient                      worth another attempt
        ├── Refused                        will be refused again
        └── InvalidReply (ValueError)      an answer no judge can use

A sentence names the thing, what it must be, what it was and where; a hint comes last.
The facts stay on the error as attributes, so that callers need not parse the sentence.
"""

import re
from collections.abc import Iterable, Sequence

WITHOUT_LABELS = (
    "no labels yet? karat label new makes a page for people to label, karat judge lets "
    "a model label, karat generate lets a model write questions with labels"
)
"""The three ways to gold, for errors of who has none."""

# What a sentence has room for: names that are listed, and characters of an id.
_MOST = 100
_LONG = 100
_LONGEST_PATH = 1000

# Zeros that only fill a number up.
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
_LIBRARIES = {
    "llm": "httpx",
    "bm25": "bm25s",
    "spark": "pyspark",
    "parquet": "pyarrow",
    "zstd": "zstandard",
    "frames": "pandas",
    "png": "resvg-py",
    "web": "starlette uvicorn",
    "ir_datasets": "ir-datasets",
}


class KaratError(Exception):
    """The root: `except karat.KaratError` catches all that karat raises on purpose.

    Example:
        >>> import karat
        >>> try:
        ...     karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, metrics="recal@5")
        ... except karat.KaratError as error:
        ...     print(error)
        unknown metric 'recal'; did you mean 'recall'?
    """


class UsageError(KaratError, ValueError):
    """A call or an option that cannot be carried out as written."""


class SpellingError(UsageError):
    """A metric or matcher whose spelling does not parse."""

    def __init__(self, text: str, problem: str) -> None:
        self.text = text
        self.problem = problem
        super().__init__(f"cannot read {text!r}: {problem}")


class ParameterError(UsageError):
    """A parameter with a value it cannot take."""

    def __init__(self, owner: str, parameter: str, must_be: str, value: object) -> None:
        self.owner = owner
        self.parameter = parameter
        self.must_be = must_be
        self.value = value
        super().__init__(f"{owner}: {parameter} must be {must_be}, got {value!r}")


class UnknownNameError(UsageError, LookupError):
    """A name that no catalogue knows, with the closest ones that exist.

    Args:
        kind: what it should name.
        name: as it was written.
        known: the names there are.
        see: where to find those, if they are too many for a sentence.
    """

    def __init__(
        self, kind: str, name: str, known: Iterable[str], see: str | None = None
    ) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        if (close := _closest(name, self.known)) is not None:
            hint = f"did you mean {close!r}?"
        elif see is not None:
            hint = see
        else:
            names = sorted(self.known)
            more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
            hint = f"known: {', '.join(names[:_MOST]) or 'none'}{more}"
        super().__init__(f"unknown {kind} {name!r:.{_LONG}}; {hint}")

    def __str__(self) -> str:
        # LookupError's subclass KeyError would quote the sentence; keep it plain.
        return str(self.args[0])


def _closest(name: str, known: Sequence[str]) -> str | None:
    """The known name that was probably meant.

    For `q1` rather `q01` than `q10`; for `ngcd` rather `ndcg`, which has its letters,
    than `ncg`.
    """
    bare = _ZEROS.sub("", name.lower())
    alike = (other for other in known if _ZEROS.sub("", other.lower()) == bare)
    if (same := next(alike, None)) is not None:
        return same
    from difflib import get_close_matches  # noqa: PLC0415  for mistakes only

    close = get_close_matches(name.lower(), known, n=len(known) or 1, cutoff=0.5)
    letters = sorted(name.lower())
    return min(close, key=lambda other: sorted(other) != letters, default=None)


def _short(path: str) -> str:
    """A path; of a text that was handed over in its place only the beginning."""
    line = path.partition("\n")[0]
    return path if len(path) <= _LONGEST_PATH and line == path else f"{line[:40]}..."


class DataError(KaratError, ValueError):
    """Input that cannot be scored, with the place where it lies.

    Attributes:
        problem: the sentence without its place.
        path: the file, if the input came from one.
        line: the line in that file, counted from 1.
        query: the id of the query or sample concerned.
        hint: what to do about it.
        finding: what `doctor` calls it, if it has a name there.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: object = None,
        line: int | None = None,
        query: object = None,
        hint: str | None = None,
        finding: str | None = None,
    ) -> None:
        self.problem = problem
        self.path = None if path is None else _short(str(path))
        self.line = line
        self.query = query
        self.hint = hint
        self.finding = finding
        place = self.path or ""
        if line is not None:
            place = f"{place or 'line'}:{line}" if place else f"line {line}"
        parts = [place] if place else []
        if query is not None:
            parts.append(f"query {query!r:.{_LONG}}")
        sentence = ": ".join([*parts, problem])
        super().__init__(f"{sentence}; {hint}" if hint else sentence)


class FormatError(DataError):
    """A file or object that cannot be read as what it claims or seems to be."""


class NotSavedError(FormatError):
    """A file or object that can be read, and is no saved result."""


class MissingFieldError(FormatError):
    """A field that the user named and the input does not have."""

    def __init__(self, problem: str, field: str, *, path: object = None) -> None:
        self.field = field
        super().__init__(problem, path=path)


class MismatchError(DataError):
    """A run and gold that do not belong together: no common query or document."""


class NoCommonIdError(MismatchError):
    """A run that has no document of the gold, by the ids of both."""


class MissingExtraError(KaratError, ImportError):
    """An optional part of karat that is not installed, and the command that adds it."""

    def __init__(self, what: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs {_LIBRARIES[extra]}: {how_to_install(extra)}")


def how_to_install(extra: str) -> str:
    """The commands that add an optional part."""
    return (
        f"pip install {_LIBRARIES[extra]}, or pip install 'karat[{extra}]' "
        f"(in a clone '.[{extra}]')"
    )


class IncompleteError(KaratError, RuntimeError):
    """Work that stopped before its end; what was done is kept, and can be continued.

    Attributes:
        reason: why it stopped.
        done: how many rows have their verdict.
        total: how many rows there are.
        failed: how many rows have a reason instead.
        kept: whether what was answered is in a journal, for another process too.
        during: what was being done, as in "splitting references".
        lost: how many answers were paid for and could not be kept.
    """

    def __init__(
        self,
        reason: str,
        done: int = 0,
        total: int = 0,
        failed: int = 0,
        *,
        kept: bool = True,
        during: str = "",
        lost: int = 0,
    ) -> None:
        self.reason = reason
        self.done = done
        self.total = total
        self.failed = failed
        self.kept = kept
        self.lost = lost
        row = "row is" if total == 1 else "rows are"
        stop = f"stopped while {during}, {done} of {total} done"
        rows = stop if during else f"{done} of {total} {row} done"
        rows += f" and {failed} failed" * (failed > 0)
        replies = "1 reply" if lost == 1 else f"{lost} replies"
        what = f"{replies} paid for could not be kept, the rest" if lost else "all"
        goes_on = f"{what} is kept, run the same again to continue"
        takes = "that takes a journal, and a version="
        nothing = f"nothing is kept for another process: {takes}"
        super().__init__(f"{reason}; {rows}; {goes_on if kept else nothing}")


class OfflineMissError(KaratError, LookupError):
    """A prompt whose reply the journal does not hold, while no call may be made."""


class CallError(KaratError, RuntimeError):
    """An outside call that brought no usable answer.

    Attributes:
        reason: the sentence, free of any text that was sent or received.
        detail: what the other side said; it may quote what was sent.
        attempts: how many calls were made.
        tokens: tokens sent and received that were billed, if the server counts them.
    """

    def __init__(
        self,
        reason: str,
        detail: str | None = None,
        tokens: tuple[int, int] | None = None,
    ) -> None:
        self.reason = reason
        self.detail = detail
        self.tokens = tokens
        self.attempts = 1
        super().__init__(f"{reason}: {detail}" if detail else reason)


class Transient(CallError):  # noqa: N818
    """A call that may succeed when tried again.

    Attributes:
        retry_after: seconds the other side asks to wait, if it does.
        paid: whether the call may have been billed although no answer arrived.
        alive: whether the endpoint did answer, if only to say that it is busy.
    """

    def __init__(
        self,
        reason: str,
        retry_after: float | None = None,
        *,
        detail: str | None = None,
        paid: bool = False,
        alive: bool = False,
        tokens: tuple[int, int] | None = None,
    ) -> None:
        self.retry_after = retry_after
        self.paid = paid
        self.alive = alive
        super().__init__(reason, detail, tokens)


class Refused(CallError):  # noqa: N818
    """A call that would be refused again, however often it is made.

    Attributes:
        always: whether every other call would be refused too, as with a wrong key.
        unless_answered: whether that holds only while no other prompt was answered.
        forbidden: whether it may be this prompt alone that is refused, and not the key.
        cut: whether the reply reached the longest length allowed before it began.
    """

    def __init__(
        self,
        reason: str,
        *,
        detail: str | None = None,
        always: bool = False,
        unless_answered: bool = False,
        forbidden: bool = False,
        cut: bool = False,
        tokens: tuple[int, int] | None = None,
    ) -> None:
        self.always = always
        self.unless_answered = unless_answered
        self.forbidden = forbidden
        self.cut = cut
        super().__init__(reason, detail, tokens)


class InvalidReply(CallError, ValueError):  # noqa: N818
    """A reply that a judge cannot use, raised by the judge after its repair round.

    Attributes:
        result: what could be decided all the same, if anything.
        prompts: those whose replies cannot be used; by default the last one, and the
            one that it repairs.
    """

    def __init__(
        self, reason: str, *, result: object = None, prompts: Sequence[object] = ()
    ) -> None:
        super().__init__(reason)
        self.result = result
        self.prompts = tuple(prompts)
