"""Settings: a flag beats the environment, which beats the file, which beats nothing."""

from pathlib import Path

import pytest

from tests.cli.conftest import Karat

RUN = ("evaluate", "dense.run", "--gold", "gold.qrels")


def first_metric(out: str) -> str:
    return out.splitlines()[3].split()[0]


def test_each_source_beats_the_one_below(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert first_metric(karat(*RUN).out) == "ndcg@10"
    monkeypatch.setenv("KARAT_METRICS", "recall@2 rr")
    assert first_metric(karat(*RUN).out) == "recall@2"
    assert first_metric(karat(*RUN, "-m", "recall@3").out) == "recall@3"
    (folder / "karat.yaml").write_text("judging: {max_calls: 5}\n")
    said = "karat: max_calls = {} ({})"
    assert said.format(5, "karat.yaml") in karat(*RUN, "-v").err
    monkeypatch.setenv("KARAT_MAX_CALLS", "6")
    assert said.format(6, "environment") in karat(*RUN, "-v").err
    assert said.format(7, "flag") in karat(*RUN, "-v", "--max-calls", "7").err


def test_verbose_says_where_each_value_comes_from(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "karat.yaml").write_text("judging:\n  rpm: 60\n  votes: 3\n")
    monkeypatch.setenv("KARAT_K", "3")
    for arguments in (("-v", "evaluate"), ("evaluate", "-v")):
        done = karat(*arguments, "dense.run", "-g", "gold.qrels", "-m", "recall@k")
        assert done.code == 0
        assert "recall@k used k = 3" in done.out
        said = done.err.splitlines()
        assert "karat: metrics = recall@k (flag)" in said
        assert "karat: k = 3 (environment)" in said
        assert "karat: votes = 3 (karat.yaml)" in said
        assert "karat: match = auto (default)" in said


def test_a_file_never_acts_unseen(karat: Karat, folder: Path) -> None:
    (folder / "karat.yaml").write_text("judging:\n  rpm: 60\n  votes: 3\n")
    assert karat(*RUN).err == "karat: from karat.yaml: votes, rpm\n"
    assert karat(*RUN, "--rpm", "5").err == "karat: from karat.yaml: votes\n"
    assert karat("metrics").err == ""


def test_every_long_name_of_an_option_will_do(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARAT_METRIC", "recall@2 rr")
    monkeypatch.setenv("KARAT_QRELS", "gold.qrels")
    assert first_metric(karat("evaluate", "dense.run").out) == "recall@2"
    (folder / "karat.yaml").write_text("judging: {parameter: {a: 1}, max-calls: 2}\n")
    said = karat(*RUN, "-v").err
    assert "karat: parameters = a=1 (karat.yaml)" in said
    assert "karat: max_calls = 2 (karat.yaml)" in said


def test_all_commands_that_judge_share_a_section(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    (folder / "karat.yaml").write_text("judging:\n  model: tiny\n  max-calls: 7\n")
    graded = ("judge", "dense.run", "--queries", "queries.jsonl", "--json")
    for words in (RUN, graded):
        said = karat("-v", *words).err.splitlines()
        assert "karat: model = tiny (karat.yaml)" in said
        assert "karat: max_calls = 7 (karat.yaml)" in said
    assert karat("metrics").code == 0
    (folder / "karat.yaml").write_text("judging:\n  metrics: rr\n")
    assert "unknown setting of judging 'metrics'" in karat(*RUN).err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "judging: {modle: x}",
            "karat.yaml: unknown setting of judging 'modle'; did you mean 'model'?",
        ),
        ("evaluate: {k: 3}", "karat.yaml: must hold the sections suites and judging"),
        ("evaluate: {k: 3}", "a suite says what is measured, and by which gates"),
        ("judging: [rr]", "karat.yaml: must hold the sections suites and judging"),
        ("rr", "karat.yaml: must hold the sections suites and judging"),
        ("judging: {rpm: {a: 1}}", "karat.yaml: rpm must be a text, a number or yes"),
        ("judging: {header: [[rr]]}", "headers must be a text, a number or yes/no"),
        ("judging: {votes: many}", "'many' is not a valid integer"),
        ("judging: {", "karat.yaml: not readable as YAML"),
    ],
)
def test_a_file_that_makes_no_sense_is_said_so(
    karat: Karat, folder: Path, text: str, sentence: str
) -> None:
    (folder / "karat.yaml").write_text(text)
    done = karat(*RUN)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert "Traceback" not in done.err


def test_an_empty_file_and_suites_say_nothing(karat: Karat, folder: Path) -> None:
    for text in ("# later\n", "suites: {}\n", "judging:\n"):
        (folder / "karat.yaml").write_text(text)
        assert karat(*RUN).err == ""


def test_the_drop_in_listens_to_its_arguments_only(
    karat: Karat, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = karat("trec-eval", "gold.qrels", "dense.run")
    monkeypatch.setenv("KARAT_MEASURES", "P.5")
    monkeypatch.setenv("KARAT_PROFILE", "trec_eval-9")
    assert before.code == 0
    assert karat("trec-eval", "gold.qrels", "dense.run") == before


@pytest.mark.parametrize(
    "settings",
    [
        "judging: {offline: 0.5}",
        "judging: {rpm: .inf}",
        "judging: {corpus: 5}",
        "judging: {parameter: {a: &a [*a]}}",
        "judging: {model: !!int ''}",
        "judging: {model: !!timestamp x}",
        "judging: {model: 2024-13-45}",
    ],
)
def test_an_odd_value_is_no_bug_in_karat(
    settings: str, karat: Karat, folder: Path
) -> None:
    (folder / "karat.yaml").write_text(settings)
    done = karat(*RUN)
    assert done.code in {0, 2}
    assert "bug in karat" not in done.err
