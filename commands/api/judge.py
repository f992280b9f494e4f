"""`cutrace.judge`: one verdict on a candidate against a reference.

Both are recorded and counted alike. What a source came to is kept by its content, so that of a loop
of edits only the candidate runs: not what a limit of time has stopped, since that depends on the
machine.
"""

import io
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, fields, replace
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...analyzer.advice.advise import advise
from ...analyzer.comparison.difference import estimated_range
from ...analyzer.comparison.judgement import (
    Judgement,
    Side,
    Tolerance,
    Values,
    compare_outputs,
    judge_sides,
)
from ...analyzer.evidence.evidence import Finding
from ...analyzer.launch_profile import LaunchProfile
from ...analyzer.profile import count
from ...base.cache import keep, key_of, load, package_digest
from ...base.claim import scratch_folder
from ...base.errors import CutraceError, KernelFault, describe_error, place_of
from ...models.analyses.race import find_races
from ...models.replay.device.device import load_device
from ...models.replay.interface.options import ReplayOptions
from ...traces.out_of_bounds import outside_text
from ...traces.reader import Trace, read_trace
from ..options.recording import SOURCES, record_source
from ..options.replay import with_devices
from ..options.selection import Reading
from ..running.program import script_command
from ..running.resolve_trace import resolve_trace

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace

SECONDS = 60
"""The most processor time of a variant, unless the caller says otherwise."""
CHECKED_INSTRUCTIONS = 1 << 20
"""Warp instructions up to which loads of bytes that nobody wrote are looked for: that takes the
interpreter, 0.2 s for so many."""
INSTRUCTIONS = "warp_instructions"
KIND, MOST_BYTES = "judged", 1 << 28
"""The kind of cache entry, and the most bytes of them."""


