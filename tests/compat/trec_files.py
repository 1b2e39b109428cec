"""TREC files read in the plainest way, so that these tests rest on nothing else."""

import gzip
from pathlib import Path

from karat.data.memory_runs import ScoredRun

Qrels = dict[str, dict[str, float]]


def read_text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def read_qrels(path: Path) -> Qrels:
    qrels: Qrels = {}
    for line in read_text(path).splitlines():
        topic, _, document, grade = line.split()
        qrels.setdefault(topic, {})[document] = float(grade)
    return qrels


def read_rankings(path: Path) -> tuple[dict[str, dict[str, float]], str]:
    rankings: dict[str, dict[str, float]] = {}
    tag = ""
    for line in read_text(path).splitlines():
        if line.strip():
            topic, _, document, _, score, tag = line.split()[:6]
            rankings.setdefault(topic, {})[document] = float(score)
    return rankings, tag


def read_run(path: Path) -> ScoredRun:
    return ScoredRun(*read_rankings(path))
