"""Random kernels that ran on a GPU: their PTX, their launches, and digests of what they left.

`kernels.csv` of a folder has a line a kernel, the `.ptx.xz` beside it the texts that ran. The texts
are kept, not drawn anew by their seeds: what the generator draws changes. A seed still chooses the
values of the arguments.
"""

import csv
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from fuzz.cuda.engine import code_that_is_not_kept, run
from fuzz.cuda.tree import Launch
from numpy.typing import NDArray

LIST = "kernels.csv"
COLUMNS = ("kernel", "ptx", "grid", "block", "parameters", "digests")


@dataclass(frozen=True)
class Captured:
    """A kernel that ran."""

    name: str
    launch: Launch
    parameters: tuple[str, ...]
    ptx: Path
    wanted: str = ""
    """The digests of the arrays that the GPU left."""

    @property
    def seed(self) -> int:
        """What it was drawn by."""
        return int(self.name[1:])

    def text(self) -> str:
        """Its PTX, with that of others."""
        return read_ptx(self.ptx)


@cache
def read_ptx(path: Path) -> str:
    """The PTX of some kernels, compressed or not."""
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return str(file.read())


def captured(folder: Path) -> Iterator[Captured]:
    """The kernels that `keep` wrote to a folder."""
    with (folder / LIST).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            gx, gy, gz = map(int, row["grid"].split())
            bx, by, bz = map(int, row["block"].split())
            launch = Launch((gx, gy, gz), (bx, by, bz))
            parameters = tuple(row["parameters"].split())
            ptx = folder / row["ptx"]
            yield Captured(row["kernel"], launch, parameters, ptx, row["digests"])


def keep(kernels: list[Captured], folder: Path) -> None:
    """Write kernels and what they left to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in {kernel.ptx for kernel in kernels}:
        with lzma.open(folder / f"{path.name}.xz", "wb", preset=9 | lzma.PRESET_EXTREME) as file:
            file.write(path.read_bytes())
    with (folder / LIST).open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(COLUMNS)
        for k in sorted(kernels, key=lambda kernel: kernel.seed):
            sizes = (" ".join(map(str, dim)) for dim in (k.launch.grid, k.launch.block))
            parameters = " ".join(k.parameters)
            writer.writerow((k.name, f"{k.ptx.name}.xz", *sizes, parameters, k.wanted))


def digests(kernel: Captured, engine: str) -> str:
    """What random_kernels.cu prints, as an engine has it."""
    with TemporaryDirectory() as folder, code_that_is_not_kept(quick=True):
        arrays = run(kernel, kernel.text(), Path(folder) / "a.cutrace", engine)
    written = (name for name in kernel.parameters if name in arrays)
    return " ".join(f"{name}={digest(arrays[name])}" for name in written)


def digest(values: NDArray[Any]) -> str:
    """As random_kernels.cu makes it: FNV-1a by elements, every NaN alike."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    total = 14695981039346656037
    for word in values.view(f"u{values.itemsize}").tolist():
        total = (total ^ word) * 1099511628211 % (1 << 64)
        total ^= total >> 29
    return f"{total:016x}"
