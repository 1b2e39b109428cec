"""What reading an input brings up: notices are counted, problems raised or kept."""

import re

from karat.data.runs import Notice
from karat.errors import DataError, FormatError

_EXAMPLES = 3
_ONE_OR_MORE = re.compile(r"\{([^|]*)\|([^}]*)\}")


class Notes:
    """The one place where reading code says what it met.

    By default the first problem is raised. A checker keeps a number of them instead,
    and reading goes on with the next row; one more than it keeps is raised after all.

    Attributes:
        problems: what was kept, in the order met.

    Example:
        >>> notes = Notes(keep=2)
        >>> notes.problem(FormatError("k must be an integer >= 1, got 0", line=3))
        >>> [str(problem) for problem in notes.problems]
        ['line 3: k must be an integer >= 1, got 0']
    """

    def __init__(self, keep: int = 0) -> None:
        self.problems: list[DataError] = []
        self._keep = keep
        self._counts: dict[tuple[str, str], int] = {}
        self._examples: dict[tuple[str, str], list[str]] = {}
        self._ones: dict[tuple[str, str], str] = {}

    def problem(self, error: DataError) -> None:
        """Raise the problem, or keep it and let reading go on."""
        if len(self.problems) >= self._keep:
            raise error
        self.problems.append(error)

    def notice(
        self, kind: str, text: str, example: object = None, *, one: str = ""
    ) -> None:
        """Count something the user should know, with up to three examples.

        Args:
            kind: one word for it.
            text: what was met, in the plural; `{query has|queries have}` at its start
                is for one and for several.
            example: where.
            one: the same in the singular, where it is another text.
        """
        if not one and (both := _ONE_OR_MORE.match(text)):
            rest = text[both.end() :]
            one, text = f"{both[1]}{rest}", f"{both[2]}{rest}"
        key = (kind, text)
        self._ones[key] = one
        self._counts[key] = self._counts.get(key, 0) + 1
        examples = self._examples.setdefault(key, [])
        if example is not None and len(examples) < _EXAMPLES:
            examples.append(str(example)[:80])

    def notices(self) -> tuple[Notice, ...]:
        """All notices so far, each kind once with its count."""
        return tuple(
            Notice(key[0], count, key[1], tuple(self._examples[key]), self._ones[key])
            for key, count in self._counts.items()
        )


def placed(
    error: DataError,
    *,
    path: object = None,
    line: int | None = None,
    query: object = None,
) -> FormatError:
    """The same problem with its place, where it does not say one itself."""
    return FormatError(
        error.problem,
        path=error.path or path,
        line=error.line or line,
        query=query if error.query is None else error.query,
        hint=error.hint,
    )
