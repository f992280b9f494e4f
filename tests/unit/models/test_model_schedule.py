"""In what order the SMs make the accesses of a launch: rows as (block, warp, step)."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutrace.jit.loop import compile_module, interpret_module
from cutrace.models.replay.interface.options import SCHEDULES
from cutrace.models.replay.schedule import turns
from cutrace.models.replay.schedule.place import Chip, place
from cutrace.models.replay.schedule.schedule import ISSUE_SLOT, Schedule, schedule, shuffle

Row = tuple[int, int, int]


@dataclass(frozen=True)
class Barriers:
    """Intervals as they are asked for: every warp meets a barrier each `every` steps."""

    every: int
    most: int = 1 << 13

    def locate(self, block: Any, warp: Any) -> Any:
        """Where a warp's barriers are told: here the same for all."""
        return block * 0

    def count(self, place: Any, step: Any) -> Any:
        """How many barriers lie before a step."""
        return step // self.every

    def begin(self, place: Any, step: Any) -> Any:
        """The step behind the last barrier."""
        return step // self.every * self.every


def make(policy: str, blocks: int = 1, sms: int = 1, resident: int = 1, **keys: Any) -> Schedule:
    """Blocks on SMs of one cluster each, `resident` of them at once."""
    placement = place(Chip(sms, 1, 1.0), blocks)
    return schedule(placement, resident, keys.get("warps", 2), policy, keys.get("intervals"))


def happen(made: Schedule, rows: list[Row]) -> list[Row]:
    """The rows in the order in which they happen."""
    block, warp, step = np.array(rows, np.int64).T
    intervals = made.find_intervals(block, warp, step)
    return [rows[number] for number in made.order(block, warp, *intervals).tolist()]


def all_rows(blocks: int, warps: int, steps: int) -> list[Row]:
    """Every step of every warp of every block."""
    return [(b, w, s) for b in range(blocks) for w in range(warps) for s in range(steps)]


def test_round_robin_gives_each_warp_a_turn_of_so_many_instructions() -> None:
    """Two turns of all warps, each in the order of their seats' shuffle."""
    made = make("round-robin", warps=3)
    first, second = range(ISSUE_SLOT), range(ISSUE_SLOT, 2 * ISSUE_SLOT)
    seats = [int(np.flatnonzero(shuffle(3) == turn)[0]) for turn in range(3)]
    expected = [(0, w, s) for steps in (first, second) for w in seats for s in steps]
    assert happen(made, all_rows(1, 3, 2 * ISSUE_SLOT)) == expected


def test_greedy_oldest_runs_a_warp_to_its_end_before_the_next() -> None:
    rows = all_rows(2, 2, 9)
    assert happen(make("greedy-oldest", blocks=2, resident=2), rows[::-1]) == rows


def test_greedy_oldest_stops_at_a_barrier() -> None:
    """Four steps, a barrier, four steps: both warps reach the barrier before one goes on."""
    made = make("greedy-oldest", intervals=Barriers(4))
    halves = (range(4), range(4, 8))
    expected = [(0, w, s) for steps in halves for w in range(2) for s in steps]
    assert happen(made, all_rows(1, 2, 8)) == expected


@pytest.mark.parametrize("policy", SCHEDULES)
def test_sms_take_turns_an_access_each(policy: str) -> None:
    """Block 0 is on SM 0 and block 1 on SM 1; each has one warp."""
    made = make(policy, blocks=2, sms=2, warps=1)
    assert happen(made, all_rows(2, 1, 3)) == [(b, 0, s) for s in range(3) for b in range(2)]


