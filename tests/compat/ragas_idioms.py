# ruff: noqa: E501 (scripts are as people write them)
"""Code as people write it for ragas, each idiom a short script, and models for it.

Run by an interpreter that has ragas (`python tests/compat/ragas_idioms.py`), the
scripts go through the original and print what it scores and how many calls it makes:
that is where the numbers in `IDIOMS` are from (ragas 0.4.3).
"""

import asyncio
import json
import re
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

ROWS: list[dict[str, Any]] = [
    {
        "user_input": "Where does the Quill tower stand?",
        "retrieved_contexts": ["Quill tower stands in Yxby.", "Yxby has a market."],
        "response": "In Yxby.",
        "reference": "Quill tower stands in Yxby. It is tall.",
    },
    {
        "user_input": "Who built the Zorn bridge?",
        "retrieved_contexts": ["Zorn bridge is long.", "Orla built Zorn bridge."],
        "response": "Orla.",
        "reference": "Orla built Zorn bridge. It opened in May.",
    },
]
OLD = [
    {
        "question": row["user_input"],
        "contexts": row["retrieved_contexts"],
        "answer": row["response"],
        "ground_truth": row["reference"],
    }
    for row in ROWS
]
ATTRIBUTED = {"Quill": (1, 0), "Zorn": (1, 1)}
USEFUL = {"Quill tower stands": 1, "has a market": 0, "is long": 0, "Orla built": 1}
CALLS: list[str] = []


def reply_to(text: str) -> str:
    """What every model here says: fixed for each of the texts above."""
    CALLS.append(text)
    if "attributed" in text:
        name = max(ATTRIBUTED, key=text.rfind)
        claims = [
            {"statement": f"{name} {n}", "reason": "so it is", "attributed": flag}
            for n, flag in enumerate(ATTRIBUTED[name])
        ]
        return json.dumps({"classifications": claims})
    # The context stands before or behind the answer, which repeats some of it.
    shown = [words for words in USEFUL if words in text]
    for row in ROWS:
        if row["user_input"] in text:
            own = [
                c
                for c in row["retrieved_contexts"]
                if text.count(c) > (c in row["reference"] and row["reference"] in text)
            ]
            shown = [w for w in USEFUL if any(w in context for context in own)]
    return json.dumps({"reason": "so it is", "verdict": USEFUL[shown[0]]})


class Message(SimpleNamespace):
    """A reply of a model of LangChain."""


class Chat:
    """A model with the shape of LangChain's."""

    model_name = "chat"

    async def ainvoke(self, prompt: str) -> Message:
        return Message(content=reply_to(prompt))


