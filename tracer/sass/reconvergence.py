"""Where the lanes of a branch reconverge: as the convergence barriers of machine code say.

BSSY sets a barrier for the lanes that run it, and names the place behind the BSYNC at which they
wait for one another. A divergent branch so reconverges at the place of the innermost barrier that
is set; BREAK takes lanes out of one, that leave its region for an outer place. A branch without a
barrier keeps the reconvergence point of the control-flow graph; in a subroutine its lanes stay
apart up to the place of the innermost barrier that is set where they were called. Lanes that return
to several calls stay apart up to a place where others wait for them.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

from ...traces.machine_schedule import CODE_BYTES
from ..ptx.kernel import NO_BLOCK, BasicBlock, Kernel
from ..ptx.reconvergence import find_warp_syncs
from .cubin import Instruction
from .flow import Flow

Barriers: TypeAlias = tuple[tuple[str, int], ...]
"""The barriers that are set, outermost first: their names and the places where lanes wait."""


def find_barriers(flow: Flow) -> Mapping[int, Barriers]:
    """Return the barriers that are set before each instruction: those of all ways to it."""
    before: dict[int, Barriers] = {0: ()}
    at = {each.address: each for each in flow.reached}
    pending = [0]
    while pending:
        address = pending.pop()
        instruction = at[address]
        after = _after(instruction, before[address])
        taken, other = _broken(flow, at, instruction)
        ways = [
            (target, _without(after, other if target == address + CODE_BYTES else taken))
            for target in _successors(flow, instruction)
        ]
        is_call = instruction.opcode.startswith("CALL.REL")
        if is_call and flow.subroutines.intersection(flow.targets(instruction)):
            # A subroutine begins without barriers, and returns with those of its call.
            ways = [(target, ()) for target, _ in ways] + [(address + CODE_BYTES, after)]
        for target, barriers in ways:
            if target not in at:
                continue
            previous = before.get(target)
            joint = barriers if previous is None else _common(previous, barriers)
            if joint != previous:
                before[target] = joint
                pending.append(target)
    return before


_BREAKS_BEFORE = 8
"""How far before a branch the BREAK of its lanes may be."""


def _broken(
    flow: Flow, at: Mapping[int, Instruction], branch: Instruction
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the barriers that lanes which take a branch, and others, have left just before it: by
    a BREAK with the same predicate, or with the opposite one."""
    taken, other = set[str](), set[str]()
    if branch.opcode[:3] != "BRA" or not branch.guard:
        return frozenset(), frozenset()
    opposite = branch.guard[1:] if branch.guard[0] == "!" else f"!{branch.guard}"
    address = branch.address
    for _ in range(_BREAKS_BEFORE):
        address -= CODE_BYTES
        if (
            address not in at
            or address + CODE_BYTES in flow.labels
            or at[address].opcode[:3] == "BRA"
        ):
            break
        if at[address].opcode.startswith("BREAK"):  # or BREAK.RELIABLE
            if at[address].guard == branch.guard:
                taken.add(at[address].operands[-1])
            elif at[address].guard == opposite:
                other.add(at[address].operands[-1])
    return frozenset(taken), frozenset(other)


def _after(instruction: Instruction, barriers: Barriers) -> Barriers:
    name = instruction.opcode.partition(".")[0]
    if name == "BSSY":
        barrier, place = instruction.operands[-2:]
        return (*_without(barriers, {barrier}), (barrier, int(place, 16)))
    if name == "BSYNC" or (name == "BREAK" and not instruction.guard):
        return _without(barriers, {instruction.operands[-1]})
    return barriers


def _without(barriers: Barriers, names: Collection[str]) -> Barriers:
    return tuple(each for each in barriers if each[0] not in names)


def _successors(flow: Flow, instruction: Instruction) -> list[int]:
    if instruction.opcode.startswith(("BSSY", "RET")):
        targets: list[int] = []
    else:
        targets = flow.targets(instruction)
    after = instruction.address + CODE_BYTES
    return [*targets, after] if flow.falls(instruction) else targets


