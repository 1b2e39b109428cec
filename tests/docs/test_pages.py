"""Every block of the documentation runs, and prints what the page shows."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, executed
from tests.docs.reference import FOLDER, SCHEMA, pages, stubs
from tests.docs.saved_schema import evaluation_schema


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


# Pages show what is printed; a warning goes elsewhere.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*the mean is of the others:UserWarning")
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_shows_what_its_blocks_print(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    assert executed(text, tmp_path) == text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for link, target, anchor in re.findall(
        r"\]\((([^)#:\s]*)(?:#([^)]+))?)\)", without_blocks(page)
    ):
        path = page.parent / target if target else page
        assert path.exists(), link
        assert not anchor or anchor in anchors(path), link


def test_the_navigation_of_the_site_has_every_page() -> None:
    project = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
    listed = re.findall(r"'([\w./-]+\.md)'", str(project["nav"]))
    assert sorted(listed) == sorted(
        page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]
    )


def without_blocks(page: Path) -> str:
    return re.sub(r"(?ms)^```.*?^```$", "", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """What a link into a page may name: its headings, and the names it documents."""
    text = without_blocks(page)
    headings = re.findall(r"(?m)^#+ (.+)$", text)
    kept = (re.sub(r"[^\w\- ]", "", heading).lower() for heading in headings)
    names = re.findall(r"(?m)^::: (.+)$", text)
    return {*names, *(heading.replace(" ", "-") for heading in kept)}


# An index that has no karat would install nothing, or another's package.
@pytest.mark.parametrize(
    "page", [*PAGES, *(ROOT / "examples").rglob("*.yml")], ids=name
)
def test_install_lines_work_as_written(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not re.findall(r"pip install (?:-U |--upgrade )?karat\b(?!\[)", text)


def test_the_readme_is_short_and_its_first_number_comes_early() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 120
    python = next(block for block in blocks(text) if block.language == "python")
    assert len(python.body.splitlines()) <= 12
    number = re.compile(r"(?m)^\D.*\d\.\d{4}").search(text, python.end)
    assert number is not None
    assert text.count("\n", 0, number.start()) + 1 <= 25


def test_a_changed_number_would_be_noticed(tmp_path: Path) -> None:
    page = "```python\nprint(1 / 2)\n```\n\n```text\n0.4\n```\n"
    assert executed(page, tmp_path) == page.replace("0.4", "0.5")


def test_a_line_of_dots_stands_for_any_lines(tmp_path: Path) -> None:
    page = "```console\n$ printf 'a\\nb\\nc\\n'\na\n...\n```\n"
    assert executed(page, tmp_path) == page
    other = page.replace("a\n...", "b\n...")
    assert executed(other, tmp_path) != other


def test_a_marked_block_is_a_file_for_later_ones(tmp_path: Path) -> None:
    page = '```json title="a.json"\n[1]\n```\n\n```console\n$ cat a.json\n[1]\n```\n'
    assert executed(page, tmp_path) == page


def test_stubs_have_the_public_names_of_now() -> None:
    for path, text in stubs().items():
        assert path.read_text("utf-8") == text, "make docs writes them"


def test_the_reference_pages_are_what_the_code_says_now() -> None:
    for page, text in pages().items():
        assert (FOLDER / page).read_text("utf-8") == text, "make docs writes them anew"


def test_the_schema_of_saved_files_is_what_the_types_say_now() -> None:
    assert SCHEMA.read_text("utf-8") == evaluation_schema(), "make docs writes it anew"


def test_a_block_runs_as_in_a_notebook(tmp_path: Path) -> None:
    page = "```python\nimport asyncio\nawait asyncio.sleep(0, 'it')\n```\n"
    assert executed(page, tmp_path) == f"{page[:-1]}\n\n```text\n'it'\n```\n"
