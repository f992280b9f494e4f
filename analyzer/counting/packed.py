"""Compressed frames: the counts of thousands of launches, unpacked on access.

A launch's counts have hundreds of columns, each of which takes a thousand bytes even with few rows.
The frames of many launches are therefore concatenated and compressed together.
"""

import io
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import polars as pl

UNPACKED = 4
"""Size of the LRU cache of unpacked packs."""


class Packing:
    """An object with frames, named in `packed`, that `pack_together` packs.

    Each access unpacks the frame; the object does not keep it.
    """

    packed: ClassVar[tuple[str, ...]]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> pl.DataFrame:
            """Unpack a frame."""
            if name in self.packed and (entry := vars(self).get(f"_{name}")):
                data, start, rows = entry
                return _unpack(data).slice(start, rows)
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")


def pack_together(some: Sequence[Packing]) -> None:
    """Pack the frames of objects of one class; frames with equal columns go together."""
    for name in some[0].packed if some else ():
        groups: dict[tuple[str, ...], list[Packing]] = {}
        for one in some:
            if name in vars(one):
                groups.setdefault(tuple(vars(one)[name].columns), []).append(one)
        for members in groups.values():
            _pack(name, members)


def _pack(name: str, members: Sequence[Packing]) -> None:
    frames = [vars(one).pop(name) for one in members]
    file = io.BytesIO()
    pl.concat(frames).write_ipc(file)
    data, start = zlib.compress(file.getvalue(), 1), 0
    for one, frame in zip(members, frames, strict=True):
        vars(one)[f"_{name}"] = data, start, frame.height
        start += frame.height


@lru_cache(UNPACKED)
def _unpack(data: bytes) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(zlib.decompress(data)), use_pyarrow=False)
