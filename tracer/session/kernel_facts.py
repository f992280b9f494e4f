"""Static facts of a kernel, found once for all its launches and sessions that load its text."""

from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from ...base.dataclass import dataclass
from ...traces.schema import STRONG_LOADS
from ..isa.table import instruction_table
from ..ptx.kernel import Kernel, Module, Special
from ..ptx.parse import parse_module
from ..simt.kernel.kernel_key import key_of, waits_of
from ..simt.kernel.layout import (
    Layout,
    local_bytes,
    local_layout,
    recursive_functions,
    shared_layout,
)
from ..simt.kernel.spin_loop import link_with_divergent_sync
from ..simt.warp.special_register import PLACE_REGISTERS
from .configuration import Limits
from .symbol import plain_name

TEXTS = 16
"""PTX texts remembered at most; a text may have many kernels."""

KERNELS = 64
"""Kernels remembered at most."""


@lru_cache(maxsize=TEXTS)
def known_module(ptx: str) -> Module:
    """Parse a PTX text, once; see `parse_module` for what it raises."""
    return parse_module(ptx)


@lru_cache(maxsize=KERNELS)
def known_kernel(ptx: str, mangled: str) -> "LinkedKernel":
    """Link a kernel of a PTX text, once."""
    return LinkedKernel(link_with_divergent_sync(known_module(ptx), mangled))


@dataclass(frozen=True)
class LinkedKernel:
    """A linked kernel with what follows from its text alone."""

    kernel: Kernel

    @cached_property
    def instructions(self) -> pa.Table:
        """Its instructions, as the trace has them."""
        return instruction_table(self.kernel)

    @cached_property
    def dependence(self) -> str:
        """What makes its blocks depend on one another; empty if nothing does."""
        return why_dependent(self.instructions)

    @cached_property
    def waiting(self) -> tuple[int, ...]:
        """Its basic blocks in loops that wait for other threads."""
        return tuple(sorted(waits_of(key_of(self.kernel))))

    @cached_property
    def shared(self) -> Layout:
        """Its variables in shared memory."""
        return shared_layout(self.kernel)

    @cached_property
    def local(self) -> Layout:
        """Its variables in local memory."""
        return local_layout(self.kernel)

    @cached_property
    def local_bytes(self) -> int:
        """Local memory of a thread: its variables, or all that its recursion has room for."""
        return local_bytes(self.kernel) if recursive_functions(self.kernel) else self.local.size

    @cached_property
    def limits(self) -> Limits:
        """What it says of its blocks."""
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
        """Whether it asks where on the chip it runs."""
        operands = (o for i in self.kernel.instructions for o in i.operands)
        return any(isinstance(o, Special) and o.name in PLACE_REGISTERS for o in operands)

    @property
    def min_blocks(self) -> int:
        """`.minnctapersm`, or 0."""
        return self.kernel.functions[0].function.directives.get("minnctapersm", (0,))[0]

    @property
    def parameter_bytes(self) -> int:
        """Bytes of its parameters, each at its own alignment."""
        end = 0
        for variable in self.kernel.parameters:
            end = -(-end // variable.align) * variable.align + variable.size
        return end


def _largest(layout: Layout) -> str:
    """The largest variable in words, or `""`."""
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
    """Return what makes blocks depend on one another, with its line; empty if nothing does.

    `instructions` are a kernel's as the trace has them. What two blocks do to one another by plain
    loads and stores is a race, and not seen here.
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