@pytest.mark.parametrize("policy", SCHEDULES)
def test_blocks_that_do_not_fit_wait_for_the_next_wave(policy: str) -> None:
    """Two SMs that hold one block each: blocks 0 and 1, then 2 and 3."""
    made = make(policy, blocks=4, sms=2, warps=1)
    waves = [block // 2 for block, _, _ in happen(made, all_rows(4, 1, 5))]
    assert waves == sorted(waves)
    assert made.ends.tolist() == [2, 4]


@given(
    policy=st.sampled_from(SCHEDULES),
    blocks=st.integers(1, 5),
    sms=st.integers(1, 3),
    resident=st.integers(1, 3),
    every=st.integers(1, 7),
)
def test_no_order_crosses_a_barrier_or_turns_a_warps_steps_round(
    policy: str, blocks: int, sms: int, resident: int, every: int
) -> None:
    made = make(policy, blocks, sms, resident, intervals=Barriers(every))
    rows = all_rows(blocks, 2, 10)
    found = happen(made, rows[::-1])
    assert sorted(found) == rows
    for block, warp in {(b, w) for b, w, _ in rows}:
        assert [s for b, w, s in found if (b, w) == (block, warp)] == list(range(10))
    waves = [int(made.wave[block]) for block, _, _ in found]
    assert waves == sorted(waves)
    for block in range(blocks):
        passed = [step // every for b, _, step in found if b == block]
        assert passed == sorted(passed)


@given(
    blocks=st.integers(1, 9),
    sms=st.integers(1, 5),
    resident=st.integers(1, 3),
    every=st.integers(1, 40),
    data=st.data(),
)
def test_rows_that_come_in_runs_are_put_in_the_same_order_by_their_keys(
    blocks: int, sms: int, resident: int, every: int, data: st.DataObject
) -> None:
    """Steps of all warps, some steps twice and not in their order."""
    made = make(SCHEDULES[0], blocks, sms, resident, intervals=Barriers(every))
    steps = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=9))
    rows = [(b, w, s) for s in steps for b in range(blocks) for w in (0, 1) for _ in range(9)]
    done = data.draw(st.integers(1, 3))
    block, warp, step = np.array(rows, np.int64).T
    interval, since = made.find_intervals(block, warp, step)
    assert made.widths is not None
    place = made.issue_order[made.slot[block] * made.warps + warp]
    columns = made.wave[block], interval, since, place, made.sm[block]
    told = np.stack(columns, 1).tolist()
    keys = np.array([turns.key_of(w, i, s, t, m, made.widths) for w, i, s, t, m in told])
    ready = np.flatnonzero(made.wave[block] < done)
    expected = ready[made.order(*(c[ready] for c in (block, warp, interval, since)))]
    assert ready[np.argsort(keys[ready], kind="stable")].tolist() == expected.tolist()
    for module in (compile_module, interpret_module):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("cutrace.models.replay.schedule.schedule.TOGETHER", 16)
            found = made.order_runs(module(turns.__name__), keys, made.widths, done)
            assert found is not None
            parts = list(found)
        assert len(parts) == len({(w, i, s // ISSUE_SLOT) for w, i, s, *_ in told if w < done})
        assert np.concatenate(parts).tolist() == expected.tolist()


def test_rows_that_come_one_by_one_are_not_put_in_order_as_runs() -> None:
    """Each row is of another turn than the one before."""
    made = make(SCHEDULES[0], 4, 2)
    assert made.widths is not None
    keys = [turns.key_of(0, 0, step % 2 * ISSUE_SLOT, 0, 0, made.widths) for step in range(64)]
    loops = compile_module(turns.__name__)
    assert made.order_runs(loops, np.array(keys), made.widths, 1) is None


def test_short_keys_say_the_same_as_long_ones() -> None:
    """Two waves of two blocks; 30 bits more for the wave leave none for turns."""
    made = make(SCHEDULES[0], 4, 1, 2, intervals=Barriers(3))
    short, long = made.short_widths, made.widths
    assert short is not None
    assert long is not None
    for wave, interval, since, turn in product((0, 1), (0, 3), (0, 9), (1, 3)):
        place = wave, interval, since, turn, 0
        key = turns.key_of(*place, short)
        assert key < 1 << 32
        assert turns.lengthen(key, short, long.turn - short.turn) == turns.key_of(*place, long)
    assert replace(made, wave=made.wave << 30).short_widths is None


def test_an_order_that_no_key_says_has_none() -> None:
    """Warps that run alone, and a grid of 2 ** 59 waves."""
    assert make(SCHEDULES[1], 4, 2).widths is None
    few = make(SCHEDULES[0], 4, 2)
    assert replace(few, wave=few.wave << 58).widths is None


def test_seats_are_mixed_and_the_same_on_every_machine() -> None:
    assert sorted(shuffle(64).tolist()) == list(range(64))
    assert shuffle(64).tolist() != list(range(64))
    assert shuffle(1).tolist() == [0]
