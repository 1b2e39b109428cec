"""`python -m tests.docs.update`: let every page show what its blocks print now."""

import tempfile
from pathlib import Path

from tests.docs.pages import PAGES, ROOT, executed


def main() -> None:
    for page in PAGES:
        text = page.read_text("utf-8")
        with tempfile.TemporaryDirectory() as folder:
            now = executed(text, Path(folder))
        if now != text:
            page.write_text(now, "utf-8")
            print(f"updated {page.relative_to(ROOT)}")  # noqa: T201


if __name__ == "__main__":
    main()
