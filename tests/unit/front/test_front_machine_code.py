"""What machine code does to memory, and which line of PTX it comes from."""

import pytest

from cutrace.tracer.front.machine_code.decode import MachineInstruction, decode
from cutrace.tracer.front.machine_code.line_table import read_lines
from cutrace.tracer.front.machine_code.mark import mark_lines
from cutrace.tracer.front.resources import measure

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
    facts = measure(PTX, "k", archs=("sm_90",)).facts
    found = [(line, m.operation, m.bytes) for line in (11, 12) for m in facts[line] if m.bytes]
    assert found == [(11, "LDG", 1), (12, "STG", 16)]


@pytest.mark.parametrize(("ends", "known"), [(1, {0: 5, 16: 7}), (2, {})])
def test_lines_of_several_functions_are_not_told_apart(ends: int, known: dict[int, int]) -> None:
    # version 2: minimal instruction 16, line base -5, range 14, first special opcode 10
    header = bytes([16, 1, 251, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0])
    rows = bytes([3, 4, 1, 10 + 14 * 1 + 5 + 2]) + bytes([0, 1, 1])  # line 5; 16 bytes on, line 7
    program = rows * ends
    body = (2).to_bytes(2, "little") + len(header).to_bytes(4, "little") + header + program
    assert read_lines(len(body).to_bytes(4, "little") + body) == known
