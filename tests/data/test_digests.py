"""Digests of gold: plain labels are written by hand, all others by the encoder."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from karat import Gold
from karat.extend import Item, Span

_GRADES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9)
_NAMES = st.text(st.characters(exclude_categories=()), max_size=5)


@given(st.dictionaries(_NAMES, _GRADES, max_size=4))
def test_plain_labels_have_the_digest_that_the_encoder_gives(
    labels: dict[str, float],
) -> None:
    plain = Gold({"q": labels})
    labelled = Gold({"q": labels}, sources={"q": {"a": "someone"}})

    assert plain.is_plain
    assert not labelled.is_plain
    assert plain.fingerprint("q") == labelled.fingerprint("q")


def test_digests_stay_what_saved_files_hold() -> None:
    assert Gold({"q": {'a"b': 1, "é": 0.5}}).fingerprint("q") == "ae55cee08db8969d"


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("documents", {"a": 1.0}, {"a": 2.0}),
        ("passages", (Item("1", "Rye."),), (Item("1", "Oats."),)),
        ("passages", (Item("1", "Rye."),), (Item("1", "Rye.", grade=2.0),)),
        ("answers", (Item("1", "Rye."),), (Item("1", "Rye.", group="g"),)),
        ("claims", (Item("1", "Rye."),), ()),
        ("spans", (Span("1", "a.md", 0, 9),), (Span("1", "a.md", 1, 9),)),
        ("spans", (Span("1", "a.md", 0, 9),), (Span("1", "a.md", 0, 9, grade=2.0),)),
        ("references", "Rye.", "Oats."),
        ("groups", {"a": "g"}, {"a": "h"}),
        ("subtopics", {"a": {"price": 1.0}}, {"a": {"price": 0.0}}),
    ],
)
def test_a_digest_is_another_where_any_label_is(
    kind: str, one: Any, other: Any
) -> None:
    plain = Gold({"q": {"a": 1.0}, "p": {"a": 1.0}})
    changes: list[Any] = [{kind: {"q": labels}} for labels in (one, other)]
    first, second = (replace(plain, **change) for change in changes)
    assert first.fingerprint("q") != second.fingerprint("q")
    assert first.fingerprint("q") == replace(first).fingerprint("q")
    assert first.fingerprints(["p"]) == second.fingerprints(["p"])


def test_the_order_of_labels_and_the_names_of_items_change_no_digest() -> None:
    items = (Item("1", "Rye."), Item("2", "Oats."))
    renamed = (Item("8", "Oats."), Item("9", "Rye."))
    one = Gold({"q": {"a": 1.0, "b": 2.0}}, passages={"q": items})
    other = Gold({"q": {"b": 2, "a": 1}}, passages={"q": renamed})
    assert one.fingerprint("q") == other.fingerprint("q")
    plain = (Gold({"q": labels.documents["q"]}) for labels in (one, other))
    assert len({gold.fingerprint("q") for gold in plain}) == 1
