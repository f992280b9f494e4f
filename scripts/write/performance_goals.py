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
    "tiled_product": ("tiled product", "256 x 256 x 256", "160 x 160 x 160"),
    "reverse_array": ("reverse array", "1 M integers", "131 k integers"),
    "transpose": ("transpose", "1024 x 1024", "192 x 192"),
    "histogram": ("histogram", "1 M values", "33 k values"),
    "bitonic_sort": ("bitonic sort", "1 M keys", "16 k keys"),
    "mandelbrot": ("Mandelbrot", "512 x 512 points", "384 x 384 points"),
    "sparse_product": ("SpMV", "100 k rows", "131 k rows"),
    "search": ("BFS", "100 k nodes", "16 k nodes"),
}
"""The work of each case, its size, and the size for Numba's simulator."""
OCLGRIND = (
    "each launch costs cutrace some 2 ms, and BFS has many short launches. For SpMV even the bare"
    " recorder below is only 20 times as fast as Oclgrind."
)
SIMULATOR = (
    "a thread of SpMV takes the simulator only 0.2 ms. 1000 times as fast is 0.2 µs, less than the"
    " bare recorder needs. BFS has many short launches, which cost some 2 ms each."
)
BARE = "each launch of BFS has fixed costs of some 2 ms: preparation, and seven files of a trace."
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
    "buffers are bounded, but some fill only after many rows. From 100 to 200 million accesses the"
    " peak of wander does not grow."
)
SAMPLING = (
    "each trace with one launch costs at least some 4 ms, its launch included. The sample of the"
    " transpose also writes to 5,000 pages of memory, which the system zeroes first. With 16 times"
    " as many rows SpMV meets the target."
)


MOST_OF_BARE = 3.0
"""Times as long as the bare recorder at most, where a target asks for more than it reaches."""


def oclgrind_goals(cases: Sequence[Measured]) -> Iterator[Goal]:
    """The targets of scripts/bench beside Oclgrind."""
    for case in cases:
        if case["ratio"] is not None:
            name, found, bar = _work(case, 1), case["ratio"], case["bar"]
            yield _at_least(name, "times as fast", found, bar, " x", OCLGRIND)


def simulator_goals(cases: Sequence[Measured]) -> Iterator[Goal]:
    """The targets of scripts/bench beside Numba's simulator."""
    for case in cases:
        if case["small_ratio"] is not None:
            name, found, bar = _work(case, 2), case["small_ratio"], case["small_bar"]
            yield _at_least(name, "times as fast", found, bar, " x", SIMULATOR)


def recorder_goals(cases: Sequence[Measured]) -> Iterator[Goal]:
    """Beside a loop that does the least that a recording does."""
    for case in cases:
        for size, ours, theirs in ((1, "cutrace", "recorder"), (2, "small", "small_recorder")):
            if case.get(theirs) and case[ours]:
                found = case[ours] / case[theirs]
                yield _at_most(_work(case, size), "ratio", found, MOST_OF_BARE, "", BARE)


def _work(case: Measured, size: int) -> str:
    """What a case does, with one of its sizes."""
    name = NAMES[case["name"]]
    return f"{name[0]}, {name[size]}"


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
            yield _at_least(work, "rate", rates[what], bar, unit, reason)


def byte_goals(size: Measured) -> Iterator[Goal]:
    """The targets of the size of a trace."""
    is_regular = size["kind"] == "regular"
    access, control = (0.15, 0.05) if is_regular else (5.0, 0.05 if size["kind"] == "random" else 1)
    kernel = size["kernel"]
    found = size["bytes_a_lane_access"], size["bytes_a_warp_instruction"]
    heads = "bytes of addresses per lane access", "bytes of control flow per warp instruction"
    yield _at_most(kernel, heads[0], found[0], access, "", BYTES)
    yield _at_most(kernel, heads[1], found[1], control, "", BYTES)


def memory_goals(memory: Measured) -> Iterator[Goal]:
    """The targets of a process's memory."""
    kernel, what, peak = memory["kernel"], memory["what"], memory["peak_bytes"][-1] / 2**30
    yield _at_most(kernel, what, peak, 1.0, " GiB", MEMORY)
    yield _at_most(kernel, what, 100 * memory["growth"], 10.0, " %", MEMORY)


def sampling_goals(sampled: Measured) -> Iterator[Goal]:
    """The targets of a sample of blocks."""
    kernel, found = sampled["kernel"], sampled["times_faster"]
    yield _at_least(kernel, "faster", found, 50.0, " x", SAMPLING)
    covered = 100 * sampled["least_coverage"]
    yield _at_least(kernel, "coverage", covered, 95.0, " %", SAMPLING)


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


def _at_most(work: str, column: str, found: float, bar: float, unit: str, reason: str) -> Goal:
    return Goal(work, column, f"at most {bar:g}{unit}", f"{found:.3g}{unit}", found <= bar, reason)
