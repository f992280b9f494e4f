"""A trace, written for Accel-Sim and imported again, has the same counters."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hand_trace import Access, hand_trace
from warps import warp

import cutrace
from cutrace.commands._main import run
from cutrace.tracer.session.source.launch_line import find_launch_comments
from cutrace.tracer.session.source.record import record
from cutrace.traces.verify import verify

GALLERY = Path(str(files("cutrace.traces") / "gallery"))
QUICK = {"reverse_shared", "by_thread", "histogram_static"}
DEVICES = ("h100", "gtx980")

NOT_CARRIED = re.compile(
    # what an assembler turns into nothing is left out, and how long PTX takes is not estimated
    r"ptx_instructions|thread_instructions|estimated_time|gpu__time_duration.*|.*__\w*throughput.*"
    # static and dynamic shared memory are one number
    r"|launch__shared_mem_per_block_(static|dynamic)"
    # the format has no machine code, so that the bound counts PTX again
    r"|bound_time"
    # its opcodes are machine instructions, of which pipes and kinds are known; PTX has none
    r"|sms?p?__inst_executed_(pipe|op)_.*"
)
CONSTANTS = re.compile(r"constant_|memory_requests|l2_|dram_|bound_time|lts__")
"""Constants have no addresses there: what they cost is missing, down to DRAM."""

LINE = re.compile(  # trace_parser.cc, inst_trace_t::parse_from_string, tracer version 3
    r"(\d+ )?[0-9a-f]{4,} [0-9a-f]{8} (0|1 R\d+) [A-Z][A-Z0-9._]* [0-4]( R\d+){0,4} "
    r"(0|\d+ (1 0x[0-9a-f]+ -?\d+|2 0x[0-9a-f]+( -?\d+)*|0( 0x[0-9a-f]+)+)) "
)
PLACED = re.compile("dram")
"""Counters of a full L2: arrays of an exported trace are moved if one is at address 0."""
MERGED = re.compile(r"l2_write(s|_hits)|lts__t_sectors_srcunit_tex(_op_write)?\.sum")
"""Counters of stores that merge before L2, if their warps issue them soon after one another: other
warps have run further where the format leaves instructions out.
"""
FETCHED = re.compile(r"dram__(bytes|sectors)_read\.sum")
"""Counters with the code's own fetch: the format has no machine code."""
HEADER = re.compile(r"^-(.+) = (.*)$", re.MULTILINE)
KNOWN = ("60", "61", "70", "75", "80", "86")
"""Binary versions of gpu-simulator/ISA_Def/*_opcode.h; trace_driven.cc leaves at another, and takes
a generic address for shared from the one window's base to the other's."""


def kernels() -> Iterator[Any]:
    for path in sorted(GALLERY.glob("*/*.ptx")):
        if find_launch_comments(path.read_text()):
            marks = [] if path.stem in QUICK else [pytest.mark.slow]
            yield pytest.param(path, id=path.stem, marks=marks)


def _is_close(one: float | None, other: float | None) -> bool:
    return None not in (one, other) and one == pytest.approx(other, rel=0.02)


def exported(trace: Path, folder: Path) -> Path:
    assert run(["export", str(trace), "--to", "accel-sim", "-o", str(folder)]) == 0
    cutrace.import_trace([folder / "kernelslist.g"], folder / "again.cutrace")
    return folder / "again.cutrace"


@pytest.mark.parametrize("source", list(kernels()))
def test_a_round_trip_keeps_every_counter_that_the_format_can_carry(
    source: Path, tmp_path: Path
) -> None:
    trace = record(source, (), tmp_path / "a.cutrace")
    again = exported(trace, tmp_path / "b")
    assert verify(cutrace.read_trace(again)) == []
    for path in (tmp_path / "b").glob("*.traceg"):
        facts = dict(HEADER.findall(path.read_text()))
        assert facts["binary version"] in KNOWN
        assert int(facts["shmem base_addr"], 16) < int(facts["local mem base_addr"], 16)
        lines = [text for text in path.read_text().splitlines() if text[:1].isdigit()]
        assert lines
        assert [text for text in lines if not LINE.fullmatch(text)] == []
        # the simulator takes address 0 for no access
        assert [text for text in lines if " 0x0 " in text and " 00000000 " not in text] == []
    before, after = (
        cutrace.analyze(path, device=list(DEVICES), code="ptx") for path in (trace, again)
    )
    for one, other in zip(before.launches, after.launches, strict=True):
        reads = one.counters["constant_requests"]
        differs = {
            name
            for name in one.counters
            if one.counters[name] != other.counters[name]
            and not NOT_CARRIED.fullmatch(name)
            and not (one.device == "h100" and MERGED.fullmatch(name))
            and not (one.device == "h100" and FETCHED.fullmatch(name))
            and not (PLACED.search(name) and _is_close(one.counters[name], other.counters[name]))
            and not (reads and CONSTANTS.match(name))
        }
        assert differs == set()


def test_lanes_that_were_all_off_have_a_line_without_lanes(tmp_path: Path) -> None:
    text = """
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    setp.gt.u32 %p1, %r1, 99;
    @%p1 add.u32 %r2, %r1, 1;
    @%p1 st.global.u32 [%rd1], %r2;
    ret;
}
"""
    (tmp_path / "k.ptx").write_text(text)
    trace = record(tmp_path / "k.ptx", ("k<<<1, 32>>>(p:u32[4])",), tmp_path / "a.cutrace")
    again = exported(trace, tmp_path / "b")
    lines = (tmp_path / "b" / "kernel-1.traceg").read_text().splitlines()
    rows = [line.split() for line in lines if "IADD3" in line or "STG" in line]
    assert [(row[1], row[-3:]) for row in rows[-2:]] == [
        ("00000000", rows[-2][-3:]),
        ("00000000", ["1", "0x0", "0"]),
    ]
    launch = cutrace.analyze(again, device="h100").launches[0]
    assert launch.counters["global_store_requests"] == 0
    # 32 lanes compare and 32 leave; the sum and the store are off
    assert launch.counters["smsp__thread_inst_executed_pred_on.sum"] == 64


def test_a_trace_of_accesses_alone_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = hand_trace(tmp_path / "a.cutrace", [Access(warp(stride=8))]).path
    assert run(["export", str(trace), "--to", "accel-sim", "-o", str(tmp_path / "b")]) == 2
    assert "has not all that its warps ran" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


def test_a_folder_that_holds_something_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = record(GALLERY / "hello" / "hello.ptx", (), tmp_path / "a.cutrace")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine").touch()
    assert run(["export", str(trace), "--to", "accel-sim", "-o", str(tmp_path / "b")]) == 2
    assert "is there already; name a new folder" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["mine"]
