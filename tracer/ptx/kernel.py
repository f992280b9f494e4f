"""The parser's output and the engine's input: modules, functions, instructions, linked kernels.

All classes are frozen data. They use the PTX ISA's terms: state space, operand, guard predicate,
basic block. Register names keep their `%` and are unique only within a function.
"""

from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import TypeAlias

from ...base.dataclass import dataclass

TYPE_BYTES: Mapping[str, int] = {
    **{f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)},
    "b128": 16,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "tf32": 4,
    "f64": 8,
    "f16x2": 4,
    "f32x2": 8,
    "bf16x2": 4,
    "u16x2": 4,
    "s16x2": 4,
    "e4m3x2": 2,
    "e5m2x2": 2,
    **{"e2m1x2": 1, "e2m3x2": 2, "e3m2x2": 2, "ue8m0x2": 2, "e2m1x4": 2},
    **{"e4m3x4": 4, "e5m2x4": 4, "e2m3x4": 4, "e3m2x4": 4},
    "pred": 1,
}
"""Bytes per value of each fundamental PTX type (PTX ISA, 5.2.1 and 5.2.3)."""

SPACES = frozenset({"reg", "sreg", "const", "global", "local", "param", "shared", "tex"})
"""State spaces as modifiers spell them (PTX ISA, 5.1); `shared::cta` reads as `shared`."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's source, and the call sites it was inlined into, innermost first."""

    file: str
    line: int
    column: int = 0
    inlined_at: tuple["Location", ...] = ()


@dataclass(frozen=True, slots=True)
class Register:
    """A register, `%r1`, with its type, `b32`."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register with its component: `%tid.x`, `%laneid`, `%clock64`."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal. `bits` is the integer as written (possibly negative), or the IEEE bits.

    `kind` is `int`, `f32` (written 0f3F800000) or `f64` (written 0d... or as a decimal fraction).
    """

    bits: int
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable or function plus a byte offset: `mov.u64 %rd1, table+8`.

    `element` is the size of an element in bytes: `table[2]` is the address of the third one.
    """

    name: str
    offset: int = 0
    element: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Label:
    """A branch target, or the name of a `.branchtargets`/`.callprototype` list."""

    name: str


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`; base is None for a plain number."""

    base: Register | Symbol | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Bucket:
    """The operand `_`, the sink for an unused result."""


@dataclass(frozen=True, slots=True)
class Not:
    """`!%p1` as a source operand."""

    register: Register


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes or halves of a register or register pair: `%r1.b0`, `%r1.h10` (video instructions)."""

    register: Register
    selector: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two destinations `%p1|%p2` (setp, shfl, match); `{...}|%p1` for the texels of a texture."""

    first: "Register | Bucket | Vector"
    second: Register | Bucket


@dataclass(frozen=True, slots=True)
class Vector:
    """`{%r1, %r2}`."""

    elements: tuple["Operand", ...]


@dataclass(frozen=True, slots=True)
class TextureAddress:
    """`[texture, {coordinates}]`, or with a sampler: `[texture, sampler, {coordinates}]`."""

    texture: Register | Symbol
    coordinates: tuple["Operand", ...]
    sampler: Register | Symbol | None = None


@dataclass(frozen=True, slots=True)
class CallTarget:
    """All operands of a `call`: `call (returns), callee, (arguments), prototype`.

    Returns and arguments are names of `.param` variables of the calling function, or operands
    (old PTX passes registers directly). `prototype` names the `.callprototype`/`.calltargets`.
    """

    returns: tuple["Operand", ...]
    callee: Register | Symbol
    arguments: tuple["Operand", ...]
    prototype: str | None = None


@dataclass(frozen=True, slots=True)
class Sum:
    """`%r1+4`: an integer register and a number."""

    register: Register
    addend: int


Operand: TypeAlias = (
    Register
    | Special
    | Immediate
    | Symbol
    | Label
    | Address
    | Bucket
    | Not
    | Part
    | Pair
    | Vector
    | TextureAddress
    | CallTarget
    | Sum
)


