"""What a chip counted beside what cutrace counts, launch by launch and metric by metric.

The files are those of scripts/capture/counters.py. ptxas stands between PTX and the chip: it
merges, unrolls, predicates and removes accesses. So a pair of counts is *comparable* only if the
warp instructions of its class (say, loads from global memory) agree in number and width between the
code that cutrace counted, PTX as ptxas makes machine code of it here, and the SASS that the chip
ran. Nor is anything comparable in kernels whose
addresses are up to time, nor are wavefronts where the profiler's two counts of them, by the
hardware and by the addresses of the instructions, differ from one another.
"""

import json
import re
import runpy
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from program import Program

import cutrace
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.models.replay.atomic_loops import unrolled
from cutrace.models.replay.sass_view import EMPTY, accesses_on, sass_view
from cutrace.tracer.front.resources import measure
from cutrace.tracer.session.source.record import record
from cutrace.traces.reader import LaunchTrace

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "validate" / "counters"
PROGRAMS = ROOT / "tests" / "programs"
GALLERY = ROOT / "traces" / "gallery"
DEVICE, TARGET, ARCH = "h200", "compute_90", "sm_90"
CAPABILITY = 9, 0
OPTIONS = ("-ftz=true",)
"""What CuPy, which the captures were made with, adds to every compilation."""

Widths = Mapping[int, int]
"""How many warp instructions of a class access so many bytes a lane."""

SASS = re.compile(
    r"(LDGSTS|LDG|STG|ATOMG|REDG?|LDSM|LDS|STSM|STS|ATOMS|LDL|STL|LD|ST|ATOM|TEX|TLD4?)\b"
)
CLASSES = {
    **{"LDG": ("global load",), "STG": ("global store",), "ATOMG": ("global atomic",)},
    **{"RED": ("global reduction",), "REDG": ("global reduction",), "LDL": ("local load",)},
    **{"LDS": ("shared load",), "STS": ("shared store",), "ATOMS": ("shared atomic",)},
    **{"LDSM": ("shared load",), "STSM": ("shared store",), "STL": ("local store",)},
    **dict.fromkeys(("TEX", "TLD", "TLD4"), ("texture load",)),
    "LDGSTS": ("global load", "shared store"),
}
WIDTHS = {
    **{"U8": 1, "S8": 1, "U16": 2, "S16": 2, "128": 16, "M88": 16, "MT88": 16},
    **dict.fromkeys(("64", "U64", "S64", "F64"), 8),
}
"""Bytes a lane, by a word of the opcode: of a matrix each lane names a row of 16."""
TIMED = {
    "breadth_first_search.py expand": "which warp appends to the queue first",
    "atomics.py insert": "which lanes must try their compare and swap again",
    "everyday.cu compact": "which block appends first",
    "fresh2_groups.cu grouped_push": "which warp of a block appends first",
}
"""Kernels whose addresses are up to time, and what decides them."""
UNSTEADY = {"fresh2_types.cu private_histogram"}
"""Kernels of which the assembler makes other machine code in one run than in the next, there and
here: their counts are compared with nothing."""
WAVEFRONTS = tuple(
    f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st", "atom")
)
BY_ADDRESSES = "memory_l1_wavefronts_shared"
ANY_WIDTH = frozenset({"texture load"})
"""Classes whose SASS does not say how wide a lane's access is."""


@dataclass(frozen=True)
class Launched:
    """One launch: what the chip counted and ran, and the profile that cutrace makes of it.

    `ptx` are the accesses that cutrace counted, `by_ptx` its counters with those of the PTX.
    """

    source: str
    number: int
    kernel: str
    counted: Mapping[str, float | None]
    sass: Mapping[str, int]
    ours: LaunchProfile
    ptx: Mapping[str, Widths]
    by_ptx: Mapping[str, float | int | None]

    @cached_property
    def machine(self) -> Mapping[str, Widths]:
        """The warp instructions that the chip ran, by class and width."""
        found: dict[str, Counter[int]] = {}
        for opcode, times in self.sass.items():
            if match := SASS.match(opcode):
                words = opcode.split(".")
                width = next((WIDTHS[w] for w in words if w in WIDTHS), 4)
                for name in CLASSES.get(match[1], ("generic",)):  # LD and ST: any space
                    found.setdefault(name, Counter())[0 if name in ANY_WIDTH else width] += times
        return found

    @property
    def waited(self) -> bool:
        """Whether the hardware counted more wavefronts than the addresses account for.

        Not told of kernels that copy to shared memory, which the hardware counts elsewhere.
        """
        by_hardware = sum(self.counted.get(name) or 0 for name in WAVEFRONTS)
        return not self.copies and by_hardware != (self.counted.get(BY_ADDRESSES) or 0)

    @property
    def copies(self) -> bool:
        """Whether it copies to shared memory."""
        return any(opcode.startswith("LDGSTS") for opcode in self.sass)

    def agrees(self, name: str) -> bool:
        """Whether PTX and SASS access memory of a class equally often and wide."""
        if "generic" in self.machine or f"{self.source} {self.kernel}" in TIMED:
            return False
        return dict(self.ptx.get(name, {})) == dict(self.machine.get(name, {}))


