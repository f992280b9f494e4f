"""Constant banks of machine code: parameters, facts of the launch, and the kernel's own constants.

Bank 0 has a launch's parameters and, before them, what PTX has special registers for; bank 2 the
tables of a kernel, bank 3 its `__constant__` variables, bank 4 addresses of variables and
functions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...traces.schema import Space
from ..ptx.kernel import Variable
from ..simt.memory.memory import WINDOWS
from .cubin import Code
from .emitter import Emitter

SHARED_WINDOW = 0x5EED
"""Upper word of a generic address of shared memory: machine code joins it with an address there."""

RESERVED = 0x400
SINCE_RESERVED = 90
"""Shared memory begins with 1024 bytes of the system since 9.0."""

CONSTANT = re.compile(r"cx?\[(0x\w+)\]\[(?:(U?R(?:Z|\d+))(?:\.\w+)?)?\+?(-?0x\w+)?\]")

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
    SINCE_RESERVED: {
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
_IS_CLUSTER = {SINCE_RESERVED: 0x140, _BLACKWELL: 0x36C}
_RECIPROCALS = {
    SINCE_RESERVED: _three(0x150, "%cluster_nctaid"),
    _BLACKWELL: _three(0x2B0, "%cluster_nctaid"),
}
_BY_SIZE = range(0x2A0, 0x2D0)
"""Places since 10.0 that depend on SR_CgaSize, which is 0 here."""

_BANK_0_BASE = {0: 0x40, SINCE_RESERVED: 0xC0, _BLACKWELL: -8}
"""Where the generic address of constant bank 0 lies; nobody has asked for it on 10.0 yet."""

_PARAMETER_BASE = {SINCE_RESERVED: 0x198, _BLACKWELL: 0x348}
"""Where that of the parameters there lies."""

_BANK_3_BASE = {0: 0x50, SINCE_RESERVED: 0xD0, _BLACKWELL: 0x120}
"""Where the generic address of constant bank 3 lies."""


class ConstantBanks:
    """The constant banks of a kernel, whose `parameters` lie in bank 0."""

    def __init__(self, lifter: Emitter, parameters: Sequence[Variable]) -> None:
        self._lifter, self._code = lifter, lifter.code
        placed = _placed(parameters, self._code.places)
        self._parameters = sorted(placed, key=lambda each: each[0])

    def load(self, text: str, size: int, kind: str = "") -> str:
        """Return the register of a constant: `c[0x0][0x160]`, perhaps at a register's offset;
        `kind` of those below a word."""
        match = CONSTANT.fullmatch(text)
        assert match
        bank, offset = int(match[1], 16), int(match[3] or "0", 16)
        index = "" if match[2] in (None, "RZ", "URZ") else f"%{match[2]}"
        output = self._lifter.new("d" if size == 8 else "r")
        bits = kind or f"b{8 * size}"
        if bank == 0:
            return self._launch_constant(output, bits, offset, size, index)
        if bank == 3 and (symbol := self._variable(offset)) is not None:
            name, inside = symbol
            if index:
                index = self._sum(name, index)
                self._lifter.emit(f"ld.const.{bits}", output, f"[{index}+{inside}]", guarded=True)
            else:
                self._lifter.emit(f"ld.const.{bits}", output, f"[{name}+{inside}]")
            return output
        if bank == 4:
            return (
                self._pointers(offset, size, index)
                if index
                else self._pointer(output, offset, size)
            )
        data = self._code.banks.get(bank, b"")
        if index and bank == 2 and size == 4 and len(data) <= _LARGEST_TABLE:
            return self._entry(data, offset, index)
        if not index and bank not in (0, 4) and offset + size <= len(data):
            self._lifter.emit(
                f"mov.{bits}", output, str(int.from_bytes(data[offset : offset + size], "little"))
            )
            return output
        raise self._lifter.refuse(f"cutrace does not know the constant `{text}`")

    def _sum(self, name: str, index: str) -> str:
        base = self._lifter.compute("mov.u32", name)
        return self._lifter.compute("add.u32", base, index)

    def _entry(self, data: bytes, offset: int, index: str) -> str:
        """Return the word of a table of the kernel at a register's offset."""
        total = "0"
        for place in range(offset, len(data) - 3, 4):
            same, value = self._lifter.new("p"), int.from_bytes(data[place : place + 4], "little")
            self._lifter.emit("setp.eq.u32", same, index, str(place - offset))
            total = self._lifter.compute("selp.b32", str(value), total, same)
        return total

    def _launch_constant(self, output: str, bits: str, offset: int, size: int, index: str) -> str:
        is_new = self._code.capability >= _BLACKWELL
        if is_new and offset in _BY_SIZE:
            index = ""
        # With an index the place may be before the parameters: that of an earlier element.
        least = self._code.parameters - (_BEFORE if index and self._parameters else 0)
        if offset >= least > 0:
            place = offset - self._code.parameters
            for start, parameter in reversed(self._parameters):
                if start <= max(place, 0):
                    if size == 8 and not index and place + size > start + parameter.size:
                        words = [
                            self._launch_constant(self._lifter.new(), "b32", offset + n, 4, "")
                            for n in (0, 4)
                        ]  # of two parameters
                        self._lifter.emit("mov.b64", output, f"{{{', '.join(words)}}}")
                        return output
                    name = parameter.name
                    if index:
                        index = self._lifter.compute(
                            "add.u32", self._lifter.compute("mov.u32", name), index
                        )
                    where = f"{index or name}+{place - start}"
                    self._lifter.emit(f"ld.param.{bits}", output, f"[{where}]", guarded=bool(index))
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
        values |= {0x37C if is_new else 0x28: str(self._code.stack)}
        descriptor = 0x358 if is_new else 0x118 if self._code.capability < 90 else 0x208
        values |= {descriptor: "0", descriptor + 4: "0"}
        pieces = [values.get(place) for place in range(offset, offset + size, 4)]
        if index or None in pieces:
            raise self._lifter.refuse("cutrace does not know what lies there in constant bank 0")
        words = [self._lifter.compute("mov.u32", str(each)) for each in pieces]
        if size == 4:
            return words[0]
        self._lifter.emit("mov.b64", output, f"{{{', '.join(words)}}}")
        return output

    def _since(self, table: Mapping[int, Any], default: Any = MappingProxyType({})) -> Any:
        """Return the entry of a table of the last capability that is not above this one."""
        first_capabilities = [first for first in table if first <= self._code.capability]
        return table[max(first_capabilities)] if first_capabilities else default

    def _generic_base(self, offset: int, size: int) -> str:
        """Return a word or two of the generic address of a bank, or ""."""
        tables = {"parameters": _PARAMETER_BASE, "0": _BANK_0_BASE, "3": _BANK_3_BASE}
        places = {bank: self._since(table, -8) for bank, table in tables.items()}
        bank = next((b for b, place in places.items() if place <= offset < place + 8), "")
        is_single = bank != "3" or len(self._code.variables) == 1
        if not bank or not is_single or not self._parameters:
            return ""
        base = self._lifter.new("d")
        if bank == "3":
            variable = self._code.variables[0]
            self._lifter.emit("mov.u64", base, variable.name)
            self._lifter.emit("cvta.const.u64", base, base)
            shift = -variable.offset
        else:  # of the parameter that is aligned most: others may lie nearer to it here
            place, first = max(self._parameters, key=lambda each: each[1].align)
            self._lifter.emit("mov.u64", base, first.name)
            self._lifter.emit("cvta.param.u64", base, base)
            shift = -place - (self._code.parameters if bank == "0" else 0)
        self._lifter.emit("add.s64", base, base, str(shift))
        if size == 8:
            return base
        if offset % 8:
            self._lifter.emit("shr.u64", base, base, "32")
        return self._lifter.compute("cvt.u32.u64", base)

    def _cluster_word(self, offset: int) -> str:
        """Return a word about clusters that no special register of 32 bits has, or ""."""
        if offset == self._since(_IS_CLUSTER, -1):
            holds = self._lifter.compute("mov.pred", "%is_explicit_cluster", kind="p")
            return self._lifter.compute("selp.u32", "1", "0", holds)
        if name := self._since(_RECIPROCALS).get(offset):
            number = self._lifter.compute("cvt.rn.f32.u32", self._lifter.compute("mov.u32", name))
            return self._lifter.compute("rcp.rp.f32", number)
        return ""

    def _variable(self, offset: int) -> tuple[str, int] | None:
        for each in self._code.variables:
            if each.offset <= offset < each.offset + each.size:
                return each.name, offset - each.offset
        return None

    def _pointers(self, offset: int, size: int, index: str) -> str:
        """Return the address in bank 4 at a register's offset: one of all that lie there."""
        kind = "d" if size == 8 else "r"
        total = self._lifter.compute(f"mov.b{8 * size}", "0", kind=kind)
        for place in sorted(self._code.pointers):
            for part in range(place, place + 8, size):
                same, value = (
                    self._lifter.new("p"),
                    self._pointer(self._lifter.new(kind), part, size),
                )
                self._lifter.emit("setp.eq.u32", same, index, str(part - offset & 0xFFFFFFFF))
                total = self._lifter.compute(f"selp.b{8 * size}", value, total, same, kind=kind)
        return total

    def _pointer(self, output: str, offset: int, size: int) -> str:
        symbol = self._code.pointers.get(offset & ~7)
        if symbol is None:
            raise self._lifter.refuse("cutrace does not know this constant of bank 4")
        whole = output if size == 8 else self._lifter.new("d")
        if symbol.section:
            self._lifter.emit("mov.u64", whole, symbol.name)
        else:
            self._lifter.emit("mov.u64", whole, str(function_address(self._code, symbol.name)))
        if size == 8:
            return whole
        if offset & 4:
            whole = self._lifter.compute("shr.u64", whole, "32", kind="d")
        self._lifter.emit("cvt.u32.u64", output, whole)
        return output


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
