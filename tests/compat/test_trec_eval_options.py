"""What the goldens of trec_eval do not show: parameters, odd input, refusals.

The rules were read in the sources of trec_eval 9.0.8 and 10.0.
"""

import logging
from math import log, log2
from typing import Any

import pytest

from karat.compat.trec_eval import trec_eval_lines
from karat.data.memory_runs import ScoredRun
from karat.extend import (
    DataError,
    MismatchError,
    ParameterError,
    UnknownNameError,
    UsageError,
)

QRELS = {"q1": {"a": 1.0, "b": 2.0, "n": 0.0, "u": -1.0}, "q2": {"a": 1.0}}
RUN = ScoredRun(
    {"q1": {"a": 5, "x": 4, "n": 3, "u": 2, "b": 1}, "q2": {"x": 2, "a": 1}}, "tag"
)


def printed(
    *measures: str, run: ScoredRun = RUN, qrels: Any = QRELS, **options: Any
) -> list[tuple[str, ...]]:
    lines = trec_eval_lines(qrels, run, measures=measures, **options)
    return [tuple(line.split("\t")) for line in lines]


def values(*measures: str, **options: Any) -> list[str]:
    return [value.strip() for _, _, value in printed(*measures, **options)]


def names(*measures: str, **options: Any) -> list[str]:
    return [name.strip() for name, _, _ in printed(*measures, **options)]


def ranked(*documents: str, **others: tuple[str, ...]) -> ScoredRun:
    rankings = {"q1": documents, **others}
    return ScoredRun({q: {d: -i for i, d in enumerate(r)} for q, r in rankings.items()})


def test_without_measures_the_official_ones_are_printed() -> None:
    assert names()[:7] == [
        *("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map")
    ]
    assert len(names()) == 10 + 11 + 9
    assert names() == names("official")


def test_measures_come_in_their_own_order_whatever_is_asked_first() -> None:
    assert names("ndcg_cut.10,5", "map", "P.1") == [
        *("map", "P_1", "ndcg_cut_5", "ndcg_cut_10")
    ]


def test_versions_differ_in_what_all_trec_holds() -> None:
    nine, ten = ([*names("all_trec", version=version)] for version in ("9", "10"))
    assert ten[: len(nine)] == nine
    assert ten[len(nine) :] == ["rbp", "rbp_resid", "unj_5", "unj_10", "unj_20"]


def test_a_nickname_names_the_set_measures() -> None:
    assert names("set")[-5:] == [
        *("set_P", "set_relative_P", "set_recall", "set_map", "set_F")
    ]


def test_the_first_parameters_of_a_measure_hold() -> None:
    assert names("P.5", "P.10") == ["P_5"]
    assert "P_3" in names("all_trec", "P.3")
    assert "P_5" not in names("all_trec", "P.3")


def test_parameters_that_a_measure_does_not_take_are_ignored() -> None:
    assert printed("recip_rank.10") == printed("recip_rank")


def test_per_query_lines_come_before_the_summary_which_may_be_left_out() -> None:
    topics = [topic for _, topic, _ in printed("map", per_query=True)]
    assert topics == ["q1", "q2", "all"]
    assert [t for _, t, _ in printed("map", per_query=True, summary=False)] == [
        *("q1", "q2")
    ]


def test_a_measure_only_of_the_whole_has_no_lines_per_query() -> None:
    assert printed("gm_map", "runid", per_query=True, summary=False) == []


def test_topics_go_by_the_bytes_of_their_names() -> None:
    order = ["10", "9", "A", "a", "é", "\uffee", "\U0001f600"]
    qrels = {topic: {"d": 1.0} for topic in reversed(order)}
    run = ScoredRun({topic: {"d": 1.0} for topic in order})
    rows = printed("map", qrels=qrels, run=run, per_query=True, summary=False)
    assert [topic for _, topic, _ in rows] == order


def test_signs_of_formatting_in_names_are_taken_as_they_are() -> None:
    rows = printed(
        "relstring.3",
        "map",
        qrels={"5%d": {"d": 1.0}},
        run=ScoredRun({"5%d": {"d": 1.0}}),
        per_query=True,
    )
    assert rows[0] == ("map                   ", "5%d", "1.0000")
    assert rows[1] == ("relstring_3           ", "5%d", "'1'")


def test_relstring_has_a_letter_for_every_kind_of_document() -> None:
    qrels = {"q1": {"a": 1.0, "t": 10.0, "n": 0.0, "u": -3.0, "m": 9.0, "h": 12.0}}
    run = ranked("a", "t", "x", "n", "u", "m", "h", "y")
    [row] = printed("relstring", qrels=qrels, run=run, per_query=True)
    assert row == ("relstring             ", "q1", "'1>-0.9>-'")
    [row] = printed("relstring.2", qrels=qrels, run=run, per_query=True)
    assert row == ("relstring_2           ", "q1", "'1>'")
    [row] = printed("relstring.-1", qrels=qrels, run=run, per_query=True)
    assert row == ("relstring_-1          ", "q1", "''")


