"""Terminators of basic blocks: branches, calls, returns, barriers and traps, which move warps
on.

So do warp-wide instructions at which diverged lanes wait for one another (`decode_warp_sync`).
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ....base.errors import KernelFault
from ....traces.schema import BARRIERS
from ...isa.table import MOST_THREADS
from ...ptx.kernel import NO_BLOCK, BasicBlock, CallTarget, FunctionSpan, Instruction, Register
from ...ptx.lines import source_line
from ...ptx.reconvergence import mask_of, sync_key
from ..call.argument_passing import frame_slots, pass_arguments, returned, save_frame
from ..kernel.function_pointer import callees, function_address
from ..ops.lanes import LANES, Array, Bits
from ..warp.barrier import Arrival, Reduction, SyncArrival
from ..warp.decoder import Decoder, Fetch
from ..warp.program import Group, Terminator
from ..warp.shuffle_vote import STEPS, by_warp, decode_collective


def fall_through(decoder: Decoder, block: BasicBlock) -> Terminator:
    """Return the terminator of a block that falls through, or runs off the end of its function."""
    target = block.successors[0] if block.successors else _exit(decoder, block)

    def go(group: Group) -> None:
        group.wave.stacks.jump(group.warps, target)
        return None

    return go


def _exit(decoder: Decoder, block: BasicBlock) -> int:
    return decoder.kernel.functions[block.function].exit


def decode_ending(decoder: Decoder, instruction: Instruction) -> Terminator | None:
    """Return the terminator of a block's last instruction, or None if it is none."""
    if decoder.pc in decoder.kernel.meetings:
        return decode_warp_sync(decoder, instruction, _after(decoder))
    decode = _ENDINGS.get(instruction.opcode)
    return None if decode is None else decode(decoder, instruction)


def _after(decoder: Decoder) -> int:
    """Return the fall-through block, or the end of the function."""
    after = decoder.block.successors
    return after[0] if after else _exit(decoder, decoder.block)


def _branch(decoder: Decoder, instruction: Instruction) -> Terminator:
    block, guard = decoder.block, decoder.guard()
    target = block.successors[0]
    if guard is None:

        def jump(group: Group) -> Bits:
            group.wave.stacks.jump(group.warps, target)
            return group.active

        return jump
    return _divide(guard, block)


def _divide(guard: Fetch, block: BasicBlock) -> Terminator:
    """Return the terminator of a conditional branch."""
    (target, other), join, outer_joins = block.successors, block.join, block.outer_joins

    def divide(group: Group) -> Bits:
        branch_masks, stacks, warps = group.pack(guard(group.frame)), group.wave.stacks, group.warps
        if outer_joins:
            mixed = (branch_masks != 0) & (branch_masks != group.active)
            stacks.push_outer_join(warps[mixed], outer_joins)
        if block.leaving == NO_BLOCK:
            stacks.diverge(warps, branch_masks, target, other, join)
        elif block.leaving == target:
            stacks.leave_region(warps, branch_masks, target, other, join)
        else:
            stacks.leave_region(warps, group.active & ~branch_masks, other, target, join)
        return branch_masks

    return divide


def _return(decoder: Decoder, instruction: Instruction) -> Terminator:
    block, guard = decoder.block, decoder.guard()
    exit_ = _exit(decoder, block)
    if guard is not None:
        return _leave_some(guard, block.successors[0], returns=True)

    def leave(group: Group) -> None:
        group.wave.stacks.jump(group.warps, exit_)
        return None

    return leave


def _leave(decoder: Decoder, instruction: Instruction) -> Terminator:
    block, guard = decoder.block, decoder.guard()
    if guard is not None:
        return _leave_some(guard, block.successors[0], returns=False)

    def leave(group: Group) -> None:
        group.wave.stacks.leave(group.warps, group.active)
        return None

    return leave


