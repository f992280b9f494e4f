"""The roofline: how fast a kernel can be, by what it computes for each byte that it moves.

A kernel does at most as many operations a second as the memory's bytes a second times the kernel's
operations a byte; where that is more than the cores can do, the kernel is bound by computing. Bytes
are those that memory moves, not what caches answer.

Source: textbook chapter on CUDA memories (200 GB/s and one operation for each word of 4 bytes give
50 GFLOPS).
"""

from collections.abc import Mapping, Sequence

from ...lazy_dataclass import dataclass
from .arithmetic import COLUMNS
from .bounds import Bound


@dataclass(frozen=True, slots=True)
class Roof:
    """The roof over a kernel. GFLOPS are billions of operations a second.

    `memory_gflops` is what the memory allows, `peak_gflops` what the cores that have a block can do
    (None: unknown).
    """

    intensity: float
    gb_per_s: float
    memory_gflops: float
    peak_gflops: float | None

    @property
    def bound(self) -> str:
        """`memory-bound` or `compute-bound`; empty where nobody knows what the cores can do."""
        if self.peak_gflops is None:
            return ""
        return "memory-bound" if self.memory_gflops < self.peak_gflops else "compute-bound"

    @property
    def gflops(self) -> float:
        """The lower of both roofs."""
        limits = (self.memory_gflops, self.peak_gflops)
        return min(limit for limit in limits if limit is not None)

    def __str__(self) -> str:
        moved = f"{_plain(self.intensity)} FLOP/byte of DRAM x {self.gb_per_s:g} GB/s"
        most = f"roofline: {moved} = {_plain(self.memory_gflops)} GFLOPS at most"
        if self.peak_gflops is None:
            return most
        return f"{most}; its cores do {_plain(self.peak_gflops)} at most"


def _plain(value: float) -> str:
    """Four digits, or all before the point.

    >>> _plain(66908.16), _plain(0.49230769)
    ('66908', '0.4923')
    """
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def roofline(flops: int, bytes_moved: int, gb_per_s: float, peak_gflops: float | None) -> Roof:
    """Place a kernel under the roof of a device; `bytes_moved` is not 0."""
    intensity = flops / bytes_moved
    return Roof(intensity, gb_per_s, flops * gb_per_s / bytes_moved, peak_gflops)


def find_roof(sums: Mapping[str, int], bounds: Sequence[Bound], gb_per_s: float) -> Roof | None:
    """The roof over the sums of a launch's raw counts, with the bytes that DRAM moves.

    None where it computes or moves nothing, or nobody knows what caches leave to DRAM.
    """
    flops = sum(sums.get(name, 0) for name in COLUMNS)
    moved = next((bound.amount for bound in bounds if bound.resource == "DRAM"), 0)
    return roofline(flops, moved, gb_per_s, peak_gflops(bounds, flops)) if flops and moved else None


def peak_gflops(bounds: Sequence[Bound], flops: float) -> float | None:
    """What the units that compute do of such operations, FLOP a nanosecond; None if unknown."""
    units = [bound.ns for bound in bounds if bound.resource.endswith("-precision units")]
    return flops / longest if (longest := max(units, default=0.0)) else None
