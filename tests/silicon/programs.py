"""Whole programs: what a chip counted of a launch beside what cutrace counts.

The tables are those of tests/validate/programs (its README.md has the columns). The hardware's
counts and those of patched code come from two runs of a program; what accesses of PTX and of the
chip's code have in common is decided by a kernel's first launch, whose opcodes are known.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl
from silicon.caches import ALL
from silicon.caches import NEAR as CACHES
from silicon.launches import (
    ANY_WIDTH,
    BY_ADDRESSES,
    CLASSES,
    OPS,
    SASS,
    WAVEFRONTS,
    WIDTHS,
    Widths,
    accesses,
    classes,
)

from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profilers.measured import demangled
from cutrace.traces.reader import Trace

FOLDER = Path(__file__).parents[1] / "validate" / "programs"
RUN = ("size", "collection", "program")
NEAR = 0.01
"""How far apart counts may be."""
ROUNDED = 0.00501
"""The profiler prints two decimals."""
FIRST = 24
"""Launches of a program that are recorded."""

TIMED = dict.fromkeys(
    ("particlefilter:float", "particlefilter:naive"), "the data depend on the time of day"
)
"""Programs, and what makes their accesses differ from run to run."""

SAID_BY_THE_PROGRAM = {
    "launch__block_size", "launch__grid_size", "launch__thread_count", "smsp__warps_launched.sum",
    "launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic",
    "launch__barrier_count",
}  # fmt: skip
"""Metrics that are what the program asked for: they are not compared."""
NOT_CAPTURED = "the chip's code of this launch was not captured"
GENERIC = "the chip's code uses generic addresses, or a retry loop of an atomic"
WIDER = "ptxas joined accesses into wider ones, or split them"
MORE = "the chip's code issues the instruction more often: predicated, also without an active lane"
LESS = "the chip's code issues the instruction less often: joined, or moved out of a loop"
WAITED = "the profiler's two counts of shared-memory wavefronts differ"

Agreement = Mapping[str, str]
"""Of each class of accesses, what the chip's code did to those of the PTX; empty if nothing."""
Run = tuple[str, str, str]
"""Size, collection and program."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A launch on the chip. `index` is -1 where its place in the program is not known."""

    kernel: str
    index: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    counters: Mapping[str, float]
    has_code: bool


@dataclass(frozen=True, slots=True)
class Beside:
    """One metric of one launch. `why_not` says what makes it not comparable, or is empty.

    `kind` is `count`, or `cache`, of which nearness is asked.
    """

    kind: str
    run: Run
    kernel: str
    launch: int
    metric: str
    theirs: float
    ours: float
    why_not: str

    @property
    def is_equal(self) -> bool:
        """Whether both counts are the same, as far as the profiler prints them."""
        return abs(self.theirs - self.ours) <= (ROUNDED if "." in str(self.ours) else 0)

    @property
    def is_near(self) -> bool:
        """Whether they lie within one percent; of caches, within what caches.py says."""
        if self.kind == "cache":
            near = CACHES[self.metric]
            return abs(self.theirs - self.ours) <= near.part * self.theirs + near.more
        return self.is_equal or abs(self.theirs - self.ours) <= NEAR * abs(self.theirs)


@cache
def tables() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The launches and the code."""
    launches = pl.read_parquet(FOLDER / "h200_launches.parquet")
    return launches, pl.read_parquet(FOLDER / "h200_code.parquet")


def runs() -> list[Run]:
    """Every run of which there is something, the small ones first."""
    names = {row for table in tables() for row in table.select(*RUN).iter_rows()}
    found = ((size, collection, program) for size, collection, program in names)
    return sorted(found, key=lambda run: (run[0] != "small", run))


def spelt(kernel: str) -> str:
    """A kernel's name as the table of code has it."""
    return re.sub(r"\W+", "_", kernel)[:100]


def plain_name(kernel: str) -> str:
    """A kernel's name without its return type, arguments and namespaces."""
    kernel = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", kernel)
    name = re.split(r"[<(]", kernel.removeprefix("void "))[0]
    return name.rpartition("::")[2].strip()


