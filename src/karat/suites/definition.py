"""Suites: an evaluation written down in a file, and what such a file may say.

One definition serves two readers. `SUITE` is a JSON Schema: it is published for editors
and other programs, and `read_suites` checks files by it, with the line of a mistake.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from karat.data.policies import CHOICES
from karat.errors import FormatError, UnknownNameError, UsageError
from karat.reading.files import decode_text, open_binary
from karat.reading.meaning.ambiguity import ORDERS
from karat.reading.source import placed
from karat.reading.yaml_text import decode_yaml, key_lines
from karat.retrieving.retrieve import load_object

FILE = "karat.yaml"
"""Where suites are looked for."""

_SECTION = "suites"


def _mapping(about: str, *required: str, **properties: Any) -> dict[str, Any]:
    return {
        "description": about,
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        **({"required": [*required]} if required else {}),
    }


def _one(kind: str, about: str, **more: Any) -> dict[str, Any]:
    return {"description": about, "type": kind, **more}


def _by_name(kind: str, about: str) -> dict[str, Any]:
    return _one("object", about, additionalProperties={"type": kind})


_text = partial(_one, "string")
_yes_or_no = partial(_one, "boolean")
_count = partial(_one, "integer", minimum=1)
_limits = partial(_by_name, "number")
_MAP = _by_name("string", "Our field names and theirs, where they are not inferred.")

_RETRIEVER: dict[str, Any] = _mapping(
    "A live retriever, and how to call it.",
    "retriever",
    retriever=_text("A function such as my.module:search, an address, or a file."),
    version=_text("Of the index and the code; answers are kept until it changes."),
    k=_count("How many documents to ask for."),
    map=_MAP,
    body=_one("object", "What is posted to an address."),
    headers=_by_name(
        "string", "Sent to an address; $NAME is read from the environment."
    ),
    concurrency=_count("Calls under way at once."),
    timeout=_one("number", "The longest a call may take, in seconds."),
)

_SWEEP: dict[str, Any] = _mapping(
    "Settings of a retriever to be tried, of which the best is looked for.",
    "factory",
    "grid",
    factory=_text("A function such as my.module:build, from setting to retriever."),
    grid={
        "description": "The values of each parameter; k is how many are retrieved.",
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "array",
            "minItems": 1,
            "items": {"type": ["string", "number", "boolean"]},
        },
    },
    version=_text("Of data and code; results are kept until it changes."),
    concurrency=_count("Calls under way at once."),
)

SUITE: dict[str, Any] = {
    **_mapping(
        "One evaluation: the data, what is scored, by which metrics, what must hold.",
        gold=_text("The file of what should be retrieved; samples carry their own."),
        queries=_text("The file of the queries' texts and tags."),
        corpus=_text("The file of the documents' texts, for runs of ids."),
        map=_MAP,
        retrievers={
            "description": "What is scored, by name: a file that holds a run, or a "
            "function such as my.module:search, or an address that answers with JSON.",
            "type": "object",
            "additionalProperties": {**_RETRIEVER, "type": ["string", "object"]},
            "minProperties": 1,
        },
        sweep=_SWEEP,
        metrics={
            "description": "Spellings such as ndcg@10; the first one sorts the runs.",
            "type": ["string", "array"],
            "items": {"type": "string"},
            "minItems": 1,
        },
        match=_text("How a document satisfies a gold item."),
        judge=_text("The model that judges claims, by name."),
        k=_count("What the letter in recall@k means."),
        policies=_mapping(
            "What happens in the cases that a formula does not decide.",
            profile=_text("A named set of policies."),
            **{name: {"enum": [*choices]} for name, choices in CHOICES.items()},
            order={"enum": [*ORDERS]},
            threshold={"type": "number"},
            depth=_count("Read only this many documents of each ranking."),
            judged_only=_yes_or_no("Remove documents without any label."),
            force=_yes_or_no("Score even if no id is in both run and gold."),
        ),
        slices={"description": "Also show means by tag.", "enum": ["tag"]},
        baseline=_text("What to compare with: a retriever, or a saved evaluation."),
        gates=_mapping(
            "What a build must reach.",
            fail_under=_limits("The smallest mean of a metric."),
            fail_under_low=_limits("The smallest lower limit of its interval."),
            max_drop=_limits("The largest drop from the baseline."),
            strict=_yes_or_no("Exit 3 when a gate is inconclusive."),
            allow_noise=_yes_or_no("A drop that may be chance only warns."),
            require_noninferior=_yes_or_no("Fail unless a larger drop is ruled out."),
            gate_tags=_yes_or_no("Check drops on the queries of each tag, too."),
        ),
    ),
    "anyOf": [{"required": ["retrievers"]}, {"required": ["sweep"]}],
}
"""What one suite may say, as JSON Schema."""

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "urn:karat:schema:suite:1",
    "title": "Suites of karat: the section suites of karat.yaml, or a file of one",
    "type": "object",
    "if": {"required": [_SECTION]},
    "then": {
        "properties": {
            _SECTION: {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"$ref": "#/$defs/suite"},
            }
        }
    },
    "else": {"$ref": "#/$defs/suite"},
    "$defs": {"suite": SUITE},
}
"""What a file of suites may say; published under docs/schema."""

# What others call it.
_MEANT = dict.fromkeys(("run", "runs", "system", "systems"), "retrievers")
_TYPES: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "string": ("a text", str),
    "boolean": ("true or false", bool),
    "integer": ("a whole number", int),
    "number": ("a number", (int, float)),
    "array": ("a list", list),
    "object": ("a mapping", dict),
}


@dataclass(frozen=True)
class Suite:
    """One suite of a file, and on which line each key stands.

    Paths in its settings, which are as `SUITE` allows, are relative to its folder.
    """

    name: str
    path: Path
    settings: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]

    def error(self, problem: str, *keys: str) -> FormatError:
        """What is wrong with the value under these keys, with its file and line."""
        prefixes = (keys[:size] for size in range(len(keys), -1, -1))
        line = next((self.lines[k] for k in prefixes if k in self.lines), None)
        return FormatError(problem, path=self.path, line=line)

    def file(self, value: str, *keys: str) -> Path:
        """The path of a file that is named under these keys; it must exist."""
        path = self.path.parent / value
        if not path.exists():
            raise self.error(f"{'.'.join(keys)}: there is no file {value!r}", *keys)
        return path

    def function(self, value: str, *keys: str) -> Callable[..., Any]:
        """The function `module:name` that is named under these keys."""
        with self.at(*keys):
            target: object = load_object(value, self.path.parent.resolve())
        if not callable(target):
            raise self.error(f"{value} is no function", *keys)
        return target

    @contextmanager
    def at(self, *keys: str) -> Iterator[None]:
        """A mistake in the value under these keys gets its line."""
        try:
            yield
        except UsageError as error:
            raise self.error(str(error).removeprefix("--"), *keys) from None


def read_suite(name: str | None = None, file: str | os.PathLike[str] = FILE) -> Suite:
    """The suite of that name; without a name, the only one."""
    suites = read_suites(file)
    if name is None and len(suites) > 1:
        raise UsageError(f"{file} has several suites, name one: {', '.join(suites)}")
    if name is None:
        return next(iter(suites.values()))
    if name not in suites:
        raise UnknownNameError("suite", name, suites)
    return suites[name]


def read_suites(file: str | os.PathLike[str] = FILE) -> dict[str, Suite]:
    """The suites of a file, by name: a section `suites`, or one suite alone."""
    path = Path(file)
    if path.name == FILE and not path.exists():
        raise FormatError("no such file", path=path, hint="karat init writes one")
    try:
        with open_binary(path) as stream:
            text = decode_text(stream.read())
        value = decode_yaml(text)
    except FormatError as error:
        raise placed(error, path=path) from None
    lines = key_lines(text)
    whole = Suite("", path, {}, lines)
    alone = isinstance(value, dict) and _SECTION not in value
    if alone and path.name == FILE:
        raise whole.error("has no section suites; karat init writes one")
    sections = {path.stem: value} if alone else _sections(whole, value)
    suites = {}
    for name, settings in sections.items():
        place = () if alone else (_SECTION, name)
        _check(whole, SUITE, settings, place, f"suite {name}")
        size = len(place)
        own = {key[size:]: n for key, n in lines.items() if key[:size] == place}
        suites[name] = Suite(name, path, settings, own)
    return suites


def _sections(whole: Suite, value: Any) -> dict[str, Any]:
    sections = value.get(_SECTION) if isinstance(value, dict) else None
    if not isinstance(sections, dict) or not sections:
        raise whole.error(
            "suites must be a mapping from names to suites, as in "
            "'suites: {main: {gold: gold.qrels, retrievers: {bm25: bm25.trec}}}'",
            _SECTION,
        )
    return {str(name): settings for name, settings in sections.items()}


def _check(
    suite: Suite, schema: Mapping[str, Any], value: Any, place: tuple[str, ...], of: str
) -> None:
    """Refuse a value that the schema does, and say where it stands."""
    if (must_be := _requirement(schema, value)) is not None:
        kinds = (words for words, kind in _TYPES.values() if isinstance(value, kind))
        plain = isinstance(value, str | int | float)
        shown = repr(value) if plain else next(kinds, "nothing")
        raise suite.error(f"{of} must be {must_be}, got {shown:.80}", *place)
    if isinstance(value, list):
        for number, entry in enumerate(value):
            _check(suite, schema["items"], entry, (*place, str(number)), of)
    if not isinstance(value, dict):
        return
    properties = schema.get("properties", {})
    for key, entry in value.items():
        inner = (*place, str(key))
        if not isinstance(key, str):
            raise suite.error(f"{of}: a name must be a text, got {key!r}", *inner)
        inside = properties.get(key, schema.get("additionalProperties"))
        if inside is False:
            meant = _MEANT.get(key)
            see = f"did you mean {meant!r}?" if meant in properties else None
            names = () if see else properties
            unknown = UnknownNameError(f"setting of {of}", key, names, see)
            raise suite.error(str(unknown), *inner)
        if inside is not None:
            _check(suite, inside, entry, inner, key)
    choices = [one for one in schema.get("anyOf", [schema]) if "required" in one]
    lacking = [[k for k in one["required"] if k not in value] for one in choices]
    if lacking and all(lacking):
        missing = " or ".join(keys[0] for keys in lacking)
        about = properties[lacking[0][0]]["description"]
        raise suite.error(f"{of} lacks {missing}: {about}", *place)


def _requirement(schema: Mapping[str, Any], value: Any) -> str | None:
    """What a value would have to be by a schema; None if it is that."""
    if "enum" in schema:
        choices = schema["enum"]
        return None if value in choices else " or ".join(map(str, choices))
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    # To Python, true is a number.
    fitting = ["boolean"] if isinstance(value, bool) else kinds
    if not any(k in kinds and isinstance(value, _TYPES[k][1]) for k in fitting):
        return " or ".join(_TYPES[kind][0] for kind in kinds)
    if "minimum" in schema and value < schema["minimum"]:
        return f"{schema['minimum']} or more"
    counted = "minItems" if isinstance(value, list) else "minProperties"
    empty = counted in schema and isinstance(value, list | dict) and not value
    return "one or more" if empty else None
