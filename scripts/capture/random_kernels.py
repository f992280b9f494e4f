"""Pack random kernels for a real GPU, and compare what it left: `random_kernels.py pack DIR`.

`pack DIR [--count N] [--seed S]` writes DIR/list.txt (each kernel with its launch and arguments),
DIR/pool.bin (their values) and the kernels as cubins; random_kernels.cu beside this file launches
one of them by its name and prints a digest of each array. `compare DIR RESULTS` runs the same
kernels in both engines and tells which digests differ; `keep DIR RESULTS` writes kernels and
digests to tests/validate/random_kernels, and `compare` alone runs all that are kept there.
"""

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from fuzz.cuda.batch import OUTPUTS, first_arrays, scalars  # noqa: E402
from fuzz.cuda.captured import Captured, captured, digests, keep  # noqa: E402
from fuzz.cuda.check import How, check_kernels  # noqa: E402
from fuzz.cuda.compiler import to_ptx  # noqa: E402
from fuzz.cuda.kernel import make_kernel  # noqa: E402
from fuzz.cuda.texture import images  # noqa: E402
from fuzz.cuda.tree import Kernel, Launch  # noqa: E402

KEPT = ROOT / "tests" / "validate" / "random_kernels"
BATCH = 25
MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
"""cudaTextureAddressMode."""


def main() -> None:
    """Pack or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("act", choices=("pack", "compare", "keep"))
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.count)
    if asked.act == "compare" and asked.folder is None:
        compare(captured(KEPT))
    elif asked.folder is None or (asked.act != "pack" and asked.results is None):
        parser.error("name the folder of the kernels, and the file of what they left")
    elif asked.act == "pack":
        pack(asked.folder, seeds)
    elif asked.act == "compare":
        compare(ran(asked.folder, asked.results))
    else:
        keep(ran(asked.folder, asked.results), KEPT)


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


def listed(folder: Path) -> Iterator[Captured]:
    """The kernels of list.txt."""
    lines = iter((folder / "list.txt").read_text(encoding="utf-8").splitlines())
    for line in lines:
        name, cubin, *numbers = line.split()
        gx, gy, gz, bx, by, bz, many = map(int, numbers)
        parameters = tuple(next(lines).split()[1] for _ in range(many))
        launch = Launch((gx, gy, gz), (bx, by, bz))
        yield Captured(name, launch, parameters, (folder / cubin).with_suffix(".ptx"))


def ran(folder: Path, results: Path) -> list[Captured]:
    """The kernels of list.txt with what they left; those that did not run are named."""
    said = dict(line.split(" ", 1) for line in results.read_text("utf-8").splitlines())
    found: list[Captured] = []
    for kernel in listed(folder):
        wanted = said.get(kernel.name, "error: not there")
        if wanted.startswith("error"):
            print(f"{kernel.name} did not run: {wanted}")
        else:
            found.append(replace(kernel, wanted=wanted))
    return found


def compare(kernels: Iterable[Captured]) -> None:
    """Print which kernels leave something else in an engine than they left on the GPU."""
    counts = Counter[str]()
    for kernel in kernels:
        for engine in ("array", "auto"):
            ours = digests(kernel, engine)
            counts["same" if ours == kernel.wanted else "different"] += 1
            if ours != kernel.wanted:
                print(f"{kernel.name}, {engine}: {ours}, the GPU has {kernel.wanted}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
