"""The section of docs/validation.md about whole programs, from what was compared and kept."""

import json
import re
import textwrap
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

START, NEXT = "## Programs\n", "\n## What is not equal\n"
HEAD = """## Programs

Programs of NVIDIA/cuda-samples, Rodinia and PolyBench-GPU as they are, on an H200 (built by nvcc
13.0.88 for sm_90, `tests/validate/programs/README.md`) and recorded by cutrace (`cutrace record -d
h200 -- ./program`, built by the nvcc 13.5 of `cutrace[programs]`). Of {tried} programs that ran on
the chip {recorded} were recorded. `scripts/compare_programs.py` compared them on {date}: counts at
commit {commit}, caches at {caches}, of recordings of {caches} to which was added what ptxas made of
their loads and stores. The table of it is `tests/validate/programs/h200_compared.parquet`. Of
{hardware} programs the hardware's counters were read, of all the counts of patched code: how often
warps issued an instruction is then compared with `smsp__inst_executed_op_*`.

Raw, with nothing left out: of {pairs} counts of {launches} launches that are not zero on both sides
**{near} lie within 1 % of the chip's, {near_percent} %**; {equal} are equal, {equal_percent} %.
Without facts of the launch (registers, shared memory, occupancy) it is {memory_near} of {memory},
{memory_percent} %.

{missing}

Comparable, by the rule above, are {comparable}; of these **{close} lie within 1 %,
{close_percent} %**, and {same} are equal, {same_percent} %. The others, {left_percent} % of all,
are left out:

| what | counts | of all, % | within 1 % all the same |
|---|---:|---:|---:|
"""

COUNTERS = """
Counter by counter, those within 1 % of those that are comparable, and of those left out:

| counter | within 1 % | % | left out | within 1 % |
|---|---:|---:|---:|---:|
"""

FAR = """
Comparable, and further apart:

| program, kernel, launch | counter | chip | cutrace | why |
|---|---|---:|---:|---|
"""

NEARNESS = """
Caches, in launches whose accesses are comparable, where there is something to find:

| counter | near | of launches | % |
|---|---|---:|---:|
"""

NOT_NEAR = """
Those that are not near:

| program, kernel, launch | counter | chip | cutrace | why |
|---|---|---:|---:|---|
"""

OF_OTHERS = """
### Programs of other collections

The collections above were at hand while cutrace was made; these were not:
{collections}.
{programs} runs of their programs in small sizes were built once by nvcc 13.0.88 for the same H200
and for cutrace (machine code and PTX in one file, NVIDIA's static runtime) and recorded as they
are. Raw, of {pairs} counts of {launches} launches **{near} lie within 1 %, {near_percent} %**;
{equal} are equal. Without raytracing, whose kernels call `new` and virtual functions (on the chip
the driver's code and stacks in local memory), it is {plain_near} of {plain}, {plain_percent} %.
Comparable are {comparable}, of these **{close} lie within 1 %, {close_percent} %**. Registers and
what follows from them are compared where the recording had NVIDIA's assembler. Left out:

| what | counts | of all, % | within 1 % all the same |
|---|---:|---:|---:|
"""

POLLS = """
A kernel that waits in a loop for what other blocks store (a barrier of the whole grid, a lock,
CUB's look-back) loads as often as time allows: the chip's count of these loads differs from run to
run, and cutrace's, whose warps take turns, is another. Only what such loops do besides can be
compared.
"""

