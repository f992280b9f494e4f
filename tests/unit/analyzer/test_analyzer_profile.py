"""Every counter, in closed form where it is not zero, on kernels whose PTX is written by hand."""

from pathlib import Path
from typing import Any

import pytest
from cases.every_case import CASES, ESTIMATED, PIPES
from hand_trace import Access, hand_trace
from warps import warp

import cutrace
from cutrace.analyzer.counting.vocabulary import heading, vocabularies
from cutrace.base.errors import CutraceError
from cutrace.tracer.session.source.record import record

HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
COPY = (
    HEAD
    + """
.visible .entry copy(.param .u64 out, .param .u64 in)
{
    .reg .b64 %rd<8>;
    .reg .b32 %r<5>;
    .reg .BITS %v<2>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [in];
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mad.lo.s32 %r3, %r2, 64, %r1;
    mul.wide.u32 %rd5, %r3, BYTES;
    add.s64 %rd6, %rd4, %rd5;
    add.s64 %rd7, %rd3, %rd5;
    ld.global.BITS %v1, [%rd6];
    st.global.BITS [%rd7], %v1;
    ret;
}
"""
)
SPACES = (
    HEAD
    + """
.const .align 4 .b8 table[128];
.visible .entry spaces(.param .u64 out)
{
    .shared .align 4 .b8 part[256];
    .local .align 4 .b8 own[4];
    .reg .pred %p<3>;
    .reg .b64 %rd<8>;
    .reg .b32 %r<12>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    shl.b32 %r2, %r1, 3;
    mov.u32 %r3, part;
    add.s32 %r4, %r3, %r2;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    ld.shared.u32 %r5, [%r4];
    setp.eq.u32 %p2, %r1, 0;
    @%p2 atom.shared.add.u32 %r11, [%r3], 1;
    st.local.u32 [own], %r5;
    ld.local.u32 %r6, [own];
    mov.u64 %rd6, table;
    add.s64 %rd7, %rd6, %rd3;
    ld.const.u32 %r7, [%rd7];
    and.b32 %r8, %r1, 1;
    setp.eq.u32 %p1, %r8, 0;
    @%p1 bra EVEN;
    atom.global.add.u32 %r9, [%rd2], %r6;
    bra.uni DONE;
EVEN:
    add.s32 %r6, %r6, %r7;
DONE:
    st.global.u32 [%rd4], %r6;
    ret;
}
"""
)
COPY_LINE = "copy<<<8, 64>>>(out:TYPE[512], in:TYPE[512]=arange)"
SPACES_LINE = "spaces<<<4, 32>>>(out:i32[32])"
FREE, ONE_ARM = 6, 2  # mov x 3, ld.param, cvta, bra.uni; atom and bra.uni, or add
LISTED = 26

