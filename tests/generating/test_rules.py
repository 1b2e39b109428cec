"""What a question is dropped for by rule, before any judge is asked."""

import json
from typing import Any

import pytest

import karat
from karat.extend import Settings

RYE = (
    "Rye was brought to the valley in 1731 by settlers from the north, who ground it "
    "in a mill that the abbot had built for the monks."
)
ROGGEN = (
    "Der Roggen wurde im Jahr 1731 von Siedlern aus dem Norden in das Tal gebracht, "
    "die ihn in der Mühle des Abtes gemahlen haben."
)
LIMAI = "黑麦于一七三一年由来自北方的移民带到山谷、他们在修道院院长建造的磨坊里磨面。"
RAIMUGI = "ライむぎは きたから きた ひとびとが たにに もってきて こなに ひいていた。"


def fate(passage: str, question: str, answer: str = "1731") -> str:
    """The check that a question fails; `kept` if it fails none."""

    def model(prompt: str) -> str:
        claim = {"text": answer, "importance": "vital", "passages": [1]}
        reply: dict[str, Any] = {"question": question, "answer": answer}
        reply["claims"] = [claim]
        if "[begin claim" in prompt:
            verdict = {"claim": 1, "reason": "stated", "alone": [1], "parts": []}
            reply = {"verdicts": [{**verdict, "complete": False, "against": []}]}
        elif "[begin question" in prompt:
            reply = {"reason": "farming", "clear": True, "answer": "", "grade": 0}
        return json.dumps(reply)

    settings = Settings(journal=None)
    made = karat.generate({"d": passage}, 1, model=model, settings=settings)
    return "kept" if made.queries else made.dropped[0][1]


@pytest.mark.parametrize(
    ("question", "check"),
    [
        ("When did farmers of the dale first grow this grain, rye?", "kept"),
        ("rye history alpine farming", "kept"),
        ("How long does it take to grind grain in a village?", "kept"),
        ("Why did Joan of the dale sell her grain?", "kept"),
        ("Who brought Rye in that old year, from where?", "kept"),
        ("When did they first grow this grain, rye?", "alone"),
        ("In what year was it first grown there?", "alone"),
        ("Which country is the author of Brand a citizen of?", "kept"),
        ("What does the text say on grain?", "alone"),
        ("According to the settlers, what is grain?", "alone"),
        ("Who, as this short article has it, grew grain?", "alone"),
        ("Who made a mill that the abbot had wanted?", "leak"),
        ("rye valley settlers mill", "leak"),
        ("Wann wurde das Getreide in das Dorf gebracht?", "language"),
        ("Qui est venu dans le village, et quand ?", "language"),
        ("¿Quién fue el primero en cultivar cereales?", "language"),
        ("当地农民何时开始种植谷物。", "language"),
        ("", "empty"),
    ],
)
def test_an_english_passage(question: str, check: str) -> None:
    assert fate(RYE, question) == check


@pytest.mark.parametrize(
    ("passage", "question", "check"),
    [
        (ROGGEN, "Seit wann ist das Getreide bei den Bauern bekannt?", "kept"),
        (ROGGEN, "When did the farmers of the village first have it?", "language"),
        (ROGGEN, "Wer war es, der 1731 von Siedlern aus dem Norden hörte?", "leak"),
        (LIMAI, "当地农民何时开始种植这种谷物。", "kept"),
        (LIMAI, "谁知道由来自北方的移民带到山谷的是什么。", "leak"),
        (RAIMUGI, "山村農民栽培開始時期", "kept"),
        (RAIMUGI, "When did the farmers first grow this grain?", "language"),
        (LIMAI, "When did the farmers first grow this grain?", "language"),
    ],
)
def test_other_languages(passage: str, question: str, check: str) -> None:
    assert fate(passage, question) == check
