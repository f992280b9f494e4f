"""Schema of a trace: every table column by column, and the invariants of its rows.

A trace is a directory `NAME.cutrace/` with `manifest.json` and, for launch number N, a folder
`N/` with Arrow IPC files (LZ4; `paths` Zstandard). Nothing here knows a device: no SM, line, sector
or bank.

Promises of order: rows of `accesses` and of `control` that belong to one warp appear in the order
in which that warp executed them (`step` never falls); between warps no order is promised.
`patterns` and `paths` are dictionaries: row i has identifier i, and rows refer only to identifiers
that were written before them or in the same launch.
"""

from dataclasses import field
from enum import IntEnum
from typing import TypeAlias

import pyarrow as pa

from ..base.dataclass import dataclass

FORMAT_VERSION = 1
LANES = 32
BARRIERS = 16  # of a block, by number (PTX ISA, bar)
MAPPED_BYTES = 1 << 21
"""Global memory is mapped in pages of so many bytes: those that hold a byte of an allocation, and
in a program's the first one, which has memory of the driver."""


class Space(IntEnum):
    """The state space of an access: addresses are offsets in that space's window."""

    GLOBAL = 1
    SHARED = 2
    LOCAL = 3
    CONST = 4
    TEXTURE = 5
    SURFACE = 6


_PLACE = pa.struct([("file", pa.string()), ("line", pa.uint32()), ("column", pa.uint32())])

INSTRUCTIONS = pa.schema(
    [
        pa.field("pc", pa.uint32(), False),  # index in the linked kernel, 0 is the entry's first
        pa.field("block", pa.uint32(), False),  # basic block that holds it
        pa.field("function", pa.string(), False),  # PTX name of the function that holds it
        pa.field("opcode", pa.string(), False),  # `ld`
        pa.field("mnemonic", pa.string(), False),  # `ld.global.nc.v2.f32`
        pa.field("predicate", pa.string(), False),  # `%p1`, `!%p1`, or empty
        pa.field("space", pa.string(), False),  # state space as written; empty: generic or none
        pa.field("type", pa.string(), False),  # last type modifier, or empty
        pa.field("bytes", pa.uint16(), False),  # bytes a lane moves (all vector elements); 0: none
        pa.field("cache", pa.string(), False),  # cache operator `ca cg cs cv lu wb wt nc`, or empty
        pa.field("class", pa.string(), False),  # one of CLASSES
        pa.field("operation", pa.string(), False),  # `add mul fma special`, an atomic's, ...: below
        pa.field("values", pa.uint8(), False),  # numbers that a lane computes: 2 of packed types
        pa.field("flops", pa.uint8(), False),  # floating-point operations of one lane
        pa.field("access", pa.string(), False),  # one of ACCESS_KINDS, or empty
        pa.field("reads", pa.uint8(), False),  # bit 1 << s for each Space s that it may read
        pa.field("writes", pa.uint8(), False),  # likewise that it may write
        pa.field("order", pa.string(), False),  # `weak volatile relaxed acquire ...`, or empty
        pa.field("scope", pa.string(), False),  # `cta cluster gpu sys`, or empty
        pa.field("collision", pa.string(), False),  # of an atomic one of COLLISIONS, or empty
        pa.field("barrier", pa.int32(), True),  # barrier id; null: no barrier; -1: from a register
        pa.field("barrier_threads", pa.int32(), True),  # arrival count if given; null: the block
        pa.field("result_read", pa.bool_(), False),  # False: its result is unused (atom -> red)
        pa.field("file", pa.string(), False),  # source file as given to the compiler, or empty
        pa.field("line", pa.uint32(), False),  # source line, 0: unknown
        pa.field("column", pa.uint32(), False),
        pa.field("inlined_at", pa.list_(_PLACE), False),  # innermost first
        pa.field("text", pa.string(), False),  # the PTX text
    ]
)
"""All instructions of the kernel, executed or not, in order of pc.

`operation` is `add`, `mul`, `fma` or `special` (quotients, roots, elementary functions) of
floating-point arithmetic; an atomic's `add`, `cas`, ...; `branch` of branches; `arrive` of
barriers that do not wait; `fetch`, `filter` or `gather` of texture samples; `formatted` of surface
stores that convert (`sust.p`); empty otherwise.
"""

STRONG_LOADS = frozenset({"volatile", "relaxed", "acquire", "mmio"})
"""Memory orders of loads that must see what other threads have stored."""

CLASSES = (
    *("half", "single", "double", "integer", "conversion", "control", "exchange"),
    *("memory", "free", "other"),
)
"""Classes of instructions, as NVIDIA's profilers tell them apart. What an assembler turns into
nothing is `free`: moves, `cvta`, loads of parameters, branches without a condition."""

