"""Caches on requests written by hand; sectors of 32 bytes in lines of 128."""

from dataclasses import replace

import numpy as np
import pytest
from cache_case import (
    ATOMIC,
    LOAD,
    LOCAL_LOAD,
    LOCAL_STORE,
    STORE,
    ask,
    batch_of,
    column,
    make_cache,
    passed,
    totals,
)

from cutrace.models.replay.seam import Kind


def test_the_first_load_of_a_sector_misses_and_the_second_hits() -> None:
    step = ask(make_cache(), (LOAD, 0), (LOAD, 0))
    assert column(step, "reads") == [1, 1]
    assert column(step, "read_hits") == [0, 1]
    assert column(step, "fills") == [1, 0]
    assert passed(step) == [("load", 0, 32)]


def test_a_line_that_is_here_without_the_sector_misses() -> None:
    step = ask(make_cache(), (LOAD, 0), (LOAD, 32))
    assert column(step, "read_hits") == [0, 0]
    assert passed(step) == [("load", 0, 32), ("load", 32, 32)]


def test_a_missing_sector_is_fetched_with_its_portion() -> None:
    step = ask(make_cache(fetch=64), (LOAD, 32), (LOAD, 0), (LOAD, 64))
    assert column(step, "read_hits") == [0, 1, 0]
    assert column(step, "fills") == [2, 0, 2]  # 64 / 32
    assert passed(step) == [("load", 0, 32), ("load", 32, 32), ("load", 64, 32), ("load", 96, 32)]


def test_the_least_recently_used_line_of_a_set_makes_room() -> None:
    """Two lines: 0 and 128; 0 is used again, so 256 replaces 128."""
    step = ask(make_cache(), *((LOAD, line * 128) for line in (0, 1, 0, 2, 0, 1)))
    assert column(step, "read_hits") == [0, 0, 1, 0, 1, 0]


def test_lines_of_one_set_drive_each_other_out_while_others_are_empty() -> None:
    """Two sets of one line: 1 is alone in its own; 3, whose upper bit is folded in, lies in 0's."""
    cache = make_cache(sets=2)
    step = ask(cache, *((LOAD, line * 128) for line in (0, 1, 0, 3, 1, 0)))
    assert column(step, "read_hits") == [0, 0, 1, 0, 1, 0]


def test_lines_a_power_of_two_apart_spread_over_the_sets() -> None:
    """Four sets: 0, 4, 8, 12 have the lower bits 0 and the upper ones 0, 1, 2, 3."""
    cache = make_cache(sets=4, bytes=4 * 128)
    once = [(LOAD, line * 128) for line in (0, 4, 8, 12)]
    assert totals(ask(cache, *once), ask(cache, *once)) == {"reads": 8, "read_hits": 4, "fills": 4}


def test_a_store_that_evicts_takes_the_line_away_and_goes_on() -> None:
    step = ask(make_cache(store="evict"), (LOAD, 0), (STORE, 0), (LOAD, 0))
    assert column(step, "read_hits") == [0, 0, 0]
    assert column(step, "writes") == [0, 1, 0]
    assert passed(step) == [("load", 0, 32), ("store", 0, 32), ("load", 0, 32)]


def test_a_store_that_evicts_makes_no_room_for_itself() -> None:
    step = ask(make_cache(store="evict"), (LOAD, 0), (LOAD, 128), (STORE, 256), (LOAD, 0))
    assert column(step, "read_hits") == [0, 0, 0, 1]


def test_a_store_through_leaves_what_it_filled_and_goes_on() -> None:
    step = ask(make_cache(store="through"), (STORE, 0), (LOAD, 0), (LOAD, 32), (STORE, 64))
    assert column(step, "read_hits") == [0, 1, 0, 0]
    assert column(step, "write_hits") == [0, 0, 0, 1]  # its line is here
    assert passed(step) == [("store", 0, 32), ("load", 32, 32), ("store", 64, 32)]


def test_a_store_through_to_part_of_a_sector_leaves_nothing_to_find() -> None:
    part = Kind("global", "store", "", 32, filled=4)
    step = ask(make_cache(store="through"), (part, 0), (LOAD, 0))
    assert column(step, "read_hits") == [0, 0]
    assert passed(step) == [("store", 0, 32), ("load", 0, 32)]


def test_what_one_instruction_stores_to_a_line_is_looked_up_together() -> None:
    apart = ask(make_cache(store="through"), (STORE, 0), (STORE, 32))
    assert column(apart, "write_hits") == [0, 1]
    joined = ask(make_cache(store="through"), (STORE, 0), (STORE, 32), rows=[0, 0])
    assert column(joined, "write_hits") == [0, 0]