def _leave_some(guard: Fetch, after: int, returns: bool) -> Terminator:
    """Return a terminator: lanes with a true guard exit or return, the others fall through."""

    def leave(group: Group) -> Bits:
        lanes = group.pack(guard(group.frame))
        group.wave.stacks.block[group.warps] = after
        group.wave.stacks.leave(group.warps, lanes, returns)
        return lanes

    return leave


def _trap(decoder: Decoder, instruction: Instruction) -> Terminator:
    place = instruction.location
    where = f"{place.file}:{place.line}" if place else f"PTX line {instruction.ptx_line}"
    guard, after = decoder.guard(), decoder.block.successors
    exit_ = _exit(decoder, decoder.block)

    def trap(group: Group) -> None:
        lanes = group.active if guard is None else group.pack(guard(group.frame))
        if lanes.any():
            first = group.warps[np.flatnonzero(lanes)[0]]
            block = int(group.wave.blocks_of(np.array([first]))[0])
            raise KernelFault(f"{where}: `trap` was executed in block {block}")
        group.wave.stacks.jump(group.warps, after[0] if after else exit_)
        return None

    return trap


def _call(decoder: Decoder, instruction: Instruction) -> Terminator | None:
    target = next(o for o in instruction.operands if isinstance(o, CallTarget))
    spans = decoder.kernel.functions
    reached = callees(decoder.kernel, decoder.function, target)
    through = None
    if isinstance(target.callee, Register):
        through = decoder.fetch(target.callee, "u64")
    elif not reached:
        return None
    after = decoder.block.successors[0] if decoder.block.successors else None
    back = _exit(decoder, decoder.block) if after is None else after
    save = None
    if after is not None and any(map(decoder.calls_itself, reached)):
        slots = frame_slots(decoder, target, after)
        decoder.saved[after] = slots
        live = tuple(decoder.slots.read(slot) for slot in slots)
        save = save_frame(live, decoder.pc, decoder.levels)
    entered = _entered(decoder, [spans[k] for k in reached], through)
    passes = [move for k in reached for move in pass_arguments(decoder, target, k)]
    returns = [return_copy for k in reached for return_copy in returned(decoder, target, k)]
    if after is not None:
        decoder.returned[after] = returns

    def call(group: Group) -> None:
        stacks = group.wave.stacks
        if save is not None:
            save(group)
        for move in passes:
            move(group)
        stacks.block[group.warps] = back
        for callee, lanes in entered(group, group.active):
            warps = group.warps[lanes != 0]
            if warps.size:
                stacks.push(warps, callee.entry, callee.exit, lanes[lanes != 0], called=True)
        return None

    return call


def _entered(
    decoder: Decoder, spans: list[FunctionSpan], through: Fetch | None
) -> Callable[[Group, Bits], list[tuple[FunctionSpan, Bits]]]:
    """Return a function to the functions entered, each with the mask of the lanes that enter it."""
    if through is None:
        return lambda group, lanes: [(spans[0], lanes)]
    module, pc = decoder.kernel.module, decoder.pc
    addresses = [function_address(module, span.function.name) for span in spans]

    def entered(group: Group, lanes: Bits) -> list[tuple[FunctionSpan, Bits]]:
        pointer = through(group.frame)
        lane_masks = [
            lanes & group.pack(pointer == np.uint64(a)) for a in addresses if a is not None
        ]
        lost = lanes & ~np.bitwise_or.reduce(lane_masks, axis=0) if lane_masks else lanes
        if lost.any():
            block = int(group.wave.blocks_of(group.warps[lost != 0][:1])[0])
            raise KernelFault(
                f"{source_line(decoder.kernel, pc)}: a thread of block {block} calls through a "
                f"pointer that is not the address of a function with these parameters"
            )
        return list(zip(spans, lane_masks, strict=True))

    return entered


