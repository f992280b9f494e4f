"""Terminators of basic blocks: which lanes take a branch, a call or a switch; barriers, traps, and
warp-wide instructions at which diverged lanes wait for one another.

Where the lanes go from there, and how they reconverge, is the scheduler's (warp/scheduler.py).
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ....base.errors import KernelFault
from ....traces.schema import BARRIERS
from ...isa.table import MOST_THREADS
from ...ptx.kernel import CallTarget, Instruction, Register
from ...ptx.lines import source_line
from ...ptx.reconvergence import mask_of, sync_key
from ..call.argument_passing import pass_arguments, save_frame
from ..decode.decoder import Decoder, Fetch
from ..decode.shuffle_vote import STEPS, by_warp, decode_collective
from ..kernel.function_pointer import callees, function_address
from ..ops.lanes import LANES, Bits, unpack
from ..warp.barrier import Arrival, Reduction, SyncArrival
from ..warp.program import Group, Step, Terminator


def decode_terminator(decoder: Decoder, instruction: Instruction) -> Terminator | None:
    """Return the terminator of the instruction that ends a block; None if the scheduler needs none
    to move the warps."""
    if decoder.pc in decoder.kernel.meetings:
        return decode_warp_sync(decoder, instruction, _after(decoder))
    return _TERMINATORS[instruction.opcode](decoder, instruction)


def _after(decoder: Decoder) -> int:
    """Return the fall-through block, or the end of the function."""
    after = decoder.block.successors
    return after[0] if after else decoder.kernel.functions[decoder.block.function].exit


def _guarded(decoder: Decoder, instruction: Instruction) -> Terminator | None:
    """Decode `bra`, `ret` and `exit`: the lanes with a true guard branch, return or exit."""
    guard = decoder.guard()
    if guard is None:
        return None
    holds = guard

    def take(group: Group) -> None:
        group.wave.stacks.set_taken(group.pack(holds(group.frame)))

    return take


def _trap(decoder: Decoder, instruction: Instruction) -> Terminator:
    where, what = source_line(decoder.kernel, decoder.pc), "`trap` was executed"
    if decoder.kernel.rows:
        text = instruction.text.partition("*/ ")[2]
        what = f"`{text}` traps, or goes where there is no code for it,"
    guard, after = decoder.guard(), _after(decoder)

    def trap(group: Group) -> None:
        lanes = group.guarded_bits(guard)
        if lanes.any():
            first = group.warps[np.flatnonzero(lanes)[0]]
            block = int(group.wave.blocks_of(np.array([first]))[0])
            raise KernelFault(f"{where}: {what} in block {block}")
        group.wave.stacks.jump(group.warps, after)

    return trap


def _call(decoder: Decoder, instruction: Instruction) -> Terminator:
    """Decode a call of functions with a body: pass the arguments, and set the lanes that enter each
    of the possible callees."""
    target = next(o for o in instruction.operands if isinstance(o, CallTarget))
    reached = callees(decoder.kernel, decoder.function, target)
    after = decoder.block.successors[0] if decoder.block.successors else None
    save = None
    if after is not None and after in decoder.spills.after:
        save = save_frame(decoder, after)
    enter: Step = _enter_one
    if isinstance(target.callee, Register):
        enter = _enter_pointed(decoder, reached, decoder.fetch(target.callee, "u64"))
    passes = [move for k in reached for move in pass_arguments(decoder, target, k)]
    if after is not None:
        decoder.returned[after] = decoder.pc, target, reached

    def call(group: Group) -> None:
        if save is not None:
            save(group)
        for move in passes:
            move(group)
        enter(group)

    return call


def _enter_one(group: Group) -> None:
    group.wave.stacks.set_side(0, group.active)


def _enter_pointed(decoder: Decoder, reached: list[int], pointer: Fetch) -> Step:
    """Return a step that sets the lanes whose pointer is the address of each callee."""
    kernel, pc = decoder.kernel, decoder.pc
    names = [kernel.functions[k].function.name for k in reached]
    addresses = [function_address(kernel.module, name) for name in names]

    def enter(group: Group) -> None:
        lost, value = group.active, pointer(group.frame)
        for side, where in enumerate(addresses):
            lanes = np.zeros_like(group.active)
            if where is not None:
                lanes = group.active & group.pack(value == np.uint64(where))
            group.wave.stacks.set_side(side, lanes)
            lost = lost & ~lanes
        if lost.any():
            block = int(group.wave.blocks_of(group.warps[lost != 0][:1])[0])
            raise KernelFault(
                f"{source_line(kernel, pc)}: a thread of block {block} calls through a "
                f"pointer that is not the address of a function with these parameters"
            )

    return enter


def _switch(decoder: Decoder, instruction: Instruction) -> Terminator:
    """Decode `brx.idx`: each lane jumps to the label of its index."""
    block, guard, pc = decoder.block, decoder.guard(), decoder.pc
    index = decoder.fetch(instruction.operands[0], "u32")
    targets = block.successors if guard is None else block.successors[:-1]
    distinct = sorted(set(targets))

    def switch(group: Group) -> None:
        guard_masks = group.guarded_bits(guard)
        number = index(group.frame)
        if (guard_masks & group.pack(number >= np.uint32(len(targets)))).any():
            raise KernelFault(
                f"{source_line(decoder.kernel, pc)}: the index of a switch lies beyond its "
                f"{len(targets)} targets"
            )
        place = np.array(targets)[np.minimum(number, len(targets) - 1)]
        for side, target in enumerate(distinct):
            group.wave.stacks.set_side(side, guard_masks & group.pack(place == target))
        if guard is not None:
            group.wave.stacks.set_side(len(distinct), group.active & ~guard_masks)

    return switch


def _barrier(decoder: Decoder, instruction: Instruction) -> Terminator:
    """Decode `bar.sync a{, b}`, `bar.arrive a, b` and `bar.red.op.type d, a{, b}, {!}c`."""
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
    guard, pc = decoder.guard(), decoder.pc

    def arrive(group: Group) -> None:
        barriers = group.wave.stacks.barriers
        comes = group.guarded_bits(guard) != 0  # a warp with one such lane arrives as a whole
        if not comes.all():
            group.wave.stacks.jump(group.warps[~comes], target)
        if not comes.any():
            return
        arriving = group.warps[comes]
        numbers = _by_warp(group, number)[comes]
        counts = _by_warp(group, threads)[comes]
        _require_barrier(decoder, pc, int(numbers.max()), counts)
        if vote is not None:
            barriers.votes[arriving] |= group.pack(vote(group.frame))[comes]
        for which, count in sorted({*zip(numbers.tolist(), counts.tolist(), strict=True)}):
            warps = arriving[(numbers == which) & (counts == count)]
            barriers.arrive(warps, Arrival(which, count, target, pc, is_sync, reduction))

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
        lanes = group.guarded_bits(guard)
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
    value = np.broadcast_to(fetch(group.frame), group.shape)
    lowest = group.active & (~group.active + np.uint32(1))  # the first lane may be elsewhere
    lanes = np.frexp(np.maximum(lowest, 1).astype(np.float64))[1] - 1
    numbers: NDArray[np.int64] = value[np.arange(len(lanes)), lanes].astype(np.int64)
    return numbers


_TERMINATORS: Mapping[str, Callable[[Decoder, Instruction], Terminator | None]] = {
    "bra": _guarded,
    "brx": _switch,
    "ret": _guarded,
    "exit": _guarded,
    "trap": _trap,
    "call": _call,
    "bar": _barrier,
    "barrier": _barrier,
}
"""Opcode to the function that decodes it at the end of a basic block."""


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
        values = (fetch(group.frame) for fetch in (fetch_masks, *fetches))
        masks, *columns = (by_warp(group, value) for value in values)
        if _has_waiting_lanes(group, masks):
            for row, warp in enumerate(group.warps.tolist()):
                own = tuple(column[row].copy() for column in columns)
                lanes = int(group.active[row])
                arrival = SyncArrival(key, lanes, masks[row].copy(), own, slots, compute)
                stacks.meetings.arrive(warp, arrival)
        else:
            at_once(group)
        stacks.jump(group.warps, after)

    return meet


def _has_waiting_lanes(group: "Group", masks: Bits) -> bool:
    """Return whether any mask has lanes outside of the group, or other lanes wait for the
    group's.
    """
    stacks = group.wave.stacks
    if stacks.meeting[group.warps].any():
        return True
    masks_of_active = np.where(unpack(group.active), masks, np.uint32(0))
    partners = np.bitwise_or.reduce(masks_of_active, axis=1)
    return bool((partners & stacks.live()[group.warps] & ~group.active).any())
