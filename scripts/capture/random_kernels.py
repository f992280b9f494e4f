"""Pack random kernels for a real GPU, and compare what it left: `random_kernels.py pack DIR`.

`pack DIR [--count N] [--seed S]` writes DIR/list.txt (each kernel with its launch and arguments),
DIR/pool.bin (their values) and the kernels as cubins; random_kernels.cu beside this file launches
one of them by its name and prints a digest of each array. `compare DIR RESULTS` runs the same
kernels in both engines and tells which digests differ.
"""

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from fuzz.cuda.batch import OUTPUTS, first_arrays, scalars  # noqa: E402
from fuzz.cuda.check import How, check_kernels  # noqa: E402
from fuzz.cuda.compiler import to_ptx  # noqa: E402
from fuzz.cuda.engine import code_that_is_not_kept, run  # noqa: E402
from fuzz.cuda.kernel import make_kernel  # noqa: E402
from fuzz.cuda.texture import images  # noqa: E402
from fuzz.cuda.tree import Kernel, Launch  # noqa: E402

BATCH = 25
MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
"""cudaTextureAddressMode."""


def main() -> None:
    """Pack or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("act", choices=("pack", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.count)
    if asked.act == "pack":
        pack(asked.folder, seeds)
    else:
        compare(asked.folder, asked.results)


def pack(folder: Path, seeds: range) -> None:
    """Write the kernels of some seeds, those that the oracle calls defined."""
    pool = Pool()
    lines: list[str] = []
    for first in range(0, len(seeds), BATCH):
        batch = seeds[first : first + BATCH]
        kernels = [make_kernel(seed) for seed in batch]
        checked = check_kernels(kernels, How(engines=()))
        sound = [found.kernel for found in checked if not found.kind]
        ptx, name = to_ptx(sound), f"{batch[0]}.cubin"
        (folder / f"{batch[0]}.ptx").write_text(ptx, encoding="utf-8")
        subprocess.run(
            ["ptxas", "-arch=sm_90", "-o", folder / name, folder / f"{batch[0]}.ptx"], check=True
        )
        for kernel in sound:
            assert isinstance(kernel, Kernel)
            lines += describe(kernel, name, pool)
    (folder / "list.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "pool.bin").write_bytes(bytes(pool.data))


class Pool:
    """Bytes of which each piece is kept once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._places: dict[bytes, int] = {}

    def place(self, values: NDArray[Any]) -> int:
        """The offset of an array's bytes."""
        raw = values.tobytes()
        if raw not in self._places:
            self._places[raw] = len(self.data)
            self.data += raw
        return self._places[raw]


def describe(kernel: Kernel, cubin: str, pool: Pool) -> list[str]:
    """The lines of a kernel: its launch, then an argument each."""
    dims = " ".join(map(str, (*kernel.launch.grid, *kernel.launch.block)))
    lines = [f"{kernel.name} {cubin} {dims} {len(kernel.parameters)}"]
    arrays, words = first_arrays(kernel), scalars(kernel)
    pictures = images(arrays["in_u"])
    for name in kernel.parameters:
        if name in arrays:
            array = arrays[name]
            sizes = f"{array.dtype.kind} {array.itemsize} {array.nbytes} {pool.place(array)}"
            lines.append(f"array {name} {sizes} {int(name in OUTPUTS)}")
        elif name in words:
            cell = int.from_bytes(words[name].tobytes(), "little")
            lines.append(f"word {name} {cell}")
        else:
            image = pictures[name]
            texels, modes = image.texels, [MODES[mode] for mode in image.address_modes]
            extent = (*texels.shape[::-1], 0, 0)[:3]
            numbers = (
                texels.itemsize, pool.place(texels), texels.ndim, *extent,
                int(image.filter_mode == "linear"), int(image.normalized),
                *(*modes, modes[0], modes[0])[:3], int(image.is_linear), int(name == "surf"),
            )  # fmt: skip
            lines.append(f"image {name} {texels.dtype.kind} {' '.join(map(str, numbers))}")
    return lines


def digest(values: NDArray[Any]) -> str:
    """As random_kernels.cu makes it: FNV-1a by elements, every NaN alike."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    total = 14695981039346656037
    for word in values.view(f"u{values.itemsize}").tolist():
        total = (total ^ word) * 1099511628211 % (1 << 64)
        total ^= total >> 29
    return f"{total:016x}"


def compare(folder: Path, results: Path) -> None:
    """Print which kernels leave something else in an engine than they left on the GPU."""
    said = dict(line.split(" ", 1) for line in results.read_text("utf-8").splitlines())
    counts = Counter[str]()
    for kernel in listed(folder):
        theirs = said.get(kernel.name, "error: not there")
        if theirs.startswith("error"):
            counts["not run"] += 1
            print(f"{kernel.name}: {theirs}")
            continue
        for engine in ("array", "auto"):
            ours = digests(kernel, engine)
            counts["same" if ours == theirs else "different"] += 1
            if ours != theirs:
                print(f"{kernel.name}, {engine}: {ours}, the GPU has {theirs}", flush=True)
    print(dict(counts))


@dataclass(frozen=True)
class Listed:
    """A kernel of list.txt."""

    name: str
    launch: Launch
    seed: int
    parameters: tuple[str, ...]
    ptx: Path

    def text(self) -> str:
        """Its PTX, with that of others."""
        return self.ptx.read_text(encoding="utf-8")


def listed(folder: Path) -> Iterator[Listed]:
    """The kernels of list.txt."""
    lines = iter((folder / "list.txt").read_text(encoding="utf-8").splitlines())
    for line in lines:
        name, cubin, *numbers = line.split()
        gx, gy, gz, bx, by, bz, many = map(int, numbers)
        parameters = tuple(next(lines).split()[1] for _ in range(many))
        launch = Launch((gx, gy, gz), (bx, by, bz))
        ptx = (folder / cubin).with_suffix(".ptx")
        yield Listed(name, launch, int(name[1:]), parameters, ptx)


def digests(kernel: Listed, engine: str) -> str:
    """What random_kernels.cu prints, as an engine has it."""
    with TemporaryDirectory() as folder, code_that_is_not_kept(quick=True):
        arrays = run(kernel, kernel.text(), Path(folder) / "a.cutrace", engine)
    written = (name for name in kernel.parameters if name in arrays)
    return " ".join(f"{name}={digest(arrays[name])}" for name in written)


if __name__ == "__main__":
    main()