def _switch(decoder: Decoder, instruction: Instruction) -> Terminator:
    """Decode `brx.idx`: each lane jumps to the label of its index.

    The trace has two sides per branch: of several targets, the lanes of the first count as taken.
    """
    block, guard, pc = decoder.block, decoder.guard(), decoder.pc
    index = decoder.fetch(instruction.operands[0], "u32")
    targets = block.successors if guard is None else block.successors[:-1]
    other, join = block.successors[-1], block.join
    distinct = sorted(set(targets))

    def switch(group: Group) -> Bits:
        guard_masks = group.active if guard is None else group.pack(guard(group.frame))
        number = index(group.frame)
        if (guard_masks & group.pack(number >= np.uint32(len(targets)))).any():
            raise KernelFault(
                f"{source_line(decoder.kernel, pc)}: the index of a switch lies beyond its "
                f"{len(targets)} targets"
            )
        place = np.array(targets)[np.minimum(number, len(targets) - 1)]
        sides = [(t, guard_masks & group.pack(place == t)) for t in distinct]
        if guard is not None:
            sides.append((other, group.active & ~guard_masks))
        group.wave.stacks.diverge_many(group.warps, sides, join, block.outer_joins)
        first: Bits = sides[0][1]
        for _, lanes in sides[1:]:
            first = np.where(first != 0, first, lanes)
        return first

    return switch


def _barrier(decoder: Decoder, instruction: Instruction) -> Terminator | None:
    """Decode `bar.sync a{, b}`, `bar.arrive a, b` and `bar.red.op.type d, a{, b}, {!}c`."""
    if "warp" in instruction.modifiers:
        return None
    if "cluster" in instruction.modifiers:
        return _cluster_barrier(decoder, instruction)
    operands = list(instruction.operands)
    result = vote = None
    if "red" in instruction.modifiers:
        result, vote = operands.pop(0), decoder.fetch(operands.pop(), "pred")
    number = decoder.fetch(operands[0], "u32") if operands else None
    threads = decoder.fetch(operands[1], "u32") if len(operands) > 1 else None
    target = _after(decoder)
    is_sync = "arrive" not in instruction.modifiers
    reduction = None
    if isinstance(result, Register):
        operation = next(m for m in instruction.modifiers if m in ("popc", "and", "or"))
        reduction = Reduction(decoder.slots.of(decoder.function, result), operation)
    pc = decoder.pc

    def arrive(group: Group) -> None:
        barriers = group.wave.stacks.barriers
        frame = group.frame
        numbers = _by_warp(group, number)
        counts = _by_warp(group, threads)
        _require_barrier(decoder, pc, int(numbers.max()), counts)
        if vote is not None:
            barriers.votes[group.warps] |= group.pack(vote(frame))
        for which, count in sorted({*zip(numbers.tolist(), counts.tolist(), strict=True)}):
            warps = group.warps[(numbers == which) & (counts == count)]
            barriers.arrive(warps, Arrival(which, count, target, pc, is_sync, reduction))
        return None

    return arrive


def _cluster_barrier(decoder: Decoder, instruction: Instruction) -> Terminator:
    """Decode `barrier.cluster.arrive` and `barrier.cluster.wait`.

    Both fault where the ISA leaves the behaviour undefined: to arrive twice, or to wait without
    having arrived.
    """
    arrives = "arrive" in instruction.modifiers
    guard, target, pc = decoder.guard(), _after(decoder), decoder.pc

    def meet(group: Group) -> None:
        barrier = group.wave.stacks.barriers.cluster
        lanes = group.active if guard is None else group.pack(guard(group.frame))
        if arrives:
            wrong = barrier.arrive(group.warps, lanes, target)
        else:
            wrong = barrier.wait(group.warps, lanes, target, pc)
        if wrong.size:
            block = int(group.wave.blocks_of(wrong[:1])[0])
            what = (
                "arrives again, and has not waited since it arrived"
                if arrives
                else "waits without having arrived"
            )
            raise KernelFault(
                f"{source_line(decoder.kernel, pc)}: a thread of block {block} {what} at the "
                "barrier of its cluster, which PTX leaves undefined"
            )
        return None

    return meet


