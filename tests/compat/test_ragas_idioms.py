"""Code as people write it for ragas runs by changing where it imports from."""

import math
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest

from karat import KaratError
from karat.compat.ragas import LangchainLLMWrapper, RunConfig, evaluate, llm_factory
from karat.compat.ragas.llms import session_of
from karat.compat.ragas.metrics import ContextPrecision, __getattr__
from karat.extend import UnknownNameError, UsageError
from tests.compat.ragas_idioms import (
    CALLS,
    IDIOMS,
    OLD,
    ROWS,
    Chat,
    Client,
    Index,
    in_karat,
    names,
    reply_to,
)
from tests.llm.fault_server import FaultServer, completion

RUN = [title for title, idiom in IDIOMS.items() if not idiom.missing]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    CALLS.clear()


def run(title: str, folder: Path) -> Any:
    space = names(Chat(), Index(), Client(), folder)
    exec(textwrap.dedent(in_karat(IDIOMS[title].script)), space)
    return space["found"]


def test_most_idioms_run() -> None:
    assert (len(RUN), len(IDIOMS)) == (26, 31)
    page = (Path(__file__).parents[2] / "docs/coming-from/ragas.md").read_text("utf-8")
    assert f"Of {len(IDIOMS)} common ways" in page
    assert f"{len(RUN)} run if you change" in page


def test_nothing_of_a_script_changes_but_the_package() -> None:
    for idiom in IDIOMS.values():
        ours = in_karat(idiom.script)
        assert ours.replace("karat.compat.ragas", "ragas") == idiom.script


@pytest.mark.parametrize(
    "module",
    [
        *("embeddings", "embeddings.base", "run_config", "llms.base"),
        *("metrics.result", "dataset_schema", "evaluation", "metrics._context_recall"),
    ],
)
def test_modules_that_public_code_imports_are_found_by_a_new_process(
    module: str,
) -> None:
    names = {"metrics.result": "MetricResult", "run_config": "RunConfig"}
    names |= {"embeddings": "LangchainEmbeddingsWrapper", "llms.base": "llm_factory"}
    names |= {"dataset_schema": "EvaluationResult", "evaluation": "EvaluationResult"}
    names |= {"embeddings.base": "embedding_factory"}
    name = names.get(module, "LLMContextRecall")
    code = f"from karat.compat.ragas.{module} import {name}; print({name}.__name__)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.filterwarnings("ignore:.*no metric of retrieval")
@pytest.mark.parametrize("title", [t for t in RUN if IDIOMS[t].found is not None])
def test_an_idiom_scores_as_the_original_does_and_asks_no_more(
    title: str, tmp_path: Path
) -> None:
    found, idiom = run(title, tmp_path), IDIOMS[title]
    if isinstance(idiom.found, dict):
        for name, column in idiom.found.items():
            assert found[name] == pytest.approx(column, abs=1e-12)
    elif isinstance(idiom.found, str | tuple) or title.startswith(
        "a wrapped model of La"
    ):
        assert found == idiom.found
    else:
        assert found == pytest.approx(idiom.found, abs=1e-12)
    assert len(CALLS) <= idiom.calls or "answers" in title


def test_a_model_that_nobody_names_is_the_one_of_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: dict[str, Any]) -> tuple[int, object]:
        return 200, completion(reply_to(str(request["messages"])))

    title = "no model named, a key in the environment"
    with pytest.raises(UsageError, match="needs a model"):
        run(title, tmp_path)
    with FaultServer(answer=answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert run(title, tmp_path) == {"context_recall": [0.5, 1.0]}
        assert {request["model"] for request in server.requests} == {"gpt-4o-mini"}


@pytest.mark.parametrize("title", [t for t in IDIOMS if IDIOMS[t].missing])
def test_an_idiom_that_is_about_something_else_fails_at_its_import(
    title: str, tmp_path: Path
) -> None:
    with pytest.raises(ImportError):
        run(title, tmp_path)


def test_metrics_of_answers_say_what_to_use_and_break_nothing() -> None:
    from karat.compat.ragas.metrics import (  # noqa: PLC0415
        Faithfulness,
        answer_relevancy,
        context_recall,
    )

    metrics = [Faithfulness(llm=Chat()), context_recall, answer_relevancy]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = evaluate(OLD, metrics, llm=Chat(), raise_exceptions=True)
    assert result["context_recall"] == [0.5, 1.0]
    assert all(map(math.isnan, result["faithfulness"] + result["answer_relevancy"]))
    texts = [str(warning.message) for warning in told]
    assert len(texts) == 2
    assert texts[0].startswith("faithfulness is no metric of retrieval")
    assert "context_recall and context_precision" in texts[0]
    assert result.columns["faithfulness"].failed == 2


def test_names_that_ragas_does_not_have_are_missing_here_too() -> None:
    with pytest.raises(AttributeError, match="there is no 'Faithfullness' here"):
        __getattr__("Faithfullness")


def test_the_default_metrics_are_those_of_retrieval() -> None:
    result = evaluate(OLD, llm=Chat())
    assert [*result.results] == ["context_precision", "context_recall"]


def test_an_argument_that_the_original_does_not_have_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'show_progress'"):
        evaluate(OLD, [ContextPrecision()], llm=Chat(), show_progres=False)


def test_limits_become_settings_and_a_bare_model_of_no_library_is_refused() -> None:
    config = RunConfig(timeout=5, max_retries=3, max_wait=1, max_workers=2)
    settings = LangchainLLMWrapper(Chat(), run_config=config).settings
    found = (settings.timeout, settings.max_attempts, settings.longest_wait)
    assert (*found, settings.concurrency) == (5, 3, 1, 2)
    shared = llm_factory("m", client=Client())
    assert session_of(shared, config).settings.concurrency == 2
    assert session_of(shared, config).settings.budget is shared.settings.budget
    with pytest.raises(UsageError, match="a object has none of ainvoke"):
        LangchainLLMWrapper(object())


class Plain:
    """A model that is not async, and answers in parts."""

    def invoke(self, prompt: str) -> Any:
        text = reply_to(prompt)
        content = [{"type": "text", "text": text[:5]}, text[5:]]
        return type("Message", (), {"content": content})()


def test_a_model_that_is_not_async_is_asked_one_at_a_time() -> None:
    assert session_of(Plain()).settings.concurrency == 1
    result = evaluate(ROWS, llm=Plain())
    assert result["context_recall"] == [0.5, 1.0]


def test_a_broken_line_of_a_file_is_named(tmp_path: Path) -> None:
    from karat.compat.ragas import EvaluationDataset  # noqa: PLC0415

    (tmp_path / "rows.jsonl").write_text('{"user_input": "a"}\n\n{"user_', "utf-8")
    with pytest.raises(KaratError, match=r"rows\.jsonl:3: is not JSON"):
        EvaluationDataset.from_jsonl(tmp_path / "rows.jsonl")
