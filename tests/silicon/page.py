"""docs/validation.md: what the pairs of launches.py say, in words and tables."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from silicon.caches import NEAR, by_kernel, compare
from silicon.launches import (
    BY_ADDRESSES,
    FOLDER,
    ROUNDED,
    TIMED,
    UNSTEADY,
    WAVEFRONTS,
    Launched,
    Pair,
    classes,
)
from silicon.programs_page import section

FILES = (
    *("h200.json", "h200_collide.json", "h200_programs.json", "h200_caches.json"),
    *("h200_everyday.json", "h200_unseen.json", "h200_fresh.json", "h200_fresh2.json"),
    *("h200_loops.json", "h200_ways.json"),
)
TEXTURES = "h200_footprints.json"
SHOWN = 4
"""Kernels that a row names at most."""

HEAD = """# Compared with a chip

Made by `scripts/write/validation.py` from what Nsight Compute {ncu} counted on an {device} (driver
{driver}), kernel by kernel, caches flushed before each launch (`scripts/capture/counters.py`;
`tests/validate/counters/*.json`). {launches} launches of {kernels} kernels: small ones of every
width, stride, mask and collision (`tests/validate/counters/*.cu`), those that ask about caches
(`tests/validate/caches/*.cu`), the gallery's, and the programs of `tests/programs`, for which no
model was made. The kernels of `everyday.cu`, then those of `unseen.cu`, then those of `fresh.cu`,
`fresh_groups.cu` and `fresh_tensor.cu`, and last those of `fresh2.cu`, `fresh2_types.cu` and
`fresh2_groups.cu` were written as people write them, captured then, and compared once before
anything was changed:

| source | launches | counts equal | hit rate of L1 within 5 points | L2, memory within 15 % |
|---|---:|---:|---:|---:|
| `everyday.cu` | 56 | 1344 of 1356, 99.1 % | 30 of 34 | 19 of 19 |
| `unseen.cu` | 59 | 1360 of 1478, 92.0 % | 31 of 32 | 10 of 10 |
| `fresh*.cu` | 68 | 1524 of 1547, 98.5 % | 30 of 31 | none moved a megabyte |
| `fresh2*.cu` | 112 | 2909 of 2926, 99.4 % | 60 of 63 | none moved a megabyte |

Of the 118 of `unseen.cu` 116 were the registers of 58 launches, not known where another kernel of
the source has braces in inline assembly, and two a wrong guess of the driver's share of shared
memory. Of the 23 of `fresh*.cu` 22 were registers and what follows from them: cutrace took those of
code that may be linked with other code. All that is mended. The copies to shared memory of
`fresh_groups.cu` and the loads of matrices of `fresh_tensor.cu` were not comparable then, and
showed what the profiler counts under names of their own. What `fresh_tensor.cu` leaves in memory,
by products of `mma.h` in half and tf32 precision and of bytes, is the chip's, bit for bit
(`tests/validate/test_matrices.py`).

Of the 17 of `fresh2*.cu` four are sectors of reductions to scattered words, four follow from which
warp appends first, six are of copies of 4 bytes, three registers of `mma.h`. Comparable or not, of
the 3118 counts of `fresh2*.cu` 2994 were equal at that first try, 96.0 % (94.3 % as PTX has the
accesses). Of the 69 arrays of its kernels 62 hold what the H200's hold, bit for bit, and four of
the other seven follow the order of warps (`tests/validate/test_fresh_values.py`).
`fresh2_images.cu` is a program that samples textures in 18 of its 19 launches: of its 395 counts
369 were equal at first, and 394 are since samples beyond a border and texels of weight zero are
counted as the chip counts them; 17 of the 18 hashes that it prints of its results were equal.

`loops.cu` and `ways.cu` were written to ask where lanes meet again that part in loops, or of which
some go another way, and run on the chip before the rule was built in. `return_of_a_search` and
`jump_out_of_two` still run some loads more often here than there (1.9 and 1.1 times), and are not
comparable for that.

{both_chips}

cutrace compiles for these comparisons as the captures were compiled: for 9.0, with the option
`-ftz=true` that CuPy adds to all.

ptxas stands between PTX and the chip: it joins, unrolls, predicates and removes accesses. cutrace
asks the ptxas that is installed here what it made of each load and store of a kernel, and counts
those (`--code assembled`, which is what it does if nothing else is said; `--code ptx` switches the
step off). All counts that are not zero on both sides, comparable or not:

| source | counts | equal, as PTX has accesses | equal, as they are assembled |
|---|---:|---:|---:|
{both}

