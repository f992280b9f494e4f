"""Machine code leaves what PTX leaves in memory, by the instructions that a chip executes."""

import json
import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import cutrace
from cutrace.analyzer.summary_text import time_line
from cutrace.base.errors import CutraceError, KernelFault
from cutrace.tracer.front.resources import assemble_for
from cutrace.tracer.front.toolkit import find_file
from cutrace.tracer.ptx.kernel import Variable
from cutrace.tracer.sass import access
from cutrace.tracer.sass.cubin import Code, Cubin, Instruction
from cutrace.tracer.sass.flow import Flow
from cutrace.tracer.sass.frame import write_frame
from cutrace.tracer.sass.kernel import HANDLERS
from cutrace.tracer.sass.lift import Lifter
from cutrace.tracer.sass.reconvergence import find_barriers
from cutrace.tracer.session.record_options import RecordOptions, default_options
from cutrace.tracer.session.source.record import record
from cutrace.traces.verify import verify

ROOT = Path(__file__).parents[3]
GALLERY = ROOT / "traces" / "gallery"
WAYS = ROOT / "tests" / "validate" / "counters" / "ways.cu"
needs_disassembler = pytest.mark.skipif(
    find_file("nvdisasm") is None, reason="nvidia-cuda-nvdisasm is not installed"
)
PTX = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out)
{
ret;
}
"""
STORE = ("S2R R0, SR_TID.X", "MOV R20, c[0x0][0x160]", "MOV R21, c[0x0][0x164]",
         "IMAD.WIDE.U32 R20, R0, 0x8, R20")  # fmt: skip


def instructions(lines: list[str]) -> Iterator[Instruction]:
    """Instructions as nvdisasm prints them, from address 0 on."""
    for number, line in enumerate(lines):
        match = re.fullmatch(r"(?:@(\S+) )?(\S+) ?(.*)", line)
        assert match
        operands = tuple(each.strip() for each in match[3].split(",") if each)
        floats = [float(each) for each in operands if re.fullmatch(r"[+-]?(\d+\.\d+|INF)", each)]
        form = ">d" if match[2][0] == "D" else ">f"  # of a double, its upper word
        bits = int.from_bytes(struct.pack(form, floats[0])[:4], "big") if floats else 0
        calls = match[2].startswith("CALL")
        yield Instruction(16 * number, match[2], operands, match[1] or "", bits, calls)


def run(
    *lines: str,
    threads: int = 32,
    engine: str = "array",
    targets: dict[int, tuple[int, ...]] | None = None,
    shared: int = 0,
    trace: Path | None = None,
) -> list[list[int]]:
    """Run instructions for 8.0; return R4 and R5 of each thread, which are 0 before.

    `targets` are those of indirect branches, `shared` the bytes of shared memory.
    """
    text = [*STORE, "MOV R4, RZ", "MOV R5, RZ", *lines]
    if "EXIT" not in text:
        text += ["STG.E.64 [R20.64], R4", "EXIT"]
    banks = {2: struct.pack("<d", 1.5)}
    code = Code("k", 80, tuple(instructions(text)), 0x160, 0, 0, banks, (), {}, {}, targets or {})
    where = "cutrace.tracer.sass.kernel"
    with (
        patch(f"{where}.assemble_for", lambda ptx, arch, options: f"{lines}".encode()),
        patch(f"{where}.read_code", lambda cubin, kernel: code),
        patch(f"{where}.sections", lambda cubin: ()),
        patch("cutrace.tracer.session.module.resources_of", lambda *asked: done()),
        cutrace.Session(trace, code="sm_80", engine=engine) as gpu,
    ):
        out = gpu.to_device(np.zeros((threads, 2), np.uint32))
        # A comment makes each text another one: kernels are cached by their PTX.
        gpu.load_ptx(f"// {lines}\n{PTX}").get_function("k")[1, threads, 0, shared](out)
        values: list[list[int]] = out.copy_to_host().tolist()
    return values


def done() -> Any:
    from concurrent.futures import Future

    nothing: Future[tuple[()]] = Future()
    nothing.set_result(())
    return nothing


@pytest.mark.parametrize("engine", ["array", "compiled"])
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # 1.5 as a double has the upper word 0x3ff80000, which as an f32 is 1.9375: 0x3fc0
        (("HADD2 R4, -RZ.H0_H0, c[0x2][0x4].F32",), (0x3FC03FC0, 0)),
        # 1 and 0x1fff of 0x2000 parts of the last bit of a half, which are cut off
        (("MOV R2, 0x3f801fff", "HADD2 R4, R2.F32, -RZ.H0_H0"), (0x3C003C00, 0)),
        # -0 is below the range of 0 to 1, too
        (("MOV R2, 0x8000", "HADD2.F32.SAT R4, R2.H0_H0, -RZ.H0_H0"), (0, 0)),
        # 1 - 2 and 3 - 0.5
        (("MOV R2, 0x3f800000", "MOV R3, 0x40400000", "MOV R6, 0x40000000", "MOV R7, 0x3f000000",
          "FADD2 R4, R2.F32x2.HI_LO, -R6.F32x2.HI_LO"), (0xBF800000, 0x40200000)),
        # a uniform register that is kept in another one and comes back
        (("UMOV UR4, 0x5", "MOV.SPILL R2, UR4", "UMOV UR4, 0x6", "R2UR.FILL UR4, R2",
          "MOV R4, UR4"), (5, 0)),
        # 2 * 1 + 2 and 0.5 * 3 + 0.5
        (("MOV R2, 0x3f800000", "MOV R3, 0x40400000", "MOV R6, 0x40000000", "MOV R7, 0x3f000000",
          "FFMA2 R4, R6.F32x2.HI_LO, R2.F32x2.HI_LO, R6.F32x2.HI_LO"), (0x40800000, 0x40000000)),
        # 1.0625 has half of the last bit of e4m3 below 1; random bits are 0x8000, reversed 1, for
        # the second number and the first, then 1 and 0x8000: with 0x8000 it is rounded up
        (("MOV R2, 0x3f880000", "MOV R3, 0x80000001",
          "F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C.RS R6, R2, R2, R3",
          "F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C.RS R4, R2, R2, R6"), (0x38393938, 0)),
        # half of the last bit of bf16, and half of it or just less
        (("MOV R2, 0x3f808000", "MOV R3, 0x80007fff", "F2FP.BF16.F32.PACK_AB.RS R4, R2, R2, R3"),
         (0x3F813F80, 0)),
        # 32 products of 1 as e4m3 and 2 as e5m2
        (("MOV R8, 0x38383838", "MOV R9, R8", "MOV R10, R8", "MOV R11, R8", "MOV R12, 0x40404040",
          "MOV R13, R12", "QMMA.16832.F32.E4M3.E5M2 R4, R8.ROW, R12.COL, RZ"),
         (0x42800000, 0x42800000)),
        # 0xffffffff + 1 carries into the upper word
        (("MOV R2, 0xffffffff", "IADD3 R4, P0, R2, 0x1, RZ", "IADD3.X R5, RZ, RZ, RZ, P0, !PT"),
         (0, 1)),
        # 5 - 0 is 5 + ~0 + 1, which has a carry: no borrow
        (("MOV R2, 0x5", "MOV R3, RZ", "IADD3 R4, P0, R2, -R3, RZ",
          "IADD3.X R5, RZ, RZ, RZ, P0, !PT"), (5, 1)),
        # three times 2^32 - 1 is 2 * 2^32 + 2^32 - 3: both carries
        (("MOV R2, 0xffffffff", "IADD3 R4, P0, P1, R2, R2, R2", "IADD3.X R5, RZ, RZ, RZ, P0, P1"),
         (0xFFFFFFFD, 2)),
        # 0x12345678 * 0x9abcdef0 = 0x0b00ea4e242d2080
        (("MOV R2, 0x12345678", "MOV R3, 0x9abcdef0", "IMAD.WIDE.U32 R4, R2, R3, RZ"),
         (0x242D2080, 0x0B00EA4E)),
        # the upper word of -3 * 0x40000000 + 7 * 2^32 is -1 + 7
        (("MOV R2, -0x3", "MOV R8, RZ", "MOV R9, 0x7", "IMAD.HI R4, R2, 0x40000000, R8"), (6, 0)),
        # the sign of -8, shifted by 4, is in the upper word of the pair; plus 9
        (("MOV R2, -0x8", "MOV R3, 0x9", "LEA.HI.SX32 R4, R2, R3, 0x4"), (8, 0)),
        # (9, 5) - ((1, 3) << 4) is -7 * 2^32 - 43, and 5 - (0 << 4) borrows nothing
        (("MOV R2, 0x3", "MOV R3, 0x1", "MOV R6, 0x5", "MOV R7, 0x9", "LEA R4, P0, -R2, R6, 0x4",
          "LEA.HI.X R5, ~R2, R7, R3, 0x4, P0"), (0xFFFFFFD5, 0xFFFFFFF8)),
        (("MOV R6, 0x5", "LEA R4, P0, -RZ, R6, 0x4", "@P0 MOV R5, 0x1"), (5, 1)),
        # the sign is that of the upper word of -8 << 4, which is -1: 9 + 1
        (("MOV R2, -0x8", "MOV R3, 0x9", "LEA.HI.SX32 R4, -R2, R3, 0x4"), (10, 0)),
        # (1, 0x80000000) << 1 has 3 above
        (("MOV R2, 0x80000000", "MOV R3, 0x1", "SHF.L.U64.HI R4, R2, 0x1, R3"), (3, 0)),
        # more than 31 shifts out everything, unless the count wraps
        (("MOV R2, 0xff", "MOV R3, 0x21", "SHF.L.U32 R4, R2, R3, RZ", "SHF.L.U32.W R5, R2, R3, RZ"),
         (0, 0x1FE)),
        # bytes 3 2 of a, then 1 0 of c, which are numbers 7 to 4
        (("MOV R2, 0x44332211", "MOV R3, 0x88776655", "PRMT R4, R2, 0x3254, R3"), (0x44336655, 0)),
        # a & (b ^ c): table 0x60
        (("MOV R2, 0xff", "MOV R3, 0xf0f", "LOP3.LUT R4, R2, R3, 0xcc, 0x60, !PT"), (0xC3, 0)),
        # 0x8 of four bits is -8; three ones from bit 4 on
        (("MOV R2, 0x8", "SGXT R4, R2, 0x4", "MOV R3, 0x4", "BMSK R5, R3, 0x3"),
         (0xFFFFFFF8, 0x70)),
        # pairs (1, 2) and (1, 3): the upper words are equal, the lower decide
        (("ISETP.LT.U32.AND P0, PT, RZ, RZ, PT", "MOV R2, 0x2",
          "ISETP.LT.U32.AND P0, PT, R2, 0x3, PT", "MOV R3, 0x1",
          "ISETP.LT.AND.EX P1, PT, R3, 0x1, PT, P0", "SEL R4, R2, RZ, P1"), (2, 0)),
        # both predicates of a comparison: it and its opposite
        (("MOV R2, 0x2", "ISETP.GT.AND P0, P1, R2, 0x1, PT", "SEL R4, R2, RZ, P0",
          "SEL R5, R2, RZ, P1"), (2, 0)),
        # bits 0 and 2 of R2 to predicates; then these in bits again, with bit 8 of R3
        (("MOV R2, 0x5", "R2P PR, R2, 0x7", "MOV R3, 0x107", "P2R R4, PR, R3, 0x7"), (0x105, 0)),
        # -0.5 of the instruction's own bits; the larger of it and 1.5 * 2
        (("MOV R2, 0x40400000", "FADD R4, R2, -0.5", "FMNMX R5, R2, -0.5, !PT"),
         (0x40200000, 0x40400000)),
        # 1.5 + 1.5 of a constant bank is 3, whose upper word is 0x40080000
        # 1.5 - 0.5 is 1, -1.5 - 0.5 is -2, and 1.5 less infinity has a sign
        (("MOV R3, 0x3ff80000", "MOV R2, RZ", "DADD R4, R2, -0.5"), (0, 0x3FF00000)),
        (("MOV R3, 0x3ff80000", "MOV R2, RZ", "DADD R4, -R2, -0.5"), (0, 0xC0000000)),
        (("MOV R3, 0x3ff80000", "MOV R2, RZ", "DADD R4, R2, -INF"), (0, 0xFFF00000)),
        # of 4 words of a row and a column, 3 & 6 has a bit and 3 ^ 6 has two
        (("MOV R2, 0x3", "MOV R3, 0x6", "MOV R6, 0x5", "MOV R7, 0x7",
          "BMMA.88128.AND.POPC R4, R2.ROW, R3.COL, R6"), (4 + 5, 4 + 7)),
        (("MOV R2, 0x3", "MOV R3, 0x6", "BMMA.88128.XOR.POPC R4, R2.ROW, R3.COL, RZ"), (8, 8)),
        # of the row of the results in R4 and R5, R8 has the first half and R10 the second
        (("MOV R8, 0x3", "MOV R9, RZ", "MOV R10, 0xf0", "MOV R11, RZ", "MOV R2, 0x6",
          "MOV R3, 0x30", "BMMA.168256.AND.POPC R4, R8.ROW, R2.COL, RZ"), (12, 12)),
        (("MOV R2, c[0x2][0x0]", "MOV R3, c[0x2][0x4]", "DADD R4, R2, c[0x2][0x0]"),
         (0, 0x40080000)),
        # |3 - 10| + 5
        (("MOV R2, 0x3", "MOV R3, 0x5", "VABSDIFF R4, R2, 0xa, R3"), (12, 0)),
        # |1 - 3| + |255 - 1| + 2 = 258 of bytes; -2 and 3 times the upper bytes 3 and 5, plus 1
        (("MOV R2, 0xff01", "MOV R3, 0x103", "MOV R6, 0x2", "VABSDIFF4.U8.ACC R4, R2, R3, R6",
          "MOV R2, 0x3fffe", "MOV R3, 0x5030000", "MOV R6, 0x1", "IDP.2A.HI.S16.U8 R5, R2, R3, R6"),
         (258, 10)),
        # halves of words: 3 of 3 and 7, -1 of 5 and -1
        (("MOV R2, 0x30005", "MOV R3, 0x7ffff", "VIMNMX.S16x2 R4, R2, R3, PT"), (0x3FFFF, 0)),
        # halves 1 and 2 are less than 2, and not: a predicate each; 1.0 of the first; all its bits
        (("MOV R2, 0x40003c00", "MOV R3, 0x40004000", "HSETP2.LT.AND P0, P1, R2, R3, PT",
          "HSET2.BF.LT.AND R4, R2, R3, PT", "@P0 IADD3 R4, R4, 0x1, RZ",
          "@P1 IADD3 R4, R4, 0x2, RZ", "HSET2.LT.AND R5, R2, R3, PT"), (0x3C01, 0xFFFF)),
        # the second predicate is joined with P0 as it was, before the first is written: true
        (("ISETP.EQ.AND P0, PT, RZ, RZ, PT", "MOV R2, 0x40003c00",
          "HSETP2.EQ.AND P0, P1, R2, R2.H1_H1, P0", "@P0 MOV R4, 0x1", "@P1 MOV R5, 0x1"), (0, 1)),
        # of bf16 -1 and 2, 1 and 1: the greatest of each half, swapped to 1 1 by the selector
        (("MOV R2, 0x4000bf80", "MOV R3, 0x3f80", "HMNMX2.BF16_V2 R4, R2, R3.H0_H0, !PT",
          "HMNMX2.BF16_V2 R5, R2, R3.H0_H0, PT"), (0x40003F80, 0x3F80BF80)),
        # 0.5 < 1.5 as 1.0, and as all bits of the opposite
        (("MOV R2, 0x3f000000", "FSET.BF.LT.AND R4, R2, 1.5, PT", "FSET.GEU.AND R5, R2, 1.5, PT"),
         (0x3F800000, 0)),
        # minima of 64 bits: the predicate says which, and the last one is false. -1 and 5, signed
        (("MOV R2, 0xffffffff", "MOV R3, 0xffffffff", "MOV R6, 0x5", "MOV R7, RZ",
          "IMNMX.S64 PT, PT, R4, R2, R6, PT, !PT"), (0xFFFFFFFF, 0xFFFFFFFF)),
        (("MOV R2, 0xffffffff", "MOV R3, 0xffffffff", "MOV R6, 0x5", "MOV R7, RZ",
          "IMNMX.U64 PT, PT, R4, R2, R6, PT, !PT"), (5, 0)),
        (("MOV R2, 0x7", "MOV R3, 0x1", "IMNMX.U64 PT, PT, R4, R2, 0x3f, !PT, !PT"), (7, 1)),
        # 2^64 - 1 and 1 carry; 2^64 - 1 and that carry again
        (("MOV R2, 0xffffffff", "MOV R3, 0xffffffff", "MOV R6, 0x1", "MOV R7, RZ",
          "IADD.64 RZ, P0, R2, R6", "@P0 MOV R4, 0x1", "IADD.64.X R8, P1, R2, RZ, P0",
          "@P1 IADD3 R5, R8, 0x2, RZ"), (1, 2)),
        # 2^31 - 1 and 5, -2^31 and 5 away: the ends of the range
        (("MOV R2, 0x7fffffff", "MOV R3, 0x5", "VIADD.S32.ISAT R4, R2, R3",
          "MOV R2, 0x80000000", "VIADD.S32.ISAT R5, R2, -R3"), (0x7FFFFFFF, 0x80000000)),
        # the sign of a constant, 0x3ff80000, and of -1: a & ~b, and its opposite order
        (("MOV R2, 0xffffffff", "PLOP3.LUT P0, PT, R2.SIGN, c[0x2][0x4].SIGN, PT, 0x30, 0x0",
          "PLOP3.LUT P1, PT, c[0x2][0x4].SIGN, R2.SIGN, PT, 0x30, 0x0", "@P0 MOV R4, 0x1",
          "@P1 MOV R5, 0x1"), (1, 0)),
        # -1.5 and 1.5 of f16, up to whole numbers; -1.5 of bf16
        (("MOV R2, 0x3e00be00", "F2I.S64.F16.CEIL R4, -R2"), (2, 0)),
        (("MOV R2, 0x3e00be00", "F2I.F16.CEIL R4, -R2.H1", "F2I.F16.CEIL R5, -|R2|"),
         (0xFFFFFFFF, 0xFFFFFFFF)),
        (("MOV R2, 0xbfc0", "FRND.BF16.CEIL R4, -R2", "FRND.BF16.CEIL R5, R2"), (0x4000, 0xBF80)),
        # 0 - -2^31 is too great
        (("MOV R2, 0x80000000", "VIADD.S32.ISAT R4, RZ, -R2", "VIADD.S32.ISAT R5, -R2, RZ"),
         (0x7FFFFFFF, 0x7FFFFFFF)),
        (("MOV R2, 0x7", "IADD3.SAT R4, RZ, -R2, RZ", "VIADD.S32.ISAT R5, RZ, RZ"),
         (0xFFFFFFF9, 0)),
        # |1 - 5|, |3 - 1|, |255 - 0| and |0 - 128| of bytes
        (("MOV R2, 0xff0301", "MOV R3, 0x80000105", "VABSDIFF4.U8 R4, R2, R3, R2"),
         (0x80FF0204, 0)),
        # bytes of 2.5 to even, and cut off from 3.5; of 300 and no number; -1 and infinity
        (("MOV R2, 0x40200000", "F2IP.U8.F32.NTZ R4, RZ, R2, RZ", "MOV R2, 0x40600000",
          "F2IP.U8.F32.TRUNC.NTZ R5, RZ, R2, RZ"), (2, 3)),
        (("MOV R2, 0x43960000", "F2IP.U8.F32.NTZ R4, RZ, R2, RZ", "MOV R2, 0x7fffffff",
          "F2IP.U8.F32.TRUNC.NTZ R5, RZ, R2, RZ"), (255, 0)),
        (("MOV R2, 0xbf800000", "F2IP.U8.F32.NTZ R4, RZ, R2, RZ", "MOV R2, 0x7f800000",
          "F2IP.U8.F32.TRUNC.NTZ R5, RZ, R2, RZ"), (0, 255)),
        # bytes: 1 - 2, 5 + 3; the least of 1 and 2, 255 and 4
        (("MOV R2, 0xff01", "MOV R3, 0x402", "VIADD.U8x4 R4, R2, -R3",
          "VIMNMX.U8x4 R5, R2, R3, PT"), (0xFBFF, 0x401)),
        (("MOV R2, 0xff01", "MOV R3, 0x402", "VIADD.S8x4 R4, R2, -R3",
          "VIADD.S8x4 R5, R2, R3"), (0xFBFF, 0x303)),
        # 1.5 of the upper half plus 2.0; 1.5 * 2 + 2
        (("MOV R2, 0x3e004000", "MOV R3, 0x40000000", "FHADD R4, R2.H1, R3",
          "FHFMA R5, R2.H1, R2, R3"), (0x40600000, 0x40A00000)),
        # -1 and 7 of two lists of numbers of 4 bits, of the only lane
        (("MOV R2, 0x7f", "MOVM.S4TO8.M832 R4, R2", "MOV R5, RZ"), (0x7FF, 0)),
        (("MOV R2, 0x7f", "MOVM.U4TO8.M832 R4, R2", "MOV R5, RZ"), (0x70F, 0)),
        # of 1.0, 2.0 and -1.0 the least, and of the upper halves, one of which is no number
        (("MOV R2, 0x7e003c00", "MOV R3, 0x4000", "MOV R6, 0xbc00",
          "VHMNMX.NAN R4, R2, R3, R6, PT"), (0x7FFFBC00, 0)),
        # 2^3 as an exponent alone, rounded up to 2^4 from 9.0, and read again
        (("MOV R2, 0x41000000", "MOV R3, 0x41100000",
          "F2FP.SATFINITE.E8.F32.PACK_AB_MERGE_C.RP R4, R3, R2, RZ",
          "F2FP.BF16.E8.UNPACK_B R5, R4"), (0x8382, 0x41804100)),
        # 13 bits of 1 + 2^13 - 1 ulp are cut off, or rounded up
        (("MOV R2, 0x3f801fff", "F2FP.RELU.TF32.F32.PACK_B.RZ R4, R2",
          "F2FP.TF32.F32.PACK_B R5, R2"), (0x3F800000, 0x3F802000)),
        # a predicate that is false keeps the old value, also of its own instruction
        (("ISETP.NE.AND P0, PT, RZ, RZ, PT", "MOV R4, 0x7", "@P0 IADD3 R4, R4, 0x1, RZ",
          "@!P0 ISETP.EQ.AND P0, PT, RZ, RZ, PT", "@P0 MOV R5, 0x3"), (7, 3)),
    ],
)  # fmt: skip
def test_an_instruction_computes(
    lines: tuple[str, ...], expected: tuple[int, int], engine: str
) -> None:
    assert run(*lines, threads=1, engine=engine) == [list(expected)]


@pytest.mark.parametrize(
    ("high", "arrivals", "over"),
    [
        (0x7FFFF000, 0, (0, 1)),  # phase 0 runs: the odd parity is that of the phase before
        (0xFFFFF000, 0, (1, 0)),  # bit 63: phase 1 runs, as if phase 0 were over
        (0xFFFFF000, 1, (1, 0)),  # one of two arrivals
        (0xFFFFF000, 2, (0, 1)),  # phase 2 runs
    ],
)
@pytest.mark.parametrize(
    "store", ["SYNCS.EXCH.64 URZ, [UR6], UR4", "STS.64 [R6], R2", "STS.128 [UR7], R24"]
)
def test_the_word_of_an_mbarrier_says_how_many_arrive_and_in_which_phase(
    store: str, high: int, arrivals: int, over: tuple[int, int]
) -> None:
    # 2^20 - 2 in bits 1 to 20, and again in bits 43 to 62: two arrivals; a plain store, too, may
    # initialize one
    lines = ["UMOV UR6, 0x8", "UMOV UR4, 0x1ffffc", f"UMOV UR5, {high:#x}", "MOV R8, RZ",
             "MOV R2, UR4", "MOV R3, UR5", "MOV R6, UR6", "MOV R26, R2", "MOV R27, R3",
             "UMOV UR7, 0x0", "MOV R9, 0x80000000", store,
             *["SYNCS.ARRIVE.TRANS64.RED.A1T0 RZ, [UR6], RZ"] * arrivals,
             "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR6], R8", "@P0 MOV R4, 0x1",
             "SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR6], R9", "@P1 MOV R5, 0x1"]  # fmt: skip
    assert run(*lines, threads=1, shared=64) == [list(over)]


def test_a_store_of_a_kernel_with_mbarriers_keeps_what_is_none() -> None:
    # bits 1 to 20 and 43 to 62 differ
    lines = ["MOV R2, 0x1ffffc", "MOV R3, 0x7fffe000", "MOV R6, 0x8", "STS.64 [R6], R2",
             "SYNCS.CCTL.IV [R6]", "LDS.64 R4, [R6]"]  # fmt: skip
    assert run(*lines, threads=1, shared=64) == [[0x1FFFFC, 0x7FFFE000]]


def test_a_register_of_the_lane_that_a_guard_lets_pass_goes_to_all() -> None:
    lines = ["MOV R2, R0", "ISETP.EQ.AND P0, PT, R0, 0x3, PT", "@P0 R2UR.BROADCAST UR4, R2",
             "MOV R4, UR4"]  # fmt: skip
    assert run(*lines) == [[3, 0]] * 32


def test_lanes_that_break_out_of_a_barrier_meet_the_others_at_the_outer_one() -> None:
    # lanes below 4 leave B1 by falling past the branch of the others
    lines = ["ISETP.GE.AND P0, PT, R0, 0x8, PT", "ISETP.GE.AND P2, PT, R0, 0x4, PT",
             "BSSY.RECONVERGENT B0, 0x110", "BSSY.RELIABLE B1, 0xf0", "@P0 BRA 0xe0",
             "@!P2 BREAK.RELIABLE B1", "@P2 BRA 0xe0", "BRA 0x100", "BSYNC.RELIABLE B1",
             "IADD3 R5, R5, 0x1, RZ", "BSYNC.RECONVERGENT B0", "VOTE.ANY R4, PT, PT"]  # fmt: skip
    assert run(*lines) == [[0xFFFFFFFF, int(lane >= 4)] for lane in range(32)]


@pytest.mark.parametrize("first", [4, 28])
def test_the_smaller_side_runs_first_where_lanes_leave_a_barrier(first: int) -> None:
    # lanes from `first` on leave B1; each side reads the clock
    lines = [f"ISETP.GE.AND P2, PT, R0, {first:#x}, PT", "BSSY B0, 0x110", "BSSY B1, 0xd0",
             "@P2 BREAK B1", "@P2 BRA 0xe0", "S2R R5, SR_CLOCKLO", "BSYNC B1", "BRA 0x100",
             "S2R R5, SR_CLOCKLO", "BRA 0x100", "BSYNC B0"]  # fmt: skip
    clocks = [clock for _, clock in run(*lines)]
    assert (clocks[0] < clocks[31]) == (first < 16)
    assert len({*clocks[:first]}) == len({*clocks[first:]}) == 1


def test_lanes_leave_where_the_guard_and_the_condition_of_an_exit_hold() -> None:
    # of lanes from 4 on those below 8 leave before anything is stored
    lines = ["ISETP.GE.AND P0, PT, R0, 0x4, PT", "ISETP.LT.AND P1, PT, R0, 0x8, PT",
             "@P0 EXIT P1", "MOV R4, 0x1", "STG.E.64 [R20.64], R4", "EXIT"]  # fmt: skip
    assert run(*lines) == [[int(not 4 <= lane < 8), 0] for lane in range(32)]


def test_a_load_with_a_condition_has_zero_where_it_is_false() -> None:
    lines = ["MOV R2, 0x7", "STG.E [R20.64], R2", "MOV R4, 0x9", "ISETP.LT.AND P0, PT, R0, 0x4, PT",
             "LDG.E.LTC128B.CONSTANT R4, [R20], P0"]  # fmt: skip
    assert run(*lines) == [[7 if lane < 4 else 0, 0] for lane in range(32)]


def test_a_subroutine_returns_behind_the_place_that_was_loaded() -> None:
    # LEPC at 0x60 and 0x80, and the calls behind them; the subroutine is at 0xd0
    lines = ["LEPC R34", "CALL.REL 0xd0", "LEPC R34", "CALL.REL 0xd0", "MOV R5, 0x9",
             "STG.E.64 [R20.64], R4", "EXIT", "IADD3 R4, R4, 0x1, RZ",
             "RET.ABS R34, 0x20"]  # fmt: skip
    assert run(*lines, threads=2) == [[2, 9], [2, 9]]


def test_a_call_of_a_place_without_return_is_a_jump() -> None:
    # 0x60 adds lane 1's number, then 2's, ...; from 3 on 0xc0 is called: back to 0x60 up to 10
    lines = ["IADD3 R5, R5, 0x1, RZ", "SHFL.IDX PT, R3, R0, R5, 0x1f", "IADD3 R4, R4, R3, RZ",
             "ISETP.GE.AND P0, PT, R5, 0x3, PT", "@P0 CALL.REL.NOINC 0xc0", "BRA 0x60",
             "ISETP.GE.AND P1, PT, R4, 0xa, PT", "@!P1 BRA 0x60"]  # fmt: skip
    assert run(*lines) == [[1 + 2 + 3 + 4, 4]] * 32


def test_an_address_is_the_sum_of_a_pair_and_a_uniform_pair() -> None:
    # 8 bytes further on than the own place: the next thread's; the last thread stores nothing
    lines = ["UMOV UR4, 0x8", "UMOV UR5, URZ", "MOV R4, R0", "ISETP.LT.AND P0, PT, R0, 0x7, PT",
             "@P0 STG.E.64 [R20.64+UR4], R4", "EXIT"]  # fmt: skip
    assert run(*lines, threads=8) == [[max(lane - 1, 0), 0] for lane in range(8)]


def test_lanes_reconverge_where_their_barrier_says() -> None:
    # Lanes below 5 add 1, the others 2; then all count the lanes that run along.
    lines = ["BSSY B0, 0xe0", "ISETP.GE.AND P0, PT, R0, 0x5, PT", "@P0 BRA 0xb0", "MOV R4, 0x1",
             "BRA 0xd0", "MOV R4, 0x2", "NOP", "BSYNC B0", "VOTE.ANY R3, PT, PT",
             "POPC R5, R3"]  # fmt: skip
    assert run(*lines) == [[1 if lane < 5 else 2, 32] for lane in range(32)]


def test_lanes_that_are_apart_up_to_their_barrier_meet_at_a_warpsync_before_it() -> None:
    # Both sides of the branch at 0x80 pass 0xa0, where each lane waits and reads that 16 further on
    lines = ["BSSY B0, 0xd0", "ISETP.GE.U32.AND P0, PT, R0, 0x10, PT", "@!P0 BRA 0xa0",
             "MOV R5, 0x7", "WARPSYNC.ALL", "SHFL.BFLY PT, R4, R0, 0x10, 0x1f",
             "BSYNC B0"]  # fmt: skip
    assert run(*lines) == [[lane ^ 16, 7 * (lane >= 16)] for lane in range(32)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("FROB R4, R2", "does not know the opcode FROB"),
        ("IADD3.SPIN R4, R2, R3, RZ", "does not know the modifier `.SPIN`"),
        ("MUFU.LOG R4, R2", "does not know these modifiers"),
        ("MOV R4, c[0x0][0x54]", "does not know what lies there in constant bank 0"),
        ("LDG.E R4, [R2+UR4]", "does not know the address"),
        ("EXIT.KEEPREFCOUNT", "does not know this exit"),
        ("MOV R4, 32@lo(nobody)", "knows no code with the symbol `nobody`"),
        ("P2R R4, PR, RZ, 0x7, 0x1, 0x2", "does not know this form"),
        ("F2IP.U8.F32.NTZ R4, R3, R2, RZ", "does not know this form"),
        ("BRA 0x4000", "goes to address 0x4000, which has no instruction"),
        ("S2R R4, SR_NOBODY", "does not know this special register"),
        ("BRX R2, -0x60", "does not know where this goes"),
    ],
)
def test_what_is_not_known_is_refused_by_kernel_address_and_text(line: str, why: str) -> None:
    with pytest.raises(CutraceError) as refusal:
        run(line)
    message = str(refusal.value)
    assert message.startswith("kernel `k`, machine code of sm_80")
    assert why in message
    if "goes to" not in why:
        assert f"address 0x0060: cutrace {message.partition('cutrace ')[2]}" in message
        assert f"`{line}`" in message


DEPTH = """.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 sum) depth(.param .b32 n) {
.reg .b32 %r<4>; .reg .pred %p;
ld.param.b32 %r1, [n]; mov.u32 %r2, 0; setp.eq.u32 %p, %r1, 0; @%p bra DONE;
sub.u32 %r3, %r1, 1;
{ .param .b32 less; .param .b32 below; st.param.b32 [less], %r3;
call.uni (below), depth, (less); ld.param.b32 %r2, [below]; }
add.u32 %r2, %r2, %r1;
DONE: st.param.b32 [sum], %r2; ret; }
"""
"""A function that calls itself: the sum of the numbers up to one."""


@needs_disassembler
@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_a_function_calls_itself_as_deep_as_each_lane_needs(engine: str, tmp_path: Path) -> None:
    depth = f"""{DEPTH}.visible .entry k(.param .u64 out, .param .u32 n) {{
.reg .b32 %r<4>; .reg .b64 %o, %w; ld.param.u64 %o, [out]; mov.u32 %r1, %tid.x;
mul.wide.u32 %w, %r1, 8; add.u64 %o, %o, %w;
{{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), depth, (a);
ld.param.b32 %r2, [b]; }}
activemask.b32 %r3; st.global.v2.u32 [%o], {{%r2, %r3}}; ret; }}
"""
    with cutrace.Session(tmp_path / "t.cutrace", code="sm_80", engine=engine) as gpu:
        out = gpu.device_array((32, 2), np.uint32)
        gpu.load_ptx(depth).get_function("k")[1, 32](out, np.uint32(0))
        sums = [[n * (n + 1) // 2, 0xFFFFFFFF] for n in range(32)]  # and all lanes are back
        assert out.copy_to_host().tolist() == sums
    trace = cutrace.read_trace(tmp_path / "t.cutrace")
    assert verify(trace) == []
    times = cutrace.analyze(trace, "a100", jobs=1).launches[0].table("opcode")
    assert dict(times.select("opcode", "instructions").rows())["RET"] == 32  # a level each


@needs_disassembler
@pytest.mark.parametrize("engine", ["array", "compiled"])
@pytest.mark.parametrize("calling", [0x55555555, 0x0000FF00, 0x7FFFFFFF])
def test_lanes_back_from_a_recursion_meet_those_that_did_not_call(
    calling: int, engine: str
) -> None:
    ptx = f"""{DEPTH}
