"""Reads of neighbouring SMs, as (instruction, address) of sectors in lines of 128 bytes."""

import re
from dataclasses import replace

import numpy as np
import pytest
from cases.cache_case import ATOMIC, LOAD, STORE, batch_of, column, passed
from hypothesis import given
from hypothesis import strategies as st

from cutrace.base.errors import CutraceError
from cutrace.jit.loop import rows_asked
from cutrace.models.lrc import Lrc
from cutrace.models.replay.interface.model import Kind, Step, one_lane
from cutrace.models.replay.stateful import lrc_window

Reads = list[tuple[int, int]]


def join(reads: Reads, lrc: Lrc | None = None, units: list[int] | None = None) -> Step:
    """Loads by the number of their instruction, all in one unit unless told otherwise."""
    batch = batch_of([(LOAD, address) for _, address in reads], [row for row, _ in reads])
    if units is not None:
        batch = replace(batch, unit=np.array(units))
    return (lrc or Lrc(line=128, window=8)).step(batch)


def test_the_same_read_by_another_is_joined_and_goes_no_further() -> None:
    step = join([(0, 0), (0, 32), (1, 0), (1, 32)])
    assert column(step, "joined") == [0, 0, 1, 1]
    assert passed(step) == [("load", 0, 32), ("load", 32, 32)]


def test_reads_that_only_overlap_are_made_each() -> None:
    step = join([(0, 0), (0, 32), (1, 32), (2, 32)])
    assert column(step, "joined") == [0, 0, 0, 1]  # the third read is equal to the second


def test_other_lines_of_one_instruction_are_reads_of_their_own() -> None:
    step = join([(0, 0), (0, 128), (1, 128), (1, 256)])
    assert column(step, "joined") == [0, 0, 1, 0]


def test_a_read_of_long_ago_is_made_again() -> None:
    for between, joined in ((7, 1), (8, 0)):  # the window is 8
        others = [(1 + n, 128 * (1 + n)) for n in range(between)]
        step = join([(0, 0), *others, (99, 0)])
        assert column(step, "joined")[-1] == joined, between


def test_units_do_not_join() -> None:
    step = join([(0, 0), (1, 0), (2, 0)], units=[0, 1, 0])
    assert column(step, "joined") == [0, 0, 1]


def test_stores_and_atomics_are_not_joined() -> None:
    step = Lrc(line=128, window=8).step(batch_of([(STORE, 0), (STORE, 0), (ATOMIC, 0)]))
    assert column(step, "joined") == [0, 0, 0]
    assert [access for access, _, _ in passed(step)] == ["store", "store", "atomic"]


def test_what_groups_join_is_added_up() -> None:
    """The second and the fourth request are joined: one of group 1, one of group 0."""
    batch = replace(batch_of([(LOAD, 0)] * 2 + [(LOAD, 128)] * 2), group=np.array([0, 1, 1, 0]))
    step = Lrc(line=128, window=8).step(replace(batch, groups=3))
    assert column(step, "joined") == [1, 1, 0]
    assert passed(step) == [("load", 0, 32), ("load", 128, 32)]


def test_reads_past_l1_are_joined_too() -> None:
    past = Kind("global", "load", "cg", 32)
    step = Lrc(line=128, window=8).step(batch_of([(past, 64), (past, 64)]))
    assert column(step, "joined") == [0, 1]


@given(
    reads=st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([0, 32, 64, 128, 256]), st.integers(0, 1)),
        min_size=1,
        max_size=40,
    ),
    size=st.integers(1, 9),
)
def test_counts_do_not_depend_on_batches(reads: list[tuple[int, int, int]], size: int) -> None:
    rows = np.cumsum([step for step, _, _ in reads])
    units = np.array([unit for _, _, unit in reads])
    units = units[np.searchsorted(rows, rows)]  # an instruction is of one unit
    batch = replace(batch_of([(LOAD, a) for _, a, _ in reads], rows.tolist()), unit=units)
    whole = column(Lrc(line=128, window=3).step(batch), "joined")
    lrc, found = Lrc(line=128, window=3), []
    ends = np.append(np.flatnonzero(np.diff(rows)) + 1, len(rows))
    begin = 0
    while begin < len(rows):
        end = next(int(e) for e in [*ends, len(rows)] if e >= min(begin + size, len(rows)))
        found += column(lrc.step(batch.take(slice(begin, end))), "joined")
        begin = end
    assert found == whole
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(rows_asked, lrc_window.__name__, lrc_window.WORTH)
        assert column(Lrc(line=128, window=3).step(batch), "joined") == whole


@pytest.mark.parametrize(
    ("line", "window", "said"),
    [
        (96, 8, "lrc: line = 96; expected a power of two from 32 to 1024"),
        (16, 8, "lrc: line = 16"),
        (128, 0, "lrc: window = 0; expected 1 at least"),
    ],
)
def test_an_lrc_that_there_cannot_be_is_refused(line: int, window: int, said: str) -> None:
    with pytest.raises(CutraceError, match=re.escape(said)):
        Lrc(line=line, window=window)


def joined_of(kind: Kind, reads: int) -> list[int]:
    """Which of so many equal reads of a sector are joined, where four share one."""
    nothing = np.zeros(reads, np.int64)
    batch = one_lane((kind,), nothing, nothing, np.arange(reads))
    return column(Lrc(line=128, window=16, joins=4).step(batch), "joined")


def test_at_most_so_many_reads_share_one_of_l2() -> None:
    assert joined_of(Kind("bulk", "load", "", 32), 6) == [0, 1, 1, 1, 0, 1]


def test_reads_of_a_multicast_are_not_joined() -> None:
    assert joined_of(Kind("bulk", "load", "multicast", 32), 3) == [0, 0, 0]
