"""NVIDIA's whole compiler, as its wheels bring it, and the host compiler that it needs.

`nvidia-cuda-nvcc` 13 and the wheels beside it make one tree, `nvidia/cu13`, with nvcc in `bin` and
the headers in `include`. A compiler that is installed on the machine is never asked: what a program
is compiled by does not depend on where.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ...errors import CutraceError
from ...lazy_dataclass import dataclass

INSTALL = 'python -m pip install "cutrace[programs]"'
HOST_COMPILERS = ("g++", "clang++")


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The tree: `root` is the folder `cu13`."""

    root: Path

    @property
    def nvcc(self) -> Path:
        """The compiler driver."""
        return self.root / "bin" / "nvcc"

    @property
    def include(self) -> Path:
        """CUDA's headers."""
        return self.root / "include"

    @property
    def version(self) -> str:
        """What the headers say of themselves: `13.2`."""
        text = (self.include / "cuda_runtime_api.h").read_text(errors="replace")
        number = int(text.partition("#define CUDART_VERSION")[2].split()[0])
        return f"{number // 1000}.{number % 1000 // 10}"


@cache
def find_toolkit() -> Toolkit:
    """The toolkit of this Python's packages; CutraceError with what to type if it is not whole."""
    for folder in _nvidia_folders():
        found = Toolkit(folder / "cu13")
        if found.nvcc.is_file() and (found.root / "nvvm" / "bin" / "cicc").is_file():
            return found
    raise CutraceError(
        f"no compiler for CUDA programs here: NVIDIA's nvcc 13 was not found in {sys.prefix}; "
        f"install it with: {INSTALL}"
    )


def _nvidia_folders() -> Iterator[Path]:
    spec = find_spec("nvidia")
    for root in (spec and spec.submodule_search_locations) or ():
        yield Path(root)


@cache
def find_host_compiler() -> str:
    """The path of the C++ compiler for a program's host code, which nvcc calls.

    `$NVCC_CCBIN`, which nvcc itself reads, else g++, else clang++. CutraceError with what to type
    if there is none.
    """
    wanted = os.environ.get("NVCC_CCBIN")
    for name in (wanted,) if wanted else HOST_COMPILERS:
        if found := shutil.which(name):
            return found
    problem = f"NVCC_CCBIN is {wanted}, which is not there" if wanted else "there is none"
    raise CutraceError(
        f"a CUDA program needs a C++ compiler for its host code, and {problem}: install g++ "
        "(Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++), or name one in $NVCC_CCBIN"
    )
