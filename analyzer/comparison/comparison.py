"""Compare variants: differences and ratios against a baseline, aligned lines, the best marked.

Variants with equal numbers of launches are compared launch by launch, others as the sums of all
their launches. Lines of different sources are aligned as in a diff: lines with equal text share a
row, and so do lines that replace each other. `compare` returns one tidy table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import zip_longest
from os import PathLike
from typing import Any

import polars as pl

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...models.replay.device.measured import WITHIN
from ...traces.reader import Trace
from ...traces.schema import Launch
from ..counting.bounds import Bound, time_text
from ..counting.evaluate import Raw, Value
from ..counting.left_out import LeftOut
from ..counting.vocabulary import Counter, check_parts, find_counters, heading, vocabularies
from ..launch_profile import LaunchProfile
from ..profile import Profile, analyze
from ..report.document import Cell, Row
from ..summary_text import time_line
from ..text.launch_text import NO_LAUNCHES, kept_text, launch_text
from ..time.estimate_text import Range
from .difference import Difference, difference, estimated_range

MOST = 8
"""Most variants that stand side by side."""


def split_kernels(profile: Profile, name: str) -> dict[str, Profile]:
    """Return a profile per kernel by its name; of a single kernel, per launch by its number.

    `name` is the trace's, for the `CutraceError` if there is only one launch, or too many variants.
    """
    _check_launches(name, profile)
    groups: dict[str, list[LaunchProfile]] = {}
    is_one = len({p.launch.name for p in profile.launches}) == 1
    for p in profile.launches:
        groups.setdefault(f"launch {p.number}" if is_one else p.launch.name, []).append(p)
    if len(groups) < 2:
        raise CutraceError(
            f"nothing to compare with: one launch of {name}; choose two, or give two traces"
        )
    if len(groups) > MOST:
        what = "launches" if is_one else "kernels"
        raise CutraceError(
            f"{name} has {len(groups)} {what}, too many side by side: choose launches by their"
            f" numbers, {MOST} at most, say --launch 0,1"
        )
    return {kernel: replace(profile, launches=tuple(mine)) for kernel, mine in groups.items()}


EQUAL_BOUNDS = 0.01
"""Part of the baseline's bound within which two bounds count as equal."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The variant with the least time against the baseline, by estimates or, lacking these, bounds.

    `difference` compares the estimates, None where a variant has none. `bounds` are the baseline's
    and the variant's longest ones; None for the sums of several launches.
    """

    variant: int
    difference: Difference | None
    bounds: tuple[Bound, Bound] | None

    def tell(self, names: Sequence[str], baseline: str) -> str:
        """Return the sentence, with the variants' names. Only estimates call a variant faster.

        >>> slow, fast = Bound("banks", 900.0, 9, "wavefronts"), Bound("L2", 300.0, 9, "bytes")
        >>> Verdict(1, None, (slow, fast)).tell(["a", "b"], "a")
        'the lower bound falls from 900 ns for a (banks) to 300 ns for b (L2); no estimate'
        """
        if self.difference:
            return self.difference.text(names[self.variant], baseline)
        if not self.bounds:
            return ""
        before, after = self.bounds
        if abs(after.ns - before.ns) <= EQUAL_BOUNDS * before.ns:
            return (
                f"the lower bound is {time_text(after.ns)} for both ({after.resource}); no"
                " estimate: see what the counters say"
            )
        change = "falls" if after.ns < before.ns else "rises"
        return (
            f"the lower bound {change} from {time_text(before.ns)} for {baseline}"
            f" ({before.resource}) to {time_text(after.ns)} for {names[self.variant]}"
            f" ({after.resource}); no estimate"
        )


def find_verdict(sides: Sequence[LaunchProfile], base: int) -> Verdict | None:
    """Compare the variant with the least time, of those other than the baseline, with it.

    None if a variant has neither an estimate nor a bound.
    """
    others = [index for index in range(len(sides)) if index != base]
    longest = [side.bounds[0] for side in sides if side.bounds and not side.refusal]
    ranges = [_estimated(side) for side in sides]
    known = [each for each in ranges if each]
    if not others or any(side.refusal for side in sides):
        return None
    if len(known) == len(sides):
        best = min(others, key=lambda index: known[index])
        bounds = (longest[base], longest[best]) if len(longest) == len(sides) else None
        return Verdict(best, difference(known[base], known[best], sides[base].within), bounds)
    if len(longest) < len(sides):
        return None
    best = min(others, key=lambda index: longest[index].ns)
    return Verdict(best, None, (longest[base], longest[best]))


def _estimated(side: LaunchProfile) -> Range | None:
    """Return the estimated time of a launch, or of the sum of several."""
    picoseconds = side.raw.facts.get("estimated_ps")
    return (picoseconds / 1000, picoseconds / 1000) if picoseconds else estimated_range([side])


GROUPINGS = ("launch", "line")
Line = tuple[str, int]
SIMILAR, NEAR = 0.6, 40
"""Least similarity of two matching lines, and the distance within which a match is searched."""


@dataclass(frozen=True, slots=True)
class LaunchComparison:
    """A launch on one device, or a line of it: a row per counter, a cell per variant.

    `launch` is its number, None for all launches together. `places` names each variant's line
    (empty if it has none), and is empty for the launch as a whole; `text` is the line's. `refusals`
    has a text for each variant that the device cannot launch. `limits` has the time of each
    variant's launch as a whole, empty if unknown. `verdict` compares the variant of the
    least time with the baseline.
    """

    device: str
    launch: int | None
    refusals: tuple[str, ...]
    rows: tuple[Row, ...]
    places: tuple[str, ...] = ()
    text: str = ""
    limits: tuple[str, ...] = ()
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All tables; `launches` names the variants' launches by table number; may be empty."""

    variants: tuple[str, ...]
    baseline: int
    tables: tuple[LaunchComparison, ...]
    launches: Mapping[int | None, tuple[str, ...]]
    notes: tuple[str, ...]


