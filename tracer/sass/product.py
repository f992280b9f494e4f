"""Products of matrices in machine code: registers of a warp are the fragments of `mma.sync`."""

import re
from collections.abc import Mapping
from dataclasses import replace

from .lift import Handler, Lifter
from .operand import Operand, registers

_SHAPES = {"1684": "m16n8k4", "1688": "m16n8k8", "16816": "m16n8k16", "16832": "m16n8k32",
           "8816": "m8n8k16", "8832": "m8n8k32", "16864": "m16n8k64", "88128": "m8n8k128",
           "168128": "m16n8k128", "168256": "m16n8k256"}  # fmt: skip
_SOURCES = {"": "f16", "BF16": "bf16", "TF32": "tf32"}
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "u8": 8, "s8": 8, "u4": 4, "s4": 4, "f64": 64,
         "b1": 1}  # fmt: skip


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


_SMALL = {"E4M3": "e4m3", "E5M2": "e5m2", "E3M2": "e3m2", "E2M3": "e2m3", "E2M1": "e2m1"}
_WHOLE_BYTES = {"e4m3", "e5m2"}


def small_product(lifter: Lifter) -> None:
    """QMMA: of floats of at most 8 bits, a byte each."""
    shape = lifter.one({"16816": "m16n8k16", "16832": "m16n8k32"})
    to_kind = lifter.one({"F32": "f32", "F16": "f16"})
    kinds = [_SMALL[m] for m in lifter.modifiers if m in _SMALL]
    lifter.take(*_SMALL)
    to, a, b, c = lifter.require(4)
    lifter.refuse_if(len(kinds) != 2)
    lifter.refuse_if(a.suffix not in ((), ("ROW",)) or b.suffix not in ((), ("COL",)))
    of_a, of_b = _counts(shape, "u8")
    size = 4 if to_kind == "f32" else 2
    group = "" if _WHOLE_BYTES.issuperset(kinds) else ".kind::f8f6f4"
    lifter.emit(
        f"mma.sync.aligned.{shape}.row.col{group}.{to_kind}.{kinds[0]}.{kinds[1]}.{to_kind}",
        _fragment(lifter, to, size), _fragment(lifter, _bare(a), of_a),
        _fragment(lifter, _bare(b), of_b), _fragment(lifter, c, size), guarded=True,
    )  # fmt: skip


