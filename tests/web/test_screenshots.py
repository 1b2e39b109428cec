"""The pictures in the documentation show the pages of today.

A picture whose page has changed is made anew, beside it the text and the elements that
it shows, and the test fails once: look at the picture, and commit both.
"""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import karat
from tests.reports.conftest import chromium
from tests.web.conftest import Window, running

__all__ = ["chromium"]
pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
DATA = Path(karat.__file__).parent / "examples" / "help_centre"
WIDTH, LARGEST = 1000, 120_000
# Where a page is, what stands at the top of the picture, and how high that is.
SERVED = {
    "history": ("/p/help", "body", 1050),
    "query": ("/p/help/q/q01?runs=1,2", "#rankings", 860),
    "comparison": ("/p/help/compare?run=1&run=2", "body", 800),
}
# Text and elements, as they stand on the page: no font, size or colour.
OUTLINE = """() => [...document.querySelectorAll("main *")].map((one) => {
  const own = [...one.childNodes].filter((node) => node.nodeType === 3);
  const text = own.map((node) => node.data.trim()).join(" ").trim();
  return [one.tagName.toLowerCase(), one.className.baseVal ?? one.className, text]
    .filter(Boolean).join(" ");
})"""


def fill(path: Path) -> str:
    """Store five runs of the help centre, with what two people said; a token."""
    keyword, dense = DATA / "keyword.run", DATA / "dense.run"
    runs = {
        "keyword": keyword,
        "dense": dense,
        "half of each": karat.fuse([keyword, dense]),
        "mostly dense": karat.fuse([keyword, dense], weights=[1, 3]),
        "best of both": karat.fuse([keyword, dense], "max"),
    }
    with karat.history.open(path) as store:
        for day, (name, run) in enumerate(runs.items(), 2):
            result = karat.evaluate(
                run,
                gold=DATA / "gold.qrels",
                queries=DATA / "queries.jsonl",
                corpus=DATA / "corpus.jsonl",
                metrics=["ndcg@10", "recall@5", "rr@10"],
                keep=10,
                name=name,
            )
            commit, at = f"{day * 0x2F6E2B1:07x}", f"2026-11-{day:02}T09:30:00+00:00"
            store.push(result, project="help", commit=commit, branch="main", at=at)
        for who, document, grade, why in (
            ("ann", "orders-01", 2, "says when it is too late"),
            ("bo", "orders-01", 1, "only half an answer"),
        ):
            label = {"query": "q01", "document": document, "grade": grade}
            at = f"2026-11-10T10:0{grade}:00+00:00"
            store.label([{**label, "who": who, "why": why}], project="help", at=at)
        return store.tokens.add("cy", "label")


@pytest.fixture(scope="module")
def shown(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser at the pages of a server, and those of `karat history -o`."""
    folder = tmp_path_factory.mktemp("screenshots")
    token = fill(folder / "store.db")
    command = [sys.executable, "-m", "karat", "history", "store.db", "--project"]
    subprocess.run([*command, "help", "-o", "site"], cwd=folder, check=True)
    size = {"width": WIDTH, "height": 800}
    with running(folder / "store.db") as home:
        tab = Window(chromium, home, token, viewport=size, device_scale_factor=1)
        yield tab.page, home, (folder / "site" / "index.html").as_uri()
        tab.context.close()


@pytest.mark.parametrize("name", [*SERVED, "site"])
def test_a_picture_shows_the_page_of_today(shown: Any, name: str) -> None:
    page, home, site = shown
    address, top, height = SERVED.get(name, ("", "body", 900))
    page.goto(home + address if address else site)
    outline = page.evaluate(OUTLINE)
    picture, stored = IMAGES / f"{name}.png", IMAGES / f"{name}.json"
    before = json.loads(stored.read_text("utf-8")) if picture.exists() else None
    if outline != before:
        picture.write_bytes(_screenshot(page, top, height))
        said = json.dumps(outline, ensure_ascii=False, indent=0)
        stored.write_text(f"{said}\n", "utf-8")
    assert picture.stat().st_size < LARGEST
    assert outline == before, f"{picture} is made anew: look at it, and commit it"


def _screenshot(page: Any, top: str, height: int) -> bytes:
    """A part of the page, in 64 colours."""
    image = pytest.importorskip("PIL.Image", reason="needs Pillow")
    above = page.locator(top).bounding_box()["y"]
    clip = {"x": 0, "y": above, "width": WIDTH, "height": height}
    shot = image.open(io.BytesIO(page.screenshot(full_page=True, clip=clip)))
    small = io.BytesIO()
    shot.convert("RGB").quantize(64, dither=image.Dither.NONE).save(
        small, "PNG", optimize=True
    )
    return small.getvalue()
