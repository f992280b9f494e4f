"""What L1 of an H200 found of lines that were read in turn and of stores, beside ours.

From scripts/capture/counters.py over tests/validate/caches/{sets,stores,bursts}.cu. Stores that
follow one another without a pause are up to time, and are not held to the chip.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import cutrace
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.tracer.session.source.record import record

FOLDER = Path(__file__).parent / "caches"
HITS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}_lookup_hit.sum"
LINES = 1728
"""What L1 has beside 32 KB of shared memory."""

Rows = Sequence[Mapping[str, str]]


def read(name: str) -> Rows:
    """Return the rows of a table of what the chip counted."""
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


def count(source: str, folder: Path) -> Sequence[LaunchProfile]:
    """Record and count all launches of a source."""
    path = record(FOLDER / source, [], folder / "t.cutrace")
    return cutrace.analyze(cutrace.read_trace(path), "h200").launches


def test_half_of_what_l1_holds_is_found_again_at_any_stride(tmp_path: Path) -> None:
    rows, ours = read("h200_sets.csv"), count("sets.cu", tmp_path)
    assert len(rows) == len(ours)
    told = [
        (int(row["hits"]), each.counters[HITS.format("ld")])
        for row, each in zip(rows, ours, strict=True)
        if int(row["lines"]) <= LINES // 2 and int(row["carveout"]) == 32768
    ]
    assert len(told) > 40
    assert [pair for pair in told if not 0.98 * pair[0] <= (pair[1] or 0) <= pair[0]] == []


@pytest.mark.parametrize(
    ("source", "kernels"),
    [("stores.cu", ("twice", "in_turn", "all_warps")), ("bursts.cu", ("later",))],
)
def test_stores_find_their_lines_as_on_the_chip(
    source: str, kernels: Sequence[str], tmp_path: Path
) -> None:
    rows = [row for row in read("h200_stores.csv") if row["source"] == source]
    told = [
        (row["kernel"], int(row["number"]), int(row["hits"]), each.counters[HITS.format("st")] or 0)
        for row, each in zip(rows, count(source, tmp_path), strict=True)
        if row["kernel"] in kernels and int(row["sectors"]) <= 4 * LINES  # of more lines, some stay
    ]
    assert {kernel for kernel, *_ in told} == set(kernels)
    assert [t for t in told if abs(t[2] - t[3]) > 0.01 * t[2]] == []