def test_nothing_left_by_judged_only_is_zero_by_zero_at_recall_zero() -> None:
    options: dict[str, Any] = {"qrels": {"q1": {"a": 1.0}}, "run": ranked("x")}
    options["judged_only"] = True
    assert printed("iprec_at_recall.0,1", **options) == [
        ("iprec_at_recall_0.00  ", "all", "  -nan"),
        ("iprec_at_recall_1.00  ", "all", "0.0000"),
    ]
    assert values("11pt_avg", "map", **options) == ["0.0000", "-nan"]
    assert printed("11pt_avg", per_query=True, **options)[0][2] == "  -nan"


def test_a_missing_topic_is_refused_skipped_or_zero() -> None:
    run = ranked("a")
    with pytest.raises(MismatchError, match=r"'q2'.*-c scores such topics 0"):
        printed("map", run=run)
    assert values("num_q", "num_rel", "map", run=run, version="9") == [
        *("1", "2", "0.5000")
    ]
    for version in ("9", "10"):
        complete = values(
            *("num_q", "num_rel", "map"), run=run, version=version, complete=True
        )
        assert complete == ["2", "3", "0.2500"]


def test_the_refusal_counts_the_topics() -> None:
    qrels = {topic: {"a": 1.0} for topic in ("q1", "q2", "q3", "q4")}
    with pytest.raises(MismatchError, match="and 2 more judged topics"):
        printed("map", qrels=qrels, run=ranked("a"))
    del qrels["q2"]
    with pytest.raises(MismatchError, match="topic and 1 more judged topics, which"):
        printed("map", qrels=qrels, run=ranked("a"))
    del qrels["q3"]
    with pytest.raises(MismatchError, match="for this judged topic, which"):
        printed("map", qrels=qrels, run=ranked("a"))


def test_version_10_clears_what_it_made_up_for_a_missing_topic_by_plain_name() -> None:
    measures = ("num_ret", "utility", "relstring", "rbp_resid", "unj.5")
    rows = printed(*measures, run=ranked("a"), complete=True, per_query=True)
    of_missing = {name.strip(): v for name, topic, v in rows if topic == "q2"}
    assert of_missing == {
        "num_ret": "0",
        "relstring": "''",
        "utility": "0.0000",
        "rbp_resid": "0.0000",
        "unj_5": "0.0000",
    }
    rows = printed(
        *("utility.1,-1,0,0", "relstring.10", "rbp_resid.p=0.9"),
        run=ranked("a"),
        complete=True,
        per_query=True,
    )
    of_missing = {name.strip(): v for name, topic, v in rows if topic == "q2"}
    assert of_missing == {
        "relstring_10": "'-'",
        "utility_1,-1,0,0": "-1.0000",
        "rbp_resid_p=0.9": "1.0000",
    }


def test_a_missing_topic_is_zero_by_zero_where_only_judged_documents_count() -> None:
    options: dict[str, Any] = {"run": ranked("a"), "complete": True}
    options["judged_only"] = True
    assert values("iprec_at_recall.0", version="10", **options) == ["-nan"]
    assert values("iprec_at_recall.0", version="9", **options) == ["0.5000"]


def test_geometric_means_have_a_floor_for_topics_without_anything() -> None:
    run = ranked("a", "b", q2=("x",))
    assert values("gm_map", run=run) == ["0.0032"]
    assert values("gm_bpref", run=run) == ["0.0032"]
    assert values("gm_map", run=ranked("a", "b"), version="9", complete=True) == [
        "0.0032"
    ]


def test_level_0_takes_every_judged_document_for_relevant() -> None:
    assert values("num_rel", "num_rel_ret", level=0) == ["4", "4"]
    assert values("num_rel", "num_rel_ret", level=2) == ["1", "1"]


def test_grades_are_cut_to_whole_numbers() -> None:
    qrels = {"q1": {"a": 0.9, "b": 1.9}}
    rows = printed("num_rel", "dcg", qrels=qrels, run=ranked("a", "b"))
    assert [value for *_, value in rows] == ["1", f"{1 / log2(3):.4f}"]


def test_gains_take_the_place_of_grades() -> None:
    run, qrels = ranked("n", "a", "b"), {"q1": QRELS["q1"]}
    dcg = 0.5 + 3 / log2(3) + 2 / 2
    ideal = 3 + 2 / log2(3) + 0.5 / 2
    row = printed("ndcg.0=0.5,1=3", qrels=qrels, run=run)
    assert row == [("ndcg_0=0.5,1=3        ", "all", f"{dcg / ideal:.4f}")]
    assert values("dcg.0=0.5,1=3", qrels=qrels, run=run) == [f"{dcg:.4f}"]
    assert values("ideal_dcg.0=0.5,1=3", qrels=qrels, run=run) == [f"{ideal:.4f}"]
    dcg = 0.5 + 1 / log2(3) + 2 / 2
    assert values("dcg.0=0.5", qrels=qrels, run=run) == [f"{dcg:.4f}"]


