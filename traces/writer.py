"""Write a trace: `TraceWriter` for the folder and its manifest, `LaunchWriter` for the rows."""

import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import copy, copytree
from typing import Self

from ..base.claim import claim_scratch
from ..base.errors import CutraceError
from .address import url_of
from .launch_writer import Deduplicator
from .launch_writer import LaunchWriter as LaunchWriter
from .manifest import encode, to_json
from .remote import place_in, send
from .schema import Array, Compiler, Event, Launch, Manifest, Outside, Resources
from .table_file import BackgroundWriter, Packers
from .trace_folder import MANIFEST, SizeLimit, Workshop, reason, remove_folder, write_file


class ManifestBuilder:
    """Builds a manifest; subclasses that also take rows of launches call `_begin`."""

    def __init__(self) -> None:
        self._compilers: list[Compiler] = []
        self._events: list[Event] = []
        self._launches: list[Launch] = []
        self._sources: dict[str, str] = {}
        self._fault = ""
        self._left_out = ""
        self._names: dict[str, str] = {}

    def compiler(self, compiler: Compiler) -> None:
        """Add a compiler; equal ones are stored once."""
        if compiler not in self._compilers:
            self._compilers.append(compiler)

    def source(self, name: str, text: str) -> str:
        """Add a source text and return its key in the manifest.

        The key is `name`, or `name (2)` and so on if that name has another text already.
        """
        key, number = name, 1
        while self._sources.get(key, text) != text:
            number += 1
            key = f"{name} ({number})"
        self._sources[key] = text
        return key

    def hand_on(self, other: "ManifestBuilder") -> None:
        """Copy the compilers and sources to another manifest, which launches their kernels."""
        for compiler in self._compilers:
            other.compiler(compiler)
        for name, text in self._sources.items():
            other.source(name, text)

    def event(self, event: Event) -> None:
        """Append a copy or a set; launches append their own events."""
        self._events.append(event)

    def resources(self, launch: int, resources: tuple[Resources, ...]) -> None:
        """Set the assembler's resources of a launch's kernel, by launch number."""
        if not 0 <= launch < len(self._launches):
            raise CutraceError(f"no launch {launch}; there are {len(self._launches)}")
        self._launches[launch] = replace(self._launches[launch], resources=resources)

    def outside(self, launch: int, outsides: tuple[Outside, ...]) -> None:
        """Set the out-of-bounds accesses of a launch, by its number."""
        self._launches[launch] = replace(self._launches[launch], outside=outsides)

    def fault(self, message: str) -> None:
        """Set the message of the fault that ended the session."""
        self._fault = message

    def withdraw(self) -> None:
        """Remove the last launch, which was aborted."""
        number = len(self._launches) - 1
        self._launches.pop()
        self._events.remove(Event(kind="launch", launch=number))

    def rename(self, old: str, new: str) -> None:
        """Rename an array in all entries so far; no other array had the old name."""
        self._names[old] = new

    @property
    def manifest(self) -> Manifest:
        """Return the manifest of the entries so far."""
        return Manifest(
            compilers=tuple(self._compilers),
            events=tuple(self._with_name(event) for event in self._events),
            launches=tuple(map(_Renaming(self._names).rename, self._launches)),
            sources=self._sources,
            fault=self._fault,
            left_out=self._left_out,
        )

    def _begin(self, launch: Launch) -> int:
        """Append the next launch; return its number."""
        number = len(self._launches)
        self._launches.append(launch)
        self._events.append(Event(kind="launch", launch=number))
        return number

    def _with_name(self, event: Event) -> Event:
        new = self._names.get(event.array)
        return event if new is None else replace(event, array=new)