@cache
def launched(file: str) -> tuple[Launched, ...]:
    """Record and analyze everything that a capture has; sources are those of this tree."""
    told = json.loads((FOLDER / file).read_text())
    by_source: dict[str, list[dict[str, Any]]] = {}
    for launch in told["launches"]:
        by_source.setdefault(launch["source"], []).append(launch)
    found: list[Launched] = []
    for source, launches in by_source.items():
        made = _launches(source, launches, told["metrics"])
        found += (one for one in made if f"{one.source} {one.kernel}" not in UNSTEADY)
    return tuple(found)


def _launches(
    source: str, launches: list[dict[str, Any]], metrics: list[str]
) -> Iterator[Launched]:
    ask = partial(measure, archs=(ARCH,))  # nobody here asks for the other architectures'
    with (
        patch("cutrace.tracer.session.resources.measure", ask),
        patch("cutrace.analyzer.build_profile.load_measured", return_value=None),  # nor for a time
        tempfile.TemporaryDirectory() as folder,
    ):
        trace = cutrace.read_trace(_record(source, Path(folder) / "t.cutrace"))
        profile = cutrace.analyze(trace, DEVICE, jobs=1)  # other tests have the other cores
        changed = [each for each in trace.launches if as_made(each) is not each]
        some = replace(trace, launches=tuple(changed))
        plain = (
            cutrace.analyze(some, DEVICE, code="ptx", caches=False, jobs=1) if changed else profile
        )
        twins = dict(zip((each.number for each in changed), plain.launches, strict=False))
        for launch, traced, ours in zip(launches, trace.launches, profile.launches, strict=True):
            twin = twins.get(traced.number, ours).counters
            chip = dict(zip(metrics, launch["counters"], strict=True))
            ptx = accesses(ours, traced)
            ours.counters  # noqa: B018 - while the trace is there
            told = source, launch["launch"], launch["kernel"], chip, launch["sass"]
            yield Launched(*told, ours, ptx, twin)


def _record(source: str, path: Path) -> Path:
    """Record a source with launch comments, or a program of tests/programs."""
    if source.endswith(".py"):
        script = PROGRAMS / source
        said = runpy.run_path(str(script))
        options = (*said.get("OPTIONS", ()), *OPTIONS)
        templates = said.get("TEMPLATES", ())
        with cutrace.Session(path) as gpu:
            module = gpu.compile(script.with_suffix(".cu"), TARGET, options, templates)
            said["run"](Program(gpu, module))
        return path
    folders = (FOLDER, FOLDER.parent / "caches")
    known = [*(folder / source for folder in folders), *GALLERY.glob(f"*/{source}")]
    found = next(p for p in known if p.exists())
    return record(found, [], path, arch=TARGET, options=OPTIONS)


def as_made(trace: LaunchTrace) -> LaunchTrace:
    """A launch with the accesses that the assembler makes of its PTX."""
    return unrolled(sass_view(trace, accesses_on(trace.launch, CAPABILITY)))


def accesses(ours: LaunchProfile, trace: LaunchTrace) -> Mapping[str, Widths]:
    """The warp instructions that cutrace counted, by class and width: of those of the PTX, or of
    what the assembler made of them; those that no lane took part in among them.
    """
    found: dict[str, Counter[int]] = {}
    merged = {"shared reduction": "shared atomic"}
    instructions = as_made(trace).instructions().to_pylist()
    counts = ours.raw.counts
    requests = [n for n in counts.columns if n.endswith("_requests") and "split" not in n]
    sums = counts.select("pc", *requests, *EMPTY).group_by("pc").sum()
    for row in sums.iter_rows(named=True):
        for column in (*requests, *EMPTY):
            if row[column] and column.count("_") == 2:
                name = column.rpartition("_")[0].replace("_", " ")
                name = merged.get(name, name)
                width = 0 if name in ANY_WIDTH else instructions[row["pc"]]["bytes"]
                found.setdefault(name, Counter())[width] += row[column]
    return found


