"""Write the rows of one launch: NumPy columns in, Arrow record batches out.

Columns are NumPy arrays of n values in the dtypes of `schema.py`, which are written without a copy;
lists, other integer dtypes (range-checked) and single values, broadcast to all rows, are accepted
too. The caller may reuse its arrays as soon as a method returns, unless the writer owns them.
`Deduplicator` links tables with equal content between launches.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..base.errors import CutraceError, nearest
from .column import Rows, rows_of, size_of, to_rows
from .identity_cache import cached_by_identity
from .out_of_bounds import OutsideTotals
from .schema import INSTRUCTIONS, TABLES, Outside
from .table_file import BackgroundWriter, Packers, TableFile, pieces, table_bytes
from .trace_folder import SizeLimit, reason


class Deduplicator:
    """Deduplicates the tables of the trace in `folder` by content, up to its size `limit`."""

    def __init__(self, folder: Path, limit: SizeLimit) -> None:
        self._folder = folder
        self._limit = limit
        self._files: dict[bytes, int] = {}
        self._launches: dict[bytes, int] = {}

    def put(self, number: int, files: Mapping[str, TableFile]) -> None:
        """Write the tables of a launch with new content, and link the others; none beyond the
        limit.
        """
        if self._limit.full_at is not None:
            _abandon(files)
            return
        digests = {name: file.digest() for name, file in files.items()}
        marks = {name: each and name.encode() + each for name, each in digests.items()}
        # If all tables equal those of one earlier launch, a single symbolic link replaces the
        # folder; otherwise each table is hard-linked to its first copy.
        whole = b"".join(mark or b"" for mark in marks.values())
        twin = self._launches.get(whole) if None not in marks.values() else None
        if twin is not None and _try_link(os.symlink, str(twin), self._folder / str(number)):
            return
        self._make_folder(number)
        for name, file in files.items():
            self._put_file(number, name, file, marks[name])
        if None not in marks.values():
            self._launches.setdefault(whole, number)

    def _put_file(self, number: int, name: str, file: TableFile, mark: bytes | None) -> None:
        if mark is None:
            file.close()
            return
        there = self._files.setdefault(mark, number)
        places = (os.path.join(self._folder, str(n), f"{name}.arrow") for n in (there, number))
        if there != number and not _try_link(os.link, *places):
            self._files[mark] = number  # the file has the maximum number of links
            there = number
        if there == number:
            file.close()

    def _make_folder(self, number: int) -> None:
        try:
            (self._folder / str(number)).mkdir(exist_ok=True)
        except OSError as error:
            raise CutraceError(
                f"{self._limit.label}/{number}: cannot write it: {reason(error)}"
            ) from error


def _try_link(link: Callable[..., None], *places: str | Path) -> bool:
    try:
        link(*places)
    except (OSError, NotImplementedError):
        return False
    return True


_CODECS = {"paths": pa.Codec("zstd", 1)}
"""Codecs other than LZ4. Zstandard finds more redundancy in masks that repeat rotated or in another
order, in the same time: a quarter less if lanes branch at random."""

_DICTIONARIES = ("patterns", "paths")
"""Tables with random access: a reader unpacks single batches."""


class LaunchWriter:
    """Writes the rows of launch `number` into its folder in `folder`; made by `TraceWriter.launch`.

    A context manager; `finish` receives whether the rows are complete, and the out-of-bounds
    totals; `limit` is the remaining size of the trace. Rows are checked and copied at once, and
    compressed and written in the `background`. With `owns_columns`, arrays that the caller no
    longer changes are not copied, and are checked in the background. Raises CutraceError for
    unequal lengths, values out of range and, with a delay, a full disk.
    """

    def __init__(
        self,
        folder: Path,
        number: int,
        finish: Callable[[bool, tuple[Outside, ...]], None],
        limit: SizeLimit,
        shelf: Deduplicator,
        background: BackgroundWriter,
        packers: Packers,
        owns_columns: bool,
    ) -> None:
        self.number = number
        self._shelf = shelf
        self._background = background
        self._owns_columns = owns_columns
        self._finish = finish
        self._ended = False
        self.outside_totals = OutsideTotals()
        self._files: dict[str, TableFile] = {}
        place = folder / str(number)
        for name, schema in TABLES.items():
            label = f"{limit.label}/{number}/{name}.arrow"
            codec, is_sequence = _CODECS.get(name, "lz4"), name not in _DICTIONARIES
            self._files[name] = TableFile(
                place, name, schema, label, limit, packers, codec, is_sequence
            )
        self._rows = dict.fromkeys(TABLES, 0)

    def instructions(self, table: pa.Table) -> None:
        """Write all instructions of the kernel: a table of schema INSTRUCTIONS, in order of pc."""
        where = self._where("instructions")
        if not table.schema.equals(INSTRUCTIONS):
            raise CutraceError(f"{where}: {_difference(table.schema)}")
        self._background.submit(partial(self._files["instructions"].put, _file_of(table)))

    def put(self, table: str, **columns: npt.ArrayLike) -> int:
        """Append rows to a table, its columns by name; return the identifier of the first.

        A column whose field in the schema has a `default` may be left out. `paths` have `lengths`
        (n,): the number of entries in the other, flat columns that belong to each. `outside` is not
        a table: it takes out-of-bounds accesses as `schema.Outside`.
        """
        if table == "outside":
            self.outside_totals.add(*columns.values())
            return 0
        where, names = self._where(table), column_names(table)
        columns = {**_defaults(table), **columns}
        if columns.keys() != {*names}:
            raise CutraceError(f"{where}: columns {[*columns]}, expected {names}")
        ordered = [columns[name] for name in names]
        rows, schema = rows_of(ordered[:1] if table == "paths" else ordered), TABLES[table]
        values = rows_of(ordered[1:]) if table == "paths" else 0
        reached = int(np.max(columns["block"], initial=0)) if table == "accesses" else 0
        make: Callable[[], Rows] = partial(to_rows, schema, ordered, where)
        if not self._owns_columns:
            make = partial(_same, make().copy())
        if rows:
            size = size_of(schema, rows, values)
            append = partial(self._files[table].append, make, size, reached)
            self._background.submit(append, size)
        first, self._rows[table] = self._rows[table], self._rows[table] + rows
        return first

    def patterns(self, *columns: npt.ArrayLike, **named: npt.ArrayLike) -> int:
        """Append address patterns, columns of `PATTERNS` in order or by name, and return the
        identifier of the first.

        `active` (n,) uint32, bit i for lane i; `offsets` (n, 32) int32, bytes from the address of
        the lowest active lane, 0 for inactive lanes.
        """
        return self._append("patterns", columns, named)

    def accesses(self, *columns: npt.ArrayLike, **named: npt.ArrayLike) -> None:
        """Append memory accesses, columns of `ACCESSES` in order or by name; rows of one warp must
        be in execution order.
        """
        self._append("accesses", columns, named)

    def paths(self, *columns: npt.ArrayLike, **named: npt.ArrayLike) -> int:
        """Append n paths and return the identifier of the first: `lengths` (n,), then the columns
        of `PATHS`, flat.
        """
        return self._append("paths", columns, named)

    def control(self, *columns: npt.ArrayLike, **named: npt.ArrayLike) -> None:
        """Append executed paths of warps, each from instruction number `step` on: columns of
        `CONTROL`.
        """
        self._append("control", columns, named)

    def lanes_on(self, *columns: npt.ArrayLike, **named: npt.ArrayLike) -> None:
        """Append sums of lanes whose predicate held, one row for each (block, pc): columns of
        `LANES_ON`.
        """
        self._append("lanes_on", columns, named)

    def texels(self, *columns: npt.ArrayLike, **named: npt.ArrayLike) -> None:
        """Append texture samples, columns of `TEXELS`; `corner` (n, 32, 4) int32: i, j, k, layer of
        each lane.
        """
        self._append("texels", columns, named)

    def _append(
        self, table: str, columns: Sequence[npt.ArrayLike], named: Mapping[str, npt.ArrayLike]
    ) -> int:
        in_order = zip(column_names(table), columns, strict=False)
        if len(columns) > len(column_names(table)):
            raise CutraceError(f"{self._where(table)}: {len(columns)} columns, expected fewer")
        return self.put(table, **dict(in_order), **named)

    def _where(self, name: str) -> str:
        return f"launch {self.number}: {name}"

    def close(self) -> None:
        """Write the buffered rows; the launch is complete unless the background meets an error."""
        self._background.submit(partial(self._shelf.put, self.number, self._files))
        self._end(whole=True)

    def abandon(self) -> None:
        """Close the unfinished files; the trace will not be written. No effect once closed."""
        if not self._ended:
            self._background.always(partial(_abandon, self._files))
            self._end(whole=False)

    def _end(self, whole: bool) -> None:
        self._ended = True
        self._finish(whole, self.outside_totals.totals)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            self.abandon()


@cache
def _defaults(table: str) -> dict[str, int]:
    """Return the optional columns and their default values."""
    more = {field.name: field.metadata or {} for field in TABLES[table]}
    return {
        name: int(metadata[b"default"]) for name, metadata in more.items() if b"default" in metadata
    }


@cache
def column_names(table: str) -> list[str]:
    """Return the columns of a table in argument order; paths have their lengths first."""
    names: list[str] = TABLES[table].names
    return ["lengths", *names] if table == "paths" else names


def _abandon(files: Mapping[str, TableFile]) -> None:
    for file in files.values():
        file.abandon()


@cached_by_identity
def _file_of(instructions: pa.Table) -> pa.Buffer:
    """Return the file of a kernel's instructions, which all its launches share."""
    batches = instructions.combine_chunks().to_batches()
    cut = (piece for batch in batches for piece in pieces(batch, "instructions"))
    return table_bytes(INSTRUCTIONS, cut)


def _same(rows: Rows) -> Rows:
    return rows


def _difference(schema: pa.Schema) -> str:
    """Return the first difference between a schema and INSTRUCTIONS as text."""
    for field in INSTRUCTIONS:
        if field.name not in schema.names:
            return f"no column `{field.name}`{nearest(field.name, schema.names)}"
        if not schema.field(field.name).equals(field):
            return f"column `{schema.field(field.name)}`, expected `{field}`"
    return f"columns {schema.names}, expected {INSTRUCTIONS.names}"
