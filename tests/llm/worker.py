"""A judged run in a process of its own, to be killed: `worker URL JOURNAL OUT ROWS`.

It prints the number of each row whose verdict it holds.
"""

import json
import sys
from functools import partial
from pathlib import Path

from karat.extend import Conversation, Settings
from karat.llm.openai_client import OpenAIClient
from tests.llm.judges import grade, run_jobs_sync

CONCURRENCY = 8


def told(number: int) -> Conversation[dict[int, int]]:
    """The judge of a row, which says when it is done."""
    verdict = yield from grade(number, number + 1_000_000)
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()
    return verdict


def main(url: str, journal: str, out: str, rows: str) -> None:
    """Judge all rows and write what was found."""
    settings = Settings(journal=Path(journal), concurrency=CONCURRENCY, first_wait=0.01)
    found = run_jobs_sync(
        [partial(told, n) for n in range(int(rows))],
        OpenAIClient("tiny", base_url=url),
        settings,
    )
    Path(out).write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
