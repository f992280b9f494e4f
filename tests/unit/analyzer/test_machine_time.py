"""A warp's time in machine code: blocks, loops and scoreboards by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from cutrace.analyzer.machine.machine_code import (
    LeastCode,
    MachineCode,
    count_runs,
    machine_mix,
    pipe_cycles,
    read_machine_code,
)
from cutrace.analyzer.time.chain import MachineWarp, Operands, Step
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.device.measured import load_measured
from cutrace.traces.machine_schedule import NO_SCOREBOARD, Scheduled, pack_schedule

LOAD, ADD, LOGIC, BRANCH, EXIT, BARRIER = 0x181, 0x021, 0x012, 0x147, 0x14D, 0x11D
COUNTER, PRODUCT = 0x010, 0x03C
CALL, RETURN, LOAD_SHARED, STORE_SHARED = 0x144, 0x150, 0x184, 0x188
LATENCY, TAKEN = 30.0, 7.0


def one(
    pc: int, operation: int, stall: int, sets: int = NO_SCOREBOARD, waits: int = 0, target: int = -1
) -> Scheduled:
    guarded = int(target >= 0)
    return Scheduled(pc, operation, stall, sets, NO_SCOREBOARD, waits, guarded, target)


def made(code: Sequence[Scheduled]) -> MachineCode:
    found = read_machine_code(pack_schedule(code))
    assert found
    return found


def cycles(
    code: MachineCode, history: Sequence[tuple[int, int]], block_of: dict[int, int]
) -> float:
    times, entries = count_runs(code, history, block_of)
    return MachineWarp(code, times, entries, {}, lambda *_: (LATENCY, "l1"), TAKEN).run().cycles


def test_a_reader_waits_for_the_scoreboard_of_what_it_reads() -> None:
    """The load starts at 0 and is there at 30; the sum waits for it and takes 4."""
    code = made([one(0, LOAD, 2, sets=1), one(1, ADD, 4, waits=0b10), one(2, EXIT, 5)])
    assert cycles(code, [(0, 1)], {0: 0, 1: 0, 2: 0}) == 30 + 4


def test_one_that_waits_for_nothing_starts_when_the_one_before_lets_it() -> None:
    code = made([one(0, LOAD, 2, sets=1), one(1, ADD, 4), one(2, EXIT, 5)])
    assert cycles(code, [(0, 1)], {0: 0, 1: 0, 2: 0}) == 2 + 4


@pytest.mark.parametrize("times", [1, 2, 3, 10, 1000])
def test_a_loop_takes_its_rounds(times: int) -> None:
    """Each of its rounds waits for its own load; all but the last go back."""
    code = made([
        one(0, ADD, 6),
        one(1, LOAD, 1, sets=0),
        one(2, ADD, 4, waits=1),
        one(3, BRANCH, 5, target=1),
        one(4, EXIT, 5),
    ])  # fmt: skip
    whole = 6 + times * (30 + 4 + 5) + (times - 1) * TAKEN
    history = [(0, 1), (1, times), (2, 1)]
    assert cycles(code, history, {0: 0, 1: 1, 2: 1, 3: 1, 4: 2}) == whole


def test_a_loop_that_was_unrolled_takes_the_rounds_that_it_can() -> None:
    """Of ten rounds four at a time run twice, the other two in the loop behind."""
    code = made([
        *(one(0, LOAD, 1, sets=0), one(0, LOAD, 1, sets=0)),
        *(one(0, LOAD, 1, sets=0), one(0, LOAD, 1, sets=0)),
        *(one(1, ADD, 4, waits=1), one(1, ADD, 4), one(1, ADD, 4), one(1, ADD, 4)),
        one(2, BRANCH, 5, target=0),
        *(one(0, LOAD, 1, sets=0), one(1, ADD, 4, waits=1), one(2, BRANCH, 5, target=9)),
        one(3, EXIT, 5),
    ])  # fmt: skip
    times, _ = count_runs(code, [(0, 10), (1, 1)], {0: 0, 1: 0, 2: 0, 3: 1})
    assert times == {0: 2, 1: 2, 2: 1}
    four = 3 + 30 + 4 * 4 + 5  # the last load starts after 3 cycles
    whole = 2 * four + TAKEN + 2 * (30 + 4 + 5) + TAKEN
    assert cycles(code, [(0, 10), (1, 1)], {0: 0, 1: 0, 2: 0, 3: 1}) == whole


def test_an_unrolled_loop_of_several_blocks_takes_the_rounds_that_it_can() -> None:
    """A barrier parts the loop into blocks 1 and 2. Of 34 rounds four at a time run eight times,
    each copy with its barrier, the other two in the loop behind; a second visit is one more.
    """
    body = [one(1, LOAD, 1, sets=0), one(2, BARRIER, 5), one(3, ADD, 4, waits=1)]
    code = made([
        one(0, ADD, 4),
        *body * 4,
        one(4, BRANCH, 5, target=1),
        *body,
        one(4, BRANCH, 5, target=14),
        one(5, EXIT, 5),
    ])  # fmt: skip
    block_of = {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 5: 3}
    visit = [(1, 1), (2, 1)] * 34
    times, entries = count_runs(code, [(0, 1), *visit, (3, 1)], block_of)
    assert (times[1], times[2], entries[1]) == (8, 2, 1)
    mix = machine_mix(code, times)
    assert [mix[each] for each in (LOAD, BARRIER, ADD)] == [34, 34, 1 + 34]
    assert mix[BRANCH] == 8 + 2


def test_an_unrolled_loop_is_known_though_its_counter_stands_at_another_pc() -> None:
    """pc 2 became two instructions in each of four copies; the loop's counter has its pc, too."""
    two = [one(2, ADD, 4), one(2, LOGIC, 4)]
    code = made([
        *[one(0, LOAD, 1, sets=0)] * 4,
        *[one(1, ADD, 4, waits=1)] * 4,
        *two * 4,
        *(one(2, COUNTER, 4), one(3, COUNTER, 4), one(4, BRANCH, 5, target=0)),
        *(one(0, LOAD, 1, sets=0), one(1, ADD, 4, waits=1), *two, one(4, BRANCH, 5, target=19)),
        one(5, EXIT, 5),
    ])  # fmt: skip
    times, _ = count_runs(code, [(0, 18), (1, 1)], dict.fromkeys(range(5), 0) | {5: 1})
    assert (times[0], times[1]) == (4, 2)
    assert machine_mix(code, times)[LOAD] == 18


