"""Conversions of machine code between integers and floats of any size."""

from collections.abc import Mapping
from dataclasses import replace

from .lift import Handler, Lifter
from .operand import Operand

_TYPES = {
    **{f"{kind}{size}": f"{kind.lower()}{size}" for kind in "US" for size in (8, 16, 32, 64)},
    **{"F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64"},
}

_WHOLE = {"TRUNC": ".rzi", "FLOOR": ".rmi", "CEIL": ".rpi", "ROUND": ".rni"}

_STEPS = {"RM": ".rm", "RP": ".rp", "RZ": ".rz", "RN": ".rn"}


def source_value(lifter: Lifter, operand: Operand, kind: str) -> str:
    """Return an operand as a value of a type, as `f32`."""
    if kind in ("f64", "u64", "s64"):
        return lifter.double(operand) if kind == "f64" else lifter.wide(operand)
    if kind == "f32":
        return lifter.single(operand)
    if kind in ("u32", "s32"):
        return lifter.word(operand)
    if kind in ("f16", "bf16", "u16", "s16", "u8", "s8"):
        part = operand.suffix[0] if operand.suffix else ""
        signed = operand.negative or operand.absolute
        lifter.refuse_if((signed and "f" not in kind) or operand.kind != "R" or len(part) > 2)
        shift_by = {"": 0, "H0": 0, "H1": 16, "B0": 0, "B1": 8, "B2": 16, "B3": 24}.get(part)
        if shift_by is None:
            raise lifter.refuse("cutrace does not know this form")
        moved, half = lifter.new(), lifter.new("h")
        plain = "0" if operand.is_zero else f"%{operand.text.partition('.')[0]}"
        lifter.emit("shr.u32", moved, plain, str(shift_by))
        if operand.absolute:
            lifter.emit("and.b32", moved, moved, "0x7fff")
        if operand.negative:
            lifter.emit("xor.b32", moved, moved, "0x8000")
        lifter.emit("cvt.u16.u32", half, moved)
        return half
    raise lifter.refuse("cutrace does not know this type")


def convert(lifter: Lifter) -> None:
    """F2F, F2I, I2F, I2FP, FRND: conversions by type and rounding."""
    flush = ".ftz" * lifter.has("FTZ")
    lifter.take("NTZ")
    steps = lifter.take(*_STEPS)
    whole = lifter.take(*_WHOLE)
    types = [_TYPES[m] for m in lifter.modifiers if m in _TYPES]
    lifter.take(*_TYPES)
    kind = lifter.opcode.removeprefix("U")
    if kind == "F2I":
        floats = [t for t in types if "f" in t] or ["f32"]
        integers = [t for t in types if "f" not in t] or ["s32"]
        target, source, rounding = integers[0], floats[0], _WHOLE[whole[0]] if whole else ".rni"
    elif kind in ("I2F", "I2FP"):
        floats = [t for t in types if "f" in t] or ["f32"]
        integers = [t for t in types if "f" not in t] or ["s32"]
        target, source, rounding = floats[0], integers[0], _STEPS[steps[0]] if steps else ".rn"
    elif kind == "F2F":
        if len(types) != 2:
            raise lifter.refuse("cutrace does not know these types")
        target, source = types
        grows = int(target.strip("bf")) > int(source.strip("bf"))
        rounding = "" if grows else _STEPS[steps[0]] if steps else ".rn"
    else:
        target = source = types[0] if types else "f32"
        rounding = _WHOLE[whole[0]] if whole else ".rni"
    if "f64" in (target, source) or target in ("f16", "bf16"):
        flush = ""
    to, value = lifter.require(2)
    read = source_value(lifter, value, source)
    operation = f"cvt{rounding}{flush}.{target}.{source}"
    if target.endswith("64"):
        output = lifter.compute(operation, read, kind="d")
        lifter.put_wide(to, output)
    elif target in ("f16", "bf16"):
        output = lifter.compute(operation, read, kind="h")
        lifter.emit("cvt.u32.u16", lifter.to(to), output)
    else:
        lifter.emit(operation, lifter.to(to), read)


