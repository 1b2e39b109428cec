"""Results that are kept under `.karat`, so that the same is not computed twice.

What is kept has a key: a digest of everything that decides it, files by their content.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from karat.errors import DataError
from karat.llm.journal import make_private_folder
from karat.reading.decoding import decode_json, decode_text
from karat.version import __version__
from karat.writing import write_file

_FOLDER = Path(".karat")
_MOST = 500


def digest_of(*parts: Any) -> str:
    """The key of what these parts decide: plain values, and paths by what they hold.

    Example:
        >>> digest_of({"k": 5}, "a") == digest_of({"k": 5}, "b")
        False
    """
    text = json.dumps([__version__, *parts], sort_keys=True, default=_content)
    return hashlib.sha256(text.encode()).hexdigest()


def kept(key: str) -> Any:
    """What is kept under a key; None if nothing is, or if it was damaged."""
    path = _path(key)
    try:
        value = decode_json(decode_text(path.read_bytes()))
        # What is used stays longest.
        os.utime(path)
    except (OSError, DataError):
        return None
    return value


def keep(key: str, value: Any) -> None:
    """Keep a plain value; of many, those that were not used for longest go."""
    path = _path(key)
    make_private_folder(path.parent)
    write_file(path, json.dumps(value), mode=0o600)
    others = sorted(_FOLDER.glob("result-*.json"), key=lambda p: -p.stat().st_mtime)
    for old in others[_MOST:]:
        old.unlink(missing_ok=True)


def _path(key: str) -> Path:
    return _FOLDER / f"result-{key[:32]}.json"


def _content(value: object) -> str:
    """The digest of a file, or of all files in a folder."""
    if not isinstance(value, Path):
        raise TypeError(f"no digest of {type(value).__name__}")
    files = sorted(p for p in value.rglob("*") if p.is_file()) if value.is_dir() else ()
    digest = hashlib.sha256()
    for path in files or [value]:
        digest.update(str(path.relative_to(value)).encode())
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