.visible .entry k(.param .u64 out, .param .u32 calling) {{
.reg .b32 %r<4>; .reg .b64 %o, %w; .reg .pred %p;
ld.param.u64 %o, [out]; ld.param.u32 %r3, [calling]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
mul.wide.u32 %w, %r1, 8; add.u64 %o, %o, %w;
shr.u32 %r3, %r3, %r1; and.b32 %r3, %r3, 1; setp.eq.u32 %p, %r3, 0; @%p bra AFTER;
{{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), depth, (a);
ld.param.b32 %r2, [b]; }}
AFTER: shfl.sync.idx.b32 %r3, %r1, 31, 31, -1; st.global.v2.u32 [%o], {{%r2, %r3}}; ret; }}
"""
    with cutrace.Session(code="sm_80", engine=engine) as gpu:
        out = gpu.device_array((32, 2), np.uint32)
        gpu.load_ptx(ptx).get_function("k")[1, 32](out, np.uint32(calling))
        sums = [[n * (n + 1) // 2 * (calling >> n & 1), 31] for n in range(32)]
        assert out.copy_to_host().tolist() == sums


def test_another_code_is_refused() -> None:
    with pytest.raises(CutraceError, match="there is no code `sm_42`, expected one of ptx, sm_75"):
        cutrace.Session(code="sm_42")


def leave(source: Path, code: str, engine: str, path: Path, *launch: str) -> dict[str, bytes]:
    """What the launches of a source leave in each array."""
    values: dict[str, Any] = {}
    with default_options(RecordOptions(code=code, engine=engine, final_values=values)):
        record(source, launch, path, arch="compute_80")
    return {name: array.tobytes() for name, array in values.items()}


@needs_disassembler
@pytest.mark.parametrize(
    ("source", "code", "engine"),
    [
        ("divergence/by_thread.ptx", "sm_90", "array"),
        ("divergence/by_thread.ptx", "sm_75", "compiled"),
        ("reduction/reduce5_last_warp.ptx", "sm_80", "array"),
        ("reduction/reduce5_last_warp.ptx", "sm_120", "compiled"),
        ("histogram/histogram_static.ptx", "sm_86", "array"),
        ("transpose/transpose_padded.ptx", "sm_89", "array"),
        ("local_array/local_array.ptx", "sm_100", "array"),
        ("../../tests/validate/counters/fresh_tensor.cu", "sm_80", "array"),
    ],
)
def test_machine_code_leaves_what_ptx_leaves(
    source: str, code: str, engine: str, tmp_path: Path
) -> None:
    ptx = leave(GALLERY / source, "ptx", "array", tmp_path / "p.cutrace")
    machine = leave(GALLERY / source, code, engine, tmp_path / "m.cutrace")
    assert ptx
    assert ptx == machine


PRODUCTS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b64 %a, %t; .reg .f64 %d<9>, %e<4>; .reg .b32 %r<6>; .shared .align 16 .b8 box[512];
ld.param.u64 %a, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %t, %r1, 64; add.u64 %a, %a, %t;
ld.global.v2.f64 {%d0, %d1}, [%a]; ld.global.v2.f64 {%d2, %d3}, [%a+16];
ld.global.v2.f64 {%d4, %d5}, [%a+32]; ld.global.v2.f64 {%d6, %d7}, [%a+48];
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%e0, %e1}, {%d0}, {%d1}, {%d2, %d3};
st.global.v2.f64 [%a], {%e0, %e1};
mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64
  {%e0, %e1, %e2, %e3}, {%d0, %d1}, {%d2}, {%d4, %d5, %d6, %d7};
mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64
  {%e0, %e1, %e2, %e3}, {%d0, %d1, %d4, %d5}, {%d2, %d3}, {%e0, %e1, %e2, %e3};
mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%e0, %e1, %e2, %e3},
  {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, {%d2, %d3, %d4, %d5}, {%e0, %e1, %e2, %e3};
st.global.v2.f64 [%a+16], {%e0, %e1}; st.global.v2.f64 [%a+32], {%e2, %e3};
mov.u32 %r2, box; shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3; mul.lo.u32 %r4, %r1, 0x10003;
not.b32 %r5, %r4; stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r2], {%r4, %r5};
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2+256], {%r5};
shl.b32 %r3, %r1, 3; mov.u32 %r2, box; add.u32 %r2, %r2, %r3;
ld.shared.v2.u32 {%r4, %r5}, [%r2]; st.global.v2.u32 [%a+48], {%r4, %r5}; ret; }
"""


