"""Turns: of several processes on one journal one asks, and the others wait for it."""

import os
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

__all__ = ["Turns"]

if sys.platform == "linux":
    import fcntl

# So many of a name's bytes make a place that a file may have.
_BYTES = 7


class Turns:
    """Lets one process at a time ask for the reply to a prompt.

    A turn is a lock on one byte of an empty file beside the journal, the byte being
    told by the prompt's name. The system takes it back from a process that dies, so
    nobody waits for the dead. Where a system has no such locks, everyone may ask: a
    reply is then paid for twice at worst.

    Example:
        >>> with Turns(None) as turns:
        ...     turns.take(bytes(32))
        True
    """

    def __init__(self, journal: Path | None) -> None:
        self._file: int | None = None
        if journal is not None and sys.platform == "linux":
            journal = journal.resolve()
            path = journal.with_name(f"{journal.name}-turns")
            # A journal that can be written to may stand where no file can be made.
            with suppress(OSError):
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)

    def take(self, key: bytes) -> bool:
        """Whether it is this process' turn to ask for the prompt of this name."""
        if self._file is None or sys.platform != "linux":
            return True
        try:
            # Of the open file, not of the process: two hearings of one process
            # wait for each other, and the end of one does not unlock the other's.
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _lock(fcntl.F_WRLCK, key))
        except BlockingIOError:
            return False
        except OSError:
            # A file system without locks is no reason not to ask.
            return True
        return True

    def leave(self, key: bytes) -> None:
        """Let the others ask, or find the reply in the journal."""
        if self._file is not None and sys.platform == "linux":
            with suppress(OSError):
                fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _lock(fcntl.F_UNLCK, key))


def _lock(kind: int, key: bytes) -> bytes:
    """The `struct flock` of one byte."""
    place = int.from_bytes(key[:_BYTES], "big")
    return struct.pack("hhqqi", kind, os.SEEK_SET, place, 1, 0)
