"""The estimate in a sentence."""

from collections import defaultdict
from collections.abc import Mapping
from math import floor, log10

import polars as pl

from ...base.dataclass import dataclass
from ...models.replay.device.measured import WITHIN
from ..counting.bounds import time_text
from .estimate import STALLS, Estimate
from .units import PROFILED

ERROR = "4 of 5 launches within 25 %"
"""Accuracy that docs/time.md found on programs of strangers, on 9.0."""
LEAST = 0.05
"""Smallest share of the time that is mentioned."""
Range = tuple[float, float]
"""The least and the most of something; equal for an estimate of a whole launch."""


def error_text(within: Range) -> str:
    """Return how exact estimates of a device are, from the ends of measured over estimated times.

    >>> error_text(WITHIN), error_text((0.6, 1.7))
    ('4 of 5 launches within 25 %', '4 of 5 launches take 0.6 to 1.7 times as long')
    """
    if within == WITHIN:
        return ERROR
    return "4 of 5 launches take {:g} to {:g} times as long".format(*within)


def estimate_interval(estimated: Range, within: Range = WITHIN) -> Range:
    """Return the interval of the measured time; `within` are the ends of measured over estimated.

    >>> estimate_interval((1000.0, 1000.0))
    (800.0, 1333.3333333333333)
    """
    return estimated[0] * within[0], estimated[1] * within[1]


def about_text(ns: float, within: Range = WITHIN) -> str:
    """Return an estimated time with its interval, in the two digits that its error allows.

    >>> about_text(16914.0), about_text(998000.0), about_text(1790.0)
    ('about 17 us (14 to 23)', 'about 1 ms (0.8 to 1.3)', 'about 1.8 us (1.4 to 2.4)')
    """
    shown, unit, scale = _scaled(ns)
    low, high = (_two_digits(end / scale) for end in estimate_interval((ns, ns), within))
    return f"about {shown} {unit} ({low} to {high})"


def rough_text(ns: float) -> str:
    """Return an estimated time in two digits.

    >>> rough_text(5952.0), rough_text(914000.0)
    ('6 us', '910 us')
    """
    shown, unit, _ = _scaled(ns)
    return f"{shown} {unit}"


def _scaled(ns: float) -> tuple[str, str, float]:
    """Return two digits, the unit that leaves fewest before the point, and its nanoseconds."""
    scale = 1.0
    for unit in ("ns", "us", "ms", "s"):
        if _rounded(ns / scale) < 1000 or unit == "s":
            break
        scale *= 1000
    return _two_digits(ns / scale), unit, scale


def _rounded(value: float) -> float:
    return round(value, 1 - floor(log10(value))) if value > 0 else 0.0


def _two_digits(value: float) -> str:
    """Return two significant digits, without an exponent.

    >>> _two_digits(1333.3), _two_digits(22.55), _two_digits(5.952)
    ('1,300', '23', '6')
    """
    return f"{_rounded(value):,}".removesuffix(".0")


def estimate_text(estimate: Estimate, within: Range = WITHIN) -> str:
    """Return a launch's estimated time, its accuracy, the longest parts and the stalls.

    Nsight Compute's stall name follows each stall, its throughput name the busiest unit.

    >>> from cutrace.analyzer.time.estimate import Part
    >>> estimate_text(Estimate(14000.0, 1500.0, (Part("DRAM", 9900.0),), {}))
    'about 14 us at 1,500 MHz (4 of 5 launches within 25 %): DRAM 9.9 us'
    """
    parts = [part for part in estimate.parts if part.ns >= LEAST * estimate.ns][:2]
    detail = ", ".join(f"{part.what} {time_text(part.ns)}" for part in parts) or "launching"
    stall_text = stalls_text(estimate.stalls)
    how_exact = error_text(within)
    time = f"about {time_text(estimate.ns)} at {estimate.mhz:,.0f} MHz ({how_exact}): {detail}"
    time += f"; a warp waits for {stall_text}" if stall_text else ""
    return f"{time}; {_busiest(estimate)}" if estimate.busy else time


def stalls_text(stalls: Mapping[str, float]) -> str:
    """Return the two longest stalls, each with Nsight Compute's name.

    >>> stalls_text({"L2": 0.88, "memory": 0.11, "branches": 0.01})
    'L2 88 % (long_scoreboard), memory beyond L2 11 % (long_scoreboard)'
    """
    longest = [(what, share) for what, share in stalls.items() if share >= LEAST][:2]
    return ", ".join(
        f"{_BEYOND_L2 if what == 'memory' else what} {100 * share:.0f} % ({STALLS[what]})"
        for what, share in longest
    )


_BEYOND_L2 = "memory beyond L2"
"""DRAM, or the host's memory: the stall `memory` as a reader sees it."""


def between_text(least: Estimate, most: Estimate) -> str:
    """Return the range of a sampled launch's time, and the cache assumption at either end.

    >>> at = Estimate(5000.0, 1500.0, ()), Estimate(41000.0, 1500.0, ())
    >>> between_text(*at)
    'about 5 us if caches held all that it loads, to 41 us if nothing, at 1,500 MHz'
    """
    ends = time_text(least.ns), time_text(most.ns)
    range_text = f"about {ends[0]} if caches held all that it loads, to {ends[1]} if nothing"
    return f"{range_text}, at {least.mhz:,.0f} MHz"


def _busiest(estimate: Estimate) -> str:
    """Return the unit with the highest throughput in Nsight Compute."""
    unit, share = max(estimate.busy.items(), key=lambda item: item[1])
    return f"busiest: {unit}, {100 * share:.0f} % ({PROFILED[unit]}__throughput)"


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """A line at which a warp spends a `share` of its time, 0 to 1, stalled.

    `stall` is Nsight Compute's name of the stall.
    """

    file: str
    line: int
    waits_for: str
    stall: str
    share: float


def waiting_lines(counts: pl.DataFrame, estimate: Estimate) -> tuple[WaitingLine, ...]:
    """Return the lines of a launch's instructions (`pc`, `file`, `line`), longest stalls first."""
    places = {pc: (f, n) for pc, f, n in counts.select("pc", "file", "line").unique().iter_rows()}
    shares = defaultdict[tuple[str, int, str], float](float)
    for (pc, why), share in estimate.at.items():
        shares[*places.get(pc, ("", 0)), why] += share
    return tuple(
        WaitingLine(file, line, why, STALLS[why], share)
        for (file, line, why), share in sorted(shares.items(), key=lambda item: -item[1])
    )
