"""Histories of warps that are equal share a path, the first of them standing for all."""

import numpy as np

from cutrace.tracer.engine.compiled.history_table import find_alike
from cutrace.tracer.engine.compiled.pattern_table import NONE, name_rows

Entry = tuple[int, int, int]


def shared(*histories: list[Entry]) -> tuple[list[int], list[int]]:
    """Give histories of (block, masks, repeat) to find_alike."""
    lengths = np.array([len(history) for history in histories])
    entries = np.array([entry for history in histories for entry in history])
    path, chosen = find_alike(
        np.cumsum(lengths) - lengths,
        lengths,
        entries[:, 0].astype(np.int32),
        entries[:, 1].astype(np.uint64),
        entries[:, 2],
    )
    return path.tolist(), chosen.tolist()


def test_equal_histories_share_a_number_in_order_of_the_first() -> None:
    a, b = [(0, 7, 1), (2, 7, 9)], [(0, 7, 1)]
    assert shared(b, a, b, a, a) == ([0, 1, 0, 1, 1], [0, 1])


def test_histories_that_differ_in_one_number_are_apart() -> None:
    entries = [(0, 7, 1), (1, 7, 1), (0, 8, 1), (0, 7, 2)]
    assert shared(*([entry] for entry in entries)) == ([0, 1, 2, 3], [0, 1, 2, 3])
    assert shared([entries[0], entries[1]], [entries[1], entries[0]]) == ([0, 1], [0, 1])


def test_many_histories_find_their_own_among_others_in_the_way() -> None:
    histories = [[(k % 1000, 1, 1)] for k in range(5000)]
    path, chosen = shared(*histories)
    assert path == [k % 1000 for k in range(5000)]
    assert chosen == list(range(1000))


def test_rows_name_patterns_in_the_order_in_which_they_come() -> None:
    identifiers = np.array([4, NONE, NONE, NONE], dtype=np.uint32)
    names, fresh = name_rows(np.array([3, 0, 1, 3, 1], dtype=np.uint32), identifiers, first=5)
    assert names.tolist() == [5, 4, 6, 5, 6]
    assert fresh.tolist() == [3, 1]
    assert identifiers.tolist() == [4, 6, NONE, 5]