def test_a_store_that_stays_is_written_when_its_line_goes() -> None:
    cache = make_cache(store="back")
    step = ask(cache, (STORE, 0), (STORE, 64), (LOAD, 0), (LOAD, 128), (LOAD, 256), (LOAD, 384))
    assert column(step, "write_backs") == [0, 0, 0, 0, 2, 0]  # two sectors of line 0, once
    assert passed(step)[1:4] == [("store", 0, 32), ("store", 64, 32), ("load", 256, 32)]
    assert totals(step)["fills"] == 3  # stores fetch nothing


def test_no_more_may_wait_to_be_written_than_the_limit() -> None:
    """Four lines of one set, two of them dirty: the third store cleans the first line."""
    cache = make_cache(store="back", bytes=512, dirty_bytes=256)
    step = ask(cache, (STORE, 0), (STORE, 128), (STORE, 256), (LOAD, 0), (STORE, 0))
    assert column(step, "write_backs") == [0, 0, 1, 0, 1]
    assert column(step, "read_hits") == [0, 0, 0, 1, 0]  # clean, and still here
    assert passed(step) == [("store", 0, 32), ("store", 128, 32)]


def test_an_atomic_is_done_in_the_cache_that_keeps_stores() -> None:
    step = ask(make_cache(store="back"), (ATOMIC, 0), (ATOMIC, 0), (LOAD, 0))
    assert column(step, "writes") == [1, 1, 0]
    assert column(step, "write_hits") == [0, 1, 0]
    assert column(step, "read_hits") == [0, 0, 1]
    assert passed(step) == [("load", 0, 32)]


@pytest.mark.parametrize("store", ["evict", "through"])
def test_an_atomic_passes_other_caches_and_takes_its_sector_away(store: str) -> None:
    step = ask(make_cache(store=store), (LOAD, 0), (LOAD, 32), (ATOMIC, 0), (LOAD, 32), (LOAD, 0))
    assert column(step, "read_hits") == [0, 0, 0, 1, 0]
    assert column(step, "writes") == [0, 0, 0, 0, 0]
    assert passed(step)[2:] == [("atomic", 0, 32), ("load", 0, 32)]


def test_stores_pass_a_cache_that_only_reads() -> None:
    step = ask(make_cache(), (LOAD, 0), (STORE, 0), (LOAD, 0))
    assert column(step, "read_hits") == [0, 0, 1]
    assert totals(step) == {"reads": 2, "read_hits": 1, "fills": 1}
    assert passed(step) == [("load", 0, 32), ("store", 0, 32)]


def test_local_stores_stay_where_global_ones_evict() -> None:
    cache = make_cache(store="evict", local_store="back")
    step = ask(cache, (LOCAL_STORE, 0), (LOCAL_LOAD, 0), (STORE, 128), (LOAD, 128))
    assert column(step, "read_hits") == [0, 1, 0, 0]
    assert passed(step) == [("store", 128, 32), ("load", 128, 32)]


def test_what_is_not_served_goes_on_as_it_is() -> None:
    cache = make_cache(serves=["local"])
    step = ask(cache, (LOAD, 0), (LOAD, 0), (LOCAL_LOAD, 0))
    assert totals(step) == {"reads": 1, "fills": 1}
    assert passed(step) == [("load", 0, 32)] * 3


def test_global_loads_with_other_operators_go_on() -> None:
    cache = make_cache(operators=["ca"])
    past = Kind("global", "load", "cg", 32)
    step = ask(cache, (LOAD, 0), (past, 0), (LOCAL_LOAD, 0))
    assert totals(step) == {"reads": 2, "read_hits": 1, "fills": 1}


def test_a_line_fetched_whole_is_one_request_to_the_next_stage() -> None:
    line = Kind("global", "load", "ca", 128)
    step = ask(make_cache(sector=128), (line, 0), (line, 0))
    assert column(step, "read_hits") == [0, 1]
    assert passed(step) == [("load", 0, 128)]


def test_a_request_over_several_lines_looks_up_each() -> None:
    """128 bytes are four lines of 32 bytes."""
    line = Kind("global", "load", "ca", 128)
    cache = make_cache(line=32, bytes=32 * 8)
    step = ask(cache, (LOAD, 64), (line, 0))
    assert column(step, "reads") == [1, 4]
    assert column(step, "read_hits") == [0, 1]
    assert passed(step) == [("load", a, 32) for a in (64, 0, 32, 96)]


def test_units_find_nothing_of_each_other() -> None:
    cache = make_cache()
    batch = replace(batch_of([(LOAD, 0)] * 5), unit=np.array([0, 1, 0, 1, 2]))
    assert cache.step(batch).counts["read_hits"].tolist() == [0, 0, 1, 1, 0]
