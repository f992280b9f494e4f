"""Import files of another tool into one trace."""

import os
from collections.abc import Sequence
from pathlib import Path

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...base.frames import require_frames
from ..schema import MACHINE_CODE, Compiler, Event, Range
from ..writer import TraceWriter
from .compose import compose
from .gathered_rows import Gathered
from .reader_interface import Copy, Head, Rows, reader_of

SOURCE = "source"
"""Name of the source file if the tool reports none."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: the trace, its counts, and its missing information, a phrase
    each."""

    path: Path
    launches: int
    instructions: int
    accesses: int
    lacks: tuple[str, ...]


def import_trace(
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    format: str = "",
    source: str | os.PathLike[str] | None = None,
    max_bytes: int = 0,
) -> Imported:
    """Read files of another tool, in order, into the trace `out`.

    `format` is the reader's name; by default it is detected per file. `source` is the file that
    line numbers refer to. Raises CutraceError for a file that no reader claims, or that is broken,
    with its line.
    """
    require_frames()
    with TraceWriter(out, max_bytes) as trace:
        name = trace.source(str(source), _text(Path(source))) if source is not None else ""
        importer = _Importer(trace, name)
        for path in map(Path, files):
            for event in reader_of(path, format).read(path):
                importer.take(event)
        importer.finish()
        if not importer.launches:
            raise CutraceError(f"{', '.join(map(str, files)) or 'no file'}: no launch to import")
    return Imported(
        Path(out),
        importer.launches,
        importer.instructions,
        importer.accesses,
        tuple(importer.lacks),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise CutraceError(f"{path}: cannot read it: {error.strerror or error}") from error


class _Importer:
    """Turns the events of readers into launches of a trace, one at a time."""

    def __init__(self, trace: TraceWriter, source: str) -> None:
        self._trace, self._source = trace, source
        self._open: Gathered | None = None
        self._arrays: list[Range] = []
        self.launches = self.instructions = self.accesses = 0
        self.lacks: dict[str, None] = {}

    def take(self, event: Copy | Head | Rows) -> None:
        """Process the next event of a reader."""
        if isinstance(event, Rows):
            if self._open is None:
                raise CutraceError(f"{event.place}: instructions before any launch")
            self._open.take(event)
            return
        self.finish()
        if isinstance(event, Head):
            self._open = Gathered(event)
        else:
            self._arrays.append((event.address, event.address + event.bytes))
            self._trace.event(Event("copy", event.bytes, "HtoD", f"{event.address:#x}"))

    def finish(self) -> None:
        """Write the open launch, if any."""
        gathered, self._open = self._open, None
        if gathered is None:
            return
        composition = compose(gathered, self._arrays, self._source, SOURCE)
        self._trace.compiler(Compiler(gathered.head.tool, target=MACHINE_CODE))
        with self._trace.launch(composition.launch) as rows:
            composition.write(rows)
        self._arrays = [(a.offset, a.offset + a.bytes) for a in composition.launch.arrays]
        self.launches += 1
        self.instructions += gathered.rows
        self.accesses += len(composition.accesses.row)
        self.lacks.update(dict.fromkeys(composition.lacks))
