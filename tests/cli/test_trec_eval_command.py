"""The command `karat trec-eval`, as a user of trec_eval would call it."""

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from karat.cli.trec_eval import command
from karat.extend import MismatchError, UsageError

GOLDEN = Path(__file__).parents[1] / "golden" / "trec"
SETS = sorted(path.stem for path in GOLDEN.glob("*.qrels"))
MODES = {"": [], ".c": ["-c"], ".l2": ["-l2"], ".J": ["-J"], ".M5": ["-M5"]}
PROFILES = {"trec_eval-9": "9.0.8", "trec_eval-10": "10.0"}


def call(*words: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(command, [*words], input=stdin, catch_exceptions=False)


def files(name: str) -> list[str]:
    return [str(GOLDEN / f"{name}.qrels"), str(GOLDEN / f"{name}.run")]


def golden(name: str, version: str, mode: str) -> bytes:
    return gzip.decompress((GOLDEN / f"{name}.te{version}{mode}.out.gz").read_bytes())


def without_rbp(output: bytes) -> list[bytes]:
    return [line for line in output.splitlines() if not line.startswith(b"rbp  ")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", SETS)
def test_the_output_is_that_of_the_binary(name: str, profile: str, mode: str) -> None:
    expected = golden(name, PROFILES[profile], mode)
    words = ["--profile", profile, *MODES[mode], "-q", "-mall_trec", *files(name)]
    if expected.startswith(b"EXIT"):
        with pytest.raises(MismatchError, match=r"-c .* --profile trec_eval-9"):
            call(*words)
        return
    result = call(*words)
    assert result.exit_code == 0
    if name in {"missing_run_queries", "negative_graded"}:
        assert without_rbp(result.stdout_bytes) == without_rbp(expected)
    else:
        assert result.stdout_bytes == expected


def test_attached_values_and_long_names_mean_the_same() -> None:
    short = call("-q", "-l2", "-M5", "-mmap", "-mP.5,10", *files("negative_graded"))
    long = call(
        *files("negative_graded"),
        *("--query_eval_wanted", "--level_for_rel", "2"),
        *("--Max_retrieved_per_topic", "5", "--measure", "map", "--measure", "P.5,10"),
    )
    friendly = call(
        *files("negative_graded"),
        *("--per-query", "--level", "2", "--depth=5", "-m", "map", "-m", "P.5,10"),
    )
    assert short.output == long.output == friendly.output
    assert short.output.count("\n") == 3 * 21


def test_no_summary_leaves_only_topics() -> None:
    output = call("-q", "-n", "-m", "map", *files("ties_binary")).output
    assert "all" not in output
    assert len(output.splitlines()) == 20


def test_the_tag_of_the_file_is_printed() -> None:
    output = call("-m", "runid", *files("ties_binary")).output
    assert output == "runid                 \tall\ttag\n"


@pytest.mark.parametrize("place", [0, 1])
def test_standard_input_stands_for_either_file(place: int) -> None:
    words = files("unicode_ids_ties")
    text = Path(words[place]).read_bytes()
    words[place] = "-"
    direct = call("-m", "all_trec", *files("unicode_ids_ties"))
    assert call("-m", "all_trec", *words, stdin=text).output == direct.output


def test_standard_input_is_read_once_only() -> None:
    with pytest.raises(UsageError, match="once only"):
        call("-", "-")


@pytest.mark.parametrize("words", [["-l", "x"], ["-M0"], ["-l-1"], ["--profile", "8"]])
def test_impossible_options_are_usage_errors(words: list[str]) -> None:
    result = CliRunner().invoke(command, [*words, *files("ties_binary")])
    assert result.exit_code == 2
    assert "Invalid value" in result.output


def karat(*words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-X", "importtime", "-m", "karat", "trec-eval", *words]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_the_command_starts_without_what_it_does_not_need() -> None:
    done = karat("-m", "map", *files("ties_binary"))
    assert done.returncode == 0
    assert done.stdout.startswith("map   ")
    loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    heavy = {"rich", "pandas", "pyarrow", "yaml", "polars", "zstandard", "scipy"}
    assert not loaded & heavy


def test_a_refusal_is_a_sentence_and_exit_code_2() -> None:
    done = karat("-m", "map", *files("missing_run_queries"))
    assert done.returncode == 2
    assert done.stdout == ""
    sentence = done.stderr.splitlines()[-1]
    assert "query 'q03'" in sentence
    assert "-c scores such topics 0" in sentence
    assert "--profile trec_eval-9" in sentence
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-R", "prefs"], "-R: judgements are read as qrels only"),
        (["-T", "trec_eval"], "-T: runs are read as trec_results only"),
        (["-Z", "means.txt"], "-Z: no z-scores"),
        (["-D", "3"], "-D: no traces"),
        (["-o"], "-o: lines are printed in one form only"),
        (["-m", "prefs_simp"], "-m prefs_simp needs preferences or judgement groups"),
        (["-m", "map_avgjg"], "-m map_avgjg needs preferences or judgement groups"),
    ],
)
def test_what_trec_eval_has_and_karat_does_not_is_said(
    words: list[str], sentence: str
) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}"):
        call(*words, *files(SETS[0]))


def test_the_only_formats_there_are_may_be_named() -> None:
    words = ["-R", "qrels", "-T", "trec_results", "-D", "0", "-cm", "map"]
    assert call(*words, *files(SETS[0])).exit_code == 0
    assert "trec_eval version 10.0" in call("-v").output
    assert "--Rel_info_format" in call("-h").output
