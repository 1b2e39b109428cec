"""`fuzzy`: RapidFuzz's similarities, decided faster and never differently."""

import random
from collections.abc import Callable
from functools import partial
from operator import le

import pytest
from hypothesis import given, settings, strategies as st
from rapidfuzz import fuzz
from rapidfuzz.distance import Hamming, Jaro, JaroWinkler, Levenshtein

from karat.errors import SpellingError
from karat.extend import Fuzzy, ParameterError, read_matcher
from karat.matching.similarity import reach_partially
from tests.matching.text_runs import satisfies

PLAIN: dict[str, Callable[[str, str], float]] = {
    "levenshtein": Levenshtein.normalized_similarity,
    "hamming": Hamming.normalized_similarity,
    "jaro": Jaro.similarity,
    "jaro_winkler": JaroWinkler.similarity,
    "token_set": lambda a, b: fuzz.token_set_ratio(a, b) / 100,
    "partial": lambda a, b: fuzz.partial_ratio(a, b) / 100,
}
letters = st.text(alphabet="ab c\u00e9\u4eac", max_size=200)


@st.composite
def similar_pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts with something in common: a piece, cut, repeated or changed."""
    text = draw(letters)
    start, size = draw(st.integers(0, 150)), draw(st.integers(0, 200))
    piece = text[start : start + size]
    place = draw(st.integers(0, 150))
    other = draw(letters) + piece[:place] + draw(letters) + piece[place:]
    return (text, other) if draw(st.booleans()) else (other, text)


@pytest.mark.parametrize("similarity", PLAIN)
@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(similar_pairs(), min_size=1, max_size=10),
    threshold=st.floats(0, 1),
    strict=st.booleans(),
    on_the_score=st.booleans(),
)
def test_decides_as_the_plain_loop_does(
    similarity: str,
    pairs: list[tuple[str, str]],
    threshold: float,
    strict: bool,  # noqa: FBT001
    on_the_score: bool,  # noqa: FBT001
) -> None:
    plain = PLAIN[similarity]
    if on_the_score:
        # Where a threshold is most easily missed: the very score of a pair.
        threshold = plain(*pairs[0])
    scores = [plain(*pair) for pair in pairs]
    wanted = [s > threshold if strict else s >= threshold for s in scores]
    golds, documents = map(list, zip(*pairs, strict=True))
    matcher = Fuzzy(similarity, threshold, strict)
    assert matcher.satisfied(golds, documents).tolist() == wanted


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(65, 160),
    extra=st.sampled_from([0, 0, 1, 40, 160, 161, 500]),
    threshold=st.sampled_from([0.3, 0.5, 0.7, 0.8, 0.9, 1.0]),
)
def test_windows_at_the_ends_and_inside_are_all_seen(
    seed: int, size: int, extra: int, threshold: float
) -> None:
    chance = random.Random(seed)
    hay = "".join(chance.choices("abcde ", k=size + extra))
    start = chance.choice((0, extra, chance.randint(0, extra)))
    needle = list(hay[start : start + size])
    for _ in range(chance.randint(0, size // 2)):
        needle[chance.randrange(size)] = chance.choice("abcdexyz")
    shift = chance.randint(0, size // 3)
    moved = ["x"] * shift + needle[: size - shift]
    for text in ("".join(needle), "".join(moved), "".join(moved[::-1])):
        exact = fuzz.partial_ratio(text, hay) / 100
        for level in (threshold, exact):
            found = reach_partially([text], [hay], level, partial(le, level))
            assert found.tolist() == [exact >= level]


def test_a_score_on_the_threshold_is_not_lost_to_single_precision() -> None:
    # RapidFuzz's own score_cutoff=0.8 loses this pair of similarity 0.8.
    text = "".join(random.Random(1).choices("abcdefgh ", k=570))
    other = text[:228] + "#" * 114 + text[342:]
    assert Levenshtein.normalized_similarity(text, other) == 0.8
    assert satisfies("fuzzy", text, other)
    assert not satisfies("fuzzy(strict=true)", text, other)


@pytest.mark.parametrize(
    ("spelling", "matcher"),
    [
        ("fuzzy", Fuzzy("levenshtein", 0.8)),
        ("fuzzy(0.9)", Fuzzy("levenshtein", 0.9)),
        ("fuzzy(1)", Fuzzy("levenshtein", 1.0)),
        ("fuzzy(levenshtein, 0.8)", Fuzzy()),
        ("fuzzy(partial)", Fuzzy("partial")),
        ("fuzzy(jaro, 0.5, true)", Fuzzy("jaro", 0.5, strict=True)),
        ("fuzzy(0.5, strict=true)", Fuzzy(threshold=0.5, strict=True)),
        ("Fuzzy(threshold=0.5, token_set)", Fuzzy("token_set", 0.5)),
    ],
)
def test_a_value_without_a_name_goes_where_it_fits(
    spelling: str, matcher: Fuzzy
) -> None:
    assert read_matcher(spelling) == matcher
    assert read_matcher(str(matcher)) == matcher


@pytest.mark.parametrize(
    ("spelling", "problem"),
    [
        ("fuzzy(soundex)", "similarity must be one of 'levenshtein'"),
        ("fuzzy(1.5)", r"threshold must be a number >= 0 and <= 1"),
        ("fuzzy(nan)", r"threshold must be a number >= 0 and <= 1"),
        ("fuzzy(0.5, 0.6)", "similarity must be a word"),
        ("fuzzy(threshold=high)", "threshold must be a number"),
    ],
)
def test_what_cannot_be_is_said(spelling: str, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        read_matcher(spelling)


def test_too_many_values_are_an_error() -> None:
    with pytest.raises(SpellingError, match="too many values"):
        read_matcher("fuzzy(jaro, 0.5, true, 1)")


@pytest.mark.slow
@pytest.mark.parametrize("similarity", PLAIN)
def test_pathological_texts_come_to_an_end(similarity: str) -> None:
    letter, words = "a" * 1_000_000, "word " * 100_000
    passage = "".join(f"{number} " for number in range(200_000))
    golds = [letter, words, passage, "some gold text of no great length " * 10]
    documents = [words, letter, "a passage" * 50, passage]
    matched = Fuzzy(similarity).satisfied(golds, documents)
    assert len(matched) == len(golds)
