"""Find the reconvergence points of branches: break, continue, return, goto, `a && b`.

The default reconvergence point is the immediate post-dominator. After a break, continue or return
it can lie far behind the branch, and lanes would run all code up to it divergently. Hardware
reconverges the other lanes earlier: the assembler emits two convergence barriers there, one
at the post-dominator, and one at the last block before it where paths merge that all come from the
branch. Lanes that leave early are removed from the second barrier (BSSY, BSYNC and BREAK in machine
code). Lanes that leave a loop reconverge behind it. These rules come from ptxas output;
tests/validate/counters/loops.cu and ways.cu verify them.

    while (p) {        // lanes  0 1 2 3
      if (a) break;    //        x x . .   0 and 1 leave the loop
      if (b) f();      //            x .   2 and 3 reconverge here, without 0 and 1
    }
    g();               //        x x x x   the post-dominator of `if (a)`

`find_warp_syncs` finds the warp-synchronous instructions at which divergent lanes can meet. A
`.sync` instruction waits until all lanes of its mask execute one with the same modifiers and mask:
the same instruction or, in a divergent warp, another one (PTX ISA, shfl.sync). Lanes from two sides
of a branch can meet if each side has a matching instruction, or if both sides reach the same one
before they reconverge: a compiler may rearrange control flow so that lanes skip it.

    if (p) v = __shfl_sync(15, x, 0);   // lanes 0 1
    else   v = __shfl_sync(15, y, 0);   // lanes 2 3: the mask 15 makes both sides wait
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from .digraph import (
    Graph,
    cycles,
    immediate_dominators,
    order_components,
    reachable,
    reverse,
    spread,
    subgraph,
)
from .kernel import NO_BLOCK, Immediate, Instruction, Operand, Register, Special
from .opcodes import destinations, sources


def immediate_post_dominators(
    successors: Mapping[int, Sequence[int]], leaving: Sequence[int], exit_: int
) -> dict[int, int]:
    """Return the immediate post-dominator of each block.

    `successors` has every block of the function as a key, `leaving` are the blocks that end in an
    unguarded `ret` or `exit`, `exit_` is the number of the virtual exit. A block that cannot reach
    the exit has no post-dominator: the last block of an endless loop gets an edge to the exit, and
    a block that leads only to a trap reconverges at the exit. Other blocks ignore paths to a trap:
    its lanes end the launch, so `if (bad) trap` must not delay reconvergence of the good lanes.
    """
    graph = {block: list(after) for block, after in successors.items()} | {exit_: []}
    for block in leaving:
        graph[block].append(exit_)
    for block in list(_ends_of_endless(graph, exit_)):
        graph[block].append(exit_)
    joins = immediate_dominators(reverse(graph), exit_)
    return {block: joins.get(block, exit_) for block in successors}


def _ends_of_endless(graph: Graph, exit_: int) -> Iterator[int]:
    """Yield the last block of each innermost endless loop; a trap does not count as its exit."""
    stuck = subgraph(graph, set(graph) - reachable(reverse(graph), exit_))
    loops = list(cycles(stuck))
    order = run_order(graph, min(graph)) if loops else []
    for blocks in loops:
        further = reachable(stuck, min(blocks)) - blocks
        if not any(further & other for other in loops):
            yield max(blocks, key=order.index)


def run_order(graph: Graph, entry: int) -> list[int]:
    """Return the blocks in reverse post-order with the blocks of a loop contiguous.

    A block precedes its successors, except along back edges. The blocks of a loop precede the code
    behind it, so that lanes that leave the loop early wait for the others. Of the many reverse
    post-orders this is the one of Bourdoncle's weak topological order. Ties go by number;
    unreachable blocks come last. Components nested deeper than _DEEPEST (irreducible jumps) stay in
    order of number.
    """
    reached, before = reachable(graph, entry), reverse(graph)
    order: list[int] = []
    pending: list[tuple[int, set[int]]] = [(0, reached)]
    while pending:
        depth, blocks = pending.pop()
        # A component without its head is acyclic again, but for inner loops: split those the same
        # way. A stack instead of recursion, pushed in reverse, so that components pop in order.
        if len(blocks) == 1 or depth > _DEEPEST:
            order += sorted(blocks)
        else:
            inner = _open_loops(graph, before, blocks, entry)
            pending += ((depth + 1, part) for part in reversed(inner))
    return order + sorted(block for block in graph if block not in reached)


def _open_loops(graph: Graph, before: Graph, blocks: set[int], entry: int) -> list[set[int]]:
    """Order `blocks` topologically, each loop as its head and then the set of its other blocks."""
    order: list[set[int]] = []
    for loop in order_components(subgraph(graph, blocks)):
        entered = {n for n in loop if n == entry or any(b not in loop for b in before[n])}
        head = min(entered or loop)
        order += [{head}, loop - {head}] if len(loop) > 1 else [loop]
    return order


_DEEPEST = 20
"""Maximum loop nesting depth that is analysed."""

_END = -1
"""Virtual block behind all blocks of a region."""


@dataclass(frozen=True, slots=True)
class Parting:
    """Reconvergence of a branch that does not simply use its post-dominator; see BasicBlock."""

    join: int
    outer_joins: tuple[int, ...]
    leaving: int = NO_BLOCK


@dataclass(frozen=True, slots=True)
class Kinds:
    """Block kinds of a function.

    `switches` end in a `brx.idx`; `returns` hold only a `ret`. `is_entry` is True for a kernel and
    False for a called function.
    """

    switches: Collection[int]
    returns: Collection[int]
    is_entry: bool


@dataclass(eq=False, slots=True)
class _Region:
    """A single-entry region: the blocks between a branch and its reconvergence point, or a loop.

    `meet` is the reconvergence point; that of a loop, for lanes that left it, is set later. Lanes
    may leave the region from inside, but all have reconverged at `last`. `around` is the smallest
    region that contains this one, if lanes may leave that one, too, before they reach `last`.
    """

    flow: Mapping[int, Sequence[int]]
    blocks: frozenset[int]
    head: int
    last: int
    meet: int = NO_BLOCK
    is_loop: bool = False
    around: "_Region | None" = None
    _meets: dict[int, int] | None = None

    def leads(self, block: int) -> bool:
        """Return True if lanes at `block` are still inside the region or at its end."""
        return block in self.blocks or (block == self.meet and not self.is_loop)

    def all_go_through(self, block: int) -> Iterator[int]:
        """Yield the post-dominators of `block` within the region.

        All paths from `block` to the end of the region, or to the next iteration of the loop, pass
        them.
        """
        end = self.head if self.is_loop else self.meet
        if self._meets is None:
            # Cache the dominator tree of the reversed region. Edges out of it are dropped: they
            # belong to lanes that leave, which must not delay those that stay.
            ways: dict[int, list[int]] = {_END: []}
            for one in self.blocks:
                ways[one] = [_END if o == end else o for o in self.flow[one] if self.leads(o)]
            self._meets = immediate_dominators(reverse(ways), _END)
        return (end if meet == _END else meet for meet in _climb(block, self._meets))

    def chain(self) -> tuple[int, ...]:
        """Return the reconvergence points of lanes of the region, outermost first."""
        beyond = self.around.chain() if self.around else (self.last,)
        return beyond if beyond[-1] == self.meet else (*beyond, self.meet)

    def goes_to(self, block: int) -> int:
        """Return the reconvergence point of lanes that leave the region for `block`."""
        if self.around is None:
            return self.last
        if self.around.leads(block):
            return self.meet if self.is_loop else self.around.chain()[-1]
        return self.around.goes_to(block)


def partings(
    successors: Mapping[int, Sequence[int]],
    leaving: Collection[int],
    joins: Mapping[int, int],
    ranks: Mapping[int, int],
    exit_: int,
    kinds: Kinds,
) -> dict[int, Parting]:
    """Return the reconvergence of the branches that do not use the post-dominator in `joins`.

    `leaving` are the blocks that end the function, at `exit_`; `ranks` give the order of blocks.
    Unstructured code keeps its post-dominators: loops with several entries, and regions that a
    switch leaves. So do regions that only reconverge at the exit, unless the exit ends the kernel:
    the stack entry of the call handles returning lanes.
    """
    flow = _flow(successors, leaving, exit_)
    loops, tangle = _loops(flow, joins)
    regions = [*_before_post_dominators(flow, loops, joins, ranks), *loops]
    nested = _nested(
        region
        for region in regions
        if (kinds.is_entry or region.last != exit_)
        and not region.blocks & tangle
        and _is_kept(region, loops, kinds)
    )
    smallest: dict[int, _Region] = {}
    for place, region in reversed(list(enumerate(nested))):
        _put_around(region, nested[place + 1 :])
        # From large to small, so that the smallest region around a block is assigned last, and so
        # that `around` of a region is complete before an inner region reads it.
        smallest |= dict.fromkeys(region.blocks, region)
    block_partings: dict[int, Parting] = {}
    for block, region in smallest.items():
        after = flow[block]
        if len(set(after)) < 2 or joins[block] in region.all_go_through(block):
            continue
        chain = region.chain()
        exits = [other for other in after if not region.leads(other)]
        # The post-dominator is already right if no lane can leave the region before it.
        if exits and len(chain) > 1:
            block_partings[block] = Parting(region.goes_to(exits[0]), chain, exits[0])
        elif chain != (joins[block],):
            block_partings[block] = Parting(chain[-1], chain[:-1])
    return block_partings


def _flow(
    successors: Mapping[int, Sequence[int]], leaving: Iterable[int], exit_: int
) -> dict[int, list[int]]:
    """Return the graph of reachable blocks that can reach the exit, with it: traps drop out."""
    graph = {block: list(after) for block, after in successors.items()} | {exit_: []}
    for block in leaving:
        graph[block].append(exit_)
    lives = reachable(graph, 0) & (reachable(reverse(graph), exit_) | {0})
    return {
        block: [o for o in after if o in lives] for block, after in graph.items() if block in lives
    }


def _loops(
    flow: Mapping[int, Sequence[int]], joins: Mapping[int, int]
) -> tuple[list[_Region], set[int]]:
    """Return the loops, outer ones first, and the blocks of irreducible (multi-entry) loops."""
    before = reverse(flow)
    regions, tangle = list[_Region](), set[int]()
    pending: list[tuple[int, Graph]] = [(0, flow)]
    while pending:
        depth, graph = pending.pop(0)
        # Removing the edges to a loop's head breaks it open: the cycles that remain are inner
        # loops.
        for blocks in cycles(graph):
            heads = [b for b in blocks if b == 0 or not blocks.issuperset(before[b])]
            if len(heads) > 1 or depth == _DEEPEST:
                tangle |= blocks
                continue
            last = _outside(blocks, _climb(heads[0], joins))
            regions.append(_Region(flow, frozenset(blocks), heads[0], last, is_loop=True))
            body_graph = {
                b: [o for o in graph[b] if o in blocks and o not in heads] for b in blocks
            }
            pending.append((depth + 1, body_graph))
    return regions, tangle


def _before_post_dominators(
    flow: Mapping[int, Sequence[int]],
    loops: list[_Region],
    joins: Mapping[int, int],
    ranks: Mapping[int, int],
) -> Iterator[_Region]:
    """Yield the region from each branch to the last merge block before its post-dominator."""
    before = reverse(flow)
    first = immediate_dominators(flow, 0)
    inner = {block: loop for loop in loops for block in loop.blocks}
    around = {
        loop.head: min((o for o in loops if o.blocks > loop.blocks), key=_size, default=None)
        for loop in loops
    }
    best_regions: dict[int, tuple[float, _Region | None]] = {}
    for block, ways in _merges(before, loops):
        owner = _common(ways, first)
        if len(set(flow[owner])) < 2 or block == joins[owner]:
            continue
        is_latch = block in around and inner[block].blocks.issuperset(ways)
        level = around[block] if block in around and not is_latch else inner.get(block)
        order, region = float("inf"), None  # behind the loop of the branch: after all inside
        if inner.get(owner) is level:
            order = len(ranks) if is_latch else ranks[block]
            blocks = _between(owner, ways, before)
            region = _Region(flow, blocks, owner, _outside(blocks, _climb(owner, joins)), block)
        if order > best_regions.get(owner, (-1, None))[0]:
            best_regions[owner] = order, region
    yield from (region for _, region in best_regions.values() if region)


def _merges(before: Graph, loops: list[_Region]) -> Iterator[tuple[int, list[int]]]:
    """Yield merge blocks with their predecessors; a loop head twice: entry edges and back edges."""
    heads = {loop.head: loop.blocks for loop in loops}
    for block, ways in before.items():
        inside = [way for way in ways if way in heads.get(block, ())]
        for some in ([way for way in ways if way not in inside], inside):
            if len(set(some)) > 1:
                yield block, some


def _common(blocks: Iterable[int], first: Mapping[int, int]) -> int:
    """Return the nearest common dominator of some blocks."""
    chains = [list(_climb(block, first)) for block in blocks]
    return next(b for b in chains[0] if all(b in chain for chain in chains))


def _climb(block: int, tree: Mapping[int, int]) -> Iterator[int]:
    """Yield a block and its dominators, nearest first."""
    yield block
    while tree[block] != block:
        block = tree[block]
        yield block


def _between(owner: int, ways: Iterable[int], before: Graph) -> frozenset[int]:
    """Return the blocks on paths from `owner` to blocks that it dominates."""
    blocks, pending = {owner}, list(ways)
    while pending:
        block = pending.pop()
        if block not in blocks:
            blocks.add(block)
            pending += before[block]
    return frozenset(blocks)


def _is_kept(region: _Region, loops: list[_Region], kinds: Kinds) -> bool:
    """Return True if the assembler emits a convergence barrier for a region.

    It emits none if a switch leaves the region, or if a loop inside has one exit to the region's
    end and another one elsewhere, except to the end of the function. Nor does it for `if (a || b)`
    without an `else`: a region of branches only, with the next barrier as the other target.
    """
    inside = [loop.blocks for loop in loops if loop.blocks < region.blocks and not region.is_loop]
    exits = [(b, o) for b in region.blocks for o in region.flow[b] if not region.leads(o)]
    by_switch = any(block in kinds.switches for block, _ in exits)
    of_loops = any(
        after not in kinds.returns and any(block in blocks for blocks in inside)
        for block, after in exits
    )
    conditions = (
        not region.is_loop
        and {after for _, after in exits} == {region.last}
        and all(len(set(region.flow[block])) > 1 for block in region.blocks)
    )
    return not (by_switch or of_loops or conditions)


def _size(region: _Region) -> int:
    return len(region.blocks)


def _nested(regions: Iterable[_Region]) -> list[_Region]:
    """Return regions that are pairwise nested or disjoint, small ones first.

    Lanes reconverge at the end of a region while they are still in the enclosing ones, since no
    path leads back into a region.
    """
    nest: list[_Region] = []
    for region in sorted(regions, key=lambda r: (not r.is_loop, len(r.blocks))):
        if all(_fit(region, other) for other in nest):
            nest.append(region)
    return sorted(nest, key=lambda r: (len(r.blocks), r.is_loop))


def _fit(one: _Region, other: _Region) -> bool:
    """Return True if the two regions are nested, including the inner one's end, or disjoint."""
    inner, outer = sorted((one, other), key=_size)
    if not inner.blocks <= outer.blocks:
        return not inner.blocks & outer.blocks
    return inner.is_loop or inner.blocks == outer.blocks or outer.leads(inner.meet)


