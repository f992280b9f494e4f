"""Random kernels as data: what threads do by themselves, and what they do together."""

from dataclasses import dataclass, field
from typing import TypeAlias

from fuzz.instruction import Form

Operand: TypeAlias = str | int
"""A register like `r3`, or a number (of a float its bits)."""

COUNTS = {"r": 6, "d": 4, "h": 3, "f": 4, "g": 3, "p": 4}
"""Registers of each letter."""

WORDS = 8
"""Words of local memory that a thread has, and cells that all threads update."""


@dataclass(frozen=True)
class Compute:
    """`@guard form result, sources`; a guard is `p1` or `!p1`, or empty."""

    form: Form
    result: str
    sources: tuple[Operand, ...]
    guard: str = ""


@dataclass(frozen=True)
class Local:
    """Store a word to the place that a register chooses, or load it."""

    register: str
    place: str
    stores: bool
    guard: str = ""


@dataclass(frozen=True)
class Update:
    """Update the cell that a register chooses; all updates of a kernel are of one kind."""

    value: str
    place: str
    guard: str = ""


@dataclass(frozen=True)
class Branch:
    """If the guard holds one body, else the other."""

    guard: str
    body: tuple["Statement", ...]
    other: tuple["Statement", ...] = ()


@dataclass(frozen=True)
class Loop:
    """Go through the body as often as the low bits of a register say; `leave` ends it early.

    With `checks_last` at least once.
    """

    times: str
    bits: int
    body: tuple["Statement", ...]
    leave: str = ""
    checks_last: bool = False


@dataclass(frozen=True)
class Switch:
    """Jump to one of the bodies by the low bits of a register, and go on behind it or into the
    next."""

    chosen: str
    bodies: tuple[tuple["Statement", ...], ...]
    falls_through: bool = False


@dataclass(frozen=True)
class Call:
    """`result = function(first, second)`, of 32 bits each."""

    function: int
    result: str
    sources: tuple[str, str]
    guard: str = ""


@dataclass(frozen=True)
class Graph:
    """Basic blocks that branch anywhere; each entry costs fuel, and without it the end is next.

    A block is its statements, the guard of its branch, and the numbers of two blocks.
    """

    fuel: int
    blocks: tuple[tuple[tuple["Statement", ...], str, int, int], ...]


@dataclass(frozen=True)
class Leave:
    """End the thread where the guard holds; nothing that lanes do together follows."""

    guard: str


Statement: TypeAlias = Compute | Local | Update | Branch | Loop | Switch | Call | Graph | Leave


@dataclass(frozen=True)
class Alone:
    """What each thread does by itself."""

    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Exchange:
    """Each thread stores a word to shared memory, all meet, and each loads another's."""

    stored: str
    loaded: str
    place: str
    factor: int
    barrier: int = 0


@dataclass(frozen=True)
class Shuffle:
    """`result = the source of another lane`; `valid` says whether there was one."""

    mode: str
    result: str
    valid: str
    source: str
    step: Operand
    segment: int


@dataclass(frozen=True)
class Vote:
    """`vote.sync`, or `activemask`, `redux.sync`, `match.sync`, `bar.red`: `kind` says which."""

    kind: str
    result: str
    source: str


@dataclass(frozen=True)
class Uniformly:
    """What a block does together `times` times, or in every second block only."""

    body: tuple["Together", ...]
    times: int = 1
    odd_blocks: bool = False


Together: TypeAlias = Alone | Exchange | Shuffle | Vote | Uniformly


@dataclass(frozen=True)
class Function:
    """A function of two words; a recursive one calls itself with its first argument one less.

    It has registers of its own, `r0` and `r1` its arguments and the result in `r2`.
    """

    body: tuple[Statement, ...]
    is_recursive: bool = False


@dataclass(frozen=True)
class Program:
    """A kernel, its functions, and its launch."""

    body: tuple[Together, ...]
    functions: tuple[Function, ...] = ()
    blocks: int = 1
    threads: int = 32
    update: str = "add"
    seed: int = 0
    tail: tuple[Statement, ...] = field(default=())
    """What threads do last; it may leave."""
