"""Moves of vectors, and addresses in windows of state spaces (PTX ISA 9.7.9)."""

from functools import reduce
from operator import or_
from typing import TypeAlias

import numpy as np

from ....traces.schema import Space
from ...ptx.kernel import TYPE_BYTES, Instruction, Register, Vector
from ..access.cluster import GENERIC as OF_CLUSTER
from ..memory.memory import WINDOWS
from ..ops.lanes import DTYPES, Array, scalar
from ..ops.rule import Rule

Window: TypeAlias = tuple[int, int]
"""The first address, and the one past the last."""

_WINDOWS = {name: WINDOWS[Space[name.upper()]] for name in ("shared", "local", "const")}


def move_rule(instruction: Instruction, parameters: Window) -> Rule | None:
    """Return the row of a move or of an instruction of addresses; None for a `mov` of one register.

    `parameters` are the generic addresses of the kernel's parameters.
    """
    if instruction.opcode == "mov":
        return _vectors(instruction)
    windows = {**_WINDOWS, "param": parameters}
    if instruction.opcode == "cvta":
        return _convert(instruction, windows.get(instruction.space, (0, 0))[0])
    if instruction.opcode == "isspacep":
        return _is_in_space(instruction, windows)
    # Cache hints are ignored, so every policy of `createpolicy` is 0.
    return Rule((), ("b64",), lambda: scalar(0, DTYPES["b64"]))


def _vectors(instruction: Instruction) -> Rule | None:
    """Join registers, the lowest bits first, or take one apart, or move each."""
    to, source = instruction.operands
    kind = instruction.type
    whole, dtype = f"b{8 * TYPE_BYTES[kind]}", DTYPES[kind]
    if isinstance(to, Vector) and isinstance(source, Vector):
        kinds = (kind,) * len(to.elements)
        return Rule(kinds, kinds, lambda *values: values)
    if isinstance(source, Vector):
        part = _part(kind, source)
        return Rule((part,) * len(source.elements), (kind,), lambda *parts: _join(parts, dtype))
    if isinstance(to, Vector):
        count, part = len(to.elements), _part(kind, to)
        return Rule((whole,), (part,) * count, lambda value: _cut(value, count, DTYPES[part]))
    return None


def _part(kind: str, vector: Vector) -> str:
    return f"b{8 * TYPE_BYTES[kind] // len(vector.elements)}"


def _join(parts: tuple[Array, ...], dtype: np.dtype[np.generic]) -> Array:
    if dtype.itemsize > 8:
        return np.stack(np.broadcast_arrays(*parts), axis=-1).view(dtype)[..., 0]
    whole = np.dtype(f"u{dtype.itemsize}")
    joined = parts[0].astype(whole)
    for place, part in enumerate(parts[1:], 1):
        joined = joined | part.astype(whole) << whole.type(8 * part.dtype.itemsize * place)
    return joined.view(dtype)


def _cut(value: Array, count: int, dtype: np.dtype[np.generic]) -> tuple[Array, ...]:
    if value.dtype.itemsize > 8:
        parts = np.ascontiguousarray(value)[..., None].view(dtype)
        return tuple(np.ascontiguousarray(parts[..., place]) for place in range(count))
    bits = value.dtype.type
    return tuple(
        (value >> bits(8 * dtype.itemsize * place)).astype(dtype) for place in range(count)
    )


def _convert(instruction: Instruction, start: int) -> Rule:
    """Turn an address of a state space into a generic one, or back (`to`)."""
    kind = instruction.type
    shift = scalar(-start if "to" in instruction.modifiers else start, DTYPES[kind])
    return Rule((kind,), (kind,), (lambda a: a + shift) if start else lambda a: a)


def _is_in_space(instruction: Instruction, windows: dict[str, Window]) -> Rule:
    """Test a generic address: one in no window but that of the parameters is global."""
    source, space = instruction.operands[1], instruction.space
    kind = "u64" if isinstance(source, Register) and TYPE_BYTES[source.type] == 8 else "u32"
    inside = [windows[space]] if space in windows else list(_WINDOWS.values())
    if space not in windows or "shared::cluster" in instruction.modifiers:
        inside.append(OF_CLUSTER)

    def test(address: Array) -> Array:
        found: Array = reduce(or_, ((address >= a) & (address < b) for a, b in inside))
        return found if space in windows else ~found

    return Rule((kind,), ("pred",), test)
