"""Bulk copies, mbarriers and clusters in machine code of 9.0.

An mbarrier is a word of 64 bits there with counts up to 2^20; the engine has its own form. So
the word that initializes one, and the state that an arrival returns, are translated. Instructions
of the uniform datapath run once for a warp: here for its first active lane.
"""

import re
from collections.abc import Mapping, Sequence

from ..simt.access.cluster import START
from .access import COUNT, address_of
from .lift import Handler, Lifter
from .move import nothing
from .operand import Operand, registers


def _lanes(lifter: Lifter) -> str:
    """Return the mask of the lanes that the guard lets pass."""
    if lifter.guard:
        return lifter.compute("vote.ballot.b32", lifter.guard)
    return lifter.compute("activemask.b32")


def _first_lane(lifter: Lifter, lanes: str) -> str:
    return lifter.compute("bfind.shiftamt.u32", lifter.compute("brev.b32", lanes))


def _guard_by(lifter: Lifter, comparison: str, *values: str) -> None:
    """Guard the instruction by its guard and a comparison."""
    name, _, kind = comparison.rpartition(".")
    form, more = (f"{name}.and.{kind}", [lifter.guard]) if lifter.guard else (comparison, [])
    lifter.set_guard(lifter.compute(form, *values, *more, kind="p"))


def leader(lifter: Lifter) -> None:
    """Guard the instruction so that only the first lane that its guard lets pass runs it."""
    before = lifter.compute("and.b32", _lanes(lifter), "%lanemask_lt")
    _guard_by(lifter, "setp.eq.u32", before, "0")


def _uniform(lifter: Lifter, count: int, operand: Operand, skip: int = 0) -> list[str]:
    """Return registers of an address `[UR4]`: those from `skip` words behind it on."""
    inner = operand.text.strip("[]")
    if operand.kind != "[" or not inner.startswith("UR") or not inner[2:].isdigit():
        raise lifter.refuse(f"cutrace does not know the address `{operand.text}`")
    return [f"%UR{int(inner[2:]) + skip + n}" for n in range(count)]


def shared_place(lifter: Lifter, register: str) -> str:
    """Return an address of shared memory that a register has, of any block of the cluster."""
    return f"[{register}+{lifter.displacement + START * lifter.is_clustered}]"


def _pair(lifter: Lifter, names: Sequence[str]) -> str:
    return lifter.compute("mov.b64", f"{{{', '.join(names)}}}", kind="d")


def _half(lifter: Lifter, form: str, operand: Operand, *values: str) -> str:
    """Return the low 16 bits of what an instruction makes of an operand."""
    part = lifter.compute(form, lifter.word(operand), *values)
    return lifter.compute("cvt.u16.u32", part, kind="h")


def _size(lifter: Lifter, operand: Operand) -> str:
    """Return the bytes of a bulk copy: the low 16 bits of its operand are those by 16."""
    count = lifter.compute("and.b32", lifter.word(operand), "0xffff")
    return lifter.compute("shl.b32", count, "4")


def _without_hint(lifter: Lifter) -> list[Operand]:
    """Return the operands without the descriptor with its cache hint."""
    return [o for o in lifter.operands if not o.text.startswith("desc[")]


def barrier_word(lifter: Lifter) -> None:
    """SYNCS: an mbarrier."""
    if lifter.has("CCTL"):
        lifter.take("IV", "IVALL")
        lifter.require(0, 1)
        nothing(lifter)
    elif lifter.has("EXCH"):
        _initialize(lifter)
    elif lifter.has("PHASECHK"):
        lifter.one({"TRANS64": ""})
        name = "try_wait" if lifter.has("TRYWAIT") else "test_wait"
        is_complete, place, state = lifter.require(3)
        parity = lifter.compute("shr.u32", lifter.word(state), "31")
        at = address_of(lifter, place, "cluster")
        form = f"mbarrier.{name}.parity.shared.b64"
        lifter.emit(form, lifter.to(is_complete), at, parity, guarded=True)
    else:
        _arrive(lifter)


