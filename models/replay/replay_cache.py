"""Replay cache: the counts of each device, kept between runs by content.

The cache key hashes everything that a count depends on: the tables of the launch byte by byte, the
launch with its what-if changes, the device with its settings, the options, and the code that
counts, without its docstrings. So an entry is never stale: a damaged or renewed trace, a changed
device file and another version of that code have other keys. A launch is replayed if the cache is
not writable, if an entry is broken, or if the device has a user-defined model, which may read
anything.
"""

import io
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from struct import pack, unpack_from
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import polars as pl

from ...base import progress
from ...base.cache import Cache, keep, key_of, load, package_digest, source_digest
from ...traces.schema import TABLES
from ...traces.trace_folder import Stamp, check_same
from .device.device import Device
from .interface.options import ReplayOptions

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace

KIND, MOST_BYTES = "replays", 1 << 28
"""The kind of cache entry, and the most bytes of them; least recently used entries are evicted."""
WORTH = 1 << 13
"""Rows of a launch from which on counts are cached. A trace may have thousands of smaller launches;
caching those takes a fifth of the time of counting.
"""
_SIZES = "<3Q"
STAGES = ("models", "traces", "jit")
"""Folders with the source of the code that counts."""

Result = TypeVar("Result")
Frames: TypeAlias = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]
"""`counts`, `mixed` and `lanes_on` of a `LaunchCounts`."""


def keys_of(
    trace: "LaunchTrace", devices: Sequence[Device], options: ReplayOptions
) -> list[str | None]:
    """Return a cache key per device, None where counts are not cached."""
    trace_key, how = _key(trace), options.of_a_device
    return [
        None
        if trace_key is None or device.has_foreign_models
        else key_of(trace_key, repr((device, how)))
        for device in devices
    ]


def cached_frame(
    trace: "LaunchTrace",
    source: Path,
    make: Callable[["LaunchTrace"], pl.DataFrame],
    about: str = "",
) -> pl.DataFrame:
    """Return the cached or computed result of `make`, which reads all accesses of a trace without a
    device.

    `source` is the module of `make`. The result may depend on that source, on the trace and on
    `about` only.
    """

    def unpack(data: bytes) -> pl.DataFrame:
        progress.read_rows(-trace.count("accesses"))
        return _unpacked(data)

    return cached_answer(trace, [source], make, _packed, unpack, about)


def cached_answer(
    trace: "LaunchTrace",
    sources: Sequence[Path],
    make: Callable[["LaunchTrace"], Result],
    pack: Callable[[Result], bytes],
    unpack: Callable[[bytes], Result],
    about: str = "",
) -> Result:
    """Return the cached or computed result of `make` for a trace.

    `sources` are the modules, other than those of models and traces, on which the result depends.
    """
    trace_key = _key(trace)
    if trace_key is None:
        return make(trace)

    def make_checked() -> Result:
        answer = make(trace)
        trace.check_unchanged()
        return answer

    key = key_of(trace_key, make.__name__, about, source_digest(sources))
    return Cache(KIND, MOST_BYTES, pack, unpack).get(key, make_checked)


def _key(trace: "LaunchTrace") -> str | None:
    """Return a cache key for a launch with its what-if changes, None if it has too few rows."""
    if sum(trace.count(table) for table in ("accesses", "control", "texels")) < WORTH:
        return None
    about = type(trace).__name__, trace.launch, trace.what_if
    try:
        return key_of(package_digest(*STAGES), _digest(trace), repr(about))
    except OSError:  # a table or a module cannot be read: its reader raises the error
        return None


def load_counts(key: str | None) -> Frames | None:
    """Return the counts under a key, None if there are none."""
    data = None if key is None else load(KIND, key)
    if data is None:
        return None
    place, frames = 24, []
    for size in unpack_from(_SIZES, data):
        frames.append(_unpacked(data[place : place + size]))
        place += size
    return frames[0], frames[1], frames[2]


def store_counts(key: str | None, frames: Frames) -> None:
    """Store counts under a key."""
    if key is None:
        return
    parts = [_packed(frame) for frame in frames]
    keep(KIND, key, pack(_SIZES, *map(len, parts)) + b"".join(parts), MOST_BYTES)


def _packed(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_ipc(file, compression="lz4")
    return file.getvalue()


def _unpacked(data: bytes) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(data), use_pyarrow=False)


def _digest(trace: "LaunchTrace") -> bytes:
    """Return a hash of the tables of a launch. Raises `CutraceError` if they have changed."""
    trace.check_unchanged()
    tables = tuple(trace.place / f"{name}.arrow" for name in TABLES)
    return _digest_of(tables, tuple(trace.stamps[name] for name in TABLES))


@lru_cache(16)
def _digest_of(tables: tuple[Path, ...], stamps: tuple[Stamp, ...]) -> bytes:
    """Return a hash of files, computed once while their stamps do not change."""
    digest = blake2b()
    for path, stamp in zip(tables, stamps, strict=True):
        digest.update(pack("<Q", stamp[0]))
        with path.open("rb") as file:
            check_same(path, stamp)
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.digest()
