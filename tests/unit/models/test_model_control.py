from pathlib import Path

import pytest
from hand_trace import hand_trace, instruction, launch
from warps import FULL

from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.histogram import accesses
from cutrace.models.replay.histogram import counts as ledger
from cutrace.models.replay.histogram.counts import LaunchCounts
from cutrace.models.replay.replay import replay

HALF = 0xFFFF
KERNEL = [
    instruction(0, "ld.param.u64", space="param", bytes=8, block=0),
    instruction(1, "mov.u32", bytes=0, block=0),
    instruction(2, "setp.lt.s32", bytes=0, block=0),
    instruction(3, "bra", predicate="%p1", bytes=0, block=0),
    instruction(4, "add.s32", bytes=0, block=1),
    instruction(5, "bra.uni", bytes=0, block=1),
    instruction(6, "sub.s32", predicate="%p2", bytes=0, block=2),
    instruction(7, "bar.sync", barrier=0, bytes=0, block=3),
    instruction(8, "ret", bytes=0, block=4),
]
BOTH_WAYS = [
    (0, FULL, HALF, 2, 1),
    (1, FULL ^ HALF, FULL ^ HALF, 1, 1),
    (2, HALF, 0, 0, 1),
    (3, FULL, 0, 0, 1),
    (4, FULL, 0, 0, 1),
]
ALL_TAKEN = [(0, FULL, FULL, 1, 1), (2, FULL, 0, 0, 1), (3, FULL, 0, 0, 1), (4, FULL, 0, 0, 1)]


def count(
    path: Path, control: list[tuple[int, int, int, int]], device: str = "h100"
) -> LaunchCounts:
    """Replay a launch of 20 blocks of 64 threads that took these paths."""
    trace = hand_trace(
        path / "a.cutrace",
        launch=launch(grid=(20, 1, 1), block=(64, 1, 1)),
        instructions=KERNEL,
        paths=[BOTH_WAYS, ALL_TAKEN],
        control=control,
    )
    return replay(trace.launches[0], [load_device(device)])[0]


def by_pc(counts: LaunchCounts, name: str) -> dict[int, int]:
    """A counter's total for each pc where it is not zero."""
    table = counts.counts.drop("array", "scope").group_by("pc").sum().sort("pc")
    return {pc: n for pc, n in table.select("pc", name).iter_rows() if n}


def test_instructions_leave_out_what_an_assembler_removes(tmp_path: Path) -> None:
    counts = count(tmp_path, [(0, 0, 0, 0)])
    assert by_pc(counts, "ptx_instructions") == dict.fromkeys(range(9), 1)
    assert by_pc(counts, "instructions") == dict.fromkeys((2, 3, 4, 6, 7, 8), 1)


def test_thread_instructions_are_active_lanes(tmp_path: Path) -> None:
    counts = count(tmp_path, [(0, 0, 0, 0)])
    full, half = dict.fromkeys((0, 1, 2, 3, 7, 8), 32), dict.fromkeys((4, 5, 6), 16)
    assert by_pc(counts, "thread_instructions") == full | half


def test_a_branch_whose_lanes_go_both_ways_is_divergent(tmp_path: Path) -> None:
    counts = count(tmp_path, [(0, 0, 0, 0), (0, 1, 0, 1)])
    assert by_pc(counts, "branches") == {3: 2}
    assert by_pc(counts, "branches_taken") == {3: 2}
    assert by_pc(counts, "divergent_branches") == {3: 1}


def test_paths_are_added_up_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accesses, "ENTRIES", 1)
    counts = count(tmp_path, [(0, 0, 0, 0), (0, 1, 0, 1), (1, 0, 0, 0)])
    # pc 4 is run by the two warps that went both ways, pc 6 by all three
    assert by_pc(counts, "ptx_instructions") == dict.fromkeys((0, 1, 2, 3, 6, 7, 8), 3) | {
        4: 2,
        5: 2,
    }


def test_sums_are_the_same_however_few_entries_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = [(block, 0, 0, block % 2) for block in range(20)]
    before = count(tmp_path, control)
    monkeypatch.setattr(ledger, "FOLDED", 1)
    assert count(tmp_path, control).counts.equals(before.counts)
    assert sum(by_pc(before, "branches").values()) == 20


def test_a_branch_that_no_lane_takes_is_a_branch_not_taken(tmp_path: Path) -> None:
    trace = hand_trace(
        tmp_path / "a.cutrace",
        instructions=KERNEL,
        paths=[[(0, FULL, 0, 1, 7)]],
        control=[(0, 0, 0, 0)],
    )
    counts = replay(trace.launches[0], [load_device("h100")])[0]
    assert by_pc(counts, "branches") == {3: 7}
    assert by_pc(counts, "branches_taken") == {}
    assert by_pc(counts, "ptx_instructions") == dict.fromkeys(range(4), 7)


def test_barriers_count_a_warp_each(tmp_path: Path) -> None:
    assert by_pc(count(tmp_path, [(0, 0, 0, 0), (0, 1, 0, 1)]), "barriers") == {7: 2}


def test_an_indexed_branch_is_conditional(tmp_path: Path) -> None:
    trace = hand_trace(
        tmp_path / "a.cutrace",
        instructions=[instruction(0, "brx.idx", bytes=0)],
        paths=[[(0, FULL, FULL, 3, 1)]],
        control=[(0, 0, 0, 0)],
    )
    counts = replay(trace.launches[0], [load_device("k20")])[0]
    assert by_pc(counts, "branches") == by_pc(counts, "divergent_branches") == {0: 1}


def test_what_is_launched_follows_from_the_launch(tmp_path: Path) -> None:
    counts = count(tmp_path, [])
    assert by_pc(counts, "blocks_launched") == {0: 20}
    assert by_pc(counts, "warps_launched") == {0: 40}
    assert by_pc(counts, "threads_launched") == {0: 1280}


def test_control_is_split_into_scopes(tmp_path: Path) -> None:
    counts = count(tmp_path, [(block, 0, 0, 1) for block in range(20)], "8800gtx")
    table = counts.counts.drop("array").group_by("scope").sum()
    found = dict(table.select("scope", "barriers").iter_rows())
    assert found == {"sm": 2, "cluster": 1, "rest": 17}  # cluster 0 of 8 has 0, 8, 16
    launched = dict(table.select("scope", "blocks_launched").iter_rows())
    assert launched == found