def compare_profiles(
    profiles: Mapping[str, Profile],
    baseline: str | None = None,
    by: str = "launch",
    counters: Sequence[str] = (),
) -> Comparison:
    """Compare variants, by name, that were replayed on the same devices.

    `baseline` names one; default: the first. Raises `CutraceError` for names that do not exist.
    """
    names = tuple(profiles)
    if baseline is not None and baseline not in names:
        close = nearest(baseline, names)
        raise CutraceError(f"no variant {baseline!r}{close}; there are {', '.join(names)}")
    for name, profile in profiles.items():
        _check_launches(name, profile)
    if by not in GROUPINGS:
        raise CutraceError(f"cannot compare by {by!r}; expected {' or '.join(GROUPINGS)}")
    base = names.index(baseline) if baseline else 0
    selection = find_counters(counters) or vocabularies()[0].counters
    check_parts(find_counters(counters), by)
    every = list(profiles.values())
    numbers = [profile.numbers for profile in every]
    is_paired = len({*map(len, numbers)}) == 1
    together: Sequence[int | None] = range(len(numbers[0])) if is_paired else (None,)
    rows = align_lines(every, base) if by == "line" else []
    doubts = tuple(tell_differences(profiles, base))
    tables = tuple(
        table
        for place in together
        for device in every[0].devices
        for table in _tables(
            _sides(every, place, device),
            device,
            _number(every[base], place),
            selection,
            base,
            rows,
            not doubts,
        )
        if table.rows or any(table.refusals)
    )
    launches = {
        _number(every[base], place): tuple(_heading(p, place, every[base]) for p in every)
        for place in together
    }
    partial_notes = (text for name in names for text in _kept_notes(name, profiles[name]))
    notes = (*_notes(names, numbers), *partial_notes, *doubts)
    return Comparison(names, base, tables, launches, notes)


def _check_launches(name: str, profile: Profile) -> None:
    """Raise `CutraceError` for a variant without launches."""
    if not profile.launches:
        raise CutraceError(f"{name}: {NO_LAUNCHES}")


def _number(profile: Profile, place: int | None) -> int | None:
    """Return the number of a variant's launch at a place; None for all of them together."""
    return None if place is None else profile.numbers[place]


