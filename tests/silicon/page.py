"""docs/validation.md: tables of the pairs in kept.py, in the text of validation.md here."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
from silicon.caches import NEAR
from silicon.filled import filled
from silicon.kept import INSTRUCTIONS, KIND, WAITED, kept
from silicon.launches import FOLDER, ROUNDED, TIMED, UNSTEADY, Pair, classes
from silicon.programs_page import section

FILES = (
    *("h200.json", "h200_collide.json", "h200_programs.json", "h200_caches.json"),
    *("h200_everyday.json", "h200_unseen.json", "h200_fresh.json", "h200_fresh2.json"),
    *("h200_loops.json", "h200_ways.json"),
)
TEXTURES = "h200_footprints.json"
TEMPLATE = Path(__file__).parent / "validation.md"
LOCAL = (
    "everyday unseen fresh fresh_groups fresh_tensor fresh2 fresh2_types fresh2_groups loops ways"
)
SMALL = "atomic atomic_more collide global local shared"
FAMILIES = {
    **{f"{name}.cu": f"`{name}.cu`" for name in SMALL.split()},
    **{f"{name}.cu": f"`{re.split('_', name)[0]}*.cu`" for name in LOCAL.split()},
    **{f"{name}.cu": f"`{name}.cu`" for name in ("everyday", "unseen")},
    **dict.fromkeys(("loops.cu", "ways.cu"), "`loops.cu`, `ways.cu`"),
    **dict.fromkeys(
        (path.name for path in (FOLDER.parent / "caches").glob("*.cu")), "`caches/*.cu`"
    ),
}
"""The family of a source; a program or a kernel of the gallery is not among them."""


NEARLY = (pl.col("chip") - pl.col("cutrace")).abs() <= ROUNDED
"""Equal to the two decimals that the profiler prints."""


def page() -> str:
    """The whole page."""
    rows = kept()
    counts = rows.filter(kind="count")
    caches = rows.filter(kind="cache")
    text = TEMPLATE.read_text(encoding="utf-8").format(
        **_chip(), **_totals(rows), **_ratios(rows), **_apart(counts),
        both_chips=both_chips(),
        families=_lines(_families(counts)),
        counters=_lines((*_counters(counts), *_textures())),
        reasons=_lines(_reasons(counts.filter(verdict="unequal"))),
        caches=_lines(_caches(caches)),
        cache_reasons=_lines(_cache_reasons(caches.filter(verdict="far"))),
        section=section(),
    )  # fmt: skip
    return filled(text)


def share(compared: Iterable[Pair]) -> tuple[int, int]:
    """How many are equal, of those that are comparable and not zero on both sides."""
    verdicts = [pair.verdict for pair in compared]
    equal = verdicts.count("equal")
    return equal, equal + verdicts.count("unequal")


def by_metric(compared: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The pairs of each metric."""
    groups: dict[str, list[Pair]] = {}
    for pair in compared:
        groups.setdefault(pair.metric, []).append(pair)
    return groups


def _lines(rows: Iterable[Iterable[object]]) -> str:
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in rows)


def _chip() -> dict[str, str]:
    captured = json.loads((FOLDER / FILES[0]).read_text())
    return {key: captured[key] for key in ("ncu", "device", "driver")}


def _totals(rows: pl.DataFrame) -> dict[str, object]:
    launches = rows.filter(kind="instructions")
    counts = rows.filter(kind="count")
    equal, of = _share(counts)
    is_of_launch = pl.col("metric").map_elements(lambda name: classes(name) == (), pl.Boolean)
    memory_equal, memory = _share(counts.filter(~is_of_launch))
    programs = rows.filter(
        pl.col("kind") == "cache", pl.col("source").str.ends_with(".py"),
        pl.col("metric").str.contains("pct"),
    )  # fmt: skip
    return {
        "launches": len(launches), "kernels": launches.select("source", "kernel").n_unique(),
        "compared": of, "equal": equal, "percent": _percent(equal, of),
        "memory": memory, "memory_equal": memory_equal,
        "memory_percent": _percent(memory_equal, memory),
        "programs": len(programs.filter(verdict="near")), "of_programs": len(programs),
    }  # fmt: skip