def _initialize(lifter: Lifter) -> None:
    lifter.one({"64": ""})
    old, place, value = lifter.require(3)
    lifter.refuse_if(not old.is_zero or value.kind != "R" or value.is_zero)
    low, high = registers(value, 2)
    count = lifter.compute("sub.u32", str(COUNT), lifter.compute("shr.u32", low, "1"))
    at = address_of(lifter, place, "cluster")
    if value.text.startswith("U"):
        leader(lifter)
    lifter.emit("mbarrier.init.shared.b64", at, count, guarded=True)
    # Bit 63 is the phase: it is odd once all have arrived.
    _guard_by(lifter, "setp.lt.s32", high, "0")
    lifter.emit("mbarrier.arrive.shared.b64", "_", at, count, guarded=True)


_ARRIVALS = {
    "": ("arrive.expect_tx", True),
    "A1T0": ("arrive", False),
    "ART0": ("arrive", True),
    "A0TR": ("expect_tx", True),
    "A0TX": ("complete_tx", True),
    "A0T1": ("expect_tx", False),
}
"""What a kind of arrival does, and whether a register has its number: else it is 1."""


def _arrive(lifter: Lifter) -> None:
    lifter.refuse_if(not (lifter.has("ARRIVE") and lifter.has("TRANS64")))
    drops, _ = lifter.has("OPTOUT"), lifter.has("RED")
    kinds = lifter.take(*_ARRIVALS)
    name, counts = _ARRIVALS[kinds[0] if kinds else ""]
    to, place, value = lifter.require(3)
    lifter.refuse_if(drops and not name.startswith("arrive"))
    at = address_of(lifter, place, "cluster")
    name = name.replace("arrive", "arrive_drop") if drops else name
    number = [lifter.word(value)] if counts else ["1"]
    if name in ("expect_tx", "complete_tx"):
        lifter.emit(f"mbarrier.{name}.relaxed.cta.shared.b64", at, *number, guarded=True)
        return
    state = "_" if to.is_zero else lifter.new("d")
    number = number if counts else []
    lifter.emit(f"mbarrier.{name}.shared.b64", state, at, *number, guarded=True)
    if not to.is_zero:
        _put_state(lifter, to, state)


def _put_state(lifter: Lifter, to: Operand, state: str) -> None:
    """Write the state of a phase: the number of its first arrivals in bits 1 to 20, of those that
    are missing in 43 to 62, both from 2^20 downwards, and the phase in bit 63."""
    words = []
    for first in (0, 20):
        moved = lifter.compute("shr.u64", state, str(first), kind="d")
        pending = lifter.compute("cvt.u32.u64", moved)
        count = lifter.compute("sub.u32", "0", pending)
        word = lifter.compute("and.b32", count, str(COUNT - 1))
        words.append(word)
    phase = lifter.compute("shr.u64", state, "61", kind="d")
    top = lifter.compute("cvt.u32.u64", phase)
    missing, expected = words
    low = lifter.compute("shl.b32", expected, "1")
    lifter.emit("shl.b32", top, top, "31")
    lifter.emit("shl.b32", missing, missing, "11")
    high = lifter.compute("or.b32", top, missing)
    for name, word in zip(registers(to, 2), (low, high), strict=True):
        lifter.emit("mov.b32", name, word)


def copies_arrive(lifter: Lifter) -> None:
    """ARRIVES.LDGSTSBAR: the copies past the registers arrive at an mbarrier."""
    lifter.refuse_if(not (lifter.has("LDGSTSBAR") and lifter.has("64")))
    counted = lifter.one({"ARVCNT": "arrive", "TRANSCNT": "complete"}) == "arrive"
    (place,) = lifter.require(1)
    at = address_of(lifter, place, "cluster")
    if counted:
        lifter.emit("cp.async.mbarrier.arrive.noinc.shared.b64", at, guarded=True)
    else:  # SYNCS.ARRIVE.A0T1 has counted it
        lifter.emit("mbarrier.complete_tx.relaxed.cta.shared.b64", at, "1", guarded=True)


