"""AutoRAG's question tables, read as gold.

`retrieval_gt` lists what must be found: each entry is a list of documents any of which
will do. `retrieval_gt_contents` holds their texts, `generation_gt` reference answers.
"""

from collections.abc import Mapping
from typing import Any

from karat.reading.meaning.values import unpack

__all__ = ["MAPPING", "as_sample", "is_autorag"]

MAPPING = {
    "relevant": "retrieval_gt",
    "passages": "retrieval_gt_contents",
    "reference": "generation_gt",
}
"""Our field name -> AutoRAG's."""


def is_autorag(record: Mapping[str, Any]) -> bool:
    """Whether a record has AutoRAG's gold."""
    return MAPPING["relevant"] in record


def as_sample(record: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """The record under our names, and how many of its items could not be kept apart.

    Example:
        >>> as_sample({"qid": "q1", "retrieval_gt": [["d1"], ["d2"]]})
        ({'qid': 'q1', 'relevant': ['d1', 'd2']}, 0)
    """
    sample = {name: v for name, v in record.items() if name not in MAPPING.values()}
    items = _lists(record.get(MAPPING["relevant"]))
    texts = _lists(record.get(MAPPING["passages"]))
    answers = unpack(record.get(MAPPING["reference"]))
    names = [name for item in items for name in item]
    # A document that several items accept has no one group.
    shared = len({*names}) < len(names)
    alternatives = sum(len(item) > 1 for item in items)
    sample["relevant"] = list(dict.fromkeys(names))
    if alternatives and not shared:
        sample["relevant"] = [
            {"id": name, "group": f"item-{number}"} if len(item) > 1 else name
            for number, item in enumerate(items, 1)
            for name in item
        ]
    if list(map(len, items)) == list(map(len, texts)):
        sample["passages"] = [
            {"id": name, "text": text, "group": f"item-{number}"}
            for number, (names, contents) in enumerate(
                zip(items, texts, strict=True), 1
            )
            for name, text in zip(names, contents, strict=True)
        ]
    if answers:
        sample["reference"] = answers if isinstance(answers, str) else answers[0]
    return sample, alternatives if shared else 0


def _lists(value: object) -> list[list[Any]]:
    """A list of lists; a plain list has one document for each item."""
    value = unpack(value)
    entries = (
        [unpack(entry) for entry in value] if isinstance(value, list | tuple) else []
    )
    return [entry if isinstance(entry, list) else [entry] for entry in entries]