ACCESS_KINDS = ("load", "store", "atomic", "reduction", "copy", "bulk")
"""What an instruction does to memory: an atomic whose result is unused is a reduction; a copy
(`cp.async`) reads one space and writes another.

A bulk copy, which one lane starts, has rows of the global memory that it reads or writes, none of
shared memory: pieces of BULK_PIECE bytes, as if each of 32 lanes moved one. Its rows from the
256th on have part MOST_PARTS."""

BULK_PIECE = 16
"""Bytes that bulk copies move are multiples of so many, and so are their addresses."""
MOST_PARTS = 255

COLLISIONS = ("serial", "elected", "counted", "compared", "spun", "swapped", "turn")
"""What becomes of an atomic whose lanes share an address (tracer/isa/table.py): one after
another, one lane for all, counted in one go, or compared and swapped. Two are loops of the
assembler (models/replay/atomic_loops.py): `spun`, in shared memory, where one lane of each bank
is done in a turn, and `swapped`, where one lane of each word is; `turn` is a turn of the first as
machine code has it."""

LANES_ON = pa.schema(
    [
        pa.field("block", pa.uint64(), False),  # thread block, linear index
        pa.field("pc", pa.uint32(), False),
        pa.field("lanes", pa.uint64(), False),  # active lanes whose predicate held, summed
    ]
)
"""For predicated instructions other than memory and branches: lanes on, summed per (block, pc)."""

CONTROL = pa.schema(
    [
        pa.field("block", pa.uint64(), False),  # thread block, linear index x + X*(y + Y*z)
        pa.field("warp", pa.uint16(), False),  # warp of the block: linear thread index // 32
        pa.field("step", pa.uint32(), False),  # the warp's running instruction number at its start
        pa.field("path", pa.uint32(), False),  # row of PATHS
    ]
)
"""What each warp ran. Several rows of a warp follow one another without a gap in `step`."""

PATHS = pa.schema(
    [
        pa.field("blocks", pa.list_(pa.uint32()), False),  # basic blocks in the order executed
        pa.field("active", pa.list_(pa.uint32()), False),  # lanes active in each
        pa.field("not_taken", pa.list_(pa.uint32()), False),  # of these, did not take its branch
        pa.field("targets", pa.list_(pa.uint8()), False),  # places lanes went; 0: no branch
        pa.field("repeat", pa.list_(pa.uint32()), False),  # how many times in a row, >= 1
    ]
)
"""Run-length coded histories that warps share; the lists of a row have one length."""

ACCESSES = pa.schema(
    [
        pa.field("block", pa.uint64(), False),
        pa.field("warp", pa.uint16(), False),
        pa.field("step", pa.uint32(), False),  # the warp's running instruction number
        pa.field("part", pa.uint8(), False),  # 0, 1, ...: one instruction may give several rows
        pa.field("pc", pa.uint32(), False),
        pa.field("space", pa.uint8(), False),  # a Space
        pa.field("base", pa.uint64(), False),  # address of the lowest active lane, bytes
        pa.field("pattern", pa.uint32(), False),  # row of PATTERNS
    ]
)
"""Memory accesses, a row a warp instruction (or part); none for an empty mask.

Addresses: global in the session's arena, shared in the block's memory, local in the thread's,
const in the module's bank. Parameters are not recorded.
"""

PATTERNS = pa.schema(
    [
        pa.field("active", pa.uint32(), False),  # bit i: lane i accesses
        pa.field("offsets", pa.list_(pa.int32(), LANES), False),  # bytes from base; 0 if inactive
    ]
)
"""Address patterns, relative to the base: a dictionary, since regular kernels repeat a handful."""

LAYER_BITS = 24
"""Bits of a sample's layer; above them are bits of dimensions in which a texel is read alone."""
TEXELS = pa.schema(
    [
        pa.field("block", pa.uint64(), False),
        pa.field("warp", pa.uint16(), False),
        pa.field("step", pa.uint32(), False),
        pa.field("pc", pa.uint32(), False),
        pa.field("texture", pa.uint32(), False),  # index in the launch's textures
        pa.field("active", pa.uint32(), False),
        pa.field(
            "corner", pa.list_(pa.int32(), 4 * LANES), False
        ),  # i, j, k, layer a lane; 0 if inactive
    ]
)
"""Texture samples: lower corner texel before the address mode; taps follow from the descriptor.

Above the layer's ALONE bits, bit n says that the neighbour in dimension n has no weight in a
filtered sample. An instruction gives a row for each texture that its lanes sample; none for an
empty mask.
"""

TABLES = {
    "instructions": INSTRUCTIONS,
    "lanes_on": LANES_ON,
    "control": CONTROL,
    "paths": PATHS,
    "accesses": ACCESSES,
    "patterns": PATTERNS,
    "texels": TEXELS,
}
"""The files of a launch, `N/NAME.arrow`, and their schemas."""


