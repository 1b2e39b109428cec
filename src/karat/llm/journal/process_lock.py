"""A lock per prompt between the processes that share a journal."""

import os
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

__all__ = ["ProcessLock"]

if sys.platform == "linux":
    import fcntl

# Bytes of a key that make an offset which a file may have.
_OFFSET_BYTES = 7


class ProcessLock:
    """Lets one process at a time ask for the reply to a prompt.

    The lock of a prompt is a lock on one byte of an empty file beside the journal, at
    an offset made from the prompt's key. The system releases it when a process dies.
    On systems without such locks everyone may ask: a reply is then paid for twice at
    worst.

    Example:
        >>> with ProcessLock(None) as lock:
        ...     lock.acquire(bytes(32))
        True
    """

    def __init__(self, journal: Path | None) -> None:
        self._file: int | None = None
        if journal is not None and sys.platform == "linux":
            journal = journal.resolve()
            path = journal.with_name(f"{journal.name}-lock")
            # A writable journal may be in a folder where no file can be made.
            with suppress(OSError):
                self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)

    def acquire(self, key: bytes) -> bool:
        """Whether the prompt with this key is now locked for this process."""
        if self._file is None or sys.platform != "linux":
            return True
        try:
            # Of the open file, not of the process: two runs in one process wait for
            # each other, and the end of one does not release the locks of the other.
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _flock(fcntl.F_WRLCK, key))
        except BlockingIOError:
            return False
        except OSError:
            # A file system without locks is no reason not to ask.
            return True
        return True

    def release(self, key: bytes) -> None:
        """Let others ask for this prompt, or find its reply in the journal."""
        if self._file is not None and sys.platform == "linux":
            with suppress(OSError):
                fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, key))


def _flock(kind: int, key: bytes) -> bytes:
    """The `struct flock` of one byte."""
    offset = int.from_bytes(key[:_OFFSET_BYTES], "big")
    return struct.pack("hhqqi", kind, os.SEEK_SET, offset, 1, 0)
