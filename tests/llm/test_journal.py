"""What the journal keeps, for whom, and from whom."""

import os
import sqlite3
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from karat.data.judgements import Usage
from karat.extend import FormatError, Prices, Prompt, Reply, Settings, UsageError
from karat.llm.http import ALLOWED, check_endpoint
from karat.llm.journal import Entry, Journal, PromptKeys
from karat.llm.limits import Budget
from tests.llm.judges import Scripted, jobs, right, run_jobs_sync

PROMPT = Prompt("Judge.", "Is bread good?", {"type": "object"}, "support", "2")


def name(
    prompt: Prompt = PROMPT,
    endpoint: str = "http://a/v1",
    model: str = "m",
    parameters: Mapping[str, Any] | None = None,
) -> bytes:
    client = Scripted(endpoint=endpoint, model=model, parameters=parameters)
    return PromptKeys(client).of(prompt)


# Few texts, so that equal parts, and equal sums of unequal parts, are common.
texts = st.sampled_from(["", "a", "b", "ab", "ba", chr(34) + ",", "\ud800"])
prompts = st.builds(
    Prompt,
    texts,
    texts,
    st.none() | st.dictionaries(texts, texts, max_size=2),
    texts,
    texts,
)
parameters = st.dictionaries(
    st.sampled_from(["temperature", "seed", "top_p"]),
    st.integers(0, 2) | st.sampled_from([0.0, 0.5, 1.0, True, "1"]),
)
questions = st.tuples(prompts, texts, texts, parameters)


@given(questions, questions)
def test_only_the_very_same_question_has_the_same_name(
    one: tuple[Prompt, str, str, dict[str, Any]],
    other: tuple[Prompt, str, str, dict[str, Any]],
) -> None:
    # repr tells 1, 1.0 and True apart, which == does not.
    same = one[:3] == other[:3] and sorted(map(repr, one[3].items())) == sorted(
        map(repr, other[3].items())
    )
    assert (name(*one) == name(*other)) == same


@given(
    prompts,
    st.sampled_from(["system", "user", "name", "version"]),
    st.integers(0, 3),
    texts,
)
def test_text_moved_from_one_field_to_the_next_changes_the_name(
    prompt: Prompt, field: str, cut: int, added: str
) -> None:
    changed = {field: getattr(prompt, field)[cut:] + added}
    fields = ("system", "user", "schema", "name", "version")
    other = Prompt(**{f: changed.get(f, getattr(prompt, f)) for f in fields})
    assert (name(other) == name(prompt)) == (other == prompt)


@pytest.mark.parametrize(
    "other",
    [
        Scripted(endpoint="http://127.0.0.1:2/v1"),
        Scripted(model="tiny2"),
        Scripted(parameters={"temperature": 1}),
    ],
)
def test_nobody_is_given_the_replies_of_another(
    other: Scripted, tmp_path: Path
) -> None:
    settings = Settings(journal=tmp_path / "journal.sqlite")
    run_jobs_sync(jobs(3), Scripted(), settings)
    assert run_jobs_sync(jobs(3), other, settings) == right(3)
    assert other.calls.total() == 3


def test_an_entry_comes_back_as_it_was(tmp_path: Path) -> None:
    reply = Reply("yes \N{SNOWMAN}", Usage(5, 7), "reply-9", "m-2026", cached=True)
    entry = Entry("ok", reply, 2)
    keys = PromptKeys(Scripted())
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.write(keys.source, [(keys.of(PROMPT), PROMPT, entry)])
        assert journal.get(keys.of(PROMPT)) == entry
        assert journal.get(b"another") is None
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert journal.get(keys.of(PROMPT)) == entry


@pytest.mark.skipif(os.name != "posix", reason="modes are a thing of POSIX")
def test_nobody_else_may_read_it_and_git_does_not_see_it(tmp_path: Path) -> None:
    path = tmp_path / ".karat" / "journal.sqlite"
    with Journal(path) as journal:
        keys = PromptKeys(Scripted())
        journal.write(keys.source, [(b"key", PROMPT, Entry("ok", Reply("yes")))])
        files = {
            file.name: stat.S_IMODE(file.stat().st_mode)
            for file in path.parent.iterdir()
        }
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert (path.parent / ".gitignore").read_text("utf-8") == "*\n"
    del files[".gitignore"]
    assert set(files) >= {"journal.sqlite", "journal.sqlite-wal"}
    assert set(files.values()) == {0o600}


