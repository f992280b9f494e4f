"""Calls of the driver's functions in machine code, and traps."""

from collections.abc import Mapping

from ..simt.access.cluster import START
from .constant import function_address
from .frame import DRIVER_FUNCTIONS
from .lift import COPIER, Handler, Lifter


def stop(lifter: Lifter) -> None:
    """BPT.TRAP: the kernel ends with an error."""
    lifter.one({"TRAP": ""})
    lifter.emit("trap", guarded=True)


def call(lifter: Lifter) -> None:
    """CALL.ABS: call a function of the driver by its address from constant bank 4."""
    if not lifter.has("ABS"):
        raise lifter.refuse("cutrace does not know this call")
    lifter.take("NOINC")
    lifter.require(1)
    names = sorted({each.name for each in lifter.code.pointers.values() if not each.section})
    unknown = [name for name in names if name not in DRIVER_FUNCTIONS and name != COPIER]
    if unknown or not names:
        listed = ", ".join(unknown) or "an address"
        raise lifter.refuse(f"cutrace does not know the machine's calls of {listed}")
    if len(names) == 1:
        _call_function(lifter, names[0])
        return
    where = lifter.wide(lifter.operands[0])
    for name in names:
        same, end = lifter.new("p"), f"C{lifter.now.address:x}_{name}"
        lifter.emit("setp.ne.u64", same, where, str(function_address(lifter.code, name)))
        lifter.lines.append((f"@{same} bra {end};", lifter.now))
        _call_function(lifter, name)
        lifter.label(end)
    lifter.compute("mov.b32", "0")


def _copy_to_cluster(lifter: Lifter) -> None:
    """Lift a call of the driver's bulk copy: R4 has the place in the memory of a block of the
    cluster, R6 and R7 the source, R8 the bytes, R10 the mbarrier."""
    more = lifter.displacement + START
    source = lifter.compute("mov.b64", "{%R6, %R7}", kind="d")
    form = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    lifter.emit(form, f"[%R4+{more}]", f"[{source}]", "%R8", f"[%R10+{more}]", guarded=True)


def _call_function(lifter: Lifter, name: str) -> None:
    if name == COPIER:
        _copy_to_cluster(lifter)
        return
    parameters, result = DRIVER_FUNCTIONS[name]
    at, number, passed = f"{name}{lifter.now.address:x}", 4, []
    for index, size in enumerate(parameters):
        passed.append(f"{at}_{index}")
        lifter.lines.append((f".param .b{8 * size} {passed[-1]};", None))
        number += number % 2 if size == 8 else 0
        word = f"%R{number}"
        if size == 8:
            word = lifter.compute("mov.b64", f"{{%R{number}, %R{number + 1}}}", kind="d")
        lifter.emit(f"st.param.b{8 * size}", f"[{passed[-1]}]", word, guarded=False)
        number += size // 4
    arguments = f"({', '.join(passed)})"
    if not result:
        lifter.emit("call.uni", name, arguments, guarded=False)
        return
    lifter.lines.append((f".param .b{8 * result} {at}_result;", None))
    lifter.emit("call.uni", f"({at}_result)", name, arguments, guarded=False)
    if result == 4:
        lifter.emit("ld.param.b32", "%R4", f"[{at}_result]", guarded=False)
        return
    word = lifter.new("d")
    lifter.emit("ld.param.b64", word, f"[{at}_result]", guarded=False)
    lifter.emit("mov.b64", "{%R4, %R5}", word, guarded=False)


HANDLERS: Mapping[str, Handler] = {
    "BPT": stop,
    "CALL": call,
}