def _heading(profile: Profile, place: int | None, base: Profile) -> str:
    """Return the launch of a variant, with its number if it differs from the baseline's."""
    if place is not None:
        number = profile.numbers[place]
        text = launch_text(profile.of(number)[0].launch)
        return text if number == base.numbers[place] else f"{text}, launch {number}"
    return ", ".join(launch_text(profile.of(n)[0].launch) for n in profile.numbers)


def _notes(names: Sequence[str], numbers: Sequence[Sequence[int]]) -> Iterator[str]:
    if len({*map(len, numbers)}) > 1:
        counts = ", ".join(f"{n} has {len(k)}" for n, k in zip(names, numbers, strict=True))
        yield f"unequally many launches ({counts}): compared as the sums of all"


def _kept_notes(name: str, profile: Profile) -> Iterator[str]:
    """Yield the notes on a variant's partial trace, each once for all launches."""
    launches = [profile.of(number)[0].launch for number in profile.numbers]
    texts = dict.fromkeys(text for launch in launches for text in kept_text(launch))
    yield from (f"{name}: {text}" for text in texts)


def _sides(
    profiles: Sequence[Profile], place: int | None, device: str
) -> tuple[LaunchProfile, ...]:
    """Return each variant's launch at this place on a device, or the sum of its launches."""
    mine = [[p for p in profile.launches if p.device == device] for profile in profiles]
    if place is None:
        return tuple(sum_launches(launches) for launches in mine)
    return tuple(launches[place] for launches in mine)


def sum_launches(launches: Sequence[LaunchProfile]) -> LaunchProfile:
    """Sum several launches into one; facts that differ are unknown."""
    first = launches[0]
    facts = {
        name: value if all(p.raw.facts.get(name) == value for p in launches) else None
        for name, value in first.raw.facts.items()
    }
    for name in ("bound_ps", "estimated_ps"):
        times = [p.raw.facts.get(name) for p in launches]
        facts[name] = None if None in times else sum(time or 0 for time in times)
    return replace(
        first,
        raw=Raw(
            _stack([p.raw.counts for p in launches]), facts, first.raw.whole, _left_out(launches)
        ),
        mixed=_stack([p.mixed for p in launches]),
        bounds=(),
        estimate=None,
        refusal=next((f"launch {p.number}: {p.refusal}" for p in launches if p.refusal), ""),
    )


def _left_out(launches: Sequence[LaunchProfile]) -> LeftOut:
    """Mark counters unknown in the sum that any of the launches lacks."""
    counted = [frozenset(p.raw.counts.columns) for p in launches]
    partly = frozenset.union(*counted) - frozenset.intersection(*counted)
    unknown = partly.union(*(p.raw.left_out.anywhere() for p in launches))
    return LeftOut(unknown, scoped=any(p.raw.left_out.scoped for p in launches))


