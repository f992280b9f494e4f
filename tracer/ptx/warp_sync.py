"""Find warp-synchronous instructions at which divergent lanes can meet.

A `.sync` instruction waits until all lanes of its mask execute one with the same modifiers and
mask: the same instruction or, in a divergent warp, another one (PTX ISA, shfl.sync). Lanes from two
sides of a branch can meet if each side has a matching instruction, or if both sides reach the same
one before they reconverge: a compiler may rearrange control flow so that lanes skip it.

    if (p) v = __shfl_sync(15, x, 0);   // lanes 0 1
    else   v = __shfl_sync(15, y, 0);   // lanes 2 3: the mask 15 makes both sides wait
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TypeAlias

from .digraph import spread
from .kernel import Immediate, Instruction, Operand, Register, Special
from .opcodes import destinations, sources
from .reconvergence import immediate_post_dominators

_MASK: Mapping[str, int] = {"shfl": 4, "vote": 2, "match": 2, "redux": 2, "bar": 0}
"""Index of the mask operand of each opcode."""

_APART = frozenset({"ld", "atom", "shfl", "match", "redux", "activemask", "elect", "call"})
"""Opcodes whose results may differ between lanes."""

_ALL = 0xFFFF_FFFF

Key: TypeAlias = tuple[str, tuple[str, ...]]


def sync_key(instruction: Instruction) -> Key | None:
    """Return the key that must be equal for lanes to meet; None if no lanes meet there."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode not in _MASK or "sync" not in modifiers or instruction.guard is not None:
        return None
    if opcode == "bar" and "warp" not in modifiers:
        return None
    return opcode, modifiers


def mask_of(instruction: Instruction) -> Operand:
    """Return the operand that holds the lane mask."""
    return instruction.operands[_MASK[instruction.opcode]]


def blocking_places(instructions: Sequence[Instruction]) -> list[int]:
    """Return the instructions at which lanes may wait for divergent lanes."""
    here = _here(instructions)
    return [k for k, instruction in enumerate(instructions) if _may_block(instruction, here)]


def find_warp_syncs(
    instructions: Sequence[Instruction],
    spans: Sequence[tuple[int, int]],
    after: Mapping[int, tuple[int, ...]],
    leaving: Sequence[int],
) -> frozenset[int]:
    """Return the instructions at which divergent lanes can meet.

    `spans` are the first and last (exclusive) instructions of the basic blocks, `after` their
    successors; `leaving` are the blocks that end in a return.
    """
    if not any(sync_key(instruction) for instruction in instructions):
        return frozenset()
    waiting = set(blocking_places(instructions))
    keyed = {block: [k for k in range(*span) if k in waiting] for block, span in enumerate(spans)}
    masks = {
        k: _possible_lanes(mask_of(instructions[k]), instructions)
        for each in keyed.values()
        for k in each
    }
    joins = immediate_post_dominators(after, leaving, len(spans))
    apart = spread((destinations(i), sources(i), _differs(i)) for i in instructions)
    meeting_pcs: set[int] = set()
    for block, sides in after.items():
        guard = instructions[spans[block][1] - 1].guard
        if len(sides) < 2 or (guard is not None and guard.register not in apart):
            continue
        regions = [_region(after, side, joins[block]) for side in sides]
        for number, region in enumerate(regions):
            # A uniform guard sends all lanes one way, so only guards that vary between lanes count.
            # Blocks on one side only need a match on the other; blocks on both sides before the
            # join can meet by themselves.
            others = set().union(*regions[:number], *regions[number + 1 :])
            mine = [k for b in region - others for k in keyed[b]]
            theirs = [k for b in others - region for k in keyed[b]]
            meeting_pcs.update(_matches(instructions, masks, mine, theirs))
            meeting_pcs.update(k for b in region & others for k in keyed[b])
    return frozenset(meeting_pcs)


def _region(after: Mapping[int, tuple[int, ...]], first: int, join: int) -> set[int]:
    """Return the blocks reachable from `first` before `join`."""
    reached: set[int] = set()
    pending = [first]
    while pending:
        block = pending.pop()
        if block != join and block not in reached:
            reached.add(block)
            pending += after[block]
    return reached


def _possible_lanes(mask: Operand, instructions: Sequence[Instruction]) -> int:
    """Return the lanes that a mask can name: a constant, possibly moved to a register, else all."""
    if isinstance(mask, Register):
        makers = [i for i in instructions if mask in destinations(i)]
        mask = makers[0].operands[1] if len(makers) == 1 and makers[0].opcode == "mov" else mask
    return mask.bits & _ALL if isinstance(mask, Immediate) else _ALL


def _here(instructions: Sequence[Instruction]) -> set[Register]:
    """Return the registers with masks that only name lanes that were active together."""
    makers: dict[Register, list[Instruction]] = {}
    for instruction in instructions:
        for register in destinations(instruction):
            makers.setdefault(register, []).append(instruction)
    here: set[Register] = set()
    grows = True
    # Least fixed point: a register joins once all its definitions are known to be local.
    while grows:
        before = len(here)
        here |= {
            register
            for register, definitions in makers.items()
            if all(_is_here(i, here) for i in definitions)
        }
        grows = len(here) > before
    return here


def _may_block(instruction: Instruction, here: Set[Register]) -> bool:
    """Return True if lanes may wait there: the mask may name lanes that are elsewhere."""
    return sync_key(instruction) is not None and mask_of(instruction) not in here


def _is_here(instruction: Instruction, here: Set[Register]) -> bool:
    opcode, read = instruction.opcode, sources(instruction)
    if opcode in ("and", "mov"):
        return any(register in here for register in read)
    if opcode in ("match", "vote") and sync_key(instruction) is not None:
        return mask_of(instruction) in here
    return opcode == "activemask"


def _matches(
    instructions: Sequence[Instruction],
    masks: Mapping[int, int],
    mine: Sequence[int],
    theirs: Sequence[int],
) -> Iterator[int]:
    for k in mine:
        key = sync_key(instructions[k])
        if any(sync_key(instructions[o]) == key and masks[o] & masks[k] for o in theirs):
            yield k


def _differs(instruction: Instruction) -> bool:
    if instruction.opcode in _APART:
        return not (instruction.opcode == "ld" and instruction.space in ("param", "const"))
    specials = [o.name for o in instruction.operands if isinstance(o, Special)]
    return any(name.startswith(("%tid", "%lane")) for name in specials)
