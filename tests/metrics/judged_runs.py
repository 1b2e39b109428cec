"""Rankings and labels laid out as hits, for tests of metrics."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from karat.data.hits import Hits
from karat.data.policies import Policies
from karat.data.rankings import RankedRun
from karat.matching.equality import match_labels

Rankings = Mapping[str, Sequence[str]]
Grades = Mapping[str, Mapping[str, float]]

_DOCUMENTS = [f"d{number}" for number in range(12)]


def hits_of(rankings: Rankings, labels: Grades, *, judged: bool = True) -> Hits:
    """The hits of rankings matched by id; queries in the order of the labels."""
    return match_labels(
        RankedRun(rankings),
        {query: dict(row) for query, row in labels.items()},
        judged=judged,
        policies=Policies(force=True),
    ).hits


def one(ranking: str, grades: Mapping[str, float], *, judged: bool = True) -> Hits:
    """One query, its documents named by single letters: `one("axb", {"a": 1})`."""
    return hits_of({"q": list(ranking)}, {"q": grades}, judged=judged)


@st.composite
def judged_runs(
    draw: st.DrawFn, grades: Sequence[float] = (-1, 0, 0, 1, 1, 2, 3)
) -> tuple[Rankings, Grades]:
    """Up to four queries with a ranking, perhaps empty, and at least one label each."""
    rankings, labels = {}, {}
    for number in range(draw(st.integers(1, 4))):
        shuffled = draw(st.permutations(_DOCUMENTS))
        rankings[f"q{number}"] = shuffled[: draw(st.integers(0, len(shuffled)))]
        judged = draw(
            st.lists(st.sampled_from(_DOCUMENTS), min_size=1, max_size=8, unique=True)
        )
        labels[f"q{number}"] = {
            document: float(draw(st.sampled_from(grades))) for document in judged
        }
    return rankings, labels
