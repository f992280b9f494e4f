"""The families of supported instructions: those of the tables, and those with other effects.

`find_rule` looks up the row of an instruction, `opcodes` returns those of a class, and `families`
lists all of them for people.
"""

from collections.abc import Mapping

from ...ptx.kernel import Instruction
from . import (
    bits,
    compare,
    convert,
    extended,
    extreme,
    floating,
    half,
    integer,
    mixed,
    packed,
    transcendental,
    video,
)
from .rule import Family, Rule

SHARED_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "moves and addresses": ("mov", "cvta", "isspacep", "createpolicy"),
    "loads and stores": ("ld", "ldu", "st", "multimem"),
    "atomic operations": ("atom", "red"),
    "asynchronous copies and their barriers": ("cp.async", "mbarrier"),
    "bulk copies": (
        *("cp.async.bulk", "cp.reduce.async.bulk", "st.async", "st.bulk", "red.async"),
        "tensormap",
    ),
    "lanes of a warp": ("shfl", "vote", "activemask", "match", "redux", "elect"),
    "matrices": ("mma", "wmma", "wgmma", "ldmatrix", "stmatrix", "movmatrix"),
    "tensor memory": ("tcgen05",),
    "clusters of blocks": ("mapa", "getctarank", "barrier.cluster", "clusterlaunchcontrol"),
    "stack memory": ("alloca", "stacksave", "stackrestore"),
    "control": ("bra", "brx", "call", "ret", "exit", "trap", "bar", "barrier"),
    "no effect here": (
        *("membar", "fence", "prefetch", "prefetchu", "nanosleep", "pmevent", "discard"),
        *("applypriority", "brkpt", "griddepcontrol", "setmaxnreg"),
    ),
    "textures": ("tex", "tld4", "txq", "istypep"),
    "surfaces": ("suld", "sust", "sured", "suq"),
}
"""Families without table rows: they access memory, communicate between lanes, or control the
flow."""


def families() -> dict[str, tuple[str, ...]]:
    """Return every family with its opcodes."""
    tables = {family.name: tuple(sorted(family.table)) for family in FAMILIES}
    return {**tables, **SHARED_FAMILIES}


FAMILIES: tuple[Family, ...] = (
    extended.FAMILY,
    packed.FAMILY,
    integer.FAMILY,
    bits.FAMILY,
    extreme.FAMILY,
    floating.FAMILY,
    transcendental.FAMILY,
    mixed.FAMILY,
    half.FAMILY,
    compare.FAMILY,
    convert.FAMILY,
    video.FAMILY,
)
"""The families in the order of look-up; the first that has the instruction computes it."""


def opcodes(kind: str) -> frozenset[str]:
    """Return the opcodes of the families of a class."""
    return frozenset(
        opcode for family in FAMILIES if family.kind == kind for opcode in family.table
    )


def find_rule(instruction: Instruction) -> Rule | None:
    """Return the row that computes `instruction`, or None if no family has it."""
    for family in FAMILIES:
        builder = family.table.get(instruction.opcode)
        if builder and (not family.types or instruction.type in family.types):
            rule = builder(instruction)
            if rule is not None:
                return rule
    return None
