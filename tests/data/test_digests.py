"""Digests of gold: plain labels are written by hand, all others by the encoder."""

from hypothesis import given, strategies as st

from karat import Gold

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
