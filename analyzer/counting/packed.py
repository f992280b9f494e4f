"""Frames held as few bytes until they are asked for: launches may be thousands.

Each of the hundreds of columns of a launch's counts takes a thousand bytes of memory, however few
rows there are.
"""

import io
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import polars as pl

UNPACKED = 16
"""Frames that stay unpacked: those asked for last."""


class Packing:
    """An object of which the attributes `packed` are frames that it can hold packed."""

    packed: ClassVar[tuple[str, ...]]

    def pack(self) -> None:
        """Pack the frames; asked for, they are unpacked and not held."""
        state = vars(self)
        for name in self.packed:
            if name in state:
                file = io.BytesIO()
                state.pop(name).write_ipc(file)
                state[f"_{name}"] = zlib.compress(file.getvalue(), 1)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> pl.DataFrame:
            """Unpack a frame."""
            if name in self.packed and (data := vars(self).get(f"_{name}")):
                return _unpack(data)
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")


@lru_cache(UNPACKED)
def _unpack(data: bytes) -> pl.DataFrame:
    return pl.read_ipc(io.BytesIO(zlib.decompress(data)), use_pyarrow=False)
