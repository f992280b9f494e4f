"""Export the requests to the caches of each SM: a row per request, in schedule order.

Columns: `launch`; `sm`; `order`, the request's number on its SM; `address` and `bytes` of the
requested sector, line or segment, by the device; `space` and `op`; `pc` of the instruction; and
`array`, the array that holds the address, or empty. Constant and local memory have separate address
spaces. `-o NAME.parquet` writes Parquet, anything else CSV.
"""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ...base.claim import whole_file
from ...base.errors import CutraceError
from ...models.replay.device.device import load_devices
from ...models.replay.interface.model import Ints
from ...models.replay.interface.options import DEFAULT_DEVICE, ReplayOptions
from ...models.replay.request_stream import Requests, read_requests
from ...traces.reader import Trace
from ...traces.trace_folder import reason

DEVICE = DEFAULT_DEVICE
SCHEMA = pa.schema(
    [
        ("launch", pa.uint32()),
        ("sm", pa.uint32()),
        ("order", pa.uint64()),
        ("address", pa.uint64()),
        ("bytes", pa.uint32()),
        ("space", pa.dictionary(pa.int32(), pa.string())),
        ("op", pa.dictionary(pa.int32(), pa.string())),
        ("pc", pa.uint32()),
        ("array", pa.dictionary(pa.int32(), pa.string())),
    ]
)
PARQUET = ".parquet"


def write(trace: Trace, out: Path | None, options: ReplayOptions) -> str:
    """Write all requests of one device, or print them as CSV."""
    devices = load_devices(options.devices, options.set)
    if len(devices) != 1:
        raise CutraceError("requests are those of one device: name one, as in -d h100")
    batches = (
        _batch(launch.number, requests)
        for launch in trace.launches
        for requests in read_requests(launch, devices[0], options)
    )
    if out is None:
        text = io.BytesIO()
        _write_csv(text, batches)
        return text.getvalue().decode()
    try:
        with whole_file(out) as part:
            if out.suffix == PARQUET:
                with pyarrow.parquet.ParquetWriter(part, SCHEMA, compression="zstd") as file:
                    for batch in batches:
                        file.write_batch(batch)
            else:
                with part.open("wb") as plain:
                    _write_csv(plain, batches)
    except OSError as error:
        raise CutraceError(f"{out}: cannot write it: {reason(error)}") from error
    return str(out)


def _write_csv(file: Any, batches: Iterator[pa.RecordBatch]) -> None:
    with pyarrow.csv.CSVWriter(file, SCHEMA) as writer:
        for batch in batches:
            writer.write(batch)


def _batch(launch: int, requests: Requests) -> pa.RecordBatch:
    kinds, kind = requests.kinds, requests.kind
    widths = np.array([each.width for each in kinds], np.uint32)
    columns = [
        np.full(len(kind), launch, np.uint32),
        requests.sm.astype(np.uint32),
        requests.order.astype(np.uint64),
        requests.address.view(np.uint64),
        widths[kind],
        _named(kind, [each.space for each in kinds]),
        _named(kind, [each.access for each in kinds]),
        requests.pc.astype(np.uint32),
        _named(requests.array, requests.arrays),
    ]
    return pa.RecordBatch.from_arrays([*map(_arrow, columns)], schema=SCHEMA)


def _arrow(column: Any) -> pa.Array:
    return column if isinstance(column, pa.Array) else pa.array(column)


def _named(which: Ints, names: Sequence[str]) -> pa.Array:
    """Return names by index as a dictionary array: each is stored once."""
    distinct = dict.fromkeys(names)
    places = {name: place for place, name in enumerate(distinct)}
    number = np.array([places[name] for name in names], np.int32)[which]
    return pa.DictionaryArray.from_arrays(pa.array(number), pa.array(list(distinct)))
