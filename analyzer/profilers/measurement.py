"""What a profiler measured, whatever the form of its file."""

from collections.abc import Mapping
from dataclasses import field

from ...base.dataclass import dataclass

REPORT = ".ncu-rep"
"""Suffix of Nsight Compute's reports."""
SCALES = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
Line = tuple[str, int]
"""A source file, as the profiler names it, and a line of it."""


@dataclass(frozen=True, slots=True)
class MeasuredLaunch:
    """One launch, or the average over `times` launches of a kernel.

    `values` are keyed by the profiler's own metric names; `capability` is the device's, as printed.
    `lines` has the values of source lines, `sources` the files' texts, if the profiler keeps them.
    """

    kernel: str
    values: Mapping[str, float]
    times: int = 1
    capability: str = ""
    lines: Mapping[Line, Mapping[str, float]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """A file: `vocabulary` is `ncu` or `nvprof`; launches are in file order.

    `is_averaged` is set if an entry is the average over all launches of its kernel.
    """

    vocabulary: str
    launches: tuple[MeasuredLaunch, ...]
    is_averaged: bool = False
