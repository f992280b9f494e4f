"""Write docs/time.md from what compare_times.py kept (tests/validate/time/*.csv).

Its sentences are in templates/time.md.

python scripts/write/time_page.py
"""

import csv
import sys
import tomllib
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests"))

from silicon.filled import filled  # noqa: E402

TEMPLATE = Path(__file__).parent / "templates" / "time.md"
KEPT = ROOT / "tests" / "validate" / "time"
CALIBRATION = {
    *(("launches.cu", launch) for launch in ("10", "46", "47")),
    ("brucefan1983-src-06-memory-static", "0"),
}
"""Launches that parameters come from: few_threads in one block, the empty kernels, and a printf."""
WORST = 3
"""How many of the worst estimates the page lists."""
MEASURED = ROOT / "models" / "devices" / "measured"
COMPARED = ("70", "75", "80", "86", "89")
"""Capabilities with published latencies whose estimates were compared with measured times."""
NUMBERS = ("None", "One", "Two", "Three", "Four", "Five", "Six")
UNITS = ("sm", "l1tex", "lts", "dram")
BUSY = 60
"""Percent of its best below which the profiler says of all units that latency limits."""
Row = dict[str, str]


def read(table: str) -> list[Row]:
    """The launches of a table, without those that parameters come from."""
    path = KEPT / f"{table}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    return [row for row in rows if (row["program"], row["launch"]) not in CALIBRATION]


def ratio(row: Row) -> float:
    """The estimate over what was measured."""
    return float(row["estimate"]) / float(row["measured"])


def share(rows: Sequence[Row], test: Callable[[Row], bool]) -> str:
    """How many launches pass, in percent."""
    return f"{100 * sum(map(test, rows)) / len(rows):.0f} %" if rows else ""


def highest(row: Row) -> str:
    """The unit with the highest throughput."""
    return max(UNITS, key=lambda unit: float(row[unit] or 0))


def highest_share(row: Row) -> float:
    """Its throughput."""
    return max(float(row[unit] or 0) for unit in UNITS)


def agrees(row: Row) -> bool:
    """Whether the unit that is estimated to be busiest is the one that the profiler found."""
    return row["busiest"] == highest(row)


def agrees_nearly(row: Row) -> bool:
    """The same, or a unit that the profiler found nearly as busy."""
    return float(row[row["busiest"]] or 0) >= 0.9 * highest_share(row)


def agrees_by_rule(row: Row) -> bool:
    """The same, or latency where no unit is busy."""
    return row["slowest"] == "latency" if highest_share(row) < BUSY else agrees(row)


def ordered(rows: Sequence[Row]) -> tuple[int, int]:
    """Pairs of variants of a kernel whose order is right, and all; those 5 % apart or more."""
    right = every = 0
    for one, other in combinations([r for r in rows if r["set"] == "ours"], 2):
        if one["kernel"].partition("<")[0] != other["kernel"].partition("<")[0]:
            continue
        times = float(one["measured"]), float(other["measured"])
        if max(times) < 1.05 * min(times):
            continue
        every += 1
        right += (times[0] < times[1]) == (float(one["estimate"]) < float(other["estimate"]))
    return right, every


TESTS: tuple[tuple[str, str, Callable[[Row], bool]], ...] = (
    ("bound", "99 %", lambda r: float(r["bound"]) <= float(r["measured"])),
    ("within 25 %", "67 %", lambda r: 0.75 <= ratio(r) <= 1.25),
    ("within 2 x", "95 %", lambda r: 0.5 <= ratio(r) <= 2),
)
LONG: tuple[tuple[str, Callable[[Row], bool], Callable[[Row], bool]], ...] = (
    ("busiest", lambda _: True, agrees),
    ("where busy", lambda r: highest_share(r) >= 10, agrees),
    ("nearly", lambda _: True, agrees_nearly),
    ("limit", lambda _: True, agrees_by_rule),
)
"""What is asked of launches above 20 us, of which of them."""
SETS: tuple[tuple[str, str, str], ...] = (
    *(("H200", "h200", name) for name in ("", "ours", "programs", "others", "fresh kernels")),
    *(("H100", "h100", name) for name in ("", "ours", "others", "fresh kernels")),
    ("H200, unseen", "h200_unseen", ""),
    ("H100, unseen", "h100_unseen", ""),
    ("H100, third draw", "h100_third_draw", ""),
    ("H200, fourth draw", "h200_fourth_draw", ""),
)
"""The rows of the table of figures: device, table, and the set of the table's launches."""