_EIGHTS = {"E4M3": "e4m3x2", "E5M2": "e5m2x2", "E2M3": "e2m3x2", "E3M2": "e3m2x2",
           "E8": "ue8m0x2", "E2M1": "e2m1x2"}  # fmt: skip


def convert_integer(lifter: Lifter) -> None:
    """I2I: an integer, cut to the range of a smaller one."""
    lifter.one({"SAT": ""})
    types = [_TYPES[m] for m in lifter.modifiers if m in _TYPES]
    lifter.take(*_TYPES)
    to, value = lifter.require(2)
    if len(types) != 2 or types[1] not in ("u32", "s32") or types[0] not in ("u8", "s8", "u16",
                                                                            "s16"):  # fmt: skip
        raise lifter.refuse("cutrace does not know these types")
    if types[0][1:] == "8":
        lifter.emit(f"cvt.sat.{types[0]}.{types[1]}", lifter.to(to), lifter.word(value))
        return
    output = lifter.compute(f"cvt.sat.{types[0]}.{types[1]}", lifter.word(value), kind="h")
    lifter.emit(f"cvt.{types[0][0]}32.{types[0]}", lifter.to(to), output)


def convert_packed(lifter: Lifter) -> None:
    """F2FP: two f32 to a pair of halves, or from and to pairs of floats of at most 8 bits."""
    relu, eight = ".relu" * lifter.has("RELU"), lifter.one(_EIGHTS, "")
    if lifter.has("RS"):
        _convert_at_random(lifter, relu, eight)
        return
    lifter.refuse_if(eight == "e2m1x2")
    if lifter.has("UNPACK_B"):
        wide = lifter.one({"BF16": "bf16x2"} if eight == "ue8m0x2" else {"F16": "f16x2"})
        to, pair = lifter.require(2)
        half = source_value(lifter, pair, "u16")
        lifter.emit(f"cvt.rn{relu}.{wide}.{eight}", lifter.to(to), half)
        return
    if eight:
        exponent = eight == "ue8m0x2"
        rounding = lifter.one({"RZ": ".rz", "RP": ".rp"}) if exponent else ".rn"
        limit = lifter.one({"SATFINITE": ".satfinite"}, *([""] * exponent))
        output = lifter.new("h")
        form = f"cvt{rounding}{limit}{relu}.{eight}"
        if lifter.has("UNPACK_B_MERGE_C"):
            wide = lifter.one({"BF16": "bf16x2"} if exponent else {"F16": "f16x2"})
            to, pair, before = lifter.require(3)
            lifter.emit(f"{form}.{wide}", output, lifter.word(pair))
        else:
            lifter.one({"PACK_AB_MERGE_C": ""})
            lifter.one({"F32": ""})
            to, a, b, before = lifter.require(4)
            lifter.emit(f"{form}.f32", output, lifter.single(a), lifter.single(b))
        low = lifter.compute("cvt.u32.u16", output)
        high = lifter.compute("shl.b32", lifter.word(before), "16")
        lifter.emit("or.b32", lifter.to(to), low, high)
        return
    lifter.take("F32")
    if lifter.has("TF32"):
        lifter.one({"PACK_B": ""})
        rounding, limit = lifter.one({"RZ": ".rz"}, ".rn"), ".satfinite" * lifter.has("SATFINITE")
        to, value = lifter.require(2)
        form = f"cvt{rounding}{limit}{relu}.tf32.f32"
        lifter.emit(form, lifter.to(to), lifter.single(value))
        return
    kind = lifter.one({"F16": "f16", "BF16": "bf16"}, "f16")
    rounding, limit = lifter.one({"RZ": ".rz"}, ".rn"), ".satfinite" * lifter.has("SATFINITE")
    if lifter.has("MERGE_C"):
        to, value, before = lifter.require(3)
        output = lifter.compute(
            f"cvt{rounding}{relu}{limit}.{kind}.f32", lifter.single(value), kind="h"
        )
        low = lifter.compute("cvt.u32.u16", output)
        high = lifter.compute("shl.b32", lifter.word(before), "16")
        lifter.emit("or.b32", lifter.to(to), low, high)
        return
    lifter.one({"PACK_AB": ""})
    to, a, b = lifter.require(3)
    form = f"cvt{rounding}{relu}{limit}.{kind}x2.f32"
    lifter.emit(form, lifter.to(to), lifter.single(a), lifter.single(b))


