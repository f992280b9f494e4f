"""Tensor memory in machine code of 10.0: its allocation, loads and stores, copies, products.

All but loads and stores are instructions of the uniform datapath. Where PTX has modifiers the chip
reads the instruction descriptor: it says whether A is sparse, and whether a product of `UTCHMMA` is
one of tf32 or of 16-bit floats.

Groups of 32 columns are allocated by `UTCATOMSWS` in a mask of 16 bits per SM. The code around it
keeps the block's own groups in shared memory that is reserved for the system.
"""

import re
from collections.abc import Iterator, Mapping

from ..simt.matrix.tensor_memory import LEAST_COLUMNS, WORDS
from .bulk import leader, shared_place
from .lift import Handler, Lifter
from .operand import Operand, registers

_SHAPES = {"16dp64bit": "16x64b", "16dp128bit": "16x128b", "16dp256bit": "16x256b"}
_HALVES = {"16dp32bit_t0_t15": "0", "16dp32bit_t16_t31": "16"}
"""The first lane of a half of a warp, whose 16 lanes reach 16 rows."""

_TIMES = {f"x{1 << n}": f"x{1 << n}" for n in range(1, 8)}
_PLACE = re.compile(r"(tmem|gdesc|idesc)\[UR(Z|\d+)(?:\+(-?0x[0-9a-f]+))?\]((?:\.\w+)*)")
_GROUPS = "0xffff"
"""The groups of columns in a mask; its upper half marks the first of each allocation."""


def prepare_pairs(lifter: Lifter) -> None:
    """Initialize the mbarrier of pairs as a kernel begins, in code that allocates for pairs.

    The first block of a pair allocates, sends the columns to the second one, and goes on until it
    allocates again: then it waits for the second one. So its barrier begins in the second phase.
    """
    opcodes = (each.opcode for each in lifter.code.instructions)
    if not any(each.startswith("UTCATOMSWS.2CTA") for each in opcodes):
        return
    if not lifter.code.pair_barrier:
        raise lifter.refuse("cutrace does not know where the mbarrier of pairs of blocks is")
    barrier = f"[{lifter.code.pair_barrier}]"
    places = [lifter.compute("mov.u32", f"%tid.{axis}") for axis in "xyz"]
    any_place = lifter.compute("or.b32", lifter.compute("or.b32", *places[:2]), places[2])
    is_first = lifter.compute("setp.eq.u32", any_place, "0", kind="p")
    rank = lifter.compute("and.b32", lifter.compute("mov.u32", "%cluster_ctarank"), "1")
    lifter.set_guard(is_first)
    lifter.emit("mbarrier.init.shared.b64", barrier, "1", guarded=True)
    lifter.set_guard(lifter.compute("setp.eq.and.u32", rank, "0", is_first, kind="p"))
    lifter.emit("mbarrier.arrive.shared.b64", "_", barrier, guarded=True)


def allocate(lifter: Lifter) -> None:
    """UTCATOMSWS: find free groups of columns and set their bits, or clear bits by a mask."""
    if lifter.has("AND"):
        old, mask = lifter.require(2)
        lifter.refuse_if(not old.is_zero)
        cleared = lifter.compute("not.b32", lifter.word(mask))
        cleared = lifter.compute("and.b32", cleared, _GROUPS)
        reverse = lifter.compute("brev.b32", cleared)
        first = lifter.compute("bfind.shiftamt.u32", reverse)
        place, columns = (
            lifter.compute("mul.lo.u32", groups, str(LEAST_COLUMNS))
            for groups in (first, lifter.compute("popc.b32", cleared))
        )
        lifter.emit("tcgen05.dealloc.cta_group::1.sync.aligned.b32", place, columns, guarded=True)
        return
    lifter.refuse_if(not (lifter.has("FIND_AND_SET") and lifter.has("ALIGN")))
    group = 1 + lifter.has("2CTA")
    is_set, to, groups = lifter.require(3)
    lifter.refuse_if(to.is_zero)
    columns = lifter.compute("mul.lo.u32", lifter.word(groups), str(LEAST_COLUMNS))
    first = lifter.new()
    form = f"tcgen05.alloc.cta_group::{group}.sync.aligned.b32"
    lifter.emit(form, first, columns, guarded=True)
    lifter.emit("shr.u32", lifter.to(to), first, str(LEAST_COLUMNS.bit_length() - 1))
    lifter.emit("setp.eq.u32", lifter.to(is_set), "0", "0")  # the engine's waits for none


def relinquish(lifter: Lifter) -> None:
    """UVIRTCOUNT.DEALLOC.SMPOOL: the block allocates no more columns."""
    lifter.refuse_if(len(lifter.take("DEALLOC", "SMPOOL")) != 2)
    lifter.require(1)
    lifter.emit("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned", guarded=True)


