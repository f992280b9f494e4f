"""The static table of instructions."""

import pytest
from ptx.ptx_text import instruction, kernel_around

from cutrace.tracer.isa.table import bytes_moved, instruction_table
from cutrace.tracer.ptx.kernel import Instruction
from cutrace.traces.schema import INSTRUCTIONS, Space


def test_the_table_has_a_row_for_each_instruction_of_each_function() -> None:
    body = "ld.global.nc.v2.f32 {%f1, %f2}, [%rd1]; @!%p1 bra END; call f; END: ret;"
    table = instruction_table(kernel_around(f".loc 1 7 3\n{body}", ".func f() { ret; }"))
    assert table.schema == INSTRUCTIONS
    assert table["pc"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert table["text"].to_pylist()[3] == "bra (after call 2);"  # where only what returns comes by
    assert table["block"].to_pylist() == [0, 0, 1, 2, 3, 4]
    assert table["function"].to_pylist() == ["k"] * 5 + ["f"]
    assert table["predicate"].to_pylist() == ["", "!%p1", "", "", "", ""]
    load = table.slice(0, 1).to_pylist()[0]
    assert load == {
        "pc": 0,
        "block": 0,
        "function": "k",
        "opcode": "ld",
        "mnemonic": "ld.global.nc.v2.f32",
        "predicate": "",
        "space": "global",
        "type": "f32",
        "bytes": 8,
        "cache": "nc",
        "class": "memory",
        "operation": "",
        "values": 1,
        "flops": 0,
        "access": "load",
        "reads": 1 << Space.GLOBAL,
        "writes": 0,
        "order": "weak",
        "scope": "",
        "collision": "",
        "barrier": None,
        "barrier_threads": None,
        "result_read": False,
        "file": "",
        "line": 7,
        "column": 3,
        "inlined_at": [],
        "text": "ld.global.nc.v2.f32 {%f1, %f2}, [%rd1];",
    }


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("ld.global.u8 %r1, [%rd1];", 1),
        ("ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];", 4 * 4),
        ("ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];", 8 * 4),
        ("ld.param.u64 %rd1, [a];", 8),
        ("st.global.v2.f64 [%rd1], {%fd1, %fd2};", 2 * 8),
        ("atom.global.add.f16x2 %r1, [%rd1], %r2;", 4),
        ("red.shared.add.u64 [%rd1], %rd2;", 8),
        ("cp.async.cg.shared.global [%r1], [%rd1], 16;", 16),
        ("cp.async.bulk.shared.global [%r1], [%rd1], 64, [%r2];", 16),  # a piece
        ("cp.async.commit_group;", 0),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%rd1];", 16),
        ("tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2}];", 4 * 4),
        ("suld.b.1d.v2.b16.trap {%h1, %h2}, [%rd1, {%r1}];", 2 * 2),
        ("prefetch.global.L2 [%rd1];", 0),
        ("cvt.f64.f32 %fd1, %f1;", 0),
        ("add.f32 %f1, %f1, %f2;", 0),
    ],
)
def test_bytes_a_lane_moves(text: str, moved: int) -> None:
    assert bytes_moved(instruction(text)) == moved


@pytest.mark.parametrize(
    ("text", "barrier", "threads"),
    [
        ("bar.sync 0;", 0, None),
        ("bar.sync 3, 64;", 3, 64),
        ("barrier.cta.arrive 1, 128;", 1, 128),
        ("bar.sync %r1, %r2;", -1, -1),
        ("bar.red.popc.u32 %r1, 2, %p1;", 2, None),
        ("bar.red.popc.u32 %r1, 2, 96, %p1;", 2, 96),
        ("bar.red.and.pred %p1, 2, !%p1;", 2, None),
        ("barrier.cluster.arrive;", None, None),
        ("bar.warp.sync -1;", None, None),
        ("membar.gl;", None, None),
    ],
)
def test_barriers(text: str, barrier: int | None, threads: int | None) -> None:
    row = instruction_table(kernel_around(text)).slice(0, 1).to_pylist()[0]
    assert (row["barrier"], row["barrier_threads"]) == (barrier, threads)


@pytest.mark.parametrize(
    ("text", "cache"),
    [
        ("ld.global.cg.u32 %r1, [%rd1];", "cg"),
        ("ld.global.ca.nc.u32 %r1, [%rd1];", "nc"),
        ("st.global.wt.u32 [%rd1], %r1;", "wt"),
        ("cp.async.ca.shared.global [%r1], [%rd1], 4;", "ca"),
        ("ld.global.u32 %r1, [%rd1];", ""),
        ("addc.cc.u32 %r1, %r1, %r2;", ""),
    ],
)
def test_cache_operators(text: str, cache: str) -> None:
    assert instruction_table(kernel_around(text))["cache"][0].as_py() == cache


def test_a_result_is_read_if_any_of_its_registers_is_read_anywhere() -> None:
    table = instruction_table(
        kernel_around(
            """LOOP: atom.global.add.u32 %r1, [%rd1], 1;
            atom.global.add.u32 %r2, [%rd1], 1;
            ld.global.v2.u32 {%r3, %r4}, [%rd1];
            setp.eq.u32 %p1, %r4, %r2;
            @%p1 bra LOOP;
            st.global.u32 [%rd1], 5; ret;"""
        )
    )
    assert table["result_read"].to_pylist() == [False, True, True, True, False, False, False]


def test_places_of_inlining_are_listed_from_the_inside_out() -> None:
    body = ".loc 2 3 1, function_name $L__info_string0, inlined_at 1 20 7\nret;"
    table = instruction_table(kernel_around(body, '.file 1 "a.cu"\n.file 2 "b.h"'))
    row = table.to_pylist()[0]
    assert (row["file"], row["line"], row["column"]) == ("b.h", 3, 1)
    assert row["inlined_at"] == [{"file": "a.cu", "line": 20, "column": 7}]


def test_an_instruction_made_by_hand_has_a_row_too() -> None:
    assert bytes_moved(Instruction("ld", ("global", "b128"), (), None, "", 1)) == 16