def test_a_folder_behind_a_link_is_left_as_it_is(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    elsewhere.chmod(0o755)
    (tmp_path / ".karat").symlink_to(elsewhere)
    with Journal(tmp_path / ".karat" / "journal.sqlite"):
        pass
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o755
    assert not (elsewhere / ".gitignore").exists()
    assert stat.S_IMODE((elsewhere / "journal.sqlite").stat().st_mode) == 0o600


def test_without_texts_it_keeps_hashes_and_replies_only(tmp_path: Path) -> None:
    plain, secret = tmp_path / "plain.sqlite", tmp_path / "secret.sqlite"
    for path, no_text in ((plain, False), (secret, True)):
        run_jobs_sync(jobs(5), Scripted(), Settings(journal=path, no_text=no_text))
        client = Scripted()
        assert run_jobs_sync(jobs(5), client, Settings(journal=path)) == right(5)
        assert client.calls.total() == 0

    def held(path: Path) -> bytes:
        parts = sorted(path.parent.glob(f"{path.name}*"))
        return b"".join(part.read_bytes() for part in parts)

    assert b"Grade each number" in held(plain)
    assert b"Grade each number" not in held(secret)


def test_it_refuses_files_that_are_no_journal(tmp_path: Path) -> None:
    text = tmp_path / "text.sqlite"
    text.write_text("I am a poem, not a database.\n" * 100, "utf-8")
    with pytest.raises(FormatError, match="not a journal"):
        Journal(text)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE cats (name)")
    database.close()
    with pytest.raises(FormatError, match="something else"):
        Journal(foreign)
    for layout, age in ((99, "a newer"), (3, "an older")):
        other = tmp_path / f"{layout}.sqlite"
        Journal(other).__exit__()
        with sqlite3.connect(other) as database:
            database.execute(f"PRAGMA user_version = {layout}")
        database.close()
        for read_only in (False, True):
            with pytest.raises(FormatError, match=f"{age} karat .*move it away"):
                Journal(other, read_only=read_only)


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(UsageError, match="cannot keep a journal at"):
        Journal(tmp_path / "file" / "journal.sqlite")
    with pytest.raises(UsageError, match="cannot keep a journal at"):
        Journal(tmp_path)


@pytest.mark.parametrize(
    ("allowed", "endpoint", "may"),
    [
        ("models.example", "https://models.example/v1", True),
        ("models.example", "https://models.example.evil.example/v1", False),
        ("models.example", "https://evil.example/models.example", False),
        ("*.example", "https://models.example/v1", True),
        ("*.example", "https://notexample/v1", False),
        ("127.0.0.1:8080", "http://127.0.0.1:8080/v1", True),
        ("127.0.0.1:8080", "http://127.0.0.1:8081/v1", False),
        ("https://a.example/team", "https://a.example/team/v1", True),
        ("https://a.example/team", "https://a.example/teamster/v1", False),
        ("https://a.example/team", "https://a.example/team/../other", False),
        ("https://a.example", "http://a.example/v1", False),
        ("https://a.example/team", "https://a.example/team/%2e%2e/other", False),
        ("https://a.example/team", "https://a.example/team/%252E%252e/other", False),
        ("https://a.example/team", "https://a.example/team/./v1", False),
        ("a.example", "http://a.example/v1", False),
        ("a.example", "https://a.example./v1", True),
        ("http://a.example", "http://a.example/v1", True),
        ("localhost", "http://localhost:11434/v1", True),
        ("proxy", "https://proxy/v1", False),
        ("b.example, a.example", "https://A.example:443/v1", True),
        ("", "https://a.example/v1", False),
        ("a.example", "python:module.function", False),
        ("python", "python:module.function", True),
    ],
)
def test_texts_go_only_where_they_may(allowed: str, endpoint: str, may: bool) -> None:  # noqa: FBT001
    if may:
        check_endpoint(endpoint, {ALLOWED: allowed})
    else:
        with pytest.raises(UsageError, match="may not be sent"):
            check_endpoint(endpoint, {ALLOWED: allowed})
    check_endpoint(endpoint, {})


def test_a_forbidden_endpoint_is_never_called(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(ALLOWED, "models.example")
    client = Scripted()
    with pytest.raises(UsageError, match=r"allows only models\.example"):
        run_jobs_sync(jobs(1), client, Settings(journal=tmp_path / "journal.sqlite"))
    assert client.calls.total() == 0


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=30))
def test_calls_at_once_do_not_overshoot_the_budget_together(
    sizes: list[tuple[int, int]],
) -> None:
    budget = Budget(Prices(1e6, 1e6), max_cost=900)
    flying = []
    for asked, answered in sizes:
        ahead = Usage(asked, answered)
        if budget.reserve(ahead, ahead) == ahead:
            flying.append(ahead)
    for ahead in flying:
        budget.settle(ahead, ahead)
    assert budget.cost is not None
    assert budget.cost <= 900