def test_a_block_that_runs_at_times_takes_its_share() -> None:
    """Eight of sixteen rounds go through the block in the midst."""
    code = made([
        one(0, ADD, 4),
        one(1, BRANCH, 5, target=3),
        one(2, ADD, 10),
        one(3, BRANCH, 5, target=0),
        one(4, EXIT, 5),
    ])  # fmt: skip
    history = [(0, 1), (1, 1), (2, 1), (0, 1), (2, 1)] * 8 + [(3, 1)]
    times, _ = count_runs(code, history, {0: 0, 1: 0, 2: 1, 3: 2, 4: 3})
    assert times == {0: 16, 1: 8, 2: 16, 3: 1}
    round_ = 4 + 5 + 10 / 2 + 5
    found = cycles(code, history, {0: 0, 1: 0, 2: 1, 3: 2, 4: 3})
    assert found == pytest.approx(16 * round_ + 15 * TAKEN)


def test_a_loop_runs_as_often_as_the_branch_at_its_head_though_other_code_moved_there() -> None:
    """Beside the branch, the head has where lanes meet, and what was computed before the loop."""
    code = made([
        one(0, ADD, 4),
        *(one(0, ADD, 2), one(0, 0x145, 2), one(1, BRANCH, 5, target=5)),
        one(2, ADD, 10),
        one(3, BRANCH, 5, target=1),
        one(4, EXIT, 5),
    ])  # fmt: skip
    history = [(0, 1), *[(1, 1), (2, 1), (3, 1)] * 64, (4, 1)]
    times, _ = count_runs(code, history, {pc: pc for pc in range(5)})
    assert times == {0: 1, 1: 64, 2: 64, 3: 64, 4: 1}


def test_a_routine_of_each_division_runs_as_often_as_it_is_called() -> None:
    """Once for each of 16 divisions, here from two blocks; without `routines` it never does."""
    code = [
        *(one(0, ADD, 4), one(1, CALL, 4, target=5)),
        *(one(2, CALL, 4, target=5), one(3, BRANCH, 5, target=1), one(4, EXIT, 5)),
        *(one(9, LOGIC, 6), one(9, RETURN, 5)),
    ]
    history = [(0, 1), *[(1, 1), (2, 1), (3, 1)] * 8, (4, 1)]
    block_of = {pc: pc for pc in range(5)}
    found = read_machine_code(pack_schedule(code), frozenset(), frozenset({1, 2}))
    assert found
    times, _ = count_runs(found, history, block_of)
    assert machine_mix(found, times)[LOGIC] == 16
    rare, _ = count_runs(made(code), history, block_of)
    assert LOGIC not in machine_mix(made(code), rare)