COPIED: list[tuple[int, str, dict[str, Any], dict[str, float]]] = [
    # 8 blocks of 2 warps: 16 warps, 32 half-warps, 512 threads
    (
        4,
        "h200",
        {},
        {
            "global_load_requests": 16,
            "global_load_transactions": 16 * 4,
            "global_load_bytes_transferred": 16 * 4 * 32,
            "global_load_bytes_requested": 512 * 4,
            "global_load_sector_efficiency": 1.0,
            "global_store_requests": 16,
            "global_store_transactions": 16 * 4,
            "global_store_bytes_transferred": 16 * 4 * 32,
            "global_store_bytes_requested": 512 * 4,
            "global_store_sector_efficiency": 1.0,
            "sector_efficiency": 1.0,
            "instructions": 16 * (13 - 2 - 2 - 2),
            "ptx_instructions": 16 * 13,
            "thread_instructions": 512 * 13,
            "blocks_launched": 8,
            "warps_launched": 16,
            "threads_launched": 512,
            "bound_time": 2.02,  # ns: 4096 bytes through the L1 of 8 SMs, 128 a cycle of 1.98 GHz
        },
    ),
    (4, "8800gtx", {}, {"gld_coherent": 4, "gst_coherent": 4 * 4, "cta_launched": 1}),
    (
        4,
        "8800gtx",
        {"profiled_blocks": 5},  # 3 of them on the first SM of two
        {"gld_coherent": 5 * 4, "cta_launched": 5, "sm_cta_launched": 3},
    ),
    (4, "8800gtx", {"scope": "all"}, {"cuda-profiler.instructions": 16 * 7, "gld_coherent": 32}),
    (1, "8800gtx", {"scope": "all"}, {"gld_incoherent": 512, "gst_incoherent": 512 * 2}),
    (1, "gtx280", {"scope": "all"}, {"gld_32b": 32, "gst_32b": 32 * 2, "gld_coherent": 32}),
    (4, "gtx280", {"scope": "all"}, {"gld_64b": 32, "gst_64b": 32 * 4, "gst_coherent": 32 * 4}),
    (8, "gtx280", {"scope": "all"}, {"gld_128b": 32, "gst_128b": 32 * 8, "gld_request": 16}),
    (
        8,
        "gtx280",
        {"scope": "all"},
        {"gst_request": 16, "global_store_bytes_transferred": 32 * 128},
    ),
]
SPACED: list[tuple[str, dict[str, Any], dict[str, float]]] = [
    # 4 blocks of a warp
    (
        "h200",
        {"code": "ptx"},
        {
            "shared_store_requests": 4,
            "shared_load_requests": 4,
            "shared_atomic_requests": 4,
            "shared_wavefronts": 4 * (2 + 2 + 1),  # words 2 apart: two to a bank; one lane alone
            "shared_conflicts": 4 * (1 + 1),
            "local_store_requests": 4,
            "local_store_transactions": 4 * 4,  # neighbours' words lie side by side
            "local_store_bytes_transferred": 4 * 4 * 32,
            "local_store_bytes_requested": 4 * 32 * 4,
            "local_load_requests": 4,
            "local_load_transactions": 4 * 4,
            "local_load_bytes_transferred": 4 * 4 * 32,
            "local_load_bytes_requested": 4 * 32 * 4,
            "constant_requests": 4,
            "constant_wavefronts": 4 * 32,
            "global_atomic_requests": 4,
            "global_atomic_transactions": 4,
            "global_atomic_bytes_transferred": 4 * 32,
            "global_atomic_bytes_requested": 4 * 16 * 4,
            "branches": 4,
            "divergent_branches": 4,
            "barriers": 4,
            "instructions": 4 * (LISTED - FREE),
            "ptx_instructions": 4 * LISTED,
            "thread_instructions": 4 * (32 * (LISTED - 3) + 16 * 2 + 16 * 1),
        },
    ),
    (
        "8800gtx",
        {"scope": "all"},
        {
            "local_load": 4,
            "local_store": 4,
            "branch": 4 + 4,  # taken by the even lanes; and the barrier
            "divergent_branch": 4,
            "warp_serialize": 4 * 3,  # the shared store, the shared load, the constant load
            "shared_wavefronts": 4 * (4 + 4 + 1),  # two half-warps, two lanes to a bank
            "constant_wavefronts": 4 * (16 + 16),
            "cuda-profiler.instructions": 4 * (LISTED - FREE),
            "occupancy": 8 / 24,  # 8 blocks of a warp
        },
    ),
]


def analyzed(tmp_path: Path, ptx: str, line: str, device: str, options: dict[str, Any]) -> Any:
    """The one launch of a PTX text on one device."""
    source = tmp_path / "kernel.ptx"
    source.write_text(ptx)
    trace = record(source, [line], tmp_path / "kernel.cutrace")
    (launch,) = cutrace.analyze(trace, device, **options).launches
    return launch