def _stack(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(tables, how="diagonal")


def _tables(
    sides: Sequence[LaunchProfile],
    device: str,
    number: int | None,
    counters: Sequence[Counter],
    base: int,
    lines: Sequence[tuple[Line | None, ...]],
    marks: bool,
) -> Iterator[LaunchComparison]:
    """Yield the table of a launch, or one for each of the aligned `lines`."""
    refusals, within = tuple(side.refusal for side in sides), sides[base].within
    here = [c for c in counters if any(c.exists_on(side.capability) for side in sides)]
    if not lines:
        rows = tuple(compare_rows(here, [side.counters for side in sides], base, marks, within))
        is_timed = (side.bounds or side.estimate_between for side in sides)
        limits = tuple(
            time_line(side) if timed else "" for side, timed in zip(sides, is_timed, strict=True)
        )
        verdict = find_verdict(sides, base)
        yield LaunchComparison(device, number, refusals, rows, limits=limits, verdict=verdict)
        return
    tables = [
        {(row["file"], row["line"]): row for row in side.lines.iter_rows(named=True)}
        for side in sides
    ]
    nothing: Mapping[str, Value] = {}
    for places in lines:
        line_rows = [
            table.get(place, nothing) if place else nothing
            for table, place in zip(tables, places, strict=True)
        ]
        rows = tuple(
            row
            for row in compare_rows(here, line_rows, base, marks, within)
            if any(c.value for c in row.cells)
        )
        texts = [str(row["text"]).strip() for row in line_rows if row]
        named = tuple(
            f"{p[0]}:{p[1]}" if p and row else "" for p, row in zip(places, line_rows, strict=True)
        )
        if rows:
            yield LaunchComparison(device, number, refusals, rows, named, texts[0])


def compare_rows(
    counters: Sequence[Counter],
    values: Sequence[Mapping[str, Value]],
    base: int,
    marks: bool = True,
    within: Range = WITHIN,
) -> Iterator[Row]:
    """Yield a row per counter from each variant's values, by heading; `base` is the baseline's.

    With `marks` the best are marked, for variants that do the same work. `within` are the ends of
    measured over estimated times on the device.
    """
    for counter in counters:
        amounts = [side.get(heading(counter)) for side in values]
        best = _best(counter, amounts, within) if marks else ()
        cells = []
        for value in amounts:
            difference, ratio = _against(counter, value, amounts[base])
            is_best = value is not None and value in best
            cells.append(Cell(value, difference=difference, ratio=ratio, is_best=is_best))
        yield Row(counter.name, tuple(cells), counter)


def _against(counter: Counter, value: Value, base: Value) -> tuple[Value, float | None]:
    """Return difference and ratio; no ratio to zero, and none of bounds."""
    if value is None or base is None:
        return None, None
    return value - base, value / base if base and counter.name != BOUND else None


TIME = "ns"
"""Unit of counters that are times: estimates differ from a chip's."""
BOUND = "bound_time"
"""A launch with a lower bound may take longer: it has no ratio, and is never the best."""


def _best(counter: Counter, values: Sequence[Value], within: Range) -> Sequence[Value]:
    """Return the best values; none if all are equal, or if neither more nor less is better.

    Zero is not marked: the variant does nothing of the kind. Times within the error of the best are
    as good as the best.
    """
    amounts = [value for value in values if value is not None]
    if not counter.better or len(set(amounts)) < 2:
        return ()
    best = max(amounts) if counter.better == "more" else min(amounts)
    if counter.unit != TIME or not best:
        return (best,) if best else ()
    alike = [v for v in amounts if difference((v, v), (best, best), within).verdict == "same"]
    return () if len(alike) == len(amounts) else alike


def align_lines(profiles: Sequence[Profile], base: int) -> list[tuple[Line | None, ...]]:
    """Return rows of matching lines, in the order of the baseline's source.

    A line that the baseline lacks comes after the line before it.
    """
    texts = [[*_source_lines(profile)] for profile in profiles]
    rows: list[list[Line | None]] = []
    for line, _ in texts[base]:
        rows.append([line if n == base else None for n in range(len(profiles))])
    # Lines without a match, by the baseline line before them; -1: before the first.
    added: dict[int, list[list[Line | None]]] = {}
    for side, lines in enumerate(texts):
        if side == base:
            continue
        for place, after, line in _matches([text for _, text in texts[base]], lines):
            if place is not None:
                rows[place][side] = line
            else:
                own = [line if n == side else None for n in range(len(profiles))]
                added.setdefault(after, []).append(own)
    ordered = [*added.get(-1, [])]
    for place, row in enumerate(rows):
        ordered += [row, *added.get(place, [])]
    return [tuple(row) for row in ordered]


def _source_lines(profile: Profile) -> Iterator[tuple[Line, str]]:
    for file, text in profile.manifest.sources.items():
        for place, line in enumerate(text.splitlines(), start=1):
            yield (file, place), line.strip()


def _matches(
    base: Sequence[str], lines: Sequence[tuple[Line, str]]
) -> Iterator[tuple[int | None, int, Line]]:
    """Yield each line with its match in the baseline, or None, and the baseline line before it."""
    texts = [text for _, text in lines]
    matcher = SequenceMatcher(None, base, texts, autojunk=False)
    for kind, low, high, first, last in matcher.get_opcodes():
        at = low
        for place in range(first, last):
            like = at if kind == "equal" else _most_alike(texts[place], base, at, high)
            yield like, high - 1, lines[place][0]
            # A match never precedes the one before it, so rows keep the order of both sources.
            at = at if like is None else like + 1


def _most_alike(text: str, base: Sequence[str], low: int, high: int) -> int | None:
    """Return the baseline line in [low, high) most similar to a text; None if none is similar."""
    if not text:
        return None
    near = range(low, min(high, low + NEAR))
    ratios = {n: SequenceMatcher(None, base[n], text, autojunk=False).ratio() for n in near}
    best = max(ratios, key=lambda n: ratios[n], default=None)
    return best if best is not None and ratios[best] >= SIMILAR else None


def tell_differences(profiles: Mapping[str, Profile], base: int) -> Iterator[str]:
    """Yield each doubt about comparing variants with the baseline, once per pair."""
    names = list(profiles)
    launched = [[p.of(n)[0].launch for n in p.numbers] for p in profiles.values()]
    for name, launches in zip(names, launched, strict=True):
        if name != names[base]:
            yield from _tell_pair((names[base], name), (launched[base], launches))


def _tell_pair(
    names: tuple[str, str], launched: tuple[list[Launch], list[Launch]]
) -> Iterator[str]:
    """Yield the first doubt of each kind about two variants."""
    pairs = list(zip_longest(*launched))
    for index, pair in enumerate(pairs):
        if all(pair) and not _is_same_work(*pair):
            text = " and ".join(
                f"{name} launches {launch.signature or launch.kernel}"
                for name, launch in zip(names, pair, strict=True)
            )
            yield f"launch {index}: different kernels, {text}: do they do the same work?"
            return
    for index, pair in enumerate(pairs):
        if all(pair) and (other := _other_numbers(*pair)):
            text = ", ".join(f"{name}={a} and {b}" for name, a, b in other)
            yield f"launch {index}: {names[0]} and {names[1]} have other numbers, {text}"
            return


def _is_same_work(one: Launch, other: Launch) -> bool:
    return _name(one) == _name(other) or _types(one) == _types(other)


def _name(launch: Launch) -> str:
    """Return the kernel's name without template arguments."""
    return launch.name.partition("<")[0]


def _types(launch: Launch) -> Sequence[str]:
    """Return the types of the arguments, sorted."""
    return sorted(argument.type for argument in launch.arguments)


def _other_numbers(one: Launch, other: Launch) -> list[tuple[str, int, int]]:
    """Return integer arguments of equal name and different value."""
    values = {a.name: a.value for a in one.arguments if isinstance(a.value, int)}
    return [
        (a.name, values[a.name], a.value)
        for a in other.arguments
        if isinstance(a.value, int) and values.get(a.name, a.value) != a.value
    ]


SCHEMA = {
    "variant": pl.String,
    "device": pl.String,
    "launch": pl.Int64,
    "counter": pl.String,
    "value": pl.Float64,
}


def compare(
    variants: Mapping[str, Trace | str | PathLike[str]] | Trace | str | PathLike[str],
    device: str | Sequence[str] = (),
    **options: Any,
) -> pl.DataFrame:
    """Count several traces, or the kernels of one, on several devices.

    `variants` maps names to traces or their paths, or is one trace, whose kernels are compared (or
    its launches, if it has one kernel). `options` are further options of `analyze()`. Returns a row
    per variant, device, launch and counter: columns `variant`, `device`, `launch` (its number),
    `counter` (the headings of `LaunchProfile.counters`) and `value` (float64, integers exact up to
    2**53; null if the device lacks the counter). Raises `CutraceError` for variants without names.
    """
    rows = [
        (variant, launch.device, launch.number, counter, value)
        for variant, profile in _profiles(variants, device, options).items()
        for launch in profile.launches
        for counter, value in launch.counters.items()
    ]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _profiles(
    variants: object, device: str | Sequence[str], options: Mapping[str, Any]
) -> dict[str, Profile]:
    if isinstance(variants, Mapping):
        return {name: analyze(trace, device, **options) for name, trace in variants.items()}
    if isinstance(variants, Trace | str | PathLike):
        name = str(variants.path if isinstance(variants, Trace) else variants)
        return split_kernels(analyze(variants, device, **options), name)
    raise CutraceError(
        f"compare() got {type(variants).__name__}; expected traces by name, say "
        'compare({"before": "a.cutrace", "after": "b.cutrace"})'
    )
