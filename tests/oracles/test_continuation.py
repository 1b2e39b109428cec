"""Measures of the C/W/L framework against cwl_eval, through ir_measures."""

from random import Random

import ir_measures
import pytest

import karat
from karat.extend import ParameterError
from tests.oracles.recorded import Scores, recorded

NAMES = [
    "BPM(T=1.5, max_rel=3)@8",
    "BPM(max_rel=3, min_rel=1)@100",
    "SDCG(max_rel=3)@5",
    "SDCG(max_rel=4)@30",
    "NERR8(max_rel=3)@5",
    "NERR9(max_rel=4)@20",
    "NERR10(max_rel=3)",
    "NERR10(max_rel=3, p=0.5)",
    "NERR11(max_rel=3, T=2.0)",
    "INST(max_rel=3)",
    "INST(max_rel=3, T=3.5)",
    "INSQ(max_rel=3, T=2.0)",
    "RBP(rel=1, p=0.7)",
]


@pytest.mark.parametrize("name", NAMES)
def test_values_equal_cwl_eval(name: str) -> None:
    random = Random(3)
    gold, run = {}, {}
    for number in range(12):
        names = random.sample(range(200), 60)
        grades = {f"d{n}": random.choice((0, 0, 1, 2, 3)) for n in names}
        gold[f"q{number}"] = grades | {"one": 1}
        found = random.sample(range(200), random.choice((1, 7, 100)))
        ranked = [f"d{n}" for n in found]
        run[f"q{number}"] = {d: 1000.0 - place for place, d in enumerate(ranked)}

    def ask() -> Scores:
        measure = ir_measures.parse_measure(name)
        rows = ir_measures.iter_calc([measure], gold, run)
        return {row.query_id: {"value": row.value} for row in rows}

    theirs = recorded("cwl", name, ask)
    result = karat.evaluate(run, gold=gold, metrics=[name])
    [column] = result.values()
    for query in gold:
        assert column[query] == pytest.approx(theirs[query]["value"], abs=1e-12), query


def test_grades_beyond_the_scale_are_refused() -> None:
    gold = {"q": {"a": 2}}
    with pytest.raises(ParameterError, match="at least the highest grade, 2"):
        karat.evaluate({"q": ["a"]}, gold=gold, metrics=["inst"])
    with pytest.raises(ParameterError, match="below max_grade"):
        karat.evaluate({"q": ["a"]}, gold=gold, metrics=["sdcg(min_grade=3)@5"])
    with pytest.raises(ParameterError, match=r">= 0\.25"):
        karat.evaluate({"q": ["a"]}, gold=gold, metrics=["inst(goal=0.1)"])
