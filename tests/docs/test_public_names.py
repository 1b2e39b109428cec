"""Every public name is documented, with an example that is run."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.pages import ROOT, blocks
from tests.docs.reference import LAYERS, public_names

# Names without an example of their own, and what shows them instead.
ELSEWHERE = {
    "karat.CombinedScores": "combine_labels returns it",
    "karat.Diagnosis": "diagnose returns it",
    "karat.GoldFindings": "doctor returns it",
    "karat.SuiteResult": "run_suite returns it",
    "karat.generate": "needs two models; docs/generate.md runs it",
    "karat.run_suite": "needs files; docs/suites.md runs it",
    "karat.extend.workbench": "needs a server; tests/web runs it",
    "karat.history.Change": "Store.label returns it",
    "karat.history.GoldChange": "Store.gold_changes returns it",
    "karat.history.Pushed": "Store.push returns it",
    "karat.history.Rescored": "Store.label returns it",
    "karat.history.StoredLabel": "Store.labels returns it",
    "karat.history.StoredRun": "Store.runs returns it",
    "karat.history.Token": "Store.tokens makes it",
    "karat.scale.score": "needs Spark; docs/scale.md runs it",
}
# Of a front: what an engine or an evaluation takes or returns, whose example is run;
# and metrics that a model judges, which are called as the one that has an example.
ELSEWHERE |= {
    f"karat.compat.{front}.{name}": shown
    for front, shown, names in (
        (
            "eval_harness",
            "EvalEngine takes or returns it",
            (
                "Dataset DatasetBuilder DatasetSample EvalReport GoldenDataset "
                "SampleFailure SampleResult"
            ),
        ),
        ("futureagi", "Evaluator returns it", "BatchRunResult EvalResult"),
        ("ir_measures", "register returns it", "provider"),
        ("longmemeval", "evaluate_retrieval calls it", "read_cutoff"),
        ("remem", "RetrievalRecall is one", "RetrievalMetric"),
        ("trec_eval", "trec_eval_lines has the same lines", "trec_eval_pages"),
        ("ragas", "evaluate returns or awaits it", "EvaluationResult aevaluate"),
        ("ragas", "NonLLMStringSimilarity takes it", "DistanceMeasure"),
        (
            "ragas",
            "called as ContextRecall, with a model",
            (
                "ContextPrecision ContextPrecisionWithReference ContextUtilization "
                "ContextPrecisionWithoutReference MetricResult "
                "LLMContextPrecisionWithReference LLMContextPrecisionWithoutReference"
            ),
        ),
        (
            "ragas",
            "taken and not used, as there is nothing to embed",
            "LangchainEmbeddingsWrapper LlamaIndexEmbeddingsWrapper",
        ),
    )
    for name in names.split()
}
NAMES = [
    (title, name) for title, layer in LAYERS.items() for name in public_names(layer)
]


PUBLIC = [getattr(LAYERS[title], name) for title, name in NAMES]
# A front has the names of its original; what is run of it stands on its page, too.
PAGES_OF_FRONTS = "".join(
    block.body
    for page in (ROOT / "docs" / "coming-from").glob("*.md")
    for block in blocks(page.read_text("utf-8"))
    if block.language == "python"
)


def documented(thing: Any) -> Iterator[str]:
    """The docstrings that speak of a thing: its own, its methods', public parents'."""
    yield inspect.getdoc(thing) or ""
    for kind in getattr(thing, "__mro__", ()):
        if kind in PUBLIC:
            yield kind.__doc__ or ""
            members = (vars(kind)[name] for name in vars(kind) if name[:2] != "__")
            yield from (inspect.getdoc(member) or "" for member in members)


@pytest.mark.parametrize(("title", "name"), NAMES, ids=lambda part: part)
def test_a_public_name_has_an_example_that_is_run(title: str, name: str) -> None:
    thing = getattr(LAYERS[title], name)
    if not inspect.isclass(thing) and not inspect.isfunction(thing):
        return  # a type or a constant: its line says all
    shown = any(">>>" in text for text in documented(thing))
    if title.startswith("karat.compat.") and not shown:
        shown = re.search(rf"\b{name}\b", PAGES_OF_FRONTS) is not None
    assert shown != (f"{title}.{name}" in ELSEWHERE)


def test_arguments_of_public_functions_are_explained() -> None:
    for title, name in NAMES:
        thing = getattr(LAYERS[title], name)
        if inspect.isfunction(thing) and "Args:" in (
            text := inspect.getdoc(thing) or ""
        ):
            section = text.partition("Args:\n")[2].partition("\n\n")[0]
            told = re.findall(r"(?m)^    \**(\w+): ", section)
            assert {*told} <= {*inspect.signature(thing).parameters}, (title, name)
