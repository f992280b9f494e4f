"""Lift machine code to operations of the engine: each instruction becomes a few of PTX.

The engine then runs them as it runs PTX, in both of its ways; an instruction of the machine stays
one row of the instruction table (`rows` of ptx/kernel.py). Registers R0 to R254 and uniform ones
are 32-bit registers of the same names, P0 to P6 and UP0 to UP7 predicates. What only its control
bits say (stalls, scoreboards) needs nothing here: operations have their results at once.

    IADD3 R6, P0, R1, c[0x0][0x20], RZ     cvt.u64.u32 %d0, %R1;
                                           cvt.u64.u32 %d1, 0x2000000;
                                           add.u64 %d0, %d0, %d1;
                                           cvt.u32.u64 %R6, %d0;
                                           setp.ge.u64 %P0, %d0, 0x100000000;

Control is explicit in machine code, too. A divergent branch reconverges behind the BSYNC of the
innermost barrier that a BSSY has set; BRA.CONV and BRA.DIV, which test for a converged warp, make
it converge. A return goes to the instruction behind one of the calls of its subroutine.

An unknown opcode, modifier or operand is refused by name.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.schema import Space
from ..front.sass import BYTES
from ..ptx.digraph import cycles
from ..ptx.kernel import Variable
from ..simt.memory.memory import WINDOWS
from .cubin import HALF, Code, Instruction, plain

SHARED_WINDOW = 0x5EED
"""Upper word of a generic address of shared memory: machine code joins it with an address there."""

RESERVED = 0x400
_SINCE_RESERVED = 90
"""Shared memory begins with 1024 bytes of the system since 9.0."""

_BEFORE = 256
"""Bytes before the parameters at which a place with an index may begin."""

_LARGEST_TABLE = 1024
"""Bytes of a table of constants that is read at a place known at run time: a `switch` has one."""

_BLACKWELL = 100
_AXES = "xyz"


def _three(first: int, name: str) -> dict[int, str]:
    return {first + 4 * number: f"{name}.{axis}" for number, axis in enumerate(_AXES)}


_LAUNCH = {0: _three(0, "%ntid") | _three(0xC, "%nctaid"),
           _BLACKWELL: _three(0x360, "%ntid") | _three(0x370, "%nctaid")}  # fmt: skip
"""What constant bank 0 has of a launch, by the first capability: special registers by place."""

_ENVIRONMENT = 32
_OTHERS = {0x2C: "%dynamic_smem_size", 0x30: "%gridid", 0x34: "0", 0x10C: "%nsmid", 0x114: "0"}
_OF_DEVICE = {
    0: {**_OTHERS, **{0x88 + 4 * n: f"%envreg{n}" for n in range(_ENVIRONMENT)}},
    _SINCE_RESERVED: {
        **_OTHERS, **{0x40 + 4 * n: f"%envreg{n}" for n in range(_ENVIRONMENT)},
        **_three(0x144, "%cluster_nctaid"), **_three(0x15C, "%nclusterid"),
        0x188: "%cluster_nctarank",
    },
    _BLACKWELL: {
        **_three(0x2A0, "%cluster_nctaid"), **_three(0x2C0, "%nclusterid"), 0x2D0: "%nsmid",
        0x2AC: "%dynamic_smem_size", 0x16C: "0", 0x2CC: "%cluster_nctarank", 0x140: "%gridid",
        0x144: "0",
    },
}  # fmt: skip
_IS_CLUSTER = {_SINCE_RESERVED: 0x140, _BLACKWELL: 0x36C}
_RECIPROCALS = {
    _SINCE_RESERVED: _three(0x150, "%cluster_nctaid"),
    _BLACKWELL: _three(0x2B0, "%cluster_nctaid"),
}
_BY_SIZE = range(0x2A0, 0x2D0)
"""Places since 10.0 that depend on SR_CgaSize, which is 0 here."""

_BANK_0_BASE = {0: 0x40, _SINCE_RESERVED: 0xC0, _BLACKWELL: -8}
"""Where the generic address of constant bank 0 lies; nobody has asked for it on 10.0 yet."""

_PARAMETER_BASE = {_SINCE_RESERVED: 0x198, _BLACKWELL: 0x348}
"""Where that of the parameters there lies."""

_BANK_3_BASE = {0: 0x50, _SINCE_RESERVED: 0xD0, _BLACKWELL: 0x120}
"""Where the generic address of constant bank 3 lies."""

COPIER = "__cuda_syscall_cp_async_bulk_unicast"
"""The driver's function that copies to the memory of another block of a cluster, on 12.0."""

_CLUSTERED = ("UCGABAR", "STAS", "REDAS", "UBLKCP.S.S", "UBLKRED.S.S")

