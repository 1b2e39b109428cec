"""YAML: seed 001's files as they are; bombs, depth and surprising scalars refused."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from karat import Run
from karat.extend import FormatError, decode_yaml
from karat.reading.readers import read

Save = Callable[[str, str | bytes], str]
Ids = Callable[[Run | None], dict[str, list[Any]]]

SEED = """\
schema_version: eval-harness.dataset.v1
name: rag.retrieval
samples:
  - id: q-1
    input: { question: "What is our refund window?" }
    expected_output: ["doc-3", "doc-9"]        # binary relevance
    metadata: { k: 5, tags: [policy] }          # optional per-sample cutoff
  - id: q-2
    input: { question: "..." }
    expected_output: { "doc-3": 3, "doc-9": 1 } # graded gains
"""


@pytest.mark.parametrize("name", ["set.yaml", "set.yml", "set.txt", "set"])
@pytest.mark.parametrize("start", ["", "\ufeff", "# a comment\n---\n"])
def test_seed_001_s_file_is_read_as_it_is(name: str, start: str, save: Save) -> None:
    loaded = read(save(name, start + SEED))
    assert loaded.format == "yaml"
    assert loaded.gold is not None
    assert loaded.gold.documents == {
        "q-1": {"doc-3": 1.0, "doc-9": 1.0},
        "q-2": {"doc-3": 3.0, "doc-9": 1.0},
    }
    assert loaded.queries["q-1"].k == 5
    assert loaded.queries["q-1"].tags == ("policy",)
    assert loaded.queries["q-1"].text == "What is our refund window?"


def test_a_list_or_a_mapping_is_known_by_content(save: Save, ids: Ids) -> None:
    assert read(save("a", "- id: q\n  retrieved: [a, b]\n")).format == "yaml"
    loaded = read(save("b", "q1:\n- d1\n- d2\nq2: [d3]\n"), role="run")
    assert ids(loaded.run) == {"q1": ["d1", "d2"], "q2": ["d3"]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("On", "On"),
        ("true", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("007", "007"),
        ("0o7", "0o7"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2024-01-02", "2024-01-02"),
        ("1e3", "1e3"),
        ("-12", -12),
        ("0.5", 0.5),
        ("1.5e+3", 1500.0),
        ("1.5e3", "1.5e3"),
        ("-.5", "-.5"),
        (".inf", float("inf")),
        ("-.Inf", float("-inf")),
        ("'<<'", "<<"),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("|\n  12\n", "12\n"),
        ("&a x", "x"),
    ],
)
def test_scalars_keep_what_was_meant(text: str, value: object) -> None:
    assert decode_yaml(f"- {text}") == [value]


def test_aliases_and_merges_are_understood() -> None:
    text = "base: &b {k: 5, docs: [a]}\none: {<<: *b, k: 3}\ntwo: *b"
    assert decode_yaml(text) == {
        "base": {"k": 5, "docs": ["a"]},
        "one": {"docs": ["a"], "k": 3},
        "two": {"k": 5, "docs": ["a"]},
    }


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text("abc", max_size=3), inner)
        ),
        max_leaves=12,
    )
)
def test_what_pyyaml_writes_is_read_back(value: object) -> None:
    assert decode_yaml(yaml.safe_dump(value, allow_unicode=True)) == value


BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)
)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (BOMB, 6, "aliases repeat more than"),
        ("a: &a [*a]", 1, "alias *a has no anchor before it"),
        ("a: *b", 1, "alias *b has no anchor"),
        ("[" * 100_000, 1, "nested more than 100 deep"),
        ("- " * 100_000 + "a", 1, "nested more than 100 deep"),
        ("{a: " * 100_000, 1, "nested more than 100 deep"),
        ("\n".join(" " * n + "a:" for n in range(1000)), 101, "nested more than 100"),
        ("a: 1\nb: 2\na: 3", 3, "key 'a' occurs twice"),
        ("a: !!python/object/apply:os.system [x]", 1, "is not read"),
        ("a: !mine x", 1, "YAML tag '!mine' is not read"),
        ("? [a]\n: b", 1, "a key must be a text"),
        ("a: [b\nc: d", 2, "broken YAML"),
        ("a: b: c", 1, "broken YAML at column 5"),
        ("\ta: b", 1, "broken YAML"),
        ("a: 1\n---\nb: 2", None, "several YAML documents"),
        ("a: \x07", None, "broken YAML"),
    ],
)
def test_what_is_dangerous_or_broken_is_refused_with_its_line(
    text: str, line: int | None, problem: str, save: Save
) -> None:
    path = save("a.yaml", text)
    with pytest.raises(FormatError) as caught:
        read(path)
    place = path if line is None else f"{path}:{line}"
    assert str(caught.value).startswith(f"{place}: ")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# only a comment", "holds nothing"),
        ("just words", "holds str"),
        ("samples: []", "empty list"),
        ("samples:\n- id: q\n  docs: [a]\n  k: .nan", "query 'q': k must be"),
        ("samples:\n- id: q\n  docs: {a: .inf}", "query 'q': score of 'a'"),
        ("samples:\n- id: {a: 1}\n  docs: [a]", "sample 1: id must be a string"),
        ("q: {d: 1.5}\nr: [", "broken YAML"),
    ],
)
def test_values_that_are_wrong_are_named(text: str, problem: str, save: Save) -> None:
    with pytest.raises(FormatError) as caught:
        read(save("a.yaml", text), role="run")
    assert problem in str(caught.value)
