"""docs/validation.md: tables of the pairs in kept.py, in the text of validation.md here."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
from silicon.caches import NEAR
from silicon.filled import filled
from silicon.kept import INSTRUCTIONS, KIND, kept
from silicon.launches import FOLDER, ROUNDED, Pair, classes
from silicon.programs_page import (
    IN_FULL,
    cached_programs,
    drawn,
    far_cache_counts,
    section,
)

FILES = (
    *("h200.json", "h200_collide.json", "h200_programs.json", "h200_caches.json"),
    *("h200_everyday.json", "h200_unseen.json", "h200_fresh.json", "h200_fresh2.json"),
    *("h200_loops.json", "h200_ways.json"),
)
TEXTURES = "h200_footprints.json"
TEMPLATE = Path(__file__).parent / "validation.md"
EVERYDAY = "everyday kernels"
FAMILIES = (
    (r"(atomic|atomic_more|global|local|shared)\.cu", "small kernels: widths, strides, masks"),
    (r"collide\.cu", "small kernels: lanes whose atomics collide"),
    (r"(everyday|unseen|fresh\w*)\.cu", EVERYDAY),
    (r"(loops|ways)\.cu", "control flow: where diverged lanes reconverge"),
    (r".*\.py", "Python programs of `tests/programs`"),
    ("|".join(re.escape(path.name) for path in (FOLDER.parent / "caches").glob("*.cu")), "caches"),
    (r".*", "gallery"),
)
"""Regular expressions for a source, and the kernels on the page."""


NEARLY = (pl.col("chip") - pl.col("cutrace")).abs() <= ROUNDED
"""Equal to the two decimals that the profiler prints."""


def page() -> str:
    """The whole page."""
    rows = kept()
    counts = rows.filter(kind="count")
    caches = rows.filter(kind="cache")
    named = counts.filter(pl.col("verdict") != "zero")
    text = TEMPLATE.read_text(encoding="utf-8").format(
        **_chip(), **_totals(rows), **_draws(), ratio=_ratio(rows), both_chips=both_chips(),
        all=len(named), all_percent=_percent(len(named.filter(NEARLY)), len(named)),
        families=_lines(_families(named)),
        always=_lines((*_always(counts), *_textures())),
        sometimes=_lines(_sometimes(counts)),
        apart=_lines(_apart(counts)),
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
    return {
        "launches": len(launches), "kernels": launches.select("source", "kernel").n_unique(),
        "compared": of, "equal": equal, "percent": _percent(equal, of),
        "memory": memory, "memory_percent": _percent(memory_equal, memory),
    }  # fmt: skip


def _draws() -> dict[str, object]:
    """What the first comparisons of programs found."""
    every, equal, comparable, same = drawn()
    return {
        "draws": every, "draws_percent": _percent(equal, every),
        "draws_comparable": comparable, "draws_comparable_percent": _percent(same, comparable),
    }  # fmt: skip


def _ratio(rows: pl.DataFrame) -> str:
    """Instructions of the chip for each of cutrace's, the median."""
    both = rows.filter(kind="instructions", metric=INSTRUCTIONS)
    ratios = both.select(pl.col("chip") / pl.col("cutrace").replace(0.0, 1.0))["chip"].sort()
    return f"{ratios[len(ratios) // 2]:.1f}"


def _share(counts: pl.DataFrame) -> tuple[int, int]:
    """How many are equal, and how many are comparable."""
    equal = len(counts.filter(verdict="equal"))
    return equal, equal + len(counts.filter(verdict="unequal"))


OTHER = "h100_fresh2.json"
BOTH_CHIPS = """Two chips of 9.0 agree: of {of:,} counts of the last set {equal:,} are equal on the
H200 and on an {other}. The others depend on timing."""


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
        of=of,
        equal=of - len(differ),
    )