_REGISTER = re.compile(r"(U?R)(Z|\d+)((?:\.\w+)*)")
_PREDICATE = re.compile(r"(U?P)(T|\d)")
_CONSTANT = re.compile(r"cx?\[(0x\w+)\]\[(?:(U?R(?:Z|\d+))(?:\.\w+)?)?\+?(-?0x\w+)?\]")
_ADDRESS = re.compile(r"(?:desc\[UR\d+\])?\[(.*)\]")
_INTEGER = re.compile(r"-?(0x[0-9a-f]+|\d+)")


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand without its signs: `kind` is `R`, `P`, `c`, `[` or `#` (an immediate)."""

    kind: str
    text: str
    negative: bool = False
    inverted: bool = False
    absolute: bool = False
    number: int = 0
    suffix: tuple[str, ...] = ()

    @property
    def is_zero(self) -> bool:
        """Whether it is RZ or URZ."""
        return self.kind == "R" and self.number < 0


_ACCESSES = (
    "LDG",
    "LDS",
    "LDL",
    "LD.",
    "ST",
    "ATOM",
    "RED",
    "TEX",
    "TLD",
    "BAR",
    "CALL",
    "WARPSYNC",
)
_UNCOUNTED = ("mov", "nanosleep", "vote", "shfl", "match", "redux", "ld", "isspacep", "bar",
              "mbarrier", "cp")  # fmt: skip

ZERO = Operand("R", "RZ", number=-1)


@dataclass(frozen=True)
class Lifted:
    """The text of a kernel of PTX, and its lines' instruction of the machine."""

    text: str
    lines: Mapping[int, Instruction]
    frame: int
    reserved: int
    flow: "Flow"