class Index:
    """A model with the shape of LlamaIndex's."""

    model = "index"

    async def acomplete(self, prompt: str, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(text=reply_to(prompt))


class Client:
    """A client with the shape of OpenAI's."""

    def __init__(self) -> None:
        self.chat = self.completions = self

    async def create(self, messages: Any, **_: Any) -> Any:
        text = reply_to("\n".join(str(part["content"]) for part in messages))
        message = SimpleNamespace(content=text, role="assistant", tool_calls=None)
        choice = SimpleNamespace(message=message, finish_reason="stop", index=0)
        return SimpleNamespace(choices=[choice], usage=None, id="1", model="m")


class Rows(list[dict[str, Any]]):
    """A data set with the shape of those of the library `datasets`."""

    def to_list(self) -> list[dict[str, Any]]:
        return [*self]


class Idiom(NamedTuple):
    """A script that leaves its outcome in `found`.

    Attributes:
        script: as it is written for ragas.
        found: what the original makes of it; None where it cannot be run without a
            server of its own, or does not run here.
        calls: how many calls the original makes.
        missing: why it does not run here, if it does not.
    """

    script: str
    found: Any = None
    calls: int = 0
    missing: str = ""


RECALL = {"context_recall": [0.5, 1.0]}
PRECISION = [0.9999999999, 0.49999999995]
BOTH = {"context_recall": [0.5, 1.0], "context_precision": PRECISION}
IDS = '{"retrieved_context_ids": [1, 2], "reference_context_ids": [2, 3]}'

IDIOMS: Mapping[str, Idiom] = {
    "lower-case instances, a data set of version 0.1": Idiom(
        """
        from ragas import evaluate
        from ragas.metrics import context_precision, context_recall
        result = evaluate(Rows(OLD), metrics=[context_recall, context_precision], llm=chat)
        found = {name: result[name] for name in ("context_recall", "context_precision")}
        """,
        BOTH,
        6,
    ),
    "no model named, a key in the environment": Idiom(
        """
        from ragas import evaluate, EvaluationDataset
        from ragas.metrics import LLMContextRecall
        result = evaluate(dataset=EvaluationDataset.from_list(ROWS), metrics=[LLMContextRecall()])
        found = {"context_recall": result["context_recall"]}
        """,
    ),
    "a sample, awaited": Idiom(
        """
        from ragas.dataset_schema import SingleTurnSample
        from ragas.llms import LangchainLLMWrapper
        from ragas.metrics import LLMContextRecall
        sample = SingleTurnSample(**ROWS[0])
        metric = LLMContextRecall(llm=LangchainLLMWrapper(chat))
        found = asyncio.run(metric.single_turn_ascore(sample))
        """,
        0.5,
        1,
    ),
    "a sample, from plain code": Idiom(
        """
        from ragas import SingleTurnSample
        from ragas.llms import LangchainLLMWrapper
        from ragas.metrics import LLMContextPrecisionWithReference
        metric = LLMContextPrecisionWithReference(llm=LangchainLLMWrapper(chat))
        found = metric.single_turn_score(SingleTurnSample(**ROWS[1]))
        """,
        PRECISION[1],
        2,
    ),
    "a wrapped model of LangChain": Idiom(
        """
        from ragas import EvaluationDataset, evaluate
        from ragas.llms import LangchainLLMWrapper
        from ragas.metrics import LLMContextRecall
        evaluator_llm = LangchainLLMWrapper(chat)
        dataset = EvaluationDataset.from_list(ROWS)
        found = evaluate(dataset=dataset, metrics=[LLMContextRecall()], llm=evaluator_llm).scores
        """,
        [{"context_recall": 0.5}, {"context_recall": 1.0}],
        2,
    ),
    "a bare model of LangChain": Idiom(
        """
        from ragas import EvaluationDataset, evaluate
        from ragas.metrics import LLMContextRecall
        dataset = EvaluationDataset.from_list(ROWS)
        found = evaluate(dataset, [LLMContextRecall()], llm=chat)["context_recall"]
        """,
        [0.5, 1.0],
        2,
    ),
    "a wrapped model of LlamaIndex": Idiom(
        """
        from ragas import EvaluationDataset, evaluate
        from ragas.llms import LlamaIndexLLMWrapper
        from ragas.metrics import LLMContextRecall
        llm = LlamaIndexLLMWrapper(index)
        found = evaluate(EvaluationDataset.from_list(ROWS), [LLMContextRecall()], llm=llm)["context_recall"]
        """,
        [0.5, 1.0],
        2,
    ),
    "limits of a run": Idiom(
        """
        from ragas import EvaluationDataset, RunConfig, evaluate
        from ragas.metrics import context_recall
        config = RunConfig(timeout=60, max_retries=3, max_wait=5, max_workers=2)
        result = evaluate(EvaluationDataset.from_list(ROWS), metrics=[context_recall], llm=chat, run_config=config)
        found = result["context_recall"]
        """,
        [0.5, 1.0],
        2,
    ),
    "limits from their own module": Idiom(
        """
        from ragas import evaluate, EvaluationDataset
        from ragas.run_config import RunConfig
        from ragas.metrics import context_recall
        result = evaluate(EvaluationDataset.from_list(ROWS), [context_recall], llm=chat, run_config=RunConfig(max_workers=1))
        found = result["context_recall"]
        """,
        [0.5, 1.0],
        2,
    ),
    "a data frame": Idiom(
        """
        import pandas as pd
        from ragas import EvaluationDataset, evaluate
        from ragas.metrics import context_recall
        dataset = EvaluationDataset.from_pandas(pd.DataFrame(ROWS))
        found = evaluate(dataset, metrics=[context_recall], llm=chat)["context_recall"]
        """,
        [0.5, 1.0],
        2,
    ),
    "a file of JSON lines": Idiom(
        """
        from ragas import EvaluationDataset, evaluate
        from ragas.metrics import context_recall
        EvaluationDataset.from_list(ROWS).to_jsonl(folder / "rows.jsonl")
        dataset = EvaluationDataset.from_jsonl(folder / "rows.jsonl")
        found = evaluate(dataset, metrics=[context_recall], llm=chat)["context_recall"]
        """,
        [0.5, 1.0],
        2,
    ),
    "a data set of Hugging Face": Idiom(
        """
        from ragas import EvaluationDataset
        dataset = EvaluationDataset.from_hf_dataset(Rows(ROWS))
        found = (len(dataset), dataset.features())
        """,
        (2, ["user_input", "retrieved_contexts", "response", "reference"]),
    ),
    "columns under other names": Idiom(
        """
        from ragas import evaluate
        from ragas.metrics import context_recall
        rows = Rows({"q": r["user_input"], "docs": r["retrieved_contexts"], "truth": r["reference"]} for r in ROWS)
        names = {"user_input": "q", "retrieved_contexts": "docs", "reference": "truth"}
        found = evaluate(rows, metrics=[context_recall], llm=chat, column_map=names)["context_recall"]
        """,
        [0.5, 1.0],
        2,
    ),
    "further arguments": Idiom(
        """
        from ragas import EvaluationDataset, evaluate
        from ragas.metrics import context_recall
        dataset = EvaluationDataset.from_list(ROWS)
        result = evaluate(dataset, metrics=[context_recall], llm=chat, show_progress=False, raise_exceptions=True, batch_size=8)
        found = result["context_recall"]
        """,
        [0.5, 1.0],
        2,
    ),
    "embeddings brought along": Idiom(
        """
        from ragas import EvaluationDataset, evaluate
        from ragas.embeddings import LangchainEmbeddingsWrapper
        from ragas.llms import LangchainLLMWrapper
        from ragas.metrics import context_recall
        embeddings = LangchainEmbeddingsWrapper(object())
        result = evaluate(EvaluationDataset.from_list(ROWS), [context_recall], llm=LangchainLLMWrapper(chat), embeddings=embeddings)
        found = result["context_recall"]
        """,
        [0.5, 1.0],
        2,
    ),
    # Not run with the original: nothing differs from others here but the imports.
    "wrappers from the modules of older versions": Idiom(
        """
        from ragas.dataset_schema import EvaluationDataset, EvaluationResult
        from ragas.embeddings.base import LangchainEmbeddingsWrapper
        from ragas.evaluation import evaluate
        from ragas.llms.base import LangchainLLMWrapper
        from ragas.metrics import LLMContextRecall
        result: EvaluationResult = evaluate(EvaluationDataset.from_list(ROWS), [LLMContextRecall()], llm=LangchainLLMWrapper(chat), embeddings=LangchainEmbeddingsWrapper(object()))
        found = result["context_recall"]
        """,
        [0.5, 1.0],
        2,
    ),
    "metrics from private modules": Idiom(
        """
        from ragas import EvaluationDataset, evaluate
        from ragas.metrics._context_precision import context_precision
        from ragas.metrics._context_recall import context_recall
        result = evaluate(EvaluationDataset.from_list(ROWS), [context_recall, context_precision], llm=chat)
        found = {name: result[name] for name in ("context_recall", "context_precision")}
        """,
        BOTH,
        6,
    ),
    "the class of a result": Idiom(
        """
        from ragas.llms.base import llm_factory
        from ragas.metrics.collections import ContextRecall
        from ragas.metrics.result import MetricResult
        metric = ContextRecall(llm=llm_factory("gpt-4o-mini", client=client))
        row = {k: v for k, v in ROWS[0].items() if k != "response"}
        result = asyncio.run(metric.ascore(**row))
        found = float(isinstance(result, MetricResult) and result.value)
        """,
        0.5,
        1,
    ),
    "a metric of one's own": Idiom(
        """
        from ragas.metrics.base import MetricWithLLM, SingleTurnMetric
        """,
        missing="karat's own are classes too: docs/how-to/extend.md",
    ),
    "metrics of answers in the list": Idiom(
        """
        from ragas import evaluate
        from ragas.metrics import answer_relevancy, context_recall, faithfulness
        metrics = [faithfulness, context_recall, answer_relevancy]
        result = evaluate(Rows(OLD), metrics=metrics, llm=chat)
        found = result["context_recall"]
        """,
        [0.5, 1.0],
    ),
    "classes of the older kind": Idiom(
        """
        from ragas import EvaluationDataset, evaluate
        from ragas.metrics import ContextPrecision, ContextRecall
        dataset = EvaluationDataset.from_list(ROWS)
        result = evaluate(dataset, [ContextRecall(), ContextPrecision()], llm=chat)
        found = {name: result[name] for name in ("context_recall", "context_precision")}
        """,
        BOTH,
        6,
    ),
    "the newer kind, awaited": Idiom(
        """
        from ragas.llms import llm_factory
        from ragas.metrics.collections import ContextRecall
        metric = ContextRecall(llm=llm_factory("gpt-4o-mini", client=client))
        row = {k: v for k, v in ROWS[0].items() if k != "response"}
        found = asyncio.run(metric.ascore(**row)).value
        """,
        0.5,
        1,
    ),
    "the newer kind, many at once": Idiom(
        """
        from ragas.llms import llm_factory
        from ragas.metrics.collections import ContextPrecision
        metric = ContextPrecision(llm=llm_factory("gpt-4o-mini", client=client))
        rows = [{k: v for k, v in row.items() if k != "response"} for row in ROWS]
        found = [result.value for result in metric.batch_score(rows)]
        """,
        PRECISION,
        4,
    ),
    "texts without a model": Idiom(
        """
        from ragas.dataset_schema import SingleTurnSample
        from ragas.metrics import NonLLMContextRecall
        sample = SingleTurnSample(retrieved_contexts=["Yxby has a market."], reference_contexts=["Yxby has a market", "Rome"])
        found = asyncio.run(NonLLMContextRecall().single_turn_ascore(sample))
        """,
        0.5,
    ),
    "ids without a model": Idiom(
        f"""
        from ragas import EvaluationDataset, evaluate
        from ragas.metrics import IDBasedContextRecall
        dataset = EvaluationDataset.from_list([{IDS}])
        found = str(evaluate(dataset, metrics=[IDBasedContextRecall()]))
        """,
        "{'id_based_context_recall': 0.5000}",
    ),
    "scores as a data frame": Idiom(
        """
        from ragas import EvaluationDataset, evaluate
        from ragas.metrics import context_recall
        df = evaluate(EvaluationDataset.from_list(ROWS), metrics=[context_recall], llm=chat).to_pandas()
        found = (list(df.columns), float(df["context_recall"].mean()))
        """,
        (
            [
                *("user_input", "retrieved_contexts", "response", "reference"),
                "context_recall",
            ],
            0.75,
        ),
        2,
    ),
    "inside a running event loop": Idiom(
        """
        from ragas import EvaluationDataset, evaluate
        from ragas.metrics import context_recall
        async def cell():
            return evaluate(EvaluationDataset.from_list(ROWS), metrics=[context_recall], llm=chat)
        found = asyncio.run(cell())["context_recall"]
        """,
        [0.5, 1.0],
        2,
    ),
    "a data table and an experiment": Idiom(
        """
        from ragas import Dataset, experiment
        """,
        missing="experiments run code of yours; karat compares runs: karat compare",
    ),
    "a test set made by a model": Idiom(
        """
        from ragas.testset import TestsetGenerator
        """,
        missing="karat does not write questions",
    ),
    "tokens and cost by a parser": Idiom(
        """
        from ragas.cost import get_token_usage_for_openai
        """,
        missing="llm_factory(..., settings=Settings(prices=...)) counts tokens and cost",
    ),
    "conversations": Idiom(
        """
        from ragas import MultiTurnSample
        """,
        missing="metrics of conversations are about answers, not about retrieval",
    ),
}


def in_karat(script: str) -> str:
    """The script with nothing changed but where it imports from."""
    return re.sub(r"from ragas(?=[ .])", "from karat.compat.ragas", script)


def names(chat: object, index: object, client: object, folder: Path) -> dict[str, Any]:
    """What the scripts may use."""
    known: dict[str, Any] = {"asyncio": asyncio, "ROWS": ROWS, "OLD": OLD, "Rows": Rows}
    return {**known, "chat": chat, "index": index, "client": client, "folder": folder}


def main() -> None:
    """Run the scripts as they are, with the original."""
    models, messages, outputs = (
        import_module(f"langchain_core.{part}")
        for part in ("language_models", "messages", "outputs")
    )
    httpx, datasets = import_module("httpx"), import_module("datasets")

    class Original(models.BaseChatModel):  # type: ignore[misc, name-defined]
        def _generate(self, asked: Any, *_: Any, **__: Any) -> Any:
            text = reply_to("\n".join(str(m.content) for m in asked))
            facts = {"finish_reason": "stop"}
            message = messages.AIMessage(text, response_metadata=facts)
            generation = outputs.ChatGeneration(message=message)
            return outputs.ChatResult(generations=[generation])

        @property
        def _llm_type(self) -> str:
            return "original"

    def answer(request: Any) -> Any:
        asked = json.loads(request.content)["messages"]
        text = reply_to("\n".join(str(part["content"]) for part in asked))
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        facts = {"id": "1", "created": 0, "model": "m", "object": "chat.completion"}
        return httpx.Response(200, json={**facts, "choices": [choice]})

    transport = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    openai = import_module("openai")
    client = openai.AsyncOpenAI(api_key="none", http_client=transport)
    warnings.simplefilter("ignore")
    for title, idiom in IDIOMS.items():
        CALLS.clear()
        space = names(Original(), Index(), client, Path(tempfile.mkdtemp()))
        space["Rows"] = lambda rows: datasets.Dataset.from_list([*rows])
        try:
            exec(textwrap.dedent(idiom.script), space)
            same = space.get("found") == idiom.found and len(CALLS) == idiom.calls
        except Exception as error:  # noqa: BLE001
            space["found"], same = f"{type(error).__name__}: {error}"[:150], False
        line = f"{title}: {space.get('found')}, {len(CALLS)} calls"
        sys.stdout.write(f"{'same' if same else 'OTHER'} {line}\n")


if __name__ == "__main__":
    main()