def _common(one: Barriers, other: Barriers) -> Barriers:
    """Return the outer barriers that two ways share."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return one[:count]


def reconverge(kernel: Kernel, addresses: list[int], flow: Flow) -> Kernel:
    """Return a kernel whose branches reconverge by barriers; `addresses` are those of its pcs."""
    # The row of a recursion's meeting point lies between two instructions: it belongs to the next.
    addresses = [-(-each // CODE_BYTES) * CODE_BYTES for each in addresses]
    before = _with_breaks(flow, find_barriers(flow))
    block_at = {addresses[block.first]: block.number for block in reversed(kernel.blocks)}
    last = {each.address: each for each in flow.reached}
    ends = [last.get(addresses[block.last - 1]) for block in kernel.blocks]
    joined = [
        _joined(kernel, block, addresses, before, block_at, flow, end)
        for block, end in zip(kernel.blocks, ends, strict=True)
    ]
    if all(block.leaving == NO_BLOCK for block in joined):
        joined = [
            replace(block, outer_joins=block.outer_joins[-1:] if _calls(flow, end) else ())
            for block, end in zip(joined, ends, strict=True)
        ]
    meeting_blocks = frozenset(
        block_at[place] for place in _find_wait_points(flow) if place in block_at
    )
    return replace(kernel, blocks=tuple(joined), meeting_blocks=meeting_blocks)


def find_meetings(kernel: Kernel) -> frozenset[int]:
    """Return the pcs at which lanes wait for others of their warp, by the barriers of branches:
    lanes stay apart up to a BSYNC, even where all of them pass an earlier place."""
    return find_warp_syncs(
        kernel.instructions,
        [(block.first, block.last) for block in kernel.blocks],
        {block.number: block.successors for block in kernel.blocks},
        (),
        {block.number: block.join for block in kernel.blocks},
    )


_GIVES_WAY = ("YIELD", "CALL")
"""What lets lanes of a region run ahead of others, or calls a function that may."""


def _find_wait_points(flow: Flow) -> set[int]:
    """Return the places where lanes wait for one another whatever the others do: behind regions
    without a YIELD, which are BSSY.RECONVERGENT since 10.0."""
    at = {each.address: each for each in flow.reached}
    yields = any(each.opcode.startswith("YIELD") for each in flow.reached)
    meeting_blocks, open_ = set[int](), set[int]()
    for each in flow.reached:
        if each.opcode.startswith("BSSY"):
            place = int(each.operands[-1], 16)
            is_sure = "RECONVERGENT" in each.opcode or not yields
            (meeting_blocks if is_sure or _stays_converged(flow, at, each, place) else open_).add(
                place
            )
    return meeting_blocks - open_


def _stays_converged(
    flow: Flow, at: Mapping[int, Instruction], start: Instruction, place: int
) -> bool:
    """Return whether lanes stay together between a BSSY and its reconvergence point."""
    visited, pending = {place}, [start.address + CODE_BYTES]
    while pending:
        address = pending.pop()
        if address in visited or address not in at:
            continue
        if at[address].opcode.startswith(_GIVES_WAY):
            return False
        visited.add(address)
        pending += _successors(flow, at[address])
    return True


def _with_breaks(flow: Flow, before: Mapping[int, Barriers]) -> Mapping[int, Barriers]:
    """Return the barriers that are set before each instruction, without those that it leaves at
    once by a BREAK."""
    broken: dict[int, frozenset[str]] = {}
    for each in reversed(flow.reached):
        if each.opcode.startswith("BREAK") and not each.guard:
            after = broken.get(each.address + CODE_BYTES, frozenset())
            broken[each.address] = after | {each.operands[-1]}
    return {at: _without(each, broken.get(at, ())) for at, each in before.items()}


def _calls(flow: Flow, end: Instruction | None) -> bool:
    return end is not None and flow.calls_subroutine(end)


def _joined(
    kernel: Kernel, block: BasicBlock, addresses: list[int], before: Mapping[int, Barriers],
    block_at: Mapping[int, int], flow: Flow, end: Instruction | None,
) -> BasicBlock:  # fmt: skip
    barriers = before.get(addresses[block.last - 1], ())
    places = [block_at.get(place, NO_BLOCK) for _, place in barriers]
    if len(set(block.successors)) < 2:
        called = _calls(flow, end) and NO_BLOCK not in places
        return replace(block, outer_joins=tuple(places)) if called else block
    apart = not barriers and addresses[block.last - 1] in flow.inside_subroutines
    if apart or (end is not None and end.opcode.startswith("RET")):
        return replace(block, join=NO_BLOCK, outer_joins=(), leaving=NO_BLOCK)
    (span,) = kernel.functions
    if not barriers:
        meets = kernel.blocks[block.join].first if 0 <= block.join < len(kernel.blocks) else -1
        if meets >= 0 and kernel.instructions[meets].opcode == "exit":  # each leaves by itself
            return replace(block, join=span.exit, outer_joins=(), leaving=NO_BLOCK)
        return block
    if NO_BLOCK in places:
        return block
    stays: dict[int, int] = {}  # how many barriers lanes still have there
    for successor in block.successors:
        if kernel.instructions[kernel.blocks[successor].first].opcode == "trap":
            continue
        left = before.get(addresses[kernel.blocks[successor].first], ())
        count = len(_common(left, barriers))
        if count < len(barriers) and successor != places[-1]:
            stays[successor] = count
    if not stays:
        return replace(block, join=places[-1], outer_joins=tuple(places[:-1]), leaving=NO_BLOCK)
    leaving, count = next(iter(stays.items()))
    count = min(stays.values()) if len(block.successors) > 2 else count
    join = places[count - 1] if count else span.exit
    chain = tuple(places) if count else (span.exit, *places)
    return replace(
        block, join=join, outer_joins=chain, leaving=leaving, leaving_sides=frozenset(stays)
    )
