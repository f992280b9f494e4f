"""What machine code does to memory, and which line of PTX it comes from."""

import pytest

from cutrace.tracer.front.resources import mark_lines, measure
from cutrace.tracer.front.sass import MachineInstruction, decode, read_lines, read_schedule
from cutrace.traces.machine_schedule import NO_SCOREBOARD, Scheduled

PTX = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
.shared .align 16 .b8 tile[64];
ld.param.u64 %rd1, [p];
mov.u32 %r5, %tid.x;
setp.lt.u32 %p1, %r5, 8;
@%p1 ld.global.u8 %r1, [%rd1];
st.global.v4.u32 [%rd1], {%r1, %r1, %r1, %r5};
ret;
}
"""


def word(low: int, high: int) -> bytes:
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


def test_encodings_are_read_as_nvdisasm_reads_them() -> None:
    # `nvdisasm` 13.2 of a cubin for sm_90: `LDS.128 R12, [R7]`, `@P0 LDG.E.U8`, `@!PT LDS RZ`
    code = word(0x0000_0000_0700_0984 | 0xC << 16 | 7 << 12, 0x0000_0000_0000_0C00)
    code += word(0x0000_0004_0404_0981, 0x0000_0000_0C1E_1100)
    code += word(0x0000_0000_FFFF_F984, 0x0000_0000_0000_0800)
    assert [*decode(code)] == [
        MachineInstruction(0, "LDS", 16, False),
        MachineInstruction(16, "LDG", 1, True),
        MachineInstruction(32, "!LDS", 0, True),
    ]


def test_statements_say_their_own_lines_and_no_other() -> None:
    marked = mark_lines(".entry k(\n)\n{\n.loc 1 7 0\nadd.s32 %r1,\n%r2, %r3;\nL1:\nret;\n}")
    assert [line for line in marked.split("\n") if ".loc" in line] == [
        "\t.loc 1 5 0",
        "\t.loc 1 8 0",
    ]


def test_an_assembled_kernel_tells_its_accesses_by_line() -> None:
    facts = measure(PTX, "k", archs=("sm_90",)).facts["sm_90"]
    found = [
        (line, m.operation, m.bytes) for line in (11, 12) for m in facts.by_line[line] if m.bytes
    ]
    assert found == [(11, "LDG", 1), (12, "STG", 16)]


@pytest.mark.parametrize(("ends", "known"), [(1, {0: 5, 16: 7}), (2, {})])
def test_lines_of_several_functions_are_not_told_apart(ends: int, known: dict[int, int]) -> None:
    # version 2: minimal instruction 16, line base -5, range 14, first special opcode 10
    header = bytes([16, 1, 251, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0])
    rows = bytes([3, 4, 1, 10 + 14 * 1 + 5 + 2]) + bytes([0, 1, 1])  # line 5; 16 bytes on, line 7
    program = rows * ends
    body = (2).to_bytes(2, "little") + len(header).to_bytes(4, "little") + header + program
    assert read_lines(len(body).to_bytes(4, "little") + body) == known


def test_a_schedule_is_read_as_nvdisasm_and_the_paper_read_it() -> None:
    # of a cubin for sm_90: `LDG.E R2, [R2]` that sets scoreboard 2, `FADD` that waits for it, and
    # `@P0 BRA` back to the first; the control bits are those of Jia et al., 2.1
    load = 0x0000_0000_0000_0981 | 7 << 12, (1 | 1 << 4 | 2 << 5 | 7 << 8) << 41
    add = 0x0000_0000_0000_0221 | 7 << 12, (4 | 7 << 5 | 7 << 8 | 1 << 2 << 11) << 41
    back = -12 & (1 << 38) - 1  # words of four bytes: three instructions
    low = 0x147 | 4 << 9 | 0 << 12 | (back & 0xFF) << 16 | (back >> 8 & (1 << 30) - 1) << 34
    branch = low & (1 << 64) - 1, (low >> 64) | (5 | 7 << 5 | 7 << 8) << 41
    found = [
        *read_schedule(
            b"".join(word(*each) for each in (load, add, branch)), {0: 8, 16: 9, 32: 10}, 90
        )
    ]
    none = NO_SCOREBOARD
    assert found == [
        Scheduled(8, 0x181, 1, 2, none, 0, 0, -1),
        Scheduled(9, 0x021, 4, none, none, 0b100, 0, -1),
        Scheduled(10, 0x147, 5, none, none, 0, 1, 0),
    ]


@pytest.mark.parametrize("arch", [75, 86, 89])
def test_offsets_of_branches_are_in_one_piece_before_hopper(arch: int) -> None:
    # `nvdisasm` 13.5 of cubins for sm_75 to sm_89: `@!P0 BRA 0x260` at 0x170
    branch = word(0x0000_00E0_0000_8947, 0x000F_EA00_0380_0000)
    (found,) = read_schedule(branch, {0: 0}, arch)
    assert found.target == (0xE0 + 0x10) // 16


LOOP = """.version 8.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
.reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .f32 %f<3>; .reg .pred %p<3>;
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [n];
mov.u32 %r2, 0;
mov.f32 %f1, 0f3F800000;
L1: .pragma "nounroll";
fma.rn.f32 %f1, %f1, 0f3F000000, 0f3F800000;
add.s32 %r2, %r2, 1;
setp.lt.s32 %p1, %r2, %r1;
@%p1 bra L1;
st.global.f32 [%rd1], %f1;
ret;
}
"""


def test_the_loop_that_was_measured_waits_24_cycles_a_round() -> None:
    """That of tests/validate/time/empty.cu: 31 cycles were measured, taken_cycles is the rest."""
    schedule = measure(LOOP, "k", archs=("sm_90",)).facts["sm_90"].schedule
    (end,) = (place for place, each in enumerate(schedule) if 0 <= each.target < place)
    assert sum(each.stall for each in schedule[schedule[end].target : end + 1]) == 24
