"""Source places: parse `FILE:LINE` and find the instructions of a line."""

from collections.abc import Collection, Iterable
from pathlib import PurePath

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...traces.reader import LaunchTrace, Trace

NEAR = 3
"""Lines that an error message suggests."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a source file, named as in the trace; the first line is 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def read_place(text: str, trace: Trace) -> Place:
    """Parse `FILE:LINE`; the end of a path suffices if it names one source only, LINE
    if the trace has one source.

    Raises `CutraceError` for a file that the trace does not name, or a line that it does not have.
    """
    name, _, number = text.rpartition(":")
    if number.isdecimal() and not name and len(trace.manifest.sources) == 1:
        (name,) = trace.manifest.sources
    if not name or not number.isdecimal():
        example = next(iter(trace.manifest.sources), "kernel.cu")
        raise CutraceError(f"{text!r}: expected FILE:LINE, say {example}:12")
    place = Place(_find_file(name, trace), int(number))
    lines = len(trace.manifest.sources.get(place.file, "").splitlines())
    if lines and not 1 <= place.line <= lines:
        raise CutraceError(f"{text}: there is no such line; {place.file} has {lines}")
    return place


def instructions_on(launch: LaunchTrace, place: Place) -> tuple[int, ...]:
    """Return the pcs of the instructions on a line: written there, or inlined into it."""
    table = launch.instructions().select(["pc", "file", "line", "inlined_at"]).to_pylist()
    return tuple(row["pc"] for row in table if (place.file, place.line) in _places(row))


def no_access(place: Place, trace: Trace, accessed: Iterable[Collection[int]]) -> CutraceError:
    """Return the error for a line without an access; `accessed` are the pcs with one, by launch."""
    lines: set[int] = set()
    for launch, pcs in zip(trace.launches, accessed, strict=True):
        table = launch.instructions().select(["pc", "file", "line", "inlined_at"]).to_pylist()
        lines |= {
            line
            for row in table
            if row["pc"] in pcs
            for file, line in _places(row)
            if file == place.file
        }
    if not lines:
        return CutraceError(
            f"{place}: no access of the trace has a line of this file; `cutrace why TRACE` without"
            " a line shows the worst access of all"
        )
    close = sorted(sorted(lines, key=lambda line: (abs(line - place.line), line))[:NEAR])
    return CutraceError(
        f"{place}: no access to memory on this line; nearest lines with one:"
        f" {', '.join(map(str, close))}"
    )


def _places(row: dict[str, object]) -> list[tuple[str, int]]:
    """Return the lines that an instruction belongs to, innermost first."""
    chain: Iterable[dict[str, object]] = row["inlined_at"]  # type: ignore[assignment]
    return [(str(r["file"]), int(str(r["line"]))) for r in (row, *chain) if r["line"]]


def _find_file(name: str, trace: Trace) -> str:
    """Return the source with this name, or the only one whose path ends in it."""
    files = dict.fromkeys(trace.manifest.sources)
    for launch in trace.launches:
        files |= dict.fromkeys(f for f in launch.instructions()["file"].unique().to_pylist() if f)
    if name in files:
        return name
    if not files:
        raise CutraceError(
            f"{name}: the trace knows no source lines; `cutrace why TRACE` without a line shows the"
            " worst access of all"
        )
    suffix = PurePath(name).parts
    ending = [file for file in files if PurePath(file).parts[-len(suffix) :] == suffix]
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise CutraceError(f"{name}: several sources end so: {', '.join(ending)}")
    short = {PurePath(file).name: file for file in files}
    return_to = nearest(PurePath(name).name, short) or f"; there are {', '.join(sorted(short))}"
    raise CutraceError(f"{name}: no such source in the trace{return_to}")