The capture has the machine instructions that ran on the chip too, and a count is *comparable* only
if the warp instructions of its class (say, loads from global memory) agree in number and width
between what cutrace counted and the chip's code. Facts of the launch are always comparable. Three
kernels whose addresses are up to time, and wavefronts in {waits} launches of which the profiler's
own two counts differ, are [listed apart](#what-is-not-comparable) too.

Of {compared} comparable counts that are not zero on both sides **{equal} are equal: {percent} %**.
`tests/validate/test_counters.py` holds this to 99 %, each counter by itself to 90 %, and wants a
reason for each that is not equal. Only of the sectors of reductions fewer are equal once those of
`fresh2*.cu` are among them, since no rule is known for words that lie further apart: each is 13 %
short at most, and all together 1 %.

## Counter by counter

*equal* of those that are comparable and not zero on both sides; then those that are zero on both,
and those that are not comparable, of which some are equal all the same.

| counter | equal | % | zero | not comparable (equal) |
|---|---:|---:|---:|---:|
"""

NOT_COMPARED = """
Not held to equality, because PTX is not the chip's code: counts of all instructions, of arithmetic
and of branches (`smsp__inst_executed.sum` and those like it). The chip runs {ratio} instructions
for each that cutrace counts (the median of the launches; one in ten has fewer than {low}, one in
ten more than {high}).
"""

CACHES = """
## Caches

How near the caches come, where there is something to find (caches follow the order of warps, which
on the chip follows time), in launches whose accesses are comparable. A kernel is near if most of
its launches are. Of the programs of `tests/programs`, {programs} of {of_programs} hit rates are
near.

| counter | near | of launches | % | of kernels | % |
|---|---|---:|---:|---:|---:|
"""
FAR = """
Those that are not near:

| kernel | counter | chip | cutrace | why |
|---|---|---:|---:|---|
"""

UNEQUAL = """
## What is not equal

| kernel | counter | chip | cutrace | why |
|---|---|---:|---:|---|
"""

APART = """
## What is not comparable

Kernels whose addresses are up to time: {timed}. One is left out, since the assembler makes other
machine code of it from one run to the next, there and here: {unsteady}.

Where the hardware counted more wavefronts of shared memory than the addresses account for (the
profiler counts them in both ways, and in all other launches they are equal):

| kernel | chip, hardware | chip, addresses | cutrace |
|---|---:|---:|---:|
{waited}

Accesses of others that are not the chip's: warp instructions by bytes a lane, `times x bytes`.

| kernel | class | cutrace | chip |
|---|---|---|---|
"""

KERNELS = """
## Kernel by kernel

Counts that are comparable and not zero on both sides, over all launches of a kernel.

| source | kernel | launches | equal | not equal |
|---|---|---:|---:|---:|
"""

FINDINGS = """
## What the comparison taught

Rules that no document has, found by comparing patterns, and used for the capabilities that the
device files say:

- *Pairs of lanes.* If all active lanes n and n ^ 1, or all n and n ^ 2, load from one address in
  shared memory, accesses of 8 and 16 bytes a lane take half as many wavefronts on 9.0 too.
- *Atomics.* Lanes on one address are served one after another: a sector moves as often as its most
  wanted address. That is exact while the words of a warp lie in the same aligned 512 bytes, and up
  to three sectors short where they do not (`tests/validate/test_collisions.py`: a third rule, not
  found). The assembler combines 32-bit integer atomics on an address that is one for the
  whole warp, and counts lanes that add one to a word of shared memory. Compare and swap in shared
  memory takes two wavefronts for each of others.
- *Loops of atomics.* ptxas makes loops of a load and a store that may fail (`ATOMS.CAST.SPIN`) of
  adds of float, double and pairs of halves to shared memory, and of 64-bit atomics there but
  exchange and compare and swap. In a turn the lowest lane of each bank is done; of 8 bytes the
  lowest of each half-warp, but not one of the second half whose word the first has just changed.
  Each turn is a load of the lanes that are left and two wavefronts (four of 8 bytes, while both
  half-warps have lanes). Adds of one half to shared or global memory are loops of compare and swap
  on its 32-bit word: one load, and as many turns as most lanes want one word. cutrace counts these
  loads and atomics, from 7.0 on and unless `--code ptx` says otherwise. The rule was read from 198
  launches on an H200; which lane is first, from `retries.cu` on an H100. There the loads, the
  atomics and the wavefronts of both are equal in all 45 launches in which one warp at a time runs a
  loop in shared memory (`tests/validate/test_retries.py`), and in 8 more of warps with words of
  their own, but for up to four wavefronts of atomics. Not counted: that two loops of 64-bit minima
  were left early, by lanes whose value changed nothing; the wavefront that a generic address adds
  to the first loop; and warps that meet, which took 0.7 to 2 times as many turns, another number
  each time. Merged pairs of lanes that conflict are one wavefront more in
  `memory_l1_wavefronts_shared`, and in no count of the hardware.
- *Stores that meet.* Where 32 or more warps of an SM store to shared memory at once, right after
  one another or behind a barrier, the hardware may take more wavefronts than the addresses account
  for: up to 29 % more of all, in 28 of 180 launches on an H100. Loads took none more, nor four
  warps or fewer, nor warps that load between their stores. What decides how many is time.
- *Wavefronts of shared memory in all.* `l1tex__data_pipe_lsu_wavefronts_mem_shared.sum` has
  wavefronts without data beside those of loads, stores and atomics: one for each read of what
  differs from lane to lane (`S2R` of `tid` or the lane), for each shuffle, for each access that no
  lane takes part in, and for each barrier of a block. In 156 kernels of programs on an H100 what is
  left over is within 1 % of that in 90 %, within 5 % in 97 % (`tests/validate/test_units.py`). What
  `l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum` has beyond its three kinds is of the
  shuffles, and of when they meet others: other numbers each time.
- *Ideal wavefronts.* `memory_l1_wavefronts_shared_ideal` of 8 and 16 bytes a lane gives each active
  lane its own bytes, 128 in a wavefront, but never more wavefronts than the access takes.
- *Local memory.* Each word of 4 bytes of an access is a request of its own.
- *Bytes.* `smsp__sass_data_bytes_*` and the averages over sectors and wavefronts count a byte once
  a request, however many lanes want it; in local memory, lanes at one offset want the same.
- *Ideal sectors.* `memory_l2_theoretical_sectors_global_ideal` gives each active lane its own
  bytes, one lane after another, but never more sectors than the access touches.
- *Textures.* A quad of threads is a request; fetches by number are served by 8 lanes. Beyond a
  border the chip fetches what a clamped sample would, and nothing of weight zero
  (`tests/validate/test_footprints.py`).
- *Registers.* No kernel has fewer than 16 on 9.0. Those of code that may be linked with other code
  (what nvJitLink makes of PTX) were others in four launches of a hundred; a kernel assembled as a
  whole program has the chip's.
- *Copies and matrices.* Copies to shared memory (`cp.async`) are in the requests and sectors of
  global loads and in `memory_l1_wavefronts_shared`, but neither in `smsp__sass_*` of global loads
  and shared stores nor in the wavefronts of shared stores. Loads of matrices (`ldmatrix`) are in
  the wavefronts of shared loads, and not in `smsp__sass_*` of them.
- *Shared memory.* The driver sets apart room for as many blocks as threads and registers allow, or
  for twice as many, but then no more than 32 less one for each warp of a block; above 132 KB no
  more than are needed. So it was in all of 780 launches (`tests/validate/carveouts.csv`). What a
  program prefers for a kernel (`cudaFuncSetAttribute`, `cudaFuncSetCacheConfig`) was read from 690
  more (`carveouts_preferred.csv`), of which 10 are not so: L1 preferred, and 16 KB a block.
- *L1.* A store takes a line, and finds it again, but not in the next instruction if the lines of
  both take 8 or 9 cycles of looking up tags: 32 threads that store down a column find nothing, 16
  do, however long they wait. Tags lie in 4 banks, by all bits of the line's number, two at a time.
  Of 256 KB, 8 are neither for lines nor for shared memory. What was stored is found word by word;
  bytes are not. An atomic removes its sectors. A little more than L1 holds, read in turn, is found
  in part: it is not always the line unused for longest that goes.
- *L2.* 64 bytes are fetched together. Half of L2 may wait to be written. Of some 55,000 sectors
  stored in part, the one longest unused is completed from memory.
"""


def page(launches: Sequence[Launched], compared: Sequence[Pair]) -> str:
    """The whole page."""
    return "\n".join(
        (
            _head(launches, compared).rstrip("\n"),
            *_counters(compared),
            *_textures(),
            _not_compared(launches).rstrip("\n"),
            *_caches(launches),
            "",
            *section(),
            UNEQUAL.rstrip("\n"),
            *_unequal(compared),
            APART.format(
                unsteady=", ".join(f"`{name}`" for name in sorted(UNSTEADY)),
                timed=_timed(),
                waited=_waited(launches),
            ).rstrip("\n"),
            *_apart(launches, compared),
            FINDINGS.rstrip("\n"),
            KERNELS.rstrip("\n"),
            *_kernels(compared),
            "",
        )
    )


def share(compared: Iterable[Pair]) -> tuple[int, int]:
    """How many are equal, of those that are comparable and not zero on both sides."""
    verdicts = Counter(pair.verdict for pair in compared)
    return verdicts["equal"], verdicts["equal"] + verdicts["unequal"]


def by_metric(compared: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The pairs of each metric."""
    found: dict[str, list[Pair]] = {}
    for pair in compared:
        found.setdefault(pair.metric, []).append(pair)
    return found


def _head(launches: Sequence[Launched], compared: Sequence[Pair]) -> str:
    told = json.loads((FOLDER / FILES[0]).read_text())
    equal, of = share(compared)
    return HEAD.format(
        **{key: told[key] for key in ("ncu", "device", "driver")},
        launches=len(launches),
        kernels=len({(launch.source, launch.kernel) for launch in launches}),
        waits=sum(launch.waited for launch in launches),
        both="\n".join(_both(compared)),
        both_chips=both_chips(),
        compared=of,
        equal=equal,
        percent=_percent(equal, of),
    )


OTHER = "h100_fresh2.json"
BOTH_CHIPS = """An {other} counts the same: of {of} counts of the first {launches} launches
of `fresh2*.cu` that are held to equality here and not zero on both chips, {equal} are equal on
both. What differs is up to time:
{kernels}.
So the counts are those of the architecture; the chips' clocks, and the bandwidth and the size of
their memories, are data of their devices' files."""


def differing() -> tuple[int, list[tuple[str, str, float, float]]]:
    """How many counts of the two chips were compared, and those that differ: kernel, metric."""
    mine, other = (json.loads((FOLDER / file).read_text()) for file in ("h200_fresh2.json", OTHER))
    pairs = [
        (here["kernel"], metric, a or 0, b or 0)
        for here, there in zip(mine["launches"], other["launches"], strict=False)
        for metric, a, b in zip(mine["metrics"], here["counters"], there["counters"], strict=True)
        if classes(metric) is not None and (a or b)
    ]
    return len(pairs), [pair for pair in pairs if pair[2] != pair[3]]


def both_chips() -> str:
    """What an H100 counted of the same launches."""
    of, differ = differing()
    told = json.loads((FOLDER / OTHER).read_text())
    return BOTH_CHIPS.format(
        other=told["device"],
        launches=len(told["launches"]),
        of=of,
        equal=of - len(differ),
        kernels=", ".join(f"`{name}`" for name in sorted({kernel for kernel, *_ in differ})),
    )


GROUPS = {
    "everyday.cu": "`everyday.cu`",
    "unseen.cu": "`unseen.cu`",
    **dict.fromkeys(("fresh.cu", "fresh_groups.cu", "fresh_tensor.cu"), "`fresh*.cu`"),
    **dict.fromkeys(("fresh2.cu", "fresh2_types.cu", "fresh2_groups.cu"), "`fresh2*.cu`"),
    **dict.fromkeys(("loops.cu", "ways.cu"), "`loops.cu`, `ways.cu`"),
}


def _both(compared: Sequence[Pair]) -> Iterator[str]:
    """Every count, with accesses as PTX has them and as they are assembled."""
    found: dict[str, list[Pair]] = {}
    for pair in compared:
        source = pair.launched.source
        programs = "`tests/programs`" if source.endswith(".py") else "small ones and the gallery's"
        if pair.theirs or max(abs(pair.ours), abs(pair.by_ptx)) > ROUNDED:
            found.setdefault(GROUPS.get(source, programs), []).append(pair)
            found.setdefault("all", []).append(pair)
    for name in sorted(found, key=lambda name: (name == "all", name)):
        mine = found[name]
        cells = [f"{_percent(n, len(mine))} %" for n in (_near(mine, True), _near(mine, False))]
        yield f"| {name} | {len(mine)} | {' | '.join(cells)} |"


def _near(compared: Sequence[Pair], by_ptx: bool) -> int:
    counts = ((p.theirs, p.by_ptx if by_ptx else p.ours) for p in compared)
    return sum(abs(a - b) <= ROUNDED for a, b in counts)


def _counters(compared: Sequence[Pair]) -> Iterator[str]:
    for metric, mine in by_metric(compared).items():
        equal, of = share(mine)
        zero = sum(pair.verdict == "zero" for pair in mine)
        apart = [pair for pair in mine if pair.verdict == "apart"]
        same = sum(pair.theirs == pair.ours for pair in apart)
        if of or apart:
            cells = (f"{equal} of {of}", _percent(equal, of), zero, f"{len(apart)} ({same})")
            yield f"| `{metric}` | {' | '.join(map(str, cells))} |"


def _textures() -> Iterator[str]:
    """Samples were captured apart, by scripts/capture/footprints.py."""
    cases = json.loads((FOLDER / TEXTURES).read_text())
    for what in ("requests", "sectors"):
        many = len(cases)
        name = f"l1tex__t_{what}_pipe_tex_mem_texture.sum"
        yield f"| `{name}` | {many} of {many} | 100.0 | 0 | 0 (0) |"


def _not_compared(launches: Sequence[Launched]) -> str:
    metric = "smsp__inst_executed.sum"
    ratios = sorted(
        (launch.counted[metric] or 0) / (launch.ours.counters[metric] or 1) for launch in launches
    )
    low, middle, high = (ratios[len(ratios) * part // 10] for part in (1, 5, 9))
    return NOT_COMPARED.format(ratio=f"{middle:.2f}", low=f"{low:.2f}", high=f"{high:.2f}")


def _caches(launches: Sequence[Launched]) -> Iterator[str]:
    compared = list(compare(launches))
    rates = [c.is_near for c in compared if c.launched.source.endswith(".py") and "pct" in c.metric]
    yield CACHES.format(programs=sum(rates), of_programs=len(rates)).rstrip("\n")
    for metric, near in NEAR.items():
        seen = [one for one in compared if one.metric == metric]
        kernels = by_kernel(seen).values()
        cells = (
            f"| {sum(near)} of {len(near)} | {_percent(sum(near), len(near))} "
            for near in ([one.is_near for one in seen], list(kernels))
        )
        yield f"| `{metric}` | {near.words} {''.join(cells)}|"
    yield FAR.rstrip("\n")
    for one in compared:
        if not one.is_near:
            place = f"{one.launched.source} {one.launched.kernel} {one.launched.number}"
            counts = f"{_number(one.theirs)} | {_number(one.ours)}"
            yield f"| {place} | `{one.metric}` | {counts} | {one.reason} |"


def _unequal(compared: Sequence[Pair]) -> Iterator[str]:
    for pair in compared:
        if pair.verdict == "unequal":
            place = f"{pair.launched.source} {pair.launched.kernel} {pair.launched.number}"
            counts = f"{_number(pair.theirs)} | {_number(pair.ours)}"
            yield f"| {place} | `{pair.metric}` | {counts} | {pair.reason} |"


def _timed() -> str:
    return "; ".join(f"`{kernel}` ({what})" for kernel, what in TIMED.items())


def _waited(launches: Sequence[Launched]) -> str:
    rows = []
    for launch in (launch for launch in launches if launch.waited):
        hardware = sum(launch.counted[name] or 0 for name in WAVEFRONTS)
        cells = (hardware, launch.counted[BY_ADDRESSES], launch.ours.counters[BY_ADDRESSES])
        rows.append(f"| {launch.source} {launch.kernel} | {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def _apart(launches: Sequence[Launched], compared: Sequence[Pair]) -> Iterator[str]:
    wanted = {(p.launched.source, p.launched.number) for p in compared if p.verdict == "apart"}
    seen = set()
    for launch in launches:
        if (launch.source, launch.number) not in wanted or (launch.source, launch.kernel) in seen:
            continue
        seen.add((launch.source, launch.kernel))
        for name in sorted({*launch.ptx, *launch.machine}):
            mine, theirs = launch.ptx.get(name, {}), launch.machine.get(name, {})
            if dict(mine) != dict(theirs) and f"{launch.source} {launch.kernel}" not in TIMED:
                place = f"{launch.source} {launch.kernel}"
                yield f"| {place} | {name} | {_widths(mine)} | {_widths(theirs)} |"


def _kernels(compared: Sequence[Pair]) -> Iterator[str]:
    found: dict[tuple[str, str], list[Pair]] = {}
    for pair in compared:
        found.setdefault((pair.launched.source, pair.launched.kernel), []).append(pair)
    for (source, kernel), mine in found.items():
        equal, of = share(mine)
        launches = len({pair.launched.number for pair in mine})
        yield f"| {source} | `{kernel}` | {launches} | {equal} | {of - equal} |"


def _widths(widths: object) -> str:
    """`64 x 4, 8 x 16`; texture instructions and loops do not say their width."""
    assert isinstance(widths, dict)
    said = (f"{n} x {width}" if width else str(n) for width, n in sorted(widths.items()))
    return ", ".join(said) or "none"


def _percent(part: int, of: int) -> str:
    return f"{100 * part / of:.1f}" if of else ""


def _number(value: float) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