def figures() -> str:
    """The table of shares, with their targets."""
    names = ("set", "launches", "kernels", *(name for name, *_ in TESTS), "order")
    lines = [_line((*names, *(name for name, *_ in LONG)))]
    lines.append("|---" + "|---:" * (len(names) + len(LONG) - 1) + "|")
    targets = (*(target for _, target, _ in TESTS), "90 %", *["85 %"] * len(LONG))
    lines.append(_line(("*target*", "300", "100", *targets)))
    for device, name, part in SETS:
        rows = [row for row in read(name) if part in ("", row["set"])]
        lines.append(_line((f"{device}, *{part}*" if part else f"**{device}**", *_cells(rows))))
        if not part:
            long = [row for row in rows if float(row["measured"]) >= 10000]
            lines.append(_line((f"{device}, 10 us and more", *_cells(long))))
    return "\n".join(lines) + "\n"


def _cells(rows: Sequence[Row]) -> Sequence[str]:
    """A row of the table of figures."""
    kernels = {(row["program"], row["kernel"]) for row in rows}
    right, every = ordered(rows)
    long = [row for row in rows if float(row["measured"]) > 20000]
    cells = [str(len(rows)), str(len(kernels)), *(share(rows, test) for *_, test in TESTS)]
    cells.append(f"{100 * right / every:.0f} % of {every}" if every else "")
    for _, which, rule in LONG:
        asked = [row for row in long if which(row)]
        cells.append(f"{share(asked, rule)} of {len(asked)}" if asked else "")
    return cells


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def worst() -> str:
    """The launches with the worst estimates of all tables."""
    lines = [
        "| table | program | kernel | measured, us | estimate | ratio | takes longest | bound |",
        "|---|---|---|---:|---:|---:|---|---:|",
    ]
    tables = dict.fromkeys(table for _, table, _ in SETS)
    rows = [(table, row) for table in tables for row in read(table)]
    rows.sort(key=lambda each: -max(ratio(each[1]), 1 / ratio(each[1])))
    for table, row in rows[:WORST]:
        times = [f"{float(row[name]) / 1000:,.2f}" for name in ("measured", "estimate", "bound")]
        place = f"`{table}` | {row['program']} | `{row['kernel']}`"
        last = f"{ratio(row):.2f} | {row['slowest']} | {times[2]}"
        lines.append(f"| {place} | {times[0]} | {times[1]} | {last} |")
    return "\n".join(lines) + "\n"


def others() -> str:
    """A row per device and set of kernels that others timed."""
    with (KEPT / "published.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = []
    for device, source in dict.fromkeys((row["device"], row["source"]) for row in rows):
        mine = [row for row in rows if (row["device"], row["source"]) == (device, source)]
        found = [float(row["estimated_us"]) / float(row["measured_us"]) for row in mine]
        errors = sorted(abs(each - 1) for each in found)
        near = [
            f"{100 * sum(e <= most for e in errors) / len(errors):.0f} %" for most in (0.25, 0.5)
        ]
        mape = f"{100 * sum(errors) / len(errors):.0f} %"
        p90 = f"{100 * errors[int(0.9 * (len(errors) - 1))]:.0f} %"
        cells = (f"`{device}`", source, str(len(mine)), mape, p90, *near)
        lines.append(_line(cells))
    return "\n".join(lines) + "\n"


def intervals() -> str:
    """A row per compute capability with latencies."""
    every = {"9.0": (0.8, 1.33, "measured on an H200 and an H100", "9 of 10 launches")}
    for path in MEASURED.glob("sm_*.toml"):
        digits = path.stem.removeprefix("sm_")
        low, high = tomllib.loads(path.read_text())["interval"]
        expected = "4 of 5 launches" if digits in COMPARED else "a guess, compared with nothing"
        every[f"{digits[:-1]}.{digits[-1]}"] = low, high, "published", expected
    rows = sorted(every.items(), key=lambda row: float(row[0]))
    return "\n".join(
        _line((capability, latencies, f"{low:g} to {high:g}", expected))
        for capability, (low, high, latencies, expected) in rows
    )


def page() -> str:
    """The document."""
    every = [row for table in dict.fromkeys(table for _, table, _ in SETS) for row in read(table)]
    below = sum(float(row["measured"]) < float(row["bound"]) for row in every)
    tables = {"figures": figures(), "worst": worst(), "others": others(), "intervals": intervals()}
    text = TEMPLATE.read_text(encoding="utf-8")
    return filled(text.format(**tables, below=NUMBERS[below], all=f"{len(every):,}"))


if __name__ == "__main__":
    (ROOT / "docs" / "time.md").write_text(page(), encoding="utf-8")