@dataclass(frozen=True, slots=True)
class Array:
    """An allocation that a launch could reach: a device array, a `__device__` or `__constant__`
    symbol, a surface, or a shared-memory variable (`space` SHARED: offset in the block's memory).

    `offset` is its address in its space's window, bytes; `itemsize` 0 if unknown. A `memory` that
    is empty is the device's; of variables that are `__managed__` it is always `managed`.
    """

    name: str
    space: Space
    offset: int
    bytes: int
    itemsize: int = 0
    shape: tuple[int, ...] = ()
    pitch: int = 0
    made_at: str = ""  # `FILE:LINE` of the host's code that allocated it, where known
    memory: str = ""  # pinned: the host's; managed, moved: managed, a launch was given it before


@dataclass(frozen=True, slots=True)
class AssembledAccess:
    """A load or store as the assembler made it, if it differs from the PTX.

    `pieces` are the machine instructions that stand for it: where each begins, in bytes from the
    access's own address, and what it moves a lane; none: it is gone, or part of a wider one.
    `issued` is the instruction whose every warp issues it, with a predicate; -1: those with a lane
    in it. `spare` are loads from shared memory before it that are issued with it and never run.
    """

    pc: int
    pieces: tuple[tuple[int, int], ...]
    issued: int = -1
    spare: int = 0


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of the assembled kernel on one architecture (`sm_75`): bytes, registers.

    `barriers` are the named barriers that a block takes; -1: unknown.
    """

    arch: str
    registers: int
    shared_bytes: int
    local_bytes: int
    constant_bytes: int
    spill_stores: int = 0
    spill_loads: int = 0
    accesses: tuple[AssembledAccess, ...] = ()  # since sm_70: loads and stores that became others
    schedule: str = ""  # since sm_70: its machine code, as traces/machine_schedule.py packs it
    barriers: int = -1

    @property
    def number(self) -> int:
        """Return the architecture's number: 90 for `sm_90a`."""
        return int(self.arch.removeprefix("sm_").rstrip("af"))


@dataclass(frozen=True, slots=True)
class Argument:
    """A kernel argument as passed: `value` is a number, an array name, or a struct in hex."""

    name: str
    type: str
    value: str | int | float


ADDRESS_MODES = ("clamp", "border", "wrap", "mirror")
FILTER_MODES = ("point", "linear")
READ_MODES = ("element", "normalized_float")


@dataclass(frozen=True, slots=True)
class Texture:
    """A texture that the launch could sample: what taps and formats follow from.

    Dimensions are in the order of coordinates, x first.
    """

    name: str
    format: str  # texel type and channels: `f32`, `u8x4`
    extent: tuple[int, ...]  # texels: one to three dimensions
    address_mode: tuple[str, ...]  # of each dimension
    filter_mode: str
    normalized_coords: bool
    read_mode: str
    array: str = ""  # name of the Array under a linear texture
    layers: int = 0  # of a layered texture; 0: not layered


Range: TypeAlias = tuple[int, int]
"""The first and the last of some numbers in a row."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Blocks that represent a grid: block i represents `weights[i]` of them, itself included.

    Each was drawn from as many, all equally likely. `ends` are those of them that lie at the grid's
    ends and stand for what lies there. `all_ran` says why the other blocks were run too, though
    not recorded; empty: they were not.
    """

    blocks: tuple[int, ...] = ()  # rising; none: no sample
    weights: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()  # rising, and among `blocks`
    seed: int = 0
    all_ran: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """The part of a launch that its tables hold; by default all. The rest was still run."""

    rows: bool = True  # False: the launch was left out, its tables but instructions are empty
    control: bool = True  # False: control, paths and lanes_on are empty
    blocks: tuple[Range, ...] = ()  # thread blocks; none: all
    warps: tuple[Range, ...] = ()  # warps of each block; none: all
    lines: tuple[str, ...] = ()  # accesses of `FILE:LINE` or `LINE`, also inlined; none: all
    spaces: tuple[Space, ...] = ()  # accesses to these; none: all
    sample: Sample = Sample()

    @property
    def is_whole(self) -> bool:
        """Return whether the tables are complete."""
        return self == Kept()

    @property
    def has_accesses(self) -> bool:
        """Return whether every access is recorded, even if the rest of the control flow is not."""
        return self in (Kept(), Kept(control=False))


@dataclass(frozen=True, slots=True)
class Outside:
    """Out-of-bounds accesses of global memory by one instruction.

    Only where memory is mapped (see MAPPED_BYTES), and only in a launch that was recorded with
    bounds that report: elsewhere it is a fault. `block`, `thread` and `address` are the first: the
    first lane of the first block and warp that did so, in its order of execution.
    """

    pc: int
    lanes: int  # accesses of single lanes
    block: int  # thread block, linear index
    thread: int  # linear index in the block
    address: int  # offset in the window of global memory, bytes


