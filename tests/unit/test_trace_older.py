"""Traces of version 1, whose paths hold the lanes that took a branch."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hand_trace import Access, Entry, hand_trace, instruction
from warps import FULL, warp

from cutrace.errors import CutraceError
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.schema import FORMAT_VERSION, PATHS
from cutrace.traces.verify import verify

CODE = [instruction(0), instruction(1, "bra", predicate="%p1"), instruction(2, "ret", block=1)]
ENTRIES: list[Entry] = [
    (0, FULL, 0xFF, 2, 1),  # lanes 0 to 7 take the branch
    (0, 0xF0, 0xF0, 1, 2),  # lanes 4 to 7 are active and all do, twice
    (0, FULL, 0, 1, 1),  # none does
    (1, FULL, 0, 0, 1),  # no branch
]


def version_1(folder: Path, **taken: list[int]) -> Trace:
    """A trace of one warp that ran ENTRIES, as version 1 has it; its column `taken` may be told."""
    trace = hand_trace(
        folder / "x.cutrace",
        [Access(warp())],
        instructions=CODE,
        paths=[ENTRIES],
        control=[(0, 0, 0, 0)],
    )
    names = ["blocks", "active", "taken", "targets", "repeat"]
    columns = dict(zip(names, map(list, zip(*ENTRIES, strict=True)), strict=True)) | taken
    fields = [PATHS.field(place).with_name(name) for place, name in enumerate(names)]
    batch = pa.RecordBatch.from_pylist([columns], pa.schema(fields))
    with pa.ipc.new_file(str(trace.path / "0" / "paths.arrow"), batch.schema) as file:
        file.write_batch(batch)
    set_version(trace, 1)
    return read_trace(trace.path)


def set_version(trace: Trace, version: int) -> None:
    path = trace.path / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"format_version": version}))


def test_lanes_that_took_a_branch_are_read_as_those_that_did_not(tmp_path: Path) -> None:
    trace = version_1(tmp_path)
    (row,) = trace.launches[0].paths().to_pylist()
    assert row["not_taken"] == [FULL & ~0xFF, 0, FULL, 0]
    assert row["active"] == [FULL, 0xF0, FULL, FULL]
    assert row["repeat"] == [1, 2, 1, 1]
    assert trace.launches[0].paths().schema == PATHS
    assert verify(trace) == []


def test_paths_that_are_asked_for_one_by_one_are_read_so_too(tmp_path: Path) -> None:
    hand_trace(tmp_path / "new.cutrace", instructions=CODE, paths=[ENTRIES])
    new = read_trace(tmp_path / "new.cutrace").launches[0].path_store()
    old = version_1(tmp_path).launches[0].path_store()
    rows = [next(store.parts(np.array([0]))).batch.to_pylist() for store in (new, old)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("taken", "finding"),
    [
        ([0xFF, 0x1F0, 0, 0], "entry 1: inactive lanes do not take its branch"),
        ([0xFF, 0xF0, 0, 1], "entry 3: a branch that leads nowhere"),
    ],
)
def test_what_is_unsound_in_version_1_is_found(
    tmp_path: Path, taken: list[int], finding: str
) -> None:
    assert finding in "".join(verify(version_1(tmp_path, taken=taken)))


def test_lists_of_different_lengths_are_refused(tmp_path: Path) -> None:
    trace = version_1(tmp_path, taken=[0xFF, 0xF0, 0])
    with pytest.raises(CutraceError, match=r"paths\.arrow: .*`active` and `taken` have different"):
        trace.launches[0].paths()


def test_each_version_has_its_own_column(tmp_path: Path) -> None:
    trace = version_1(tmp_path)
    set_version(trace, FORMAT_VERSION)
    with pytest.raises(CutraceError, match=r"paths\.arrow: .*its columns are .*'taken'"):
        read_trace(trace.path).launches[0].paths()
