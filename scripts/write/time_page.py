"""Write docs/time.md and docs/time.csv from what compare_times.py kept (tests/validate/time/*.csv).

Its sentences are in templates/time.md.

python scripts/write/time_page.py
"""

import csv
import sys
import tomllib
from collections.abc import Callable, Sequence
from itertools import combinations, product
from pathlib import Path
from statistics import median

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
MEASURED = ROOT / "models" / "devices" / "measured"
COMPARED = {
    **{"70": ("titanv", "v100-sxm2"), "75": ("rtx2080ti",), "80": ("a100-40gb",)},
    **{"86": ("a6000", "a4000"), "89": ("rtx4070",), "120": ("rtx5090",)},
}
"""Capabilities with published latencies, and the devices whose times were compared."""
REPEATED = "fresh kernels"
"""A set whose launches are in *unseen*, too."""
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


def holds(row: Row) -> bool:
    """Whether the measured time is in the interval of the estimate."""
    low, high = WITHIN
    return low <= 1 / ratio(row) <= high


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


LONG: tuple[tuple[str, Callable[[Row], bool], Callable[[Row], bool]], ...] = (
    ("busiest", lambda _: True, agrees),
    ("where busy", lambda r: highest_share(r) >= 10, agrees),
    ("nearly", lambda _: True, agrees_nearly),
    ("limit", lambda _: True, agrees_by_rule),
)
"""What is asked of launches above 20 us, of which of them."""
CHOSEN, ONCE = "no", "yes"
NAMES = {
    "ours": "kernels of `tests/validate/time`",
    "kinds": "kinds of kernels that were estimated wrongly before",
    "programs": "cuda-samples, Rodinia, PolyBench",
    "others": "programs of books and courses",
    "fresh kernels": "everyday kernels, now",
    ("H200", "unseen"): "everyday kernels, first comparison",
    ("H100", "unseen"): "first draw, and everyday kernels",
    "Debdeep23/Kernel_Performance_Prediction": "kernels of Debdeep23",
    "AutoTuningAssociation/benchmark_hub, convolution": "convolutions of AutoTuningAssociation",
    "AutoTuningAssociation/benchmark_hub, dedispersion": "dedispersions of AutoTuningAssociation",
    "accel-sim/accel-sim-framework, a Quadro GV100": "kernels of Accel-Sim, on a Quadro GV100",
    "FlashGPU-Sim/FlashGPU-Sim": "kernels of FlashGPU-Sim",
    "FlashGPU-Sim/FlashGPU-Sim, with rates of tensor cores and of reads": (
        "kernels of FlashGPU-Sim, with the rates of tensor cores and of reads in the model"
    ),
}
"""What the page calls a set, or that of a device."""
SETS: tuple[tuple[str, str, str, str], ...] = (
    *(("H200", "h200", name, CHOSEN) for name in ("ours", "programs", "others", "fresh kernels")),
    *(("H100", "h100", name, CHOSEN) for name in ("ours", "others", "fresh kernels")),
    ("H100", "h100_kinds", "kinds", CHOSEN),
    ("H200", "h200_unseen", "unseen", ONCE),
    ("H100", "h100_unseen", "unseen", ONCE),
    ("H100", "h100_third_draw", "third draw", ONCE),
    ("H200", "h200_fourth_draw", "fourth draw", ONCE),
    ("H100", "h100_fifth_draw", "fifth draw", ONCE),
    ("H100", "h100_sixth_draw", "sixth draw", ONCE),
    ("H100", "h100_seventh_draw", "seventh draw", ONCE),
    ("H100", "h100_eighth_draw", "eighth draw", ONCE),
)
"""Device, table, set, and what the set's launches were used for."""
WITHIN = 0.8, 4 / 3
"""The interval of estimates on 9.0."""
ENOUGH = 10_000
"""Nanoseconds from which a launch counts on the page."""
FIRST_LOOK = dict.fromkeys(
    (
        *("titanv", "rtx4070", "rtx2080ti"),
        "FlashGPU-Sim/FlashGPU-Sim, with rates of tensor cores and of reads",
    ),
    CHOSEN,
)
"""Devices and sources whose published times were looked at before rules were chosen."""


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's correlation of two lists without ties.

    >>> rank_correlation([1, 2, 3], [10, 30, 20])
    0.5
    """
    places = [{value: place for place, value in enumerate(sorted(each))} for each in (one, other)]
    pairs = zip(one, other, strict=True)
    apart = sum((places[0][a] - places[1][b]) ** 2 for a, b in pairs)
    return 1 - 6 * apart / (len(one) * (len(one) ** 2 - 1)) if len(one) > 1 else 1.0


def closeness(measured: Sequence[float], estimated: Sequence[float]) -> Sequence[str]:
    """How close estimates are: their number, mean error, nine of ten, correlation, and shares."""
    found = [e / m for m, e in zip(measured, estimated, strict=True)]
    errors = sorted(abs(each - 1) for each in found)
    worst_of_nine = errors[-(-9 * len(errors) // 10) - 1]  # at least 9 of 10 are no larger
    near, twice = (sum(low <= x <= high for x in found) for low, high in ((0.75, 1.25), (0.5, 2)))
    return (
        *(str(len(found)), _percent(sum(errors) / len(errors)), _percent(worst_of_nine)),
        f"{rank_correlation(measured, estimated):.2f}",
        *(_percent(near / len(found)), _percent(twice / len(found))),
    )


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def rows_of(table: str, part: str) -> list[Row]:
    """The launches of a set that have an estimate."""
    rows = [row for row in read(table) if row["estimate"]]
    return [row for row in rows if row.get("set") == part] or rows


def accuracy(used: str) -> str:
    """A row per device and set of launches of 10 us and longer."""
    lines = []
    for device, table, part, how in SETS:
        rows = [row for row in rows_of(table, part) if float(row["measured"]) >= ENOUGH]
        if rows and how == used:
            name = NAMES.get((device, part), NAMES.get(part, part))
            lines.append(_line((device, name, *_accuracy(*_times(rows)))))
    for (device, source), rows in published().items():
        if FIRST_LOOK.get(source, FIRST_LOOK.get(device, ONCE)) == used:
            times = _columns(rows, "measured_us", "estimated_us")
            lines.append(_line((f"`{device}`", NAMES[source], *_accuracy(*times))))
    return "\n".join(lines)


def published() -> dict[tuple[str, str], list[Row]]:
    """The launches whose times others published, by device and source."""
    with (KEPT / "published.csv").open(newline="") as file:
        every = list(csv.DictReader(file))
    named = ((row["device"], row["source"]) for row in every)
    return {
        key: [row for row in every if (row["device"], row["source"]) == key]
        for key in dict.fromkeys(named)
    }


def _accuracy(measured: Sequence[float], estimated: Sequence[float]) -> Sequence[str]:
    """Return the number of launches, median and mean error, and the shares near the estimate."""
    number, mean, _, _, *near = closeness(measured, estimated)
    middle = median(abs(e / m - 1) for m, e in zip(measured, estimated, strict=True))
    return number, _percent(middle), mean, *near


def _times(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    return _columns(rows, "measured", "estimate")


def _columns(rows: Sequence[Row], *names: str) -> tuple[list[float], list[float]]:
    one, other = ([float(row[name]) for row in rows] for name in names)
    return one, other


DETAILS = (
    *("device", "set", "least_us", "launches", "kernels", "mean error", "9 of 10 errors at most"),
    *("rank correlation", "within 25 %", "within 2 x", "bound holds", "order", "order of"),
    *(f"{name}{of}" for name, *_ in LONG for of in ("", " of")),
)


def details() -> str:
    """The long table of sets, of all launches and of long ones, as CSV."""
    lines = [",".join(DETAILS)]
    for (device, table, part, _), least in product(SETS, (0, ENOUGH)):
        rows = [row for row in rows_of(table, part) if float(row["measured"]) >= least]
        if rows and "sm" in rows[0]:
            cells = device, part, str(least // 1000), *_details(rows)
            lines.append(",".join(cells))
    for (device, source), rows in published().items():
        near = closeness(*_columns(rows, "measured_us", "estimated_us"))
        kernels = {(row["kernel"], row["size"]) for row in rows}
        cells = device, source.replace(",", ":"), "10", near[0], str(len(kernels)), *near[1:]
        lines.append(",".join(cells) + "," * (len(DETAILS) - len(cells)))
    return "\n".join(lines) + "\n"


def _details(rows: Sequence[Row]) -> Sequence[str]:
    near = closeness(*_times(rows))
    kernels = {(row["program"], row["kernel"]) for row in rows}
    right, every = ordered(rows)
    long = [row for row in rows if float(row["measured"]) > 20000]
    cells = [near[0], str(len(kernels)), *near[1:]]
    cells += [share(rows, lambda r: float(r["bound"]) <= float(r["measured"]))]
    cells += [_percent(right / every) if every else "", str(every)]
    for _, which, rule in LONG:
        asked = [row for row in long if which(row)]
        cells += [share(asked, rule), str(len(asked))]
    return cells


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def intervals() -> str:
    """A row per compute capability with latencies."""
    long = [holds(row) for row in launches(is_long=True)]
    every = {"9.0": (*WITHIN, _part(long))}
    others = [row for rows in published().values() for row in rows]
    others = [row for row in others if row["source"] not in FIRST_LOOK]  # the same launches again
    for path in MEASURED.glob("sm_*.toml"):
        digits = path.stem.removeprefix("sm_")
        low, high = tomllib.loads(path.read_text())["interval"]
        inside = [
            low <= float(row["measured_us"]) / float(row["estimated_us"]) <= high
            for row in others
            if row["device"] in COMPARED.get(digits, ())
        ]
        part = _part(inside) if inside else "none: the range is a guess"
        every[f"{digits[:-1]}.{digits[-1]}"] = low, high, part
    rows = sorted(every.items(), key=lambda row: float(row[0]))
    return "\n".join(
        _line((capability, f"{low:.3g} to {high:.3g}", part))
        for capability, (low, high, part) in rows
    )


def _part(inside: Sequence[bool]) -> str:
    return f"{sum(inside)} of {len(inside)}"


def launches(*, is_long: bool) -> list[Row]:
    """The launches of all sets on 9.0, each once, of ENOUGH and longer or shorter ones."""
    rows = [row for _, table, part, _ in SETS if part != REPEATED for row in rows_of(table, part)]
    return [row for row in rows if (float(row["measured"]) >= ENOUGH) == is_long]


def page() -> str:
    """The document."""
    read_once = dict.fromkeys(table for _, table, *_ in SETS)
    every = [
        row
        for table in read_once
        for row in read(table)
        if row.get("bound") and (table.endswith("unseen") or row.get("set") != REPEATED)
    ]
    below = sum(float(row["measured"]) < float(row["bound"]) for row in every)
    text = TEMPLATE.read_text(encoding="utf-8")
    return filled(
        text.format(
            intervals=intervals(),
            first=accuracy(ONCE),
            chosen=accuracy(CHOSEN),
            short=share(launches(is_long=False), holds),
            below=NUMBERS[below].lower(),
            all=f"{len(every):,}",
        )
    )


if __name__ == "__main__":
    (ROOT / "docs" / "time.md").write_text(page(), encoding="utf-8")
    (ROOT / "docs" / "time.csv").write_text(details(), encoding="utf-8")
