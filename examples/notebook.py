"""What results look like in a notebook: Jupyter, VS Code and marimo open this file."""
# ruff: noqa: B018  a cell shows its last expression

# %% [markdown]
# # Is the dense retriever better, and what does it miss?
# Every result shows itself; `show()` opens its whole page below the cell.

# %%
from importlib.resources import files

import karat

data = files("karat") / "examples" / "help_centre"
gold, queries = data / "gold.qrels", data / "queries.jsonl"
keyword, dense = data / "keyword.run", data / "dense.run"

# %%
board = karat.leaderboard([keyword, dense], gold=gold, queries=queries)
board

# %%
board.plot("curve", "ndcg@10")

# %%
comparison = karat.compare(*board.values())
comparison

# %%
comparison.movers_table(5)

# %%
diagnosis = karat.diagnose(dense, gold, queries=queries, corpus=data / "corpus.jsonl")
diagnosis

# %%
diagnosis.show()