_SPACES = {"S": "shared::cluster", "G": "global"}
_BARRIER = ".mbarrier::complete_tx::bytes"
_REDUCTIONS = {name: f".{name.lower()}" for name in ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR",
               "XOR")}  # fmt: skip
_REDUCED = {
    **{kind: f".{kind.lower()}" for kind in ("U32", "S32", "U64", "S64", "F32", "F64", "F16")},
    **{"F16x2": ".f16", "BF16": ".bf16", "BF16_V2": ".bf16", "64": ".b64"},
}


def bulk_copy(lifter: Lifter) -> None:
    """UBLKCP and UBLKRED: bytes between global memory and shared memory, or two shared ones."""
    reduces = lifter.opcode == "UBLKRED"
    spaces = [m for m in lifter.modifiers if m in _SPACES]
    lifter.take(*_SPACES)
    multicast, kind = lifter.has("MULTICAST"), ""
    if reduces:
        operation, element = lifter.one(_REDUCTIONS), lifter.one(_REDUCED, "")
        lifter.take("RN")
        element = element or (".b32" if operation in (".and", ".or", ".xor") else ".u32")
        noftz = ".noftz" * (element in (".f16", ".bf16") and operation == ".add")
        kind = f"{operation}{noftz}{element}"
    lifter.operands = _without_hint(lifter)
    to, source, number = lifter.require(3)
    size = _size(lifter, number)
    leader(lifter)
    lifter.refuse_if(len(spaces) != 2 or (multicast and spaces != ["S", "G"]))
    mask: list[str] = []
    if multicast:
        mask = [_half(lifter, "shr.u32", number, "16")]
    if spaces[1] == "G":
        where = f"[{_pair(lifter, _uniform(lifter, 2, source))}]"
    else:
        where = shared_place(lifter, *_uniform(lifter, 1, source))
    verb = "cp.reduce.async.bulk" if reduces else "cp.async.bulk"
    if spaces[0] == "G":
        place = f"[{_pair(lifter, _uniform(lifter, 2, to))}]"
        form = f"{verb}.global.shared::cta.bulk_group{kind}"
        lifter.emit(form, place, where, size, guarded=True)
        return
    place, barrier = (shared_place(lifter, name) for name in _uniform(lifter, 2, to))
    origin = "global" if spaces[1] == "G" else "shared::cta"
    form = f"{verb}.shared::cluster.{origin}{_BARRIER}{kind}"
    lifter.emit(form + ".multicast::cluster" * multicast, place, where, size, barrier, *mask,
                guarded=True)  # fmt: skip


def prefetch_bulk(lifter: Lifter) -> None:
    """UBLKPF: bytes of global memory to the cache."""
    lifter.one({"L2": ""})
    lifter.operands = _without_hint(lifter)
    source, number = lifter.require(2)
    size = _size(lifter, number)
    leader(lifter)
    where = f"[{_pair(lifter, _uniform(lifter, 2, source))}]"
    lifter.emit("cp.async.bulk.prefetch.L2.global", where, size, guarded=True)


_RANKS = {f"{rank}D": rank for rank in range(1, 6)}


