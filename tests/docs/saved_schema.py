"""The JSON Schema of saved evaluations, written from the types they are loaded by."""

import inspect
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_type_hints

import numpy as np

from karat import Evaluation
from karat.data.intervals import Interval
from karat.results.plain_values import (
    SCHEMA_VERSION,
    Head,
    Row,
    is_needed,
    parts_of_type,
    saved_fields,
)

__all__ = ["attributes", "evaluation_schema"]

Schema = dict[str, Any]
_SIMPLE: dict[Any, Schema] = {
    Any: {},
    object: {},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    # NaN is null.
    float: {"anyOf": [{"type": ["number", "null"]}, {"enum": ["inf", "-inf"]}]},
    np.float64: {"type": ["number", "null"]},
    np.int64: {"type": "integer"},
    np.bool_: {"type": "boolean"},
}


def evaluation_schema() -> str:
    """The schema of a file: one evaluation, or a list with one per run."""
    defs: dict[str, Schema] = {}
    _form(Head, defs)
    saved = defs.pop("Head")
    saved["properties"] |= {
        "evaluation": _form(Evaluation, defs),
        "queries": {"type": "array", "items": _form(Row, defs)},
    }
    saved["required"] += ["evaluation", "queries"]
    saved["description"] = "A head and rows for people, and the evaluation itself."
    one = {"$ref": "#/$defs/Saved"}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:karat:schema:evaluation:{SCHEMA_VERSION}",
        "title": f"Saved evaluation of karat, schema_version {SCHEMA_VERSION}",
        "description": "What Evaluation.to_json, karat evaluate --json and -o "
        "FILE.json write: one evaluation, or a list with one per run. "
        "Written by `make docs`.",
        "anyOf": [one, {"type": "array", "minItems": 1, "items": one}],
        "$defs": {"Saved": saved, **defs},
    }
    return json.dumps(schema, indent=2) + "\n"


def _form(kind: Any, defs: dict[str, Schema]) -> Schema:  # noqa: PLR0911
    """The form of a type; those with fields are written once, by name."""
    origin, inner = parts_of_type(kind)
    if kind is Interval or _has_fields(kind):
        if kind.__name__ not in defs:
            defs[kind.__name__] = {}
            defs[kind.__name__] |= _object(kind, defs)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if origin in (Union, UnionType):
        form = _form(inner[0], defs)
        return {"anyOf": [{"type": "null"}, form]} if NoneType in inner else form
    if origin is np.ndarray:
        return {"type": "array", "items": _SIMPLE[get_args(inner[1])[0]]}
    if origin in (Mapping, dict):
        return {"type": "object", "additionalProperties": _form(inner[1], defs)}
    if origin is tuple and inner[-1] is not Ellipsis:
        items = [_form(one, defs) for one in inner]
        size = {"minItems": len(items), "maxItems": len(items)}
        return {"type": "array", "prefixItems": items, **size}
    if origin in (tuple, Sequence, Collection):
        return {"type": "array", "items": _form(inner[0], defs)}
    return {"enum": [*inner]} if origin is Literal else _SIMPLE[kind]


def _has_fields(kind: Any) -> bool:
    return is_dataclass(kind)


def _object(kind: Any, defs: dict[str, Schema]) -> Schema:
    hints = get_type_hints(kind)
    own = {one.name: one for one in saved_fields(kind)} if _has_fields(kind) else {}
    names = [*own] or [*hints]
    says = dict(entry.split(": ", 1) for entry in attributes(kind))
    return {
        "type": "object",
        "description": (inspect.getdoc(kind) or "").partition("\n")[0],
        "additionalProperties": False,
        "required": [n for n in names if n not in own or is_needed(own[n])],
        "properties": {
            name: {"description": says[name], **_form(hints[name], defs)}
            if name in says
            else _form(hints[name], defs)
            for name in names
        },
    }


def attributes(thing: type) -> list[str]:
    """The entries of a docstring's section on attributes, each on one line."""
    section = (inspect.getdoc(thing) or "").partition("Attributes:\n")[2]
    section = section.partition("\n\n")[0]
    entries: list[str] = []
    for line in inspect.cleandoc(section).splitlines():
        if line.startswith(" "):
            entries[-1] += f" {line.strip()}"
        else:
            entries.append(line)
    return entries
