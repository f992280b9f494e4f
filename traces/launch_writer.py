"""The rows of one launch: columns in, record batches out.

Columns are NumPy arrays of n values in the dtypes of `schema.py`, which are written without a
copy; lists, other integer dtypes (checked for range) and single values that hold for all rows are
taken too. The caller may reuse its arrays as soon as a method returns, unless it gave them away.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Self
from weakref import finalize

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import CutraceError, nearest
from .folder.size_limit import Room
from .outside import OutsideTotals
from .schema import INSTRUCTIONS, PATHS, TABLES, Outside
from .shelf import Shelf
from .table.background_writer import Scribe
from .table.column import rows_of, to_batch, to_list_batch
from .table.table_file import TableFile, pieces, table_bytes

_CODECS = {"paths": pa.Codec("zstd", 1)}
"""What compresses a table, if not LZ4. Of masks that repeat one another with the bits turned round,
or in another order, Zstandard finds more in the same time: a quarter where lanes branch at random.
"""

_DICTIONARIES = ("patterns", "paths")
"""Tables of which a reader unpacks some batches here and there."""


class LaunchWriter:
    """Writes the rows of launch `number` into its folder in `folder`; made by `TraceWriter.launch`.

    A context manager; `finish` is told whether its rows are whole, and what lanes did outside of
    allocations; `room` is what is left for the trace. Rows are checked and copied at once,
    compressed and written by the `scribe`, which also checks them where it `owns_columns`: arrays
    that nobody changes any more are not copied. Raises CutraceError for columns of unequal length,
    values out of range and, a while later, a full disk.
    """

    def __init__(
        self,
        folder: Path,
        number: int,
        finish: Callable[[bool, tuple[Outside, ...]], None],
        room: Room,
        shelf: Shelf,
        scribe: Scribe,
        owns_columns: bool,
    ) -> None:
        self.number = number
        self._shelf = shelf
        self._room = room
        self._scribe = scribe
        self._owns_columns = owns_columns
        self._finish = finish
        self._ended = False
        self.outside_totals = OutsideTotals()
        self._files: dict[str, TableFile] = {}
        place = folder / str(number)
        for name, schema in TABLES.items():
            label = f"{room.label}/{number}/{name}.arrow"
            codec, is_sequence = _CODECS.get(name, "lz4"), name not in _DICTIONARIES
            self._files[name] = TableFile(place, name, schema, label, room, codec, is_sequence)
        self._rows = dict.fromkeys(TABLES, 0)

    def instructions(self, table: pa.Table) -> None:
        """Write all instructions of the kernel: a table of schema INSTRUCTIONS, in order of pc."""
        where = self._where("instructions")
        if not table.schema.equals(INSTRUCTIONS):
            raise CutraceError(f"{where}: {_difference(table.schema)}")
        self._scribe.ask(partial(self._files["instructions"].put, _file_of(table, where)))

    def patterns(self, active: npt.ArrayLike, offsets: npt.ArrayLike) -> int:
        """Append address patterns and return the identifier of the first.

        `active` (n,) uint32, bit i for lane i; `offsets` (n, 32) int32, bytes from the address of
        the lowest active lane, 0 for inactive lanes.
        """
        return self._append("patterns", active, offsets)

    def accesses(
        self,
        block: npt.ArrayLike,
        warp: npt.ArrayLike,
        step: npt.ArrayLike,
        part: npt.ArrayLike,
        pc: npt.ArrayLike,
        space: npt.ArrayLike,
        base: npt.ArrayLike,
        pattern: npt.ArrayLike,
    ) -> None:
        """Append memory accesses; rows of one warp in the order in which it executed them."""
        columns = (block, warp, step, part, pc, space, base, pattern)
        self._append("accesses", *columns, reached=int(np.max(block, initial=0)))

    def paths(
        self,
        lengths: npt.ArrayLike,
        blocks: npt.ArrayLike,
        active: npt.ArrayLike,
        not_taken: npt.ArrayLike,
        targets: npt.ArrayLike,
        repeat: npt.ArrayLike,
    ) -> int:
        """Append n paths and return the identifier of the first.

        `lengths` (n,) says how many entries of the other, flat columns belong to each path.
        """
        columns = (blocks, active, not_taken, targets, repeat)
        where = self._where("paths")
        make = partial(to_list_batch, PATHS, lengths, columns, where)
        return self._put("paths", make, rows_of([lengths]), _bytes_of(columns))

    def control(
        self, block: npt.ArrayLike, warp: npt.ArrayLike, step: npt.ArrayLike, path: npt.ArrayLike
    ) -> None:
        """Append what warps ran: from their instruction number `step` on, a path."""
        self._append("control", block, warp, step, path)

    def lanes_on(self, block: npt.ArrayLike, pc: npt.ArrayLike, lanes: npt.ArrayLike) -> None:
        """Append sums of lanes whose predicate held, one row for each (block, pc)."""
        self._append("lanes_on", block, pc, lanes)

    def texels(
        self,
        block: npt.ArrayLike,
        warp: npt.ArrayLike,
        step: npt.ArrayLike,
        pc: npt.ArrayLike,
        texture: npt.ArrayLike,
        active: npt.ArrayLike,
        corner: npt.ArrayLike,
    ) -> None:
        """Append texture samples; `corner` (n, 32, 4) int32: i, j, k, layer of each lane."""
        self._append("texels", block, warp, step, pc, texture, active, corner)

    def outside(
        self,
        pc: npt.ArrayLike,
        lanes: npt.ArrayLike,
        block: npt.ArrayLike,
        thread: npt.ArrayLike,
        address: npt.ArrayLike,
    ) -> None:
        """Add what lanes did outside of every allocation: see `schema.Outside`. It is no table."""
        self.outside_totals.add(pc, lanes, block, thread, address)

    def _append(self, name: str, *columns: npt.ArrayLike, reached: int = 0) -> int:
        make = partial(to_batch, TABLES[name], columns, self._where(name))
        return self._put(name, make, rows_of(columns), _bytes_of(columns), reached)

    def _put(
        self, name: str, make: Callable[[], pa.RecordBatch], rows: int, size: int, reached: int = 0
    ) -> int:
        """Hand over a batch, with the last block that has come; return the number of its first
        row."""
        if not self._owns_columns:
            make = partial(_same, _copied(make()))
        if rows:
            self._scribe.ask(partial(_write, self._room, self._files[name], make, reached), size)
        first, self._rows[name] = self._rows[name], self._rows[name] + rows
        return first

    def _where(self, name: str) -> str:
        return f"launch {self.number}: {name}"

    def close(self) -> None:
        """Have written what is held; the launch is whole unless the scribe meets an error."""
        self._scribe.ask(partial(_put, self._room, self._shelf, self.number, self._files))
        self._end(whole=True)

    def abandon(self) -> None:
        """Close the files as they are, and the trace will not be written; nothing once closed."""
        if not self._ended:
            self._scribe.always(partial(_abandon, self._files))
            self._end(whole=False)

    def _end(self, whole: bool) -> None:
        self._ended = True
        self._finish(whole, self.outside_totals.found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.close()
        finally:
            self.abandon()


def _abandon(files: Mapping[str, TableFile]) -> None:
    for file in files.values():
        file.abandon()


def _file_of(instructions: pa.Table, where: str) -> pa.Buffer:
    """Return the file of a kernel's instructions: all its launches have the same."""
    key = id(instructions)
    if key not in _FILES:
        batches = instructions.combine_chunks().to_batches()
        cut = (piece for batch in batches for piece in pieces(batch, where))
        _FILES[key] = table_bytes(INSTRUCTIONS, cut)
        finalize(instructions, _FILES.pop, key)
    return _FILES[key]


_FILES: dict[int, pa.Buffer] = {}


def _write(room: Room, file: TableFile, make: Callable[[], pa.RecordBatch], reached: int) -> None:
    room.reach(reached)
    if room.full_at is None:
        file.append(make())


def _put(room: Room, shelf: Shelf, number: int, files: Mapping[str, TableFile]) -> None:
    if room.full_at is None:
        shelf.put(number, files)
    else:
        _abandon(files)


def _bytes_of(columns: Iterable[npt.ArrayLike]) -> int:
    """Return the bytes of those columns that are arrays."""
    return sum(column.nbytes for column in columns if isinstance(column, np.ndarray))


def _same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch in memory of its own."""
    return pa.ipc.read_record_batch(batch.serialize(), batch.schema)


def _difference(found: pa.Schema) -> str:
    """Say what keeps a schema from being INSTRUCTIONS."""
    for field in INSTRUCTIONS:
        if field.name not in found.names:
            return f"no column `{field.name}`{nearest(field.name, found.names)}"
        if not found.field(field.name).equals(field):
            return f"column `{found.field(field.name)}`, expected `{field}`"
    return f"columns {found.names}, expected {INSTRUCTIONS.names}"