def opcodes(run: Run, kernel: str) -> Mapping[str, int] | None:
    """How often each opcode of a kernel's first launch that touches memory ran; None: unknown.

    Larger sizes run the same code: how often is then not known, and the small one's is told.
    """
    for size in (run[0], "small"):
        code = _code_of((size, *run[1:]), spelt(kernel))
        if len(code):
            by_opcode = code.group_by("opcode").agg(pl.col("instructions").sum())
            return {op: times for op, times in by_opcode.iter_rows() if SASS.match(op)}
    return None


def _code_of(run: Run, kernel: str) -> pl.DataFrame:
    code = tables()[1]
    size, collection, program = run
    return code.filter(size=size, collection=collection, program=program, kernel=kernel)


def machine(sass: Mapping[str, int]) -> Mapping[str, Widths]:
    """The warp instructions of machine code, by class and bytes a lane."""
    found: dict[str, Counter[int]] = {}
    for opcode, times in sass.items():
        match = SASS.match(opcode)
        if match is None or "SPIN" in opcode:  # a loop that stands for one atomic
            found.setdefault("generic", Counter())[0] += times
            continue
        width = next((WIDTHS[w] for w in opcode.split(".") if w in WIDTHS), 4)
        for name in CLASSES.get(match[1], ("generic",)):  # LD and ST: any space
            found.setdefault(name, Counter())[0 if name in ANY_WIDTH else width] += times
    return found


def counted_by_code(code: pl.DataFrame) -> dict[str, float]:
    """The profiler's metrics of patched code, summed over a launch's instructions.

    How often warps issued an instruction is what `smsp__inst_executed_op_*` counts; the counter
    with `sass` in its name leaves out warps none of whose lanes the predicate lets through.
    """
    total: dict[str, int] = code.select(pl.selectors.integer().sum()).row(0, named=True)
    found: dict[str, float] = {
        "memory_l1_tag_requests_global": total["tag_requests"],
        "memory_l2_theoretical_sectors_global": total["sectors"],
        "memory_l2_theoretical_sectors_global_ideal": total["sectors_ideal"],
        "memory_l2_theoretical_sectors_local": total["sectors_local"],
        "memory_l1_wavefronts_shared": total["wavefronts"],
        "memory_l1_wavefronts_shared_ideal": total["wavefronts_ideal"],
    }
    plain = code.filter(~pl.col("opcode").str.contains("^(LDSM|LDGSTS)"))  # counted elsewhere
    for space in ("global", "shared", "local"):
        for op, word in (("ld", "load"), ("st", "store")):
            named = pl.col("opcode").replace_strict(_unseen(plain), default=None)
            told = pl.when(pl.col("space") == "").then(named).otherwise(pl.col("space"))
            mine = plain.filter(told == space, pl.col("operation") == word)
            found[f"smsp__inst_executed_op_{space}_{op}.sum"] = int(mine["instructions"].sum())
    return found


def _unseen(code: pl.DataFrame) -> dict[str, str]:
    """The space of each opcode, which the profiler does not say where no lane ever took part."""
    words = {op: CLASSES.get(m[1], ("",)) for op in code["opcode"] if (m := SASS.match(op))}
    return {op: names[0].partition(" ")[0] for op, names in words.items()}


def counted(run: Run) -> Iterator[Counted]:
    """The launches of a run on the chip."""
    launches, code = tables()
    size, collection, program = run
    mine = launches.filter(size=size, collection=collection, program=program)
    patched = code.filter(size=size, collection=collection, program=program)
    by_kernel = {name: part for (name,), part in patched.group_by("kernel", maintain_order=True)}
    metrics = [name for name in launches.columns if "__" in name]
    for row in mine.sort("number").iter_rows(named=True):
        counters = {m: row[m] for m in metrics if row[m] is not None}
        first = by_kernel.pop(spelt(row["kernel"]), None)  # the first of a kernel is the code's
        if first is not None and first["warps"][0] != counters["smsp__warps_launched.sum"]:
            first = None
        if first is not None:
            counters = {**counted_by_code(first), **counters}  # that counts predicated ones, too
        index = -1 if first is None else first["launch"][0]
        shape = tuple(row["grid"]), tuple(row["block"])
        yield Counted(row["kernel"], index, *shape, counters, first is not None)
    for kernel, part in by_kernel.items():
        counters = {**counted_by_code(part), "smsp__warps_launched.sum": part["warps"][0]}
        yield Counted(str(kernel), part["launch"][0], (), (), counters, True)


