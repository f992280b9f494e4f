"""A profiler's file as a variant of a comparison: hardware counters next to cutrace's.

Launches are matched by the kernel's name and by their number among those of that kernel, metrics by
name. If the file has only an average of a kernel, it is compared with the average of the kernel's
launches.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TypeVar

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ..counting.evaluate import Value
from ..counting.vocabulary import Counter, check_parts, find_counters, heading, vocabularies
from ..launch_profile import LaunchProfile
from ..profile import Profile
from ..profilers.measured import demangled
from ..profilers.measurement import Line, Measured, MeasuredLaunch
from ..report.document import Row
from ..text.launch_text import launch_text
from .comparison import Comparison, LaunchComparison, compare_rows

Variant = Profile | Measured
Launched = TypeVar("Launched")
Values = Mapping[str, Value]


def compare_measured(
    variants: Mapping[str, Variant],
    baseline: str | None = None,
    counters: Sequence[str] = (),
    by: str = "launch",
) -> Comparison:
    """Compare profiles and profilers' files, by name; launches are the first profile's.

    Without `counters`, all that the files have and cutrace knows. Raises `CutraceError` if nothing
    matches: no profile, no kernel of that name, no metric, no line.
    """
    names = tuple(variants)
    if baseline is not None and baseline not in names:
        close = nearest(baseline, names)
        raise CutraceError(f"no variant {baseline!r}{close}; there are {', '.join(names)}")
    base = names.index(baseline) if baseline else 0
    first = next((v for v in variants.values() if isinstance(v, Profile)), None)
    if first is None:
        raise CutraceError("profilers' files alone: give a trace to compare them with")
    if by == "line":
        check_parts(find_counters(counters), by)
        _check_lines(variants)
    elif by != "launch":
        raise CutraceError(f"cannot compare by {by!r}; expected launch or line")
    selection = _selected_counters(variants, counters, by)
    averaged = any(isinstance(v, Measured) and v.is_averaged for v in variants.values())
    tables: list[LaunchComparison] = []
    launches: dict[int | None, tuple[str, ...]] = {}
    without: set[str] = set()
    for launch, which in _units(first, averaged):
        sides = [_side(variant, launch, which) for variant in variants.values()]
        present_sides = [side for side in sides if side is not None]
        if len(present_sides) < len(sides):
            without.add(base_name(demangled(launch.launch)))
            continue
        refusals = tuple(side.refusal for side in present_sides)
        if by == "line":
            tables += _line_tables(selection, variants, launch, which, base, bool(counters))
        else:
            rows = _rows(selection, present_sides, launch, base, bool(counters))
            tables.append(LaunchComparison(launch.device, launch.number, refusals, rows))
        launches[launch.number] = tuple(side.text for side in present_sides)
    if not tables:
        raise CutraceError(_nothing(variants, first))
    return Comparison(names, base, tuple(tables), launches, tuple(_notes(variants, first, without)))


def _rows(
    selection: Sequence[Counter],
    sides: Sequence["_Side"],
    launch: LaunchProfile,
    base: int,
    is_by_name: bool,
) -> tuple[Row, ...]:
    here = _here(selection, sides, launch, is_by_name)
    return tuple(compare_rows(here, [_by_heading(here, side) for side in sides], base))


def _check_lines(variants: Mapping[str, Variant]) -> None:
    """Raise `CutraceError` for a file without values of lines."""
    for name, variant in variants.items():
        if isinstance(variant, Measured) and not any(m.lines for m in variant.launches):
            raise CutraceError(
                f"{name} has launches only, so no --by line; the lines are in a report (.ncu-rep)"
                " of `ncu --set full` of a program that `nvcc -lineinfo` compiled"
            )


def _line_tables(
    selection: Sequence[Counter],
    variants: Mapping[str, Variant],
    launch: LaunchProfile,
    which: int | None,
    base: int,
    is_by_name: bool,
) -> Iterator[LaunchComparison]:
    """Yield a table for each line that has a value, in the order of the source."""
    texts: dict[Line, str] = {}
    for profile in (v for v in variants.values() if isinstance(v, Profile)):
        for ours in _pick(_of_kernel(profile, launch), which):
            rows = ours.lines.iter_rows(named=True)
            texts |= {(row["file"], row["line"]): str(row["text"]).strip() for row in rows}
    sides = [_lines_of(variant, launch, which, texts) for variant in variants.values()]
    nothing: Values = {}
    for place in sorted({line for side in sides for line in side}):
        here = [
            _Side(side.get(place, nothing), "", isinstance(variant, Measured))
            for side, variant in zip(sides, variants.values(), strict=True)
        ]
        if found := _rows(selection, here, launch, base, is_by_name):
            places = tuple(f"{place[0]}:{place[1]}" if side.values else "" for side in here)
            refusals = ("",) * len(here)
            yield LaunchComparison(
                launch.device, launch.number, refusals, found, places, texts.get(place, "")
            )


def _lines_of(
    variant: Variant, launch: LaunchProfile, which: int | None, ours: Iterable[Line]
) -> dict[Line, Values]:
    """Return a variant's values by line; a file's lines under the names of the trace's sources."""
    if isinstance(variant, Profile):
        (mine, *_) = _pick(_of_kernel(variant, launch), which)
        return {(row["file"], row["line"]): row for row in mine.lines.iter_rows(named=True)}
    files = dict.fromkeys(file for file, _ in ours)
    lines: dict[Line, Values] = {}
    for (file, number), values in _measured(variant, launch, which)[0].lines.items():
        lines[_source_of(file, files), number] = values
    return lines


