"""Kernels that failed once, as files: the CUDA C text below a line with its launch."""

import re
from dataclasses import dataclass
from pathlib import Path

from fuzz.cuda.batch import Source
from fuzz.cuda.tree import Launch

_LAUNCH = re.compile(r"// launch: (\w+)<<<\(([\d, ]+)\), \(([\d, ]+)\)>>> with values (\d+)")
_HEAD = re.compile(r"__global__ void (?:__cluster_dims__\(([\d, ]+)\) )?\w+\(([^)]*)\)")


@dataclass(frozen=True)
class Written:
    """A kernel that somebody wrote, with what a random one has."""

    name: str
    launch: Launch
    seed: int
    """The values of its arguments: tests/fuzz/cuda/batch.py."""
    code: str

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        head = _HEAD.search(self.code)
        assert head, f"no kernel: {self.code[:200]}"
        return tuple(re.findall(r"(\w+)(?:,|$)", head[2]))

    def text(self) -> str:
        """Its CUDA C text."""
        return self.code


def read(path: Path) -> Written:
    """Read a kernel and its launch."""
    text = path.read_text(encoding="utf-8")
    found = _LAUNCH.search(text)
    assert found, f"{path}: no line `// launch: k<<<(1, 1, 1), (32, 1, 1)>>> with values 0`"
    grid, block = (_three(dims) for dims in found.group(2, 3))
    code = "\n".join(line for line in text.split("\n") if not line.startswith("// "))
    head = _HEAD.search(code)
    cluster = _three(head[1]) if head and head[1] else (1, 1, 1)
    return Written(found[1], Launch(grid, block, cluster), int(found[4]), code)


def _three(text: str) -> tuple[int, int, int]:
    x, y, z = map(int, text.split(","))
    return x, y, z


def write(path: Path, kernel: Source, kind: str, said: str) -> None:
    """Keep a kernel with its launch and what is wrong."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(describe(kernel, kind, said), encoding="utf-8")


def describe(kernel: Source, kind: str, said: str) -> str:
    """The text of such a file."""
    grid, block = kernel.launch.grid, kernel.launch.block
    wrong = "".join(f"// {line}\n" for line in f"{kind}: {said}".split("\n"))
    return (
        f"{wrong}// seed {kernel.seed}\n"
        f"// launch: {kernel.name}<<<{grid}, {block}>>> with values {kernel.seed % 8}\n"
        f"{kernel.text()}"
    )
