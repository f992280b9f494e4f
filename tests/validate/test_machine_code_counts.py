"""Counts of machine code are those that Nsight Compute has on an H100 for the same machine code.

`machine_code.csv` has launches of tests/validate/counters: a hash of the instructions, and counts.
ptxas of this tree made them, and the driver loaded them; another ptxas makes other instructions,
whose launches are not compared. `counted_by_code` is the profiler's count of warp instructions by
added code; of divergent kernels its counter in hardware differs from it, from one run to the next.
"""

import csv
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from silicon.launches import FOLDER, OPTIONS, TARGET, TIMED

import cutrace
from cutrace.tracer.front.toolkit import find_file
from cutrace.tracer.session.record_options import RecordOptions, default_options
from cutrace.tracer.session.source.record import record
from cutrace.traces.reader import LaunchTrace

pytestmark = pytest.mark.skipif(
    find_file("nvdisasm") is None, reason="nvidia-cuda-nvdisasm is not installed"
)
TABLE = Path(__file__).with_name("machine_code.csv")
SOURCES = ("fresh2_groups.cu", "fresh2_types.cu")
HARDWARE = ("smsp__inst_executed.sum", "smsp__thread_inst_executed.sum")
NOT_KNOWN = {
    "counted_by_code": "lanes that leave a loop one after another meet elsewhere with added code",
    "smsp__thread_inst_executed_pred_on.sum": "of divergent kernels as the counters of HARDWARE",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum": "reductions of words far apart: launches.py",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum": "a generic atomic of halves",
    "smsp__inst_executed_pipe_cbu.sum": "of interpret as the counters of HARDWARE",
    "smsp__inst_executed_op_branch.sum": "of interpret as the counters of HARDWARE",
}
KEYS = ("source", "launch", "kernel", "code", "counted_by_code")


def code_of(launch: LaunchTrace) -> str:
    """Return a hash of the instructions of a launch."""
    text = "\n".join(launch.instructions()["text"].to_pylist())
    return sha256(text.encode()).hexdigest()[:16]


def compared(source: str, path: Path) -> Iterator[tuple[str, str, float, float]]:
    """Yield kernel, counter, the chip's count and ours of all launches with the same code."""
    with TABLE.open() as file:
        rows = [row for row in csv.DictReader(file) if row["source"] == source]
    with default_options(RecordOptions(code="sm_90")):
        trace = cutrace.read_trace(record(FOLDER / source, [], path, arch=TARGET, options=OPTIONS))
    profile = cutrace.analyze(trace, "h100", jobs=1)
    for row, traced, ours in zip(rows, trace.launches, profile.launches, strict=True):
        if row["code"] == code_of(traced) and not is_timed(row):
            yield from pairs(row, ours.counters)


def is_timed(row: Mapping[str, str]) -> bool:
    """Whether time decides the addresses of a kernel, or how often it tries again."""
    names = [key.split()[1] for key in TIMED if key.startswith(row["source"])]
    return any(name in row["kernel"] for name in (*names, "bfs_level", "float_bins", "double_bins"))


def pairs(
    row: Mapping[str, str], counters: Mapping[str, float | int | None]
) -> Iterator[tuple[str, str, float, float]]:
    """Yield the counts of a launch that both have."""
    for name, text in row.items():
        if name in KEYS or name in HARDWARE or name not in counters:
            continue
        yield row["kernel"], name, float(text), counters[name] or 0
    executed = counters["smsp__inst_executed.sum"] or 0
    yield row["kernel"], "counted_by_code", float(row["counted_by_code"]), executed


def test_counts_of_the_same_machine_code_are_those_of_a_chip(tmp_path: Path) -> None:
    found = [pair for name in SOURCES for pair in compared(name, tmp_path / f"{name}.cutrace")]
    if not found:
        pytest.skip("this ptxas makes other machine code")
    assert "smsp__inst_executed_pipe_alu.sum" in {pair[1] for pair in found}
    far = [pair for pair in found if pair[2] != pair[3]]
    assert [pair for pair in far if pair[1] not in NOT_KNOWN] == []
    assert len(far) <= 0.005 * len(found)
