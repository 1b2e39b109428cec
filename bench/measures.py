"""The seven numbers every tool is asked for, under each tool's own names.

Apart from the tools, so that a timed script does not import them all.
"""

__all__ = ["METRICS", "TREC_NAMES", "TREC_REQUEST"]

# trec_eval cannot cut the reciprocal rank; everything else is the same number.
TREC_NAMES = {
    "ndcg@10": "ndcg_cut_10",
    "recall@5": "recall_5",
    "recall@10": "recall_10",
    "recall@100": "recall_100",
    "rr@10": "recip_rank",
    "ap": "map",
    "precision@10": "P_10",
}
METRICS = tuple(TREC_NAMES)
TREC_REQUEST = ("ndcg_cut.10", "recall.5,10,100", "recip_rank", "map", "P.10")