def judge(
    before: str | Path,
    after: str | Path,
    *,
    expect: Mapping[str, Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    launch: Sequence[str] = (),
    seconds: float = SECONDS,
    recording: Reading | None = None,
    program: tuple[str, ...] | None = None,
    **replay: Any,
) -> Judgement:
    """Compare a candidate with a reference: does it work, are its results the same, is it faster?

    Both are sources or traces; with `program`, arguments of a program (`()` for none), programs and
    their sources. `launch` are launch lines for both; without any, sources run those of their
    comments. All arrays that a kernel writes are compared, or those of `expect`: values, or files
    of numpy.save, by the array's name. Floats agree within `rtol` and `atol` (by default half of
    the type's digits), other types exactly. A variant is stopped after `seconds` of processor time
    in the main thread; elsewhere only `max_instructions` of `recording` stops it. `replay` are
    options of `analyze`, with one device.

    A candidate that fails in any way gives a judgement, `broken`; CutraceError is for a reference
    that fails, files that do not exist and unknown devices.
    """
    options = with_devices(ReplayOptions(**replay))
    if len(options.devices) != 1:
        raise CutraceError(f"judge takes one device, got {', '.join(options.devices)}")
    expected = {name: _read_values(name, values) for name, values in (expect or {}).items()}
    tolerance = Tolerance(*(_checked(n, v) for n, v in (("rtol", rtol), ("atol", atol))))
    recording = recording or Reading()
    recording = replace(recording, launch=(*recording.launch, *launch))
    names = _names(Path(before), Path(after))
    for path in (Path(before), Path(after)):
        if not path.exists():
            raise CutraceError(f"{path}: there is no such file")
    maker = _SideMaker(recording, program, options, seconds)
    reference = maker.make(names[0], Path(before), None)
    if reference.error:
        raise _of_reference(names[0], reference)
    candidate = maker.make(names[1], Path(after), reference)
    outputs = compare_outputs(reference, candidate, expected, tolerance)
    notes = tuple(_notes(reference, candidate))
    return judge_sides(reference, candidate, options.devices[0], outputs, notes)


def _read_values(name: str, values: Any) -> Values:
    """Return expected values: an array, or those of a file."""
    if not isinstance(values, str | Path):
        return np.asarray(values)
    try:
        loaded = np.load(values, allow_pickle=False)
    except FileNotFoundError:
        raise CutraceError(f"{values}: there is no such file") from None
    except (OSError, ValueError, EOFError) as problem:
        raise CutraceError(f"{values}: expected an array saved by numpy.save: {problem}") from None
    if not isinstance(loaded, np.ndarray):
        raise CutraceError(f"{values}: expected one array saved by numpy.save")
    return loaded


def _checked(name: str, value: float | None) -> float | None:
    if value is not None and not (np.isfinite(value) and value >= 0):
        raise CutraceError(f"{name} is {value}; expected 0 or more")
    return value


def _names(before: Path, after: Path) -> tuple[str, str]:
    """Return the variants' names: their stems if these differ."""
    if before.stem != after.stem:
        return before.stem, after.stem
    return "before", "after"


def _of_reference(name: str, side: Side) -> CutraceError:
    assert side.error
    message = f"the reference {name} fails: {side.error['message']}"
    return CutraceError(message, str(side.error["kind"]))


def _notes(before: Side, after: Side) -> Iterator[str]:
    if before.races:
        yield f"{before.name} has {len(before.races)} data races: {before.races[0]['message']}"
    if not after.error:
        yield "races in global memory are not looked for"
        if not after.initialized:
            yield "loads of bytes that nobody wrote were not looked for"
    for side in (before, after):
        yield from (f"{side.name}: races not checked: {text}" for text in side.races_unchecked)


FOLDERS = ("base", "jit", "tracer", "traces", "models", "analyzer", "commands")
"""cutrace's own code: what a variant comes to depends on all of it."""


class _SideMaker:
    """Runs and counts variants, each with the same options, or finds what they came to."""

    def __init__(
        self,
        recording: Reading,
        program: tuple[str, ...] | None,
        options: ReplayOptions,
        seconds: float,
    ) -> None:
        self._recording, self._program = recording, program
        self._options, self._seconds = options, seconds

    def make(self, name: str, path: Path, reference: Side | None) -> Side:
        """Return the facts of a variant; of a candidate, its `reference` is known."""
        is_small = reference is None or _instructions(reference) <= CHECKED_INSTRUCTIONS
        checks = is_small and (reference is None or bool(reference.initialized))
        key = self._key(path, checks, reference is None)
        if key and (data := load(KIND, key)) is not None:
            return replace(_unpack(data), name=name)
        side, is_stopped = self._run(path, checks and reference is not None)
        if reference is None and not side.error and _instructions(side) <= CHECKED_INSTRUCTIONS:
            side = replace(side, initialized=_initialized(self._run(path, True)[0]))
        elif reference and not checks and {*side.unset} - {*reference.unset}:
            checked, is_over = self._run(path, True)
            side = side if is_over else checked
        if key and not is_stopped:
            keep(KIND, key, _pack(side), MOST_BYTES)
        return replace(side, name=name)

    def _run(self, path: Path, checks: bool) -> tuple[Side, bool]:
        """Return the facts of a run, and whether the limit of time stopped it."""
        stop = _Stop(self._seconds)
        try:
            with stop, scratch_folder() as folder:
                return self._count(path, folder, checks), False
        except KernelFault as fault:
            return Side("", error=describe_error(fault)), stop.is_over
        except CutraceError as problem:
            error = describe_error(problem)
            kind = "launch" if error["kind"] == "request" else error["kind"]
            return Side("", error={**error, "kind": kind}), False

    def _count(self, path: Path, folder: Path, checks: bool) -> Side:
        if path.suffix in SOURCES and self._program is None and not script_command([path], None):
            values: dict[str, Values] = {}
            inputs: dict[str, list[str]] = {}
            recording = replace(
                self._recording.for_source,
                final_values=values,
                inputs=inputs,
                check_uninitialized=checks,
            )
            with redirect_stdout(sys.stderr):
                out = record_source(path, folder / "judged.cutrace", recording)
            selection = self._recording.select(read_trace(out))
            facts = _facts(selection, self._options, values, checks)
            return replace(facts, inputs=inputs)
        recording, options = self._recording, self._options
        with resolve_trace(path, self._program, recording, options, must_succeed=True) as trace:
            selection = self._recording.select(read_trace(trace))
            return _facts(selection, self._options, None, False)

    def _key(self, path: Path, checks: bool, is_reference: bool) -> str | None:
        """Return a key over all that a source's facts depend on; None of other inputs."""
        if path.suffix not in (".cu", ".ptx") or self._program is not None:
            return None
        from ...tracer.front.source import read_options
        from ...tracer.front.standin_headers import local_files

        options = self._recording.compiler_options
        data = path.read_bytes()
        text = data.decode("utf-8", "replace")
        folders = (str(path.parent), *read_options(options).includes)
        headers = local_files(str(path), text, folders)
        arrays = [(n, _bytes_of(n, path.parent)) for n in _array_files(text, self._recording)]
        device = load_device(self._options.devices[0], self._options.set)
        if device.has_foreign_models:
            return None
        shape = repr((self._recording, self._options.of_a_device, device, checks, is_reference))
        about = (str(path), repr(sorted(headers.items())), repr(arrays), shape)
        return key_of(package_digest(*FOLDERS), data, *about)


def _array_files(text: str, recording: Reading) -> list[str]:
    """Return the files whose values launch lines name."""
    import re

    return re.findall(r"=\s*\"?([^\",()]+\.npy)", "\n".join((text, *recording.launch)))


def _bytes_of(name: str, folder: Path) -> list[bytes]:
    """Return the contents of a file, relative to the source or to the working folder."""
    return [path.read_bytes() for path in (folder / name, Path(name)) if path.is_file()]


def _initialized(checked: Side) -> bool | None:
    """Return whether a checked run loaded written bytes alone; None if it ended otherwise."""
    if not checked.error:
        return True
    return False if checked.error["cause"] == "uninitialized" else None


def _instructions(side: Side) -> int:
    return side.costs.get(INSTRUCTIONS, 0)


def _facts(
    trace: Trace, options: ReplayOptions, values: dict[str, Values] | None, checked: bool
) -> Side:
    """Return the facts of a trace that was recorded whole; raise its fault, if it has one."""
    if trace.manifest.fault:
        raise KernelFault(trace.manifest.fault)
    profile = count(trace, options)
    launches = profile.launches
    checks = [find_races(launch) for launch in _distinct(trace)]
    bounds = [launch.bounds[0] for launch in launches if launch.bounds]
    longest = max(bounds, key=lambda bound: bound.ns, default=None)
    from ...analyzer.text.launch_text import launch_text

    return Side(
        "",
        launches=tuple(launch_text(launch.launch) for launch in launches),
        refusal=next((launch.refusal for launch in launches if launch.refusal), ""),
        races=[_race(race) for check in checks for race in check.races],
        races_unchecked=[*dict.fromkeys(check.refusal for check in checks if check.refusal)],
        outside=[*_outside(trace)],
        initialized=True if checked else None,
        estimate=estimated_range(launches),
        bound_ns=sum(bound.ns for bound in bounds) if len(bounds) == len(launches) else None,
        limited_by=longest.resource if longest else "",
        costs=_costs(launches),
        findings=[*_findings(trace, profile, options)],
        arrays=values,
        written=tuple(sorted(_reached(launches, WRITES))),
        loaded=tuple(sorted(_reached(launches, (*LOADS, *ATOMICS)))),
        unset=tuple(sorted(_reached(launches, LOADS) - _set_by_host(trace))),
    )


def _distinct(trace: Trace) -> "Iterator[LaunchTrace]":
    """Yield one of each group of equal launches."""
    from ...analyzer.profile import first_alike

    for index, first in enumerate(first_alike(trace.launches)):
        if index == first:
            yield trace.launches[index]


def _race(race: Any) -> dict[str, Any]:
    one, other = race.first, race.second
    where = f"`{race.variable}`" if race.variable else "shared memory"
    place, second = f"{one.file}:{one.line}", f"{other.file}:{other.line}"
    if place == second:
        places = f"{place} ({one.act}) with itself ({other.act})"
    else:
        places = f"{place} ({one.act}) and {second} ({other.act})"
    return {
        **{"file": one.file, "line": one.line, "access": one.act},
        **{"other_file": other.file, "other_line": other.line, "other_access": other.act},
        **{"array": race.variable, "element": race.element, "pairs": race.pairs},
        "message": f"race at {where}, element {race.element}: {places}, no barrier between",
    }


def _outside(trace: Trace) -> Iterator[dict[str, Any]]:
    for launch in _distinct(trace):
        if launch.launch.outside:
            for _, message in outside_text(launch.launch, launch.instructions()):
                place = place_of(message) or (None, None)
                yield {"file": place[0], "line": place[1], "message": message}


_COUNTERS = {
    "global_transactions": ("global_transactions",),
    "shared_wavefronts": ("shared_wavefronts",),
    "dram_bytes": ("dram_bytes_read", "dram_bytes_written"),
}
"""The counters of each count but the first."""
ATOMICS = ("global_atomic", "global_reduction")
WRITES = ("global_store", *ATOMICS)
LOADS = ("global_load", "texture_load")


def _costs(launches: Sequence[LaunchProfile]) -> dict[str, int]:
    instructions = (int(launch.raw.counts["instructions"].sum()) for launch in launches)
    costs = {INSTRUCTIONS: sum(instructions)}
    for name, counters in _COUNTERS.items():
        values = [launch.counters[counter] for launch in launches for counter in counters]
        if None not in values:
            costs[name] = int(sum(value or 0 for value in values))
    return costs


def _set_by_host(trace: Trace) -> set[str]:
    """Return the arrays that the host has filled or copied to."""
    events = trace.manifest.events
    return {e.array for e in events if e.kind == "set" or e.direction in ("HtoD", "DtoD")}


def _reached(launches: Sequence[LaunchProfile], kinds: tuple[str, ...]) -> set[str]:
    """Return the arrays that kernels access in one of some ways."""
    names: set[str] = set()
    for launch in launches:
        for table in (launch.raw.counts, launch.mixed):
            for name in table.columns:
                if name.startswith(kinds) and name.endswith("_requests"):
                    names |= set(table.filter(table[name] > 0)["array"].to_list())
    return names - {""}


def _findings(trace: Trace, profile: Any, options: ReplayOptions) -> Iterator[dict[str, Any]]:
    """Yield the advice on each kernel's first launch."""
    seen: set[tuple[object, ...]] = set()
    first = {launch.launch.kernel: launch for launch in reversed(profile.launches)}
    chosen = replace(profile, launches=tuple(sorted(first.values(), key=lambda one: one.number)))
    for launch, findings in advise(trace, chosen, options):
        for finding in findings:
            place = place_of(f"{finding.place}:") or (None, None)
            mark = (finding.rule, finding.place, finding.what)
            if mark in seen:
                continue
            seen.add(mark)
            yield {
                **{"rule": finding.rule, "file": place[0], "line": place[1]},
                **{"launch": launch.number, "what": finding.what, "change": finding.change},
                **{"share": finding.share, "gain_ns": finding.gain},
                **{"estimate_ns": finding.estimate, "saved_ns": _saved(finding, launch)},
                "access": finding.access,
            }


def _saved(finding: Finding, launch: LaunchProfile) -> float | None:
    """Return what a change saves of the estimate; None without an estimate."""
    if launch.estimate and finding.estimate is not None:
        return max(0.0, launch.estimate.ns - finding.estimate)
    return None


def _pack(side: Side) -> bytes:
    """Return a side as bytes: its facts as JSON, then its arrays."""
    facts = {k: v for k, v in asdict(replace(side, arrays=None)).items() if k != "arrays"}
    head = json.dumps({**facts, "has_arrays": side.arrays is not None}).encode()
    tail = io.BytesIO()
    for name, values in (side.arrays or {}).items():
        np.save(tail, np.frombuffer(name.encode(), np.uint8))
        np.save(tail, values)
    return len(head).to_bytes(8, "little") + head + tail.getvalue()


def _unpack(data: bytes) -> Side:
    size = int.from_bytes(data[:8], "little")
    facts, stream = json.loads(data[8 : 8 + size]), io.BytesIO(data[8 + size :])
    arrays: dict[str, Values] | None = {} if facts.pop("has_arrays") else None
    while arrays is not None and stream.tell() < len(data) - 8 - size:
        name = np.load(stream).tobytes().decode()
        arrays[name] = np.load(stream)
    ends = facts["estimate"]
    known = {each.name for each in fields(Side)}
    named = {key: value for key, value in facts.items() if key in known}
    return Side(**{**named, "estimate": tuple(ends) if ends else None, "arrays": arrays})


class _Stop:
    """Ends its body with a KernelFault after some seconds of processor time.

    Only in the main thread of a Unix process. Other processes of the machine do not count.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self.is_over = seconds, False
        self._before: Callable[[int, FrameType | None], Any] | int | None = None

    def __enter__(self) -> None:
        if hasattr(signal, "setitimer") and current_thread() is main_thread():
            self._before = signal.signal(signal.SIGPROF, self._end)
            signal.setitimer(signal.ITIMER_PROF, self._seconds)

    def __exit__(self, *problem: object) -> None:
        if self._before is not None:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, self._before)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.is_over = True
        text = f"it took longer than {self._seconds:g} s of processor time, the limit (--seconds)"
        raise KernelFault(text, "endless")
