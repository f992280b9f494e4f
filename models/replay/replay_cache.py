"""Replay cache: what each device counted, kept between runs by content.

The key hashes everything that a count depends on: the tables of the launch byte by byte, the launch
with its what-if changes, the device with its settings, the options, and the source of the code that
counts. So an entry is never out of date: a damaged or renewed trace, a changed device file and
another version of cutrace have other keys. A launch is replayed where the cache cannot be written,
an entry is broken, or the device has a user-defined model, which may read anything.
"""

import io
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from struct import pack, unpack_from
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import polars as pl

from ...base.cache import keep, key_of, load
from ...traces.schema import TABLES
from ...traces.stamp import Stamp, check_same
from .device.device import Device
from .interface.options import ReplayOptions

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace

KIND, MOST_BYTES = "replays", 1 << 28
"""What counts are kept as, and how many bytes of them: those unused for longest go first."""
WORTH = 1 << 13
"""Rows of a launch from which on counts are kept: of less, of which a trace may have thousands, to
keep them takes a fifth of counting."""
_SIZES = "<3Q"
STAGES = ("models", "traces", "jit")
"""Folders with the source of what counts."""

Result = TypeVar("Result")
Frames: TypeAlias = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]
"""`counts`, `mixed` and `lanes_on` of a `LaunchCounts`."""


def keys_of(
    trace: "LaunchTrace", devices: Sequence[Device], options: ReplayOptions
) -> list[str | None]:
    """Return a key for each device, None where counts are not kept."""
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
    """Return the result of `make`, which reads all accesses of a trace without a device, or the
    kept one.

    `source` is the module that it is defined in, without which nothing else decides but what it is
    `about`.
    """

    def unpack(data: bytes) -> pl.DataFrame:
        trace.on_rows_read(-trace.count("accesses"))
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
    """Return the result of `make` for a trace, or the kept one, unpacked.

    `sources` are the modules beside those of models and traces that decide what that is.
    """
    trace_key = _key(trace)
    if trace_key is None:
        return make(trace)
    key = key_of(trace_key, make.__name__, about, *(source.read_bytes() for source in sources))
    if (data := load(KIND, key)) is not None:
        return unpack(data)
    answer = make(trace)
    trace.check_unchanged()
    keep(KIND, key, pack(answer), MOST_BYTES)
    return answer


def _key(trace: "LaunchTrace") -> str | None:
    """Return a key for a launch as it is or as it is supposed, None where it has too few rows."""
    if sum(trace.count(table) for table in ("accesses", "control", "texels")) < WORTH:
        return None
    about = type(trace).__name__, trace.launch, trace.what_if
    try:
        return key_of(_source(), _digest(trace), repr(about))
    except OSError:  # a table or a module that cannot be read: whoever needs it says so
        return None


def load_counts(key: str | None) -> Frames | None:
    """Return what was kept under a key, None if there is nothing."""
    data = None if key is None else load(KIND, key)
    if data is None:
        return None
    place, frames = 24, []
    for size in unpack_from(_SIZES, data):
        frames.append(_unpacked(data[place : place + size]))
        place += size
    return frames[0], frames[1], frames[2]


def store_counts(key: str | None, frames: Frames) -> None:
    """Keep what was counted, for the next time that it is asked for."""
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
    """Return a hash of the tables of a launch. CutraceError if they are not those it had."""
    trace.check_unchanged()
    tables = tuple(trace.place / f"{name}.arrow" for name in TABLES)
    return _digest_of(tables, tuple(trace.stamps[name] for name in TABLES))


@lru_cache(16)
def _digest_of(tables: tuple[Path, ...], stamps: tuple[Stamp, ...]) -> bytes:
    """Return a hash of files, read once as long as they are as their stamps say."""
    digest = blake2b()
    for path, stamp in zip(tables, stamps, strict=True):
        digest.update(pack("<Q", stamp[0]))
        with path.open("rb") as file:
            check_same(path, stamp)
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.digest()


@cache
def _source() -> bytes:
    """Return a hash of all modules that read a trace and count."""
    root, digest = Path(__file__).parents[2], blake2b()
    for path in sorted(p for stage in STAGES for p in (root / stage).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()
