"""Wrong PTX: one message that says the line, what was found and what was expected."""

import random
import re
from pathlib import Path

import pytest
from ptx.ptx_text import HEAD, function_around, module_of

from cutrace.base.errors import CutraceError
from cutrace.tracer.isa.table import instruction_table
from cutrace.tracer.ptx.kernel import Module
from cutrace.tracer.ptx.lexer import InvalidPtxError
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module

GALLERY = Path(__file__).parents[3] / "traces" / "gallery"

EVERYTHING = (
    HEAD
    + """
.extern .func (.param .b32 r) vprintf (.param .b64 x, .param .b64 y);
.extern .shared .align 16 .b8 dynamic[];
.global .align 8 .b8 t[16] = {1, 2, 0xFF(t), 0xFF00(t), 0xFF0000(t), 0xFF000000(t),
    0xFF00000000(t), 0xFF0000000000(t), 0xFF000000000000(t), 0xFF00000000000000(t), 4*8+2};
.global .u64 p[2] = {generic(t)+8, f};
.const .f32 half = 0f3F000000;
.func (.reg .u32 y) f (.reg .u32 x) { add.u32 y, x, (1 << 3) - 2; ret; }
.alias g, f;
.visible .entry k(.param .u64 .ptr .global .align 16 a, .param .align 4 .b8 s[12])
.maxntid 256, 1, 1 {
.reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<5>; .reg .v4 .f32 v;
.loc 1 3 5
ld.param.u64 %rd1, [a]; @!%p1 ld.global.nc.v4.f32 {v.x, v.y, v.z, v.w}, [%rd1+-16];
setp.lt.and.s32 %p1|%p2, %r1, -5, !%p3;
.loc 2 9 1, function_name $L__info_string0, inlined_at 1 3 5
{ .param .b64 param0; .param .b32 retval0; st.param.b64 [param0+0], %rd1;
P: .callprototype (.param .b32 _) _ (.param .b64 _);
call (retval0), %rd1, (param0), P; ld.param.b32 %r1, [retval0+0]; }
LIST: .branchtargets L1, L2; brx.idx %r1, LIST;
L1: tex.2d.v4.f32.f32 {v.x, v.y, v.z, v.w}, [%rd1, {v.x, v.y}]; bar.sync 0;
L2: call.uni (%r1), g, (%r2); @%p1 bra L1;
}
.file 1 "a.cu"
.file 2 "b.h"
.section .debug_str { $L__info_string0: .b8 95, 90, 0 }
"""
)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("add.u32 %r1, %r2, 1 ret;", r"line 13: found `ret`, expected `,` or `;`"),
        ("add.u32 %r1, %r99, 1;", r"found `%r99`, expected a declared register.*; nearest: %r"),
        ("add.u32 %r1, %r32, 1;", r"found `%r32`, expected a declared"),
        ("mov.u32 %r1, %tid.q;", r"found `%tid.q`, expected a declared"),
        ("mov.u64 %rd1, table;", r"found `table`, expected a declared"),
        ("bra LOOP;\nLOOK: ret;", r"line 13: found `LOOP`, expected a label.*; nearest: LOOK"),
        ("{ HERE: ret; } bra HERE;", r"found `HERE`, expected a label of this function"),
        ("brx.idx %r1, LIST; LIST: ret;", r"found `LIST`, expected a list of targets"),
        ("L: .branchtargets M; brx.idx %r1, L;", r"found `M`, expected a label"),
        (
            "call f;",
            r"found `f`, expected a declared register, variable or function",
        ),
        ("call 5;", r"found `5`, expected a function"),
        ("HERE: HERE: ret;", r"found a second `HERE`"),
        (".reg .b32 x; .reg .b64 x;", r"line 13: found a second `x`"),
        (".reg .b32 %r<3>;", r"found a second `%r`"),
        (".reg .b32 %r31;", r"found a second `%r31`"),
        (".reg .b32 x4; .reg .b32 x<5>;", r"found a second `x`"),
        (".shared .b32 a;", r"found a second `a`"),
        (".reg .b33 x;", r"found `.b33`, expected a type.*; nearest: .b32"),
        (".reg x;", r"found `x`, expected a type"),
        (".reg .b32 x<-1>;", r"found `-`, expected a count"),
        (".reg .b32 x<99999999999>;", r"found `99999999999`, expected a count from 0 to"),
        ("@%r;", r"found `%r`, expected a declared"),
        ("@5 ret;", r"found `5`, expected a predicate register"),
        ("ld.u32 %r1, [%tid.x];", r"found `%tid.x`, expected a register or a variable"),
        ("ld.u32 %r1, [%rd1+];", r"found `\]`, expected a number"),
        ("ld.u32 %r1, [%rd1;", r"found `;`, expected `\]`"),
        ("mov.u32 %r1, 1/0;", r"found `0`, expected a divisor"),
        ("mov.u32 %r1, 08;", r"found `08`, expected a number"),
        ("mov.u32 %r1, ?;", r"found `\?`, expected an operand"),
        ("mov.b64 {%r1, %r2, %rd1;", r"found `;`, expected `}`"),
        ("%r1 = 5;", r"found `%r1`, expected an instruction"),
        ("}", r"line 14: found `}`, expected a directive"),
        ("{", r"found the end of the text, expected the `}` that closes line 6"),
        (".loc 1 2;", r"found `;`, expected a number"),
        (".loc 1 2 3, inlined 1 2 3", r"found `inlined`, expected `function_name` or `inl"),
    ],
)
def test_wrong_bodies(body: str, message: str) -> None:
    with pytest.raises(CutraceError, match=message):
        function_around(body)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".global .b32 x; .global .b32 x;", r"line 4: found a second `x`"),
        (".func f() { ret; }\n.func f() { ret; }", r"line 5: found a second `f`"),
        (".func f() { ret; }\n.global .b32 f;", r"line 5: found a second `f`"),
        (".entry k(.param .u32 a, .param .u32 a) { ret; }", r"found a second `a`"),
        (".entry k(.global .u32 a) { ret; }", r"found `.global`, expected `.param`"),
        (".visible 5", r"found `5`, expected a state space"),
        (".global .align 3 .b8 x;", r"found `3`, expected a power of two"),
        (".global .b32 x[-1];", r"found `-`, expected a number of elements"),
        (".global .b8 x[2][0] = {{}};", r"found `0`, expected a number of elements"),
        (".global .b8 x[2][1<<40] = {{1}, {2}};", r"expected no initial values of a variable of"),
        (".global .b8 x[2] = {1_0};", r"found `1_0`, expected a number"),
        (".global .b32 x[1] = {1, 2};", r"expected at most 4 bytes of initial values"),
        (".global .b32 x = {{1}};", r"found `{`, expected a value"),
        (".global .b16 x = 1.5;", r"found `1.5`, expected an integer"),
        (".global .b32 x = x;", r"found `x`, expected a number: an address takes 8 bytes"),
        (".global .u64 x = y;", r"x holds the address of y, which is not declared"),
        (".global .b8 x[2] = {0xFF(x), 0xFF00(x)};", r"expected all 8 bytes of the address of x"),
        (".global .b8 x[8] = {0x0F(x)};", r"found `0x0F`, expected a mask of one byte"),
        (".alias g, f;", r"found `f`, expected a declared function"),
        ("mov.u32 x, y;", r"found `mov.u32`, expected a directive"),
        (".entry k() 5", r"found `5`, expected `{` or `;`"),
        (".section .debug_str { .b8 1", r"expected the `}` that closes line 4"),
    ],
)
def test_wrong_declarations(text: str, message: str) -> None:
    with pytest.raises(CutraceError, match=message):
        module_of(text)


