"""Video instructions: parts of registers, clamped, merged and accumulated (PTX ISA 9.7.17, 9.7.18).

Scalar ones read a byte, a half or the whole of each source; packed ones select two halves or four
bytes from both sources. All arithmetic is in int64.
"""

from collections.abc import Callable, Mapping

import numpy as np

from ...ptx.kernel import Instruction, Operand, Part
from .lanes import DTYPES, Array
from .rule import Family, Rule

_COMBINE: Mapping[str, Callable[[Array, Array], Array]] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}
_COMPARE: Mapping[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_SECOND: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
}
_SCALES = {"shr7": 7, "shr15": 15}


def _selector(operand: Operand) -> str:
    return operand.selector if isinstance(operand, Part) else ""


def _part(word: Array, kind: str, selector: str) -> Array:
    """Return a byte, a half or all of a word; sign-extended if `kind` is signed."""
    width = {"": 32, "b": 8, "h": 16}[selector[:1]]
    start = width * int(selector[1:] or 0)
    up = np.uint32(32 - width - start)
    shifted = word << up
    wide = shifted.view(np.int32) if kind[0] == "s" else shifted
    return wide.astype(np.int64) >> (32 - width)


def _clamp(value: Array, kind: str, width: int) -> Array:
    low, high = (
        (-1 << (width - 1), (1 << (width - 1)) - 1) if kind[0] == "s" else (0, (1 << width) - 1)
    )
    return np.clip(value, low, high)


def _word(value: Array) -> Array:
    return value.astype(np.uint32)


def _finish(instruction: Instruction, kind: str) -> Callable[..., Array]:
    """Return the function that clamps a result, and merges or combines it with the third source."""
    selector = _selector(instruction.operands[0])
    second = next((_SECOND[m] for m in instruction.modifiers if m in _SECOND), None)
    width = {"": 32, "b": 8, "h": 16}[selector[:1]]
    start = width * int(selector[1:] or 0)
    mask = np.uint32((1 << width) - 1 << start)
    saturate = "sat" in instruction.modifiers
    if (selector or second) and len(instruction.operands) != 4:
        raise ValueError("a third source is merged or combined")

    def finish(value: Array, *c: Array) -> Array:
        value = _clamp(value, kind, width) if saturate else value
        if selector:
            return (_word(value) << np.uint32(start) & mask) | (c[0] & ~mask)
        if second is None:
            return _word(value)
        return _word(second(_part(_word(value), kind, ""), _part(c[0], kind, "")))

    return finish


def _sources(instruction: Instruction) -> tuple[str, str]:
    """Return the types of the two sources; ValueError if one is missing."""
    first, second = instruction.types[-2:]
    return first, second


def _scalar(instruction: Instruction, result: str, compute: Callable[..., Array]) -> Rule:
    _, first, second, *extra_operands = instruction.operands
    kinds = _sources(instruction)
    selectors = _selector(first), _selector(second)
    finish = _finish(instruction, result)

    def run(a: Array, b: Array, *c: Array) -> Array:
        lhs, right = (_part(x, k, s) for x, k, s in zip((a, b), kinds, selectors, strict=True))
        return finish(compute(lhs, right), *c)

    return Rule(("b32",) * (2 + len(extra_operands)), ("b32",), run)


def _arithmetic(instruction: Instruction) -> Rule:
    return _scalar(instruction, instruction.types[0], _COMBINE[instruction.opcode])


def _shift(instruction: Instruction) -> Rule:
    is_left, wrap = instruction.opcode == "vshl", "wrap" in instruction.modifiers

    def shift(a: Array, b: Array) -> Array:
        amount = b & 31 if wrap else np.minimum(b, 32)
        return a << amount if is_left else a >> amount

    return _scalar(instruction, instruction.types[0], shift)


def _compare(instruction: Instruction) -> Rule:
    test = next(_COMPARE[m] for m in instruction.modifiers if m in _COMPARE)
    return _scalar(instruction, "u32", lambda a, b: test(a, b).astype(np.int64))


def _multiply_add(instruction: Instruction) -> Rule:
    """`vmad`: the product has 64 bits here, which hold any product of 32-bit sources."""
    _, first, second, _ = instruction.operands
    kinds = _sources(instruction)
    selectors = _selector(first), _selector(second)
    signed = any(kind[0] == "s" for kind in kinds)
    final = "s32" if signed else "u32"
    shift = next((_SCALES[m] for m in instruction.modifiers if m in _SCALES), 0)
    one = int("po" in instruction.modifiers)
    saturate = "sat" in instruction.modifiers
    dtype = DTYPES["s64" if signed else "u64"]

    def run(a: Array, b: Array, c: Array) -> Array:
        lhs, right = (
            _part(x, k, s).astype(dtype) for x, k, s in zip((a, b), kinds, selectors, strict=True)
        )
        total = lhs * right + _part(c, final, "").astype(dtype) + dtype.type(one)
        total = total >> dtype.type(shift)
        if saturate:
            limits = np.iinfo(np.int32 if signed else np.uint32)
            total = np.clip(total, dtype.type(limits.min), dtype.type(limits.max))
        return _word(total)

    return Rule(("b32",) * 3, ("b32",), run)


def _packed(instruction: Instruction) -> Rule:
    """Combine two halves or four bytes at once; `.add` adds their sum to the third source."""
    count = int(instruction.opcode[-1])
    letter, width = ("h", 16) if count == 2 else ("b", 8)
    compare = next((_COMPARE[m] for m in instruction.modifiers if m in _COMPARE), None)
    combine = compare or _COMBINE[instruction.opcode[:-1]]
    kinds = _sources(instruction)
    result = "u32" if compare else instruction.types[0]
    to, first, second, _ = instruction.operands
    everything = "".join(str(k) for k in reversed(range(count)))
    lane_selectors = _selector(first)[1:] or everything
    other = _selector(second)[1:] or "".join(str(int(k) + count) for k in everything)
    target_lanes = {int(k) for k in _selector(to)[1:] or everything}
    saturate, add = "sat" in instruction.modifiers, "add" in instruction.modifiers

    def element(a: Array, b: Array, kind: str, place: str) -> Array:
        number = int(place)
        return _part(a if number < count else b, kind, f"{letter}{number % count}")

    def run(a: Array, b: Array, c: Array) -> Array:
        total = c.astype(np.int64)
        merged = c
        for k in sorted(target_lanes):
            lhs = element(a, b, kinds[0], lane_selectors[count - 1 - k])
            right = element(a, b, kinds[1], other[count - 1 - k])
            value = combine(lhs, right).astype(np.int64)
            value = _clamp(value, result, width) if saturate else value
            mask = np.uint32((1 << width) - 1 << width * k)
            merged = (_word(value) << np.uint32(width * k) & mask) | (merged & ~mask)
            total = total + value
        return _word(total) if add else merged

    return Rule(("b32",) * 3, ("b32",), run)


FAMILY = Family(
    "video",
    {
        **dict.fromkeys(("vadd", "vsub", "vabsdiff", "vmin", "vmax"), _arithmetic),
        **dict.fromkeys(("vshl", "vshr"), _shift),
        "vset": _compare,
        "vmad": _multiply_add,
        **{
            f"{name}{count}": _packed
            for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset")
            for count in (2, 4)
        },
    },
)
