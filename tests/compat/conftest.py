"""Where the fronts' journals go in tests."""

from pathlib import Path

import pytest


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of one's own, where a journal is kept, and no settings of others."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KARAT_ALLOWED_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)
