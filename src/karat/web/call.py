"""One request, as those who answer it read it."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.datastructures import QueryParams

from karat.errors import UnknownNameError, UsageError
from karat.history.store import Store, StoredRun
from karat.history.tokens import Token
from karat.web.guard import Desk
from karat.web.timeline import check_since


@dataclass(frozen=True)
class Call:
    """A request that was let in: by whom, the decoded parts of its path, its body."""

    desk: Desk
    store: Store
    caller: Token
    names: Mapping[str, str]
    asked: QueryParams
    body: bytes

    @property
    def project(self) -> str:
        """The name in the path."""
        return self.names["project"]

    def runs(self) -> list[StoredRun]:
        """The runs of the project that the filters leave, the oldest first."""
        branch, since, tag = (
            self.asked.get(name) or None for name in ("branch", "since", "tag")
        )
        check_since(since)
        return self.store.runs(self.project, branch=branch, since=since, tag=tag)

    def run(self, text: str) -> StoredRun:
        """The run of the project with this number."""
        every = {str(run.id): run for run in self.store.runs(self.project)}
        if text not in every:
            raise UnknownNameError("run", text, every)
        return every[text]

    def whole(self, name: str, default: int) -> int:
        """A number in the path, or behind the question mark."""
        text = self.names.get(name) or self.asked.get(name) or str(default)
        if not (text.isascii() and text.isdigit() and len(text) < 10):  # noqa: PLR2004
            raise UsageError(f"{name} must be a whole number, got {text[:80]!r}")
        return int(text)
