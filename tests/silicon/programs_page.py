"""The section of docs/validation.md about whole programs; programs.md here has the text."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
from silicon import unseen
from silicon.caches import NEAR as CACHES
from silicon.programs import FOLDER, TIMED, Beside

COMPARED = FOLDER / "h200_compared.parquet"
ABOUT = FOLDER / "h200_compared.json"

OTHERS = FOLDER / "others_compared.parquet"
KERNELS = FOLDER / "kernels_compared.parquet"

TEMPLATE = Path(__file__).parent / "programs.md"

OF_LAUNCH = ("launch__", "sm__maximum")
"""How the names of facts of a launch begin."""
PRINTS = (
    "the kernel calls `printf`: the driver's code on the chip has 32 registers (since this "
    "comparison cutrace counts them) and accesses memory"
)
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
        "the chip also counts cycles in which shuffles and `cp.async` wait",
    ),
    (
        ".*03_histogram_cuda|solutions/lab10/histogram",
        "op_red",
        "cutrace counts up to 12.5 % too few sectors of atomics on words beyond one block of 512 "
        "bytes",
    ),
    (
        ".*03_histogram_cuda",
        "op_ld",
        "ptxas moves the load into the branch of the only lane that needs it",
    ),
    (
        ".*module7/examples/01_sorting",
        "",
        "the program sorts numbers of `std::random_device`, different in each run",
    ),
    (
        "day06/TransposeMatrix",
        "shared_mem",
        "the program prefers 20 % of L1 to be shared memory (`cudaFuncSetAttribute`)",
    ),
    ("day18/atomic2", "op_ld", "the kernel loads a word to which other warps add"),
    ("0_hello_world", "", PRINTS),
    (
        "01.04-feature",
        "op_st",
        "which thread writes where depends on the order of atomic additions",
    ),
    ("02.04-euclidean", "registers", "ptxas 13.5 allocates 101 registers, 13.0 the chip's 103"),
    ("heartwall", "", "ptxas 13.5 allocates 32 registers, 13.0 the chip's 40"),
    (
        "ProfilingExamples/global_vs_shared",
        "conflicts",
        "the chip also counts cycles in which atomics wait",
    ),
    (
        "day023/genetic",
        "tag_requests",
        "`curand_kernel.h` is seeded by the time of day",
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
        "fa3|tk[hfm]|dgf8",
        "memory_l1_wavefronts_shared",
        "the chip also counts wavefronts that read the operands of `wgmma` (since this comparison "
        "cutrace does, too, and the counts are equal)",
    ),
    (
        "gg-mmvf|tkh4",
        "conflicts_pipe_lsu_mem_shared.sum",
        "the chip also counts cycles in which shuffles and `cp.async` wait",
    ),
    (
        "gg-mmvq|marlin64",
        "_ideal|wavefronts_shared",
        "ptxas orders or repeats the loads otherwise; not studied",
    ),
    ("xf-f16-64", "registers", "ptxas 13.5 allocates 152 registers, 13.0 the chip's 150"),
    (
        "",
        "dram__bytes_write",
        "the chip writes about 1 MB of the stored lines to DRAM before the launch ends",
    ),
    ("leukocyte", "op_read", "how long L1 keeps texels beside other data was not studied"),
    (
        "correlation|covariance|adi",
        "op_read",
        "an SM has one block, whose warps drift apart in time: how far decides what L1 still holds",
    ),
    (
        "",
        "lts__t_sectors_srcunit_tex_op_read",
        "timing decides which blocks share an SM, and which SMs request a sector together: in "
        "`gemm` (large) the L1s miss 1,611,804 sectors, for which L2 counts 737,457 reads",
    ),
    ("", "hit_rate", "the order of warps that share lines"),
    ("lavaMD", "", "ptxas 13.5 allocates 72 registers, 13.0 the chip's 70"),
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
    names = {"three collections": COMPARED, "seven others": OTHERS}
    names |= {draw.heading: draw.compared for draw in unseen.DRAWS}
    names |= {"kernels of libraries": KERNELS}
    return {name: kept(file) for name, file in names.items()}


def section() -> str:
    """The section of the page."""
    compared = sets()
    counts = {name: [b for b in mine if b.kind == "count"] for name, mine in compared.items()}
    every = [beside for mine in counts.values() for beside in mine]
    caches = [b for b in compared["three collections"] if b.kind == "cache"]
    far = [b for b in every if not b.why_not and not b.is_near]
    not_near = [b for b in caches if not b.why_not and not b.is_near]
    memory = [b for b in counts["three collections"] if not b.metric.startswith(OF_LAUNCH)]
    plain = [b for b in counts["seven others"] if b.run[1] != "raytracing"]
    about = json.loads(ABOUT.read_text())
    return TEMPLATE.read_text(encoding="utf-8").format(
        **about, missing=sum(about["captured"].values()),
        memory=_near_of(memory), plain=_near_of(plain),
        sets=_lines(_sets(counts)),
        left_out=_lines(_left_out(every)),
        reasons=_lines(_reasons(far)),
        cached=_lines(_caches(caches)),
        cache_reasons=_lines(_reasons(not_near)),
    )  # fmt: skip


def _lines(rows: Iterable[Iterable[object]]) -> str:
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in rows)


def _near_of(counts: Sequence[Beside]) -> str:
    of, near, _ = shares(counts)
    return f"{_percent(near, of)} % ({near} of {of})"


def _sets(counts: Mapping[str, Sequence[Beside]]) -> Iterator[tuple[object, ...]]:
    """A row for each set: how the programs ended, and how near the counts are."""
    draws = {draw.heading: draw for draw in unseen.DRAWS}
    for name, mine in counts.items():
        ended = [e for e in draws[name].ended() if e.is_judged] if name in draws else []
        whole = [each for each in ended if each.is_whole]
        ends = "not kept", "not kept"
        if ended:
            ends = f"{len(whole)} of {len(ended)}", f"{sum(e.prints_same for e in whole)}"
        pairs, near, equal = shares(mine)
        comparable, close, same = shares(b for b in mine if not b.why_not)
        launches = len({(b.run, b.launch) for b in mine})
        yield (
            name, *ends, len({b.run[1:] for b in mine}), launches, pairs,
            f"{_percent(near, pairs)} %", f"{_percent(equal, pairs)} %", comparable,
            f"{_percent(close, comparable)} %", f"{_percent(same, comparable)} %",
        )  # fmt: skip


def shares(compared: Iterable[Beside]) -> tuple[int, int, int]:
    """How many, how many are near, how many equal."""
    mine = list(compared)
    return len(mine), sum(b.is_near for b in mine), sum(b.is_equal for b in mine)


def _left_out(counts: Sequence[Beside]) -> Iterator[tuple[object, ...]]:
    reasons = Counter(b.why_not for b in counts if b.why_not)
    for why, many in reasons.most_common():
        _, near, _ = shares(b for b in counts if b.why_not == why)
        named = ", ".join(sorted(name for name, what in TIMED.items() if what == why))
        words = f"{why} ({named})" if named else why
        yield words, many, _percent(many, len(counts)), near


def _reasons(far: Sequence[Beside]) -> Iterator[tuple[object, ...]]:
    """Why comparable counts are not near, the most frequent reason first."""
    reasons = Counter(map(reason, far))
    for why, many in reasons.most_common():
        programs = sorted({b.run[2] for b in far if reason(b) == why})
        yield why, many, ", ".join(programs[:4]) + (" ..." if len(programs) > 4 else "")


def reason(beside: Beside) -> str:
    """Why a comparable count is apart; empty if nobody knows."""
    found = (
        why
        for program, metric, why in REASONS
        if re.match(program, beside.run[2]) and re.search(metric, beside.metric)
    )
    return next(found, "")


def _caches(cached: Sequence[Beside]) -> Iterator[tuple[object, ...]]:
    for metric, nearness in CACHES.items():
        many, near, _ = shares(b for b in cached if b.metric == metric and not b.why_not)
        yield f"`{metric}`", nearness.words, f"{near} of {many}", _percent(near, many)


def _percent(part: int, of: int) -> str:
    return f"{100 * part / of:.1f}" if of else ""
