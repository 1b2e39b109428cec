"""What a pytrec_eval user runs on files: `rival.py QRELS RUN [lists]`.

TREC text goes through its own parsers, CSV and JSONL through the standard library,
Parquet through pandas: the columns of each group are zipped as they are, as most would
write it, or as lists, which is quicker.
"""

import csv
import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import pytrec_eval

from measures import TREC_NAMES, TREC_REQUEST


def main() -> None:
    """Print the means as trec_eval does."""
    qrels, run, *how = sys.argv[1:]
    if run.endswith(".parquet"):
        gold, scores = _read_parquet(qrels, run, lists=how == ["lists"])
    elif run.endswith((".csv", ".jsonl")):
        gold, scores = _read_rows(qrels, run)
    else:
        gold, scores = _read_text(qrels, run)
    evaluator = pytrec_eval.RelevanceEvaluator(gold, set(TREC_REQUEST))
    rows = evaluator.evaluate(scores).values()
    for measure in TREC_NAMES.values():
        print(f"{measure:<22}\tall\t{fmean(row[measure] for row in rows):.4f}")


def _read_text(qrels: str, run: str) -> tuple[Any, Any]:
    with Path(qrels).open(encoding="utf-8") as file:
        gold = pytrec_eval.parse_qrel(file)
    with Path(run).open(encoding="utf-8") as file:
        return gold, pytrec_eval.parse_run(file)


def _read_rows(qrels: str, run: str) -> tuple[Any, Any]:
    with Path(qrels).open(encoding="utf-8") as file:
        gold = pytrec_eval.parse_qrel(file)
    scores: dict[str, dict[str, float]] = {}
    with Path(run).open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file) if run.endswith(".csv") else map(json.loads, file)
        for row in rows:
            if "retrieved" in row:
                found = {each["id"]: each["score"] for each in row["retrieved"]}
                scores[row["id"]] = found
            else:
                ranking = scores.setdefault(row["qid"], {})
                ranking[row["docid"]] = float(row["score"])
    return gold, scores


def _read_parquet(qrels: str, run: str, *, lists: bool) -> tuple[Any, Any]:
    # Imported here, so that text files do not pay for it.
    import pandas as pd

    def nested(path: str, value: str) -> dict[str, dict[str, Any]]:
        table = pd.read_parquet(path, columns=["qid", "docid", value])
        return {query: pairs(rows, value) for query, rows in table.groupby("qid")}

    def pairs(rows: Any, value: str) -> dict[str, Any]:
        columns = (rows["docid"], rows[value])
        if lists:
            columns = tuple(column.tolist() for column in columns)
        return dict(zip(*columns, strict=True))

    return nested(qrels, "rel"), nested(run, "score")


if __name__ == "__main__":
    main()
