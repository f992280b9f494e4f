"""Caches on requests written by hand; sectors of 32 bytes in lines of 128."""

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases.cache_case import (
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
from hypothesis import given, settings
from hypothesis import strategies as st

from cutrace.base.errors import CutraceError
from cutrace.jit.loop import rows_asked
from cutrace.models import cache as cache_module
from cutrace.models.cache import Cache
from cutrace.models.replay.interface.model import Batch, Kind
from cutrace.models.replay.stateful import cache_sim as lines
from cutrace.models.replay.stateful.cache_sim import bank_of


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
    """Two sets of one line: 1 is alone in its own; 2 lies in 0's, where the second round begins."""
    cache = make_cache(sets=2)
    step = ask(cache, *((LOAD, line * 128) for line in (0, 1, 0, 2, 1, 0)))
    assert column(step, "read_hits") == [0, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("sets", [47, 64, 128, 211, 243])
@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 33, 64, 128, 256])
def test_lines_at_a_stride_spread_over_the_sets(sets: int, stride: int) -> None:
    """A cache that is half full keeps nine in ten at least; without spreading, one in `stride`
    sets is used where `stride` divides them: 128 sets of 8 would keep 128 of 512 lines 8 apart.
    """
    cache = make_cache(sets=sets, bytes=sets * 8 * 128)
    once = [(LOAD, 128 * stride * line) for line in range(sets * 4)]
    ask(cache, *once)
    assert totals(ask(cache, *once))["read_hits"] >= 0.9 * len(once)


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


def test_a_load_finds_what_was_stored_to_part_of_a_sector() -> None:
    part, more = (Kind("global", access, "ca", 32, filled=4) for access in ("store", "load"))
    eight = Kind("global", "load", "ca", 32, filled=8)
    cache = make_cache(store="through")
    step = ask(cache, (part, 0), (more, 0), (eight, 0), (part, 32), (part, 32), (eight, 32))
    assert column(step, "read_hits") == [0, 1, 0, 0, 0, 1]


def test_a_sector_stored_piece_by_piece_is_here_as_a_whole() -> None:
    """Eight times 4 bytes; a constant's word of a longer line is never taken to be stored."""
    part = Kind("global", "store", "", 32, filled=4)
    step = ask(make_cache(store="through"), *[(part, 0)] * 7, (LOAD, 0))
    assert column(step, "read_hits")[-1] == 0
    step = ask(make_cache(store="through"), *[(part, 0)] * 8, (LOAD, 0))
    assert column(step, "read_hits")[-1] == 1
    byte = Kind("const", "load", "", 1)
    step = ask(make_cache(sector=128, serves=["const"]), (byte, 0), (byte, 9))
    assert column(step, "read_hits") == [0, 1]


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


def test_a_sector_stored_in_part_is_fetched_when_it_is_read() -> None:
    """Where stores stay, whole sectors are asked for."""
    part = Kind("global", "store", "", 32, filled=4)
    step = ask(make_cache(store="back"), (part, 0), (LOAD, 0), (LOAD, 0))
    assert column(step, "read_hits") == [0, 0, 1]
    assert passed(step) == [("load", 0, 32)]


def test_a_sector_stored_in_part_is_fetched_before_it_is_written() -> None:
    part = Kind("global", "store", "", 32, filled=4)
    cache = make_cache(store="back")
    step = ask(cache, (part, 0), (STORE, 32), (LOAD, 128), (LOAD, 256))
    assert passed(step)[1:] == [
        ("load", 0, 32),
        ("store", 0, 32),
        ("store", 32, 32),
        ("load", 256, 32),
    ]
    assert column(step, "fills") == [0, 0, 1, 2]
    assert column(step, "write_backs") == [0, 0, 0, 2]


def test_a_second_store_to_a_line_is_no_hit_while_the_first_is_on_its_way() -> None:
    """An instruction of one line takes 8 + 1 cycles: near until 18, on the way until 36."""
    for between, hits in ((0, 1), (1, 1), (2, 0), (3, 0), (4, 1)):
        cache = make_cache(store="through", bytes=128 * 8, on_the_way=[18, 36])
        others = [(LOAD, 128 * (1 + n)) for n in range(between)]
        step = ask(cache, (STORE, 0), *others, (STORE, 0))
        assert column(step, "write_hits")[-1] == hits, between


@pytest.mark.parametrize(("lines", "hits"), [(16, 16), (32, 0), (40, 40)])
def test_stores_of_as_many_lines_as_are_on_the_way_never_find_them(lines: int, hits: int) -> None:
    """4 banks of tags: 16 lines take 8 + 4 cycles, 32 take 8 + 8 and 40 take 8 + 10."""
    cache = make_cache(store="through", bytes=128 * 64, on_the_way=[15, 17])
    once = [(STORE, 128 * line) for line in range(lines)]
    step = ask(cache, *once, *once, rows=[0] * lines + [1] * lines)
    assert sum(column(step, "write_hits")) == hits


