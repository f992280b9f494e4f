"""`cutrace judge`: one verdict on a candidate: faster, slower, same or broken.

Both variants are recorded and counted alike. What a source came to is kept by its content, so that
of a loop of edits only the candidate runs: not what a limit of time has stopped, since that depends
on the machine.
"""

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..base.cache import key_of, package_digest
from ..base.claim import scratch_folder
from ..base.config import bytes_of
from ..base.errors import CutraceError, KernelFault, describe_error
from ..base.scope import scope
from ..models.replay.interface.options import ReplayOptions
from .options.recording import SOURCES, record_source
from .options.replay import REPLAY, with_devices
from .options.selection import READING, Reading
from .options.verb import Line, ProgramWords, Typed, argument, shown, value, verb
from .running.program import command_of
from .running.resolve_trace import open_trace
from .running.stop import Stop

if TYPE_CHECKING:
    from ..analyzer.comparison.judgement import Judgement, Side, Values

CHECKED_INSTRUCTIONS = 1 << 20
"""Warp instructions up to which loads of bytes that nobody wrote are looked for: that takes the
interpreter, 0.2 s for so many."""
FORMATS = ("text", "json")
MEMORY = "8G"


def _check_format(name: str) -> None:
    if name not in FORMATS:
        raise CutraceError(f"no format {name!r}; expected {' or '.join(FORMATS)}")


def _read_expected(words: Sequence[str]) -> dict[str, Path]:
    """Return the file of each array of `NAME=FILE.npy`, or of `NAME.npy`."""
    parts = [(word, *word.partition("=")) for word in words]
    return {
        name if equals else Path(word).stem: Path(path if equals else word)
        for word, name, equals, path in parts
    }


def _read_sizes(words: Sequence[str]) -> dict[str, Any]:
    from .running.problem import read_sizes

    return read_sizes(words)


@verb(
    "Compare",
    "cutrace judge scale.cu fixed.cu",
    "cutrace judge scale.cu fixed.cu --format json",
    "cutrace judge 19_ReLU.py solution.py --size batch_size=16",
    'cutrace judge a.cu b.cu --launch "k<<<4, 256>>>(out:f32[1024])" --expect out.npy',
)
def judge(
    before: Annotated[
        str | Path, argument("The reference: a source, trace or program"), Typed(Path)
    ],
    after: Annotated[
        str | Path,
        argument("The candidate; both get the arguments behind --", "AFTER [-- ARGUMENTS]"),
        Typed(Path),
    ],
    *,
    expect: Annotated[
        Mapping[str, Any] | None,
        value(
            "Compare an array of the candidate with these values, not with the reference's.",
            "[ARRAY=]FILE.npy",
        ),
        Typed(list[str] | None, _read_expected),
    ] = None,
    rtol: Annotated[
        float | None, value("Relative error of floats (default: half their digits).", "R")
    ] = None,
    atol: Annotated[
        float | None, value("Absolute error (default: 100 units in the last place).", "A")
    ] = None,
    seconds: Annotated[
        float, value("Stop a variant after this processor time.", "S", min=0.1)
    ] = 60.0,
    size: Annotated[
        Mapping[str, Any] | None,
        value("Of a problem: another value of a constant, to make it smaller.", "NAME=VALUE"),
        Typed(list[str] | None, _read_sizes),
    ] = None,
    memory: Annotated[str, value("Of a problem: the memory of a solution.", "BYTES")] = MEMORY,
    program: ProgramWords = None,
    replay: ReplayOptions = REPLAY,
    recording: Reading = READING,
    **options: Any,
) -> "Judgement":
    """Judge a candidate: does it work, are its results the same, is it faster?

    The reference may be a problem of KernelBench, GPU MODE or LeetGPU, the candidate a solution.

    The exit status is 0 for faster, same and correct, 1 for slower and broken, 2 without a verdict.

    In Python `before` and `after` are sources or traces; with `program`, arguments of a program
    (`()` for none), programs and their sources. `launch` are launch lines for both; without any,
    sources run those of their comments. All arrays that a kernel writes are compared, or those of
    `expect`: values, or files of numpy.save, by the array's name. Floats agree within `rtol` and
    `atol` (by default half of the type's digits), other types exactly. A variant is stopped after
    `seconds` of processor time in the main thread; elsewhere only `max_instructions` stops it.
    `options` are those of `analyze`, with one device, and of a recording.

    A candidate that fails in any way gives a judgement, `broken`; CutraceError is for a reference
    that fails, files that do not exist and unknown devices.
    """
    from ..analyzer.comparison.judgement import Tolerance, compare_outputs, judge_sides
    from .running.problem import Problem, kind_of

    counting = with_devices(replay)
    if len(counting.devices) != 1:
        raise CutraceError(f"judge takes one device, got {', '.join(counting.devices)}")
    expected = {name: _read_values(name, values) for name, values in (expect or {}).items()}
    tolerance = Tolerance(*(_checked(n, v) for n, v in (("rtol", rtol), ("atol", atol))))
    names = _names(Path(before), Path(after))
    for path in (Path(before), Path(after)):
        if not path.exists():
            raise CutraceError(f"{path}: there is no such file")
    if kind_of(Path(before)):
        if expected:
            raise CutraceError("--expect: a problem's reference has the expected values")
        judge_problem = Problem(
            *(Path(before), Path(after), size or {}, tolerance, seconds),
            *(bytes_of(memory, "memory", 1 << 28), counting, recording),
        )
        return judge_problem.verdict(names)
    if size or memory != MEMORY:
        option = "--size" if size else "--memory"
        raise CutraceError(f"{option} is for a problem of KernelBench, GPU MODE or LeetGPU")
    maker = _SideMaker(recording, program, counting, seconds)
    reference = maker.make(names[0], Path(before), None)
    if reference.error:
        raise _of_reference(names[0], reference)
    candidate = maker.make(names[1], Path(after), reference)
    outputs = compare_outputs(reference, candidate, expected, tolerance)
    notes = tuple(_notes(reference, candidate))
    return judge_sides(reference, candidate, counting.devices[0], outputs, notes)


