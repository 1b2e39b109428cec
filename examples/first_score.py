"""Score one retriever with nothing but dicts."""

import karat

run = {
    "refund window": ["shipping", "refunds", "gift cards", "returns"],
    "reset password": ["sign-in", "password", "privacy"],
}
gold = {
    "refund window": {"refunds": 3, "returns": 1},
    "reset password": {"password": 2},
}

evaluation = karat.evaluate(run, gold=gold, metrics=["recall@3", "rr", "ndcg@10"])

for metric, mean in evaluation.means.items():
    print(f"{metric:10} {mean:.4f}")

for row in evaluation.per_query:
    print(f"{row['query']}: first relevant document at rank {1 / row['rr']:.0f}")