class Lifter:
    """Lifts one function; `handlers` are functions that lift an opcode, by its name."""

    def __init__(
        self, code: Code, parameters: Sequence[Variable], is_clustered: bool = False
    ) -> None:
        self.code = code
        self.now = code.instructions[0]
        self.opcode = ""
        self.modifiers: list[str] = []
        self.operands: list[Operand] = []
        self.lines: list[tuple[str, Instruction | None]] = []
        self._temporaries = {"r": 0, "d": 0, "p": 0, "h": 0, "q": 0}
        self._registers: set[str] = set()
        self._guard = self._own_guard = ""
        self._parameters = sorted(_placed(parameters, code.places), key=lambda each: each[0])
        self.keeps_reserved = any(each.opcode.startswith("UTC") for each in code.instructions)
        """Whether the code reads and writes what is reserved for the system: it allocates tensor
        memory."""
        is_displaced = code.capability >= _SINCE_RESERVED and not self.keeps_reserved
        self.displacement = -RESERVED if is_displaced else 0
        self.is_clustered = (
            is_clustered
            or any(
                each.opcode.startswith(_CLUSTERED) or "MULTICAST" in each.opcode
                for each in code.instructions
            )
            or any(each.name == COPIER for each in code.pointers.values())
        )
        """Whether addresses of shared memory may be those of other blocks."""
        self.has_mbarriers = any(each.opcode.startswith("SYNCS") for each in code.instructions)

    # Text

    def emit(self, operation: str, *operands: str, guarded: bool | None = None) -> None:
        """Add an operation; one that writes a temporary needs no guard."""
        if guarded is None:
            guarded = not operands or operands[0][:2] != "%t"
        guard = self._guard if guarded else ""
        for name in re.findall(r"%U?[RP]\d+", " ".join(operands)):
            self._registers.add(name)
        self.lines.append((f"{guard}{operation} {', '.join(operands)};", self.now))

    def label(self, text: str) -> None:
        """Add a label."""
        self.lines.append((f"{text}:", None))

    def new(self, kind: str = "r") -> str:
        """Return a new temporary: `r` 32 bits, `d` 64, `h` 16, `p` a predicate."""
        self._temporaries[kind] += 1
        return f"%t{kind}{self._temporaries[kind]}"

    def refuse(self, why: str) -> CutraceError:
        """Return the error for the present instruction."""
        return self.code.refuse(self.now, why)

    def refuse_if(self, is_unknown: object) -> None:
        """Refuse the present instruction if its form is unknown."""
        if is_unknown:
            raise self.refuse("cutrace does not know this form")

    def begin(self, instruction: Instruction) -> None:
        """Read the operands of an instruction."""
        self.now = instruction
        self.opcode, *self.modifiers = instruction.opcode.split(".")
        self.operands = [self._operand(text) for text in instruction.operands]
        self._guard = ""
        guard = instruction.guard
        if guard.lstrip("!") not in ("", "PT", "UPT"):
            name = f"%{guard.lstrip('!')}"
            self._registers.add(name)
            if any(o.kind == "P" and f"%{o.text}" == name for o in self.operands[:3]):
                copy = self.new("p")
                self.lines.append((f"mov.pred {copy}, {name};", instruction))
                name = copy
            self._guard = f"@{'!' * guard.startswith('!')}{name} "
        self._own_guard = self._guard

    @property
    def guard(self) -> str:
        """The predicate of the instruction: `%P0`, `!%P0` or empty."""
        return self._guard[1:].strip()

    def set_guard(self, predicate: str) -> None:
        """Let what follows of an instruction run where a predicate holds."""
        self._guard = f"@{predicate} " if predicate else ""

    def take(self, *names: str) -> list[str]:
        """Remove these modifiers; return those that were there."""
        matches = [m for m in self.modifiers if m in names]
        self.modifiers = [m for m in self.modifiers if m not in names]
        return matches

    def has(self, *names: str) -> bool:
        """Remove these modifiers; return whether any was there."""
        return bool(self.take(*names))

    def one(self, table: Mapping[str, str], default: str | None = None) -> str:
        """Remove the modifier that is in a table, and return its value."""
        matches = self.take(*table)
        if len(matches) == 1:
            return table[matches[0]]
        if matches or default is None:
            raise self.refuse("cutrace does not know these modifiers")
        return default

    def require(self, *counts: int) -> list[Operand]:
        """Return the operands; refuse other numbers of them, and modifiers that are left."""
        if self.modifiers:
            raise self.refuse(f"cutrace does not know the modifier `.{self.modifiers[0]}`")
        self.refuse_if(len(self.operands) not in counts)
        return self.operands

    # Operands

    def _operand(self, text: str) -> Operand:
        negative = inverted = absolute = False
        text = text.replace(".reuse", "").strip()
        while text and text[0] in "-~!|":
            if text[0] == "-" and _INTEGER.fullmatch(text):
                break
            negative |= text[0] == "-"
            inverted |= text[0] in "~!"
            if text[0] == "|":
                absolute = True
                text = text.replace("|", "")
                continue
            text = text[1:]
        signs = negative, inverted, absolute
        if match := _REGISTER.fullmatch(text):
            number = -1 if match[2] == "Z" else int(match[2])
            suffix = tuple(match[3].split(".")[1:])
            return Operand("R", match[1] + match[2], *signs, number, suffix)
        if match := _PREDICATE.fullmatch(text):
            return Operand("P", text, *signs, -1 if match[2] == "T" else int(match[2]))
        if _CONSTANT.fullmatch(text.partition(".")[0]):
            return Operand("c", text, *signs, suffix=tuple(text.split(".")[1:]))
        if _ADDRESS.fullmatch(text):
            return Operand("[", text)
        if _INTEGER.fullmatch(text):
            return Operand("#", text, *signs, int(text, 0))
        if match := HALF.fullmatch(text):
            return Operand("R", self._half_of_address(*match.groups()), *signs)
        return Operand("#", text, number=self.now.immediate)  # its sign is in there

    def _half_of_address(self, half: str, name: str, more: str | None) -> str:
        """Return a register, without its `%`, with half of a variable's address."""
        symbol = plain(name)
        if symbol not in self.code.globals:
            raise self.refuse(f"cutrace knows no code with the symbol `{name}`")
        whole, word = self.new("d"), self.new()
        self.emit("mov.u64", whole, f"{symbol}+{int(more or '0', 0)}")
        if half == "hi":
            self.emit("shr.u64", whole, whole, "32")
        self.emit("cvt.u32.u64", word, whole)
        return word[1:]

    def word(self, operand: Operand) -> str:
        """Return the 32 bits of an operand, as an integer: with its `-`, `~` or `|`."""
        if operand.suffix:
            raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")
        value = self.plain(operand)
        if operand.absolute:
            value = self.compute("abs.s32", value)
        if operand.inverted:
            value = self.compute("not.b32", value)
        return self.compute("neg.s32", value) if operand.negative else value

    def compute(self, operation: str, *values: str, kind: str = "r") -> str:
        """Add an operation; return its result, a new temporary."""
        output = self.new(kind)
        self.emit(operation, output, *values)
        return output

    def plain(self, operand: Operand) -> str:
        """Return the 32 bits of an operand, without its signs."""
        if operand.is_zero:
            return "0"
        if operand.kind == "R":
            return f"%{operand.text}"
        if operand.kind == "#":
            return str(operand.number)
        if operand.kind == "c":
            return self.constant(operand.text.partition(".")[0], 4)
        raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")

    def single(self, operand: Operand) -> str:
        """Return an operand as an f32."""
        if operand.kind == "#":
            return f"0f{self.now.immediate:08X}"
        if operand.suffix or operand.inverted:
            raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")
        value = "0f00000000" if operand.is_zero else self.plain(operand)
        if operand.absolute:
            value = self.compute("and.b32", value if value[0] == "%" else "0", "0x7fffffff")
        if operand.negative:
            value = self.compute("xor.b32", value if value[0] == "%" else "0", "0x80000000")
        return value

    def wide(self, operand: Operand, signs: bool = False) -> str:
        """Return the 64 bits of an operand: two registers, or constants; `signs` of an f64."""
        if operand.is_zero:
            value = "0"
        elif operand.kind == "R":
            if operand.suffix not in ((), ("64",)):
                raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")
            value = self.compute("mov.b64", f"{{{', '.join(registers(operand, 2))}}}", kind="d")
        elif operand.kind == "c":
            value = self.constant(operand.text.partition(".")[0], 8)
        elif operand.kind == "#" and signs:
            return f"0d{self.now.immediate:08X}00000000"
        elif operand.kind == "#":
            value = str(operand.number)
        else:
            raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")
        if not signs:
            if operand.inverted or operand.absolute:
                raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")
            return self.compute("neg.s64", value, kind="d") if operand.negative else value
        if value == "0":
            return f"0d{'8' if operand.negative else '0'}000000000000000"
        if operand.absolute:
            value = self.compute("abs.f64", value, kind="d")
        if operand.negative:  # a NaN keeps its sign
            value = self.compute("neg.f64", value, kind="d")
        return value

    def double(self, operand: Operand) -> str:
        """Return an operand as an f64."""
        return self.wide(operand, signs=True)

    def truth(self, operand: Operand) -> str | bool:
        """Return a predicate operand: `%P0`, `!%P0`, or a constant."""
        if operand.kind != "P":
            raise self.refuse(f"expected a predicate, found `{operand.text}`")
        if operand.number < 0:
            return not operand.inverted
        return f"{'!' * operand.inverted}%{operand.text}"

    def predicate(self, operand: Operand) -> str:
        """Return a predicate operand as a register."""
        value = self.truth(operand)
        output = self.new("p")
        if isinstance(value, bool):
            self.emit(f"setp.{'eq' if value else 'ne'}.u32", output, "0", "0")
        elif value[0] == "!":
            self.emit("not.pred", output, value[1:])
        else:
            return value
        return output

    def number_if(self, operand: Operand, number: str, bits: int = 32) -> str:
        """Return a number where a predicate holds, else 0."""
        holds = self.truth(operand)
        if isinstance(holds, bool):
            return number if holds else "0"
        values = ("0", number) if holds[0] == "!" else (number, "0")
        kind = "d" if bits == 64 else "r"
        return self.compute(f"selp.b{bits}", *values, holds.lstrip("!"), kind=kind)

    def both(self, holds: str) -> str:
        """Return a predicate that is true where the guard and another are."""
        if not self._guard:
            return holds
        both, own = self.new("p"), self._guard[1:].strip()
        if own[0] == "!":
            own = self.compute("not.pred", own[1:], kind="p")
        self.emit("and.pred", both, own, holds)
        return both

    def to(self, operand: Operand) -> str:
        """Return the register of a result; for RZ and PT a new one, which is never read."""
        if operand.number < 0:
            return self.new("p" if operand.kind == "P" else "r")
        return f"%{operand.text}"

    def put_wide(self, operand: Operand, value: str) -> None:
        """Write 64 bits to two registers."""
        if not operand.is_zero:
            self.emit("mov.b64", f"{{{', '.join(registers(operand, 2))}}}", value, guarded=True)

    # Constant banks

    def constant(self, text: str, size: int, kind: str = "") -> str:
        """Return a constant: `c[0x0][0x160]`, perhaps at a register's offset; `kind` of those below
        a word."""
        match = _CONSTANT.fullmatch(text)
        assert match
        bank, offset = int(match[1], 16), int(match[3] or "0", 16)
        index = "" if match[2] in (None, "RZ", "URZ") else f"%{match[2]}"
        output = self.new("d" if size == 8 else "r")
        bits = kind or f"b{8 * size}"
        if bank == 0:
            return self._launch_constant(output, bits, offset, size, index)
        if bank == 3 and (symbol := self._variable(offset)) is not None:
            name, inside = symbol
            if index:
                base = self.compute("mov.u32", name)
                index = self.compute("add.u32", base, index)
                self.emit(f"ld.const.{bits}", output, f"[{index}+{inside}]", guarded=True)
            else:
                self.emit(f"ld.const.{bits}", output, f"[{name}+{inside}]")
            return output
        if bank == 4:
            return (
                self._pointers(offset, size, index)
                if index
                else self._pointer(output, offset, size)
            )
        data = self.code.banks.get(bank, b"")
        if index and bank == 2 and size == 4 and len(data) <= _LARGEST_TABLE:
            return self._entry(data, offset, index)
        if not index and bank not in (0, 4) and offset + size <= len(data):
            self.emit(
                f"mov.{bits}", output, str(int.from_bytes(data[offset : offset + size], "little"))
            )
            return output
        raise self.refuse(f"cutrace does not know the constant `{text}`")

    def _entry(self, data: bytes, offset: int, index: str) -> str:
        """Return the word of a table of the kernel at a register's offset."""
        total = "0"
        for place in range(offset, len(data) - 3, 4):
            same, value = self.new("p"), int.from_bytes(data[place : place + 4], "little")
            self.emit("setp.eq.u32", same, index, str(place - offset))
            total = self.compute("selp.b32", str(value), total, same)
        return total

    def _launch_constant(self, output: str, bits: str, offset: int, size: int, index: str) -> str:
        is_new = self.code.capability >= _BLACKWELL
        if is_new and offset in _BY_SIZE:
            index = ""
        # With an index the place may be before the parameters: that of an earlier element.
        least = self.code.parameters - (_BEFORE if index and self._parameters else 0)
        if offset >= least > 0:
            place = offset - self.code.parameters
            for start, parameter in reversed(self._parameters):
                if start <= max(place, 0):
                    if size == 8 and not index and place + size > start + parameter.size:
                        words = [
                            self._launch_constant(self.new(), "b32", offset + n, 4, "")
                            for n in (0, 4)
                        ]  # of two parameters
                        self.emit("mov.b64", output, f"{{{', '.join(words)}}}")
                        return output
                    name = parameter.name
                    if index:
                        index = self.compute("add.u32", self.compute("mov.u32", name), index)
                    where = f"{index or name}+{place - start}"
                    self.emit(f"ld.param.{bits}", output, f"[{where}]", guarded=bool(index))
                    return output
        local = WINDOWS[Space.LOCAL][0]
        values = {**self._since(_LAUNCH), **self._since(_OF_DEVICE)}
        if size == 4 and not index and (word := self._cluster_word(offset)):
            return word
        if not index and (base := self._generic_base(offset, size)):
            return base
        first = 0x2F8 if is_new else 0x20
        values |= {first: str(local & 0xFFFFFFFF), first + 4: str(local >> 32)}
        values |= {first - 8: "0", first - 4: str(SHARED_WINDOW)}
        values |= {0x37C if is_new else 0x28: str(self.code.stack)}
        descriptor = 0x358 if is_new else 0x118 if self.code.capability < 90 else 0x208
        values |= {descriptor: "0", descriptor + 4: "0"}
        pieces = [values.get(place) for place in range(offset, offset + size, 4)]
        if index or None in pieces:
            raise self.refuse("cutrace does not know what lies there in constant bank 0")
        words = [self.compute("mov.u32", str(each)) for each in pieces]
        if size == 4:
            return words[0]
        self.emit("mov.b64", output, f"{{{', '.join(words)}}}")
        return output

    def _since(self, table: Mapping[int, Any], default: Any = MappingProxyType({})) -> Any:
        """Return the entry of a table of the last capability that is not above this one."""
        first_capabilities = [first for first in table if first <= self.code.capability]
        return table[max(first_capabilities)] if first_capabilities else default

    def _generic_base(self, offset: int, size: int) -> str:
        """Return a word or two of the generic address of a bank, or ""."""
        tables = {"parameters": _PARAMETER_BASE, "0": _BANK_0_BASE, "3": _BANK_3_BASE}
        places = {bank: self._since(table, -8) for bank, table in tables.items()}
        bank = next((b for b, place in places.items() if place <= offset < place + 8), "")
        is_single = bank != "3" or len(self.code.variables) == 1
        if not bank or not is_single or not self._parameters:
            return ""
        base = self.new("d")
        if bank == "3":
            variable = self.code.variables[0]
            self.emit("mov.u64", base, variable.name)
            self.emit("cvta.const.u64", base, base)
            shift = -variable.offset
        else:  # of the parameter that is aligned most: others may lie nearer to it here
            place, first = max(self._parameters, key=lambda each: each[1].align)
            self.emit("mov.u64", base, first.name)
            self.emit("cvta.param.u64", base, base)
            shift = -place - (self.code.parameters if bank == "0" else 0)
        self.emit("add.s64", base, base, str(shift))
        if size == 8:
            return base
        if offset % 8:
            self.emit("shr.u64", base, base, "32")
        return self.compute("cvt.u32.u64", base)

    def _cluster_word(self, offset: int) -> str:
        """Return a word about clusters that no special register of 32 bits has, or ""."""
        if offset == self._since(_IS_CLUSTER, -1):
            holds = self.compute("mov.pred", "%is_explicit_cluster", kind="p")
            return self.compute("selp.u32", "1", "0", holds)
        if name := self._since(_RECIPROCALS).get(offset):
            number = self.compute("cvt.rn.f32.u32", self.compute("mov.u32", name))
            return self.compute("rcp.rp.f32", number)
        return ""

    def _variable(self, offset: int) -> tuple[str, int] | None:
        for each in self.code.variables:
            if each.offset <= offset < each.offset + each.size:
                return each.name, offset - each.offset
        return None

    def _pointers(self, offset: int, size: int, index: str) -> str:
        """Return the address in bank 4 at a register's offset: one of all that lie there."""
        kind = "d" if size == 8 else "r"
        total = self.compute(f"mov.b{8 * size}", "0", kind=kind)
        for place in sorted(self.code.pointers):
            for part in range(place, place + 8, size):
                same, value = self.new("p"), self._pointer(self.new(kind), part, size)
                self.emit("setp.eq.u32", same, index, str(part - offset & 0xFFFFFFFF))
                total = self.compute(f"selp.b{8 * size}", value, total, same, kind=kind)
        return total

    def _pointer(self, output: str, offset: int, size: int) -> str:
        symbol = self.code.pointers.get(offset & ~7)
        if symbol is None:
            raise self.refuse("cutrace does not know this constant of bank 4")
        whole = output if size == 8 else self.new("d")
        if symbol.section:
            self.emit("mov.u64", whole, symbol.name)
        else:
            self.emit("mov.u64", whole, str(function_address(self.code, symbol.name)))
        if size == 8:
            return whole
        if offset & 4:
            whole = self.compute("shr.u64", whole, "32", kind="d")
        self.emit("cvt.u32.u64", output, whole)
        return output

    # The whole

    def lift(self, handlers: Mapping[str, Callable[["Lifter"], None]]) -> Lifted:
        """Lift all instructions that the kernel can reach."""
        flow = Flow(self.code, self)
        for instruction in flow.reached:
            self.begin(instruction)
            if instruction.address in flow.labels:
                self.label(label_of(instruction.address))
            if lanes := flow.rejoins.get(instruction.address):  # a row that is not counted
                place = instruction.address - BYTES // 2
                self.now = Instruction(place, "BSYNC", ("recursion",), "", 0)
                self.emit("bar.warp.sync", lanes, guarded=False)
                self.now = instruction
            if instruction.guard in ("!PT", "!UPT"):  # it takes a turn, and does nothing
                self.emit("nanosleep.u32", "0")
                continue
            if not flow.add(instruction):
                if not self.opcode:
                    raise self.refuse("nvdisasm has no name for this instruction")
                handler = handlers.get(self.opcode) or (
                    handlers.get(self.opcode[1:]) if self.opcode[0] == "U" else None
                )
                if handler is None:
                    raise self.refuse(f"cutrace does not know the opcode {self.opcode}")
                try:
                    handler(self)
                except (ValueError, LookupError) as error:
                    raise self.refuse("cutrace does not know this form") from error
                self.count_guard()
            after = instruction.address + BYTES
            if flow.falls(instruction) and flow.next_of.get(instruction.address) != after:
                raise self.refuse("the code ends here")
        for each in flow.switches:
            self.label(trap_of(each.address))
            self.lines.append(("trap;", each))
        return self._finished(flow)

    def meet(self, lanes: str) -> None:
        """Wait for the lanes of a mask. One that a guard keeps away waits for itself alone: lanes
        meet at an operation that all of them run."""
        if self.guard:
            own = self.compute("mov.u32", "%lanemask_eq")
            mine, other = (own, lanes) if self.guard[0] == "!" else (lanes, own)
            lanes = self.compute("selp.b32", mine, other, self.guard.lstrip("!"))
            self.count_lanes()
        self.emit("bar.warp.sync", lanes, guarded=False)  # the last: it counts where lanes arrive

    def count_guard(self) -> None:
        """Make the lanes of a predicated instruction counted: the engine counts them where it
        computes, and not where it moves."""
        if self._own_guard and not self.opcode.startswith(_ACCESSES):
            last = self.lines[-1][0].partition(" ") if self.lines else ("", "", "")
            if last[0] != self._own_guard.strip() or last[2].startswith(_UNCOUNTED):
                self._guard = self._own_guard  # a handler may have chosen one of the lanes
                self.count_lanes()

    def count_lanes(self) -> None:
        """Count the lanes that the guard lets pass, if there is one."""
        if self._guard:
            self.emit("add.u32", self.new(), "0", "0", guarded=True)

    def _finished(self, flow: "Flow") -> Lifted:
        declared = [f".reg .{'pred' if 'P' in n else 'b32'} {n};" for n in sorted(self._registers)]
        kinds = {"r": "b32", "d": "b64", "p": "pred", "h": "b16", "q": "b128"}
        for kind, count in self._temporaries.items():
            if count:
                declared.append(f".reg .{kinds[kind]} %t{kind}<{count + 1}>;")
        text = "\n".join([*declared, *(line for line, _ in self.lines)])
        lines = {
            len(declared) + number: owner
            for number, (_, owner) in enumerate(self.lines)
            if owner is not None
        }
        reserved = RESERVED if self.keeps_reserved else 0
        return Lifted(text, lines, self.code.stack, reserved, flow)