def move_columns(lifter: Lifter) -> None:
    """LDTM and STTM: registers of a warp from and to its rows of tensor memory."""
    is_load = lifter.opcode == "LDTM"
    halves = lifter.take(*_HALVES)
    shape = "16x32bx2" if halves else lifter.one(_SHAPES, "32x32b")
    times = lifter.one(_TIMES, "x1")
    packing = lifter.has("PACK16BIT" if is_load else "EXPAND16BIT")
    to, source = lifter.require(2)
    value, place = (to, source) if is_load else (source, to)
    lifter.refuse_if(value.kind != "R" or value.suffix)
    form = f"tcgen05.{'ld' if is_load else 'st'}.sync.aligned.{shape}.{times}"
    form += f".{'' if is_load else 'un'}pack::16b.b32" if packing else ".b32"
    count = WORDS[shape] * int(times[1:])
    if value.is_zero:
        words = [lifter.compute("mov.b32", "0") for _ in range(count)]
    else:
        words = registers(value, count)
    own = words
    if halves and is_load:
        words = [lifter.new() for _ in own]
    elif halves:  # both halves of the warp store the same, to the same rows
        lane = lifter.compute("and.b32", lifter.compute("mov.u32", "%laneid"), "15")
        lane = lifter.compute("add.u32", lane, _HALVES[halves[0]])
        words = [lifter.compute("shfl.idx.b32", word, lane, "31") for word in own]
    at, vector = _tensor_place(lifter, place), f"{{{', '.join(words)}}}"
    apart = ["0"] if halves else []
    operands = [vector, at, *apart] if is_load else [at, *apart, vector]
    lifter.emit(form, *operands, guarded=True)
    if halves and is_load:
        half = lifter.compute("and.b32", lifter.compute("mov.u32", "%laneid"), "16")
        mine = lifter.compute("setp.eq.u32", half, _HALVES[halves[0]], kind="p")
        lifter.set_guard(lifter.both(mine))
        for register, word in zip(own, words, strict=True):
            lifter.emit("mov.b32", register, word)


def _place(lifter: Lifter, operand: Operand, kind: str, marks: str = "") -> tuple[str, str]:
    """Return the register of an operand such as `tmem[UR4+0x8]`, and its offset; refuse suffixes
    besides `marks`."""
    match = _PLACE.fullmatch(operand.text)
    if match is None or match[1] != kind or not {*match[4].split(".")} <= {"", *marks.split()}:
        raise lifter.refuse(f"cutrace does not know the operand `{operand.text}` here")
    return "" if match[2] == "Z" else f"%UR{match[2]}", match[3] or "0"


def _tensor_place(lifter: Lifter, operand: Operand, marks: str = "", words: int = 0) -> str:
    """Return an address of tensor memory: what the register so many words behind has."""
    register, offset = _place(lifter, operand, "tmem", marks)
    if not register:
        return f"[{int(offset, 16)}]"
    return f"[%UR{int(register[3:]) + words}+{int(offset, 16)}]"


def _matrix(lifter: Lifter, operand: Operand, marks: str = "") -> str:
    """Return the descriptor of a matrix in shared memory."""
    register, offset = _place(lifter, operand, "gdesc", marks)
    lifter.refuse_if(not register or offset != "0")
    return lifter.compute("mov.b64", f"{{{register}, %UR{int(register[3:]) + 1}}}", kind="d")


_KINDS = {
    "UTCHMMA": ("f16", "tf32"), "UTCIMMA": ("i8",), "UTCQMMA": ("f8f6f4",), "UTCOMMA": ("mxf4nvf4",)
}  # fmt: skip
_SCALED = {"UTCQMMA": "mxf8f6f4.block_scale.scale_vec::1X",
           "UTCOMMA": "mxf4nvf4.block_scale.scale_vec::2X"}  # fmt: skip
_TF32 = "256"
"""The type of A of tf32 in an instruction descriptor, 2 from bit 7 on."""

_SPARSE = "4"


