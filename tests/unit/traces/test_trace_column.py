from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cutrace.traces.column import concatenate, size_of, to_batch, to_rows
from cutrace.traces.schema import ACCESSES, CONTROL, LANES_ON, PATHS, PATTERNS, TEXELS
from cutrace.traces.table_file import Packers, TableFile, table_bytes
from cutrace.traces.trace_folder import SizeLimit


@pytest.mark.parametrize("rows", [0, 1, 1000])
@pytest.mark.parametrize("schema", [ACCESSES, CONTROL, LANES_ON, PATTERNS, TEXELS])
def test_the_bytes_of_rows_are_those_that_arrow_counts(schema: pa.Schema, rows: int) -> None:
    widths = [getattr(kind, "list_size", 1) for kind in schema.types]
    columns = [np.zeros((rows, width) if width > 1 else rows, np.uint8) for width in widths]
    batch = to_batch(schema, to_rows(schema, columns, "here"))
    assert batch.num_rows == rows
    assert size_of(schema, rows) == batch.nbytes


@pytest.mark.parametrize("lengths", [[0], [3], [2, 0, 5], [1] * 1000])
def test_the_bytes_of_lists_are_those_that_arrow_counts(lengths: list[int]) -> None:
    flat = [np.zeros(sum(lengths), np.uint8) for _ in PATHS.names]
    batch = to_batch(PATHS, to_rows(PATHS, [lengths, *flat], "here"))
    assert batch.num_rows == len(lengths)
    assert size_of(PATHS, len(lengths), sum(lengths)) == batch.nbytes


def test_parts_of_a_table_of_lists_become_one_batch() -> None:
    lists = [[[7], [8, 9]], [[], [1, 2, 3]]]
    parts = []
    for part in lists:
        flat = np.array([value for each in part for value in each])
        parts.append(to_rows(PATHS, [[*map(len, part)], *[flat] * len(PATHS.names)], "here"))
    batch = to_batch(PATHS, concatenate(parts))
    assert all(column.to_pylist() == [[7], [8, 9], [], [1, 2, 3]] for column in batch.columns)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("codec", ["lz4", pa.Codec("zstd", 1)], ids=["lz4", "zstd"])
def test_a_table_of_several_batches_is_the_file_that_arrow_writes(
    tmp_path: Path, codec: str | pa.Codec, threads: int
) -> None:
    random, packers = np.random.default_rng(4), Packers(threads)
    sizes = [1 << 18, 1 << 15, 1 << 15, 5]  # the last three are merged
    columns = [[random.integers(0, 99, size) for _ in CONTROL.names] for size in sizes]
    parts = [to_rows(CONTROL, each, "here") for each in columns]
    file = TableFile(tmp_path, "t", CONTROL, "here", SizeLimit("here"), packers, codec, True)
    for part in parts:
        file.append(partial(concatenate, [part]), size_of(CONTROL, part.count))
    file.close()
    packers.stop()
    batches = [to_batch(CONTROL, concatenate(each)) for each in (parts[:1], parts[1:])]
    assert (tmp_path / "t.arrow").read_bytes() == table_bytes(CONTROL, batches, codec)
