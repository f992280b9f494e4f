"""Imported traces count what plain arithmetic over their addresses counts."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import foreign_samples as samples
import pyarrow as pa
import pytest

import cutrace
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.traces.imports.sass import facts_of
from cutrace.traces.verify import verify

COUNTERS = {
    "loads": "global_load_requests",
    "stores": "global_store_requests",
    "load_sectors": "global_load_transactions",
    "store_sectors": "global_store_transactions",
    "shared_loads": "shared_load_requests",
    "shared_stores": "shared_store_requests",
}
WRITERS: dict[str, Callable[..., str]] = {
    "traceg": samples.traceg,
    "mem_trace": samples.mem_trace,
    "cutracer": samples.cutracer,
}
BLOCKS, THREADS = 3, 64


def imported(tmp_path: Path, text: str, name: str = "sample.txt") -> LaunchProfile:
    (tmp_path / name).write_text(text)
    trace = tmp_path / "x.cutrace"
    cutrace.import_trace([tmp_path / name], trace)
    assert verify(cutrace.read_trace(trace)) == []
    return cutrace.analyze(trace, device="h100").launches[0]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_requests_and_sectors_are_those_of_the_text(tmp_path: Path, writer: str, seed: int) -> None:
    warps = samples.random_warps(seed)
    launch = imported(tmp_path, WRITERS[writer](warps, BLOCKS, THREADS))
    found = {key: launch.counters[name] for key, name in COUNTERS.items()}
    assert found == samples.count(warps)


def test_addresses_of_mem_trace_may_have_any_number_of_digits(tmp_path: Path) -> None:
    warps = samples.random_warps(7)
    text = samples.mem_trace(warps, BLOCKS, THREADS).replace(" 0x0000", " 0x")
    launch = imported(tmp_path, text)
    assert {key: launch.counters[name] for key, name in COUNTERS.items()} == samples.count(warps)


def test_a_trace_of_accesses_alone_has_hits_and_no_instructions(tmp_path: Path) -> None:
    # two loads of the same 128 bytes by one warp: 4 sectors are read from memory, 4 are hits
    lanes = tuple((lane, samples.GLOBAL + 4 * lane) for lane in range(32))
    warps = [
        (0, 0, [samples.Step(0, "LDG.E", lanes=lanes), samples.Step(16, "LDG.E", lanes=lanes)])
    ]
    counters = imported(tmp_path, samples.cutracer(warps, 1, 32)).counters
    assert (counters["l1_reads"], counters["l1_read_hits"]) == (8, 4)
    assert counters["instructions"] is None


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("version", [2, 3, 5])
def test_every_form_of_an_accel_sim_trace_says_the_same(
    tmp_path: Path, mode: int, version: int
) -> None:
    warps = samples.random_warps(3)
    text = samples.traceg(warps, BLOCKS, THREADS, mode, version)
    launch = imported(tmp_path, text, "kernel-1.traceg")
    assert {key: launch.counters[name] for key, name in COUNTERS.items()} == samples.count(warps)


def test_a_trace_whose_warps_are_mixed_is_the_grouped_one(tmp_path: Path) -> None:
    warps = samples.random_warps(4)
    text = samples.traceg(warps, BLOCKS, THREADS, grouped=False)
    head, rows = text.split("immediate\n", 1)
    ordered = [line for line in rows.splitlines() if line]
    mixed = [line for first in range(12) for line in ordered[first::12]]
    mixed_text = "\n".join([f"{head}immediate", *mixed, ""])
    launch = imported(tmp_path, mixed_text, "kernel-1.trace")
    assert {key: launch.counters[name] for key, name in COUNTERS.items()} == samples.count(warps)


def packed(text: bytes, suffix: str) -> bytes:
    if suffix == ".zst":
        return bytes(pa.Codec("zstd").compress(text, asbytes=True))
    return gzip.compress(text) if suffix == ".gz" else lzma.compress(text)


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".zst"])
def test_a_list_of_kernels_brings_its_copies_and_packed_files(tmp_path: Path, suffix: str) -> None:
    warps = samples.random_warps(5)
    text = samples.traceg(warps, BLOCKS, THREADS).encode()
    (tmp_path / f"kernel-1.traceg{suffix}").write_bytes(packed(text, suffix))
    listed = f"MemcpyHtoD,0x{samples.GLOBAL:016x},4194304\nkernel-1.traceg\nkernel-1.traceg\n"
    (tmp_path / "kernelslist.g").write_text(listed)
    done = cutrace.import_trace([tmp_path / "kernelslist.g"], tmp_path / "x.cutrace")
    manifest = cutrace.read_trace(tmp_path / "x.cutrace").manifest
    assert (done.launches, done.accesses) == (2, 2 * sum(len(steps) for _, _, steps in warps))
    assert [event.kind for event in manifest.events] == ["copy", "launch", "launch"]
    assert [(a.name, a.bytes) for a in manifest.launches[0].arrays] == [
        (f"{samples.GLOBAL:#x}", 4194304)
    ]


def test_a_branch_that_parts_a_warp_is_divergent(tmp_path: Path) -> None:
    # 16 of 32 lanes jump from 0x10 to 0x40; the others run 0x20 and 0x30 before all meet at 0x40
    low, high = 0x0000FFFF, 0xFFFF0000
    steps = [
        samples.Step(0x00, "ISETP.GE.AND"),
        samples.Step(0x10, "BRA", high),
        samples.Step(0x20, "IADD3", low),
        samples.Step(0x30, "FADD", low),
        samples.Step(0x40, "EXIT"),
    ]
    launch = imported(tmp_path, samples.traceg([(0, 0, steps)], 1, 32), "kernel-1.traceg")
    counters = launch.counters
    assert (counters["branches"], counters["divergent_branches"]) == (1, 1)
    assert counters["instructions"] == 5
    # 32 active at ISETP, BRA and EXIT, 16 at the other two; the branch was taken by 16
    assert counters["smsp__thread_inst_executed.sum"] == 3 * 32 + 2 * 16
    assert counters["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"] == 16


def test_an_instruction_whose_predicate_is_off_in_all_lanes_was_issued(tmp_path: Path) -> None:
    steps = [samples.Step(0, "MOV"), samples.Step(16, "EXIT", 0), samples.Step(32, "EXIT")]
    launch = imported(tmp_path, samples.traceg([(0, 0, steps)], 1, 32), "kernel-1.traceg")
    assert launch.counters["instructions"] == 3
    assert launch.counters["smsp__thread_inst_executed_pred_on.sum"] == 2 * 32


def test_lines_come_with_the_source_that_they_are_of(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("a\nb\nc\n")
    load = samples.Step(0, "LDG.E", 1, ((0, samples.GLOBAL),), line=2)
    steps = [load, samples.Step(16, "EXIT", line=3)]
    text = samples.traceg([(0, 0, steps)], 1, 32, lineinfo=True)
    (tmp_path / "kernel-1.traceg").write_text(text)
    trace = tmp_path / "x.cutrace"
    cutrace.import_trace([tmp_path / "kernel-1.traceg"], trace, source=tmp_path / "k.cu")
    assert verify(cutrace.read_trace(trace)) == []
    lines = cutrace.analyze(trace, device="h100").launches[0].lines
    assert lines.select("line", "text").rows() == [(2, "b"), (3, "c")]


def test_generic_addresses_lie_in_the_space_whose_window_they_are_in(tmp_path: Path) -> None:
    lanes = ((0, samples.GLOBAL), (1, samples.SHARED_WINDOW + 64), (2, samples.LOCAL_WINDOW + 8))
    steps = [samples.Step(0, "LD.E", 7, lanes), samples.Step(16, "EXIT")]
    launch = imported(tmp_path, samples.traceg([(0, 0, steps)], 1, 32), "kernel-1.traceg")
    names = ("global_load_requests", "shared_load_requests", "local_load_requests")
    assert [launch.counters[f"{name}"] for name in names] == [1, 1, 1]


def test_addresses_of_more_than_2_gib_apart_are_parts_of_one_access(tmp_path: Path) -> None:
    lanes = ((0, samples.GLOBAL), (5, samples.GLOBAL + (3 << 31)), (9, samples.GLOBAL + 4))
    steps = [samples.Step(0, "LDG.E", 0b1000100001, lanes), samples.Step(16, "EXIT")]
    launch = imported(tmp_path, samples.traceg([(0, 0, steps)], 1, 32, 0), "kernel-1.traceg")
    assert launch.counters["global_load_transactions"] == 2


def test_a_reader_of_ones_own_is_asked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cutrace.base import plugins as extension
    from cutrace.traces.imports import read_accel_sim

    class Entry:
        name = "mine"

        def load(self) -> object:
            mine = type("Mine", (), {"NAME": "mine", "read": staticmethod(read_accel_sim.read)})
            mine.claims = staticmethod(lambda path: path.suffix == ".mine")  # type: ignore[attr-defined]
            return mine

    monkeypatch.setattr(extension, "entry_points", lambda group: [Entry()])
    text = samples.traceg(samples.random_warps(6), BLOCKS, THREADS).replace(
        "-kernel name", " -k", 0
    )
    (tmp_path / "a.mine").write_text(text)
    done = cutrace.import_trace([tmp_path / "a.mine"], tmp_path / "x.cutrace", format="mine")
    assert done.launches == 1


def test_a_turn_of_a_loop_of_atomics_is_told_by_its_machine_instruction() -> None:
    told = {
        "ATOMS.CAST.SPIN.64": "turn",
        "ATOMS.CAS": "compared",
        "ATOMS.POPC.INC.32": "counted",
        "ATOMS.ADD": "serial",
    }
    assert {name: facts_of(name).collision for name in told} == told