def compare(
    run: Run, trace: Trace, profiles: list[LaunchProfile], agreed: dict[tuple[str, str], Agreement]
) -> Iterator[Beside]:
    """Compare every metric of the launches that the trace has too.

    `agreed` says of kernels, by program and name, where PTX and the chip's code agree: what a small
    run finds out is good for the large one.
    """
    taken: set[int] = set()
    for launch in counted(run):
        number = _find(launch, profiles, taken)
        if number is None:
            continue
        ours = profiles[number]
        if launch.counters["smsp__warps_launched.sum"] != ours.counters["warps_launched"]:
            continue
        taken.add(number)
        sass = opcodes(run, launch.kernel)
        if launch.has_code and sass is not None:
            ptx = accesses(ours, trace.launches[number])
            agreed[run[2], spelt(launch.kernel)] = agreements(ptx, machine(sass))
        yield from pairs_of(run, launch, number, ours, agreed.get((run[2], spelt(launch.kernel))))


def _find(launch: Counted, profiles: list[LaunchProfile], taken: set[int]) -> int | None:
    """The number of a launch in the trace: where it must be, or the first of its name and shape."""
    for number, ours in enumerate(profiles):
        mine = ours.launch
        named = spelt(demangled(mine)), plain_name(demangled(mine))
        if launch.grid:
            same = named[1] == plain_name(launch.kernel)
            same &= (tuple(mine.grid), tuple(mine.block)) == (launch.grid, launch.block)
        else:
            same = number == launch.index and named[1] in launch.kernel
        if same and number not in taken:
            return number
    return None


def agreements(ptx: Mapping[str, Widths], chip: Mapping[str, Widths]) -> Agreement:
    if "generic" in chip:  # of any class, also of one that neither names
        return dict.fromkeys({*ptx, *chip, *OPS.values()}, GENERIC)
    return {name: _change(ptx.get(name, {}), chip.get(name, {})) for name in {*ptx, *chip}}


def _change(ptx: Widths, chip: Widths) -> str:
    """What became of a class of accesses."""
    if dict(ptx) == dict(chip):
        return ""
    if set(ptx) != set(chip):
        return WIDER
    return MORE if sum(chip.values()) > sum(ptx.values()) else LESS


def pairs_of(
    run: Run, launch: Counted, number: int, ours: LaunchProfile, agreed: Agreement | None
) -> Iterator[Beside]:
    for metric, theirs in launch.counters.items():
        mine = ours.counters.get(metric) or 0
        kind = "cache" if metric in CACHES else "count"
        unknown = metric not in ours.counters or metric in SAID_BY_THE_PROGRAM
        if unknown or (kind == "count" and classes(metric) is None):
            continue
        if max(theirs, mine) >= (CACHES[metric].least if metric in CACHES else ROUNDED):
            why_not = _why_not(run, launch, metric, agreed)
            name = plain_name(launch.kernel)
            yield Beside(kind, run, name, number, metric, theirs, mine, why_not)


def _why_not(run: Run, launch: Counted, metric: str, agreed: Agreement | None) -> str:
    """What makes a count not comparable, if anything does."""
    wanted = ALL if metric in CACHES else classes(metric)
    if not wanted:
        return ""
    if run[2] in TIMED:
        return TIMED[run[2]]
    if agreed is None or (not launch.has_code and "inst_executed" in metric):
        return NOT_CAPTURED
    changes = [agreed[name] for name in wanted if agreed.get(name)]
    if changes:
        return changes[0]
    hardware = sum(launch.counters.get(name) or 0 for name in WAVEFRONTS)
    addresses = launch.counters.get(BY_ADDRESSES, hardware)
    return WAITED if metric.startswith("l1tex__data_") and hardware != addresses else ""