@dataclass(frozen=True, slots=True)
class Guard:
    """`@%p1` or `@!%p1`."""

    register: Register
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """One PTX instruction: `@%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+8];`.

    `opcode` is `ld`, `modifiers` is `("global", "nc", "v2", "f32")`.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    text: str
    ptx_line: int
    location: Location | None = None

    @property
    def mnemonic(self) -> str:
        """The opcode with its modifiers, as it was written."""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def types(self) -> tuple[str, ...]:
        """Return the type modifiers in order: `("f32", "s32")` of `cvt.rn.f32.s32`."""
        return _types(self.modifiers)

    @property
    def type(self) -> str:
        """Return the last type modifier, or `""`."""
        types = _types(self.modifiers)
        return types[-1] if types else ""

    @property
    def space(self) -> str:
        """Return the state space among the modifiers, or `""` (generic, or none)."""
        return _space(self.modifiers)

    @property
    def vector(self) -> int:
        """Return the vector length of `.v2`, `.v4`, `.v8`; 1 by default."""
        for modifier in self.modifiers:
            if modifier in ("v2", "v4", "v8"):
                return int(modifier[1:])
        return 1


@lru_cache(maxsize=1024)
def _types(modifiers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(m for m in modifiers if m in TYPE_BYTES)


@lru_cache(maxsize=1024)
def _space(modifiers: tuple[str, ...]) -> str:
    heads = (modifier.partition("::")[0] for modifier in modifiers)
    return next((head for head in heads if head in SPACES), "")


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable or parameter.

    `initializer` may have fewer bytes than `size`: the rest is zero. A relocation is (byte offset,
    symbol, addend): it writes the symbol's generic or space address there, 8 bytes wide. `size` is
    0 for an `extern` shared array of open size. `element` is the declared type, `line` the PTX line
    (0: unknown). `offset` is a parameter's place where a cubin says it (None: by alignment).
    """

    name: str
    space: str
    element: str
    align: int
    size: int
    initializer: bytes = b""
    relocations: tuple[tuple[int, str, int], ...] = ()
    is_extern: bool = False
    pointer_space: str | None = None
    line: int = field(default=0, compare=False)
    is_managed: bool = False
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """A parsed `.entry` or `.func`: instructions in text order, labels resolved to their indices.

    A name declared in inner braces ends in `@N`, where N numbers the brace pair (`param0@2`).
    `registers` are those declared individually, and those of a range that an instruction uses.
    `branch_targets` also holds `.calltargets` (function names) and `.callprototype` (empty). The
    parser appends a `ret` to a body that falls through its closing brace.
    """

    name: str
    is_entry: bool
    returns: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    registers: Mapping[str, str]
    variables: tuple[Variable, ...]
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    branch_targets: Mapping[str, tuple[str, ...]]
    directives: Mapping[str, tuple[int, ...]]
    is_extern: bool = False


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed PTX text. `warnings` name the directives that the parser skipped."""

    version: str
    target: str
    address_size: int
    variables: Mapping[str, Variable]
    functions: Mapping[str, Function]
    aliases: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


NO_BLOCK = -1
"""Block number that stands for no block."""


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """A basic block: instructions `first` to `last` (exclusive).

    A block ends at a branch, a call of a PTX function, a barrier, ret, exit or trap, and before a
    label that is a branch target. `successors` are block numbers of the same function in the order
    (taken, fall-through), or all targets of a `brx.idx`. The successor of a call is the block after
    it; a guarded ret, exit or trap has only the fall-through.

    `join` is the reconvergence point: by default the immediate post-dominator, a block of this
    function or its `exit` (a virtual block without instructions). If some lanes can leave the
    region early (see reconvergence.py), `join` is where the other lanes reconverge. `outer_joins`
    are the reconvergence points of the leaving lanes, outermost first; `leaving` is the successor
    through which they leave; its lanes reconverge at `join`. A switch may have several, in
    `leaving_sides`.
    """

    number: int
    function: int
    first: int
    last: int
    successors: tuple[int, ...]
    join: int
    rank: int
    outer_joins: tuple[int, ...] = ()
    leaving: int = NO_BLOCK
    leaving_sides: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class FunctionSpan:
    """The blocks of one function in a linked kernel.

    `entry` is its first block; `exit` is the number of its virtual exit (>= len(kernel.blocks),
    unique per function).
    """

    function: Function
    entry: int
    exit: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """An entry and all functions it can reach, with one numbering of instructions and blocks.

    The pc of an instruction is its index in `instructions`: the entry first (pc 0), then callees in
    order of first call. `blocks` has the same order; `rank` of a block is its position in reverse
    post-order, callees after their callers. `live_in[b]` holds the registers (function index, name)
    that block b or a successor reads before writing. `meetings` are the pcs of warp-synchronous
    instructions at which divergent lanes can meet: each is a block by itself. `rows` are the rows
    of the trace's table of instructions by pc, where several stand for one of the machine; empty:
    each is a row. At `meeting_blocks` lanes always wait for those still to come.
    """

    name: str
    module: Module
    functions: tuple[FunctionSpan, ...]
    instructions: tuple[Instruction, ...]
    blocks: tuple[BasicBlock, ...]
    live_in: tuple[frozenset[tuple[int, str]], ...]
    live_out: tuple[frozenset[tuple[int, str]], ...]
    meetings: frozenset[int] = frozenset()
    rows: tuple[int, ...] = ()
    meeting_blocks: frozenset[int] = frozenset()

    def position(self, block: BasicBlock, pc: int) -> int:
        """Return how many rows of the trace's table the block has before an instruction."""
        return self.rows[pc] - self.rows[block.first] if self.rows else pc - block.first

    def length(self, block: BasicBlock) -> int:
        """Return how many rows of the trace's table a block has."""
        if not self.rows:
            return block.last - block.first
        after = self.rows[block.last] if block.last < len(self.rows) else self.rows[-1] + 1
        return after - self.rows[block.first]

    @property
    def parameters(self) -> tuple[Variable, ...]:
        """Return the kernel's parameters in order."""
        return self.functions[0].function.parameters


KERNELS = 256
"""Maximum number of cached kernels."""


class KernelKey:
    """Cache key of a kernel: equal for kernels of the same text."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._hash = hash((kernel.name, tuple(i.text for i in kernel.instructions)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KernelKey):
            return NotImplemented
        return self.kernel is other.kernel or self.kernel == other.kernel


_KEYS: dict[int, tuple[Kernel, KernelKey]] = {}
_FIRST: dict[KernelKey, KernelKey] = {}


def key_of(kernel: Kernel) -> KernelKey:
    """Return the cache key of a kernel; contents are compared once per kernel."""
    entry = _KEYS.get(id(kernel))
    if entry is None:
        if len(_KEYS) >= KERNELS:
            _KEYS.clear()
            _FIRST.clear()
        mine = KernelKey(kernel)
        entry = _KEYS[id(kernel)] = kernel, _FIRST.setdefault(mine, mine)
    return entry[1]