def multiply(lifter: Lifter) -> None:
    """UTCHMMA, UTCIMMA, UTCQMMA and UTCOMMA: a product of matrices by one block or a pair."""
    kinds: tuple[str, ...] = _KINDS[lifter.opcode]
    is_pair, is_shifted, is_stationary = map(lifter.has, ("2CTA", "ASHIFT", "WS"))
    by_16 = lifter.has("4X")
    a, b, d, metadata, descriptor, *others = lifter.require(6, 7, 8)
    scales = others.pop(0) if others[0].text.startswith("tmem") else None
    lanes = others.pop(0) if others[0].kind == "R" else None
    adds, *exponent = others
    lifter.refuse_if(len(exponent) > 1 or (by_16 and lifter.opcode != "UTCOMMA"))
    lifter.refuse_if(scales is None and lifter.opcode == "UTCOMMA")
    if scales is not None:
        kinds = (_SCALED[lifter.opcode].replace("2X", "4X" if by_16 else "2X"),)
    bits, offset = _place(lifter, descriptor, "idesc")
    lifter.refuse_if(not bits or offset != "0")
    in_shared_memory = a.text.startswith("gdesc")
    left = (_matrix if in_shared_memory else _tensor_place)(lifter, a, "A_KEEP A_REUSE")
    operands = [_tensor_place(lifter, d), left]
    operands.append(_matrix(lifter, b, "B_KEEP B_REUSE BUFFER1 BUFFER2 BUFFER3"))
    pairs = _tensor_place(lifter, metadata)
    more = [bits]
    if scales is not None:
        more += [_tensor_place(lifter, scales, words=side) for side in (0, 1)]
    zeros: list[str] = []
    if lanes is not None and is_stationary:
        zeros = [lifter.wide(lanes)]
    elif lanes is not None:
        more.append(f"{{{', '.join(registers(lanes, 8 if is_pair else 4))}}}")
    more += [lifter.predicate(adds), *zeros, *(str(each.number) for each in exponent)]
    leader(lifter)
    head = f"tcgen05.mma{'.ws' * is_stationary}"
    for kind, sparse, guard in [*_cases(lifter, kinds, bits)]:
        lifter.set_guard(guard)
        form = f"{head}{'.sp' * sparse}.cta_group::{1 + is_pair}.kind::{kind}"
        places = [*operands, pairs] if sparse else operands
        lifter.emit(f"{form}{'.ashift' * is_shifted}", *places, *more, guarded=True)


def _cases(
    lifter: Lifter, kinds: tuple[str, ...], descriptor: str
) -> Iterator[tuple[str, bool, str]]:
    """Yield the kinds of a product, whether A is sparse, and when the descriptor says so."""
    field = lifter.compute("and.b32", descriptor, _SPARSE)
    types = lifter.compute("and.b32", descriptor, "896")
    for kind in kinds:
        is_kind = ""
        if len(kinds) > 1:
            comparison = "eq" if kind == "tf32" else "ne"
            is_kind = lifter.compute(f"setp.{comparison}.u32", types, _TF32, kind="p")
        for sparse in (False, True):
            form = f"setp.{'ne' if sparse else 'eq'}{'.and' if is_kind else ''}.u32"
            holds = lifter.compute(form, field, "0", *([is_kind] if is_kind else []), kind="p")
            yield kind, sparse, lifter.both(holds)


_COPIES = {
    "4dp256bit": "4x256b",
    "128dp128bit": "128x128b",
    "2x64dp128bit_lw02_lw13": "64x128b.warpx2::02_13",
    "2x64dp128bit_lw01_lw23": "64x128b.warpx2::01_23",
    "4x32dp128bit": "32x128b.warpx4",
}
_UNPACKED = {"U4x16P64": ".b8x16.b4x16_p64", "U6x16P32": ".b8x16.b6x16_p32"}


def copy_rows(lifter: Lifter) -> None:
    """UTCCP: rows of shared memory to tensor memory."""
    lifter.refuse_if(len(lifter.take("T", "S")) != 2)
    is_pair = lifter.has("2CTA")
    shape, unpacked = lifter.one(_COPIES, "128x256b"), lifter.one(_UNPACKED, "")
    to, source = lifter.require(2)
    operands = _tensor_place(lifter, to), _matrix(lifter, source)
    leader(lifter)
    form = f"tcgen05.cp.cta_group::{1 + is_pair}.{shape}{unpacked}"
    lifter.emit(form, *operands, guarded=True)


def shift_rows(lifter: Lifter) -> None:
    """UTCSHIFT: each row takes over what the next one has."""
    is_pair = lifter.has("2CTA")
    lifter.one({"DOWN": ""})
    (place,) = lifter.require(1)
    at = _tensor_place(lifter, place)
    leader(lifter)
    lifter.emit(f"tcgen05.shift.cta_group::{1 + is_pair}.down", at, guarded=True)


def commit(lifter: Lifter) -> None:
    """UTCBAR: an arrival at an mbarrier once all products and copies so far are complete."""
    is_pair, is_multicast = lifter.has("2CTA"), lifter.has("MULTICAST")
    place, unknown, *masks = lifter.require(2, 3)
    lifter.refuse_if(not unknown.is_zero or bool(masks) != is_multicast)
    inner = place.text.strip("[]")
    lifter.refuse_if(place.kind != "[" or not re.fullmatch(r"UR\d+", inner))
    blocks = [lifter.compute("cvt.u16.u32", lifter.word(each), kind="h") for each in masks]
    leader(lifter)
    form = f"tcgen05.commit.cta_group::{1 + is_pair}.mbarrier::arrive::one.shared::cluster"
    form += ".multicast::cluster" * is_multicast
    lifter.emit(f"{form}.b64", shared_place(lifter, f"%{inner}"), *blocks, guarded=True)


HANDLERS: Mapping[str, Handler] = {
    "UTCATOMSWS": allocate,
    "UVIRTCOUNT": relinquish,
    **dict.fromkeys(("LDTM", "STTM"), move_columns),
    **dict.fromkeys(_KINDS, multiply),
    "UTCCP": copy_rows,
    "UTCSHIFT": shift_rows,
    "UTCBAR": commit,
}