def _families(named: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    """The counts of each kind of kernels."""

    def family(source: str) -> str:
        return next(kernels for pattern, kernels in FAMILIES if re.fullmatch(pattern, source))

    by_family = named.with_columns(family=pl.col("source").map_elements(family, pl.String))
    for _, kernels in FAMILIES:
        yield kernels, *_family(by_family.filter(family=kernels))
    yield "all", *_family(named)


def _family(mine: pl.DataFrame) -> tuple[object, ...]:
    near = len(mine.filter(NEARLY))
    equal, of = _share(mine)
    cells = len(mine), _percent(near, len(mine)), of, _percent(equal, of)
    return f"{cells[0]:,}", f"{cells[1]} %", f"{cells[2]:,}", f"{cells[3]} %"


def _always(counts: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    """Counters whose comparable counts are all equal, together if the kind of access differs."""
    differ = counts.filter(verdict="unequal")["metric"].implode()
    grouped = counts.filter(~pl.col("metric").is_in(differ)).with_columns(
        group=pl.col("metric").map_elements(_group, pl.String)
    )
    for (name,), mine in grouped.group_by("group", maintain_order=True):
        yield f"`{name}`", f"{_share(mine)[1]:,}"


def _sometimes(counts: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    """The other counters, with the reasons, the most frequent first."""
    for (metric,), mine in counts.group_by("metric", maintain_order=True):
        equal, of = _share(mine)
        reasons = [reason for reason, _ in _by_reason(mine.filter(verdict="unequal"))]
        if reasons:
            yield f"`{metric}`", f"{equal} of {of}", "; ".join(reasons)


def _group(metric: str) -> str:
    """The name with `*` for the space, the operation, or the rest of a launch's counter.

    >>> _group("smsp__inst_executed_op_shared_ld.sum"), _group("launch__waves_per_multiprocessor")
    ('smsp__inst_executed_op_*_*.sum', 'launch__*')
    """
    return KIND.sub(lambda kind: "*_op_*" if kind[1] else "op_*_*" if kind[3] else "*", metric)


def _textures() -> Iterator[tuple[object, ...]]:
    """Samples were captured apart, by scripts/capture/footprints.py."""
    many = len(json.loads((FOLDER / TEXTURES).read_text()))
    for what in ("requests", "sectors"):
        name = f"`l1tex__t_{what}_pipe_tex_mem_texture.sum`"
        yield name, many


def _by_reason(rows: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    groups = [(str(key[0]), mine) for key, mine in rows.group_by("reason", maintain_order=True)]
    return sorted(groups, key=lambda group: -len(group[1]))


def _cache_reasons(far: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    """Why caches' counts are not near: how many of our kernels, and how many of programs."""
    ours = {reason: len(mine) for reason, mine in _by_reason(far)}
    theirs = far_cache_counts()
    for reason in sorted({**ours, **theirs}, key=lambda why: -ours.get(why, 0) - theirs[why]):
        yield reason, ours.get(reason, 0), theirs[reason]


def _apart(counts: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    """Why counts are not comparable, and how many are equal all the same."""
    apart = counts.filter(verdict="apart").with_columns(
        pl.when(pl.col("reason").str.contains(", on the chip "))
        .then(pl.lit("the chip executed more or fewer instructions, or with other widths"))
        .when(pl.col("reason").str.starts_with("up to time"))
        .then(pl.lit("addresses depend on timing, as of a warp that appends to a queue"))
        .otherwise("reason")
        .alias("reason")
    )
    for reason, mine in _by_reason(apart):
        yield IN_FULL.get(reason, reason), len(mine), len(mine.filter(NEARLY))


def _caches(caches: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    for metric in NEAR:
        mine = caches.filter(metric=metric)
        ours = len(mine.filter(verdict="near")), len(mine)
        both = ours, cached_programs(metric)
        yield f"`{metric}`", *(f"{near} of {of}, {_percent(near, of)} %" for near, of in both)


def _percent(part: int, of: int) -> str:
    return f"{100 * part / of:.1f}" if of else ""