def tensor_copy(lifter: Lifter) -> None:
    """UTMALDG, UTMASTG, UTMAREDG and UTMAPF: a box of a tensor from or to shared memory."""
    rank = int(lifter.one({name: str(rank) for name, rank in _RANKS.items()}))
    is_im2col, multicast = lifter.has("IM2COL"), lifter.has("MULTICAST")
    of_pair = lifter.has("2CTA")
    loads, prefetches = lifter.opcode == "UTMALDG", lifter.opcode == "UTMAPF"
    operation = lifter.one(_REDUCTIONS) if lifter.opcode == "UTMAREDG" else ""
    if prefetches:
        lifter.one({"L2": ""})
    lifter.operands = _without_hint(lifter)
    box, tensor, *others = lifter.require(2, 3)
    leader(lifter)
    first = 0 if prefetches else 2 if loads else 1
    corner = _uniform(lifter, rank, box, first)
    where = f"[{_pair(lifter, _uniform(lifter, 2, tensor))}, {{{', '.join(corner)}}}]"
    shape = f"{rank}d"
    if not loads and not prefetches:
        lifter.refuse_if(others or multicast or of_pair)
        verb = "cp.reduce.async.bulk" if operation else "cp.async.bulk"
        form = f"{verb}.tensor.{shape}.global.shared::cta{operation}"
        form += f"{'.im2col_no_offs' if is_im2col else '.tile'}.bulk_group"
        lifter.emit(form, where, shared_place(lifter, *_uniform(lifter, 1, box)), guarded=True)
        return
    lifter.refuse_if(bool(others) != (is_im2col or multicast))
    more = _offsets(lifter, others[0], rank) if is_im2col else []
    mode = ".im2col" if is_im2col else ".tile"
    if prefetches:
        form = f"cp.async.bulk.prefetch.tensor.{shape}.L2.global{mode}"
        lifter.emit(form, where, *more, guarded=True)
        return
    if multicast:
        more.append(_half(lifter, "shr.u32", others[0], "16"))
    place, barrier = (shared_place(lifter, name) for name in _uniform(lifter, 2, box))
    form = f"cp.async.bulk.tensor.{shape}.shared::cluster.global{mode}{_BARRIER}"
    form += ".multicast::cluster" * multicast + ".cta_group::2" * of_pair
    lifter.emit(form, place, where, barrier, *more, guarded=True)


def _offsets(lifter: Lifter, operand: Operand, rank: int) -> list[str]:
    """Return the offsets of an im2col box: 16 bits have 1, 2 or 3 of them."""
    bits = 16 // (rank - 2)
    places = (str(bits * number) for number in range(rank - 2))
    halves = [_half(lifter, "bfe.u32", operand, place, str(bits)) for place in places]
    return [f"{{{', '.join(halves)}}}"]


def store_async(lifter: Lifter) -> None:
    """STAS and REDAS: a store or a reduction in another block's memory, that an mbarrier counts."""
    reduces = lifter.opcode == "REDAS"
    operation = lifter.one(_REDUCTIONS) if reduces else ""
    count = int(lifter.one({"64": "2", "128": "4"}, "1")) if not reduces else 1
    kind = lifter.one({"U32": "u32", "S32": "s32", "64": "u64"}, "") if reduces else "b32"
    kind = kind or ("b32" if operation in (".and", ".or", ".xor") else "u32")
    place, value = lifter.require(2)
    pair = re.fullmatch(r"\[R(\d+)(?:\.64)?(?:\+(0x[0-9a-f]+))?\]", place.text)
    if pair is None or value.kind != "R" or value.suffix:
        raise lifter.refuse("cutrace does not know this form")
    number = int(pair[1])  # the offset is that of the place alone
    target = lifter.compute("add.u32", f"%R{number}", str(int(pair[2] or "0", 16)))
    to, barrier = shared_place(lifter, target), shared_place(lifter, f"%R{number + 1}")
    if kind == "u64":
        words = lifter.wide(value)
    else:
        names = ["0"] * count if value.is_zero else registers(value, count)
        words = names[0] if count == 1 else f"{{{', '.join(names)}}}"
    verb = f"red.async.relaxed.cluster.shared::cluster{_BARRIER}{operation}.{kind}"
    vector = f".v{count}" if count > 1 else ""
    form = verb if reduces else f"st.async.shared::cluster{_BARRIER}{vector}.{kind}"
    lifter.emit(form, to, words, barrier, guarded=True)


