"""Where lanes meet again of which some go another way: break, continue, return, goto, `a && b`.

The immediate post-dominator of such a branch may lie far behind: lanes that parted there would run
all code before it apart. A chip lets those meet sooner that do not go the other way. Its assembler
gives a branch two convergence barriers: one at the post-dominator, and one at the last block before
it at which ways meet that all come from the branch; lanes that go another way are taken out of
that barrier (BSSY, BSYNC and BREAK in machine code). Lanes that leave a loop meet behind it.
Found by looking at what ptxas makes, and held by tests/validate/counters/loops.cu and ways.cu.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ...base.dataclass import dataclass
from .digraph import (
    Graph,
    cycles,
    immediate_dominators,
    order_components,
    reachable,
    reverse,
    subgraph,
)
from .kernel import NO_BLOCK

"""Loops in loops in loops."""


def immediate_post_dominators(
    successors: Mapping[int, Sequence[int]], leaving: Sequence[int], exit_: int
) -> dict[int, int]:
    """Return for each block the one at which all ways from it to the end meet first.

    `successors` has every block of the function as a key, `leaving` are the blocks that end in an
    unguarded `ret` or `exit`, `exit_` is the number of the virtual exit. A block from which no way
    leads to the exit has no answer of its own: the last block of an endless loop is joined to the
    exit, and what leads to a trap only meets there too. Others do not see a trap: its lanes end the
    launch, so `if (bad) trap` must not keep the good lanes from meeting.
    """
    graph = {block: list(after) for block, after in successors.items()} | {exit_: []}
    for block in leaving:
        graph[block].append(exit_)
    for block in list(_ends_of_endless(graph, exit_)):
        graph[block].append(exit_)
    joins = immediate_dominators(reverse(graph), exit_)
    return {block: joins.get(block, exit_) for block in successors}


def _ends_of_endless(graph: Graph, exit_: int) -> Iterator[int]:
    """Yield the last block of each innermost loop that nothing but a trap leaves."""
    stuck = subgraph(graph, set(graph) - reachable(reverse(graph), exit_))
    loops = list(cycles(stuck))
    order = run_order(graph, min(graph)) if loops else []
    for blocks in loops:
        further = reachable(stuck, min(blocks)) - blocks
        if not any(further & other for other in loops):
            yield max(blocks, key=order.index)


def run_order(graph: Graph, entry: int) -> list[int]:
    """Return the blocks in reverse post-order with loops kept together.

    Every block comes before its successors, but for the edges back to the head of a loop; the
    blocks of a loop come before what follows it, so that lanes which left early wait for the
    others (of the many reverse post-orders, the one of Bourdoncle's weak topological order).
    Ties go by number, and blocks that cannot be reached come last. What is nested deeper than
    code is written (a tangle of jumps, then) is left in order of number.
    """
    reached, before = reachable(graph, entry), reverse(graph)
    order: list[int] = []
    pending: list[tuple[int, set[int]]] = [(0, reached)]
    while pending:
        depth, blocks = pending.pop()
        if len(blocks) == 1 or depth > _DEEPEST:
            order += sorted(blocks)
        else:
            inner = _open_loops(graph, before, blocks, entry)
            pending += ((depth + 1, part) for part in reversed(inner))
    return order + sorted(block for block in graph if block not in reached)


def _open_loops(graph: Graph, before: Graph, blocks: set[int], entry: int) -> list[set[int]]:
    """Put `blocks` in order, but of each loop among them only the head, before all its rest."""
    order: list[set[int]] = []
    for loop in order_components(subgraph(graph, blocks)):
        entered = {n for n in loop if n == entry or any(b not in loop for b in before[n])}
        head = min(entered or loop)
        order += [{head}, loop - {head}] if len(loop) > 1 else [loop]
    return order


_DEEPEST = 20
"""Loops in loops in loops."""

_END = -1
"""Behind all blocks of a region."""


@dataclass(frozen=True, slots=True)
class Parting:
    """Where lanes meet that part at a branch, if not at its post-dominator: see BasicBlock."""

    join: int
    outer_joins: tuple[int, ...]
    leaving: int = NO_BLOCK


@dataclass(frozen=True, slots=True)
class Kinds:
    """What kind of blocks a function has: `switches` end in a `brx.idx`, `returns` hold a `ret`
    alone. `is_entry`: it is a kernel, no function that is called."""

    switches: Collection[int]
    returns: Collection[int]
    is_entry: bool


@dataclass(eq=False, slots=True)
class _Region:
    """Blocks between a branch and where its lanes meet, or a loop (`meet` is where lanes meet that
    have left it, found later).

    Lanes may go elsewhere from inside, but all are together again at `last`. `around` is the
    smallest region that has it in it, if lanes may leave that one, too, before they come to `last`.
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
        """Whether lanes at a block are still in here, or at its end."""
        return block in self.blocks or (block == self.meet and not self.is_loop)

    def all_go_through(self, block: int) -> Iterator[int]:
        """Yield the blocks through which all ways from one lead to the end of the region, or to the
        next turn of the loop."""
        end = self.head if self.is_loop else self.meet
        if self._meets is None:
            ways: dict[int, list[int]] = {_END: []}
            for one in self.blocks:
                ways[one] = [_END if o == end else o for o in self.flow[one] if self.leads(o)]
            self._meets = immediate_dominators(reverse(ways), _END)
        return (end if meet == _END else meet for meet in _climb(block, self._meets))

    def chain(self) -> tuple[int, ...]:
        """Return where those meet that are in here or have left, outermost first."""
        beyond = self.around.chain() if self.around else (self.last,)
        return beyond if beyond[-1] == self.meet else (*beyond, self.meet)

    def goes_to(self, block: int) -> int:
        """Return where lanes that left for a block meet those that come from here."""
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
    """Say for branches where their lanes meet, if not simply at the post-dominator in `joins`.

    `leaving` are the blocks that end the function, at `exit_`; `ranks` say which block comes first.
    What is no structured program is left as it is: loops that are entered at several places, and
    regions that a switch leaves; as is what meets at the exit only, unless that ends the kernel:
    what returns from a call is told by the split that the call made.
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
        smallest |= dict.fromkeys(region.blocks, region)
    block_partings: dict[int, Parting] = {}
    for block, region in smallest.items():
        after = flow[block]
        if len(set(after)) < 2 or joins[block] in region.all_go_through(block):
            continue
        chain = region.chain()
        exits = [other for other in after if not region.leads(other)]
        if exits and len(chain) > 1:
            block_partings[block] = Parting(region.goes_to(exits[0]), chain, exits[0])
        elif chain != (joins[block],):
            block_partings[block] = Parting(chain[-1], chain[:-1])
    return block_partings


def _flow(
    successors: Mapping[int, Sequence[int]], leaving: Iterable[int], exit_: int
) -> dict[int, list[int]]:
    """Return the graph of what is reached and ends well, with the exit: a trap meets nobody."""
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
    """Return the loops, outer ones first, and the blocks of those that are entered at several
    places."""
    before = reverse(flow)
    regions, tangle = list[_Region](), set[int]()
    pending: list[tuple[int, Graph]] = [(0, flow)]
    while pending:
        depth, graph = pending.pop(0)
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
    """Yield from each branch to the last block before its post-dominator where its ways meet."""
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
    """Yield blocks to which several others lead, with these; the head of a loop twice, with those
    outside and those inside."""
    heads = {loop.head: loop.blocks for loop in loops}
    for block, ways in before.items():
        inside = [way for way in ways if way in heads.get(block, ())]
        for some in ([way for way in ways if way not in inside], inside):
            if len(set(some)) > 1:
                yield block, some


def _common(blocks: Iterable[int], first: Mapping[int, int]) -> int:
    """Return the last block through which all ways to some blocks go."""
    chains = [list(_climb(block, first)) for block in blocks]
    return next(b for b in chains[0] if all(b in chain for chain in chains))


def _climb(block: int, tree: Mapping[int, int]) -> Iterator[int]:
    """Yield a block and those that dominate it, the next one first."""
    yield block
    while tree[block] != block:
        block = tree[block]
        yield block


def _between(owner: int, ways: Iterable[int], before: Graph) -> frozenset[int]:
    """Return the blocks on ways from a branch to some blocks that it dominates."""
    blocks, pending = {owner}, list(ways)
    while pending:
        block = pending.pop()
        if block not in blocks:
            blocks.add(block)
            pending += before[block]
    return frozenset(blocks)


def _is_kept(region: _Region, loops: list[_Region], kinds: Kinds) -> bool:
    """Whether the assembler has a barrier for a region: not if a switch leaves it, or a loop inside
    has a way out to its end and another one to somewhere else, but to the end of the function; nor
    for `if (a || b)` without an `else`, with branches alone whose other way is the next barrier."""
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
    """Return the regions that are in one another or have no block in common, small ones first.

    Lanes meet at the end of a region while they are still in those around it: they have no way
    back into these.
    """
    nest: list[_Region] = []
    for region in sorted(regions, key=lambda r: (not r.is_loop, len(r.blocks))):
        if all(_fit(region, other) for other in nest):
            nest.append(region)
    return sorted(nest, key=lambda r: (len(r.blocks), r.is_loop))


def _fit(one: _Region, other: _Region) -> bool:
    """Whether one of two regions is in the other, its end too, or they have no block in common."""
    inner, outer = sorted((one, other), key=_size)
    if not inner.blocks <= outer.blocks:
        return not inner.blocks & outer.blocks
    return inner.is_loop or inner.blocks == outer.blocks or outer.leads(inner.meet)


def _put_around(region: _Region, larger: list[_Region]) -> None:
    """Say what a region lies in, and where lanes meet that leave a loop."""
    around = next((r for r in larger if r.blocks >= region.blocks), None)
    if around is None or region.last in around.all_go_through(region.head):
        region.meet = region.last if region.is_loop else region.meet
        return
    region.around = around
    if region.is_loop:
        region.meet = _outside(region.blocks, around.all_go_through(region.head))


def _outside(blocks: Collection[int], through: Iterable[int]) -> int:
    """Return the first of some blocks that is outside of others."""
    return next(block for block in through if block not in blocks)
