"""Operands of instructions, as PTX ISA chapter 6 writes them."""

import struct

import pytest
from ptx.ptx_text import function_around, instruction

from cutrace.base.errors import CutraceError
from cutrace.tracer.ptx.kernel import (
    Address,
    Bucket,
    CallTarget,
    Guard,
    Immediate,
    Label,
    Not,
    Pair,
    Part,
    Register,
    Special,
    Sum,
    Symbol,
    TextureAddress,
    Vector,
)

R = [Register(f"%r{number}", "b32") for number in range(32)]
RD = [Register(f"%rd{number}", "b64") for number in range(16)]
P = [Register(f"%p{number}", "pred") for number in range(8)]


def bits_of_double(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


def test_opcode_modifiers_and_guard_are_taken_apart() -> None:
    load = instruction("@!%p1 ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%r1, %r2}, [%rd1+8];")
    assert load.opcode == "ld"
    assert load.modifiers == ("global", "nc", "L1::no_allocate", "L2::128B", "v2", "u32")
    assert load.guard == Guard(P[1], negated=True)
    assert load.operands == (Vector((R[1], R[2])), Address(RD[1], 8))
    assert (load.space, load.type, load.vector) == ("global", "u32", 2)


def test_the_window_of_the_own_block_is_shared_space() -> None:
    store = instruction("st.shared::cta.u32 [%rd1], %r1;")
    assert store.modifiers == ("shared::cta", "u32")
    assert store.space == "shared"


def test_modifiers_may_stand_apart() -> None:
    assert instruction("add .s32 %r1, %r2, 1;").mnemonic == "add.s32"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("42", Immediate(42)),
        ("-1", Immediate(-1)),
        ("0x1F", Immediate(31)),
        ("0xFFFFFFFF", Immediate(4294967295)),
        ("0X10U", Immediate(16)),
        ("017", Immediate(15)),
        ("0b101", Immediate(5)),
        ("7U", Immediate(7)),
        ("4*8+2", Immediate(34)),
        ("2+4*8", Immediate(34)),
        ("(2+4)*8", Immediate(48)),
        ("1<<4|1", Immediate(17)),
        ("-7/2", Immediate(-3)),
        ("-7 % 3", Immediate(-1)),
        ("~0", Immediate(-1)),
        ("!5", Immediate(0)),
        ("3>2&&1!=2", Immediate(1)),
        ("1 ? 10 : 20", Immediate(10)),
        ("(.s64)0xFFFFFFFFFFFFFFFF", Immediate(-1)),
        ("(.u64)-1", Immediate(2**64 - 1)),
        ("WARP_SZ", Immediate(32)),
        ("WARP_SZ-1", Immediate(31)),
        ("0f3F800000", Immediate(0x3F800000, "f32")),
        ("-0f3F800000", Immediate(0xBF800000, "f32")),
        ("0d3FF0000000000000", Immediate(0x3FF0000000000000, "f64")),
        ("1.5", Immediate(bits_of_double(1.5), "f64")),
        ("-2.5e-3", Immediate(bits_of_double(-2.5e-3), "f64")),
        ("1e3", Immediate(bits_of_double(1000.0), "f64")),
    ],
)
def test_literals_and_constant_expressions(written: str, read: Immediate) -> None:
    assert instruction(f"mov.b64 %rd1, {written};").operands == (RD[1], read)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[%rd1]", Address(RD[1])),
        ("[%rd1+8]", Address(RD[1], 8)),
        ("[%rd1 + 0x10]", Address(RD[1], 16)),
        ("[%rd1-8]", Address(RD[1], -8)),
        ("[%rd1+-8]", Address(RD[1], -8)),
        ("[%rd1+4*8]", Address(RD[1], 32)),
        ("[%rd1+4*8-1]", Address(RD[1], 31)),
        ("[table]", Address(Symbol("table"))),
        ("[table+12]", Address(Symbol("table"), 12)),
        ("[a]", Address(Symbol("a"))),
        ("[256]", Address(None, 256)),
    ],
)
def test_addresses(written: str, read: Address) -> None:
    load = instruction(f"ld.u32 %r1, {written};", ".global .b32 table[8];")
    assert load.operands[1] == read


def test_addresses_of_variables_and_functions() -> None:
    outside = ".global .b32 table[8];\n.func f() { ret; }"
    assert instruction("mov.u64 %rd1, table;", outside).operands[1] == Symbol("table")
    assert instruction("mov.u64 %rd1, table+8;", outside).operands[1] == Symbol("table", 8)
    assert instruction("mov.u64 %rd1, f;", outside).operands[1] == Symbol("f")


def test_pairs_negations_and_buckets() -> None:
    assert instruction("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;").operands == (
        Pair(P[1], P[2]),
        R[1],
        R[2],
        Not(P[3]),
    )
    assert instruction("shfl.sync.up.b32 %r1|_, %r2, 1, 0, -1;").operands[0] == Pair(R[1], Bucket())
    assert instruction("setp.eq.s32 _|%p2, %r1, 0;").operands[0] == Pair(Bucket(), P[2])
    assert instruction("atom.global.add.u32 _, [%rd1], 1;").operands[0] == Bucket()
    assert instruction("mov.b64 {%r1, _}, %rd1;").operands[0] == Vector((R[1], Bucket()))


