"""Targets of speed, memory and size, the results, and the reasons where a target is missed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Measured = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """A target and its result, in a row and a column of a table; `reason` explains a miss."""

    work: str
    column: str
    target: str
    result: str
    is_met: bool
    reason: str

    @property
    def cell(self) -> str:
        """The result, bold if it misses the target."""
        return self.result if self.is_met else f"**{self.result}**"


NAMES = {
    "tiled_product": "tiled product, 256^3 (160^3)",
    "reverse_array": "reverse array, 1 M (131 k)",
    "transpose": "transpose, 1024^2 (192^2)",
    "histogram": "histogram, 1 M (33 k)",
    "bitonic_sort": "bitonic sort, 1 M keys (16 k)",
    "mandelbrot": "Mandelbrot, 512^2 x 256 (384^2 x 64)",
    "sparse_product": "SpMV, 100 k rows (131 k)",
    "search": "BFS, 100 k nodes (16 k)",
}
"""The work of each case: its size, and in brackets the one for Numba's simulator."""
OCLGRIND = (
    "Oclgrind uses both cores; cutrace ran blocks on one and compressed on the other. For SpMV even"
    " the bare recorder, which does less, is only 20 times as fast as Oclgrind."
)
SIMULATOR = (
    "Numba's simulator: for a thread of SpMV, which computes a row with random reads, it takes"
    " some 0.2 ms, so the target of 1000 x leaves cutrace 0.2 µs. Even the bare recorder takes"
    " longer. For BFS see the next item."
)
BARE = (
    "BFS: it has a launch for each level, each with a fixed cost of some 2 ms: preparation"
    " and seven files of a trace."
)
LANES = (
    "Lane instructions: registers of alternating warps pass through the processor's caches; time"
    " also goes to checking addresses and to compressing and writing rows."
)
BYTES = (
    "Bytes: warps that all diverge differently share no path, and random lanes share no pattern, so"
    " that each row stores its own: the mask of each side of each branch, 32 random bits, and again"
    " the mask of the lanes that did not take it, which follows from the others."
)
REPLAY = (
    "Replay: a third of a regular trace's time is unpacking columns, a third setting up and adding"
    " up, the rest a compiled pass that numbers the rows by runs of equal ones. Where patterns"
    " never repeat, the 32 offsets of each row are read, unpacked, sorted and passed through once;"
    " a quarter of the time is passes over arrays of the results for every row."
)
CACHES = (
    "Caches: the compiled loops that repeat, serve and join requests take half or more; with random"
    " reads most of that is waiting for the state of each set. The rest is reading rows again,"
    " sorting them, and coalescing rows that never repeat."
)
MEMORY = (
    "Memory: buffers are bounded, but some fill only after many rows. A replay of wander with"
    " caches grows by 56 MB from 10^7 to 10^8 accesses: 32 MB are rows of resident blocks whose"
    " order is not known yet, 14 MB buffers of Arrow, 10 MB other. At 2 x 10^8 its peak is no"
    " higher."
)
SAMPLING = (
    "Sampling: a trace with one launch has a fixed cost of some 4 ms, whatever its blocks: seven"
    " files and a manifest, buffers, and preparing the kernel. The 164 blocks of the transpose also"
    " write to some 5,000 pages of memory, which the system zeroes at 2 µs each. The sample of"
    " SpMV, 6 of 391 blocks, could reach 65 x without it. With 16 times as many rows the fixed cost"
    " matters less, and the target is met."
)


MOST_OF_BARE = 3.0
"""Times as long as the bare recorder at most, where a target asks for more than it reaches."""


def bench_goals(cases: Sequence[Measured]) -> Iterator[Goal]:
    """The targets of scripts/bench."""
    for case in cases:
        if case["ratio"] is not None:
            yield _at_least(
                NAMES[case["name"]], "Oclgrind", case["ratio"], case["bar"], " x", OCLGRIND
            )
    for case in cases:
        if case["small_ratio"] is not None:
            name, found, bar = NAMES[case["name"]], case["small_ratio"], case["small_bar"]
            yield _at_least(name, "Numba's simulator", found, bar, " x", SIMULATOR)
    for case in cases:
        yield from _bare_goals(case)


def _bare_goals(case: Measured) -> Iterator[Goal]:
    """Beside a loop that does the least that a recording does."""
    for column, ours, theirs in (
        ("cutrace / bare recorder", "cutrace", "recorder"),
        ("the same with the size in brackets", "small", "small_recorder"),
    ):
        if case.get(theirs) and case[ours]:
            found = case[ours] / case[theirs]
            yield _at_most(NAMES[case["name"]], column, found, MOST_OF_BARE, BARE)


def rate_goals(scale: Measured) -> Iterator[Goal]:
    """The targets of what one core does in a second."""
    rates = {rate["what"]: rate["rate"] / 1e6 for rate in scale.get("rates", ())}
    counts = {rate["what"]: f", {rate['count'] / 1e6:.3g} M" for rate in scale.get("rates", ())}
    for what, bar, unit, reason in (
        ("lane instructions executed, stream", 500.0, " M/s", LANES),
        ("replay without caches, stream", 20.0, " M rows/s", REPLAY),
        ("replay without caches, gather", 1.0, " M rows/s", REPLAY),
        ("caches, stream", 15.0, " M requests/s", CACHES),
    ):
        if what in rates:
            work = f"{what}{counts[what]}{unit.removeprefix(' M').removesuffix('/s')}"
            yield _at_least(work, "in a second, on one core", rates[what], bar, unit, reason)


def byte_goals(size: Measured) -> Iterator[Goal]:
    """The targets of the size of a trace."""
    is_regular = size["kind"] == "regular"
    access, control = (0.15, 0.05) if is_regular else (5.0, 0.05 if size["kind"] == "random" else 1)
    kernel = size["kernel"]
    found = size["bytes_a_lane_access"], size["bytes_a_warp_instruction"]
    yield _at_most(kernel, "bytes of addresses per lane access", found[0], access, BYTES)
    yield _at_most(kernel, "bytes of control flow per warp instruction", found[1], control, BYTES)


def memory_goals(memory: Measured) -> Iterator[Goal]:
    """The targets of a process's memory."""
    kernel, what, peak = memory["kernel"], memory["what"], memory["peak_bytes"][-1] / 2**30
    yield _at_most(kernel, f"{what}: peak, GiB", peak, 1.0, MEMORY)
    yield _at_most(kernel, f"{what}: growth", memory["growth"], 0.1, MEMORY)


def sampling_goals(sampled: Measured) -> Iterator[Goal]:
    """The targets of a sample of blocks."""
    kernel, found = sampled["kernel"], sampled["times_faster"]
    yield _at_least(kernel, "faster", found, 50.0, " x", SAMPLING)
    covered = 100 * sampled["least_coverage"]
    yield _at_least(kernel, "least coverage", covered, 95.0, " %", SAMPLING)


def _at_least(work: str, column: str, found: float, bar: float, unit: str, reason: str) -> Goal:
    return Goal(
        work, column, f"at least {bar:g}{unit}", f"{_short(found)}{unit}", found >= bar, reason
    )


def _short(value: float) -> str:
    """Three digits.

    >>> _short(3047.6), _short(0.04932)
    ('3,050', '0.0493')
    """
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 1000 else f"{value:.3g}"


def _at_most(work: str, column: str, found: float, bar: float, reason: str) -> Goal:
    return Goal(work, column, f"at most {bar:g}", f"{found:.3g}", found <= bar, reason)