def elect(lifter: Lifter) -> None:
    """ELECT: a predicate that holds in one lane, the first, and the number of that lane."""
    to, number, which = lifter.require(3)
    lifter.refuse_if(lifter.truth(which) is not True)
    lanes = _lanes(lifter)
    if to.number >= 0:
        before = lifter.compute("and.b32", lanes, "%lanemask_lt")
        lifter.emit("setp.eq.u32", lifter.to(to), before, "0")
    if number.number >= 0:
        lifter.emit("mov.b32", lifter.to(number), _first_lane(lifter, lanes))
    if to.number < 0 and number.number < 0:
        nothing(lifter)


def to_uniform(lifter: Lifter) -> None:
    """R2UR: a register of the first lane that the guard lets pass; with a predicate, whether a
    lane's own is another one."""
    joins = lifter.has("OR")
    lifter.take("FILL", "BROADCAST")  # all lanes have the register, guarded or not
    *written, to, value = lifter.require(2, 3)
    own = lifter.word(value)
    if not lifter.guard and not written:
        lifter.emit("mov.b32", lifter.to(to), own)  # the same in all lanes
        return
    lanes = _lanes(lifter)
    is_any = lifter.compute("setp.ne.u32", lanes, "0", kind="p")
    same = lifter.compute("shfl.idx.b32", own, _first_lane(lifter, lanes), "31")
    for each in written:
        if each.number >= 0:
            differs = lifter.compute("setp.ne.u32", own, same, kind="p")
            if joins:
                lifter.emit("or.pred", lifter.to(each), lifter.to(each), differs)
            else:
                lifter.emit("mov.pred", lifter.to(each), differs)
    if to.number >= 0:
        guard = lifter.guard
        lifter.set_guard(is_any)
        lifter.emit("mov.b32", lifter.to(to), same)
        lifter.set_guard(guard)


def take_registers(lifter: Lifter) -> None:
    """USETMAXREG: more or fewer registers for a warp, which are always there."""
    lifter.take("TRY_ALLOC", "DEALLOC", "ALLOC", "CTAPOOL")
    *status, _ = lifter.require(1, 2)
    for each in status:
        lifter.emit("setp.eq.u32", lifter.to(each), "0", "0")
    if not status:
        nothing(lifter)


def cluster_barrier(lifter: Lifter) -> None:
    """UCGABAR_ARV and UCGABAR_WAIT: the barrier of a cluster."""
    lifter.require(0)
    form = "arrive" if lifter.opcode.endswith("ARV") else "wait"
    lifter.emit(f"barrier.cluster.{form}", guarded=True)


def _without_effect(*modifiers: str) -> Handler:
    def lift(lifter: Lifter) -> None:
        lifter.take(*modifiers)
        lifter.operands = []
        lifter.require(0)
        nothing(lifter)

    return lift


HANDLERS: Mapping[str, Handler] = {
    "SYNCS": barrier_word,
    "ARRIVES": copies_arrive,
    **dict.fromkeys(("UBLKCP", "UBLKRED"), bulk_copy),
    "UBLKPF": prefetch_bulk,
    **dict.fromkeys(("UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF"), tensor_copy),
    "UTMACCTL": _without_effect("IV", "PF", "IVALL"),
    "UTMACMDFLUSH": _without_effect(),
    **dict.fromkeys(("STAS", "REDAS"), store_async),
    "ELECT": elect,
    "R2UR": to_uniform,
    "USETMAXREG": take_registers,
    **dict.fromkeys(("UCGABAR_ARV", "UCGABAR_WAIT"), cluster_barrier),
    "FENCE": _without_effect("VIEW", "ASYNC", "S", "G", "T", "L"),
    **dict.fromkeys(("ACQBULK", "PREEXIT"), _without_effect()),
    "USETSHMSZ": _without_effect("FLUSH"),
}
