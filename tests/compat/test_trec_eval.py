"""karat's trec_eval against what the binaries print, line by line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from karat.compat.trec_eval import trec_eval_lines
from karat.extend import MismatchError
from tests.compat.trec_files import read_qrels, read_run, read_text

GOLDEN = Path(__file__).parents[1] / "golden" / "trec"
SETS = sorted(path.stem for path in GOLDEN.glob("*.qrels"))
VERSIONS = {"9": "9.0.8", "10": "10.0"}
FLAGS: Mapping[str, dict[str, Any]] = {
    "": {},
    ".c": {"complete": True},
    ".l2": {"level": 2},
    ".J": {"judged_only": True},
    ".M5": {"depth": 5},
}
# trec_eval 10.0 computes rbp of graded judgements from memory it never set.
GRADED = {"missing_run_queries", "negative_graded"}


def expected(name: str) -> list[str]:
    return read_text(GOLDEN / f"{name}.out.gz").splitlines()


def without_rbp(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("rbp  ")]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SETS)
def test_every_line_is_what_the_binary_prints(
    name: str, version: str, flags: str
) -> None:
    lines = expected(f"{name}.te{VERSIONS[version]}{flags}")
    qrels = read_qrels(GOLDEN / f"{name}.qrels")
    run = read_run(GOLDEN / f"{name}.run")
    options: dict[str, Any] = {"measures": ["all_trec"], "version": version}
    if lines[0].startswith("EXIT"):
        with pytest.raises(MismatchError, match=r"query 'q03': .*-c .*trec_eval-9"):
            trec_eval_lines(qrels, run, per_query=True, **options, **FLAGS[flags])
        return
    printed = [*trec_eval_lines(qrels, run, per_query=True, **options, **FLAGS[flags])]
    if name in GRADED:
        printed, lines = without_rbp(printed), without_rbp(lines)
    assert printed == lines


def test_the_goldens_are_all_there() -> None:
    assert len(SETS) == 5
    assert len([*GOLDEN.glob("*.out.gz")]) == len(SETS) * len(VERSIONS) * len(FLAGS)


TEST_FOLDER: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "out.test": ("qrels.test", "results.test", {}),
    "out.test.a": ("qrels.test", "results.test", {"measures": ["all_trec"]}),
    "out.test.aq": (
        "qrels.test",
        "results.test",
        {"measures": ["all_trec"], "per_query": True},
    ),
    "out.test.aqc": (
        "qrels.test",
        "results.trunc",
        {"measures": ["all_trec"], "per_query": True, "complete": True},
    ),
    "out.test.aqcM": (
        "qrels.test",
        "results.trunc",
        {"measures": ["all_trec"], "per_query": True, "complete": True, "depth": 100},
    ),
    "out.test.aql": (
        "qrels.rel_level",
        "results.test",
        {"measures": ["all_trec", "relstring.20"], "per_query": True, "level": 2},
    ),
    "out.test.meas_params": (
        "qrels.test",
        "results.test",
        {
            "measures": [
                "iprec_at_recall..10,.20,.25,.75,.50",
                "P.5,7,3",
                "recall.20,2000",
                "Rprec_mult.5.0,0.2,0.35",
                "utility.2,-1,0,0",
                "11pt_avg..25,.5,.75",
                "ndcg.1=3,2=9,4=4.5",
                "ndcg_cut.10,20,23.4",
                "success.2,5,20",
            ],
            "per_query": True,
        },
    ),
}


@pytest.mark.shared_data
@pytest.mark.parametrize("name", TEST_FOLDER)
def test_the_test_folder_of_trec_eval_passes(name: str, shared_data: Path) -> None:
    folder = shared_data / "trec_eval_test"
    qrels, run, options = TEST_FOLDER[name]
    printed = [
        *trec_eval_lines(read_qrels(folder / qrels), read_run(folder / run), **options)
    ]
    lines = read_text(folder / name).splitlines()
    if name == "out.test.aql":
        printed, lines = without_rbp(printed), without_rbp(lines)
    assert printed == lines