@pytest.mark.parametrize(("width", "device", "options", "expected"), COPIED)
def test_counters_of_a_copy(
    tmp_path: Path, width: int, device: str, options: dict[str, Any], expected: dict[str, float]
) -> None:
    ptx = COPY.replace("BITS", f"b{8 * width}").replace("BYTES", str(width))
    if width == 1:
        ptx = ptx.replace(".reg .b8", ".reg .b16")
    line = COPY_LINE.replace("TYPE", {1: "u8", 4: "i32", 8: "f64"}[width])
    found = analyzed(tmp_path, ptx, line, device, options).counters
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(("device", "options", "expected"), SPACED)
def test_counters_of_every_space(
    tmp_path: Path, device: str, options: dict[str, Any], expected: dict[str, float]
) -> None:
    found = analyzed(tmp_path, SPACES, SPACES_LINE, device, options).counters
    assert {name: found[name] for name in expected} == expected


def test_every_counter_is_expected_above_and_not_as_zero() -> None:
    tables = [*(case[-1] for case in COPIED), *(case[-1] for case in SPACED)]
    expected = {name for table in tables for name, value in table.items() if value}
    expected |= {name for case in CASES for name in case.expected}
    expected |= {name for case in CASES for _, name in case.arrays}
    expected |= ESTIMATED  # no counts: test_analyzer_time.py
    expected |= PIPES
    assert expected == {heading(c) for v in vocabularies() for c in v.counters}


def test_lines_arrays_and_instructions_add_up_to_the_launch(tmp_path: Path) -> None:
    launch = analyzed(tmp_path, SPACES, SPACES_LINE, "h200", {})
    for name in (
        "global_store_transactions",
        "shared_wavefronts",
        "constant_wavefronts",
        "instructions",
    ):
        assert launch.instructions[name].sum() == launch.counters[name]
        assert launch.lines[name].sum() == launch.counters[name]
    arrays = {row["array"]: row for row in launch.arrays.iter_rows(named=True)}
    assert arrays["out"]["global_atomic_requests"] == 4
    assert arrays["table"]["constant_wavefronts"] == 4 * 32
    assert arrays["part"]["shared_conflicts"] == 4 * 2
    loads = launch.instructions.filter(launch.instructions["constant_wavefronts"] > 0)
    assert loads["ptx"].to_list() == ["ld.const.u32 %r7, [%rd7];"]


def test_the_line_that_costs_most_is_known_from_the_source(tmp_path: Path) -> None:
    source = tmp_path / "two.cu"
    source.write_text(
        "__global__ void two(int *out, const int *in)\n{\n    int v = in[threadIdx.x];\n"
        "    out[threadIdx.x * 32] = v;\n}\n"
    )
    line = "two<<<1, 32>>>(out:i32[1024], in:i32[32]=arange)"
    trace = record(source, [line], tmp_path / "two.cutrace")
    (launch,) = cutrace.analyze(trace, "h200").launches
    lines = {row["text"].strip(): row for row in launch.lines.iter_rows(named=True)}
    assert lines["int v = in[threadIdx.x];"]["global_load_bytes_transferred"] == 4 * 32
    assert lines["out[threadIdx.x * 32] = v;"]["global_store_bytes_transferred"] == 32 * 32


def test_what_a_device_refuses_is_absent_unless_counted_as_if(tmp_path: Path) -> None:
    line = COPY_LINE.replace("TYPE", "i32").replace("<<<8, 64>>>", "<<<1, 1024>>>")
    ptx = COPY.replace("BITS", "b32").replace("BYTES", "4")
    line = line.replace("[512]", "[1024]")
    refused = analyzed(tmp_path, ptx, line, "8800gtx", {})
    assert refused.refusal == "cannot launch: 512 threads a block at most"
    assert set(refused.counters.values()) == {None}
    counted = analyzed(tmp_path, ptx, line, "8800gtx", {"as_if": True})
    assert counted.refusal == ""
    assert counted.counters["global_load_requests"] == 32
    assert counted.remarks[0].startswith("cannot launch: 512 threads a block at most;")