def registers(operand: Operand, count: int) -> list[str]:
    """Return the registers of an operand of so many words."""
    prefix = operand.text.rstrip("0123456789Z")
    return [f"%{prefix}{operand.number + n}" for n in range(count)]


def label_of(address: int) -> str:
    """Return the label of an address."""
    return f"L{address:x}"


def trap_of(address: int) -> str:
    """Return the label of the trap of a switch that goes to none of its places."""
    return f"Ltrap{address:x}"


def function_address(code: Code, name: str) -> int:
    """Return the pseudo-address of a function of the driver, outside of all code."""
    names = sorted({each.name for each in code.pointers.values() if not each.section})
    return (names.index(name) + 1) << 48


def _placed(
    parameters: Sequence[Variable], places: Sequence[int]
) -> Iterator[tuple[int, Variable]]:
    if len(places) == len(parameters):
        yield from zip(places, parameters, strict=True)
        return
    end = 0
    for each in parameters:
        end = -(-end // each.align) * each.align
        yield end, each
        end += each.size


_EXCHANGES = ("SHFL", "VOTE", "MATCH", "REDUX", "BAR.", "WARPSYNC")
_PLAIN_JUMPS = frozenset({"BRA", "CALL"})


class Flow:
    """The control flow graph: reachable instructions, and labels."""

    def __init__(self, code: Code, lifter: Lifter) -> None:
        self.code, self._lifter = code, lifter
        self._at = {each.address: each for each in code.instructions}
        self._returns: dict[int, set[int]] = {}
        own = f"${code.kernel}$"
        self._pointed = {
            place: name.removeprefix(own)
            for name, place in code.functions.items()
            if name.startswith(own) and place in self._at
        }
        """Functions that a call by address may mean, by place."""
        self.rejoins: dict[int, str] = {}
        """Places behind calls of a recursion, where its lanes meet again: registers of masks."""
        self.subroutines: set[int] = set()
        """Targets of calls that return: other calls are jumps."""
        self.inside_subroutines: set[int] = set()
        """Addresses of subroutines that never call themselves."""
        self._find_returns()
        reachable = self._reach(0, self._successors)
        self.labels = {target for at in reachable for target in self.targets(self._at[at])}
        ordered = sorted(reachable)
        self.reached = [self._at[address] for address in ordered]
        self.next_of = dict(pairwise(ordered))
        self.switches: list[Instruction] = []

    def _reach(self, entry: int, successors: Callable[[Instruction], list[int]]) -> Iterable[int]:
        """Return the addresses that are reachable from an entry, in the order of the search."""
        reachable: dict[int, None] = {}
        pending = [entry]
        while pending:
            address = pending.pop()
            if address not in reachable:
                reachable[address] = None
                pending += successors(self._require(address))
        return reachable

    def _successors(self, instruction: Instruction) -> list[int]:
        after = [instruction.address + BYTES] if self.falls(instruction) else []
        return self.targets(instruction) + after

    def _in_subroutine(self, instruction: Instruction) -> list[int]:
        """Return where control goes next within a subroutine: behind a call, and not back."""
        if instruction.calls:
            return [instruction.address + BYTES]
        returns = instruction.opcode.startswith("RET")
        unmarked = instruction.opcode.startswith("CALL.REL") and self._is_place(instruction, BYTES)
        after = [instruction.address + BYTES] if self.falls(instruction) or unmarked else []
        return after if returns else self.targets(instruction) + after

    def _is_place(self, instruction: Instruction, offset: int) -> bool:
        return instruction.address + offset in self._at

    def _require(self, address: int) -> Instruction:
        if address not in self._at:
            raise CutraceError(
                f"{self.code.title}: control goes to address {address:#x}, which has no instruction"
            )
        return self._at[address]

    def target(self, instruction: Instruction) -> int | None:
        """Return the target of a jump to an address or a name."""
        text = instruction.operands[-1] if instruction.operands else ""
        name = text.strip("`()")
        if name in self.code.functions:
            return self.code.functions[name]
        return int(text, 16) if re.fullmatch(r"0x[0-9a-f]+", text) else None

    def _find_returns(self) -> None:
        """Find the targets of each return: the instructions after the calls of its subroutine."""
        sites: dict[int, set[int]] = {}
        for each in self.code.instructions:
            if each.opcode.startswith("CALL.REL"):  # some are not marked as calls
                for target in self.targets(each):
                    sites.setdefault(target, set()).add(each.address + BYTES)
        bodies = {entry: [*self._reach(entry, self._in_subroutine)] for entry in sites}
        # ptxas also jumps by CALL, to a place of the same function: no RET leads back from there.
        returning = [entry for entry in sites if self._returns_from(bodies[entry])]
        self.subroutines.update(returning)
        called: dict[int, list[int]] = {entry: [] for entry in returning}
        for entry in returning:
            after = sites[entry]
            for address in bodies[entry]:
                instruction = self._at[address]
                if instruction.opcode.startswith("RET"):
                    self._returns.setdefault(address, set()).update(after)
                elif instruction.opcode.startswith("CALL.REL"):
                    called[entry] += filter(called.__contains__, self.targets(instruction))
        recursive = {entry for loop in cycles(called) for entry in loop}
        inside = {address for entry in recursive for address in bodies[entry]}
        self.inside_subroutines.update(*(bodies[entry] for entry in returning))
        self.inside_subroutines -= inside
        for address in sorted(inside):
            if self._at[address].opcode.startswith(_EXCHANGES):
                # Lanes of two levels may be at the same place.
                why = "cutrace does not know functions that call themselves and exchange values"
                raise self.code.refuse(self._at[address], why)
        for each in self.code.instructions:
            calls = each.opcode.startswith("CALL.REL") and each.address not in inside
            if calls and recursive.intersection(self.targets(each)):
                self.rejoins[each.address + BYTES] = self._lifter.new()

    def calls_subroutine(self, instruction: Instruction) -> bool:
        """Return whether an instruction calls a subroutine that never calls itself."""
        is_call = instruction.opcode.startswith("CALL.REL") and not instruction.guard
        return is_call and self.inside_subroutines.issuperset(self.targets(instruction))

    def _returns_from(self, body: Iterable[int]) -> bool:
        return any(self._at[address].opcode.startswith("RET") for address in body)

    def targets(self, instruction: Instruction) -> list[int]:
        """Return the possible branch targets of an instruction."""
        name, _, form = instruction.opcode.partition(".")
        if form.startswith("DIV") or (name == "CALL" and form.startswith("ABS")):
            return []
        if name == "CALL" and len(instruction.operands) > 1:
            if not self._pointed:
                raise self.code.refuse(instruction, "cutrace does not know where this call goes")
            return sorted(self._pointed)
        if name in _PLAIN_JUMPS:
            target = self.target(instruction)
            if target is None:
                raise self.code.refuse(instruction, "cutrace does not know where this goes")
            return [target]
        if name == "RET":
            return sorted(self._returns.get(instruction.address, ()))
        if name in ("BRX", "BRXU"):
            return sorted(set(self.code.branch_targets.get(instruction.address, ())))
        if name == "BSSY":
            return [int(instruction.operands[-1], 16)]
        return []

    def falls(self, instruction: Instruction) -> bool:
        """Return whether control may go to the next instruction."""
        name, _, form = instruction.opcode.partition(".")
        guarded = instruction.guard not in ("", "PT", "UPT")
        if name in ("BRA", "CALL"):
            if form.startswith("DIV") or form.startswith("ABS"):
                return True
            conditions = instruction.operands[:-1]
            return guarded or (form != "CONV" and any("P" in o for o in conditions))
        if name == "EXIT" and instruction.operands:
            return True
        return guarded or name not in ("EXIT", "RET", "BRX", "BRXU", "KILL")

    def add(self, instruction: Instruction) -> bool:
        """Lift an instruction that moves lanes; return whether it is one."""
        lifter = self._lifter
        name, _, form = instruction.opcode.partition(".")
        if name in ("BRA", "CALL") and not form.startswith("ABS"):
            self._branch(instruction, form)
        elif name == "EXIT":
            self._exit(form)
        elif name == "BSYNC" and instruction.address + BYTES in self.labels:
            lifter.emit("bra", label_of(instruction.address + BYTES))
        elif name in ("RET", "BRX", "BRXU"):
            self._switch(instruction)
        else:
            return False
        return True

    def _branch(self, instruction: Instruction, form: str) -> None:
        lifter = self._lifter
        if lanes := self.rejoins.get(instruction.address + BYTES):
            if lifter.guard or not instruction.opcode.startswith("CALL"):
                raise lifter.refuse("cutrace does not know this call")
            lifter.emit("activemask.b32", lanes)
        if instruction.opcode.startswith("CALL") and len(lifter.operands) > 1:
            self._call_by_address(instruction)
            return
        forms = ("", "U", "CONV", "DIV", "REL", "REL.NOINC", "U.ANY")
        if form not in forms or len(instruction.operands) > 2:
            raise lifter.refuse("cutrace does not know this branch")
        if form in ("CONV", "DIV"):
            mask = lifter.operands[0]
            word = lifter.word(mask) if len(instruction.operands) == 2 else "-1"
            lifter.meet(word)
            if form == "DIV":
                return
            lifter.emit("bra.uni", label_of(self.targets(instruction)[0]))
            return
        condition = lifter.operands[0] if len(instruction.operands) == 2 else None
        target = label_of(self.targets(instruction)[0])
        if form == "U.ANY" and condition is None and lifter.guard:
            holds = lifter.compute("vote.any.pred", lifter.guard, kind="p")
            lifter.lines.append((f"@{holds} bra {target};", instruction))
            return
        if condition is None:
            lifter.emit("bra", target)
            return
        lifter.lines.append(
            (f"@{lifter.both(lifter.predicate(condition))} bra {target};", instruction)
        )

    def _exit(self, form: str) -> None:
        """Lift EXIT, perhaps with a condition besides its guard: `@P0 EXIT P1`."""
        lifter = self._lifter
        if form or len(lifter.operands) > 1:
            raise lifter.refuse("cutrace does not know this exit")
        if lifter.operands:
            lifter.set_guard(lifter.both(lifter.predicate(lifter.operands[0])))
        lifter.count_lanes()
        lifter.emit("exit")

    def _switch(self, instruction: Instruction) -> None:
        """Lift a return or an indirect branch: a switch over its targets."""
        lifter, targets = self._lifter, self.targets(instruction)
        if not targets or len(lifter.operands) > 2:
            raise lifter.refuse("cutrace does not know where this goes")
        if len(targets) == 1:
            lifter.emit("bra", label_of(targets[0]))
            return
        register = lifter.operands[0]
        origin = 0
        if instruction.opcode.startswith("RET.ABS") and len(lifter.operands) > 1:
            origin = lifter.operands[1].number
        elif not instruction.opcode.startswith("RET"):
            origin = (
                instruction.address
                + BYTES
                + (lifter.operands[1].number if len(lifter.operands) > 1 else 0)
            )
        places = [str(target - origin & 0xFFFFFFFF) for target in targets]
        self._go(instruction, targets, "u32", lifter.plain(register), places)

    def _call_by_address(self, instruction: Instruction) -> None:
        """Lift a call by an address in registers: a switch over all functions. An address from the
        code is an offset in it; one from memory is that of the function."""
        lifter, targets = self._lifter, self.targets(instruction)
        names = []
        for target in targets:
            names.append(lifter.new("d"))
            lifter.emit("mov.u64", names[-1], self._pointed[target])
        places = [*names, *map(str, targets)]
        self._go(instruction, targets * 2, "u64", lifter.wide(lifter.operands[0]), places)

    def _go(
        self, instruction: Instruction, targets: Sequence[int], kind: str, value: str,
        places: Sequence[str],
    ) -> None:  # fmt: skip
        """Branch to the target with a value's address."""
        lifter = self._lifter
        index = lifter.compute("mov.u32", str(len(targets)))
        for number, place in enumerate(places):
            same = lifter.compute(f"setp.eq.{kind}", value, place, kind="p")
            index = lifter.compute("selp.u32", str(number), index, same)
        table = f"T{instruction.address:x}"
        names = ", ".join([*map(label_of, targets), trap_of(instruction.address)])
        lifter.lines.append((f"{table}: .branchtargets {names};", None))
        lifter.emit("brx.idx", index, table)
        self.switches.append(instruction)