OF_LAUNCH = ("launch__", "sm__maximum")
"""How the names of facts of a launch begin."""
UNLIKE = (
    "Thrust of CUDA 13.0 launches other kernels than that of 13.3; of lu and adi as many launches "
    "were recorded as fit into minutes; a graph's branches may run in any order."
)
REASONS = (
    (
        "exercises/compiling|example/dynamic_par|examples/2.02_Hello|topics/cuda/sol|.*06_debug",
        "registers",
        "`printf` is the driver's code on the chip, which takes 32 registers; mended since",
    ),
    (
        ".*03_kernel_opt|23_load_bal|.*04_reduction_cuda|02_use_warp",
        "conflicts_pipe_lsu_mem_shared.sum",
        "the chip counts turns in which shuffles and copies wait, too",
    ),
    (
        ".*03_histogram_cuda|solutions/lab10/histogram",
        "op_red",
        "atomics on random words further apart than 512 bytes move up to 4 % more sectors",
    ),
    (
        ".*03_histogram_cuda",
        "op_ld",
        "ptxas moves the load into the branch of the only lane that needs it",
    ),
    (
        ".*module7/examples/01_sorting",
        "",
        "the program sorts numbers of `std::random_device`: others in each run",
    ),
    (
        "day06/TransposeMatrix",
        "shared_mem",
        "the program prefers 20 % of L1 to be shared memory (`cudaFuncSetAttribute`)",
    ),
    ("day18/atomic2", "op_ld", "it loads a word that other warps add to"),
    ("0_hello_world", "", "`printf` is the driver's code on the chip"),
    (
        "01.04-feature",
        "op_st",
        "which thread writes where depends on the order of atomic additions",
    ),
    ("02.04-euclidean", "registers", "the program's nvcc 13.0 makes 103 registers of it, 13.5 101"),
    ("heartwall", "", "nvcc 13.5 makes 32 registers of it, nvcc 13.0 the chip's 40"),
    (
        "src/001-basic|empty/empty|Chapter09/multiGPU|GPGPU_basic/12|misc/cuda_hello",
        "",
        "`printf` is the driver's code on the chip",
    ),
    (
        "ProfilingExamples/global_vs_shared",
        "conflicts",
        "the chip counts turns in which atomics wait, too",
    ),
    (
        "day023/genetic",
        "tag_requests",
        "which rivals a thread draws by `curand_kernel.h` is by the time of day",
    ),
    (
        "ch12",
        "registers",
        "`free` is the driver's code on the chip, which takes 32 registers",
    ),
    (
        "matrixMul|backprop|hotspot",
        "mem_shared_op",
        "more than the addresses account for, as in other launches that fill the chip",
    ),
    (
        "",
        "dram__bytes_write",
        "of many stored lines some megabyte is written before the launch ends",
    ),
    ("leukocyte", "op_read", "texels in L1: how long they stay beside others was not studied"),
    (
        "correlation|covariance|adi",
        "op_read",
        "one block an SM, whose warps drift apart: how far decides what L1 still has",
    ),
    (
        "",
        "lts__t_sectors_srcunit_tex_op_read",
        "which blocks share an SM, and which SMs ask for one sector at once: `gemm` (large) sends "
        "1,611,808 sectors to the L1s, of which L2 reads 737,457",
    ),
    ("", "hit_rate", "which of the warps that share lines comes first"),
    ("lavaMD", "", "nvcc 13.5 makes 72 registers of it, nvcc 13.0 the chip's 70"),
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


def section() -> Iterator[str]:
    """The lines of the section."""
    compared = kept()
    counts = [b for b in compared if b.kind == "count"]
    yield _head(counts).rstrip("\n")
    yield from _left_out(counts)
    yield COUNTERS.rstrip("\n")
    yield from _counters(counts)
    yield FAR.rstrip("\n")
    yield from _far(counts)
    yield NEARNESS.rstrip("\n")
    yield from _caches([b for b in compared if b.kind == "cache"])
    yield NOT_NEAR.rstrip("\n")
    yield from _far([b for b in compared if b.kind == "cache"])
    yield from _others([b for b in kept(OTHERS) if b.kind == "count"])
    for draw in unseen.DRAWS:
        yield from _unseen(draw, [b for b in kept(draw.compared) if b.kind == "count"])


def _unseen(draw: unseen.Draw, counts: Sequence[Beside]) -> Iterator[str]:
    """The part about programs that were never run before."""
    yield unseen.head(draw, counts, shares, _percent)
    yield from _left_out(counts)
    yield FAR.rstrip("\n")
    yield from _far(counts)


def _others(counts: Sequence[Beside]) -> Iterator[str]:
    """The part about programs of collections that were not at hand."""
    pairs, near, equal = shares(counts)
    comparable, close, _ = shares(b for b in counts if not b.why_not)
    plain, plain_near, _ = shares(b for b in counts if b.run[1] != "raytracing")
    yield OF_OTHERS.format(
        programs=len({b.run for b in counts}),
        collections=", ".join(sorted({b.run[1] for b in counts})),
        launches=len({(b.run, b.launch) for b in counts}),
        plain=plain, plain_near=plain_near, plain_percent=_percent(plain_near, plain),
        pairs=pairs, near=near, equal=equal, comparable=comparable, close=close,
        near_percent=_percent(near, pairs), close_percent=_percent(close, comparable),
    ).rstrip("\n")  # fmt: skip
    yield from _left_out(counts)
    yield FAR.rstrip("\n")
    yield from _far(counts)
    yield POLLS.rstrip("\n")


def renewed(text: str) -> str:
    """A page with its section about programs written anew."""
    before, _, after = text.partition(NEXT)
    before = before.partition(START)[0].rstrip("\n")
    return before + "\n\n" + "\n".join(section()) + "\n" + NEXT + after


def shares(compared: Iterable[Beside]) -> tuple[int, int, int]:
    """How many, how many are near, how many equal."""
    mine = list(compared)
    return len(mine), sum(b.is_near for b in mine), sum(b.is_equal for b in mine)


def _head(counts: Sequence[Beside]) -> str:
    about = json.loads(ABOUT.read_text())
    pairs, near, equal = shares(counts)
    comparable, close, same = shares(b for b in counts if not b.why_not)
    memory, memory_near, _ = shares(b for b in counts if not b.metric.startswith(OF_LAUNCH))
    found = {(b.run, b.launch) for b in counts}
    return HEAD.format(
        **{key: about[key] for key in ("tried", "date", "commit", "caches", "hardware")},
        recorded=len({b.run[1:] for b in counts}),
        launches=len(found),
        memory=memory,
        memory_near=memory_near,
        memory_percent=_percent(memory_near, memory),
        missing=_missing(about["captured"]),
        pairs=pairs, near=near, equal=equal, comparable=comparable, close=close, same=same,
        near_percent=_percent(near, pairs), equal_percent=_percent(equal, pairs),
        close_percent=_percent(close, comparable), same_percent=_percent(same, comparable),
        left_percent=_percent(pairs - comparable, pairs),
    )  # fmt: skip


def _missing(captured: Mapping[str, int]) -> str:
    """Launches of the chip that have no like in the recordings, and why."""
    named = ", ".join(f"{many} of {program}" for program, many in captured.items())
    words = (
        f"{sum(captured.values())} more launches were captured that the recordings have none like:"
    )
    return textwrap.fill(f"{words} {named}. {UNLIKE}", 104)


def _left_out(counts: Sequence[Beside]) -> Iterator[str]:
    every = Counter(b.why_not for b in counts if b.why_not)
    for why, many in every.most_common():
        _, near, _ = shares(b for b in counts if b.why_not == why)
        named = ", ".join(sorted(name for name, what in TIMED.items() if what == why))
        words = f"{why} ({named})" if named else why
        yield f"| {words} | {many} | {_percent(many, len(counts))} | {near} |"


def _counters(counts: Sequence[Beside]) -> Iterator[str]:
    for metric in sorted({b.metric for b in counts}):
        mine = [b for b in counts if b.metric == metric]
        many, near, _ = shares(b for b in mine if not b.why_not)
        left, close, _ = shares(b for b in mine if b.why_not)
        cells = (f"{near} of {many}", _percent(near, many), left, close)
        yield f"| `{metric}` | {' | '.join(map(str, cells))} |"


def _far(counts: Sequence[Beside]) -> Iterator[str]:
    for b in counts:
        if not b.why_not and not b.is_near:
            place = f"{b.run[2]} ({b.run[0]}), `{b.kernel}`, {b.launch}"
            both = f"{_number(b.theirs)} | {_number(b.ours)}"
            yield f"| {place} | `{b.metric}` | {both} | {reason(b)} |"


def reason(beside: Beside) -> str:
    """Why a comparable count is apart; empty if nobody knows."""
    found = (
        why
        for program, metric, why in REASONS
        if re.match(program, beside.run[2]) and re.search(metric, beside.metric)
    )
    return next(found, "")


def _caches(cached: Sequence[Beside]) -> Iterator[str]:
    for metric, nearness in CACHES.items():
        many, near, _ = shares(b for b in cached if b.metric == metric and not b.why_not)
        yield f"| `{metric}` | {nearness.words} | {near} of {many} | {_percent(near, many)} |"


def _percent(part: int, of: int) -> str:
    return f"{100 * part / of:.1f}" if of else ""


def _number(value: float) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