def _c_name(signature: str) -> str:
    """Return the text before the parameters; a template's arguments may contain parentheses, too.

    >>> _c_name("k<(Mode)2, float (*)(int)>(int *out)"), _c_name('k<"(">(int)'), _c_name("k")
    ('k<(Mode)2, float (*)(int)>', 'k<"(">', 'k')
    """
    depth = 0
    for place, letter in enumerate(signature):
        if letter == "(" and not depth:
            return signature[:place]
        depth += {"<": 1, ">": -1}.get(letter, 0)
    return signature


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch, as stored in the manifest."""

    kernel: str  # PTX name
    signature: str  # C signature, or the PTX name if unknown
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_static: int  # bytes a block, declared
    shared_dynamic: int  # bytes a block, dynamic
    local_bytes: int  # bytes a thread, of .local variables in all levels of recursion
    arguments: tuple[Argument, ...] = ()
    arrays: tuple[Array, ...] = ()
    textures: tuple[Texture, ...] = ()
    resources: tuple[Resources, ...] = ()
    max_threads: int = 0  # .maxntid product; 0: none
    min_blocks: int = 0  # .minnctapersm; 0: none
    source: str = ""  # key in Manifest.sources
    parameter_bytes: int = 0  # of all kernel parameters together, padding included
    kept: Kept = Kept()
    partly_written: tuple[str, ...] = ()  # arrays that sampled launches before left unfinished
    outside: tuple[Outside, ...] = ()  # accesses outside of every allocation, rising pc
    called_at: str = ""  # `FILE:LINE` of the host's code that called it, where known
    ranges: tuple[str, ...] = ()  # NVTX ranges in which it was called, outermost first
    cluster: tuple[int, ...] = ()  # blocks of a cluster, x, y, z; (): it has no clusters
    prefers: str = ""  # percentage of L1 to be shared memory, or a cache configuration
    waiting: tuple[int, ...] = ()  # basic blocks of loops that wait for other threads, rising
    code: str = ""  # the architecture whose machine code ran, `sm_89`; empty: PTX

    @property
    def name(self) -> str:
        """Return the C name with template arguments, or the PTX name if unknown."""
        return _c_name(self.signature) or self.kernel

    @property
    def blocks(self) -> int:
        """Return the thread blocks in the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def assembled(self) -> tuple[Resources, ...]:
        """Return the resources that have machine code, oldest architecture first."""
        decoded = (each for each in self.resources if each.schedule or each.accesses)
        return tuple(sorted(decoded, key=lambda each: each.number))

    def assembled_for(self, capability: tuple[int, int]) -> Resources | None:
        """Return the machine code of the newest architecture up to a capability, if there is one.

        Devices before 7.0 have none.
        """
        own = capability[0] * 10 + capability[1]
        return next((each for each in reversed(self.assembled) if each.number <= own), None)

    @property
    def threads(self) -> int:
        """Return the threads in a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        """Return the warps in a block, the last one perhaps partly filled."""
        return -(-self.threads // LANES)


@dataclass(frozen=True, slots=True)
class Event:
    """An operation of the session, in order: `copy`, `set`, `launch` or `library`.

    `direction` is HtoD, DtoH or DtoD for a copy; `launch` is the launch's number; `name` is the
    function of a library call, which was computed on the host: its work on a GPU is not in the
    trace.
    """

    kind: str
    bytes: int = 0
    direction: str = ""
    array: str = ""
    launch: int = -1
    name: str = ""


MACHINE_CODE = "sass"
"""The target of a compiler of which the trace has the machine's instructions, no PTX."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """The compiler of the source to PTX: `name` is `nvrtc`, `ptx` (PTX given directly), ...; for an
    imported trace the tracing tool, with MACHINE_CODE as `target`. `missing` has a sentence for
    each header that was not found and was left out: what it declares is not in the kernels.
    """

    name: str
    version: str = ""
    options: tuple[str, ...] = ()
    target: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """`manifest.json`: everything but the rows. `sources` maps a path as given to its text.

    `fault` is the message of the fault in a launch that ended the session: that launch is not in
    the trace, those before it are. `left_out` says how many launches were run and are not in the
    trace, and why.
    """

    format_version: int = FORMAT_VERSION
    compilers: tuple[Compiler, ...] = ()
    events: tuple[Event, ...] = ()
    launches: tuple[Launch, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    fault: str = ""
    left_out: str = ""

    @property
    def is_machine_code(self) -> bool:
        """Return whether instructions are machine code, by another tool's trace or by choice."""
        return self.is_foreign or any(launch.code for launch in self.launches)

    @property
    def is_foreign(self) -> bool:
        """Return whether another tool recorded the trace, of machine code."""
        return any(compiler.target == MACHINE_CODE for compiler in self.compilers)