class _Renaming:
    """Renames arrays; launches that share a tuple of arrays still share it afterwards."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._last: tuple[tuple[Array, ...], tuple[Array, ...]] = ((), ())

    def rename(self, launch: Launch) -> Launch:
        """Return a launch with the new names."""
        arrays = self._rename_arrays(launch.arrays)
        names = (self._names.get(texture.array) for texture in launch.textures)
        textures = tuple(
            texture if name is None else replace(texture, array=name)
            for texture, name in zip(launch.textures, names, strict=True)
        )
        return replace(launch, arrays=arrays, textures=textures)

    def _rename_arrays(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        if arrays is not self._last[0]:
            names = (self._names.get(array.name) for array in arrays)
            new = tuple(
                array if name is None else replace(array, name=name)
                for array, name in zip(arrays, names, strict=True)
            )
            self._last = arrays, arrays if new == arrays else new
        return self._last[1]


class TraceWriter(ManifestBuilder):
    """A trace being written; it appears under its name on `close`, complete, or not at all.

    A context manager: leaving it closes the trace, an exception inside it discards the trace, and
    so does the end of the program. An existing trace of that name is replaced; anything else there
    is refused. Raises CutraceError for that, a full disk, values that do not fit, and a trace of
    more than `max_bytes` (0: any size). With `owns_columns` the arrays of rows passed in belong to
    the writer: it reads them later, and reports errors in them later. `close` uploads a trace with
    a URL (`s3://bucket/a.cutrace`); that needs `cutrace[remote]`. `jobs` threads compress.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        max_bytes: int = 0,
        owns_columns: bool = False,
        jobs: int = 1,
    ) -> None:
        super().__init__()
        self._owns_columns = owns_columns
        self.path = Path(path)
        self._limit = SizeLimit(str(self.path), max_bytes)
        self._url = url_of(os.fspath(path))
        self._scratch = claim_scratch() if self._url else None
        self._made = place_in(self._scratch, self._url) if self._scratch else self.path
        self._workshop = Workshop(self._made)
        self._shelf = Deduplicator(self._workshop.folder, self._limit)
        self._open: LaunchWriter | None = None
        self._unfinished: list[str] = []
        self._background = BackgroundWriter()
        self._packers = Packers(jobs)
        weakref.finalize(self, self._background.stop)

    def launch(self, launch: Launch) -> LaunchWriter:
        """Begin the next launch; return the writer of its rows, a context manager."""
        if self._open is not None:
            raise CutraceError(f"{self.path}: launch {self._open.number} is still being written")
        if not self._owns_columns:
            encode(launch, Launch, f"launch of {launch.kernel}")
        number = self._begin(launch)
        where = f"launch {number} ({launch.kernel})"
        self._unfinished.append(where)
        self._background.submit(partial(self._limit.begin, number, where, launch.blocks))
        self._open = LaunchWriter(
            self._workshop.folder, number, self._finish, self._limit, self._shelf, self._background,
            self._packers, self._owns_columns,
        )  # fmt: skip
        return self._open

    def _finish(self, whole: bool, outside: tuple[Outside, ...]) -> None:
        assert self._open is not None
        number, self._open = self._open.number, None
        if whole:
            self._unfinished.pop()
            if outside:
                self.outside(number, outside)

    def withdraw(self) -> None:
        """Remove the last launch, which did not finish."""
        super().withdraw()
        self._unfinished.pop()
        self._background.submit(partial(self._drop, len(self._launches)))

    def _drop(self, number: int) -> None:
        self._remove(number)
        self._limit.forget()

    def _remove(self, number: int) -> None:
        folder = self._workshop.folder / str(number)
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            remove_folder(folder)

    def snapshot(self, path: Path, first: int, resources: Sequence[tuple[Resources, ...]]) -> None:
        """Write a trace of the launches from `first` on, which are complete, as links to their
        files; `resources` are the assembler's, one per launch.
        """
        self._background.finish()
        part = ManifestBuilder()
        self.hand_on(part)
        path.mkdir()
        for number, answer in enumerate(resources):
            part._begin(replace(self._launches[first + number], resources=answer))
            rows = self._workshop.folder / str(first + number)
            copytree(rows.resolve(), path / str(number), copy_function=_link_or_copy)
        write_file(str(path / MANIFEST), to_json(part.manifest).encode("ascii"))

    def close(self) -> None:
        """Write the manifest and rename the trace to its name; discard it if a launch is
        unfinished.
        """
        try:
            if self._unfinished:
                raise CutraceError(
                    f"{self.path}: no trace is written, since {self._unfinished[0]} did not finish"
                )
            self._background.finish()
            self._write_manifest()
            self._workshop.publish()
            if self._url:
                send(self._made, self._url)
        finally:
            self.discard()

    def _write_manifest(self) -> None:
        text = to_json(self.manifest)
        self._limit.take(len(text))
        try:
            write_file(str(self._workshop.folder / MANIFEST), text.encode("ascii"))
        except OSError as error:
            raise CutraceError(f"{self.path}: cannot write it: {reason(error)}") from error

    def discard(self) -> None:
        """Remove the unfinished trace; no effect once it is closed."""
        if self._open is not None:
            self._open.abandon()
        self._background.stop()
        self._packers.stop()
        self._workshop.discard()
        if self._scratch:
            self._scratch.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def _link_or_copy(source: str, target: str) -> None:
    """Link a file under a second name; copy it to another file system."""
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        copy(source, target)


class BoundedWriter(TraceWriter):
    """A TraceWriter that drops the launch with which the trace would exceed `max_bytes`, and all
    later ones.

    Launches that run without being recorded are counted: `not_chosen` were filtered out,
    `without_room` exceeded the limit. After `close`, `left_out` describes them in a sentence.
    """

    def __init__(self, path: str | os.PathLike[str], max_bytes: int, jobs: int = 1) -> None:
        super().__init__(path, max_bytes, owns_columns=True, jobs=jobs)
        self._limit.spares = True
        self.not_chosen = 0
        self.without_room = 0

    @property
    def has_room(self) -> bool:
        """Return whether the next launch may be recorded, judging by the bytes written so far."""
        return self._limit.full_at is None

    @property
    def bytes(self) -> int:
        """Return the current size of the trace."""
        return self._limit.used

    @property
    def count(self) -> int:
        """Return the number of launches in the trace."""
        return len(self._launches)

    @property
    def left_out(self) -> str:
        """Return a sentence on the launches that ran without being recorded, once the trace is
        closed.
        """
        return self._left_out

    def close(self) -> None:
        """Drop the launches that exceed the limit, then close like TraceWriter."""
        if not self._unfinished:
            self._background.finish()
            self._drop_last()
            self._left_out = "; ".join(self._sentences())
        super().close()

    def _drop_last(self) -> None:
        if (first := self._limit.full_at) is None:
            return
        self.without_room += len(self._launches) - first
        for number in range(first, len(self._launches)):
            self._remove(number)
        del self._launches[first:]
        self._events = [event for event in self._events if event.launch < first]

    def _sentences(self) -> list[str]:
        sentences = []
        if self.not_chosen:
            sentences.append(f"{_launches(self.not_chosen)} run and not chosen to be recorded")
        if self.without_room:
            sentences.append(
                f"{_launches(self.without_room)} run and left out: with the first of them the trace"
                f" would be larger than the {self._limit.limit} bytes of --max-trace-size"
            )
        return sentences


def _launches(count: int) -> str:
    return f"{count} launch was" if count == 1 else f"{count} launches were"
