"""What the parser hands to the engine: modules, functions, typed instructions, the linked Kernel.

Everything here is plain frozen data. Names are the PTX ISA's own: state space, operand, guard
predicate, basic block. Register names keep their `%` and are unique inside a function only.
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
    "pred": 1,
}
"""Bytes of one value of a fundamental PTX type (PTX ISA, 5.2.1 and 5.2.3)."""

SPACES = frozenset({"reg", "sreg", "const", "global", "local", "param", "shared", "tex"})
"""State spaces as modifiers spell them (PTX ISA, 5.1); `shared::cta` is read as `shared`."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's source, and the places into which it was inlined, innermost first."""

    file: str
    line: int
    column: int = 0
    inlined_at: tuple["Location", ...] = ()


@dataclass(frozen=True, slots=True)
class Register:
    """A register: `%r1` of type `b32`."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register, component included: `%tid.x`, `%laneid`, `%clock64`."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal. `bits` is the integer as written (it may be negative), or the IEEE bits.

    `kind` is `int`, `f32` (written 0f3F800000) or `f64` (written 0d... or as a decimal fraction).
    """

    bits: int
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable or function, plus bytes: `mov.u64 %rd1, table+8`.

    `element` is the bytes of one of its elements: `table[2]` is the third one's address.
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
    """The operand `_`: a result that nobody wants."""


@dataclass(frozen=True, slots=True)
class Not:
    """`!%p1` as a source operand."""

    register: Register


@dataclass(frozen=True, slots=True)
class Part:
    """`%r1.b0`, `%r1.h10`: bytes or halves of a register, or of two (video instructions)."""

    register: Register
    selector: str


@dataclass(frozen=True, slots=True)
class Pair:
    """`%p1|%p2`: two destinations (setp, shfl, match); `{...}|%p1` of a texture's texels."""

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
        """The modifiers that are types, in order: `("f32", "s32")` of `cvt.rn.f32.s32`."""
        return _types(self.modifiers)

    @property
    def type(self) -> str:
        """The last type among the modifiers, or `""`."""
        types = _types(self.modifiers)
        return types[-1] if types else ""

    @property
    def space(self) -> str:
        """The state space among the modifiers, or `""` (generic, or none)."""
        return _space(self.modifiers)

    @property
    def vector(self) -> int:
        """How many elements `.v2`, `.v4`, `.v8` move; 1 otherwise."""
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

    `count` bytes of `initializer` may be shorter than `size`: the rest is zero. A relocation is
    (byte offset, symbol, addend): the symbol's generic or space address goes there, 8 bytes wide.
    `size` is 0 for an `extern` shared array of open size. `element` is the declared type, `line`
    the PTX line (0: unknown).
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


@dataclass(frozen=True, slots=True)
class Function:
    """A parsed `.entry` or `.func`: straight text order, labels resolved to instruction indices.

    Names declared in inner braces end in `@N`, N the number of the brace pair (`param0@2`).
    `registers` are those declared one by one and those of a range that an instruction names.
    `branch_targets` also holds `.calltargets` (function names) and `.callprototype` (empty).
    A text that runs into its closing brace has got a `ret` there.
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
    """A parsed PTX text. `warnings` are the directives that were passed over."""

    version: str
    target: str
    address_size: int
    variables: Mapping[str, Variable]
    functions: Mapping[str, Function]
    aliases: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


NO_BLOCK = -1
"""No block."""


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """Instructions `first` to `last` (exclusive) that run together.

    A block ends at a branch, a call of a PTX function, a barrier, ret, exit, trap, before a label
    that is a target. `successors` are block numbers inside the same function in the order (taken,
    fall-through), or all targets of a `brx.idx`; a call's successor is the block after it, a
    guarded ret, exit or trap has the fall-through only. `join` is the immediate post-dominator: the
    number of a block of this function, or the function's `exit` (a virtual block that holds
    nothing). Where some lanes go another way (see reconvergence) those meet at `join` that do not.
    `outer_joins` are the blocks where those meet who do, outermost first; `leaving` is the
    successor on such a way, whose lanes meet at `join`.
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


@dataclass(frozen=True, slots=True)
class FunctionSpan:
    """Where a function lies inside a linked kernel.

    `entry` is its first block; `exit` is the number of its virtual exit (>= len(kernel.blocks),
    unique for each function).
    """

    function: Function
    entry: int
    exit: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """An entry and every function that it can reach, in one numbering of instructions and blocks.

    The pc of an instruction is its index in `instructions`: the entry comes first (pc 0), then
    callees in order of first call. `blocks` are in that order too; `rank` of a block is its place
    in reverse post-order, callees after their callers. `live_in[b]` holds the registers (function
    index, name) that block b or a successor reads before writing. `meetings` are the pcs at which
    lanes meet that parted before: each is a block of its own.
    """

    name: str
    module: Module
    functions: tuple[FunctionSpan, ...]
    instructions: tuple[Instruction, ...]
    blocks: tuple[BasicBlock, ...]
    live_in: tuple[frozenset[tuple[int, str]], ...]
    live_out: tuple[frozenset[tuple[int, str]], ...]
    meetings: frozenset[int] = frozenset()

    @property
    def parameters(self) -> tuple[Variable, ...]:
        """The kernel's parameters, in order."""
        return self.functions[0].function.parameters