def _put_around(region: _Region, larger: list[_Region]) -> None:
    """Set the enclosing region, and the reconvergence point of lanes that leave a loop."""
    around = next((r for r in larger if r.blocks >= region.blocks), None)
    if around is None or region.last in around.all_go_through(region.head):
        region.meet = region.last if region.is_loop else region.meet
        return
    region.around = around
    if region.is_loop:
        region.meet = _outside(region.blocks, around.all_go_through(region.head))


def _outside(blocks: Collection[int], through: Iterable[int]) -> int:
    """Return the first block of `through` that is not in `blocks`."""
    return next(block for block in through if block not in blocks)


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
    """Return the operand that holds the lane mask. Raises `CutraceError` if there is none."""
    place = _MASK[instruction.opcode]
    if len(instruction.operands) <= place:
        where = f"PTX line {instruction.ptx_line}: `{instruction.text}`"
        raise CutraceError(f"{where} has no lane mask")
    return instruction.operands[place]


def blocking_places(instructions: Sequence[Instruction]) -> list[int]:
    """Return the instructions at which lanes may wait for divergent lanes."""
    here = _here(instructions)
    return [k for k, instruction in enumerate(instructions) if _may_block(instruction, here)]


def find_warp_syncs(
    instructions: Sequence[Instruction],
    spans: Sequence[tuple[int, int]],
    after: Mapping[int, tuple[int, ...]],
    leaving: Sequence[int],
    joins: Mapping[int, int] | None = None,
) -> frozenset[int]:
    """Return the instructions at which divergent lanes can meet.

    `spans` are the first and last (exclusive) instructions of the basic blocks, `after` their
    successors; `leaving` are the blocks that end in a return. `joins` are the reconvergence points
    of branches where they are known: by default their post-dominators.
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
    joins = joins or immediate_post_dominators(after, leaving, len(spans))
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
