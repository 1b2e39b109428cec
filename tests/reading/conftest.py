"""What tests of formats share: files with given contents, and runs as plain values."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat import Run
from karat.extend import Document, Policies

Save = Callable[[str, str | bytes], str]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write a file and say where it is."""

    def write(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


@pytest.fixture
def ids() -> Callable[[Run | None], dict[str, list[Any]]]:
    """The ids of each ranking, or the text of a document that has none."""

    def names(run: Run | None) -> dict[str, list[Any]]:
        assert run is not None
        return {
            query: [d.text if d.id is None else d.id for d in ranking]
            for query, ranking in run.rankings(Policies())
        }

    return names


@pytest.fixture
def documents() -> Callable[[Run | None], dict[str, list[Document]]]:
    """The documents of each ranking."""

    def listed(run: Run | None) -> dict[str, list[Document]]:
        assert run is not None
        return dict(run.rankings(Policies()))

    return listed
