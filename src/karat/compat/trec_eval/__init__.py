"""trec_eval, line for line: the same output as its versions 9.0.8 and 10.0.

The numbers are those of karat's metrics; here are only the order, the names and the
averages that trec_eval prints, and its own rules for what a formula leaves open.

It differs from the binary in these points:

- what trec_eval refuses is an error that says what to do about it, before any output;
- `rbp` of graded judgements divides grades by the highest one of the topic; trec_eval
  10.0 means to do so, but reads memory it never set;
- gains given as `ndcg.1=3.5,...` are ordered by value and must not be negative;
  trec_eval compares them as integers, so gains less than 1 apart may swap places;
- recall points given as `11pt_avg.0.5,0.2` are put in order first;
- preferences and judgement groups (-R), other formats of runs (-T), z-scores (-Z), the
  old form of output (-o) and debugging (-D) are refused, each with a sentence.
"""

from karat.compat.trec_eval.output import (
    Options,
    trec_eval_lines,
    trec_eval_pages,
    trec_eval_values,
)

__all__ = ["Options", "trec_eval_lines", "trec_eval_pages", "trec_eval_values"]
