"""The section of docs/validation.md about whole programs; programs.md here has the text."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
from silicon import unseen
from silicon.caches import SHARED_SM
from silicon.programs import FOLDER, TIMED, WAITED, Beside

COMPARED = FOLDER / "h200_compared.parquet"
ABOUT = FOLDER / "h200_compared.json"

OTHERS = FOLDER / "others_compared.parquet"
KERNELS = FOLDER / "kernels_compared.parquet"

TEMPLATE = Path(__file__).parent / "programs.md"

OF_LAUNCH = ("launch__", "sm__maximum")
"""How the names of facts of a launch begin."""
PRINTS = (
    "the kernel calls `printf`, the driver's code on the chip: it needs other registers, and these "
    "are always comparable"
)
WAITS = "the chip also counts cycles in which shuffles, `cp.async` or atomics wait"
RANDOM = "the inputs are random"
ORDER = "results depend on the order of atomic additions"
PTXAS = "ptxas 13.5 allocates other registers than 13.0, which made the chip's code"
REASONS = (
    (
        "exercises/compiling|example/dynamic_par|examples/2.02_Hello|topics/cuda/sol|.*06_debug|"
        "src/001-basic|empty/empty|Chapter09/multiGPU|GPGPU_basic/12|misc/cuda_hello",
        "registers",
        PRINTS,
    ),
    (
        ".*03_kernel_opt|23_load_bal|.*04_reduction_cuda|02_use_warp",
        "conflicts_pipe_lsu_mem_shared.sum",
        WAITS,
    ),
    (
        ".*03_histogram_cuda|solutions/lab10/histogram",
        "op_red",
        "cutrace counts up to 12.5 % too few sectors if a warp's atomic spans more than one "
        "aligned 512 bytes",
    ),
    (
        ".*03_histogram_cuda",
        "op_ld",
        "ptxas moves the load into the branch of the only lane that needs it",
    ),
    (
        ".*module7/examples/01_sorting",
        "",
        RANDOM,
    ),
    (
        "day06/TransposeMatrix",
        "shared_mem",
        "the program prefers 20 % of L1 to be shared memory (`cudaFuncSetAttribute`)",
    ),
    ("day18/atomic2", "op_ld", ORDER),
    ("0_hello_world", "", PRINTS),
    (
        "01.04-feature",
        "op_st",
        ORDER,
    ),
    ("02.04-euclidean", "registers", PTXAS),
    ("heartwall", "", PTXAS),
    (
        "ProfilingExamples/global_vs_shared",
        "conflicts",
        WAITS,
    ),
    (
        "day023/genetic",
        "tag_requests",
        RANDOM,
    ),
    (
        "ch12",
        "registers",
        "the kernel calls `free`: the driver's code on the chip has 32 registers",
    ),
    (
        "matrixMul|backprop|hotspot",
        "mem_shared_op",
        "the chip takes more wavefronts than the addresses need, in kernels of which many warps "
        "access shared memory at once",
    ),
    (
        "fa3|tk[hfm]|dgf8|deepgemm|cute-wgmma",
        "memory_l1_wavefronts_shared|per_wavefront_mem_shared.ratio",
        "the chip also counts wavefronts that read operands of `wgmma` (cutrace now does, too)",
    ),
    (
        "gg-mmvf|tkh4|vllm",
        "conflicts_pipe_lsu_mem_shared.sum",
        WAITS,
    ),
    ("vllm", "op_st|sectors_global", ORDER),
    (
        "flash2",
        "per_wavefront_mem_shared",
        "in bytes per wavefront the chip leaves out `ldmatrix` (now cutrace does, too); many warps "
        "at once take more wavefronts",
    ),
    (
        "gg-mmvq|marlin64",
        "_ideal|wavefronts_shared",
        "ptxas orders or repeats the loads otherwise; not studied",
    ),
    ("xf-f16-64", "registers", PTXAS),
    (
        "",
        "dram__bytes_write",
        "the chip also writes older data to DRAM, or stored lines before the launch ends",
    ),
    ("leukocyte", "op_read", "how long L1 keeps texels beside other data was not studied"),
    (
        "correlation|covariance|adi",
        "op_read",
        "the warps of a block drift apart in time, which decides what L1 still holds",
    ),
    (
        "",
        "lts__t_sectors_srcunit_tex_op_read",
        SHARED_SM,
    ),
    ("", "hit_rate", "several warps access the same lines, in an order that depends on timing"),
    ("lavaMD", "", PTXAS),
)
"""Regular expressions for the program and the counter, and why they are apart."""


def kept(file: Path = COMPARED) -> list[Beside]:
    """What was compared last."""
    rows = pl.read_parquet(file).iter_rows(named=True)
    return [
        Beside(
            r["kind"], (r["size"], r["collection"], r["program"]), r["kernel"], r["launch"],
            r["metric"], _whole(r["theirs"]), _whole(r["ours"]), r["why_not"],
        )
        for r in rows
    ]  # fmt: skip


def _whole(value: float) -> float:
    return int(value) if float(value).is_integer() else value


def keep(compared: Sequence[Beside], about: dict[str, object]) -> None:
    """Keep what was compared, and what is to be said of it."""
    keep_pairs(compared, COMPARED)
    ABOUT.write_text(json.dumps(about, indent=1) + "\n")


def keep_pairs(compared: Sequence[Beside], file: Path) -> None:
    """Keep pairs of counts."""
    rows = [
        {
            "kind": b.kind, "size": b.run[0], "collection": b.run[1], "program": b.run[2],
            "kernel": b.kernel, "launch": b.launch, "metric": b.metric,
            "theirs": float(b.theirs), "ours": float(b.ours), "why_not": b.why_not,
        }
        for b in compared
    ]  # fmt: skip
    pl.DataFrame(rows).write_parquet(file, compression="zstd", compression_level=19)


def sets() -> dict[str, list[Beside]]:
    """The counts of each set of programs, by the set's name on the page."""
    names = {"three collections": COMPARED, "seven other collections": OTHERS}
    names |= {draw.heading: draw.compared for draw in unseen.DRAWS}
    names |= {"kernels of libraries": KERNELS}
    return {name: kept(file) for name, file in names.items()}