BOUNDS = """
# version target directives; what is refused. Each as ptxas of CUDA 13.0 refuses it.
8.5 90 .maxntid 0; found `.maxntid 0`, expected positive numbers
8.5 90 .maxntid 1, 0; found `.maxntid 1, 0`, expected positive numbers
8.5 90 .maxntid; found `.maxntid`, expected 1 to 3 numbers
8.5 90 .maxntid 1, 2, 3, 4; found `.maxntid 1, 2, 3, 4`, expected 1 to 3 numbers
8.5 90 .maxntid 4294967296; found `.maxntid 4294967296`, expected positive numbers below
8.5 90 .maxntid -1; found `.maxntid`, expected 1 to 3 numbers
8.5 90 .reqntid 0; found `.reqntid 0`, expected positive numbers
8.5 90 .reqntid 1, 1, 0; found `.reqntid 1, 1, 0`, expected positive numbers
8.5 90 .maxntid 128 .minnctapersm 0; found `.minnctapersm 0`, expected positive numbers
8.5 90 .minnctapersm 1, 1; found `.minnctapersm 1, 1`, expected one number
8.5 90 .maxntid 128 .maxnctapersm 4; found `.maxnctapersm 4`, expected `.minnctapersm`
8.5 90 .maxnreg 0; found `.maxnreg 0`, expected positive numbers
8.5 90 .maxnreg 0x0; found `.maxnreg 0`, expected positive numbers
8.5 90 .reqnctapercluster 4294967296; expected numbers below 2
8.5 90 .maxclusterrank 0, 1; found `.maxclusterrank 0, 1`, expected one number
8.5 90 .explicitcluster 1; found `1`, expected `{` or `;`
8.5 90 .reqnctapercluster 2 .maxclusterrank 4; `.maxclusterrank 4`, expected either
8.5 90 .maxclusterrank 2 .reqnctapercluster 4; `.reqnctapercluster 4`, expected either
8.5 90 .maxntid 128 .reqntid 128; found `.reqntid 128`, expected either
8.5 90 .reqntid 128 .maxntid 256; found `.maxntid 256`, expected either `.maxntid` or `.reqntid`
8.5 90 .blocksareclusters .reqntid 1 .reqnctapercluster 2; expected `.version 9.0` or later
9.0 90 .blocksareclusters .reqntid 128; expected a `.reqnctapercluster` beside it
9.0 90 .blocksareclusters .reqnctapercluster 2; expected a `.reqntid` beside it
2.0 20 .reqntid 128; found `.reqntid 128`, expected `.version 2.1` or later
1.4 10 .minnctapersm 2; found `.minnctapersm 2`, expected `.version 2.0` or later
7.7 80 .reqnctapercluster 2; expected `.version 7.8` or later
8.5 80 .maxclusterrank 4; found `.maxclusterrank 4`, expected `.target sm_90` or later
8.5 80 .explicitcluster; found `.explicitcluster`, expected `.target sm_90` or later
"""