GLOBAL = ("global load", "global store", "global atomic", "global reduction")
SHARED = ("shared load", "shared store", "shared atomic")
OPS = {
    **{"global_op_ld": GLOBAL[0], "global_op_st": GLOBAL[1], "global_op_atom": GLOBAL[2]},
    **{"global_op_red": GLOBAL[3], "local_op_ld": "local load", "local_op_st": "local store"},
    **{"shared_op_ld": SHARED[0], "shared_op_st": SHARED[1], "shared_op_atom": SHARED[2]},
}
SUMS = {
    "smsp__sass_average_data_bytes_per_wavefront_mem_shared.ratio": SHARED,
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": SHARED,
    "memory_l1_tag_requests_global": GLOBAL,
    "memory_l1_wavefronts_shared": SHARED,
    "memory_l1_wavefronts_shared_ideal": SHARED,
    "memory_l2_theoretical_sectors_global": GLOBAL,
    "memory_l2_theoretical_sectors_global_ideal": GLOBAL,
    "memory_l2_theoretical_sectors_local": ("local load", "local store"),
}
ROUNDED = 0.00501
"""The profiler prints two decimals."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One metric of one launch. `verdict` is `equal`, `unequal`, `zero` (both) or `apart`."""

    launched: Launched
    metric: str
    theirs: float
    ours: float
    verdict: str
    by_ptx: float

    @property
    def reason(self) -> str:
        """Why the counts of an unequal pair differ; empty if nobody knows."""
        return next((e.reason for e in EXPLAINED if e.covers(self)), "")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why some counts differ: regular expressions for `source kernel` and for the metric."""

    kernel: str
    metric: str
    reason: str

    def covers(self, pair: Pair) -> bool:
        """Whether this is about that pair."""
        named = f"{pair.launched.source} {pair.launched.kernel}"
        return bool(re.match(self.kernel, named) and re.search(self.metric, pair.metric))


ASSEMBLER = "ptxas 13.0 made the chip's code, ptxas 12.9 cutrace's"
TENSOR = "cutrace's `mma.h` uses other instructions than NVIDIA's, which need other registers"
FOLLOWS = "follows from the registers"
ASYNC = "on the chip some `cp.async` take more wavefronts than their addresses need"
EXPLAINED = (
    Explanation(r"fresh_tensor.cu|fresh2_groups.cu (half|bf16)_tiles", "registers", TENSOR),
    Explanation(
        r".*",
        r"bank_conflicts_pipe_lsu_mem_shared\.sum",
        "the chip also counts cycles in which shuffles and `cp.async` wait",
    ),
    Explanation(
        r"fresh2_groups.cu (gather|product)_ahead",
        "wavefronts?_(mem_)?shared",
        ASYNC,
    ),
    Explanation(
        r"fresh2_groups.cu copy_ahead",
        "op_shared_ld",
        "the chip also issues instructions whose predicate is false for all lanes",
    ),
    Explanation(r"unseen.cu shrink", "registers", ASSEMBLER),
    Explanation(
        r"atomic_more.cu s_u64_max",
        "per_wavefront_mem_shared.ratio",
        "a 64-bit atomic maximum is a loop on the chip, and a lane without a new maximum does not "
        "store",
    ),
    Explanation(
        r"fresh_groups.cu two_stages",
        "per_wavefront_mem_shared.ratio",
        ASYNC,
    ),
    Explanation(r".*", "maximum_warps", FOLLOWS),
    Explanation(r"fresh_tensor.cu", "waves_per_multiprocessor", FOLLOWS),
    Explanation(
        r"histogram.py histogram_(global|peers)|kernels.cu histogram|"
        r"everyday.cu (count_in_global|float_sums|long_sums)|collide.cu (red|atom)_at|"
        r"fresh.cu coordinates|fresh2.cu (joint_histogram|push_rank|lowest_label)|"
        r"fresh2_types.cu global_kinds",
        "sectors.*global_op_(red|atom)",
        "cutrace counts up to 12.5 % too few sectors if a warp's atomic spans more than one "
        "aligned 512 bytes",
    ),
)


@cache
def classes(metric: str) -> tuple[str, ...] | None:
    """What accesses a metric counts; none for facts of the launch.

    None for what is not held to equality: instructions, of which PTX has others, and caches.
    """
    if metric.startswith(("launch__", "sm__maximum", "smsp__warps_launched")):
        return ()
    if metric in SUMS:
        return SUMS[metric]
    if "lookup" in metric:
        return None
    spelt = re.sub(r"op_(global|shared|local)_(ld|st|atom|red)", r"\1_op_\2", metric)
    return next(((name,) for op, name in OPS.items() if op in spelt), None)


def pairs(launches: tuple[Launched, ...]) -> Iterator[Pair]:
    """Compare every metric that both know and that is held to equality."""
    for launch in launches:
        for metric, theirs in launch.counted.items():
            wanted = classes(metric)
            ours = launch.ours.counters.get(metric)
            if wanted is not None and metric in launch.ours.counters:
                yield _pair(launch, metric, theirs or 0, ours or 0, wanted)


def _pair(
    launch: Launched, metric: str, theirs: float, ours: float, wanted: tuple[str, ...]
) -> Pair:
    near = ROUNDED if isinstance(ours, float) else 0
    if not theirs and abs(ours) <= near:
        verdict = "zero"
    elif not _comparable(launch, metric, wanted):
        verdict = "apart"
    else:
        verdict = "equal" if abs(theirs - ours) <= near else "unequal"
    return Pair(launch, metric, theirs, ours, verdict, launch.by_ptx[metric] or 0)


def _comparable(launch: Launched, metric: str, wanted: tuple[str, ...]) -> bool:
    if metric.startswith("l1tex__data_") and launch.waited:
        return False
    return all(launch.agrees(name) for name in wanted)