IN_FULL = {
    WAITED: "the profiler has two counters of shared-memory wavefronts, and they disagree",
    **dict.fromkeys(TIMED.values(), RANDOM),
}
"""Reasons of the tables, as the page has them."""
CHIPS = {"seven other collections": "H200", "three collections": "H200", "fourth draw": "H200"}
"""The chips of sets that are not the H100."""


def section() -> str:
    """The section of the page."""
    counts = {name: _counts(mine) for name, mine in sets().items()}
    every = [beside for mine in counts.values() for beside in mine]
    plain = [b for b in counts["seven other collections"] if b.run[1] != "raytracing"]
    return TEMPLATE.read_text(encoding="utf-8").format(
        plain=_percent(shares(plain)[1], len(plain)),
        sets=_lines(_sets(counts)),
        left_out=_lines(_left_out(every)),
        reasons=_lines(_far([b for b in every if not b.why_not]).items()),
    )


def _counts(compared: Sequence[Beside]) -> list[Beside]:
    return [beside for beside in compared if beside.kind == "count"]


def drawn() -> tuple[int, int, int, int]:
    """The counts of all draws, and the equal ones: of all, and of the comparable ones."""
    mine = [beside for draw in unseen.DRAWS for beside in _counts(kept(draw.compared))]
    comparable = [beside for beside in mine if not beside.why_not]
    return *shares(mine)[::2], *shares(comparable)[::2]


def cached_programs(metric: str) -> tuple[int, int]:
    """How many launches of the three collections are near in a counter of a cache, and all."""
    mine = [b for b in kept() if b.kind == "cache" and b.metric == metric and not b.why_not]
    return sum(beside.is_near for beside in mine), len(mine)


def far_cache_counts() -> Counter[str]:
    """How many counts of caches of the three collections are not near, by the reason."""
    return _far([b for b in kept() if b.kind == "cache" and not b.why_not])


def _far(comparable: Iterable[Beside]) -> Counter[str]:
    """How many counts are not near, by the reason, the most frequent first."""
    reasons = Counter(reason(beside) for beside in comparable if not beside.is_near)
    return Counter(dict(reasons.most_common()))


def _lines(rows: Iterable[Iterable[object]]) -> str:
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in rows)


def _sets(counts: Mapping[str, Sequence[Beside]]) -> Iterator[tuple[object, ...]]:
    """A row for each set: its size, and how near the counts are."""
    for name, mine in counts.items():
        cells = [name, CHIPS.get(name, "H100"), str(len({b.run[1:] for b in mine}))]
        for some in (mine, [b for b in mine if not b.why_not]):
            pairs, near, equal = shares(some)
            cells += f"{pairs:,}", f"{_percent(equal, pairs)} %", f"{_percent(near, pairs)} %"
        yield tuple(cells)


def shares(compared: Iterable[Beside]) -> tuple[int, int, int]:
    """How many, how many are near, how many equal."""
    mine = list(compared)
    return len(mine), sum(b.is_near for b in mine), sum(b.is_equal for b in mine)


def _left_out(counts: Sequence[Beside]) -> Iterator[tuple[object, ...]]:
    reasons = Counter(b.why_not for b in counts if b.why_not)
    for why, many in reasons.most_common():
        _, near, _ = shares(b for b in counts if b.why_not == why)
        yield IN_FULL.get(why, why), many, near


def reason(beside: Beside) -> str:
    """Why a comparable count is apart; empty if nobody knows."""
    found = (
        why
        for program, metric, why in REASONS
        if re.match(program, beside.run[2]) and re.search(metric, beside.metric)
    )
    return next(found, "")


def _percent(part: int, of: int) -> str:
    return f"{100 * part / of:.1f}" if of else ""