@needs_disassembler
def test_products_of_doubles_and_matrices_to_shared_memory_are_those_of_ptx() -> None:
    def run_products(code: str) -> bytes:
        with cutrace.Session(code=code) as gpu:
            values = gpu.to_device(np.random.default_rng(1).standard_normal(256))
            kernel = gpu.load_ptx(PRODUCTS).get_function("k")
            kernel[1, 32](values)
            return values.copy_to_host().tobytes()

    assert run_products("sm_90") == run_products("ptx")


TEXELS = """
extern "C" __global__ void k(float4 *out, cudaTextureObject_t image) {
    out[threadIdx.x] = tex2D<float4>(image, threadIdx.x % 8 + 0.5f, threadIdx.x / 8 + 0.5f);
}
"""


@needs_disassembler
@pytest.mark.parametrize("code", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_all_four_channels_of_a_texel_are_read(code: str) -> None:
    texels = np.arange(128, dtype=np.float32).reshape(4, 8, 4)
    with cutrace.Session(code=code) as gpu:
        out = gpu.to_device(np.zeros((4, 8, 4), np.float32))
        gpu.compile(TEXELS).get_function("k")[1, 32](out, gpu.texture(texels, channels=4))
        assert (out.copy_to_host() == texels).all()


SLICES = """
extern "C" __global__ void k(float *out, cudaTextureObject_t image, float z) {
    int x = threadIdx.x % 8, y = threadIdx.x / 8;
    out[threadIdx.x] = tex3D<float>(image, x + 0.5f, y + 0.5f, z + x % 3);
    out[threadIdx.x + 32] = tex3DLod<float>(image, x + 0.5f, 1.5f, 0.5f, z);
}
"""


@needs_disassembler
@pytest.mark.parametrize("code", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_texels_in_three_dimensions_are_read(code: str) -> None:
    texels = np.arange(96, dtype=np.float32).reshape(3, 4, 8)
    with cutrace.Session(code=code) as gpu:
        out = gpu.to_device(np.zeros((2, 4, 8), np.float32))
        gpu.compile(SLICES).get_function("k")[1, 32](out, gpu.texture(texels), np.float32(0.5))
        found = out.copy_to_host()
    y, x = np.indices((4, 8))
    assert (found[0] == texels[x % 3, y, x]).all()
    assert (found[1] == texels[0, 1, x]).all()


GATHERED = """
extern "C" __global__ void k(float4 *out, cudaTextureObject_t flat, cudaTextureObject_t layered) {
    int x = threadIdx.x % 8, y = threadIdx.x / 8;
    out[threadIdx.x] = tex2Dgather<float4>(flat, x + 1.0f, y + 1.0f, 0);
    out[threadIdx.x].w = tex2DLayered<float>(layered, x + 0.5f, y + 0.5f, x % 3);
}
"""


@needs_disassembler
@pytest.mark.parametrize("code", ["sm_75", "sm_90", "sm_120"])
def test_four_texels_are_gathered_and_those_of_a_layer_are_read(code: str) -> None:
    texels = np.arange(96, dtype=np.float32).reshape(3, 4, 8)
    with cutrace.Session(code=code) as gpu:
        out = gpu.to_device(np.zeros((4, 8, 4), np.float32))
        flat, layered = gpu.texture(texels[0].copy()), gpu.texture(texels, layered=True)
        gpu.compile(GATHERED).get_function("k")[1, 32](out, flat, layered)
        found = out.copy_to_host()
    y, x = np.indices((4, 8))
    right, below = np.minimum(x + 1, 7), np.minimum(y + 1, 3)
    for channel, (row, column) in enumerate(((below, x), (below, right), (y, right))):
        assert (found[..., channel] == texels[0, row, column]).all()
    assert (found[..., 3] == texels[x % 3, y, x]).all()


MOVED = """
extern "C" __global__ void k(cudaSurfaceObject_t flat, cudaSurfaceObject_t layered) {
    int x = threadIdx.x % 8, y = threadIdx.x / 8;
    unsigned own = surf2Dread<unsigned>(flat, 4 * x, y);
    uint2 pair = surf2Dread<uint2>(flat, x / 2 * 8 + 8, y, cudaBoundaryModeClamp);
    unsigned beyond = surf2Dread<unsigned>(flat, 4 * x + 8, y, cudaBoundaryModeZero);
    unsigned char octet = surf2Dread<unsigned char>(flat, 4 * x + 1, y);
    surf2DLayeredwrite(own + (pair.y << 8) + (beyond << 16) + (octet << 24), layered, 4 * x, y, 1);
    surf2DLayeredwrite((unsigned short)own, layered, 4 * x + 2, y, 0);
    asm volatile("sured.b.add.2d.u32.trap [%0, {%1, %2}], %3;" ::
                 "l"(flat), "r"(0), "r"(y), "r"(0x100));
}
"""


@needs_disassembler
@pytest.mark.parametrize("code", ["sm_75", "sm_90", "sm_120"])
def test_surfaces_are_read_written_and_updated(code: str) -> None:
    texels = np.arange(32, dtype=np.uint32).reshape(4, 8)
    with cutrace.Session(code=code) as gpu:
        flat = gpu.surface(texels.copy())
        layered = gpu.surface(np.zeros((2, 4, 8), np.uint32), layered=True)
        gpu.compile(MOVED).get_function("k")[1, 32](flat, layered)
        updated, written = flat.copy_to_host(), layered.copy_to_host()
    x = np.indices((4, 8))[1]
    second = np.take_along_axis(texels, np.minimum(x // 2 * 2 + 3, 7), 1)  # of the pair behind
    beyond = np.where(x < 6, texels + 2, 0)
    assert (written[1] == texels + (second << 8) + (beyond << 16)).all()
    assert (written[0] == texels << 16).all()
    texels[:, 0] += 8 * 0x100
    assert (updated == texels).all()


CHOSEN = """
__device__ __noinline__ int twice(int n) { return n < 2 ? n : 2 * n; }
__device__ __noinline__ int thrice(int n) { return n < 2 ? n : 3 * n; }
extern "C" __global__ void k(int *out) {
    int (*chosen)(int) = threadIdx.x % 2 ? twice : thrice;
    out[threadIdx.x] = chosen(threadIdx.x);
}
"""


@needs_disassembler
@pytest.mark.parametrize("code", ["sm_75", "sm_90"])
def test_functions_whose_addresses_the_code_has_are_called(code: str) -> None:
    with cutrace.Session(code=code) as gpu:
        out = gpu.to_device(np.zeros(32, np.int32))
        gpu.compile(CHOSEN).get_function("k")[1, 32](out)
        wanted = [n if n < 2 else n * (2 if n % 2 else 3) for n in range(32)]
        assert out.copy_to_host().tolist() == wanted


IN_CLUSTERS = """
extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int *out) {
    __shared__ int box[32];
    box[threadIdx.x ^ 1] = blockIdx.x * 32 + threadIdx.x;
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = box[threadIdx.x];
}
"""


@needs_disassembler
@pytest.mark.parametrize("code", ["sm_90", "sm_120"])
def test_a_block_of_a_cluster_that_never_meets_the_others_has_memory_of_its_own(code: str) -> None:
    with cutrace.Session(code=code) as gpu:
        out = gpu.to_device(np.zeros(64, np.int32))
        gpu.compile(IN_CLUSTERS, arch=code).get_function("k")[2, 32](out)
        assert out.copy_to_host().tolist() == [n ^ 1 for n in range(64)]


OF_256_BITS = """.version 8.8
.target sm_100
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
.reg .b64 %i, %o, %p; .reg .b32 %r<9>; ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
mov.u32 %r0, %tid.x; mul.wide.u32 %p, %r0, 32; add.u64 %i, %i, %p; add.u64 %o, %o, %p;
ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%i];
st.global.v8.b32 [%o], {%r8, %r1, %r2, %r3, %r4, %r5, %r6, %r7}; ret; }
"""


@needs_disassembler
@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_accesses_of_256_bits_take_two_operands(engine: str) -> None:
    words = np.arange(256, dtype=np.uint32).reshape(32, 8)
    with cutrace.Session(code="sm_100", engine=engine) as gpu:
        source, out = gpu.to_device(words), gpu.to_device(words * 0)
        gpu.load_ptx(OF_256_BITS).get_function("k")[1, 32](source, out)
        assert out.copy_to_host().tolist() == np.roll(words, 1, axis=1).tolist()


TO_CLUSTER = """.version 8.7
.target sm_120
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 in) .explicitcluster .reqnctapercluster 2, 1, 1 {
.reg .b64 %o, %i, %s; .reg .b32 %r<8>; .reg .pred %p, %q; .shared .align 16 .b8 box[16];
.shared .align 8 .b64 bar; ld.param.u64 %o, [out]; ld.param.u64 %i, [in];
mov.u32 %r0, %cluster_ctarank; setp.eq.u32 %p, %r0, 0;
mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared.b64 %s, [bar], 16;
barrier.cluster.arrive; barrier.cluster.wait;
mov.u32 %r1, box; mov.u32 %r2, bar; xor.b32 %r3, %r0, 1;
mapa.shared::cluster.u32 %r1, %r1, %r3; mapa.shared::cluster.u32 %r2, %r2, %r3;
mul.wide.u32 %s, %r0, 16; add.u64 %i, %i, %s; add.u64 %o, %o, %s;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%i], 16, [%r2];
again: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra again;
ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [box]; st.global.v4.u32 [%o], {%r4, %r5, %r6, %r7};
barrier.cluster.arrive; barrier.cluster.wait; ret; }
"""


@needs_disassembler
@pytest.mark.parametrize("code", ["sm_100", "sm_120"])
def test_two_blocks_of_a_cluster_copy_to_each_other(code: str) -> None:
    words = np.arange(1, 9, dtype=np.uint32)
    with cutrace.Session(code=code) as gpu:
        out, given = gpu.to_device(np.zeros(8, np.uint32)), gpu.to_device(words)
        gpu.load_ptx(TO_CLUSTER.replace("sm_120", code)).get_function("k")[2, 1](out, given)
        assert out.copy_to_host().tolist() == [5, 6, 7, 8, 1, 2, 3, 4]


COPIES = """
#include <cuda_pipeline.h>
extern "C" __global__ void k(float4 *out, const float4 *in, int n) {
    __shared__ float4 box[32];
    __shared__ float words[32];
    __pipeline_memcpy_async(&box[threadIdx.x], &in[threadIdx.x], 16);
    if (threadIdx.x < n) __pipeline_memcpy_async(&words[threadIdx.x], &in[threadIdx.x].y, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[threadIdx.x] = box[31 - threadIdx.x];
    if (threadIdx.x < n) out[threadIdx.x].x = words[threadIdx.x];
}
"""


@needs_disassembler
@pytest.mark.parametrize("code", ["sm_80", "sm_90", "sm_120"])
def test_copies_past_the_registers_arrive(code: str) -> None:
    values = np.arange(128, dtype=np.float32).reshape(32, 4)
    with cutrace.Session(code=code) as gpu:
        out = gpu.to_device(np.zeros((32, 4), np.float32))
        kernel = gpu.compile(COPIES, "compute_80").get_function("k")
        kernel[1, 32](out, gpu.to_device(values), 20)
        found = out.copy_to_host()
    expected = values[::-1].copy()
    expected[:20, 0] = values[:20, 1]
    assert (found == expected).all()


@needs_disassembler
def test_instructions_are_those_that_a_chip_executed(tmp_path: Path) -> None:
    # tests/validate/counters/h200_ways.json: instructions of warps, of threads, with predicate on
    executed = {
        "return_in_one_side": (944, 18882, 17857),
        "both_without_else": (752, 18632, 16559),
        "return_in_both_sides": (1072, 19043, 17884),
    }
    lines = re.findall(r"// cutrace: (.*)", WAYS.read_text())
    launch = [line for line in lines if line.partition("<<<")[0] in executed]
    with default_options(RecordOptions(code="sm_90")):
        path, options = tmp_path / "t.cutrace", ("-ftz=true",)
        trace = record(WAYS, launch, path, arch="compute_90", options=options)
    profile = cutrace.analyze(trace, "h200", jobs=1)
    names = [f"smsp__{name}.sum" for name in
             ("inst_executed", "thread_inst_executed", "thread_inst_executed_pred_on")]  # fmt: skip
    launches = cutrace.read_trace(trace).launches
    found = {
        each.launch.name: tuple(one.counters[name] for name in names)
        for each, one in zip(launches, profile.launches, strict=True)
    }
    assert found == executed
    chip = {
        each["kernel"]: each["sass"]
        for each in json.loads((WAYS.parent / "h200_ways.json").read_text())["launches"]
    }
    for launch_profile in profile.launches:
        name = launch_profile.launch.name
        times = launch_profile.table("opcode").select("opcode", "instructions").rows()
        by_opcode: Counter[str] = Counter()
        for mnemonic, count in chip[name].items():
            by_opcode[mnemonic.partition(".")[0]] += count
        assert {opcode: dict(times)[opcode] for opcode in by_opcode} == dict(by_opcode)
    opcodes = set(launches[0].instructions()["opcode"].to_pylist())
    assert {"LDG", "STG", "BSSY", "BSYNC", "EXIT"} <= opcodes
    assert "about " in time_line(profile.launches[0])
    with pytest.raises(
        CutraceError, match=r"rtx4090 has capability 8\.9: name a .* as in -d sm_90"
    ):
        cutrace.analyze(trace, "rtx4090", jobs=1)


@needs_disassembler
def test_a_kernel_that_prints_has_at_least_32_registers(tmp_path: Path) -> None:
    # registers of an H100's launches of these kernels, which need fewer themselves
    source = WAYS.parent / "print.cu"
    captured = json.loads((WAYS.parent / "h100_print.json").read_text())
    place = captured["metrics"].index("launch__registers_per_thread")
    with default_options(RecordOptions(code="sm_90")):
        path = tmp_path / "t.cutrace"
        trace = record(source, [], path, arch="compute_90", options=("-ftz=true",))
    found = [p.counters["launch__registers_per_thread"] for p in
             cutrace.analyze(trace, "h100", jobs=1).launches]  # fmt: skip
    assert found == [each["counters"][place] for each in captured["launches"]]


@needs_disassembler
@pytest.mark.parametrize("code", ["sm_75", "sm_90"])
def test_calls_of_the_driver_take_their_arguments(tmp_path: Path, code: str) -> None:
    source = tmp_path / "calls.cu"
    head = "#include <cassert>\n// cutrace: k<<<1, 64>>>(x:i32[64]=arange)\n"
    kernel = "__global__ void k(int* x) {"
    source.write_text(f"{head}{kernel} assert(x[threadIdx.x] < 60); }}\n")
    with (
        default_options(RecordOptions(code=code)),
        pytest.raises(CutraceError, match=r"`x\[threadIdx.x\] < 60` failed in thread \(60, 0, 0\)"),
    ):
        record(source, (), tmp_path / "failed.cutrace")
    source.write_text(
        f"{head}{kernel} auto p = (int*)malloc(8); p[1] = 3 * x[threadIdx.x];"
        " x[threadIdx.x] = p[1]; }\n"
    )
    values: dict[str, Any] = {}
    with default_options(RecordOptions(code=code, final_values=values)):
        trace = record(source, (), tmp_path / "heap.cutrace")
    assert values["x"].tolist() == [3 * n for n in range(64)]
    assert cutrace.read_trace(trace).launches[0].launch.code == code


@needs_disassembler
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_estimate_of_machine_code_is_near_that_of_its_ptx(tmp_path: Path, arch: str) -> None:
    # the same code runs: PTX is told how often each block of it runs, machine code counts it
    (tmp_path / "k.cu").write_text("""
// cutrace: sum<<<32, 256>>>(a:f32[16384]=arange, c:f32[32], 16384)
// cutrace: say<<<1, 1>>>(3)
#include <cstdio>
__global__ void sum(const float *a, float *c, int n)
{
    __shared__ float s[256];
    float v = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        v += sqrtf(a[i]) / (1.f + a[i]);
    s[threadIdx.x] = v;
    __syncthreads();
    for (int w = 128; w; w >>= 1) {
        if (threadIdx.x < w) s[threadIdx.x] += s[threadIdx.x + w];
        __syncthreads();
    }
    if (!threadIdx.x) c[blockIdx.x] = s[0];
}
__global__ void say(int n) { printf("%d\\n", n); }
""")
    times = []
    for code in ("ptx", arch):
        with default_options(RecordOptions(code=code)):
            trace = record(tmp_path / "k.cu", out=tmp_path / f"{code}.cutrace")
        profile = cutrace.analyze(trace, device=arch, jobs=1)
        times.append([each.estimate.ns for each in profile.launches if each.estimate])
    assert len(times[0]) == 2
    assert times[1] == pytest.approx(times[0], rel=0.1)


def test_an_indirect_branch_runs_again_for_each_target(tmp_path: Path) -> None:
    # lane n goes 16 * (n % 3) bytes behind 0xb0: 11, 11 and 10 lanes, of which those that are left
    # run the branch again
    lines = ["BSSY B0, 0xf0", "IMAD.HI.U32 R2, R0, 0x55555556, RZ", "IMAD R2, R2, -0x3, R0",
             "SHF.L.U32 R2, R2, 0x4, RZ", "BRX R2, 0x0", "IADD3 R4, R4, 0x1, RZ",
             "IADD3 R4, R4, 0x2, RZ", "IADD3 R4, R4, 0x4, RZ", "BSYNC B0"]  # fmt: skip
    targets: dict[int, tuple[int, ...]] = {0xA0: (0xB0, 0xC0, 0xD0)}
    left = run(*lines, targets=targets, trace=tmp_path / "t.cutrace")
    assert [word for word, _ in left] == [(7, 6, 4)[lane % 3] for lane in range(32)]
    assert lanes_of(tmp_path / "t.cutrace", "BRX") == [32, 21, 10]


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        # two calls, so that the return is a switch; R34 is then no place behind one of them
        (("LEPC R34", "CALL.REL 0xc0", "LEPC R34", "CALL.REL 0xc0", "STG.E.64 [R20.64], R4",
          "EXIT", "MOV R34, 0x500", "RET.ABS R34, 0x20"), "address 00d0: `RET.ABS R34, 0x20`"),
        (("BPT.TRAP 0x1", "EXIT"), "address 0060: `BPT.TRAP 0x1`"),
        # indirect branches at 0x60 go to 0x80 and 0x90, which are 0x10 and 0x20 behind it
        (("BRX R0, 0x400", "NOP", "EXIT", "EXIT"), "address 0060: `BRX R0, 0x400`"),
    ],
)  # fmt: skip
def test_going_where_no_code_is_is_a_fault_with_its_address(
    lines: tuple[str, ...], where: str
) -> None:
    with pytest.raises(KernelFault, match=rf"{re.escape(where)} traps, or goes where there is no"):
        run(*lines, threads=1, targets={0x60: (0x80, 0x90)})


@pytest.mark.parametrize("line", ["CALL.ABS.NOINC `(nobody)", "CALL.REL.NOINC `(nobody)"])
def test_a_call_of_what_no_code_has_is_refused_with_its_address(line: str) -> None:
    with pytest.raises(CutraceError, match=r"address 0x0060: cutrace .*`CALL.*nobody\)`"):
        run(line)


@needs_disassembler
def test_another_schema_of_the_disassembler_is_refused_with_what_to_install() -> None:
    header = {"SchemaVersion": {"major": 14}}
    with (
        patch("cutrace.tracer.sass.cubin._disassemble", lambda cubin, names: [header, []]),
        patch("cutrace.tracer.sass.cubin._made_by", lambda: "another"),
        cutrace.Session(code="sm_80") as gpu,
        pytest.raises(CutraceError, match=r"version 14 of its JSON, expected 13: python -m pip"),
    ):
        gpu.load_ptx(f"// schema\n{PTX}").get_function("k")


def lifted(*lines: str) -> str:
    """The operations of instructions of 9.0, in a kernel with a parameter."""
    code = Code("k", 90, tuple(instructions([*lines, "EXIT"])), 0x210, 0, 0, {}, (), {}, {}, {})
    parameter = Variable("p1", "param", "u64", 8, 8)
    return Lifter(code, [parameter]).lift(HANDLERS).text


def test_the_address_of_bank_0_is_before_that_of_its_parameters() -> None:
    # parameters begin at 0x210, which is 528
    assert re.search(r"add.s64 (\S+), \S+ -528;", lifted("ULDC.64 UR4, c[0x0][0xc0]"))
    assert re.search(r"add.s64 (\S+), \S+ 0;", lifted("ULDC.64 UR4, c[0x0][0x198]"))


def test_an_asynchronous_copy_of_what_is_only_read_is_one() -> None:
    text = lifted("LDGSTS.E.BYPASS.LTC128B.128.CONSTANT [R33+UR4], [R20.64]")
    assert re.search(r"cp.async.cg.shared.global \[\S+\], \[\S+\], 16;", text)


def test_a_copy_with_a_descriptor_that_nothing_sets_is_an_illegal_instruction() -> None:
    """At the same place an H100 stopped with this text's fault, cudaErrorIllegalInstruction."""
    copy = "LDGSTS.E.BYPASS.LTC128B.128 [R9+UR0+0x4000], desc[UR1][R94.64]"
    with pytest.raises(KernelFault, match="illegal instruction: nothing sets UR1 and UR2") as fault:
        lifted(copy)
    assert fault.value.cause == "illegal"
    assert "cp.async.cg.shared.global" in lifted("ULDC.64 UR0, c[0x0][0x210]", copy)
    words = 0x040000005E097DAE, 0x0003E8000B901D40  # that copy, as ptxas 13.0 assembled it
    plain = 0x000000000402CFAE, 0x0003E2000B901D4C  # [R2], desc[UR12][R4.64]
    assert access.has_based_copies(struct.pack("<4Q", *plain, *words))
    assert not access.has_based_copies(struct.pack("<2Q", *plain))


def test_an_index_may_begin_before_the_parameters() -> None:
    # c[0x0][0x20c] is 4 bytes before them; of UR5 = 4 on they are reached
    text = lifted("ULDC UR9, c[0x0][UR5+0x20c]")
    assert re.search(r"add.u32 (%\w+), \S+ %UR5;\nld.param.b32 \S+ \[\1\+-4\];", text)


def test_warps_of_a_group_wait_for_one_another_at_a_barrier_of_their_own() -> None:
    text = lifted("WARPGROUP.WAIT")
    assert re.search(r"shr.u32 (%\w+), \S+ 7;\nadd.u32 \1, \S+ 8;\nbar.sync \1, 128;", text)


def test_the_offset_of_an_asynchronous_store_is_not_that_of_its_barrier() -> None:
    text = lifted("STAS [R8.64+0x10], R3")
    place = re.search(r"add.u32 (\S+), %R8, 16;", text)
    assert place
    assert re.search(rf"st.async.*\[{re.escape(place[1])}\+.*%R3, \[%R9\+", text)


@pytest.mark.parametrize("engine", ["array", "compiled"])
@pytest.mark.parametrize(
    "meeting", ["@!P1 BRA.DIV -0x1, 0x140", "@!P1 WARPSYNC -0x1", "BRA.CONV -0x1, 0xd0"]
)
def test_lanes_that_leave_a_spin_loop_one_by_one_meet_at_a_warp_sync(
    engine: str, meeting: str, tmp_path: Path
) -> None:
    """Lane n waits until the counter is n, and adds 1; then each asks its neighbor."""
    left = run(
        "MOV R2, 0x1",
        "ATOMS.ADD R6, [RZ], RZ",  # 0x70
        "ISETP.NE.AND P0, PT, R6, R0, PT",
        "@P0 BRA 0x70",
        "ATOMS.ADD RZ, [RZ], R2",
        "ISETP.GE.U32.AND P1, PT, R0, 0x20, PT",
        meeting,  # of all lanes
        "MOV R6, RZ",
        "IADD3 R7, R0, 0x64, RZ",  # 0xd0
        "SHFL.BFLY PT, R4, R7, 0x1, 0x1f",
        engine=engine,
        shared=64,
        trace=tmp_path / "t.cutrace",
    )
    trace = cutrace.read_trace(tmp_path / "t.cutrace")
    assert verify(trace) == []
    times = cutrace.analyze(trace, "a100", jobs=1).launches[0].table("opcode")
    opcode = re.sub(r"^@\S+ | .*|\..*", "", meeting)
    counts = dict(times.select("opcode", "instructions").rows())
    assert counts["SHFL"] == 1  # they went on together
    if opcode == "WARPSYNC":  # each came by itself
        assert counts[opcode] == 32
    assert [row[0] for row in left] == [100 + (lane ^ 1) for lane in range(32)]


@pytest.mark.parametrize("engine", ["array", "compiled"])
@pytest.mark.parametrize(
    ("begins", "between", "together"),
    [
        ("BSSY", "NOP", True),
        ("BSSY", "YIELD", False),
        ("BSSY.RECONVERGENT", "YIELD", True),
    ],
)
def test_lanes_wait_for_others_of_a_region_without_yield_however_long_these_take(
    engine: str, begins: str, between: str, together: bool
) -> None:
    """In a loop that may wait for other warps half of the lanes count to 400. Where they yield, the
    other half goes on without them."""
    left = run(
        "MOV R2, 0x1",
        "ISETP.GE.U32.AND P1, PT, R0, 0x10, PT",
        "MOV R6, RZ",  # 0x80
        f"{begins} B0, 0x100",
        "@P1 BRA 0xf0",
        between,
        "IADD3 R6, R6, 0x1, RZ",  # 0xc0
        "ISETP.NE.AND P0, PT, R6, 0x190, PT",
        "@P0 BRA 0xc0",
        "BSYNC B0",
        "VOTE.ANY R4, PT, PT",
        "ATOMS.ADD R8, [RZ], R2",
        "ISETP.EQ.AND P0, PT, R8, 0xffff, PT",
        "@P0 BRA 0x80",
        engine=engine,
        shared=64,
    )
    low, high = (0xFFFFFFFF, 0xFFFFFFFF) if together else (0xFFFF, 0xFFFF0000)
    assert [row[0] for row in left] == [low] * 16 + [high] * 16


@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_lanes_that_break_out_at_the_target_of_a_switch_meet_the_others_outside(
    engine: str,
) -> None:
    left = run(
        "BSSY B1, 0x160",
        "BSSY B0, 0x140",
        "SHF.R.U32.HI R2, RZ, 0x3, R0",
        "IMAD R2, R2, 0x20, RZ",
        "BRX R2, 0x0",  # lanes 0 to 7, 8 to 15, and so on
        "BRA 0x130",  # 0xb0
        "NOP",
        "BRA 0x130",  # 0xd0
        "NOP",
        "BREAK B0",  # 0xf0
        "BRA 0x150",
        "BREAK B0",  # 0x110
        "BRA 0x150",
        "BSYNC B0",  # 0x130
        "VOTE.ANY R4, PT, PT",
        "BSYNC B1",  # 0x150
        "VOTE.ANY R5, PT, PT",
        engine=engine,
        targets={0xA0: (0xB0, 0xD0, 0xF0, 0x110)},
    )
    assert left == [[0xFFFF, 0xFFFFFFFF]] * 16 + [[0, 0xFFFFFFFF]] * 16


def test_a_call_that_nobody_returns_from_is_a_jump_and_keeps_its_barriers() -> None:
    lines = ["BSSY B0, 0x50", "@P0 CALL.REL.NOINC 0x40", "IADD3 R2, R2, 0x1, RZ", "BRA 0x10",
             "BSYNC B0", "EXIT"]  # fmt: skip
    code = Code("k", 80, tuple(instructions(lines)), 0x160, 0, 0, {}, (), {}, {}, {})
    assert find_barriers(Flow(code, Lifter(code, ())))[0x40] == (("B0", 0x50),)


POINTED = """.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 number = 7;
.visible .global .u64 place = number;
.visible .entry k(.param .u64 p) { .reg .u64 %p; .reg .u32 %r; ld.param.u64 %p, [p];
    ld.global.u32 %r, [number]; st.global.u32 [%p], %r; ret; }
"""


@pytest.mark.parametrize(
    ("section", "place", "value"),
    [
        (".nv.info", 2, b"\7\0"),  # bytes of the first attribute, of two words
        (".rel.nv.global.init", 12, b"\xff\xff\xff\x7f"),  # a symbol that nobody has
        ("", 24, b"\xff" * 8),  # where a section begins in the file
    ],
)
def test_machine_code_that_leads_out_of_its_file_is_refused_with_the_file(
    section: str, place: int, value: bytes
) -> None:
    data = bytearray(assemble_for(POINTED, "sm_80"))
    whole = Cubin(bytes(data))
    (headers,) = struct.unpack_from("<Q", data, 0x28)
    start = whole.sections[section].start if section else headers + 64
    data[start + place : start + place + len(value)] = value
    with pytest.raises(CutraceError, match=r"^lib\.so: machine code is cut off or damaged$"):
        write_frame(Cubin(bytes(data), "lib.so"))


def lanes_of(trace: Path, opcode: str) -> list[int]:
    """How many lanes ran the blocks that end with an instruction, in their order."""
    (launch,) = cutrace.read_trace(trace).launches
    rows = launch.instructions().to_pylist()
    last = {row["block"]: row["mnemonic"] for row in rows}
    (path,) = launch.paths().to_pylist()
    ran = zip(path["blocks"], path["active"], strict=True)
    return [lanes.bit_count() for block, lanes in ran if last[block] == opcode]


@pytest.mark.parametrize("engine", ["array", "compiled"])
@pytest.mark.parametrize(("taken", "order"), [(5, [5, 27]), (27, [5, 27]), (16, [16, 16])])
def test_the_smaller_side_of_a_branch_runs_first_as_on_a_chip(
    engine: str, taken: int, order: list[int], tmp_path: Path
) -> None:
    # An H100 in 20 launches of two sides: by the clock that each side reads.
    lines = ["BSSY B0, 0xd0", f"ISETP.GE.AND P0, PT, R0, {hex(taken)}, PT", "@!P0 BRA 0xb0",
             "MOV R4, 0x1", "BRA 0xc0", "MOV R4, 0x2", "BSYNC B0", "MOV R5, 0x3"]  # fmt: skip
    left = run(*lines, engine=engine, trace=tmp_path / "t.cutrace")
    assert left == [[2 if lane < taken else 1, 3] for lane in range(32)]
    assert lanes_of(tmp_path / "t.cutrace", "BSYNC") == order
    if taken == 16:  # the fall-through, of lanes 16 on
        (launch,) = cutrace.read_trace(tmp_path / "t.cutrace").launches
        assert launch.paths().to_pylist()[0]["active"][1:3] == [0xFFFF0000, 0xFFFF0000]


@pytest.mark.parametrize("engine", ["array", "compiled"])
@pytest.mark.parametrize(
    ("leave", "together"),
    [
        ((11, 14, 4, 1, 2), [11, 1, 2, 18]),
        ((13, 6, 8, 5), [13, 6, 5, 8]),
        ((20, 9, 3), [3, 9, 20]),
    ],
)
def test_lanes_that_wait_before_a_barrier_arrive_together(
    engine: str, leave: tuple[int, ...], together: list[int], tmp_path: Path
) -> None:
    """Lanes leave a loop in groups. 14 of 21 wait while the other 7 go on, then 4 of these 7: both
    before the BSYNC, where they arrive together. The last ones to wait, 9 of 12, arrive alone. An
    H100 counts so in 14 warps of the kernel `mandelbrot` of fresh2.cu."""
    ends = np.cumsum(leave)[:-1].tolist()
    turns = [f for end in ends for f in (f"ISETP.GE.AND P0, PT, R0, {hex(end)}, PT",
                                         "@P0 IADD3 R6, R6, 0x1, RZ")]  # fmt: skip
    start = 0x60 + 16 * (len(turns) + 2)
    lines = ["MOV R6, 0x0", *turns, f"BSSY B0, {hex(start + 0x50)}", "IADD3 R4, R4, 0x1, RZ",
             "IADD3 R6, R6, 0xffffffff, RZ", "ISETP.GE.AND P1, PT, R6, RZ, PT",
             f"@P1 BRA {hex(start)}", "BSYNC B0", "VOTE.ANY R5, PT, PT"]  # fmt: skip
    left = run(*lines, engine=engine, trace=tmp_path / "t.cutrace")
    turns_of = [turn + 1 for turn, lanes in enumerate(leave) for _ in range(lanes)]
    assert left == [[turn, 0xFFFFFFFF] for turn in turns_of]
    assert lanes_of(tmp_path / "t.cutrace", "BSYNC") == together


@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_lanes_stay_apart_in_a_subroutine_up_to_the_barrier_of_its_caller(
    engine: str, tmp_path: Path
) -> None:
    """8 lanes each go around a loop of a subroutine once, twice, three and four times: an H100 runs
    the RET behind such a loop once for each group of lanes that leaves it."""
    lines = ["SHF.R.U32.HI R2, RZ, 0x3, R0", "BSSY B1, 0xb0", "MOV R6, 0xa0",
             "CALL.REL.NOINC 0x100", "BSYNC B1",
             "BSSY B1, 0xf0", "MOV R6, 0xe0", "CALL.REL.NOINC 0x100", "BSYNC B1",
             "BRA 0x140", "IADD3 R4, R4, 0x1, RZ", "ISETP.LE.U32.AND P0, PT, R4, R2, PT",
             "@P0 BRA 0x100", "RET.REL.NODEC R6, 0x0", "VOTE.ANY R5, PT, PT"]  # fmt: skip
    left = run(*lines, engine=engine, trace=tmp_path / "t.cutrace")
    assert left == [[2 + lane // 8, 0xFFFFFFFF] for lane in range(32)]
    assert lanes_of(tmp_path / "t.cutrace", "RET.REL.NODEC") == [8, 8, 8, 8, 32]
    assert lanes_of(tmp_path / "t.cutrace", "BSYNC") == [8, 8, 8, 8, 32]


@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_lanes_of_a_collective_go_on_together(engine: str) -> None:
    lines = ["ISETP.GE.AND P0, PT, R0, 0x5, PT", "@P0 BRA 0x90", "MOV R4, 0x1",
             "WARPSYNC.COLLECTIVE.ALL 0xc0", "VOTE.ANY R5, PT, PT", "ENDCOLLECTIVE"]  # fmt: skip
    assert run(*lines, engine=engine) == [[int(lane < 5), 0xFFFFFFFF] for lane in range(32)]
