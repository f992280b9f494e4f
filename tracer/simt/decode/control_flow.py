"""The control flow of a kernel of PTX: how each basic block ends, and where lanes go from there."""

from functools import lru_cache

from ....traces.schema import BARRIERS
from ...ptx.kernel import (
    KERNELS,
    BasicBlock,
    CallTarget,
    Immediate,
    Instruction,
    Kernel,
    KernelKey,
    Register,
)
from ..kernel.function_pointer import callees
from ..kernel.spin_loop import waits_of
from ..warp.control_flow import BlockFlow, ControlFlow, flow_of
from ..warp.schedule import (
    BARRIER,
    BRANCH,
    CALL,
    EXIT,
    EXIT_SOME,
    JUMP,
    OTHER,
    RETURN_SOME,
    SWITCH,
    WARP_SYNC,
)


@lru_cache(maxsize=KERNELS)
def control_flow(like: KernelKey) -> ControlFlow:
    """Return the control flow of a kernel."""
    kernel = like.kernel
    whole, last_end = kernel.functions[0], max(span.exit for span in kernel.functions)
    blocks = [_flow_of(kernel, block) for block in kernel.blocks]
    ends = last_end + 1 - len(blocks)
    waits, meets = waits_of(like), kernel.meeting_blocks
    return flow_of(blocks, whole.entry, whole.exit, ends, waits, meets, bool(kernel.rows))


def _flow_of(kernel: Kernel, block: BasicBlock) -> BlockFlow:
    exit_ = kernel.functions[block.function].exit
    target, other, *_ = (*block.successors, exit_, exit_)
    last, how = kernel.instructions[block.last - 1], ending(kernel, block)
    is_jump = how == JUMP and last.opcode == "bra"
    return BlockFlow(
        ending=JUMP if how is None else how,
        target=exit_ if last.opcode == "ret" and last.guard is None else target,
        other=other,
        has_branch=is_jump or how in (BRANCH, EXIT_SOME, RETURN_SOME, SWITCH),
        length=kernel.length(block),
        last=block.last - 1,
        rank=block.rank,
        join=block.join,
        leaving=block.leaving,
        outer_joins=block.outer_joins,
        sides=tuple(_sides(kernel, block)),
        successors=block.successors,
    )


def ending(kernel: Kernel, block: BasicBlock) -> int | None:
    """Return how a basic block ends; None where it falls through to the next block."""
    last = kernel.instructions[block.last - 1]
    if block.last - 1 in kernel.meetings:
        return OTHER if _follows_call(kernel, block) else WARP_SYNC
    guarded = last.guard is not None
    match last.opcode:
        case "bra":
            return BRANCH if guarded else JUMP
        case "ret":
            return RETURN_SOME if guarded else JUMP
        case "call" if is_inner_call(kernel, block, last):
            return CALL
        case "exit":
            return EXIT_SOME if guarded else EXIT
        case "brx":
            return SWITCH
        case "trap":
            return OTHER
        case "bar" | "barrier" if "warp" not in last.modifiers:
            is_plain = "cluster" not in last.modifiers and _is_plain(last)
            return BARRIER if is_plain else OTHER
    return None


def ends(kernel: Kernel, block: BasicBlock) -> bool:
    """Return whether the last instruction of a block only moves the warps to their successors."""
    return ending(kernel, block) not in (None, WARP_SYNC)


def is_inner_call(kernel: Kernel, block: BasicBlock, instruction: Instruction) -> bool:
    """Return whether an instruction calls a function of the module."""
    target = next((o for o in instruction.operands if isinstance(o, CallTarget)), None)
    return target is not None and (
        isinstance(target.callee, Register) or bool(callees(kernel, block.function, target))
    )


def switch_targets(block: BasicBlock, instruction: Instruction) -> tuple[int, ...]:
    """Return the successors of a switch in the order of its sides: its targets by number, then the
    block after it if it is guarded."""
    if instruction.guard is None:
        return tuple(sorted(set(block.successors)))
    return (*sorted(set(block.successors[:-1])), block.successors[-1])


def _sides(kernel: Kernel, block: BasicBlock) -> list[tuple[int, int]]:
    """Return the blocks that lanes may enter at the end of a block with a call or a switch, and the
    ends of those functions; of a switch the join of lanes that leave its region."""
    last = kernel.instructions[block.last - 1]
    how = ending(kernel, block)
    if how == CALL:
        target = next(o for o in last.operands if isinstance(o, CallTarget))
        reached = callees(kernel, block.function, target)
        return [(kernel.functions[k].entry, kernel.functions[k].exit) for k in reached]
    if how != SWITCH:
        return []
    leaving = block.leaving_sides
    return [(n, block.join if n in leaving else -1) for n in switch_targets(block, last)]


def _follows_call(kernel: Kernel, block: BasicBlock) -> bool:
    """Return whether a block begins with the results of a call, which must be taken first."""
    before = kernel.blocks[block.number - 1]
    last = kernel.instructions[before.last - 1]
    return before.last == block.first and is_inner_call(kernel, before, last)


def _is_plain(barrier: Instruction) -> bool:
    """Return whether an instruction is `bar.sync a`, of the whole thread block; the terminator of
    others has the message for a barrier that no block has."""
    odd = barrier.guard is not None or {"arrive", "red"} & set(barrier.modifiers)
    numbers = [o.bits for o in barrier.operands if isinstance(o, Immediate)]
    known = len(numbers) == len(barrier.operands) < 2 and all(n in range(BARRIERS) for n in numbers)
    return known and not odd