def _source_of(file: str, sources: Iterable[str]) -> str:
    """Return the trace's source that a profiler's file is: that with most folders in common.

    >>> _source_of("/home/me/app/src/scale.cu", ["scale.cu", "src/scale.cu", "src/other.cu"])
    'src/scale.cu'
    >>> _source_of("/usr/include/cuda_fp16.hpp", ["scale.cu"])
    '/usr/include/cuda_fp16.hpp'
    """

    def common(source: str) -> int:
        pairs = zip(reversed(_parts(file)), reversed(_parts(source)), strict=False)
        return len([*takewhile(lambda pair: pair[0] == pair[1], pairs)])

    best = max(sources, key=common, default=file)
    return best if common(best) else file


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").split("/")


def _units(first: Profile, averaged: bool) -> Iterator[tuple[LaunchProfile, int | None]]:
    """Yield each launch with its number among those of its kernel; of averages the first, with
    None.
    """
    for launch in first.launches:
        earlier = [p for p in _of_kernel(first, launch) if p.number < launch.number]
        if averaged and not earlier:
            yield launch, None
        elif not averaged:
            yield launch, len(earlier)


@dataclass(frozen=True, slots=True)
class _Side:
    """One variant's part of a table: its values, its launches, and whether it is from a file."""

    values: Values
    text: str
    is_file: bool = False
    refusal: str = ""


def base_name(kernel: str) -> str:
    """Return a kernel's name in a form common to all profilers and compilers.

    >>> base_name("void product<(int)16>(float *, int)"), base_name("product<16>")
    ('product<16>', 'product<16>')
    """
    name = re.sub(r"\((?:int|bool|unsigned int|unsigned|long)\)", "", kernel)
    name = name.removeprefix("void ")
    depth = 0
    for at, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0 and at:
            return name[:at].replace(" ", "")
    return name.replace(" ", "")


def _names(launch: LaunchProfile) -> tuple[str, ...]:
    """Return a kernel's names in profilers' files: mangled or C, with template arguments or not."""
    plain = base_name(demangled(launch.launch))
    return launch.launch.kernel, plain, plain.partition("<")[0]


def _side(variant: Variant, launch: LaunchProfile, which: int | None) -> _Side | None:
    """Return a variant's matching launch, or the kernel's average; None if it has none."""
    if isinstance(variant, Measured):
        measured = _measured(variant, launch, which)
        return _of_file(measured) if measured else None
    ours = _pick(_of_kernel(variant, launch), which)
    return _of_profile(ours) if ours else None


def _measured(file: Measured, launch: LaunchProfile, which: int | None) -> Sequence[MeasuredLaunch]:
    """Return a file's launch of the kernel with this number among them, or all of the kernel."""
    spelt = ([m for m in file.launches if base_name(m.kernel) == name] for name in _names(launch))
    return _pick(next((group for group in spelt if group), []), which)


def _pick(launches: Sequence[Launched], which: int | None) -> Sequence[Launched]:
    """Return one of the launches of a kernel, or all."""
    return launches if which is None else launches[which : which + 1]


def _of_file(measured: Sequence[MeasuredLaunch]) -> _Side:
    times = [launch.times for launch in measured]
    values = _average([launch.values for launch in measured], times)
    return _Side(values, measured[0].kernel + _averaged(sum(times)), is_file=True)


