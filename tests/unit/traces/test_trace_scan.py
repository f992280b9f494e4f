"""Several traces as one lazy frame."""

from pathlib import Path

import polars as pl
import pytest
from hand_trace import Access, hand_trace, launch, write_rows
from warps import warp

from cutrace import scan_traces
from cutrace.base.errors import CutraceError
from cutrace.traces.writer import TraceWriter


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    """A folder with two launches, of one load and of two, and an archive with one of three."""
    first, second = tmp_path / "a.cutrace", tmp_path / "b.cutrace.zip"
    with TraceWriter(first) as made:
        for loads in (1, 2):
            with made.launch(launch()) as rows:
                write_rows(rows, [Access(warp(stride=4), step=n) for n in range(loads)])
    hand_trace(second, [Access(warp(stride=8), step=n) for n in range(3)])
    return [first, second]


def test_rows_of_several_traces_are_told_apart_by_trace_and_launch(traces: list[Path]) -> None:
    first, second = map(str, traces)
    found = scan_traces(traces).group_by("trace", "launch", maintain_order=True).len().collect()
    assert found.rows() == [(first, 0, 1), (first, 1, 2), (second, 0, 3)]
    offsets = scan_traces(traces, "patterns").select("trace", pl.col("offsets").arr.get(1))
    assert set(offsets.collect().rows()) == {(first, 4), (second, 8)}


def test_a_table_that_there_is_not_names_the_nearest(traces: list[Path]) -> None:
    with pytest.raises(CutraceError, match="no table 'acesses'; nearest: accesses"):
        scan_traces(traces, "acesses")
    with pytest.raises(CutraceError, match="no trace is given"):
        scan_traces([])
