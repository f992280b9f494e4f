"""Marks of the words that rows reach, on rows written by hand."""

import numpy as np
import pytest

from cutrace.tracer.engine.parallel.read_write_sets import Marks, do_clash, way_of
from cutrace.tracer.engine.rows.pattern_table import PatternStore

SIZE = 1 << 12
FULL = (1 << 32) - 1


def marked(opcode: str, width: int, base: int, offsets: list[int], active: int = FULL) -> Marks:
    """The marks of one access of `width` bytes a lane."""
    marks = Marks(np.array([0, way_of(opcode, width)], np.int32), SIZE)
    marks.begin_wave()
    store = PatternStore()
    lanes = np.zeros((1, 32), np.int32)
    lanes[0, : len(offsets)] = offsets
    number = store.find(np.array([active], np.uint32), lanes).astype(np.uint32)
    two = np.array([0, 1], np.uint32)  # the first row's instruction reaches no global memory
    bases = np.array([0, base], np.uint64)
    marks.mark(two, bases, np.repeat(number, 2), store.table)
    return marks


def words(bits: np.ndarray) -> list[int]:
    """The words that are marked."""
    return np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")).tolist()


@pytest.mark.parametrize(
    ("width", "base", "offsets", "active", "expected"),
    [
        (4, 128, [4 * n for n in range(32)], FULL, list(range(32, 64))),
        (4, 120, [4 * n for n in range(32)], FULL, list(range(30, 62))),
        (16, 0, [16 * n for n in range(32)], FULL, list(range(128))),
        (1, 3, list(range(32)), FULL, list(range(9))),  # bytes 3 to 34: words 0 to 8
        (4, 400, [0] * 32, FULL, [100]),
        (4, 400, [0, 4, 4, 8], 0b1111, [100, 101, 102]),
        (4, 400, [0, 8], 0b11, [100, 102]),
        (8, 400, [0, 4], 0b11, [100, 101, 102]),
        (4, 400, [0, -400, 1200], 0b111, [0, 100, 400]),
        (4, 0, [0, 1 << 10, 2 << 10], 0b111, [0, 256, 512]),
        (2, 6, [0, 2, 4, 8], 0b1111, [1, 2, 3]),  # bytes 6-7, 8-9, 10-11, 14-15
    ],
)
def test_the_words_under_active_lanes_are_marked(
    width: int, base: int, offsets: list[int], active: int, expected: list[int]
) -> None:
    marks = marked("ld", width, base, offsets, active)
    assert words(marks.reads) == expected
    assert words(marks.writes) == []
    assert words(marked("st", width, base, offsets, active).writes) == expected
    assert words(marked("red", width, base, offsets, active).updates) == expected


def test_what_is_read_and_written_by_several_clashes() -> None:
    def at(opcode: str, base: int) -> Marks:
        return marked(opcode, 4, base, [0], 1)

    assert not do_clash([at("ld", 0), at("ld", 0), at("ld", 0)])
    assert do_clash([at("ld", 0), at("ld", 4), at("st", 4)])
    assert do_clash([at("st", 0), at("ld", 4), at("ld", 0)])
    assert do_clash([at("st", 8), at("st", 8)])
    assert not do_clash([at("st", 8), at("st", 12), at("ld", 16)])
    assert not do_clash([at("red", 8), at("atom", 8), at("red", 8)])
    assert do_clash([at("red", 8), at("ld", 8)])
    assert do_clash([at("ld", 8), at("red", 8)])
    assert do_clash([at("red", 8), at("st", 8)])
    assert do_clash([at("st", 8), at("red", 8)])