def test_without_caches_hits_are_unknown_and_all_else_is_the_same(tmp_path: Path) -> None:
    ptx = COPY.replace("BITS", "b32").replace("BYTES", "4")
    line = COPY_LINE.replace("TYPE", "i32")
    whole = analyzed(tmp_path, ptx, line, "h200", {}).counters
    part = analyzed(tmp_path, ptx, line, "h200", {"caches": False}).counters
    lost = {name for name, value in whole.items() if part[name] is None and value is not None}
    assert {"l1_reads", "l2_reads", "dram__bytes_read.sum"} <= lost
    assert not {"global_load_transactions", "occupancy"} & lost
    assert {part[name] == value for name, value in whole.items() if name not in lost} == {True}


def test_the_default_device_is_the_environments_else_h100(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ptx = COPY.replace("BITS", "b32").replace("BYTES", "4")
    line = COPY_LINE.replace("TYPE", "i32")
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    assert analyzed(tmp_path, ptx, line, (), {}).device == "h100"  # type: ignore[arg-type]
    monkeypatch.setenv("CUTRACE_DEVICE", "t4")
    assert analyzed(tmp_path, ptx, line, (), {}).device == "t4"  # type: ignore[arg-type]


def test_unknown_choices_are_refused(tmp_path: Path) -> None:
    ptx = COPY.replace("BITS", "b32").replace("BYTES", "4")
    line = COPY_LINE.replace("TYPE", "i32")
    for options in ({"scope": "gpu"}, {"schedule": "greedy"}, {"dlcm": "cb"}):
        with pytest.raises(CutraceError, match=f"{next(iter(options))} is"):
            analyzed(tmp_path, ptx, line, "h200", options)


def test_compare_wants_traces_by_name(tmp_path: Path) -> None:
    with pytest.raises(CutraceError, match="got list; expected traces by name, say compare"):
        cutrace.compare([tmp_path / "a.cutrace"])  # type: ignore[arg-type]


def test_compare_is_tidy(tmp_path: Path) -> None:
    traces = {}
    for name, width in (("ints", 4), ("doubles", 8)):
        source = tmp_path / f"{name}.ptx"
        source.write_text(COPY.replace("BITS", f"b{8 * width}").replace("BYTES", str(width)))
        line = COPY_LINE.replace("TYPE", {4: "i32", 8: "f64"}[width])
        traces[name] = record(source, [line], tmp_path / f"{name}.cutrace")
    frame = cutrace.compare(traces, ["8800gtx", "h200"])
    assert frame.columns == ["variant", "device", "launch", "counter", "value"]
    chosen = frame.filter(frame["counter"].is_in(["global_load_transactions", "gld_coherent"]))
    assert sorted(chosen.rows(), key=str) == [
        ("doubles", "8800gtx", 0, "gld_coherent", 4.0),
        ("doubles", "8800gtx", 0, "global_load_transactions", 32.0),
        ("doubles", "h200", 0, "gld_coherent", None),
        ("doubles", "h200", 0, "global_load_transactions", 16.0 * 8),
        ("ints", "8800gtx", 0, "gld_coherent", 4.0),
        ("ints", "8800gtx", 0, "global_load_transactions", 32.0),
        ("ints", "h200", 0, "gld_coherent", None),
        ("ints", "h200", 0, "global_load_transactions", 16.0 * 4),
    ]


def test_arguments_are_taken_by_name_and_misspelt_ones_are_refused(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "k.cutrace", [Access(warp(stride=4))])
    asked: Any = cutrace.analyze
    assert asked(trace=trace, device="h200").devices == ("h200",)
    with pytest.raises(TypeError, match=r"^analyze\(\) got an unexpected keyword .* 'devise'"):
        asked(trace, devise="h200")
    with pytest.raises(TypeError, match=r"^analyze\(\) missing a required argument: 'trace'"):
        asked(device="h200")
