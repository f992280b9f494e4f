"""Both sides of each pair of counts of launches.py and caches.py, as a table of tests/validate.

Comparing takes minutes; the page is written from the table in a second. A row is a counter of a
launch that is not zero on both sides, or not zero with the accesses of the PTX. `verdict` is equal,
unequal, zero or apart (not comparable) of a count, near or far of a cache's, and empty of
`instructions`, which are held to nothing; `reason` says why a pair is not equal or near, or not
comparable.
"""

import re
from collections.abc import Iterator, Sequence

import polars as pl
from silicon.caches import compare
from silicon.launches import FOLDER, ROUNDED, TIMED, Launched, Pair, classes

TABLE = FOLDER / "h200_compared.parquet"
INSTRUCTIONS = "smsp__inst_executed.sum"
WAITED = "the profiler's two counts of shared-memory wavefronts differ"
SCHEMA = {
    **dict.fromkeys(("kind", "source", "kernel"), pl.String()),
    "launch": pl.Int64(),
    "metric": pl.String(),
    **dict.fromkeys(("chip", "cutrace", "ptx"), pl.Float64()),
    **dict.fromkeys(("verdict", "reason"), pl.String()),
}
"""`ptx` is cutrace's count with the accesses of the PTX."""


KIND = re.compile(
    r"(global|shared|local)_op_(ld|st|atom|red)|op_(global|shared|local)_(ld|st|atom|red)"
    r"|(?<=^launch__).*"
)
"""The part of a counter's name that a table writes as `*`."""


def table(launches: Sequence[Launched], compared: Sequence[Pair]) -> pl.DataFrame:
    """Both sides of every pair."""
    rows = [*_counts(compared), *_caches(launches), *map(_instructions, launches)]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def kept() -> pl.DataFrame:
    """What was compared last."""
    return pl.read_parquet(TABLE)


def keep(compared: pl.DataFrame) -> None:
    """Keep what was compared."""
    compared.write_parquet(TABLE, compression="zstd", compression_level=19)


def _place(launch: Launched) -> tuple[str, str, int]:
    return launch.source, launch.kernel, launch.number


def _counts(compared: Sequence[Pair]) -> Iterator[tuple[object, ...]]:
    for pair in compared:
        if pair.verdict != "zero" or abs(pair.by_ptx) > ROUNDED:
            reason = why_apart(pair) if pair.verdict == "apart" else ""
            reason = pair.reason if pair.verdict == "unequal" else reason
            counts = float(pair.theirs), float(pair.ours), float(pair.by_ptx)
            yield "count", *_place(pair.launched), pair.metric, *counts, pair.verdict, reason


def _caches(launches: Sequence[Launched]) -> Iterator[tuple[object, ...]]:
    for one in compare(launches):
        counts = float(one.theirs), float(one.ours), float(one.ours)
        verdict = ("near", "") if one.is_near else ("far", one.reason)
        yield "cache", *_place(one.launched), one.metric, *counts, *verdict


def _instructions(launch: Launched) -> tuple[object, ...]:
    theirs, ours = launch.counted[INSTRUCTIONS] or 0, launch.ours.counters[INSTRUCTIONS] or 0
    return "instructions", *_place(launch), INSTRUCTIONS, float(theirs), float(ours), None, "", ""


def why_apart(pair: Pair) -> str:
    """What makes a pair not comparable: time, wavefronts, or other accesses than the chip's."""
    launch = pair.launched
    if what := TIMED.get(f"{launch.source} {launch.kernel}"):
        return f"up to time: {what}"
    if "generic" in launch.machine:
        return "the chip's code uses generic addresses, or a retry loop of an atomic"
    changed = [
        f"{name}: {_widths(launch.ptx.get(name, {}))}, on the chip"
        f" {_widths(launch.machine.get(name, {}))}"
        for name in classes(pair.metric) or ()
        if not launch.agrees(name)
    ]
    return "; ".join(changed) or WAITED


def _widths(widths: object) -> str:
    """`64 x 4, 8 x 16`, instructions by bytes a lane; textures and loops do not say their width."""
    assert isinstance(widths, dict)
    parts = (f"{n} x {width}" if width else str(n) for width, n in sorted(widths.items()))
    return ", ".join(parts) or "none"
