"""The facts of an instruction that follow from its opcode and modifiers.

They become columns of the trace's table of instructions (`traces.schema.INSTRUCTIONS`).

Sources: PTX ISA 8.8, 9.7 (instructions), 8 (memory order and scope); for what counts as a
floating-point operation, and for the classes, NVIDIA's Profiler User's Guide 10.1 (inst_* and
flop_count_* metrics).
"""

from collections.abc import Mapping
from functools import lru_cache

from ...lazy_dataclass import dataclass
from ...traces.schema import Space
from ..engine.op.family import opcodes
from ..ptx.kernel import Instruction

_CONTROL = frozenset({"bra", "brx", "call", "ret", "exit", "trap"})
_EXCHANGE = frozenset({"shfl", "vote", "match", "redux", "activemask", "elect"})
_FREE = frozenset({"cvta", "mov"})
_INTEGER = opcodes("integer") | {"set", "setp"}
_ARITHMETIC: Mapping[str, tuple[str, int]] = {
    **dict.fromkeys(("add", "sub"), ("add", 1)),
    "mul": ("mul", 1),
    **dict.fromkeys(("fma", "mad"), ("fma", 2)),
    **dict.fromkeys(("div", "rcp", "sqrt", "rsqrt"), ("special", 1)),
    **dict.fromkeys(("sin", "cos", "lg2", "ex2", "tanh"), ("special", 1)),
    **dict.fromkeys(("min", "max", "abs", "neg", "set", "setp", "testp", "copysign"), ("", 0)),
}
"""Floating-point opcode to its operation, and the floating-point operations of one value."""

_PRECISIONS: Mapping[str, tuple[str, int]] = {
    "f16": ("half", 1),
    "bf16": ("half", 1),
    "f16x2": ("half", 2),
    "bf16x2": ("half", 2),
    "f32": ("single", 1),
    "f32x2": ("single", 2),
    "f64": ("double", 1),
}
"""PTX type to precision, and values in one register."""

_ACCESS: Mapping[str, str] = {
    **dict.fromkeys(("ld", "ldu", "ldmatrix", "suld", "tex", "tld4"), "load"),
    **dict.fromkeys(("st", "stmatrix", "sust"), "store"),
    "atom": "atomic",
    **dict.fromkeys(("red", "sured"), "reduction"),
}
_MEMORY = frozenset({*_ACCESS, "cp", "wmma", "prefetch", "prefetchu"})
_ATOMIC = frozenset({"atom", "red", "sured"})
_UPDATES = frozenset({"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"})
_RETURNING = frozenset({"exch", "cas"})
"""Atomics for which there is no reduction, also if nobody reads their result."""
_ORDERS = ("weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "sc")
_SCOPES = {"cta": "cta", "cluster": "cluster", "gpu": "gpu", "gl": "gpu", "sys": "sys"}

_GENERIC = (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST)
"""Where an address without a state space may lead (PTX ISA 5.1; const by way of `cvta.param`)."""
_TEXTURES, _SURFACES = frozenset({"tex", "tld4"}), frozenset({"suld", "sust", "sured"})


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns of `traces.schema.INSTRUCTIONS` of the same names (`kind` is `class` there).

    `reads` and `writes` have bit 1 << s set for each Space s that the instruction may reach.
    """

    kind: str
    operation: str
    values: int
    flops: int
    access: str
    reads: int
    writes: int
    order: str
    scope: str


def facts_of(instruction: Instruction, result_read: bool = True) -> Facts:
    """Return the facts of one instruction; an atomic is a reduction if nobody reads its result."""
    jump = instruction.opcode == "bra" and instruction.guard is None
    return _facts(instruction.opcode, instruction.modifiers, instruction.type, result_read, jump)


@lru_cache(maxsize=1024)
def _facts(
    opcode: str, modifiers: tuple[str, ...], type_: str, result_read: bool, jump: bool
) -> Facts:
    precision, values = _PRECISIONS.get(type_, ("", 1))
    kind = "free" if jump else _class(opcode, modifiers, precision)
    operation, operations = _ARITHMETIC.get(opcode, ("", 0)) if precision else ("", 0)
    access = _access(opcode, modifiers, result_read)
    reads, writes = _reach(opcode, modifiers, access)
    order = next((name for name in _ORDERS if name in modifiers), "")
    return Facts(
        kind=kind,
        operation=operation if kind == precision else _other_operation(opcode, modifiers),
        values=values,
        flops=operations * values,
        access=access,
        reads=reads,
        writes=writes,
        order=order or ("weak" if access in ("load", "store") else ""),
        scope=next((_SCOPES[name] for name in modifiers if name in _SCOPES), ""),
    )


def _class(opcode: str, modifiers: tuple[str, ...], precision: str) -> str:
    """Return one of `traces.schema.CLASSES`."""
    if opcode in _FREE or (opcode == "ld" and "param" in modifiers):
        return "free"
    if opcode in _MEMORY:
        return "memory"
    if opcode in _CONTROL:
        return "control"
    if opcode in _EXCHANGE:
        return "exchange"
    if opcode == "cvt":
        return "conversion"
    if precision and opcode in _ARITHMETIC:
        return precision
    return "integer" if opcode in _INTEGER else "other"


def _other_operation(opcode: str, modifiers: tuple[str, ...]) -> str:
    """Return what an instruction that is no floating-point arithmetic does, where readers ask."""
    if opcode in ("bra", "brx"):
        return "branch"
    if opcode in _ATOMIC:
        return next((name for name in modifiers if name in _UPDATES), "")
    if opcode in ("bar", "barrier", "mbarrier") and "arrive" in modifiers:
        return "arrive"
    if opcode == "sust" and modifiers[:1] == ("p",):
        return "formatted"
    if opcode == "tld4":
        return "gather"
    if opcode == "tex":
        return "fetch" if modifiers[-1:] == ("s32",) and "level" not in modifiers else "filter"
    return ""


def _access(opcode: str, modifiers: tuple[str, ...], result_read: bool) -> str:
    """Return one of `traces.schema.ACCESS_KINDS`, or empty: the instruction leaves no rows."""
    if "param" in modifiers or opcode in ("prefetch", "prefetchu"):
        return ""
    if opcode == "cp":
        return "copy" if modifiers[:1] == ("async",) and len(_spaces(modifiers)) > 1 else ""
    if opcode == "wmma":
        return modifiers[0] if modifiers[0] in ("load", "store") else ""
    if opcode == "atom" and not result_read and _RETURNING.isdisjoint(modifiers):
        return "reduction"
    return _ACCESS.get(opcode, "")


def _reach(opcode: str, modifiers: tuple[str, ...], access: str) -> tuple[int, int]:
    """Return the spaces that an instruction reads and writes, a bit each."""
    spaces = _spaces(modifiers) or _GENERIC
    if access == "copy":  # cp.async.ca.shared.global: the destination is written first
        return 1 << spaces[1], 1 << spaces[0]
    if opcode in _TEXTURES:
        spaces = (Space.TEXTURE,)
    elif opcode in _SURFACES:
        spaces = (Space.SURFACE,)
    bits = sum(1 << space for space in spaces)
    reads = access in ("load", "atomic", "reduction")
    writes = access in ("store", "atomic", "reduction")
    return bits * reads, bits * writes


def _spaces(modifiers: tuple[str, ...]) -> tuple[Space, ...]:
    """Return the state spaces that modifiers name, in their order; `shared::cta` is shared."""
    names = (modifier.partition("::")[0].upper() for modifier in modifiers)
    return tuple(Space[name] for name in names if name in Space.__members__)