def _require_barrier(decoder: Decoder, pc: int, number: int, counts: NDArray[np.int64]) -> None:
    """Raise an error for a barrier number that no block has, and for counts that are not
    whole warps.
    """
    line = source_line(decoder.kernel, pc)
    if number >= BARRIERS:
        raise KernelFault(
            f"{line}: there is no barrier {number}: a thread block has 0 to {BARRIERS - 1}"
        )
    if (counts % LANES).any() or int(counts.max()) > MOST_THREADS:
        raise KernelFault(
            f"{line}: a barrier is for a multiple of {LANES} threads up to {MOST_THREADS}, "
            f"not for {int(counts.max())}"
        )


def _by_warp(group: Group, fetch: Fetch | None) -> NDArray[np.int64]:
    """Return a warp-uniform operand, one value per warp; 0 if absent."""
    if fetch is None:
        return np.zeros(len(group.warps), dtype=np.int64)
    value = np.broadcast_to(fetch(group.frame), (group.rows, group.columns))
    firsts = value[:, ::LANES].reshape(-1).astype(np.int64)
    return firsts if group.compacted else firsts[group.warps]


_ENDINGS: Mapping[str, Callable[[Decoder, Instruction], Terminator | None]] = {
    "bra": _branch,
    "brx": _switch,
    "ret": _return,
    "exit": _leave,
    "trap": _trap,
    "call": _call,
    "bar": _barrier,
    "barrier": _barrier,
}
"""Opcode to the function that decodes it at the end of a basic block; None: it does not end it."""


_LANE = np.arange(LANES, dtype=np.uint32)


def decode_warp_sync(decoder: "Decoder", instruction: Instruction, after: int) -> Terminator:
    """Return the terminator of a block that is one warp-wide instruction; `after` is the next
    block.
    """
    key, fetch_masks = sync_key(instruction), decoder.fetch(mask_of(instruction), "b32")
    collective = decode_collective(decoder, instruction)
    outputs = collective.outputs if collective is not None else ()
    fetches = collective.sources if collective is not None else ()
    compute = collective.compute if collective is not None else None
    slots = tuple(
        decoder.slots.write(decoder.slots.of(decoder.function, to), maybe=True)
        if isinstance(to, Register)
        else None
        for to, _ in outputs
    )
    at_once = STEPS[instruction.opcode](decoder, instruction)
    assert key is not None
    assert at_once is not None

    def meet(group: "Group") -> None:
        stacks = group.wave.stacks
        masks, *columns = (_rows(group, fetch(group.frame)) for fetch in (fetch_masks, *fetches))
        if _has_waiting_lanes(group, masks):
            for row, warp in enumerate(group.warps.tolist()):
                values = tuple(column[row].copy() for column in columns)
                lanes = int(group.active[row])
                arrival = SyncArrival(key, lanes, masks[row].copy(), values, slots, compute)
                stacks.meetings.arrive(warp, arrival)
        else:
            at_once(group)
        stacks.jump(group.warps, after)

    return meet


def _rows(group: "Group", value: Array) -> Array:
    """Return a value as (warps of the group, 32)."""
    rows = by_warp(group, value)
    return rows if group.compacted else rows[group.warps]


def _has_waiting_lanes(group: "Group", masks: Bits) -> bool:
    """Return whether any mask has lanes outside of the group, or other lanes wait for the
    group's.
    """
    stacks = group.wave.stacks
    if stacks.meetings.parked[group.warps].any():
        return True
    active = (group.active[:, None] >> _LANE & np.uint32(1)).astype(np.bool_)
    partners = np.bitwise_or.reduce(np.where(active, masks, np.uint32(0)), axis=1)
    return bool((partners & stacks.live()[group.warps] & ~group.active).any())
