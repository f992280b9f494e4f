"""Write a trace: `TraceWriter` for the folder and its manifest, `LaunchWriter` for the rows."""

import os
import weakref
from functools import partial
from pathlib import Path
from typing import Self

from ..base.claim import claim_scratch
from ..base.errors import CutraceError
from .address import url_of
from .launch_writer import Deduplicator
from .launch_writer import LaunchWriter as LaunchWriter
from .manifest import encode, to_json
from .manifest_builder import ManifestBuilder
from .remote import place_in, send
from .schema import Launch, Outside
from .table_file import BackgroundWriter
from .trace_folder import MANIFEST, SizeLimit, Workshop, reason, remove_folder, write_file


class TraceWriter(ManifestBuilder):
    """A trace being written; it appears under its name on `close`, complete, or not at all.

    A context manager: leaving it closes the trace, an exception inside it discards the trace, and
    so does the end of the program. An existing trace of that name is replaced; anything else there
    is refused. Raises CutraceError for that, a full disk, values that do not fit, and a trace of
    more than `max_bytes` (0: any size). With `owns_columns` the arrays of rows passed in belong to
    the writer: it reads them later, and reports errors in them later. `close` uploads a trace with
    a URL (`s3://bucket/a.cutrace`); that needs `cutrace[remote]`.
    """

    def __init__(
        self, path: str | os.PathLike[str], max_bytes: int = 0, owns_columns: bool = False
    ) -> None:
        super().__init__()
        self._owns_columns = owns_columns
        self.path = Path(path)
        self._limit = SizeLimit(str(self.path), max_bytes)
        self._url = url_of(os.fspath(path))
        self._scratch = claim_scratch() if self._url else None
        self._made = place_in(self._scratch, self._url) if self._scratch else self.path
        self._workshop = Workshop(self._made)
        self._shelf = Deduplicator(self._workshop.folder, str(self.path))
        self._open: LaunchWriter | None = None
        self._unfinished: list[str] = []
        self._background = BackgroundWriter()
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
            self._owns_columns,
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