def integer_product(lifter: Lifter) -> None:
    """IMMA and BMMA: of integers of 8 and 4 bits, and of bits."""
    shape = lifter.one(_SHAPES)
    if lifter.opcode == "BMMA":
        kinds, tail = ["b1", "b1"], lifter.one({"AND": ".and", "XOR": ".xor"})
        tail += lifter.one({"POPC": ".popc"})
    else:
        kinds = [m.lower() for m in lifter.modifiers if m in ("U8", "S8", "U4", "S4")]
        lifter.take("U8", "S8", "U4", "S4")
        tail = ""
    limit = ".satfinite" * lifter.has("SAT")
    to, a, b, c = lifter.require(4)
    lifter.refuse_if(
        len(kinds) != 2 or a.suffix not in ((), ("ROW",)) or b.suffix not in ((), ("COL",))
    )
    (of_a, _), (_, of_b) = (_counts(shape, kind) for kind in kinds)
    size = 2 if shape.startswith("m8") else 4
    lifter.emit(
        f"mma.sync.aligned.{shape}.row.col{limit}.s32.{kinds[0]}.{kinds[1]}.s32{tail}",
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
    lifter.refuse_if(any(each.kind != "R" or each.negative for each in sources))
    of_a, of_b = _counts(shape, "f64")
    size = 4 if shape.startswith("m16") else 2
    values = [
        [lifter.wide(_at(each, 2 * n)) for n in range(count // 2)]
        for each, count in zip(sources, (of_a, of_b, 2 * size), strict=True)
    ]
    output = [lifter.new("d") for _ in range(size)]
    groups = (f"{{{', '.join(each)}}}" for each in (output, *values))
    lifter.emit(f"mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64", *groups, guarded=True)
    for n, each in enumerate(output):
        lifter.put_wide(_at(to, 2 * n), each)


def _at(operand: Operand, more: int) -> Operand:
    """Return the register that lies so many words behind an operand's."""
    if operand.is_zero:
        return operand
    return replace(operand, text=f"R{operand.number + more}", number=operand.number + more)


def transpose(lifter: Lifter) -> None:
    """MOVM: the transpose of a matrix of 8 x 8 halves; or one of 8 x 32 numbers of 4 bits, as bytes
    of two registers."""
    if lifter.has("M832"):
        _widen_nibbles(lifter, lifter.one({"U4TO8": "u", "S4TO8": "s"}) == "s")
        return
    lifter.refuse_if(not (lifter.has("16") and lifter.has("MT88")))
    to, value = lifter.require(2)
    form = "movmatrix.sync.aligned.m8n8.trans.b16"
    lifter.emit(form, lifter.to(to), lifter.word(value), guarded=True)


def _widen_nibbles(lifter: Lifter, signed: bool) -> None:
    """Lift MOVM.U4TO8: a row is 4 lanes with 8 numbers each; a lane gets 4 of the first half of
    the row, and 4 of the second.

        lane             0        1        2        3
        has          0..7    8..15   16..23   24..31
        gets first   0..3     4..7    8..11   12..15
        and second 16..19   20..23   24..27   28..31
    """
    to, value = lifter.require(2)
    own, row, source, part = lifter.word(value), lifter.new(), lifter.new(), lifter.new()
    lifter.emit("mov.u32", row, "%laneid")
    lifter.emit("bfe.u32", source, row, "1", "1")
    lifter.emit("and.b32", part, row, "1")
    lifter.emit("shl.b32", part, part, "4")
    lifter.emit("and.b32", row, row, "28")
    lifter.emit("or.b32", source, source, row)
    results = []
    for _ in range(2):
        word, moved = lifter.new(), lifter.new()
        lifter.emit("shfl.idx.b32", word, own, source, "31")
        lifter.emit("shr.u32", word, word, part)
        lifter.emit("and.b32", word, word, "0xffff")
        for by, mask in (("8", "0x00ff00ff"), ("4", "0x0f0f0f0f")):
            lifter.emit("shl.b32", moved, word, by)
            lifter.emit("or.b32", word, word, moved)
            lifter.emit("and.b32", word, word, mask)
        if signed:  # bit 3 of a byte to bits 4 to 7
            lifter.emit("and.b32", moved, word, "0x08080808")
            lifter.emit("mad.lo.u32", word, moved, "30", word)
        results.append(word)
        lifter.emit("add.u32", source, source, "2")
    for name, word in zip(registers(to, 2), results, strict=True):
        lifter.emit("mov.b32", name, word)


_GROUP_SHAPE = re.compile(r"64x(\d+)x(\d+)")
_GROUP_TYPES = {
    "HGMMA": {"": "f16", "BF16": "bf16", "TF32": "tf32"},
    "QGMMA": {"E4M3": "e4m3", "E5M2": "e5m2"},
    "IGMMA": {"S8": "s8", "U8": "u8"},
    "BGMMA": {"": "b1"},
}
_DESCRIPTOR = re.compile(r"gdesc\[UR(\d+)\]((?:\.\w+)*)")


def group_product(lifter: Lifter) -> None:
    """HGMMA, QGMMA, IGMMA and BGMMA: four warps' product of matrices in shared memory."""
    is_sparse, saturates = lifter.has("SP"), lifter.has("SAT")
    shape = next((m for m in map(_GROUP_SHAPE.fullmatch, lifter.modifiers) if m), None)
    if shape is None:
        raise lifter.refuse("cutrace does not know this shape")
    lifter.take(shape[0])
    result = "s32" if lifter.opcode in ("IGMMA", "BGMMA") else lifter.one(
        {"F32": "f32", "F16": "f16"})  # fmt: skip
    lifter.refuse_if(lifter.opcode == "BGMMA" and len(lifter.take("AND", "POPC")) != 2)
    names = _GROUP_TYPES[lifter.opcode]
    kinds = [names[m] for m in lifter.modifiers if m in names] or [names.get("", "")]
    lifter.take(*names)
    lifter.operands = [o for o in lifter.operands if not o.text.startswith("gsb")]
    at = next(n for n, o in enumerate(lifter.operands) if o.text.startswith("gdesc"))
    lifter.refuse_if(at not in (1, 2) or not all(kinds) or lifter.modifiers)
    to, described, before, *others = (lifter.operands[0], *lifter.operands[at:])
    match = _DESCRIPTOR.fullmatch(described.text)
    if match is None or before.kind != "R" or to.is_zero or before.negative:
        raise lifter.refuse("cutrace does not know this form")
    marks = match[2].split(".")[1:]
    lifter.refuse_if(not {*marks} <= {"negA", "negB", "tnspA", "tnspB"})
    scale = lifter.predicate(others.pop(0)) if others and others[0].kind == "P" else "1"
    lifter.refuse_if(not before.is_zero and before.text != to.text)
    a, b = (_descriptor(lifter, int(match[1]) + 2 * side) for side in (0, 1))
    signs = ["-1" if f"neg{side}" in marks else "1" for side in "AB"]
    transposes = [str(int(f"tnsp{side}" in marks)) for side in "AB"]
    if at == 2:
        fragment = lifter.operands[1]
        signs[0] = "-1" if fragment.negative else "1"
        a = _fragment(lifter, replace(fragment, negative=False), 4)
        transposes = transposes[1:]
    metadata: list[str] = []
    if is_sparse:
        pairs = others.pop(0)
        metadata = [lifter.word(pairs), str(others.pop(0).number if others else 0)]
    lifter.refuse_if(others)
    words = int(shape[1]) // (4 if result == "f16" else 2)
    form = f"wgmma.mma_async{'.sp' * is_sparse}.sync.aligned.m64n{shape[1]}k{shape[2]}"
    types = ".".join((result, kinds[0], kinds[-1]))
    more = signs + (transposes if kinds[0] in ("f16", "bf16") else [])
    if lifter.opcode in ("IGMMA", "BGMMA"):
        more = []
    tail = ".and.popc" if lifter.opcode == "BGMMA" else ""
    lifter.emit(
        f"{form}{'.satfinite' * saturates}.{types}{tail}", _fragment(lifter, to, words), a, b,
        *metadata, scale, *more, guarded=True,
    )  # fmt: skip


def _descriptor(lifter: Lifter, register: int) -> str:
    """Return the descriptor of a matrix: it has the sixteenth of an address of shared memory."""
    low = lifter.compute("add.u32", f"%UR{register}", str(lifter.displacement // 16))
    return lifter.compute("mov.b64", f"{{{low}, %UR{register + 1}}}", kind="d")


def group_order(lifter: Lifter) -> None:
    """WARPGROUP: its products begin, or are complete."""
    if lifter.has("ARRIVE"):
        lifter.require(0)
        lifter.emit("wgmma.fence.sync.aligned", guarded=True)
    elif lifter.has("DEPBAR") and lifter.has("LE"):
        lifter.emit("wgmma.wait_group.sync.aligned", str(lifter.operands[-1].number), guarded=True)
    elif lifter.has("WAIT"):
        lifter.require(0)
        _meet_group(lifter)
    else:
        raise lifter.refuse("cutrace does not know this form")


_GROUP_BARRIERS = 8
"""The first of the block's barriers that stand for those of its warpgroups, one each."""


def _meet_group(lifter: Lifter) -> None:
    """Make the four warps of a group wait for one another: for what each has done before ARRIVE."""
    rows, places, number = lifter.new(), lifter.new(), lifter.new()
    x, y, z, width, height = (lifter.new() for _ in range(5))
    for to, name in ((x, "tid.x"), (y, "tid.y"), (z, "tid.z"), (width, "ntid.x"),
                     (height, "ntid.y")):  # fmt: skip
        lifter.emit("mov.u32", to, f"%{name}")
    lifter.emit("mad.lo.u32", rows, z, height, y)
    lifter.emit("mad.lo.u32", places, rows, width, x)
    lifter.emit("shr.u32", number, places, "7")
    lifter.emit("add.u32", number, number, str(_GROUP_BARRIERS))
    lifter.emit("bar.sync", number, "128", guarded=True)


HANDLERS: Mapping[str, Handler] = {
    "HMMA": half_product,
    "QMMA": small_product,
    "IMMA": integer_product,
    "BMMA": integer_product,
    "DMMA": double_product,
    "MOVM": transpose,
    **dict.fromkeys(_GROUP_TYPES, group_product),
    "WARPGROUP": group_order,
}
