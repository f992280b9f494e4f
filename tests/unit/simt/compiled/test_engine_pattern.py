"""The dictionary of patterns follows from the rows alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cutrace.tracer.simt.rows import pattern
from cutrace.tracer.simt.rows.pattern import PatternTable


class Sink:
    """Keeps the patterns that it is given."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int]] = []

    def put(self, table: str, **columns: Any) -> int:
        assert table == "patterns"
        first, active, offsets = len(self.rows), columns["active"], columns["offsets"]
        self.rows += [(int(a), int(o[1])) for a, o in zip(active, offsets, strict=True)]
        return first


def stride(*strides: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    lanes = np.arange(32, dtype=np.int32)
    return np.full(len(strides), 0xFFFFFFFF, np.uint32), np.outer(strides, lanes).astype(np.int32)


def numbered(
    table: PatternTable, active: NDArray[np.uint32], offsets: NDArray[np.int32]
) -> NDArray[np.uint32]:
    """The numbers of patterns as rows have them."""
    return table.store.find(active, offsets).astype(np.uint32)


def test_identifiers_follow_the_order_of_the_rows_not_that_of_the_lookups() -> None:
    table, sink = PatternTable(), Sink()
    numbers = numbered(table, *stride(4, 8, 12, 16))
    rows = numbers[[2, 0, 2, 1]]
    assert table.write(rows, sink).tolist() == [0, 1, 0, 2]
    assert [offset for _, offset in sink.rows] == [12, 4, 8]


def test_equal_patterns_have_one_number_however_many_there_are() -> None:
    table = PatternTable()
    strides = [4 * (n % 3000) for n in range(9000)]
    numbers = numbered(table, *stride(*strides))
    assert len(set(numbers.tolist())) == 3000
    np.testing.assert_array_equal(numbers[:3000], numbers[6000:])
    np.testing.assert_array_equal(numbered(table, *stride(*strides[:5000])), numbers[:5000])


def test_an_epoch_ends_when_a_batch_has_named_enough(monkeypatch: Any) -> None:
    monkeypatch.setattr(pattern, "EPOCH", 3)
    table, sink = PatternTable(), Sink()
    table.waves = 1
    first = table.write(numbered(table, *stride(4, 8, 12, 16)), sink)
    again = table.write(numbered(table, *stride(16, 4)), sink)
    assert (first.tolist(), again.tolist()) == ([0, 1, 2, 3], [4, 5])
    assert table.epoch == 1
    assert table.write(numbered(table, *stride(4)), sink).tolist() == [5]


def test_rows_of_another_wave_keep_their_numbers_over_an_epoch(monkeypatch: Any) -> None:
    monkeypatch.setattr(pattern, "EPOCH", 2)
    table, sink = PatternTable(), Sink()
    table.waves = 2
    waiting = numbered(table, *stride(20, 8))
    table.write(numbered(table, *stride(4, 8, 12)), sink)
    assert table.epoch == 1
    assert table.write(waiting, sink).tolist() == [3, 1]
    assert sink.rows[3] == (0xFFFFFFFF, 20)


def test_the_next_launch_counts_from_nothing() -> None:
    table, sink = PatternTable(), Sink()
    for _ in range(2):
        sink.rows.clear()
        found = table.write(numbered(table, *stride(4, 8, 4)), sink)
        assert found.tolist() == [0, 1, 0]
        assert sink.rows == [(0xFFFFFFFF, 4), (0xFFFFFFFF, 8)]
        table.begin_launch()
