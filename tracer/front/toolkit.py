"""Locate NVIDIA's compilers and headers in installed wheels, and the host compiler that nvcc needs.

The wheels of the CUDA 12 family share one folder `nvidia`: `cuda_nvrtc/lib/*.so.12` on Linux and
`cuda_nvrtc/bin/*.dll` on Windows, programs in `bin`, headers in `include`. NVIDIA publishes none
for macOS: there cutrace can record PTX, but cannot compile CUDA C++. None of them is imported.

`nvidia-cuda-nvcc` 13 and its companion wheels form one tree, `nvidia/cu13`, with nvcc in `bin` and
headers in `include`. A compiler installed on the machine is never used: the result of a compilation
does not depend on the machine.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..ptx.isa_section import isa_note

_FILES = {
    "nvrtc": ("cuda_nvrtc", ("libnvrtc.so.12", "nvrtc64_12*_0.dll")),
    "ptxas": ("cuda_nvcc", ("ptxas", "ptxas.exe")),
    "ptxas 13": ("cu13", ("ptxas", "ptxas.exe")),
    "nvdisasm": ("cu13", ("nvdisasm", "nvdisasm.exe")),
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


INSTALL = 'python -m pip install "cutrace[programs]"'
HOST_COMPILERS = ("g++", "clang++")


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The toolkit's tree; `root` is the folder `cu13`, `compiler` its nvcc."""

    root: Path
    compiler: str = "nvcc"

    @property
    def nvcc(self) -> Path:
        """Path of the compiler driver."""
        return self.root / "bin" / self.compiler

    @property
    def include(self) -> Path:
        """Folder of CUDA's headers."""
        return self.root / "include"

    @property
    def version(self) -> str:
        """Version by the headers: `13.2`."""
        text = (self.include / "cuda_runtime_api.h").read_text(errors="replace")
        number = int(text.partition("#define CUDART_VERSION")[2].split()[0])
        return f"{number // 1000}.{number % 1000 // 10}"

    def advise_release(self, message: str) -> str:
        """Return a hint if an error is in headers of another release than nvcc, else ""."""
        root = re.escape(str(self.root))
        files = rf"(?:{root}/(?:bin/\.\./+)?include/\S*?|\S+\.cudafe1\.stub\.c)"  # nvcc's own, too
        in_headers = rf"{files}(\(\d+\)|:[\d:]+): .*\berror\b"
        if not re.search(in_headers, message):
            return ""
        output = subprocess.run([self.nvcc, "--version"], capture_output=True, text=True).stdout
        release = re.search(r"release (\d+\.\d+)", output)
        if release is None or release[1] == self.version:
            return ""
        packages = (f'"{name}=={self.version}.*"' for name in _OF_NVCC)
        return (
            f"\nnvcc is of CUDA {release[1]}, its headers are of CUDA {self.version}: move nvcc "
            f"with python -m pip install {' '.join(packages)}"
        )


_OF_NVCC = ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt")
"""Packages of one release; the runtime's headers are another's to choose, torch's for one."""


@cache
def find_toolkit() -> Toolkit:
    """Return the toolkit of this Python's packages.

    Raises CutraceError with the command to type if it is incomplete.
    """
    for folder in _nvidia_folders():
        toolkit = Toolkit(folder / "cu13")
        if toolkit.nvcc.is_file() and (toolkit.root / "nvvm" / "bin" / "cicc").is_file():
            return toolkit
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
    """Return the path of the C++ compiler for host code, which nvcc calls.

    `$NVCC_CCBIN`, which nvcc itself reads, else g++, else clang++. Raises CutraceError with the
    command to type if there is none.
    """
    environment_name = os.environ.get("NVCC_CCBIN")
    for name in (environment_name,) if environment_name else HOST_COMPILERS:
        if path := shutil.which(name):
            return path
    problem = (
        f"NVCC_CCBIN is {environment_name}, which is not there"
        if environment_name
        else "there is none"
    )
    raise CutraceError(
        f"a CUDA program needs a C++ compiler for its host code, and {problem}: install g++ "
        "(Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++), or name one in $NVCC_CCBIN"
    )


_MISSING_FILE = re.compile(r"fatal error: (\S+\.h\w*): No such file|cannot find -l(\w+)")
_MACHINE_CODE = {
    "cudnn": "cuDNN",
    "cusolver": "cuSOLVER",
    "nccl": "NCCL",
    "npp": "NPP",
    "nvjpeg": "nvJPEG",
}
"""Libraries whose kernels exist as machine code only, by the prefix of their file names."""

_HEADERS_ALONE = {"curand_kernel": "nvidia-curand"}
"""Header-only dependencies by name prefix, with the packages that contain them."""

_OF_SAMPLES = ("helper_", "exception.h", "nvrtc_helper.h", "rendercheck_gl.h")
"""Headers that CUDA's samples share, by name prefix."""

_OF_SDK = ("cutil_", "shrUtils", "shrQATest", "sdkHelper", "oclUtils", "cudpp")
"""Headers of the SDK of CUDA 1 to 4 without a replacement here; `cutil.h` has one."""

NOT_STARTED = 127
"""Exit status of a program that the dynamic loader could not start."""


_REFUSED = re.compile(r"Instruction '([\w.:]+)' not supported on \.target '(\w+)'")


def _whose(instruction: str, target: str) -> str:
    """Return where the ISA has an instruction that ptxas refused, and which devices have it."""
    opcode, *modifiers = instruction.split(".")
    note = isa_note(opcode, tuple(modifiers)).removeprefix("; ")
    return f"\n{instruction} is not of {target}: {note}; -arch and -d choose one" if note else ""


def advise(message: str) -> str:
    """Return a hint for a compiler error about a missing file or a device, else ""."""
    if refused := _REFUSED.search(message):
        return _whose(*refused.groups())
    match = _MISSING_FILE.search(message)
    if match is None:
        return ""
    name = (match[1] or match[2]).rpartition("/")[2]
    for start, package in _HEADERS_ALONE.items():
        if name.startswith(start):
            return f"\n{name} comes with a package: python -m pip install {package}"
    if name.startswith(_OF_SAMPLES):
        return (
            f"\n{name} comes with CUDA's samples: git clone "
            "https://github.com/NVIDIA/cuda-samples, and -I cuda-samples/Common"
        )
    if name.startswith(_OF_SDK):
        return (
            f"\n{name} came with the SDK of CUDA 4 and older; of that cutrace has cutil.h and "
            "cutil_inline.h: name the SDK's folder with -I, or write the program without it"
        )
    for start, library in _MACHINE_CODE.items():
        if name.startswith(start):
            return (
                f"\n{library} is a library of machine code, which cutrace cannot record: build the "
                "program without it"
            )
    return ""


def why_nothing_came(word: str, status: int) -> str:
    """Return the reason why a program ended without connecting to its recorder."""
    if status == NOT_STARTED:
        return (
            f"{word}: the system could not start it, most likely for a library that is missing "
            f"(see above): install that, or name its folder in $LD_LIBRARY_PATH; ldd {word} lists "
            "what it needs"
        )
    if status:
        end = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        return f"{word}: it ended with {end} before its first CUDA call; nothing to record"
    return f"{word}: it made no CUDA calls; nothing to record"
