"""Targets of speed, memory and size, the results, and the reasons where a target is missed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Measured = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """A target and its result; `reason` explains a miss."""

    work: str
    measure: str
    target: str
    result: str
    is_met: bool
    reason: str


NAMES = {
    "tiled_product": "tiled product 256^3",
    "reverse_array": "reverse array, 1 M",
    "transpose": "transpose 1024^2",
    "histogram": "histogram, 1 M",
    "bitonic_sort": "bitonic sort, 1 M keys",
    "mandelbrot": "Mandelbrot 512^2 x 256",
    "sparse_product": "SpMV, 100 k rows",
    "search": "BFS, 100 k nodes",
}
OCLGRIND = (
    "Oclgrind: it uses both cores. These recordings ran blocks on one core, and compressed on the"
    " other. For SpMV the bare recorder alone takes longer than a twentieth of Oclgrind's time."
)
SIMULATOR = (
    "Numba's simulator: it takes some 0.2 ms for a thread, so the target of 1000 x leaves cutrace"
    " 0.2 microseconds for a thread. For a row of SpMV, with random reads, even the bare recorder"
    " takes longer. BFS has a launch for each level, each with a fixed cost."
)
BARE = (
    "Bare recorder: BFS has a launch for each level, each with a fixed cost of some 2 ms: seven"
    " files, preparing a launch, comparing paths."
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
    "Memory: buffers are bounded, but some of them fill only after many rows. A replay with caches"
    " keeps the rows of all resident blocks, 12 to 16 bytes each, until it has their order. Longer"
    " blocks have more rows: 6 MB here, 38 MB for blocks ten times as long."
)
SAMPLING = (
    "Sampling: a launch has a fixed cost of some 4 ms, whatever its blocks: seven files and a"
    " manifest, buffers, and preparing the kernel. The 164 blocks of the transpose also write to"
    " some 5,000 pages of memory, which the system zeroes at 2 µs each. The sample of SpMV has 6 of"
    " 391 blocks, so it could reach 65 x at most. With 16 times as many rows the fixed cost matters"
    " less, and the target is met."
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
            name = f"{NAMES[case['name']].partition(',')[0]}, smaller"
            found, bar = case["small_ratio"], case["small_bar"]
            yield _at_least(name, "Numba's simulator", found, bar, " x", SIMULATOR)
    for case in cases:
        yield from _bare_goals(case)


def _bare_goals(case: Measured) -> Iterator[Goal]:
    """Beside a loop that does the least that a recording does."""
    name = NAMES[case["name"]]
    for work, ours, theirs in (
        (name, "cutrace", "recorder"),
        (f"{name.partition(',')[0]}, smaller", "small", "small_recorder"),
    ):
        if case.get(theirs) and case[ours]:
            found = case[ours] / case[theirs]
            yield _at_most(work, "bare recorder", found, MOST_OF_BARE, BARE)


def scale_goals(scale: Measured) -> Iterator[Goal]:
    """The targets of scripts/scale, for the parts that it was run with."""
    rates = {rate["what"]: rate["rate"] / 1e6 for rate in scale.get("rates", ())}
    for what, bar, unit, reason in (
        ("lane instructions executed, stream", 500.0, " M/s", LANES),
        ("replay without caches, stream", 20.0, " M rows/s", REPLAY),
        ("replay without caches, gather", 1.0, " M rows/s", REPLAY),
        ("caches, stream", 15.0, " M requests/s", CACHES),
    ):
        if what in rates:
            yield _at_least(what, "one core", rates[what], bar, unit, reason)
    for size in scale.get("bytes", ()):
        yield from _bytes(size)
    for memory in scale.get("memory", ()):
        yield from _memory(memory)
    for sampled in scale.get("sampling", ()):
        yield from _sampled(sampled)


def _bytes(size: Measured) -> Iterator[Goal]:
    is_regular = size["kind"] == "regular"
    access, control = (0.15, 0.05) if is_regular else (5.0, 0.05 if size["kind"] == "random" else 1)
    kernel = f"{size['kernel']} ({size['kind']})"
    found = size["bytes_a_lane_access"], size["bytes_a_warp_instruction"]
    yield _at_most(f"{kernel}: bytes a lane access", "trace", found[0], access, BYTES)
    yield _at_most(f"{kernel}: bytes a warp instruction", "trace", found[1], control, BYTES)


def _memory(memory: Measured) -> Iterator[Goal]:
    what, peak = f"{memory['what']} {memory['kernel']}, 10^8", memory["peak_bytes"][-1] / 2**30
    yield _at_most(f"{what}: peak memory, GiB", "process", peak, 1.0, MEMORY)
    growth = memory["growth"]
    yield _at_most(f"{what}: growth from 10^7", "process", growth, 0.1, MEMORY)


def _sampled(sampled: Measured) -> Iterator[Goal]:
    what = f"1 % of the blocks, {sampled['kernel']}"
    yield _at_least(what, "whole recording", sampled["times_faster"], 50.0, " x", SAMPLING)
    covered = 100 * sampled["least_coverage"]
    yield _at_least(f"{what}: intervals", "worst counter", covered, 95.0, " of 100", SAMPLING)


def _at_least(work: str, measure: str, found: float, bar: float, unit: str, reason: str) -> Goal:
    return Goal(
        work, measure, f"at least {bar:g}{unit}", f"{found:.3g}{unit}", found >= bar, reason
    )


def _at_most(work: str, measure: str, found: float, bar: float, reason: str) -> Goal:
    return Goal(work, measure, f"at most {bar:g}", f"{found:.3g}", found <= bar, reason)
