"""Tokens of a store: who may do what; of a token itself only the hash is stored."""

import secrets
import sqlite3
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from karat.errors import UnknownNameError, UsageError
from karat.history.schema import names_damage, transaction

ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "read": ("read",),
    "label": ("read", "label"),
    "push": ("read", "push"),
    "admin": ("read", "label", "push", "admin"),
}
"""What the holder of a token may do, by its role."""


class Token(NamedTuple):
    """Whom a token names, and what they may do; in one project or, if None, in all."""

    name: str
    role: str
    project: str | None = None
    at: str = ""


def check_token(name: str, role: str) -> None:
    """Refuse a token without a name, and one of no role."""
    if role not in ROLES:
        raise UnknownNameError("role", role, ROLES)
    if not name.strip():
        raise UsageError(f"a token needs a name that no other has, got {name!r}")


@names_damage
class StoredTokens:
    """The tokens in a store's table."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self.path = path
        self._db = db

    def every(self) -> list[Token]:
        """All tokens, by name."""
        return [Token(*row) for row in self._db.execute(f"{_ROWS} order by 1")]

    def add(self, name: str, role: str, project: str | None = None) -> str:
        """A new token, which is shown only now: its hash is all that is stored.

        Args:
            name: of who holds it; labels are given in this name.
            role: `read`, `label`, `push` or `admin`.
            project: the only one that it opens; default: all.

        Raises:
            UsageError: another token has that name, or there is no such role.
        """
        name = name.strip()
        check_token(name, role)
        if name in {token.name for token in self.every()}:
            raise UsageError(f"a token needs a name that no other has, got {name!r}")
        secret = secrets.token_urlsafe(24)
        with transaction(self._db):
            if project is not None:
                new = "insert or ignore into project(name) values(?)"
                self._db.execute(new, (project,))
            self._db.execute(
                "insert into token values(?, (select id from project where name=?), "
                "?, ?, datetime('now'))",
                (_digest(secret), project, name, role),
            )
        return secret

    def remove(self, name: str) -> None:
        """Let a token open nothing from now on."""
        self._db.execute("delete from token where name=?", (name,))

    def find(self, secret: str) -> Token | None:
        """Whom a token names; None where there is no such token."""
        row = self._db.execute(f"{_ROWS} and hash=?", (_digest(secret),)).fetchone()
        return None if row is None else Token(*row)


_ROWS = (
    "select token.name, role, project.name, token.at from token left join project "
    # One of a project that is not there must not open all of them.
    "on token.project=project.id where (token.project is null or project.id)"
)


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()