def test_a_warp_waits_two_cycles_for_each_pass_of_its_access_before() -> None:
    code = made([
        one(0, STORE_SHARED, 2),
        one(1, LOAD_SHARED, 2, sets=0),
        one(2, ADD, 4, waits=1),
        one(3, EXIT, 5),
    ])  # fmt: skip
    times, entries = count_runs(code, [(0, 1)], {pc: 0 for pc in range(4)})

    def took(queue: float) -> float:
        store = Step(0, Operands((), ()), 0, 1, "", stores=True, queue=queue)
        steps, latency = {0: store}, lambda *_: (LATENCY, "shared")
        return MachineWarp(code, times, entries, steps, latency, TAKEN).run().cycles

    assert took(0) == 2 + LATENCY + 4
    assert took(2 * 31) == 2 * 31 + LATENCY + 4


MISS = 500.0
"""Cycles that a miss takes longer than a hit."""


def test_a_warp_begins_a_product_when_its_tensor_pipe_is_free() -> None:
    """One every 32 cycles: an SM has four such pipes, and a warp always the same one."""
    code = made([one(0, PRODUCT, 2), one(0, PRODUCT, 2), one(1, ADD, 4), one(2, EXIT, 5)])
    times, entries = count_runs(code, [(0, 1)], {0: 0, 1: 0, 2: 0})
    warp = MachineWarp(code, times, entries, {}, lambda *_: (0.0, ""), TAKEN, 32.0)
    assert warp.run().cycles == 32 + 2 + 4


def missing(code: MachineCode, shares: dict[int, float]) -> float:
    """Return the cycles of code whose loads, by pc, miss in these shares of their executions."""
    times, entries = count_runs(code, [(0, 1)], {pc: 0 for pc in range(4)})
    steps = {
        pc: Step(pc, Operands((), ()), LATENCY + share * MISS, 1, "dram", True)
        for pc, share in shares.items()
    }
    steps = {pc: replace(step, misses=((shares[pc], MISS, "dram"),)) for pc, step in steps.items()}

    def latency(operation: int, pc: int) -> tuple[float, str]:
        return (steps[pc].hit_latency, "dram") if operation == LOAD else (0.0, "")

    return MachineWarp(code, times, entries, steps, latency, TAKEN).run().cycles


