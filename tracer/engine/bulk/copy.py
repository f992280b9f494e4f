"""`cp.async.bulk`, `cp.reduce.async.bulk`, `st.async` and `red.async` (PTX ISA 9.7.9.25).

Each is done when it is issued, and tells its mbarrier so; groups of bulk copies have nothing to
wait for. They leave no rows: no lane of the load and store unit moves these bytes.
"""

import numpy as np

from ...ptx.kernel import TYPE_BYTES, Address, Instruction, Register
from ..array.decoder import Decoder, constant
from ..array.program import Group, Step
from ..lanes import DTYPES, scalar
from ..memory.address import elements
from ..op.update import OPERATIONS
from . import tensor
from .bytes_of import Bytes, Site, as_shared, global_bytes, shared_bytes
from .completion import complete
from .lane import Lane, lanes_of
from .operand import fetch_address, mask_of, site_of, targets
from .reduction import reduce_bytes

_NOTHING = frozenset({"commit_group", "wait_group", "prefetch"})


def decode_bulk(decoder: Decoder, instruction: Instruction) -> Step | None:
    """Return the step of a bulk copy, or None if the instruction is none."""
    modifiers = {m.partition("::")[0] for m in instruction.modifiers}
    if instruction.opcode == "cp" and "bulk" in modifiers:
        if modifiers & _NOTHING and "tensor" not in modifiers:
            return lambda group: None
        if "tensor" in modifiers:
            return tensor.decode_tensor_copy(decoder, instruction)
        return _copy(decoder, instruction)
    if instruction.opcode in ("st", "red") and "async" in modifiers:
        return _send(decoder, instruction)
    return None


def _copy(decoder: Decoder, instruction: Instruction) -> Step:
    operands = list(instruction.operands)
    spaces = [m.partition("::")[0] for m in instruction.modifiers]
    spaces = [m for m in spaces if m in ("shared", "global")]
    if len(spaces) != 2:
        raise decoder.refuse("expected two state spaces, those of destination and source")
    if "cp_mask" in instruction.modifiers:
        raise decoder.refuse("cutrace leaves out masks of bytes (compute capability 10.0)")
    mask, site = mask_of(decoder, instruction, operands), site_of(decoder, instruction)
    to, source = (fetch_address(decoder, operand) for operand in operands[:2])
    size = decoder.fetch(operands[2], "u32")
    tells = len(operands) > 3
    barrier = fetch_address(decoder, operands[3]) if tells else constant(scalar(0, DTYPES["s64"]))
    operation = next((m for m in instruction.modifiers if m in OPERATIONS), "")
    guard, kind = decoder.guard(), instruction.type
    narrow = [isinstance(o, Address) and _is_narrow(o) for o in (*operands[:2], operands[-1])]

    def copy(group: Group) -> None:
        frame = group.frame
        values = [fetch(frame) for fetch in (to, source, size, barrier, mask)]
        for lane in lanes_of(group, guard, values):
            there, here, count, told, blocks = lane.values
            if count % 16:
                raise site.fault(lane, f"of {count} bytes, no multiple of 16,", "misaligned")
            bytes_ = _find(lane, site, spaces[1], here, count, not narrow[1])
            if spaces[0] == "global":
                _move(global_bytes(lane, site, there, count), bytes_, operation, kind, True)
                continue
            there, told = as_shared(there, not narrow[0]), as_shared(told, not narrow[2])
            for target, word in targets(lane, site, there, told, blocks, count):
                _move(target, bytes_, operation, kind, False)
                complete(word, count)

    return copy


def _is_narrow(operand: Address) -> bool:
    return not isinstance(operand.base, Register) or TYPE_BYTES[operand.base.type] == 4


def _find(lane: Lane, site: Site, space: str, address: int, size: int, generic: bool) -> Bytes:
    if space == "global":
        return global_bytes(lane, site, address, size)
    return shared_bytes(lane, site, as_shared(address, generic), size)


def _move(to: Bytes, source: Bytes, operation: str, kind: str, in_global: bool) -> None:
    if operation:
        reduce_bytes(to.view, source.view, operation, kind, in_global)
    else:
        to.view[:] = source.view.copy()
    to.mark()


def _send(decoder: Decoder, instruction: Instruction) -> Step:
    """`st.async [a], b, [mbar]` and `red.async`: each lane stores, and tells the barrier."""
    if "global" in instruction.modifiers:
        raise decoder.refuse("cutrace leaves out asynchronous stores to global memory (10.0)")
    kind, site = instruction.type, site_of(decoder, instruction)
    to, barrier = (fetch_address(decoder, instruction.operands[k]) for k in (0, 2))
    fetches = [decoder.fetch(e, kind) for e in elements(instruction.operands[1])]
    operation = next((m for m in instruction.modifiers if m in OPERATIONS), "")
    guard, dtype = decoder.guard(), np.dtype(f"u{DTYPES[kind].itemsize}")
    size = dtype.itemsize * len(fetches)

    def send(group: Group) -> None:
        frame = group.frame
        values = [to(frame), barrier(frame), *(f(frame).view(dtype) for f in fetches)]
        for lane in lanes_of(group, guard, values):
            there, told, *words = lane.values
            there, told = (as_shared(each, not instruction.space) for each in (there, told))
            target = shared_bytes(lane, site, there, size, size)
            given = np.array(words, dtype=dtype).view(np.uint8)
            source = Bytes(given, 0, size)
            _move(target, source, operation, kind, False)
            complete(shared_bytes(lane, site, told, 8, 8), size)

    return send