@shown(judge)
def _show(
    answer: "Judgement",
    line: Line,
    format: Annotated[
        str, value("How to print it.", "|".join(FORMATS), "--format"), Typed(check=_check_format)
    ] = "text",
) -> int:
    from ..base.sanitize import sanitize

    text = answer.json() if format == "json" else f"{answer}\n"
    sys.stdout.write(sanitize(text))
    return answer.exit_status


def _read_values(name: str, values: Any) -> "Values":
    """Return expected values: an array, or those of a file."""
    import numpy as np

    if not isinstance(values, str | Path):
        return np.asarray(values)
    try:
        loaded = np.load(values, allow_pickle=False)
    except FileNotFoundError:
        raise CutraceError(f"{values}: there is no such file") from None
    except (OSError, ValueError, EOFError) as problem:
        reason = str(problem).partition(". ")[0].rstrip(".")  # then comes advice to unpickle it
        raise CutraceError(f"{values}: expected an array saved by numpy.save: {reason}") from None
    if not isinstance(loaded, np.ndarray):
        raise CutraceError(f"{values}: expected one array saved by numpy.save")
    return loaded


def _checked(name: str, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise CutraceError(f"{name} is {value}; expected 0 or more")
    return value


def _names(before: Path, after: Path) -> tuple[str, str]:
    """Return the variants' names: their stems if these differ."""
    if before.stem != after.stem:
        return before.stem, after.stem
    return "before", "after"


def _of_reference(name: str, side: "Side") -> CutraceError:
    assert side.error
    message = f"the reference {name} fails: {side.error['message']}"
    return CutraceError(message, str(side.error["kind"]))


def _notes(before: "Side", after: "Side") -> Iterator[str]:
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

    def make(self, name: str, path: Path, reference: "Side | None") -> "Side":
        """Return the facts of a variant; of a candidate, its `reference` is known."""
        from ..analyzer.comparison.side import SIDES, instructions

        is_small = reference is None or instructions(reference) <= CHECKED_INSTRUCTIONS
        checks = is_small and (reference is None or bool(reference.initialized))
        key = self._key(path, checks, reference is None)
        side, _ = SIDES.get(key, lambda: self._make(path, checks, reference))
        return replace(side, name=name)

    def _make(self, path: Path, checks: bool, reference: "Side | None") -> "tuple[Side, bool]":
        """Return the facts of a variant, and whether the limit of time stopped it."""
        from ..analyzer.comparison.side import instructions

        side, is_stopped = self._run(path, checks and reference is not None)
        if reference is None and not side.error and instructions(side) <= CHECKED_INSTRUCTIONS:
            side = replace(side, initialized=_initialized(self._run(path, True)[0]))
        elif reference and not checks and {*side.unset} - {*reference.unset}:
            checked, is_over = self._run(path, True)
            side = side if is_over else checked
        return side, is_stopped

    def _run(self, path: Path, checks: bool) -> "tuple[Side, bool]":
        """Return the facts of a run, and whether the limit of time stopped it."""
        from ..analyzer.comparison.judgement import Side

        stop = Stop(self._seconds)
        try:
            with stop, scratch_folder() as folder:
                return self._count(path, folder, checks), False
        except KernelFault as fault:
            return Side("", error=describe_error(fault)), stop.is_over
        except CutraceError as problem:
            error = describe_error(problem)
            kind = "launch" if error["kind"] == "request" else error["kind"]
            return Side("", error={**error, "kind": kind}), False

    def _count(self, path: Path, folder: Path, checks: bool) -> "Side":
        from ..analyzer.comparison.side import read_side
        from ..traces.reader import read_trace

        if path.suffix in SOURCES and self._program is None and not command_of([path], None):
            values: dict[str, Values] = {}
            inputs: dict[str, list[str]] = {}
            recording = replace(
                self._recording.for_source,
                final_values=values,
                inputs=inputs,
                check_uninitialized=checks,
            )
            with redirect_stdout(sys.stderr):
                out = record_source(path, folder / f"{path.stem}.cutrace", recording)
            selection = self._recording.select(read_trace(out))
            facts = read_side(selection, self._options, values, checks)
            return replace(facts, inputs=inputs)
        recording, options = self._recording, self._options
        with scope():
            trace = open_trace(path, recording, options, self._program, must_succeed=True)
            return read_side(recording.select(trace), options, None, False)

    def _key(self, path: Path, checks: bool, is_reference: bool) -> str | None:
        """Return a key over all that a source's facts depend on; None of other inputs."""
        if path.suffix not in (".cu", ".ptx") or self._program is not None:
            return None
        from ..models.replay.device.device import load_device
        from ..tracer.front.source import read_options
        from ..tracer.front.standin_headers import local_files

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
    return re.findall(r"=\s*\"?([^\",()]+\.npy)", "\n".join((text, *recording.launch)))


def _bytes_of(name: str, folder: Path) -> list[bytes]:
    """Return the contents of a file, relative to the source or to the working folder."""
    return [path.read_bytes() for path in (folder / name, Path(name)) if path.is_file()]


def _initialized(checked: "Side") -> bool | None:
    """Return whether a checked run loaded written bytes alone; None if it ended otherwise."""
    if not checked.error:
        return True
    return False if checked.error["cause"] == "uninitialized" else None
