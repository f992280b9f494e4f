"""Random flow graphs as PTX: each lane walks through one by its own number, and leaves that.

On its way it keeps other values in a few registers, some for a moment only, and leaves them, too.

What a lane should leave is walked here, lane by lane, with Python's integers: no lane depends on
another, however they part and meet.
"""

from dataclasses import dataclass, replace
from random import Random

MASK = (1 << 32) - 1
FACTOR, STEP = 1664525, 1013904223
FUEL = 12
"""Turns backwards that a lane takes at most."""
KEPT = 2
"""Registers beside the number by which a lane goes."""

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 seed)
{
    .reg .pred %p, %q;
    .reg .b32 %x, %y, %fuel, %t, %seed, %z<2>;
    .reg .b64 %out, %at;
    ld.param.u64 %out, [out];
    ld.param.u32 %seed, [seed];
    mov.u32 %t, %tid.x;
    mad.lo.u32 %x, %t, 2654435761, %seed;
    mov.u32 %fuel, 0;
    mov.u32 %z0, 0;
    mov.u32 %z1, 0;
"""


@dataclass(frozen=True)
class Node:
    """A block: it goes to `taken` if the bits `bits` from `shift` on of its number are all 0, else
    to `other`. A way to no later block takes fuel; -1 is the end."""

    taken: int
    other: int
    shift: int
    bits: int
    moves: tuple[tuple[int, int], ...] = ()
    """Registers that take the number (from -1), or to which another one is added, in order."""


def make_graph(chance: Random) -> list[Node]:
    """Return a graph; in some all ways lead forwards."""
    size = chance.randrange(4, 22)
    back = chance.choice([0.0, 0.0, 0.15, 0.4])
    near = chance.choice([3, 8, size])

    def way(number: int) -> int:
        if chance.random() < back:
            return chance.randrange(0, number + 1)
        later = number + chance.randrange(1, near + 1)
        return later if later < size else -1

    nodes = []
    for number in range(size):
        other = number + 1 if chance.random() < 0.6 else way(number)
        other = other if other < size else -1
        taken = other if chance.random() < 0.2 else way(number)
        nodes.append(Node(taken, other, chance.randrange(20), chance.randrange(1, 4)))
    return [replace(node, moves=_moves(chance)) for node in nodes]


def _moves(chance: Random) -> tuple[tuple[int, int], ...]:
    count = chance.choice([0, 1, 2, 4])
    return tuple((chance.randrange(KEPT), chance.choice([-1, -1, 0, 1])) for _ in range(count))


def to_ptx(nodes: list[Node]) -> str:
    """Return the kernel that walks through a graph."""
    lines = [HEAD]
    for number, node in enumerate(nodes):
        mask = ((1 << node.bits) - 1) << node.shift
        lines += [
            f"B{number}:",
            f"    mad.lo.u32 %x, %x, {FACTOR}, {STEP + number};",
            f"    and.b32 %y, %x, {mask};",
            "    setp.eq.u32 %p, %y, 0;",
            *(_move(to, source) for to, source in node.moves),
        ]
        if node.taken == node.other:
            lines += _go(number, node.taken)
            continue
        if 0 <= node.taken <= number:
            lines += [
                f"    @!%p bra A{number};", *_go(number, node.taken), f"A{number}:",
            ]  # fmt: skip
        else:
            lines.append(f"    @%p bra {_name(node.taken)};")
        lines += _go(number, node.other)
    lines.append("END:\n    mul.wide.u32 %at, %t, 4;\n    add.s64 %at, %out, %at;")
    lines += [f"    mad.lo.u32 %x, %x, {FACTOR}, %z{k};" for k in range(KEPT)]
    return "\n".join([*lines, "    st.global.u32 [%at], %x;\n    ret;\n}\n"])


def _move(to: int, source: int) -> str:
    return f"    mov.u32 %z{to}, %x;" if source < 0 else f"    add.u32 %z{to}, %z{to}, %z{source};"


def _name(target: int) -> str:
    return "END" if target < 0 else f"B{target}"


def _go(number: int, target: int) -> list[str]:
    if target == number + 1:
        return []
    if target > number or target < 0:
        return [f"    bra {_name(target)};"]
    return [
        "    add.u32 %fuel, %fuel, 1;",
        f"    setp.gt.u32 %q, %fuel, {FUEL};",
        "    @%q bra END;",
        f"    bra {_name(target)};",
    ]


def walk(nodes: list[Node], lane: int, seed: int) -> int:
    """Return what a lane leaves."""
    x, number, fuel, kept = (lane * 2654435761 + seed) & MASK, 0, 0, [0] * KEPT
    while number >= 0:
        node = nodes[number]
        x = (x * FACTOR + STEP + number) & MASK
        for to, source in node.moves:
            kept[to] = x if source < 0 else (kept[to] + kept[source]) & MASK
        way = node.other if x >> node.shift & ((1 << node.bits) - 1) else node.taken
        if 0 <= way <= number:
            fuel += 1
            if fuel > FUEL:
                break
        number = way
    for value in kept:
        x = (x * FACTOR + value) & MASK
    return x
