"""Codegen of moves for one lane: parts of registers, and address conversions between windows."""

from ...ptx.kernel import Instruction, Operand, Symbol, Vector
from ..memory.memory import WINDOWS
from .emit_lane import Lane, Write, llvm_type, width
from .register_frame import PARAMETERS


def move(lane: Lane, instruction: Instruction) -> list[Write]:
    """Return the writes of a `mov`: operand, PTX type and value of each."""
    to, source = instruction.operands
    kind = instruction.type
    if kind == "b128":
        raise lane.refuse("128 bits")
    if isinstance(source, Vector) and isinstance(to, Vector):
        values = [lane.operand(e, kind) for e in source.elements]
        return [(t, kind, v) for t, v in zip(to.elements, values, strict=True)]
    if isinstance(source, Vector):
        return [(to, kind, _packed(lane, source, kind))]
    if isinstance(to, Vector):
        return _unpacked(lane, to, source, kind)
    value = lane.operand(source, kind)
    if isinstance(source, Symbol) and lane.frame.has_levels(lane.function, source.name):
        value = lane.emit(f"add i{width(kind)} {value}, {lane.level(kind)}")
    return [(to, kind, value)]


def _packed(lane: Lane, source: Vector, kind: str) -> str:
    bits = width(kind)
    part = bits // len(source.elements)
    whole = "0"
    for place, element in enumerate(source.elements):
        value = lane.operand(element, f"b{part}")
        value = lane.emit(f"zext i{part} {value} to i{bits}")
        value = lane.emit(f"shl i{bits} {value}, {place * part}")
        whole = lane.emit(f"or i{bits} {whole}, {value}")
    return lane.bitcast(whole, f"i{bits}", llvm_type(kind))


def _unpacked(lane: Lane, to: Vector, source: Operand, kind: str) -> list[Write]:
    bits = width(kind)
    part = bits // len(to.elements)
    value = lane.operand(source, f"b{bits}")
    results: list[Write] = []
    for place, element in enumerate(to.elements):
        moved = lane.emit(f"lshr i{bits} {value}, {place * part}")
        cut = lane.emit(f"trunc i{bits} {moved} to i{part}")
        results.append((element, f"b{part}", cut))
    return results


_WINDOW_SPACES = {space.name.lower(): start for space, (start, _) in WINDOWS.items()}


def converted_address(lane: Lane, instruction: Instruction) -> list[Write]:
    """Return the write of a `cvta`: operand, PTX type and value of the address."""
    to, source = instruction.operands
    kind = instruction.type
    value = lane.operand(source, kind)
    start = 0 if instruction.space == "global" else _WINDOW_SPACES.get(instruction.space, 0)
    if instruction.space == "param":
        start = lane.frame.address_of(0, Symbol(PARAMETERS)) or 0
    if start:
        operation = "sub" if "to" in instruction.modifiers else "add"
        value = lane.emit(f"{operation} i{width(kind)} {value}, {start}")
    return [(to, kind, value)]
