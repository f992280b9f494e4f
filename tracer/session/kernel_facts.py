"""Static facts of a kernel, computed once for all launches and sessions that load its text.

Parsed modules and linked kernels are cached by PTX text. A LinkedKernel derives its instruction
table, memory layouts, limits and block dependence on demand.
"""

from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from ...base.dataclass import dataclass
from ...traces.schema import STRONG_LOADS
from ..isa.table import instruction_table
from ..ptx.kernel import Kernel, key_of
from ..ptx.parse import parse_module
from ..sass.cubin import open_cubin
from ..sass.kernel import MachineKernel, cubin_kernel, machine_kernel
from ..simt.decode.special_register import reads_place
from ..simt.kernel.layout import (
    Layout,
    local_bytes,
    local_layout,
    recursive_functions,
    shared_layout,
)
from ..simt.kernel.spin_loop import link_with_divergent_sync, waits_of
from .configuration import Limits
from .symbol import plain_name

TEXTS = 16
"""Maximum number of cached PTX texts; a text may have many kernels."""

KERNELS = 64
"""Maximum number of cached kernels."""


known_module = lru_cache(maxsize=TEXTS)(parse_module)
"""Parse a PTX text, cached."""


@lru_cache(maxsize=KERNELS)
def known_kernel(ptx: str, mangled: str) -> "LinkedKernel":
    """Link a kernel of a PTX text, cached."""
    return LinkedKernel(link_with_divergent_sync(known_module(ptx), mangled))


@lru_cache(maxsize=KERNELS)
def known_machine_code(
    ptx: str, mangled: str, arch: str, options: tuple[str, ...]
) -> "LinkedKernel":
    """Assemble a kernel of a PTX text for an architecture and lift its machine code, cached."""
    text = known_kernel(ptx, mangled)
    machine = machine_kernel(ptx, known_module(ptx), text.kernel, arch, options)
    return LinkedKernel(machine.kernel, machine, text)


@lru_cache(maxsize=KERNELS)
def known_cubin(cubin: bytes, file: str, frame: str, mangled: str) -> "LinkedKernel":
    """Lift a kernel of a cubin that `frame` declares, cached."""
    like = known_kernel(frame, mangled).kernel
    machine = cubin_kernel(open_cubin(cubin, file), frame, like)
    return LinkedKernel(machine.kernel, machine)


@dataclass(frozen=True)
class LinkedKernel:
    """A linked kernel with the facts that follow from its text alone.

    `machine` is its machine code, if that is what runs, and `text` then the kernel of PTX, if
    there is one.
    """

    kernel: Kernel
    machine: MachineKernel | None = None
    text: "LinkedKernel | None" = None

    @cached_property
    def instructions(self) -> pa.Table:
        """Return its instructions as a table of the trace."""
        return self.machine.table if self.machine else instruction_table(self.kernel)

    @property
    def arch(self) -> str:
        """Return the architecture of the machine code that runs; empty for PTX."""
        return self.machine.arch if self.machine else ""

    @cached_property
    def dependence(self) -> str:
        """Return why its blocks depend on one another; empty if they don't."""
        return self.text.dependence if self.text else why_dependent(self.instructions)

    @cached_property
    def waiting(self) -> tuple[int, ...]:
        """Return its basic blocks in loops that wait for other threads."""
        return tuple(sorted(waits_of(key_of(self.kernel))))

    @cached_property
    def shared(self) -> Layout:
        """Return the layout of its shared memory variables."""
        return shared_layout(self.kernel)

    @cached_property
    def local(self) -> Layout:
        """Return the layout of its local memory variables."""
        return local_layout(self.kernel)

    @cached_property
    def local_bytes(self) -> int:
        """Return a thread's local memory in bytes: its variables, or the stack if it recurses."""
        return local_bytes(self.kernel) if recursive_functions(self.kernel) else self.local.size

    @cached_property
    def limits(self) -> Limits:
        """Return its own limits on blocks."""
        directives = self.kernel.functions[0].function.directives
        return Limits(
            directives.get("maxntid", ()),
            directives.get("reqntid", ()),
            self.shared.size,
            self.local.size,
            _largest(self.shared),
            _largest(self.local),
            directives.get("reqnctapercluster", ()),
            directives.get("maxclusterrank", (0,))[0],
            "explicitcluster" in directives,
        )

    @cached_property
    def reads_place(self) -> bool:
        """Return True if it reads its place on the chip, for example %smid."""
        return reads_place(self.kernel)

    @property
    def min_blocks(self) -> int:
        """Return `.minnctapersm`, or 0."""
        return self.kernel.functions[0].function.directives.get("minnctapersm", (0,))[0]

    @property
    def parameter_bytes(self) -> int:
        """Return the bytes of its parameters, each at its own alignment."""
        end = 0
        for variable in self.kernel.parameters:
            end = -(-end // variable.align) * variable.align + variable.size
        return end


def _largest(layout: Layout) -> str:
    """Return a description of the largest variable, or `""`."""
    variable = max(layout.variables.values(), key=lambda v: v.size, default=None)
    if variable is None or not variable.size:
        return ""
    return (
        f"; the largest is `{plain_name(variable.name)}`, {variable.size} bytes (PTX line"
        f" {variable.line})"
    )


_REACHES_OTHERS = frozenset({"sys", "gpu", "cluster"})
_OF_CLUSTERS = frozenset({"mapa", "getctarank"})
_FENCES = frozenset({"membar", "fence"})


def why_dependent(instructions: pa.Table) -> str:
    """Return why blocks depend on one another, with the line; empty if they don't.

    `instructions` is the kernel's table in the trace's form. Plain loads and stores of two blocks
    to one address are a race, which this does not detect.
    """
    columns = ["opcode", "mnemonic", "type", "space", "access", "operation", "order", "scope"]
    columns += ["result_read", "file", "line"]
    for row in instructions.select(columns).to_pylist():
        if reason := _why_dependent(row):
            place = f"{row['file']}:{row['line']}: " if row["line"] else ""
            return f"{place}`{row['mnemonic']}` {reason}"
    return ""


def _why_dependent(row: dict[str, Any]) -> str:
    if (
        row["opcode"] in _OF_CLUSTERS
        or row["mnemonic"].startswith("barrier.cluster")
        or ("multicast::cluster" in row["mnemonic"])
    ):
        return "waits for other blocks of its cluster, or reaches their memory"
    if row["space"] not in ("global", ""):
        return ""
    if row["access"] == "atomic" and row["result_read"]:
        return "reads what other blocks have added to"
    if row["access"] == "load" and row["order"] in STRONG_LOADS and row["scope"] != "cta":
        return "waits for what other blocks store"
    if row["opcode"] in _FENCES and row["scope"] in _REACHES_OTHERS:
        return "orders what other blocks see"
    return ""
