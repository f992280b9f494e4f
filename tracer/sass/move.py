"""Moves of machine code: registers, constants, special registers, predicates; and what does nothing
here."""

from collections.abc import Mapping
from dataclasses import replace

from .constant import SHARED_WINDOW
from .lift import Handler, Lifter
from .operand import Operand, registers

_AXES = {"X": "x", "Y": "y", "Z": "z"}

_SPECIAL = {
    **{f"SR_TID.{axis}": f"%tid.{low}" for axis, low in _AXES.items()},
    **{f"SR_CTAID.{axis}": f"%ctaid.{low}" for axis, low in _AXES.items()},
    "SR_LANEID": "%laneid",
    "SR_EQMASK": "%lanemask_eq",
    "SR_LTMASK": "%lanemask_lt",
    "SR_LEMASK": "%lanemask_le",
    "SR_GTMASK": "%lanemask_gt",
    "SR_GEMASK": "%lanemask_ge",
    "SR_CLOCKLO": "%clock",
    "SR_CLOCKHI": "%clock_hi",
    "SR_GLOBALTIMERLO": "%globaltimer_lo",
    "SR_GLOBALTIMERHI": "%globaltimer_hi",
    "SR_VIRTUALSMID": "%smid",
    "SR_CgaCtaId": "%cluster_ctarank",
    "SR_CgaSize": "0",
    "SR_SMEMSZ": "%total_smem_size",
}

_WIDE = {"SRZ": "0", "SR_CLOCKLO": "%clock64", "SR_GLOBALTIMERLO": "%globaltimer"}

_IN_SECOND_BYTE = {"SR_VIRTID": "%warpid", "SR_VIRTCFG": "%nwarpid"}
"""Registers of which the bits from 8 on are wanted."""


def nothing(lifter: Lifter) -> None:
    """Lift an instruction that has no effect here."""
    lifter.emit("nanosleep.u32", "0")


def load_place(lifter: Lifter) -> None:
    """LEPC: the address of this instruction, or another, as a return behind it expects."""
    to, *place = lifter.require(1, 2)
    lifter.put_wide(to, str(place[0].number if place else lifter.now.address))


def move(lifter: Lifter) -> None:
    """MOV and UMOV; MOV.SPILL keeps a uniform register, which R2UR.FILL has back."""
    lifter.take("SPILL")
    if lifter.has("64"):
        to, value = lifter.require(2)
        lifter.put_wide(to, lifter.wide(value))
        return
    operands = lifter.require(2, 3)
    lifter.refuse_if(len(operands) == 3 and operands[2].number != 0xF)
    value = operands[1]
    if value.kind == "#" and not _is_integer(value.text):
        lifter.emit("mov.b32", lifter.to(operands[0]), str(lifter.now.immediate))
    else:
        lifter.emit("mov.b32", lifter.to(operands[0]), lifter.word(value))


def _is_integer(text: str) -> bool:
    return text.lstrip("-").startswith("0x") or text.lstrip("-").isdigit()


def special(lifter: Lifter) -> None:
    """S2R, S2UR and CS2R: a special register."""
    wide = lifter.opcode == "CS2R" and not lifter.has("32")
    to, _ = lifter.operands
    name = lifter.now.operands[1]
    if wide and name in _WIDE:
        output = lifter.compute("mov.u64", _WIDE[name], kind="d")
        lifter.put_wide(to, output)
    elif name == "SRZ":
        lifter.emit("mov.u32", lifter.to(to), "0")
    elif name == "SR_SWINHI":
        lifter.emit("mov.u32", lifter.to(to), str(SHARED_WINDOW))
    elif name in _IN_SECOND_BYTE:
        warp = lifter.compute("mov.u32", _IN_SECOND_BYTE[name])
        lifter.emit("shl.b32", lifter.to(to), warp, "8")
    elif name in _SPECIAL and not wide:
        lifter.emit("mov.u32", lifter.to(to), _SPECIAL[name])
    else:
        raise lifter.refuse("cutrace does not know this special register")