def _ratios(rows: pl.DataFrame) -> dict[str, str]:
    """Instructions of the chip for each of cutrace's: the median, and a tenth of either side."""
    both = rows.filter(kind="instructions", metric=INSTRUCTIONS)
    ratios = both.select(pl.col("chip") / pl.col("cutrace").replace(0.0, 1.0))["chip"].sort()
    low, middle, high = (ratios[len(ratios) * part // 10] for part in (1, 5, 9))
    return {"ratio": f"{middle:.2f}", "low": f"{low:.2f}", "high": f"{high:.2f}"}


def _share(counts: pl.DataFrame) -> tuple[int, int]:
    """How many are equal, and how many are comparable."""
    equal = len(counts.filter(verdict="equal"))
    return equal, equal + len(counts.filter(verdict="unequal"))


OTHER = "h100_fresh2.json"
BOTH_CHIPS = """These are counts of the architecture: an {other} gives nearly the same. Of
{of} counts of the first {launches} launches of `fresh2*.cu` {equal} are equal on both
chips; the others depend on timing."""


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
    captured = json.loads((FOLDER / OTHER).read_text())
    return BOTH_CHIPS.format(
        other=captured["device"],
        launches=len(captured["launches"]),
        of=of,
        equal=of - len(differ),
    )


def _families(counts: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    """Every count, with accesses as PTX has them and as they are assembled."""

    def family(source: str) -> str:
        return FAMILIES.get(source, "`tests/programs`" if source.endswith(".py") else "gallery")

    named = counts.filter(pl.col("verdict") != "zero").with_columns(
        family=pl.col("source").map_elements(family, pl.String)
    )
    for (name,), mine in named.group_by("family", maintain_order=True):
        yield name, *_family(mine)
    yield "all", *_family(named)


def _family(mine: pl.DataFrame) -> tuple[object, ...]:
    near = [
        mine.select(((pl.col("chip") - pl.col("ptx")).abs() <= ROUNDED).sum()).item(),
        len(mine.filter(NEARLY)),
    ]
    equal, of = _share(mine)
    launches = mine.select("source", "launch").n_unique()
    parts = [f"{_percent(part, len(mine))} %" for part in near]
    return len(mine), *parts, launches, of, f"{_percent(equal, of)} %"


def _counters(counts: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    """Counters together that differ in the kind of access alone."""
    grouped = counts.with_columns(group=pl.col("metric").map_elements(_group, pl.String))
    for (name,), mine in grouped.group_by("group", maintain_order=True):
        equal, of = _share(mine)
        apart = mine.filter(verdict="apart")
        same = len(apart.filter(NEARLY))
        cells = f"{equal} of {of}", _percent(equal, of), ", ".join(_below(mine))
        yield f"`{name}`", *cells, len(apart), same


def _group(metric: str) -> str:
    """The name with `*` for the space, the operation, or the rest of a launch's counter.

    >>> _group("smsp__inst_executed_op_shared_ld.sum"), _group("launch__waves_per_multiprocessor")
    ('smsp__inst_executed_op_*_*.sum', 'launch__*')
    """
    return KIND.sub(lambda kind: "*_op_*" if kind[1] else "op_*_*" if kind[3] else "*", metric)


def _below(group: pl.DataFrame) -> Iterator[str]:
    """The counters of a group of which some are not equal."""
    for (name,), mine in group.group_by("metric", maintain_order=True):
        equal, of = _share(mine)
        if equal < of:
            match = KIND.search(str(name))
            yield f"`{match[0]}` {equal} of {of}" if match else ""


def _textures() -> Iterator[tuple[object, ...]]:
    """Samples were captured apart, by scripts/capture/footprints.py."""
    many = len(json.loads((FOLDER / TEXTURES).read_text()))
    for what in ("requests", "sectors"):
        name = f"`l1tex__t_{what}_pipe_tex_mem_texture.sum`"
        yield name, f"{many} of {many}", "100.0", "", 0, 0


def _reasons(unequal: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    """Why counts are not equal, the most frequent reason first, and by how much."""
    most = pl.max_horizontal("chip", "cutrace")
    for reason, mine in _by_reason(unequal):
        gap = mine.select(((pl.col("chip") - pl.col("cutrace")).abs() / most).max()).item()
        counters = ", ".join(f"`{name}`" for name in sorted({*mine["metric"]}))
        kernels = mine.select("source", "kernel").n_unique()
        largest = f"{100 * gap:.1f} %" if gap >= 0.0005 else "< 0.1 %"
        yield counters, reason, len(mine), kernels, largest


def _by_reason(rows: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    groups = [(str(key[0]), mine) for key, mine in rows.group_by("reason", maintain_order=True)]
    return sorted(groups, key=lambda group: -len(group[1]))


def _cache_reasons(far: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    for reason, mine in _by_reason(far):
        yield reason, len(mine), mine.select("source", "kernel").n_unique()


def _apart(counts: pl.DataFrame) -> dict[str, object]:
    """Why counts are not comparable, and how many are equal all the same."""
    apart = counts.filter(verdict="apart").with_columns(
        pl.when(pl.col("reason").str.contains(", on the chip "))
        .then(pl.lit("the chip executed other warp instructions of the counter's class"))
        .when(pl.col("reason").str.starts_with("up to time"))
        .then(pl.lit("addresses depend on timing"))
        .otherwise("reason")
        .alias("reason")
    )
    rows = ((reason, len(mine), len(mine.filter(NEARLY))) for reason, mine in _by_reason(apart))
    waits = apart.filter(reason=WAITED).select("source", "launch").n_unique()
    return {
        "apart": _lines(rows), "waits": waits,
        "timed": "; ".join(f"`{kernel}` ({what})" for kernel, what in TIMED.items()),
        "unsteady": ", ".join(f"`{name}`" for name in sorted(UNSTEADY)),
    }  # fmt: skip


def _caches(caches: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    for metric, nearness in NEAR.items():
        mine = caches.filter(metric=metric).with_columns(near=pl.col("verdict") == "near")
        near, of = int(mine["near"].sum()), len(mine)
        kernels = mine.group_by("source", "kernel").agg(pl.col("near").mean() > 0.5)["near"]
        most = int(kernels.sum())
        by_kernel = f"{most} of {len(kernels)}", _percent(most, len(kernels))
        yield f"`{metric}`", nearness.words, f"{near} of {of}", _percent(near, of), *by_kernel


def _percent(part: int, of: int) -> str:
    return f"{100 * part / of:.1f}" if of else ""


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.2f}"
