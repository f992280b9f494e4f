"""What lanes of a warp and warps of a block tell one another in machine code."""

from collections.abc import Mapping

from .lift import Handler, Lifter

COUNTED, AGREED = "%R901", "%P901"
"""Registers for the result of a barrier's reduction, which B2R reads."""


def barrier(lifter: Lifter) -> None:
    """BAR: of a block; the result of a reduction is read by B2R."""
    lifter.take("DEFER_BLOCKING")
    form = lifter.one({"SYNC": "sync", "ARV": "arrive", "RED": "red"})
    if form == "red":
        operation = lifter.one({"POPC": "popc.u32", "AND": "and.pred", "OR": "or.pred"})
        *numbers, holds = lifter.require(2, 3)
        words = [lifter.word(each) for each in numbers]
        lifter.emit(f"bar.red.{operation}", COUNTED if operation == "popc.u32" else AGREED, *words,
               lifter.predicate(holds), guarded=True)  # fmt: skip
        return
    numbers = lifter.require(1, 2)
    lifter.emit(f"bar.{form}", *(lifter.word(each) for each in numbers), guarded=True)


def barrier_result(lifter: Lifter) -> None:
    """B2R.RESULT: the result of a barrier's reduction."""
    lifter.refuse_if(not lifter.has("RESULT"))
    to, *holds = lifter.require(1, 2)
    if to.number >= 0:
        lifter.emit("mov.b32", lifter.to(to), COUNTED)
    if holds and holds[0].number >= 0:
        lifter.emit("mov.pred", lifter.to(holds[0]), AGREED)


def wait_for_warp(lifter: Lifter) -> None:
    """WARPSYNC: the lanes of a mask go on together; COLLECTIVE says up to where they must."""
    if lifter.has("COLLECTIVE"):
        lifter.operands.pop()
    if lifter.has("ALL"):
        lifter.require(0)
        lifter.meet("-1")
        return
    lifter.take("EXCLUSIVE")
    (mask,) = lifter.require(1)
    lifter.meet(lifter.word(mask))


def shuffle(lifter: Lifter) -> None:
    """SHFL: the register of another lane."""
    form = lifter.one({"IDX": "idx", "UP": "up", "DOWN": "down", "BFLY": "bfly"})
    valid, to, value, by, clamp = lifter.require(5)
    target = lifter.to(to) if to.number >= 0 else lifter.new()
    if valid.number >= 0:
        target = f"{target}|{lifter.to(valid)}"
    lifter.emit(
        f"shfl.{form}.b32",
        target,
        lifter.word(value),
        lifter.word(by),
        lifter.word(clamp),
        guarded=True,
    )


def vote(lifter: Lifter) -> None:
    """VOTE: which lanes hold a predicate, and whether any or all do."""
    form = lifter.one({"ANY": "any", "ALL": "all", "EQ": "uni"})
    operands = lifter.require(2, 3)
    holds = lifter.predicate(operands[-1])
    for to in operands[:-1]:
        if to.kind == "R" and to.number >= 0:
            lifter.emit("vote.ballot.b32", lifter.to(to), holds, guarded=True)
    for to in operands[:-1]:
        if to.kind == "P" and to.number >= 0:
            lifter.emit(f"vote.{form}.pred", lifter.to(to), holds, guarded=True)


def match_lanes(lifter: Lifter) -> None:
    """MATCH: the lanes that have the same value."""
    form = lifter.one({"ANY": "any", "ALL": "all"})
    wide = lifter.has("U64")
    lifter.take("U32")
    *results, value = lifter.require(2, 3)
    word = lifter.wide(value) if wide else lifter.word(value)
    bits = "b64" if wide else "b32"
    if len(results) == 2:
        valid, to = results
        target = lifter.to(to)
        if valid.number >= 0:
            target += f"|{lifter.to(valid)}"
    else:
        target = lifter.to(results[0])
    lifter.emit(f"match.{form}.{bits}", target, word, guarded=True)


def reduce_lanes(lifter: Lifter) -> None:
    """REDUX and CREDUX: the sum, the least, ... of the lanes' values."""
    names = {"SUM": "add", "MIN": "min", "MAX": "max", "AND": "and", "OR": "or", "XOR": "xor"}
    operation = lifter.one(names, "and")
    kind, more = lifter.one({"S32": "s32", "U32": "u32", "F32": "f32"}, "u32"), ""
    if kind == "f32":
        more = ".abs" * lifter.has("ABS") + ".NaN" * lifter.has("NAN")
    to, value = lifter.require(2)
    kind = "b32" if operation in ("and", "or", "xor") else kind
    read = lifter.single if kind == "f32" else lifter.word
    form = f"redux.{operation}{more}.{kind}"
    lifter.emit(form, lifter.to(to), read(value), guarded=True)


HANDLERS: Mapping[str, Handler] = {
    "BAR": barrier,
    "B2R": barrier_result,
    "WARPSYNC": wait_for_warp,
    "SHFL": shuffle,
    "VOTE": vote,
    "VOTEU": vote,
    "MATCH": match_lanes,
    **dict.fromkeys(("REDUX", "CREDUX"), reduce_lanes),
}
