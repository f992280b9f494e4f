"""Locate NVIDIA's compilers and headers in installed wheels, without importing these.

The wheels of the CUDA 12 family share one folder `nvidia`: `cuda_nvrtc/lib/*.so.12` on Linux and
`cuda_nvrtc/bin/*.dll` on Windows, programs in `bin`, headers in `include`. NVIDIA publishes none
for macOS: there cutrace can record PTX, but cannot compile CUDA C++.
"""

import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ...base.errors import CutraceError

_FILES = {
    "nvrtc": ("cuda_nvrtc", ("libnvrtc.so.12", "nvrtc64_12*_0.dll")),
    "ptxas": ("cuda_nvcc", ("ptxas", "ptxas.exe")),
    "ptxas 13": ("cu13", ("ptxas", "ptxas.exe")),
}
_HEADERS = ("cuda_runtime", "cuda_cccl", "curand")
_MORE_HEADERS = {"curand": "nvidia-curand-cu12"}


def _wheel_folders(package: str) -> Iterator[Path]:
    """Yield the folders `nvidia/PACKAGE` on this Python's search path."""
    spec = find_spec("nvidia")
    for root in (spec and spec.submodule_search_locations) or ():
        folder = Path(root, package)
        if folder.is_dir():
            yield folder


def find_file(name: str) -> Path | None:
    """Return the path of the library `nvrtc` or the program `ptxas`, None if not installed.

    `ptxas 13` is that of `nvidia-cuda-nvcc` 13, which `cutrace[programs]` installs.
    """
    package, patterns = _FILES[name]
    for folder in _wheel_folders(package):
        for place in ("lib", "bin", "bin/x64"):
            for pattern in patterns:
                for path in sorted((folder / place).glob(pattern)):
                    return path
    return None


def missing(name: str) -> CutraceError:
    """Return the error for a machine without NVIDIA's `nvrtc` or `ptxas`."""
    wheel = f"nvidia-{_FILES[name][0].replace('_', '-')}-cu12"
    if sys.platform == "darwin":
        return CutraceError(
            f"no compiler for CUDA C++ here: NVIDIA publishes none for macOS; compile to PTX on "
            f"Linux or Windows ({wheel}) and give cutrace the .ptx file"
        )
    return CutraceError(
        f"no compiler for CUDA C++ here: {name} was not found in {sys.prefix}; "
        f'install it with: python -m pip install "{wheel}>=12.9,<13"'
    )


def library(name: str) -> Path:
    """Return the path of the library; the error for a missing one says how to install it."""
    path = find_file(name)
    if path is None:
        raise missing(name)
    return path


@cache
def include_folders() -> tuple[str, ...]:
    """Return the folders of CUDA's headers (and cub, thrust, libcu++), absolute, no trailing slash.

    cuRAND's wheel is used if it is installed. `crt/mma.h` is in nvcc's wheel; `headers/mma.cuh`
    replaces it.
    """
    folders = (folder / "include" for package in _HEADERS for folder in _wheel_folders(package))
    return tuple(str(folder) for folder in folders if folder.is_dir())


def older_libraries() -> list[Path]:
    """Return the folder with Thrust, CUB and libcu++ of CUDA 12 (13 changed them), if it exists."""
    return [folder / "include" for folder in _wheel_folders("cuda_cccl")]


def in_cuda(header: str) -> bool:
    """Return True if a header, as included, is one of CUDA's."""
    return any(os.path.isfile(os.path.join(folder, header)) for folder in include_folders())


def wheel_of(header: str) -> str:
    """Return the wheel that contains a missing header, or `""`."""
    return next((wheel for start, wheel in _MORE_HEADERS.items() if header.startswith(start)), "")
