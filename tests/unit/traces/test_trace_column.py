import numpy as np
import pyarrow as pa
import pytest

from cutrace.traces.column import bytes_of, to_batch, to_list_batch
from cutrace.traces.schema import ACCESSES, CONTROL, LANES_ON, PATHS, PATTERNS, TEXELS


@pytest.mark.parametrize("rows", [0, 1, 1000])
@pytest.mark.parametrize("schema", [ACCESSES, CONTROL, LANES_ON, PATTERNS, TEXELS])
def test_the_bytes_of_a_batch_are_those_that_arrow_counts(schema: pa.Schema, rows: int) -> None:
    widths = [getattr(kind, "list_size", 1) for kind in schema.types]
    columns = [np.zeros((rows, width) if width > 1 else rows, np.uint8) for width in widths]
    batch = to_batch(schema, columns, "here")
    assert batch.num_rows == rows
    assert bytes_of(batch, schema) == batch.nbytes


@pytest.mark.parametrize("lengths", [[0], [3], [2, 0, 5], [1] * 1000])
def test_the_bytes_of_lists_are_those_that_arrow_counts(lengths: list[int]) -> None:
    flat = [np.zeros(sum(lengths), np.uint8) for _ in PATHS.names]
    batch = to_list_batch(PATHS, lengths, flat, "here")
    assert batch.num_rows == len(lengths)
    assert bytes_of(batch, PATHS) == batch.nbytes