def test_lines_crowded_in_one_bank_of_tags_take_longer() -> None:
    """32 lines of one bank take 8 + 32 cycles, past the way; those of all four, 8 + 8."""
    in_one = [line for line in range(1024) if bank_of(line) == 0][:32]
    cache = make_cache(store="through", bytes=128 * 64, on_the_way=[15, 17])
    once = [(STORE, 128 * line) for line in in_one]
    step = ask(cache, *once, *once, rows=[0] * 32 + [1] * 32)
    assert sum(column(step, "write_hits")) == 32


def test_bytes_stored_to_a_word_leave_nothing_to_find() -> None:
    """Where stores go through, words are here or not; where they stay, bytes are."""
    byte = Kind("global", "store", "", 32, filled=8, lane=1)
    word = Kind("global", "store", "", 32, filled=8, lane=4)
    load = Kind("global", "load", "ca", 32, filled=8, lane=1)
    assert column(ask(make_cache(store="through"), (byte, 0), (load, 0)), "read_hits") == [0, 0]
    assert column(ask(make_cache(store="through"), (word, 0), (load, 0)), "read_hits") == [0, 1]
    four = ask(make_cache(store="back"), *[(byte, 0)] * 4, (LOAD, 0))
    assert column(four, "read_hits")[-1] == 1


def test_no_more_lines_may_be_stored_in_part_than_the_limit() -> None:
    """One line of four in part: storing to part of a second fetches and writes the first."""
    part = Kind("global", "store", "", 32, filled=4)
    cache = make_cache(store="back", bytes=512, partial_bytes=128)
    step = ask(cache, (part, 0), (STORE, 128), (part, 256), (LOAD, 0))
    assert column(step, "fills") == [0, 0, 1, 0]
    assert column(step, "write_backs") == [0, 0, 1, 0]
    assert passed(step) == [("load", 0, 32), ("store", 0, 32)]
    assert column(step, "read_hits") == [0, 0, 0, 1]  # whole now, and still here


def test_memory_that_writes_single_bytes_is_not_read_for_what_is_stored_in_part() -> None:
    """As above, without the fetch; what was stored in part is not there to load."""
    part = Kind("global", "store", "", 32, filled=4)
    cache = make_cache(store="back", bytes=512, partial_bytes=128, masks=True)
    step = ask(cache, (part, 0), (STORE, 128), (part, 256), (LOAD, 0))
    assert column(step, "fills") == [0, 0, 0, 1]
    assert column(step, "write_backs") == [0, 0, 1, 0]
    assert passed(step) == [("store", 0, 32), ("load", 0, 32)]
    assert column(step, "read_hits") == [0, 0, 0, 0]


def test_a_cache_that_wavers_keeps_some_of_what_goes_round_in_circles() -> None:
    """Nine lines in turn through eight ways: the oldest always goes, and none is ever found; if
    the second oldest may go, some are found, but never all.
    """
    rounds = [(LOAD, 128 * line) for line in range(9)] * 40
    regular, wavering = (
        totals(ask(make_cache(bytes=1024, wavers=wavers), *rounds)) for wavers in (False, True)
    )
    assert "read_hits" not in regular
    assert 0 < wavering["read_hits"] < 8 * 39


def test_a_store_after_a_load_is_a_hit_at_once() -> None:
    step = ask(make_cache(store="through", on_the_way=[1, 9]), (LOAD, 0), (LOAD, 128), (STORE, 0))
    assert column(step, "write_hits") == [0, 0, 1]


def test_an_atomic_fetches_its_portion_in_every_second_line() -> None:
    cache = make_cache(store="back", fetch=64, bytes=1024)
    step = ask(cache, *((ATOMIC, 128 * line) for line in range(4)))
    assert column(step, "fills") == [1, 2, 1, 2]  # 48 bytes on average


def test_what_the_limit_leaves_over_is_spread_over_the_sets() -> None:
    """Three dirty lines for two sets of four: one set may have two, the other one."""
    cache = make_cache(store="back", bytes=1024, sets=2, dirty_bytes=3 * 128)
    step = ask(cache, *((STORE, 256 * line) for line in range(8)))
    waiting = 8 - totals(step)["write_backs"]
    assert waiting == 2 + 1