def test_rndcg_is_zero_where_nothing_reaches_the_level() -> None:
    options: dict[str, Any] = {"qrels": {"q1": {"a": 1.0}}, "run": ranked("a")}
    assert values("Rndcg", "ndcg", **options) == ["1.0000", "1.0000"]
    assert values("Rndcg", "ndcg", level=2, **options) == ["1.0000", "0.0000"]


def test_rbp_takes_its_persistence() -> None:
    row = printed("rbp.p=0.5", qrels={"q1": {"a": 1.0}}, run=ranked("x", "a"))
    assert row == [("rbp_p=0.5             ", "all", "0.2500")]


def test_cutoffs_are_read_to_their_last_digit() -> None:
    # The names and values that pytrec_eval gives.
    options: dict[str, Any] = {"qrels": {"q1": {"a": 1.0}}, "run": ranked("x", "a")}
    rows = printed("recall.9223372036854775807,1234567890,0000000000001", **options)
    assert [(name.strip(), value) for name, _, value in rows] == [
        ("recall_1", "0.0000"),
        ("recall_1234567890", "1.0000"),
        ("recall_9223372036854775807", "1.0000"),
    ]


def test_utility_knows_the_size_of_the_collection() -> None:
    options: dict[str, Any] = {"qrels": {"q1": {"a": 1.0}}, "run": ranked("x", "a")}
    assert values("utility.0,0,0,1", collection=10, **options) == ["8.0000"]


def test_yaap_is_the_log_of_odds() -> None:
    options: dict[str, Any] = {"qrels": {"q1": {"a": 1.0}}, "run": ranked("x", "a")}
    assert values("yaap", **options) == [f"{log(1.5 / 1.5):.4f}"]


@pytest.mark.parametrize(
    ("measure", "sentence"),
    [
        ("P.0", "cutoffs must be different integers >= 1"),
        ("P.5,5", "cutoffs must be different integers >= 1"),
        ("P.x", "cutoffs must be different integers >= 1"),
        ("P.-5", "cutoffs must be different integers >= 1"),
        ("P.9223372036854775808", "cutoffs must be at most 9223372036854775807"),
        (f"P.5,{'9' * 5000}", "cutoffs must be at most 9223372036854775807"),
        ("iprec_at_recall.0.1,0.1", "parameters must be all different"),
        ("iprec_at_recall.x", "parameters must be numbers"),
        ("iprec_at_recall.nan", "parameters must be numbers"),
        ("iprec_at_recall.2", r"recall must be a number >= 0 and <= 1"),
        ("utility.1,2", "parameters must be four numbers"),
        ("ndcg.1", "parameters must be name=number"),
        ("ndcg.1=", "parameters must be numbers"),
        ("ndcg.-1=2", "neither of them negative"),
        ("ndcg.1=-2", "neither of them negative"),
        ("rbp.p=2", r"p must be a number > 0 and < 1"),
    ],
)
def test_parameters_that_cannot_be_are_refused(measure: str, sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        printed(measure)


def test_names_that_do_not_exist_are_refused_with_a_hint() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'ndcg_cut'"):
        printed("ndcg_cutt.10")
    with pytest.raises(UnknownNameError, match="unknown trec_eval measure 'rbp'"):
        printed("rbp", version="9")
    with pytest.raises(UsageError, match="prefs_simp needs preferences"):
        printed("prefs_simp")
    with pytest.raises(UsageError, match="must have parameters after the dot"):
        printed("P.")


def test_options_that_cannot_be_are_refused() -> None:
    with pytest.raises(ParameterError, match="level must be an integer >= 0"):
        printed("map", level=-1)
    with pytest.raises(ParameterError, match="version must be '9' or '10'"):
        printed("map", version="11")
    with pytest.raises(ParameterError, match="depth must be an integer >= 1"):
        printed("map", depth=0)


def test_no_common_topic_is_an_error_and_no_common_document_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(MismatchError, match="no query in common"):
        printed("map", qrels={"q9": {"a": 1.0}})
    with pytest.raises(MismatchError, match="no query in common"):
        printed("map", qrels={})
    with caplog.at_level(logging.WARNING, "karat"):
        rows = values("bpref", qrels={"q1": {"z": 1.0}}, run=ranked("a"))
    assert rows == ["0.0000"]
    assert "no judged document occurs in the run" in caplog.text
    # What reads no other judgements looks for what is relevant.
    qrels = {"q1": {"a": 0.0, "z": 1.0}}
    for measure in ("map", "11pt_avg"):
        caplog.clear()
        assert values(measure, qrels=qrels, run=ranked("a")) == ["0.0000"]
        assert "no relevant document occurs in the run" in caplog.text


def test_an_error_comes_before_any_output() -> None:
    with pytest.raises(DataError):
        trec_eval_lines(QRELS, ranked("a"), measures=["map"], per_query=True)
