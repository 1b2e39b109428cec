"""Everything on the page "What do you have?" is scored by the line beside it."""

from pathlib import Path
from typing import Any

import pytest

import karat
from tests.docs.in_hand import GOLD, IN_HAND, RECALL, RR, InHand

ROWS = [hand for rows in IN_HAND.values() for hand in rows]


def evaluated(hand: InHand, names: dict[str, Any]) -> karat.Evaluation:
    """The line, with the names it has for what the reader puts in."""
    line = hand.line.replace("{query: answer, ...}", "run")
    line = line.replace("[[...], [...]]", "gold").replace(
        "{query: documents, ...}", "gold"
    )
    if "'" in line:
        before, file, after = line.split("'")
        role = "gold" if "gold=" in before else "run"
        assert names[role].endswith(file)
        line = f"{before}names[{role!r}]{after}"
    line = line[:-1] + ", metrics=['rr', 'recall@1'])"
    scope = {"gold": GOLD, **names, "names": names, "karat": karat}
    result = eval(line, scope)
    assert isinstance(result, karat.Evaluation)
    return result


@pytest.mark.parametrize("hand", ROWS, ids=lambda hand: hand.what)
def test_one_line_scores_it(hand: InHand, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    means = evaluated(hand, hand.make(tmp_path)).means
    assert means == {"rr": RR, "recall@1": RECALL}
