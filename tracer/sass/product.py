"""Products of matrices in machine code: registers of a warp are the fragments of `mma.sync`."""

from collections.abc import Mapping
from dataclasses import replace

from .arithmetic import Handler
from .lift import Lifter, Operand, registers

_SHAPES = {"1684": "m16n8k4", "1688": "m16n8k8", "16816": "m16n8k16", "16832": "m16n8k32",
           "8816": "m8n8k16", "8832": "m8n8k32", "16864": "m16n8k64"}  # fmt: skip
_SOURCES = {"": "f16", "BF16": "bf16", "TF32": "tf32"}
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "f64": 64}


def _counts(shape: str, kind: str) -> tuple[int, int]:
    """Return how many registers of a lane have its part of A, and of B."""
    rows, inner = (int(each) for each in shape[1:].replace("n8k", " ").split())
    return rows * inner * _BITS[kind] // 1024, 8 * inner * _BITS[kind] // 1024


def _fragment(lifter: Lifter, operand: Operand, count: int) -> str:
    if operand.kind != "R" or operand.negative or operand.suffix:
        raise lifter.refuse(f"cutrace does not know the operand `{operand.text}` here")
    names = registers(operand, count)
    if operand.is_zero:
        names = [lifter.new() for _ in range(count)]
        for name in names:
            lifter.emit("mov.b32", name, "0")
    return f"{{{', '.join(names)}}}"


def _bare(operand: Operand) -> Operand:
    return Operand(operand.kind, operand.text.partition(".")[0], number=operand.number)


def half_product(lifter: Lifter) -> None:
    """HMMA: of f16, bf16 and tf32."""
    shape = lifter.one({key: value for key, value in _SHAPES.items() if key[0] == "1"})
    to_kind = lifter.one({"F32": "f32", "F16": "f16"})
    kind = lifter.one({name: value for name, value in _SOURCES.items() if name}, "f16")
    to, a, b, c = lifter.require(4)
    of_a, of_b = _counts(shape, kind)
    size = 4 if to_kind == "f32" else 2
    lifter.emit(
        f"mma.sync.aligned.{shape}.row.col.{to_kind}.{kind}.{kind}.{to_kind}",
        _fragment(lifter, to, size), _fragment(lifter, a, of_a), _fragment(lifter, b, of_b),
        _fragment(lifter, c, size), guarded=True,
    )  # fmt: skip


def integer_product(lifter: Lifter) -> None:
    """IMMA: of bytes."""
    shape = lifter.one(_SHAPES)
    kinds = [m.lower() for m in lifter.modifiers if m in ("U8", "S8", "U4", "S4")]
    lifter.take("U8", "S8", "U4", "S4")
    limit = ".satfinite" * lifter.has("SAT")
    to, a, b, c = lifter.require(4)
    if len(kinds) != 2 or a.suffix not in ((), ("ROW",)) or b.suffix not in ((), ("COL",)):
        raise lifter.refuse("cutrace does not know this form")
    (of_a, _), (_, of_b) = (_counts(shape, kind) for kind in kinds)
    size = 2 if shape.startswith("m8") else 4
    lifter.emit(
        f"mma.sync.aligned.{shape}.row.col{limit}.s32.{kinds[0]}.{kinds[1]}.s32",
        _fragment(lifter, to, size), _fragment(lifter, _bare(a), of_a),
        _fragment(lifter, _bare(b), of_b), _fragment(lifter, c, size), guarded=True,
    )  # fmt: skip


def double_product(lifter: Lifter) -> None:
    """DMMA: of f64."""
    shape = lifter.one(
        {"884": "m8n8k4", "8x8x4": "m8n8k4", "16x8x4": "m16n8k4", "16x8x8": "m16n8k8",
         "16x8x16": "m16n8k16"}
    )  # fmt: skip
    to, *sources = lifter.require(4)
    if any(each.kind != "R" or each.negative for each in sources):
        raise lifter.refuse("cutrace does not know this form")
    of_a, of_b = _counts(shape, "f64")
    size = 4 if shape.startswith("m16") else 2
    values = [
        [lifter.wide(_at(each, 2 * n)) for n in range(count // 2)]
        for each, count in zip(sources, (of_a, of_b, 2 * size), strict=True)
    ]
    made = [lifter.new("d") for _ in range(size)]
    groups = (f"{{{', '.join(each)}}}" for each in (made, *values))
    lifter.emit(f"mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64", *groups, guarded=True)
    for n, each in enumerate(made):
        lifter.put_wide(_at(to, 2 * n), each)


def _at(operand: Operand, more: int) -> Operand:
    """Return the register that lies so many words behind an operand's."""
    if operand.is_zero:
        return operand
    return replace(operand, text=f"R{operand.number + more}", number=operand.number + more)


def transpose(lifter: Lifter) -> None:
    """MOVM: the transpose of a matrix of 8 x 8 halves."""
    if not (lifter.has("16") and lifter.has("MT88")):
        raise lifter.refuse("cutrace does not know this form")
    to, value = lifter.require(2)
    form = "movmatrix.sync.aligned.m8n8.trans.b16"
    lifter.emit(form, lifter.to(to), lifter.word(value), guarded=True)


HANDLERS: Mapping[str, Handler] = {
    "HMMA": half_product,
    "IMMA": integer_product,
    "DMMA": double_product,
    "MOVM": transpose,
}
