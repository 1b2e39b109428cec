"""Writing a file: all of it or nothing, so that no old file is lost half-way."""

import os
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path

from karat.errors import FormatError

_NAME_BYTES = 200


def write_file(
    path: str | os.PathLike[str], content: str | bytes, *, mode: int = 0o666
) -> None:
    """Write a whole file: beside its place first, then renamed over what was there.

    A process that is killed, or finds the disk full, leaves the old file as it was.
    Mode, owner and symbolic links are kept. A pipe or a device is written to directly,
    and so is a file whose folder or owner allows nothing else.

    Args:
        path: where to.
        content: bytes, or a text, which becomes UTF-8 on every system.
        mode: who may do what with a new file, less what the system forbids.

    Raises:
        FormatError: it cannot be written.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "grain.txt")
        >>> write_file(path, "rye")
        >>> path.read_text()
        'rye'
    """
    if not isinstance(content, str | bytes):
        must_be = f"cannot be written: it must be a text, got {type(content).__name__}"
        raise FormatError(must_be, path=path)
    data = content if isinstance(content, bytes) else encode_text(content)
    target = Path(path)
    try:
        before = None
        with suppress(FileNotFoundError):
            before = target.stat()
        if before is not None and not stat.S_ISREG(before.st_mode):
            target.write_bytes(data)
            return
        try:
            _write_beside(Path(os.path.realpath(target)), data, before, mode)
        except PermissionError:
            target.write_bytes(data)
    except OSError as error:
        raise FormatError(f"cannot be written: {error.strerror}", path=path) from None


def encode_text(text: str) -> bytes:
    """UTF-8, also of half a character, which is written the way JSON writes it."""
    return text.encode("utf-8", "backslashreplace")


def _write_beside(
    target: Path, data: bytes, before: os.stat_result | None, mode: int
) -> None:
    short = os.fsdecode(os.fsencode(target.name)[:_NAME_BYTES])
    # Hidden, so that nobody takes what a killed process leaves for a result.
    part = target.with_name(f".{short}.{os.urandom(4).hex()}.part")
    try:
        with open(part, "xb", opener=partial(os.open, mode=mode)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            made = part.stat()
            if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
                os.chown(part, before.st_uid, before.st_gid)
            part.chmod(stat.S_IMODE(before.st_mode))
        part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink()
