"""Pipes: cycles of an SM's arithmetic pipes and issue slots for machine code.

The FMA pipe has two halves. Both execute floating-point products and sums; the heavy half also
executes those of integers. The ALU executes other integer operations, logic, comparisons and
predicates. XU executes conversions and approximate functions. Source: Nsight Compute, Kernel
Profiling Guide, pipelines; rates were measured (models/devices/measured/sm_90.csv: add.f32,
mad.lo.s32, prmt.b32, fma.rn.f64, tanh.approx.f32).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ...models.replay.device.measured import Measured
from .machine_code import MachineCode

ISSUED = 4
"""Warp instructions that an SM issues per cycle."""
HEAVY = frozenset({0x024, 0x025, 0x026, 0x027})
"""IMAD and IDP."""
FMA = frozenset({0x020, 0x021, 0x023, 0x030, 0x031, 0x032, 0x035})
"""FMUL, FADD, FFMA, and their forms for pairs of halves."""
FP64 = frozenset({0x028, 0x029, 0x02A, 0x02B})
"""DMUL, DADD, DSETP, DFMA."""
XU = frozenset({0x100, 0x102, 0x104, 0x105, 0x106, 0x107, 0x108, 0x109, 0x110, 0x111, 0x112, 0x113})
"""FLO, FCHK, F2F, F2I, I2F, FRND, MUFU, POPC, and their 64-bit forms."""
ALU = frozenset({
    *(0x002, 0x006, 0x007, 0x009, 0x00B, 0x00C, 0x00F, 0x010, 0x011, 0x012, 0x013, 0x016),
    *(0x019, 0x01A, 0x01C, 0x036, 0x03E, 0x045, 0x048),
})  # fmt: skip
"""MOV, VOTE, SEL, FMNMX, FSETP, ISETP, VIMNMX3, IADD3, LEA, LOP3, IABS, PRMT; SHF, SGXT, PLOP3,
VIADD, F2FP, I2FP, VIMNMX."""
NOP = 0x118


def machine_mix(code: MachineCode, times: Mapping[int, float]) -> Mapping[int, float]:
    """Return how often a warp issued each operation, from its executions of each machine block."""
    mix = defaultdict[int, float](float)
    for place, often in times.items():
        for operation, many in code.blocks[place].operations.items() if often else ():
            mix[operation] += many * often
    mix.pop(NOP, None)
    return mix


def pipe_cycles(mix: Mapping[int, float], measured: Measured) -> Iterator[tuple[str, float]]:
    """Yield the cycles of each pipe of an SM for these operations."""
    floats, products = _sum(mix, FMA), _sum(mix, HEAVY)
    light, heavy = (measured.at("rate", name) for name in ("add.f32", "mad.lo.s32"))
    yield "issue slots", sum(mix.values()) / ISSUED
    yield "FMA pipe", max(heavy * products, light * (products + floats))
    yield "ALU pipe", measured.at("rate", "prmt.b32") * _sum(mix, ALU)
    yield "FP64 pipe", measured.at("rate", "fma.rn.f64") * _sum(mix, FP64)
    yield "XU pipe", measured.at("rate", "tanh.approx.f32") * _sum(mix, XU)


def _sum(mix: Mapping[int, float], operations: frozenset[int]) -> float:
    return sum(mix.get(operation, 0.0) for operation in operations)
