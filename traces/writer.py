"""Writing a trace: `TraceWriter` for the folder and its manifest, `LaunchWriter` for the rows."""

import os
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from ..errors import CutraceError
from .folder import MANIFEST, Workshop, reason
from .launch_writer import LaunchWriter as LaunchWriter
from .manifest import encode, to_json
from .room import Room
from .schema import Compiler, Event, Launch, Manifest, Resources


class TraceWriter:
    """A trace in the making; it appears under its name on `close`, whole, or not at all.

    A context manager: leaving it closes the trace, an exception inside it discards the trace, and
    so does the end of the program. An existing trace of that name is replaced; anything else there
    is refused. Raises CutraceError for that, a full disk, values that do not fit, and a trace of
    more than `max_bytes` (0: any size).
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int = 0) -> None:
        self.path = Path(path)
        self._room = Room(str(self.path), max_bytes)
        self._workshop = Workshop(self.path)
        self._compilers: list[Compiler] = []
        self._events: list[Event] = []
        self._launches: list[Launch] = []
        self._sources: dict[str, str] = {}
        self._open: LaunchWriter | None = None
        self._unfinished = ""

    def compiler(self, compiler: Compiler) -> None:
        """Keep who compiled; the same compiler is kept once."""
        if compiler not in self._compilers:
            self._compilers.append(compiler)

    def source(self, name: str, text: str) -> str:
        """Keep a source text and return its key in the manifest.

        The key is `name`, or `name (2)` and so on where that name has another text already.
        """
        key, number = name, 1
        while self._sources.get(key, text) != text:
            number += 1
            key = f"{name} ({number})"
        self._sources[key] = text
        return key

    def event(self, event: Event) -> None:
        """Append a copy or a set; launches append theirs themselves."""
        self._events.append(event)

    def launch(self, launch: Launch) -> LaunchWriter:
        """Begin the next launch; the writer of its rows is a context manager."""
        if self._open is not None:
            raise CutraceError(f"{self.path}: launch {self._open.number} is still being written")
        encode(launch, Launch, f"launch of {launch.kernel}")
        number = len(self._launches)
        self._unfinished = f"launch {number} ({launch.kernel}) did not finish"
        self._launches.append(launch)
        self._events.append(Event(kind="launch", launch=number))
        self._room.begin(f"launch {number} ({launch.kernel})", launch.blocks)
        self._open = LaunchWriter(self._workshop.folder, number, self._finish, self._room)
        return self._open

    def _finish(self, whole: bool) -> None:
        self._open = None
        if whole:
            self._unfinished = ""

    def resources(self, launch: int, resources: tuple[Resources, ...]) -> None:
        """Set what the assembler made of the kernel of a launch, by its number."""
        if not 0 <= launch < len(self._launches):
            raise CutraceError(f"{self.path}: no launch {launch}; there are {len(self._launches)}")
        self._launches[launch] = replace(self._launches[launch], resources=resources)

    def close(self) -> None:
        """Write the manifest and give the trace its name; discard it if a launch is unfinished."""
        try:
            if self._unfinished:
                raise CutraceError(f"{self.path}: no trace is written, since {self._unfinished}")
            self._write_manifest()
            self._workshop.publish()
        finally:
            self.discard()

    def _write_manifest(self) -> None:
        manifest = Manifest(
            compilers=tuple(self._compilers),
            events=tuple(self._events),
            launches=tuple(self._launches),
            sources=self._sources,
        )
        text = to_json(manifest)
        self._room.take(len(text))
        try:
            (self._workshop.folder / MANIFEST).write_bytes(text.encode("ascii"))
        except OSError as error:
            raise CutraceError(f"{self.path}: cannot write it: {reason(error)}") from error

    def discard(self) -> None:
        """Leave nothing; does nothing once the trace is closed."""
        if self._open is not None:
            self._open.abandon()
        self._workshop.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()