@pytest.mark.parametrize("case", BOUNDS.strip().splitlines()[1:])
def test_launch_bounds_that_the_assembler_refuses(case: str) -> None:
    bounds, _, message = case.partition("; ")
    version, target, directives = bounds.split(" ", 2)
    text = f".version {version}\n.target sm_{target}\n.entry k() {directives} {{ ret; }}"
    with pytest.raises(InvalidPtxError, match=f"^PTX line 3: .*{re.escape(message)}"):
        parse_module(text)


def test_launch_bounds_belong_to_kernels() -> None:
    with pytest.raises(InvalidPtxError, match=r"`\.maxntid 128`, expected launch bounds at an"):
        module_of(".func f() .maxntid 128 { ret; }")


@pytest.mark.parametrize(
    "bounds",
    [
        ".maxntid 64 .maxntid 128",
        ".maxntid 0x10, 0b11, 0200",
        ".maxntid 4294967295",
        ".reqnctapercluster 0, 1",
        ".maxclusterrank 0",
        ".minnctapersm 2 .maxnreg 1025",
        ".blocksareclusters .reqntid 128 .reqnctapercluster 2",
    ],
)
def test_launch_bounds_that_the_assembler_takes(bounds: str) -> None:
    text = f".version 9.0\n.target sm_90\n.entry k() {bounds} {{ ret; }}"
    assert parse_module(text).functions["k"].directives


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1: found the end of the text, expected `.version`"),
        ("__global__ void k() {}", r"line 1: found `__global__`, expected `.version`"),
        (".version eight", r"found `eight`, expected a version"),
        (".version 8.0", r"expected `.target`"),
        (".version 8.0\n.target 75", r"found `75`, expected a target"),
        (".version 8.0\n.target sm_75\n.address_size 16", r"found `16`, expected 32 or 64"),
        (HEAD + ".global .b32 x = " + "(" * 5000 + "1", r"nested too deeply"),
    ],
)
def test_texts_that_are_no_ptx(text: str, message: str) -> None:
    with pytest.raises(CutraceError, match=message):
        parse_module(text)


def run_through(text: str) -> Module:
    """Parse, link and tabulate whatever there is, or fail with a CutraceError."""
    module = parse_module(text)
    for function in module.functions.values():
        if function.is_entry and not function.is_extern:
            instruction_table(link_kernel(module, function.name))
    return module


def test_the_whole_text_of_the_next_two_tests_is_right() -> None:
    run_through(EVERYTHING)


def test_ptx_cut_off_anywhere_ends_in_an_error_or_before_the_kernel() -> None:
    end = EVERYTHING.index(".file 1") - 1
    for cut in range(len(EVERYTHING)):
        try:
            module = run_through(EVERYTHING[:cut])
        except CutraceError as error:
            assert re.match(r"PTX", str(error))  # noqa: PT017
        else:
            assert "k" not in module.functions or cut >= end


def test_changed_ptx_never_ends_in_a_traceback() -> None:
    source = random.Random(7)
    tokens = re.findall(r"\s+|[\w.$%]+|.", EVERYTHING)
    for _ in range(600):
        changed = list(tokens)
        for _ in range(source.randint(1, 3)):
            place = source.randrange(len(changed))
            changed[place : place + source.randint(0, 2)] = source.choices(tokens, k=1)
        try:
            run_through("".join(changed))
        except CutraceError as error:
            assert str(error).startswith(("PTX", "no kernel"))  # noqa: PT017


@pytest.mark.parametrize("path", sorted(GALLERY.glob("*/*.ptx")), ids=lambda path: path.name)
def test_the_gallery_parses_without_warnings(path: Path) -> None:
    assert run_through(path.read_text(encoding="utf-8")).warnings == ()