_NARROW = {"U8": 1, "S8": 1, "U16": 2, "S16": 2}


def load_constant(lifter: Lifter) -> None:
    """LDC, ULDC and LDCU: a constant."""
    narrow = lifter.take(*_NARROW)
    wide, widest = lifter.has("64"), lifter.has("128")
    to, place = lifter.require(2)
    if widest:
        _load_four(lifter, to, place)
        return
    lifter.refuse_if(place.kind != "c" or place.suffix or len(narrow) + wide > 1)
    if wide:
        lifter.put_wide(to, lifter.wide(place))
    elif narrow:
        value = lifter.constant(place.text, _NARROW[narrow[0]], narrow[0].lower())
        lifter.emit("mov.b32", lifter.to(to), value)
    else:
        lifter.emit("mov.b32", lifter.to(to), lifter.word(place))


def _load_four(lifter: Lifter, to: Operand, place: Operand) -> None:
    bank, _, offset = place.text.rstrip("]").rpartition("[")
    lifter.refuse_if(place.kind != "c" or place.suffix or to.is_zero or not offset.startswith("0x"))
    names = registers(to, 4)
    for more, pair in ((0, names[:2]), (8, names[2:])):
        value = lifter.constant(f"{bank}[{int(offset, 16) + more:#x}]", 8)
        lifter.emit("mov.b64", f"{{{', '.join(pair)}}}", value, guarded=True)


def _all_predicates(lifter: Lifter) -> tuple[list[Operand], int]:
    """Return the operands without PR, all predicates, which nvdisasm may leave out, and the first
    bit of the byte that is meant."""
    byte = 8 * int(lifter.one({f"B{n}": str(n) for n in range(4)}, "0"))
    operands = lifter.require(2, 3, 4)
    pairs = zip(operands, lifter.now.operands, strict=True)
    return [o for o, text in pairs if text not in ("PR", "UPR") and text[0] != "@"], byte


def pack_predicates(lifter: Lifter) -> None:
    """P2R: the predicates that a mask selects, in the bits of a register's byte."""
    (to, others, mask), byte = _all_predicates(lifter)
    bits = mask.number & 0x7F
    total = lifter.compute("and.b32", lifter.word(others), str(~(bits << byte) & 0xFFFFFFFF))
    uniform = "U" * lifter.opcode.startswith("U")
    for number in (n for n in range(7) if bits >> n & 1):
        output = lifter.compute("selp.u32", str(1 << number + byte), "0", f"%{uniform}P{number}")
        total = lifter.compute("or.b32", total, output)
    lifter.emit("mov.b32", lifter.to(to), total)


def unpack_predicates(lifter: Lifter) -> None:
    """R2P: bits of a register's byte to the predicates that a mask selects."""
    (value, mask), byte = _all_predicates(lifter)
    if value.suffix:
        byte, value = 8 * int(value.suffix[0][1:]), replace(value, suffix=())
    word = lifter.word(value)
    for number in (n for n in range(7) if mask.number >> n & 1):
        bit = lifter.compute("and.b32", word, str(1 << number + byte))
        uniform = "U" * lifter.opcode.startswith("U")
        lifter.emit("setp.ne.u32", f"%{uniform}P{number}", bit, "0")


HANDLERS: Mapping[str, Handler] = {
    "MOV": move,
    **dict.fromkeys(("S2R", "S2UR", "CS2R"), special),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), load_constant),
    **dict.fromkeys(("P2R", "UP2UR"), pack_predicates),
    **dict.fromkeys(("R2P", "UR2UP"), unpack_predicates),
    **dict.fromkeys(("NOP", "BSSY", "BSYNC", "BREAK", "BMOV", "ENDCOLLECTIVE"), nothing),
    **dict.fromkeys(("YIELD", "ERRBAR", "CGAERRBAR"), nothing),
    "LEPC": load_place,
    **dict.fromkeys(("CCTL", "MEMBAR", "NANOSLEEP", "PMTRIG"), nothing),
}
