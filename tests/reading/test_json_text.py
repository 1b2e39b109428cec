"""JSON and JSON Lines: sniffed by content, strict where JSON is lax, with lines."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from karat import Run
from karat.extend import FormatError
from karat.reading.readers import read

Save = Callable[[str, str | bytes], str]
Ids = Callable[[Run | None], dict[str, list[Any]]]

LINES = '{"qid": "a", "retrieved": ["x"]}\n\n{"qid": "b", "retrieved": ["y", "x"]}\n'


@pytest.mark.parametrize(
    "name", ["run.jsonl", "run.ndjson", "run.json", "run", "run.txt"]
)
@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n"])
def test_lines_are_known_by_content(
    name: str, start: str, save: Save, ids: Ids
) -> None:
    loaded = read(save(name, start + LINES))
    assert loaded.format == "jsonl"
    assert ids(loaded.run) == {"a": ["x"], "b": ["y", "x"]}


def test_windows_line_ends_and_a_last_line_without_one(save: Save, ids: Ids) -> None:
    loaded = read(save("a.jsonl", LINES.strip().replace("\n", "\r\n")))
    assert ids(loaded.run) == {"a": ["x"], "b": ["y", "x"]}


def test_one_line_is_enough(save: Save, ids: Ids) -> None:
    loaded = read(save("a.jsonl", LINES.partition("\n")[0]))
    assert loaded.format == "jsonl"
    assert ids(loaded.run) == {"a": ["x"]}


def test_json_over_many_lines_is_not_lines_whatever_its_name(
    save: Save, ids: Ids
) -> None:
    value = [{"qid": "a", "retrieved": ["x"]}, {"qid": "b", "retrieved": ["y"]}]
    loaded = read(save("a.jsonl", json.dumps(value, indent=2)))
    assert loaded.format == "json"
    assert ids(loaded.run) == {"a": ["x"], "b": ["y"]}


def test_lines_longer_than_the_head_are_still_lines(save: Save, ids: Ids) -> None:
    long = {"qid": "a", "retrieved": ["x"], "note": "n" * 100_000}
    text = json.dumps(long) + "\n" + '{"qid": "b", "retrieved": ["y"]}\n'
    loaded = read(save("a.json", text))
    assert loaded.format == "jsonl"
    assert ids(loaded.run) == {"a": ["x"], "b": ["y"]}


def test_lists_one_per_line_are_rankings(save: Save, ids: Ids) -> None:
    loaded = read(save("a.jsonl", '["x", "y"]\n["z"]\n'), role="run")
    assert ids(loaded.run) == {"0": ["x", "y"], "1": ["z"]}


BAD_LINES = [
    ('{"qid": "b", "retrieved": ["y"] "k": 1}', "broken JSON at column 33"),
    ('{"qid": "b", "retrieved": ["y"]', "broken JSON at column 32"),
    ('{"qid": "b", "retrieved": ["y"]} x', "broken JSON at column 34: extra data"),
    ('{"qid": "b", "qid": "c", "retrieved": []}', "key 'qid' occurs twice"),
    ('{"qid": "b", "retrieved": {"y": NaN}}', "NaN in JSON: numbers must be finite"),
    ('{"qid": "b", "retrieved": {"y": -Infinity}}', "-Infinity in JSON"),
    ('{"qid": "b", "retrieved": {"y": 1e400}}', "must be a finite number"),
    ('{"qid": "b", "k": ' + "1" * 5000 + "}", "too many digits"),
    ('{"qid": "b", "retrieved": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too"),
    ('{"qid": "b", "retrieved": ["\udcff"]}', "not valid UTF-8: byte 0xff"),
    ('"b"', "must be an object with fields, got str 'b'"),
    ('{"qid": "a", "retrieved": ["y"]}', "'a' occurs twice, first in line 1"),
    ('{"qid": "b", "k": 0, "retrieved": ["y"]}', "query 'b': k must be an integer"),
]


@pytest.mark.parametrize(("line", "problem"), BAD_LINES)
def test_a_bad_line_is_named_by_its_number(line: str, problem: str, save: Save) -> None:
    text = '{"qid": "a", "retrieved": ["x"]}\n\n' + line + "\n"
    path = save("a.jsonl", text.encode("utf-8", "surrogateescape"))
    with pytest.raises(FormatError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert problem in str(caught.value)
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ('{\n"a": [\n"x",,\n]}', ":3", "broken JSON at column 5"),
        ('{"a": ["x"', ":1", "broken JSON at column 11"),
        ('{"a": ["a"],\n"b": {"a": 1},\n"a": ["y"]}', ":3", "key 'a' occurs twice"),
        ('{"a": {"x": "NaN",\n"\\"y": NaN}}', ":2", "NaN in JSON"),
        ("[\n" * 100_000, ":501", "nested too deeply"),
        ('{"a":' * 100_000, ":1", "nested too deeply"),
        ('{"a": [' + "1" * 5000 + "]}", "", "too many digits"),
        (b'{"a": [\n"\xe9"]}', ":2", "not valid UTF-8: byte 0xe9"),
    ],
)
def test_broken_json_says_where(
    text: str | bytes, place: str, problem: str, save: Save
) -> None:
    path = save("a.json", text)
    with pytest.raises(FormatError) as caught:
        read(path, role="run")
    assert str(caught.value).startswith(f"{path}{place}: ")
    assert problem in str(caught.value)


def test_deep_json_in_a_cell_is_refused_too(save: Save) -> None:
    deep = json.dumps("[" * 100_000 + "]" * 100_000)
    with pytest.raises(FormatError, match="nested too deeply"):
        read(save("a.json", f'[{{"id": 1, "retrieved": {deep}}}]'))


def test_a_value_deeper_than_any_format_is_shown_without_recursion(save: Save) -> None:
    deep = "[" * 900 + "]" * 900
    with pytest.raises(FormatError, match="cannot be a list"):
        read(save("a.json", f'{{"q": [{deep}]}}'), role="run")
