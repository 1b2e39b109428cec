"""The example scripts run, and print what they should."""

import runpy
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "examples"

# By hand: ndcg@10 of "refund window" is (3/log2(3) + 1/log2(5)) / (3 + 1/log2(3)).
FIRST_SCORE = """\
recall@3   0.7500
rr         0.5000
ndcg@10    0.6354
refund window: first relevant document at rank 2
reset password: first relevant document at rank 2
"""

# Means and gaps as pytrec_eval gives them, without q38, which has nothing relevant.
TREC_FILES = """\
            keyword    dense
hit@5        0.7949   1.0000
recall@5     0.5556   0.7714
ndcg@10      0.6161   0.7526
undefined         1        1
keyword is better on q08, q25, q22
dense is better on q39, q37, q29
"""

# By hand: q1 reaches grades 1, 2, 3 of 3, and q2 finds its only document at rank 3.
OWN_METRIC = """\
best@1   0.1667
best@2   0.3333
best@3   1.0000
rr       0.6667
"""

PRINTED = {
    "first_score.py": FIRST_SCORE,
    "own_metric.py": OWN_METRIC,
    "trec_files.py": TREC_FILES,
}


def test_every_script_is_tested() -> None:
    assert sorted(PRINTED) == sorted(script.name for script in SCRIPTS.glob("*.py"))


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_a_script_prints_its_numbers(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(SCRIPTS / name))
    assert capsys.readouterr().out == PRINTED[name]
