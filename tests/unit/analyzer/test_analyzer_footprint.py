"""Distinct bytes of arrays, and how often each is asked for, on accesses written by hand."""

from pathlib import Path

import numpy as np
import pytest
from hand_trace import Access, hand_trace, instruction, launch
from hypothesis import given
from hypothesis import strategies as st
from warps import BASE, Warp, warp

import cutrace
from cutrace.analyzer.counting.footprint import count_touched
from cutrace.base.errors import CutraceError
from cutrace.models.replay.rows import recent_rows
from cutrace.traces.reader import Trace
from cutrace.traces.schema import Array, Space

IN = Array("in", Space.GLOBAL, BASE, 1024)
OUT = Array("out", Space.GLOBAL, BASE + 1024, 1024)
TABLE = Array("table", Space.CONST, 0, 256)


def trace_of(path: Path, *accesses: Access, bytes_: int = 4) -> Trace:
    table = [instruction(0, bytes=bytes_), instruction(1, "ld.const.f32")]
    shape = launch(arrays=(IN, OUT, TABLE), block=(128, 1, 1))
    return hand_trace(path / "k.cutrace", accesses, launch=shape, instructions=table)


def touched(trace: Trace) -> dict[str, int]:
    return dict(count_touched(trace.launches[0]).iter_rows())


def test_bytes_that_several_warps_want_are_counted_once(tmp_path: Path) -> None:
    rows = [Access(warp(base=BASE + 64 * n), warp=n) for n in range(3)]
    # 0 to 127, 64 to 191, 128 to 255
    assert touched(trace_of(tmp_path, *rows)) == {"in": 256}


def test_an_access_over_the_end_of_an_array_counts_for_each_its_own(tmp_path: Path) -> None:
    rows = Access(warp(base=BASE + 1024 - 40))
    assert touched(trace_of(tmp_path, rows)) == {"in": 40, "out": 128 - 40}


def test_gaps_are_not_touched_and_single_bytes_are_counted_as_such(tmp_path: Path) -> None:
    assert touched(trace_of(tmp_path, Access(warp(stride=8)))) == {"in": 32 * 4}


def test_one_byte_a_lane_counts_bytes(tmp_path: Path) -> None:
    rows = Access(warp(stride=3, base=BASE + 5))
    assert touched(trace_of(tmp_path, rows, bytes_=1)) == {"in": 32}


def test_constants_are_counted_and_inactive_lanes_are_not(tmp_path: Path) -> None:
    lanes = warp(base=16, stride=4, lanes=range(4, 9))
    assert touched(trace_of(tmp_path, Access(lanes, pc=1, space=Space.CONST))) == {"table": 20}


@pytest.mark.parametrize("is_compiled", [False, True])
def test_rows_that_come_again_are_left_out_and_count_the_same(
    is_compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_rows, "WORTH", -1 if is_compiled else 1 << 60)
    rows = [Access(warp(base=BASE + 64 * (n // 2 % 3)), warp=n % 4, step=n) for n in range(12)]
    rows.append(Access(warp(base=64), pc=1, space=Space.CONST))
    assert touched(trace_of(tmp_path, *rows)) == {"in": 256, "table": 128}


def test_a_row_is_new_until_another_takes_its_slot() -> None:
    here, there = 1 << 20, 1 << 40
    base = np.array([here, here, there, here, there])
    rows, seen = np.zeros(5, np.int64), np.full((2, 1 << recent_rows.SLOT_BITS), -1)

    def choose(space: int, pattern: int) -> int:
        each, where = np.full(5, pattern), np.full(5, space)
        return recent_rows.choose_new(0 * each, where, base, each, seen[0], seen[1], rows)

    assert choose(space=1, pattern=0) == 2
    assert rows[:2].tolist() == [0, 2]
    assert choose(space=1, pattern=0) == 0
    assert choose(space=1, pattern=1) == choose(space=2, pattern=1) == 2


@given(st.lists(st.integers(0, 255), min_size=1, max_size=32), st.sampled_from([4, 8, 16]))
@pytest.mark.slow
def test_any_words_are_counted_as_a_set_of_bytes_would(
    tmp_path_factory: pytest.TempPathFactory, words: list[int], width: int
) -> None:
    addresses = [BASE + 4 * word // width * width for word in words]
    trace = trace_of(tmp_path_factory.mktemp("t"), Access(Warp(pad(addresses))), bytes_=width)
    places = {a + n for a in addresses for n in range(width)}
    assert sum(touched(trace).values()) == len(places)


def pad(addresses: list[int]) -> tuple[int | None, ...]:
    return (*addresses, *[None] * (32 - len(addresses)))


def test_arrays_have_them_as_counters_and_nothing_else_does(tmp_path: Path) -> None:
    rows = [Access(warp(base=BASE + 64 * n), warp=n) for n in range(3)]
    rows.append(Access(warp(base=0, stride=0), pc=1, space=Space.CONST))
    (launch,) = cutrace.analyze(trace_of(tmp_path, *rows), "h200").launches
    found = launch.arrays.select("array", "bytes_touched", "reuse").rows()
    # 3 x 128 bytes asked of 256; 32 lanes ask for one word
    assert found == [("in", 256, 3 * 128 / 256), ("table", 4, 32.0)]
    assert launch.counters["bytes_touched"] is None
    assert launch.lines["reuse"].to_list() == [None, None]


def test_a_counter_of_arrays_is_refused_for_lines(tmp_path: Path) -> None:
    from cutrace.analyzer.counting.vocabulary import check_parts, find_counters

    check_parts(find_counters(["reuse"]), "array")
    with pytest.raises(CutraceError, match="reuse is known by array only: --by array"):
        check_parts(find_counters(["reuse"]), "line")