def test_ways_say_how_many_sets_there_are() -> None:
    """Three sets of two lines: six neighbours fill them."""
    cache = make_cache(sets=None, ways=2, bytes=3 * 2 * 128)
    again = [(LOAD, 128 * line) for line in (0, 1, 2, 3, 4, 5)] * 2
    assert totals(ask(cache, *again)) == {"reads": 12, "read_hits": 6, "fills": 6}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"line": 96}, "line = 96; expected a power of two"),
        ({"sector": 0}, "sector = 0; expected a power of two"),
        ({"sector": 256}, "lines of 128 bytes in sectors of 256; expected 1 to"),
        ({"line": 8192, "sector": 32}, "lines of 8192 bytes in sectors of 32; expected 1 to"),
        ({"sets": 0}, "sets = 0; expected one of sets and ways, at least 1"),
        ({"sets": -4}, "sets = -4; expected one of sets and ways, at least 1"),
        ({"sets": None}, "neither sets nor ways; expected one of sets and ways, at least 1"),
        ({"ways": 2}, "sets = 1 and ways = 2; expected one of sets and ways, at least 1"),
        ({"sets": 3}, "256 bytes are too few; expected 384 at least, 3 lines of 128"),
        ({"sets": None, "ways": 4}, "256 bytes are too few; expected 512 at least, 4 lines of 128"),
        ({"fetch": 48}, "48 bytes fetched together; expected whole sectors of 32 bytes"),
        ({"fetch": 96}, "and a line of 128 in equal parts"),
        ({"fetch": -32}, "fetch, dirty_bytes and partial_bytes: expected no number below zero"),
        ({"partial_bytes": -1}, "partial_bytes: expected no number below zero"),
        (
            {"dirty_bytes": -1},
            "fetch, dirty_bytes and partial_bytes: expected no number below zero",
        ),
        ({"store": "thru"}, "no policy `thru` for stores; there are pass, evict, through, back"),
        (
            {"store": "back", "local_store": "bach"},
            "no policy `bach` for stores; there are pass, evict, through, back; nearest: back",
        ),
        ({"serves": ["globl"]}, "no state space 'globl'"),
        ({"on_the_way": [4]}, "on_the_way = [4]; expected two ages, the lesser first"),
        ({"on_the_way": [9, 4]}, "on_the_way = [9, 4]; expected two ages, the lesser first"),
    ],
)
def test_a_cache_that_there_cannot_be_is_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(CutraceError, match=re.escape(said)):
        make_cache(**keys)


@given(st.data())
@settings(max_examples=60)
@pytest.mark.slow
def test_counts_do_not_depend_on_batches_nor_on_the_compiler(data: st.DataObject) -> None:
    keys = data.draw(st.sampled_from(GEOMETRIES))
    kinds = (
        LOAD,
        STORE,
        ATOMIC,
        LOCAL_LOAD,
        LOCAL_STORE,
        replace(STORE, filled=4),
        replace(STORE, filled=8, lane=1),
    )
    many = data.draw(st.integers(1, 60))
    requests = data.draw(
        st.lists(
            st.tuples(st.sampled_from(kinds), st.integers(0, 40).map(lambda n: 32 * n)),
            min_size=many,
            max_size=many,
        )
    )
    steps = data.draw(st.lists(st.integers(0, 1), min_size=many, max_size=many))
    units = data.draw(st.lists(st.integers(0, 2), min_size=many + 1, max_size=many + 1))
    rows = np.cumsum(steps)
    batch = replace(batch_of(requests, rows.tolist()), unit=np.array(units)[rows])
    whole, slices = (
        serve_in_parts(batch, keys, [many]),
        serve_in_parts(batch, keys, data.draw(CUTS)),
    )
    assert whole == slices
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(rows_asked, lines.__name__, lines.WORTH)
        assert serve_in_parts(batch, keys, [many]) == whole
        patch.setattr(cache_module, "SLICE", 7)
        assert serve_in_parts(batch, keys, [many]) == whole


GEOMETRIES: tuple[dict[str, Any], ...] = (
    {"store": "through", "bytes": 512, "on_the_way": [3, 6], "wavers": True},
    {"store": "evict", "local_store": "back", "sector": 128, "bytes": 1024, "sets": 4},
    {"store": "back", "fetch": 64, "dirty_bytes": 384, "bytes": 1536, "sets": 3},
    {"store": "back", "partial_bytes": 128, "bytes": 512},
    {"store": "back", "serves": ["global"], "line": 64, "bytes": 256},
)
CUTS = st.lists(st.integers(1, 20), min_size=1, max_size=5)


def serve_in_parts(
    batch: Batch, keys: dict[str, Any], sizes: list[int]
) -> tuple[dict[str, list[int]], list[tuple[str, int, int]]]:
    """Serve a batch in parts of about so many rows, a row's requests together."""
    cache, steps = make_cache(**keys), []
    ends = np.append(np.flatnonzero(np.diff(batch.row)) + 1, len(batch))
    begin = 0
    for size in itertools.cycle(sizes):
        end = next(int(e) for e in [*ends, len(batch)] if e >= min(begin + size, len(batch)))
        part = batch.take(slice(begin, end))
        steps.append(cache.step(part))
        begin = end
        if begin == len(batch):
            break
    counts = {
        name: [int(value) for step in steps for value in step.counts[name]]
        for name in Cache.counters
    }
    return counts, [request for step in steps for request in passed(step)]


def test_units_find_nothing_of_each_other() -> None:
    cache = make_cache()
    batch = replace(batch_of([(LOAD, 0)] * 5), unit=np.array([0, 1, 0, 1, 2]))
    assert cache.step(batch).counts["read_hits"].tolist() == [0, 0, 1, 1, 0]


def test_what_groups_find_is_added_up() -> None:
    """Group 1 has the first load, a miss, and the last two, hits; group 0 the one between."""
    batch = replace(batch_of([(LOAD, 0)] * 4), group=np.array([1, 0, 1, 1]), groups=2)
    step = make_cache().step(batch)
    assert step.counts["reads"].tolist() == [1, 3]
    assert step.counts["read_hits"].tolist() == [1, 2]
    assert step.counts["fills"].tolist() == [0, 1]