def _of_profile(ours: Sequence[LaunchProfile]) -> _Side:
    text = launch_text(ours[0].launch) + _averaged(len(ours))
    refusal = next((launch.refusal for launch in ours if launch.refusal), "")
    values = _average([launch.counters for launch in ours], [1] * len(ours))
    return _Side(values, text, refusal=refusal)


def _averaged(times: int) -> str:
    return f" (average of {times})" if times > 1 else ""


def _average(values: Sequence[Values], times: Sequence[int]) -> Values:
    """Return the mean of each value, weighted by `times` launches; a single value is kept."""
    if len(values) == 1:
        return values[0]
    means: dict[str, Value] = {}
    for name in dict.fromkeys(name for each in values for name in each):
        weighed = [
            (value, weight)
            for each, weight in zip(values, times, strict=True)
            if (value := each.get(name)) is not None
        ]
        total = sum(weight for _, weight in weighed)
        means[name] = sum(value * weight for value, weight in weighed) / total if total else None
    return means


def _of_kernel(profile: Profile, launch: LaunchProfile) -> list[LaunchProfile]:
    """Return all launches of the kernel on the device."""
    return [
        p
        for p in profile.launches
        if (p.device, p.launch.kernel) == (launch.device, launch.launch.kernel)
    ]


def _selected_counters(
    variants: Mapping[str, Variant], names: Sequence[str], by: str
) -> list[Counter]:
    """Return the counters to compare, in the order of their vocabularies."""
    if names:
        return list(find_counters(names))
    files = [v for v in variants.values() if isinstance(v, Measured)]
    tables = [
        values
        for file in files
        for launch in file.launches
        for values in (launch.lines.values() if by == "line" else [launch.values])
    ]
    metrics = {name for values in tables for name in values}
    tools = {file.vocabulary for file in files}
    every = [c for v in vocabularies() if v.name in tools for c in v.counters]
    counters = [counter for counter in every if counter.name in metrics]
    if not counters:
        some = ", ".join(sorted(metrics)[:3]) or "none"
        raise CutraceError(f"no metric of the files is one that cutrace counts: they have {some}")
    return counters


def _here(
    counters: Sequence[Counter], sides: Sequence[_Side], launch: LaunchProfile, is_by_name: bool
) -> list[Counter]:
    """Return the counters that any side has, one definition per name: the device's own.

    Counters that are zero everywhere are included only if selected by name.
    """
    here: dict[str, Counter] = {}
    for counter in counters:
        if counter.name not in here or counter.exists_on(launch.capability):
            here[counter.name] = counter
    return [
        counter
        for counter in here.values()
        for values in [[_value(counter, side) for side in sides]]
        if any(values) or (is_by_name and any(value is not None for value in values))
    ]


def _by_heading(counters: Sequence[Counter], side: _Side) -> Values:
    return {heading(counter): _value(counter, side) for counter in counters}


def _value(counter: Counter, side: _Side) -> Value:
    """Return a side's value: cutrace's are by heading, a file's by name."""
    return side.values.get(counter.name if side.is_file else heading(counter))


def _nothing(variants: Mapping[str, Variant], first: Profile) -> str:
    """Return why nothing matches."""
    ours = dict.fromkeys(base_name(demangled(p.launch)) for p in first.launches)
    files = {n: v for n, v in variants.items() if isinstance(v, Measured)}
    name, file = next(iter(files.items()))
    theirs = dict.fromkeys(base_name(launch.kernel) for launch in file.launches)
    return f"no launch matches: the trace has {', '.join(ours)}; {name} has {', '.join(theirs)}"


def _notes(variants: Mapping[str, Variant], first: Profile, without: set[str]) -> Iterator[str]:
    """Yield notes on omitted kernels, and on files measured on another architecture."""
    if without:
        yield f"not in every variant: {', '.join(sorted(without))}"
    ours = {"{}.{}".format(*p.capability) for p in first.launches}
    sources = {_parts(file)[-1]: text for file, text in first.manifest.sources.items()}
    for name, variant in variants.items():
        if isinstance(variant, Measured):
            for file in dict.fromkeys(
                file
                for launch in variant.launches
                for file, text in launch.sources.items()
                if text and sources.get(_parts(file)[-1], text).split() != text.split()
            ):
                yield f"{name} was measured with another text of {_parts(file)[-1]}"
            theirs = {launch.capability for launch in variant.launches if launch.capability}
            if theirs and not theirs & ours:
                capabilities = f"{', '.join(sorted(theirs))}, replayed as {', '.join(sorted(ours))}"
                yield f"{name} was measured on compute capability {capabilities}"
