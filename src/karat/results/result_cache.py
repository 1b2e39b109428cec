"""Results that are kept under `.karat`, so that the same is not computed twice.

What is kept has a key: a digest of everything that decides it, files by their content,
the code that computes it included.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from karat.errors import DataError
from karat.llm.journal import make_private_folder
from karat.reading.files import decode_json, decode_text
from karat.writing import write_file

_FOLDER = Path(".karat")
_MOST = 500
_COMPUTING = ("numpy", "rapidfuzz")


def digest_of(*parts: Any) -> str:
    """The key of what these parts decide: plain values, and paths by what they hold."""
    text = json.dumps([_code(), *parts], sort_keys=True, default=_content)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _code() -> str:
    """A digest of the code that numbers depend on: of karat, and of its plug-ins."""
    used = [sys.version, *(f"{name} {version(name)}" for name in _COMPUTING)]
    digest = hashlib.sha256("\n".join(used).encode())
    for path in _sources():
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources() -> Iterator[Path]:
    yield from sorted(Path(__file__).parents[1].rglob("*.py"))
    points = entry_points()
    names = {
        point.module.partition(".")[0]
        for group in points.groups
        if group.startswith("karat.")
        for point in points.select(group=group)
    }
    for spec in map(find_spec, sorted(names)):
        # A plug-in that is gone cannot be used either.
        folders = [] if spec is None else spec.submodule_search_locations or []
        for folder in folders:
            yield from sorted(Path(folder).rglob("*.py"))
        if spec is not None and spec.origin and not folders:
            yield Path(spec.origin)


def stored_result(key: str) -> Any:
    """What is stored under a key; None if nothing is, or if it was damaged."""
    path = _path(key)
    try:
        value = decode_json(decode_text(path.read_bytes()))
        # What is used stays longest.
        os.utime(path)
    except (OSError, DataError):
        return None
    return value


def store_result(key: str, value: Any) -> None:
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