@pytest.mark.parametrize("share", [0.0, 0.125, 0.25, 0.5, 1.0])
def test_copies_of_a_load_wait_where_one_of_them_misses(share: float) -> None:
    """Four copies in flight, two on each scoreboard: any that misses is waited for, once."""
    loads = [one(0, LOAD, 2, sets=number // 2) for number in range(4)]
    code = made([*loads, one(1, ADD, 4, waits=0b01), one(2, ADD, 4, waits=0b10), one(3, EXIT, 5)])
    hits, waits = missing(code, {0: 0.0}), min(1.0, 4 * share) * MISS
    # the last two begin and are waited for some cycles later than the first two
    assert missing(code, {0: share}) == pytest.approx(hits + waits, abs=8)


def test_loads_of_two_arrays_miss_together() -> None:
    code = made([
        one(0, LOAD, 2, sets=0),
        one(1, LOAD, 2, sets=1),
        one(2, ADD, 4, waits=0b11),
        one(3, EXIT, 5),
    ])  # fmt: skip
    hits, both = missing(code, {0: 0.0, 1: 0.0}), missing(code, {0: 0.25, 1: 0.25})
    assert both == pytest.approx(hits + 0.25 * MISS, abs=4)
    assert missing(code, {0: 0.25, 1: 0.5}) == pytest.approx(hits + 0.5 * MISS, abs=4)


def test_two_instructions_of_ptx_that_became_one_are_issued_once() -> None:
    """A loop of three instructions and a branch; the second went into the third, a LOP3."""
    code = made([
        one(0, ADD, 4),
        one(2, LOGIC, 4),
        one(3, LOGIC, 4),
        one(4, BRANCH, 5, target=1),
        one(5, EXIT, 5),
    ])  # fmt: skip
    least = LeastCode(code, {0: 0, 1: 1, 2: 1, 3: 1, 4: 1, 5: 2})
    ran = {0: 8, **dict.fromkeys((1, 2, 3, 4), 8 * 64), 5: 8}
    assert least.issued(ran) == 8 + 8 * 64 * 3 + 8
    assert [least.does(pc, "lanes_single") for pc in range(6)] == [True, False, *[True] * 4]


def test_an_unrolled_loop_issues_its_counter_once_for_all_copies() -> None:
    """Four copies of two instructions share a counter and a branch: 10 for 4 rounds."""
    code = made([
        *(one(pc, ADD, 4) for _ in range(4) for pc in (0, 1)),
        *(one(2, LOGIC, 4), one(3, BRANCH, 5, target=0)),
        one(4, EXIT, 5),
    ])  # fmt: skip
    least = LeastCode(code, {0: 0, 1: 0, 2: 0, 3: 0, 4: 1})
    assert least.issued({**dict.fromkeys(range(4), 1024), 4: 1}) == 1024 // 4 * 10 + 1


def test_barriers_of_an_unrolled_loop_tell_how_many_copies_it_has() -> None:
    """Four copies of a barrier alone, with one counter and one branch: 7 for 4 rounds."""
    code = made([
        *(one(0, BARRIER, 4) for _ in range(4)),
        *(one(1, ADD, 4), one(2, LOGIC, 4), one(3, BRANCH, 5, target=0)),
        one(4, EXIT, 5),
    ])  # fmt: skip
    least = LeastCode(code, {0: 0, 1: 0, 2: 0, 3: 0, 4: 1})
    assert least.issued({**dict.fromkeys(range(4), 1024), 4: 1}) == 1024 // 4 * 7 + 1


def test_what_left_its_loop_is_issued_once_for_each_warp() -> None:
    """All that is left of block 1 stands before the loop, whose branch is of block 2."""
    code = made([
        *(one(0, ADD, 4), one(1, ADD, 4)),
        *(one(2, ADD, 4), one(3, BRANCH, 5, target=2)),
        one(4, EXIT, 5),
    ])  # fmt: skip
    least = LeastCode(code, {0: 0, 1: 1, 2: 2, 3: 2, 4: 3})
    assert least.issued({0: 8, 1: 800, 2: 800, 3: 800, 4: 8}) == 8 + 8 + 1600 + 8


def test_double_precision_is_what_the_unit_for_it_does() -> None:
    """A negation that became logic costs that unit nothing."""
    code = made([one(0, LOGIC, 4), one(1, 0x02B, 4), one(2, EXIT, 5)])
    least = LeastCode(code, {0: 0, 1: 0, 2: 0})
    assert [least.does(pc, "lanes_double") for pc in (0, 1)] == [False, True]


def test_code_that_jumps_anywhere_is_left_to_the_ptx() -> None:
    assert read_machine_code("") is None
    assert read_machine_code(pack_schedule([one(0, 0x149, 5), one(1, EXIT, 5)])) is None


def test_pipes_take_what_their_operations_take() -> None:
    """On an H200: 64 lanes a cycle in the ALU, 128 in both halves of FMA, 16 in XU, 4 issued."""
    measured = load_measured(load_device("h200"))
    assert measured
    mix = {0x023: 8.0, 0x024: 2.0, 0x012: 6.0, 0x108: 1.0, 0x181: 3.0}
    found = dict(pipe_cycles(mix, measured))
    assert found["issue slots"] == (8 + 2 + 6 + 1 + 3) / 4
    assert found["FMA pipe"] == pytest.approx((8 + 2) * 32 / 128, rel=0.03)
    assert found["ALU pipe"] == pytest.approx(6 * 32 / 64, rel=0.03)
    assert found["XU pipe"] == pytest.approx(1 * 32 / 16, rel=0.03)
    assert found["FP64 pipe"] == 0


def test_a_warp_issues_what_stands_in_the_blocks_that_it_ran() -> None:
    code = made([one(0, ADD, 4), one(1, BRANCH, 5, target=0), one(2, EXIT, 5), one(2, 0x118, 0)])
    times, _ = count_runs(code, [(0, 7), (1, 1)], {0: 0, 1: 0, 2: 1})
    assert machine_mix(code, times) == {ADD: 7, BRANCH: 7, EXIT: 1}
