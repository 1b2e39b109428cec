"""`karat cache`: what is kept, and how to forget it."""

from pathlib import Path

from karat.extend import JOURNAL, Prompt, Reply
from karat.llm.journal import Entry, Journal, PromptKeys
from tests.cli.conftest import Karat
from tests.llm.judges import Scripted


def fill() -> None:
    for model in ("large", "tiny"):
        keys = PromptKeys(Scripted(model=model))
        with Journal(JOURNAL) as journal:
            for number, status in enumerate(("ok", "ok", "refused")):
                prompt = Prompt("", f"question {number}")
                entry = (keys.of(prompt), prompt, Entry(status, Reply("x")))
                journal.write(keys.source, [entry])


def test_an_empty_cache_says_so_and_makes_no_file(karat: Karat, folder: Path) -> None:
    done = karat("cache")
    assert (done.code, done.err) == (0, "")
    assert "nothing is kept yet" in done.out
    assert not (folder / ".karat").exists()


def test_it_shows_entries_size_and_models(karat: Karat) -> None:
    fill()
    done = karat("cache")
    assert done.code == 0
    assert "6 entries, " in done.out
    assert "KiB" in done.out
    lines = [line.split() for line in done.out.splitlines()]
    assert ["large", "http://127.0.0.1:1/v1", "3", "1", "0"] in lines
    assert ["tiny", "http://127.0.0.1:1/v1", "3", "1", "0"] in lines


def test_it_forgets_a_model_or_errors_or_everything(karat: Karat) -> None:
    fill()
    assert "1 entry" in karat("cache", "--clear", "--errors", "--model", "tiny").out
    assert "3 entries" in karat("cache", "--clear", "--model", "large").out
    assert "2 entries" in karat("cache", "--clear").out
    assert ": 0 entries, " in karat("cache").out


def test_a_model_of_which_nothing_is_kept_is_a_mistake(karat: Karat) -> None:
    fill()
    done = karat("cache", "--clear", "--model", "larg")
    assert done.code == 2
    assert "unknown model 'larg'; did you mean 'large'?" in done.err
    assert ": 6 entries, " in karat("cache").out


def test_what_to_clear_without_clear_is_a_mistake(karat: Karat) -> None:
    done = karat("cache", "--errors")
    assert done.code == 2
    assert "--clear" in done.err
