"""Formulas over counts written by hand: scopes, groupings, ratios, and what is absent."""

import polars as pl

from cutrace.analyzer.counting.evaluate import Raw, by, totals, totals_of_each
from cutrace.analyzer.counting.vocabulary import Counter


def counter(formula: str, scope: str = "all", whole_launch: bool = False) -> Counter:
    return Counter("c", "mine", "d", "u", "1.0-", formula, "s", scope, whole_launch=whole_launch)


def counts() -> pl.DataFrame:
    """Two instructions; 3 blocks of the profiled SM, 2 of its cluster, 5 elsewhere."""
    return pl.DataFrame(
        {
            "pc": pl.Series([0, 0, 1, 1], dtype=pl.UInt32),
            "array": ["in", "in", "out", "out"],
            "scope": ["sm", "cluster", "sm", "rest"],
            "requests": [3, 2, 3, 5],
            "moved": [30, 20, 90, 150],
        }
    )


def test_a_counter_adds_up_the_rows_of_its_scope() -> None:
    asked = {scope: counter("2 * SUM(requests)", scope) for scope in ("sm", "cluster", "all")}
    assert totals(Raw(counts(), {}), asked) == {
        "sm": 2 * (3 + 3),
        "cluster": 2 * (3 + 3 + 2),
        "all": 2 * (3 + 3 + 2 + 5),
    }


def test_the_whole_grid_can_be_asked_of_every_counter() -> None:
    raw = Raw(counts(), {}, whole=True)
    assert totals(raw, {"c": counter("SUM(requests)", "sm")}) == {"c": 3 + 2 + 3 + 5}


def test_what_the_models_do_not_carry_is_absent_and_what_did_not_happen_is_zero() -> None:
    asked = {
        "other": counter("SUM(passes)"),
        "lacking": None,
        "none": counter("SUM(requests)", "sm"),
    }
    empty = counts().filter(pl.col("pc") > 1)
    assert totals(Raw(empty, {}), asked) == {"other": None, "lacking": None, "none": 0}


def test_a_term_that_a_device_cannot_have_is_zero_but_a_level_that_it_lacks_is_absent() -> None:
    names = {"requests": "global_load_l2_reads", "moved": "global_load_requests"}
    raw = Raw(counts().rename(names), {})
    asked = {
        "some": counter("SUM(global_load_l2_reads) + 3 * SUM(bulk_load_l2_reads)"),
        "less": counter("SUM(global_load_l2_reads) - SUM(bulk_load_l2_reads)"),
        "none": counter("SUM(bulk_load_l2_reads) + SUM(bulk_store_l2_reads)"),
        "level": counter("SUM(global_load_requests) - SUM(global_load_l1_reads)"),
        "other": counter("SUM(global_load_l2_reads) + SUM(passes)"),
    }
    expected = {"some": 13, "less": 13, "none": None, "level": None, "other": None}
    assert totals(raw, asked) == expected
    lines = by(raw, asked, ["pc"]).select("pc", "some", "level").rows()
    assert lines == [(0, 5, None), (1, 8, None)]


def test_a_ratio_without_a_divisor_is_absent() -> None:
    asked = {"r": counter("CAST(SUM(requests) AS DOUBLE) / NULLIF(SUM(moved), 0)")}
    assert totals(Raw(counts(), {}), asked) == {"r": 13 / 290}
    still = counts().with_columns(moved=pl.lit(0, pl.Int64))
    assert totals(Raw(still, {}), asked) == {"r": None}


def test_counters_of_the_whole_launch_have_no_part_in_its_lines() -> None:
    raw = Raw(counts(), {"active_warps": 16, "max_warps": 48})
    asked = {"o": counter("CAST(MAX(active_warps) AS DOUBLE) / MAX(max_warps)", whole_launch=True)}
    assert totals(raw, asked) == {"o": 16 / 48}
    assert by(raw, asked, ["array"])["o"].to_list() == [None, None]


def test_many_launches_are_told_what_each_alone_is_to_the_last_bit() -> None:
    asked = {
        "sum": counter("SUM(requests)", "sm"),
        "time": counter("CAST(MAX(ps) AS DOUBLE) / MAX(ps_of_ns)", whole_launch=True),
        "bare": counter("CAST(ps AS DOUBLE)", whole_launch=True),
    }
    facts = [{"ps": ps, "ps_of_ns": 1000} for ps in (3030, 3283, None)]
    several = [counts(), counts().filter(pl.col("pc") > 1), counts().head(1)]
    raws = [Raw(table, known) for table, known in zip(several, facts, strict=True)]
    expected = [
        {"sum": 3 + 3, "time": 3.03, "bare": 3030.0},
        {"sum": 0, "time": 3.283, "bare": 3283.0},
        {"sum": 3, "time": None, "bare": None},
    ]
    assert totals_of_each(raws, asked) == expected
    assert [totals(raw, asked) for raw in raws] == expected


def test_every_group_keeps_its_row_even_where_no_block_of_the_scope_was() -> None:
    asked = {
        "sm": counter("SUM(requests)", "sm"),
        "outside": counter("SUM(requests) - 3", "cluster"),
        "moved": counter("SUM(moved)"),
        "lacking": None,
    }
    frame = by(Raw(counts(), {}), asked, ["array"])
    assert frame.columns == ["array", "sm", "outside", "moved", "lacking"]
    assert frame.rows() == [("in", 3, 3 + 2 - 3, 50, None), ("out", 3, 3 - 3, 240, None)]
