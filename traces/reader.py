"""Read a trace: `read_trace` opens one, a `LaunchTrace` returns the tables of a launch.

Tables are read in record batches: memory holds one batch at a time, and everything in a file is
validated before use.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..base import progress
from ..base.claim import is_scratch
from ..base.dataclass import dataclass
from ..base.errors import CutraceError, nearest
from .address import url_of
from .archive import PackedPath, is_archive
from .check_launch import first_finding
from .manifest import Unread
from .pattern_store import Dictionary, Patterns, StoredPatterns
from .remote import fetch, origin
from .schema import LANES, TABLES, Launch, Manifest
from .table_reader import (
    Check,
    TableReader,
    check_instructions,
    check_paths,
    check_whole,
    read_once,
)
from .trace_folder import MANIFEST, Stamp, check_same, reason, stamp_of

if TYPE_CHECKING:
    import polars as pl


MANIFEST_BYTES = 1 << 28
"""Maximum bytes of a manifest; a larger one is refused."""

ADDRESSES = pa.schema(
    [
        pa.field("block", pa.uint64(), False),
        pa.field("warp", pa.uint16(), False),
        pa.field("step", pa.uint32(), False),
        pa.field("part", pa.uint8(), False),
        pa.field("pc", pa.uint32(), False),
        pa.field("space", pa.uint8(), False),
        pa.field("active", pa.uint32(), False),
        pa.field("addresses", pa.list_(pa.uint64(), LANES), False),
    ]
)
"""The plain table of accesses: 32 addresses per row, null for inactive lanes."""

_PLAIN_ROWS = 1 << 16
_TRIES = 8
"""Number of attempts to open a trace that is replaced meanwhile."""


@dataclass(frozen=True)
class LaunchTrace:
    """The tables of launch `number`. All methods raise CutraceError for a damaged file.

    `stamps` identify the table files, to detect a trace that is re-recorded meanwhile. `what_if`
    describes a hypothetical change of the recorded launch, if any.
    """

    number: int
    launch: Launch = field(repr=False)
    folder: Path
    stamps: Mapping[str, Stamp] = field(repr=False, compare=False)
    what_if: tuple[str, ...] = ()

    @cached_property
    def place(self) -> Path:
        """Return the folder of its tables: another launch's, if that one has the same."""
        return self.folder.resolve() if self.folder.is_symlink() else self.folder.absolute()

    def instructions(self) -> pa.Table:
        """Return all instructions of the kernel, in order of pc."""
        return self._instructions

    def check_unchanged(self) -> None:
        """Raise CutraceError if a table was replaced since the trace was opened."""
        for name, stamp in self.stamps.items():
            check_same(self.folder / f"{name}.arrow", stamp)

    def forget(self) -> None:
        """Drop all cached tables; they are read again on demand."""
        vars(self).pop("_instructions", None)
        vars(self).pop("_readers", None)

    def __getstate__(self) -> dict[str, object]:
        """Return the pickled state, without open readers."""
        return {name: value for name, value in vars(self).items() if name != "_readers"}

    def paths(self) -> pa.Table:
        """Return the paths that `control` refers to."""
        return self._table("paths")

    def patterns(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int32]]:
        """Return active masks (n,) uint32 and offsets from the base (n, 32) int32, bytes."""
        table = self._table("patterns").combine_chunks()
        offsets = _flat(table["offsets"]).reshape(-1, LANES)
        return table["active"].to_numpy(), offsets

    def pattern_store(self) -> Patterns:
        """Return the patterns for access by identifier, in bounded memory."""
        return StoredPatterns(self._reader("patterns"))

    def path_store(self) -> Dictionary:
        """Return the paths that `control` refers to, for access by identifier in bounded memory."""
        return Dictionary(self._reader("paths"))

    def control_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the control flow of warps, in record batches of schema CONTROL."""
        return self.batches("control")

    def access_batches(self, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield memory accesses, in record batches of schema ACCESSES or some of its columns."""
        for batch in self.batches("accesses", columns):
            yield batch
            progress.read_rows(batch.num_rows)

    @cached_property
    def block_ranges(self) -> npt.NDArray[np.int64]:
        """Return (batches, 2): the first and the last block of each batch of memory accesses; 0 and
        -1 for an empty batch.
        """
        read = self.batches("accesses", ("block",))
        batches = (batch["block"].to_numpy() for batch in read)
        ranges = [(block.min(), block.max()) if len(block) else (0, -1) for block in batches]
        return np.array(ranges, np.int64).reshape(-1, 2)

    def access_batches_of(
        self, blocks: npt.NDArray[np.int64], columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield some columns of those batches of memory accesses that may contain any of the
        ascending `blocks`, by their block ranges; other batches are not read.
        """
        reader, (low, high) = self._reader("accesses"), self.block_ranges.T
        has_some = np.searchsorted(blocks, high, "right") > np.searchsorted(blocks, low)
        for piece, is_asked in zip(reader.pieces, has_some.tolist(), strict=True):
            if is_asked:
                batch = reader.read(piece, columns)
                yield _checked(batch, self._limits["accesses"], reader.path)
                progress.read_rows(batch.num_rows)

    def lanes_on_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield lanes on by (block, pc), in record batches of schema LANES_ON."""
        return self.batches("lanes_on")

    def texel_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield texture samples, in record batches of schema TEXELS."""
        return self.batches("texels")

    def address_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield memory accesses with 32 addresses per row, in record batches of ADDRESSES."""
        active, offsets = self.patterns()
        for batch in self.access_batches():
            for start in range(0, batch.num_rows, _PLAIN_ROWS):
                yield _plain(batch.slice(start, _PLAIN_ROWS), active, offsets)

    def accesses(self) -> pa.Table:
        """Return the plain table of ADDRESSES. It takes 280 bytes per row: prefer
        `address_batches`.
        """
        return pa.Table.from_batches(self.address_batches(), ADDRESSES)

    def count(self, table: str) -> int:
        """Return the number of rows of a table without unpacking it."""
        return self._reader(table).rows

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the arrays, and how much of the launch is recorded."""
        rows = [
            (array.name, array.space.name.lower(), f"{array.bytes} bytes at {array.offset:#x}")
            for array in self.launch.arrays
        ]
        rows += [(name, "table", f"{self.count(name)} rows") for name in TABLES]
        caption = f"launch {self.number}: {_describe(self.launch)}"
        from ..base.html_table import render_table

        return render_table(caption, ("name", "what", "size"), rows, len(rows))

    @cached_property
    def _instructions(self) -> pa.Table:
        table = read_once(self._reader("instructions"))
        if any(outside.pc >= table.num_rows for outside in self.launch.outside):
            raise CutraceError(
                f"{self.folder}: the manifest has accesses outside of arrays of instructions that "
                f"are not among the {table.num_rows} there"
            )
        return table

    @cached_property
    def _basic_blocks(self) -> int:
        return 1 + max(self._instructions["block"].to_pylist(), default=-1)

    @cached_property
    def _limits(self) -> dict[str, dict[str, int]]:
        """Return, for each table, the index columns with their exclusive upper bounds."""
        instructions = self.count("instructions")
        warp = {"block": self.launch.blocks, "warp": self.launch.warps}
        return {
            "lanes_on": {"block": self.launch.blocks, "pc": instructions},
            "control": {**warp, "path": self.count("paths")},
            "accesses": {**warp, "pc": instructions, "pattern": self.count("patterns")},
            "texels": {**warp, "pc": instructions, "texture": len(self.launch.textures)},
        }

    def batches(self, name: str, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield a table, in record batches of its schema or some of its columns."""
        reader = self._reader(name)
        limits = self._limits.get(name, {})
        for batch in reader.batches(columns):
            yield _checked(batch, limits, reader.path)

    def _table(self, name: str) -> pa.Table:
        return self._reader(name).table()

    def _reader(self, name: str) -> TableReader:
        if name not in self._readers:
            path = self.folder / f"{name}.arrow"
            check, stamp = self._check_of(name), self.stamps[name]
            self._readers[name] = TableReader(path, TABLES[name], check, stamp)
        return self._readers[name]

    @cached_property
    def _readers(self) -> dict[str, TableReader]:
        """Return the readers of the tables opened so far."""
        return {}

    def _check_of(self, name: str) -> Check | None:
        if name == "paths":
            return lambda batch, first: check_paths(batch, first, self._basic_blocks)
        return check_instructions if name == "instructions" else None


@dataclass(frozen=True)
class Trace:
    """A trace on disk: its manifest, and its launches in order."""

    path: Path
    manifest: Manifest = field(repr=False)
    launches: tuple[LaunchTrace, ...]

    @property
    def label(self) -> str:
        """Return the location as a user writes it: the URL, the folder, or the source's name."""
        name = self.path.stem if is_scratch(self.path.parent) else str(self.path)
        return origin(self.path) or name

    def launch(self, number: int) -> LaunchTrace:
        """Return the launch with this number; raise CutraceError if it is not among these.

        A selection of launches keeps their numbers, which then are no positions in `launches`.
        """
        launches = self.launches
        if 0 <= number < len(launches) and launches[number].number == number:
            return launches[number]
        for one in launches:
            if one.number == number:
                return one
        raise CutraceError(self.no_launch(number))

    def no_launch(self, number: object) -> str:
        """Return the message that there is no launch with this number."""
        numbers = [one.number for one in self.launches]
        is_whole = numbers == [*range(len(numbers))]
        if not is_whole:
            there = f"these are chosen: {', '.join(map(str, numbers[:10]))}"
            there += ", ..." * (len(numbers) > 10)
        elif len(numbers) > 1:
            there = f"it has launches 0 to {len(numbers) - 1}"
        else:
            there = "it has 1 launch, number 0" if numbers else "it has none"
        return f"{self.label}: there is no launch {number}: {there}"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: a row per launch."""
        rows = (
            (str(one.number), _describe(one.launch), f"{one.count('accesses')}")
            for one in self.launches
        )
        head = ("launch", "kernel", "memory accesses of warps")
        from ..base.html_table import render_table

        return render_table(self.path.name, head, rows, len(self.launches))


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Open the trace at `path`: read its manifest, and check that its tables exist.

    A URL (`s3://bucket/a.cutrace`) is downloaded first; that needs `cutrace[remote]`. Raises
    CutraceError if there is none (naming the nearest), if it is not a trace, was written by a newer
    cutrace, or is incomplete.
    """
    if not (url := url_of(os.fspath(path))):
        return _read(Path(path))
    try:
        return _read(fetch(url))
    except CutraceError as error:
        raise CutraceError(str(error) if url in str(error) else f"{url}: {error}") from error


def _read(path: Path) -> Trace:
    folder = PackedPath(path) if is_archive(path) and path.is_file() else path
    for _ in range(_TRIES):
        before = stamp_of(folder / MANIFEST)
        try:
            trace = _read_once(folder)
        except CutraceError:
            if before == stamp_of(folder / MANIFEST):
                raise
        else:
            if before == stamp_of(folder / MANIFEST):
                return trace
    raise CutraceError(f"{folder}: replaced again and again while it is opened")


def _read_once(folder: Path) -> Trace:
    """Open a trace once. If it was replaced meanwhile, the result or error may mix both
    versions."""
    _check_folder(folder)
    unread = Unread(_read_manifest(folder / MANIFEST), str(folder / MANIFEST))
    # Check that a folder exists for each declared launch before decoding: a short manifest with
    # `like` could otherwise expand to any number of launches.
    stamps = _check_launches(folder, unread.launches)
    manifest = unread.manifest()
    if finding := first_finding(manifest):
        raise CutraceError(f"{folder / MANIFEST}: {finding}")
    launches = tuple(
        LaunchTrace(number, launch, folder / str(number), stamps[number])
        for number, launch in enumerate(manifest.launches)
    )
    return Trace(folder, manifest, launches)


def _describe(launch: Launch) -> str:
    """Return the kernel with its grid and block."""
    grid, block = (" x ".join(map(str, extent)) for extent in (launch.grid, launch.block))
    return f"{launch.signature or launch.kernel}, {grid} blocks of {block} threads"


_CUDA = (".cpp", ".cc", ".cxx", ".cuh", ".h", ".hpp")
"""Suffixes of C++ that may have kernels, which sources with `.cu` record."""


def _why_no_trace(file: Path) -> str:
    """Return what a file is that was given in place of a trace."""
    suffix = file.suffix.lower()
    if suffix in (".cu", ".ptx", ".py") and suffix == file.suffix:
        return f"a source, not a trace; `cutrace record {file}`, or record() in Python, makes one"
    if suffix in (".cu", ".ptx", ".py"):
        return f"a source must end in {suffix}: rename it to {file.with_suffix(suffix).name}"
    if suffix in _CUDA:
        return (
            f"neither a trace nor a .cu, .ptx or .py file: include it in a .cu file, or build"
            f" the program with `cutrace nvcc -x cu {file}` and record that"
        )
    return "a file; a trace is a folder, NAME.cutrace"


def _check_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    if folder.exists():
        raise CutraceError(f"{folder}: {_why_no_trace(folder)}")
    if not folder.parent.is_dir():
        raise CutraceError(f"{folder}: no such trace, and there is no folder {folder.parent}")
    names = sorted(entry.name for entry in folder.parent.iterdir())
    raise CutraceError(f"{folder}: no such trace{nearest(folder.name, names)}")


def _read_manifest(path: Path) -> bytes:
    if not path.is_file():
        raise CutraceError(f"{path.parent}: not a trace: no {MANIFEST} in it")
    _check_inside(path, path.parent)
    try:
        size = path.stat().st_size
        if size > MANIFEST_BYTES:
            raise CutraceError(f"{path}: {size} bytes; a manifest has {MANIFEST_BYTES} at most")
        return path.read_bytes()
    except OSError as error:
        raise CutraceError(f"{path}: cannot read it: {reason(error)}") from error


def _check_launches(trace: Path, count: int) -> list[Mapping[str, Stamp]]:
    """Check the tables of each launch, once for launches that share them.

    Return, for each launch, the stamps of its tables.
    """
    by_place: dict[Path, Mapping[str, Stamp]] = {}
    stamps = []
    for number in range(count):
        folder = trace / str(number)
        place = folder.resolve() if folder.is_symlink() else folder
        if place not in by_place:
            by_place[place] = _check_tables(folder, trace)
        stamps.append(by_place[place])
    return stamps


def _check_tables(folder: Path, trace: Path) -> Mapping[str, Stamp]:
    _check_inside(folder, trace)
    stamps = {}
    for name in TABLES:
        path = folder / f"{name}.arrow"
        check_whole(path)
        if path.is_symlink():
            _check_inside(path, trace)
        stamp = stamp_of(path)
        stamps[name] = stamp[:1] if origin(trace) else stamp
    return stamps


def _check_inside(path: Path, folder: Path) -> None:
    """Raise CutraceError if a link leads out of the trace."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise CutraceError(f"{path}: leads out of the trace to {path.resolve()}; refused")


def _checked(batch: pa.RecordBatch, limits: Mapping[str, int], path: Path) -> pa.RecordBatch:
    for column in limits.keys() & {*batch.schema.names}:
        _check_below(batch[column], limits[column], f"{path}: column `{column}`")
    return batch


def _check_below(column: pa.Array, limit: int, where: str) -> None:
    if len(column) and (highest := int(column.to_numpy().max())) >= limit:
        raise CutraceError(f"{where}: {highest}, but there are {limit}, counted from 0")


def _plain(
    batch: pa.RecordBatch, active: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int32]
) -> pa.RecordBatch:
    """Convert rows of ACCESSES to rows of ADDRESSES."""
    pattern = batch["pattern"].to_numpy()
    masks = active[pattern]
    addresses = batch["base"].to_numpy()[:, None] + offsets[pattern].astype(np.int64).view(
        np.uint64
    )
    validity = pa.py_buffer(masks.astype("<u4").tobytes())  # bit i of row r: lane i
    size = addresses.size
    values = pa.Array.from_buffers(pa.uint64(), size, [validity, pa.py_buffer(addresses)])
    lanes = pa.FixedSizeListArray.from_arrays(values, type=ADDRESSES.field("addresses").type)
    columns = [batch[name] for name in ADDRESSES.names[:6]]
    return pa.RecordBatch.from_arrays([*columns, pa.array(masks), lanes], schema=ADDRESSES)


def _flat(lists: pa.ChunkedArray) -> npt.NDArray[np.int32]:
    """Return the values of a fixed-size list column of at most one chunk."""
    chunks = [chunk.flatten().to_numpy() for chunk in lists.chunks]
    return np.concatenate(chunks) if chunks else np.empty(0, np.int32)


def scan_traces(
    traces: Iterable[str | os.PathLike[str]], table: str = "accesses"
) -> "pl.LazyFrame":
    """Return a table of all launches of several traces, as one polars lazy frame.

    `table` is one of traces/FORMAT.md: `accesses`, `patterns`, `instructions` and so on. Its
    columns follow `trace`, the path or URL as given, and `launch`, the number. Raises CutraceError
    for an unreadable trace and an unknown table.
    """
    import polars as pl

    from ..base.frames import require_frames

    require_frames()
    if table not in TABLES:
        raise CutraceError(f"no table {table!r}{nearest(table, TABLES)}; there are {[*TABLES]}")
    frames = [
        _scan(launch, table).select(
            pl.lit(os.fspath(trace)).alias("trace"), pl.lit(launch.number).alias("launch"), pl.all()
        )
        for trace in traces
        for launch in read_trace(trace).launches
    ]
    if not frames:
        raise CutraceError("no trace is given, or no launch is in one")
    return pl.concat(frames)


def _scan(launch: LaunchTrace, table: str) -> "pl.LazyFrame":
    """Return a table that is read, batch by batch, when the frame is collected."""
    import polars as pl
    from polars.io.plugins import register_io_source

    def read(
        columns: list[str] | None, predicate: "pl.Expr | None", rows: int | None, _: int | None
    ) -> "Iterator[pl.DataFrame]":
        for batch in launch.batches(table, columns or ()):
            frame = pl.DataFrame(pl.from_arrow(batch)).slice(0, rows)
            rows = None if rows is None else rows - frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if rows == 0:
                return

    empty = pl.DataFrame(pl.from_arrow(TABLES[table].empty_table()))
    return register_io_source(read, schema=empty.schema, is_pure=True)