@pytest.mark.parametrize(
    "name",
    [
        "%tid.x",
        "%ctaid.z",
        "%nctaid.w",
        "%laneid",
        "%clock64",
        "%lanemask_lt",
        "%envreg31",
        "%pm7",
        "%dynamic_smem_size",
        "%cluster_ctaid.y",
        "%globaltimer_lo",
    ],
)
def test_special_registers(name: str) -> None:
    assert instruction(f"mov.u32 %r1, {name};").operands[1] == Special(name)


def test_a_special_register_of_three_axes_is_a_vector() -> None:
    parts = tuple(Special(f"%tid.{axis}") for axis in "xyzw")
    function = function_around(".reg .v4 .u32 place; mov.v4.u32 place, %tid;")
    assert function.instructions[0].operands[1] == Vector(parts)


def test_a_declared_register_hides_a_special_one() -> None:
    function = function_around(".reg .b32 %clock; mov.u32 %r1, %clock;")
    assert function.instructions[0].operands[1] == Register("%clock", "b32")


def test_texture_addresses() -> None:
    outside = ".global .texref image; .global .samplerref by;"
    f = [Register(f"%f{number}", "f32") for number in range(16)]
    two = "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, "
    assert instruction(two + "[%rd1, {%f5, %f6}];").operands == (
        Vector((f[1], f[2], f[3], f[4])),
        TextureAddress(RD[1], (f[5], f[6])),
    )
    assert instruction(two + "[image, by, {%f5, %f6}];", outside).operands[1] == TextureAddress(
        Symbol("image"), (f[5], f[6]), Symbol("by")
    )
    assert instruction("tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [image, %r5];", outside).operands[
        1
    ] == TextureAddress(Symbol("image"), (R[5],))


def test_vector_registers_have_components() -> None:
    function = function_around(".reg .v2 .b32 pair; mov.u32 pair.y, %r1; mov.b64 %rd1, pair;")
    x, y = Register("pair.x", "b32"), Register("pair.y", "b32")
    assert function.instructions[0].operands[0] == y
    assert function.instructions[1].operands[1] == Vector((x, y))


def test_bytes_and_halves_of_registers() -> None:
    kept = instruction("vadd.u32.u32.u32 %r1.b2, %r2.b0, %r3.h10, %r1;").operands
    assert kept[0] == Part(Register("%r1", "b32"), "b2")
    assert kept[2] == Part(Register("%r3", "b32"), "h10")


def test_an_element_of_an_array_is_counted_in_its_bytes() -> None:
    outside = ".global .b32 table[8];"
    assert instruction("ld.global.u32 %r1, table[3];", outside).operands[1] == Symbol("table", 12)
    with pytest.raises(CutraceError, match=r"PTX line .*found `1`, expected no index, since `k`"):
        instruction("mov.u64 %rd1, k[1];")


def test_a_number_may_be_added_to_a_register() -> None:
    assert instruction("add.u32 %r1, %r2+1, %r3;").operands[1] == Sum(R[2], 1)
    assert instruction("st.u64 [%rd1], %rd2 + -8;").operands[1] == Sum(RD[2], -8)


def test_branches_and_their_lists() -> None:
    function = function_around(
        "list: .branchtargets L1, L2;\nL1: @%p1 bra.uni L2;\nbrx.idx %r1, list;\nL2: ret;"
    )
    assert function.labels == {"L1": 0, "L2": 2}
    assert function.branch_targets == {"list": ("L1", "L2")}
    assert function.instructions[0].operands == (Label("L2"),)
    assert function.instructions[1].operands == (R[1], Label("list"))


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("call f;", CallTarget((), Symbol("f"), ())),
        ("call.uni f, ();", CallTarget((), Symbol("f"), ())),
        ("call (%r1), f, (%r2, 5);", CallTarget((R[1],), Symbol("f"), (R[2], Immediate(5)))),
        ("call (%r1), f;", CallTarget((R[1],), Symbol("f"), ())),
        ("call %rd1, proto;", CallTarget((), RD[1], (), "proto")),
        ("call (_), %rd1, (%r1), proto;", CallTarget((Bucket(),), RD[1], (R[1],), "proto")),
    ],
)
def test_forms_of_call(text: str, target: CallTarget) -> None:
    outside = ".func f() { ret; }"
    body = f"proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n{text}"
    assert function_around(body, outside).instructions[0].operands == (target,)


def test_text_is_the_instruction_with_single_blanks() -> None:
    assert (
        instruction("add.s32 \t%r1,\n\t%r2, // why\n /* how */ 7;").text == "add.s32 %r1, %r2, 7;"
    )


def test_unknown_instructions_parse_like_any_other() -> None:
    odd = instruction("frobnicate.rn.f32 %f1, [%rd1], {%f2, %f3};")
    assert odd.mnemonic == "frobnicate.rn.f32"
    assert len(odd.operands) == 3