def _convert_at_random(lifter: Lifter, relu: str, eight: str) -> None:
    """Lift F2FP.RS: random bits are added to the bits that rounding drops.

    A pair of small numbers takes those in the upper half of the third source. Those below, or for
    numbers of 4 bits all, move up for the next pair: `cvt.rs` converts two such pairs.
    """
    limit = ".satfinite" * lifter.has("SATFINITE")
    lifter.one({"F32": ""})
    if not eight:
        kind = lifter.one({"F16": "f16x2", "BF16": "bf16x2"})
        lifter.one({"PACK_AB": ""})
        to, a, b, random = lifter.require(4)
        lifter.emit(f"cvt.rs{relu}{limit}.{kind}.f32", lifter.to(to), lifter.single(a),
               lifter.single(b), lifter.word(random))  # fmt: skip
        return
    lifter.one({"PACK_AB_MERGE_C": ""})
    to, a, b, before = lifter.require(4)
    pair, bits = f"{lifter.single(a)}, {lifter.single(b)}", lifter.word(before)
    kind, width = ("h", "8") if eight == "e2m1x2" else ("r", "16")
    form = f"cvt.rs{relu}{limit}.{eight[:-1]}4.f32"
    four = lifter.compute(form, f"{{{pair}, {pair}}}", bits, kind=kind)
    if kind == "h":
        four = lifter.compute("cvt.u32.u16", four)
    upper = lifter.compute("shr.u32", four, width)
    lifter.emit("or.b32", lifter.to(to), upper, lifter.compute("shl.b32", bits, width))


_LOWER = (("24",), ("28",), ("16",))
"""Bits of a register that stay, below those that are shifted out."""


def convert_bytes(lifter: Lifter) -> None:
    """I2IP: two integers, cut to the range of small ones, below those that are there."""
    kind = lifter.one({name: name.lower() for name in ("U8", "S8", "U4", "S4", "U2", "S2")}, "")
    half = lifter.one({"U16": "u16", "S16": "s16"}, "")
    lifter.one({"SAT": ""})
    lifter.take("S32")
    to, a, b, *before = lifter.require(3, 4)
    form = f"cvt.pack.sat.{half or kind}.s32"
    before = [replace(o, suffix=()) if o.suffix in _LOWER else o for o in before]
    words = [lifter.word(each) for each in (a, b, *([] if half else before))]
    lifter.refuse_if(bool(half) == bool(kind) or (half and before and not before[0].is_zero))
    lifter.emit(form + ".b32" * (not half), lifter.to(to), *words)


def convert_to_byte(lifter: Lifter) -> None:
    """F2IP: an f32, rounded and cut to the range of a byte, zero-extended.

    It packs bytes, but ptxas makes it of one conversion: the places of others are RZ.
    """
    kind, rounding = lifter.one({"U8": "u8"}), lifter.one(_WHOLE, ".rni")
    lifter.one({"F32": ""})
    lifter.take("NTZ")
    to, high, value, before = lifter.require(4)
    lifter.refuse_if(not (high.is_zero and before.is_zero))
    lifter.emit(f"cvt{rounding}.sat.{kind}.f32", lifter.to(to), lifter.single(value))


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("F2F", "F2I", "I2F", "I2FP", "FRND"), convert),
    "F2FP": convert_packed,
    "I2IP": convert_bytes,
    "F2IP": convert_to_byte,
    "I2I": convert_integer,
}
