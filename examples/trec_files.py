"""Score two retrievers on TREC files, and see for which questions they differ."""

from importlib.resources import as_file, files
from math import isnan

import karat

METRICS = ["hit@5", "recall@5", "ndcg@10"]

with as_file(files("karat") / "examples" / "help_centre") as data:
    keyword, dense = (
        karat.evaluate(data / name, gold=data / "gold.qrels", metrics=METRICS)
        for name in ("keyword.run", "dense.run")
    )

print(f"{'':10} {'keyword':>8} {'dense':>8}")
for metric in METRICS:
    print(f"{metric:10} {keyword.means[metric]:8.4f} {dense.means[metric]:8.4f}")
print(f"undefined  {keyword['ndcg@10'].undefined:8} {dense['ndcg@10'].undefined:8}")

gaps = {
    query: after - before
    for query, before, after in zip(
        keyword.queries, keyword["ndcg@10"].scores, dense["ndcg@10"].scores, strict=True
    )
    if not isnan(after - before)
}
ranked = sorted(gaps, key=gaps.__getitem__)
print("keyword is better on", ", ".join(ranked[:3]))
print("dense is better on", ", ".join(ranked[:-4:-1]))
