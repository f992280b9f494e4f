"""Histories of warps that are equal share a path, the first of them standing for all."""

import numpy as np

from cutrace.tracer.simt.rows.buffers import Buffers
from cutrace.tracer.simt.rows.history import Entries, PathTable, Shared
from cutrace.tracer.simt.rows.pattern import NONE, name_rows

Entry = tuple[int, int, int]


def histories_of(runs: list[tuple[int, Entry]], warps: int, step: int = 2) -> Shared:
    """Give runs (warp, (block, masks, repeat)) to a PathTable; block b has 10 + b instructions,
    and each `step`-th block has a branch."""
    warp, entry = zip(*runs, strict=True)
    block, masks, repeat = zip(*entry, strict=True)
    entries = Entries(
        np.array(warp, dtype=np.int32),
        np.array(block, dtype=np.int32),
        np.array(masks, dtype=np.uint64).view(np.int64),
        np.array(repeat, dtype=np.int32),
    )
    blocks = np.arange(1001, dtype=np.int32)
    branches = (blocks % step == step - 1).astype(np.int32)
    return PathTable(entries, warps, 10 + blocks, branches, Buffers()).share(len(runs))


def shared(*histories: list[Entry]) -> tuple[list[int], list[list[Entry]]]:
    """Give the histories of warps 0, 1 ... to a PathTable; return their paths, and what these
    are."""
    found = histories_of(
        [(warp, entry) for warp, history in enumerate(histories) for entry in history],
        len(histories),
        step=1,
    )
    blocks, active, not_taken, _, repeat = (column.tolist() for column in found.columns)
    masks = [(a << 32) | (a ^ n) for a, n in zip(active, not_taken, strict=True)]
    flat = list(zip(blocks, masks, repeat, strict=True))
    ends = np.cumsum(found.lengths).tolist()
    paths = [flat[end - n : end] for end, n in zip(ends, found.lengths.tolist(), strict=True)]
    return found.path.tolist(), paths


def test_equal_histories_share_a_number_in_order_of_the_first() -> None:
    a, b = [(0, 7, 1), (2, 7, 9)], [(0, 7, 1)]
    assert shared(b, a, b, a, a) == ([0, 1, 0, 1, 1], [b, a])


def test_histories_that_differ_in_one_number_are_apart() -> None:
    entries = [(0, 7, 1), (1, 7, 1), (0, 8, 1), (0, 7, 2)]
    alone = [[entry] for entry in entries]
    assert shared(*alone) == ([0, 1, 2, 3], alone)
    two, turned = entries[:2], entries[1::-1]
    assert shared(two, turned) == ([0, 1], [two, turned])


def test_runs_of_warps_in_turns_are_put_in_order_and_equal_neighbours_joined() -> None:
    a, b = (4, 15 << 32, 1), (5, 15 << 32 | 3, 2)
    found = histories_of([(2, a), (0, b), (2, a), (0, a), (2, b), (0, a)], warps=3)
    assert found.path.tolist() == [0, -1, 1]
    assert found.steps.tolist() == [2 * 15 + 2 * 14, 0, 2 * 14 + 2 * 15]
    assert found.lengths.tolist() == [2, 2]
    blocks, active, not_taken, targets, repeat = (column.tolist() for column in found.columns)
    assert (blocks, repeat) == ([5, 4, 4, 5], [2, 2, 2, 2])
    assert (active, not_taken) == ([15] * 4, [15 & ~3, 0, 0, 15 & ~3])
    assert targets == [2, 0, 0, 2]  # lanes 0 and 1 of block 5 went one way, 2 and 3 the other


def test_a_branch_that_all_lanes_took_or_none_has_one_target() -> None:
    runs = [(0, (1, mask << 32 | taken, 1)) for mask, taken in ((7, 7), (7, 0), (0xFFFFFFFF, 1))]
    assert histories_of(runs, 1).columns[3].tolist() == [1, 1, 2]


def test_many_histories_find_their_own_among_others_in_the_way() -> None:
    histories = [[(k % 1000, 1, 1)] for k in range(5000)]
    path, paths = shared(*histories)
    assert path == [k % 1000 for k in range(5000)]
    assert paths == histories[:1000]


def test_rows_name_patterns_in_the_order_in_which_they_come() -> None:
    identifiers = np.array([4, NONE, NONE, NONE], dtype=np.uint32)
    names, fresh = name_rows(np.array([3, 0, 1, 3, 1], dtype=np.uint32), identifiers, first=5)
    assert names.tolist() == [5, 4, 6, 5, 6]
    assert fresh.tolist() == [3, 1]
    assert identifiers.tolist() == [4, 6, NONE, 5]
