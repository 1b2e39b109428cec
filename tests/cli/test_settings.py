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
    assert first_metric(karat(*RUN).out) == "hit@5"
    (folder / "karat.yaml").write_text("evaluate:\n  metrics: [recall@1, rr]\n")
    assert first_metric(karat(*RUN).out) == "recall@1"
    monkeypatch.setenv("KARAT_METRICS", "recall@2 rr")
    assert first_metric(karat(*RUN).out) == "recall@2"
    assert first_metric(karat(*RUN, "-m", "recall@3").out) == "recall@3"


def test_verbose_says_where_each_value_comes_from(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "karat.yaml").write_text("evaluate:\n  gold: gold.qrels\n  ties: input\n")
    monkeypatch.setenv("KARAT_K", "3")
    for arguments in (("-v", "evaluate"), ("evaluate", "-v")):
        done = karat(*arguments, "dense.run", "-m", "recall@k")
        assert done.code == 0
        assert "recall@k used k = 3" in done.out
        said = done.err.splitlines()
        assert "karat: metrics = recall@k (flag)" in said
        assert "karat: k = 3 (environment)" in said
        assert "karat: gold = gold.qrels (karat.yaml)" in said
        assert "karat: match = auto (default)" in said


def test_a_file_never_acts_unseen(karat: Karat, folder: Path) -> None:
    (folder / "karat.yaml").write_text("evaluate:\n  gold: gold.qrels\n  metrics: rr\n")
    assert (
        karat("evaluate", "dense.run").err == "karat: from karat.yaml: gold, metrics\n"
    )
    flag = karat("evaluate", "dense.run", "--gold", "gold.qrels")
    assert flag.err == "karat: from karat.yaml: metrics\n"
    assert karat("metrics").err == ""


def test_every_long_name_of_an_option_will_do(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "karat.yaml").write_text(
        "evaluate:\n  metric: [recall@1, rr]\n  fail-under: {rr: 0.99}\n"
    )
    done = karat(*RUN)
    assert done.code == 1
    assert first_metric(done.out) == "recall@1"
    monkeypatch.setenv("KARAT_METRIC", "recall@2 rr")
    assert first_metric(karat(*RUN).out) == "recall@2"


def test_all_commands_that_judge_share_a_section(
    karat: Karat, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    (folder / "karat.yaml").write_text(
        "judging:\n  model: tiny\n  max-calls: 7\nevaluate:\n  max_calls: 0\n"
    )
    graded = ("judge", "dense.run", "--queries", "queries.jsonl", "--json")
    for words in (RUN, graded):
        said = karat("-v", *words).err.splitlines()
        assert "karat: model = tiny (karat.yaml)" in said
        own = 0 if words is RUN else 7
        assert f"karat: max_calls = {own} (karat.yaml)" in said
    assert karat("metrics").code == 0
    (folder / "karat.yaml").write_text("judging:\n  metrics: rr\n")
    assert "unknown setting of judging 'metrics'" in karat(*RUN).err


def test_lists_and_pairs_may_be_written_as_such(karat: Karat, folder: Path) -> None:
    (folder / "karat.yaml").write_text(
        "evaluate:\n"
        "  metrics: rr\n"
        "  fail_under: {recall@5: 0.99}\n"
        "  map: {retrieved: actual_output}\n"
        "  output: out.json\n"
    )
    done = karat("evaluate", "samples.yaml")
    assert done.code == 1
    assert "recall@5 is 0.5556, below 0.99" in done.err
    assert (folder / "out.json").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "evaluate: {metrcs: rr}",
            "karat.yaml: unknown setting of evaluate 'metrcs'; did you mean 'metric",
        ),
        (
            "evalute: {k: 3}",
            "karat.yaml: unknown command 'evalute'; did you mean 'evaluate'?",
        ),
        ("evaluate: [rr]", "karat.yaml: must hold a section per command"),
        ("rr", "karat.yaml: must hold a section per command"),
        ("evaluate: {k: {a: 1}}", "karat.yaml: k must be a text, a number or yes/no"),
        ("evaluate: {metrics: [[rr]]}", "metrics must be a text, a number or yes/no"),
        ("evaluate: {k: many}", "'many' is not a valid integer"),
        ("evaluate: {", "karat.yaml: not readable as YAML"),
        ("evaluate: {ties: coin}", "'coin' is not one of 'trec', 'input'"),
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


def test_an_empty_file_says_nothing(karat: Karat, folder: Path) -> None:
    (folder / "karat.yaml").write_text("# later\n")
    assert karat(*RUN).code == 0


def test_settings_of_other_commands_do_no_harm(karat: Karat, folder: Path) -> None:
    (folder / "karat.yaml").write_text("validate: {limit: 3}\n")
    assert karat(*RUN).code == 0


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
        "evaluate: {strict: 0.5}",
        "evaluate: {keep: .inf}",
        "evaluate: {corpus: 5}",
        "evaluate: {parameter: {a: &a [*a]}}",
        "evaluate: {match: !!int ''}",
        "evaluate: {match: !!timestamp x}",
        "evaluate: {match: 2024-13-45}",
    ],
)
def test_an_odd_value_is_no_bug_in_karat(
    settings: str, karat: Karat, folder: Path
) -> None:
    (folder / "karat.yaml").write_text(settings)
    done = karat(*RUN)
    assert done.code in {0, 2}
    assert "bug in karat" not in done.err
