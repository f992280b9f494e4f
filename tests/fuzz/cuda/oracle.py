"""The oracle: kernels compiled by g++, one thread after another, in two orders of threads."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from fuzz.cuda.batch import ORACLE, UNITS, Arrays, Source, first_arrays, oracle_text, scalars
from fuzz.cuda.compiler import NotC
from fuzz.cuda.parameter import PARAMETERS
from fuzz.cuda.texture import images

FLAGS = ("-O1", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing", "-frounding-math",
         "-std=c++17", "-fPIC", "-w")  # fmt: skip


Wanted: TypeAlias = tuple[Arrays, Arrays]
"""What the arrays hold after a launch; and what they hold if fmin(+0, -0) is the other zero, as a
compiler may have it that folds constants."""


class OracleError(Exception):
    """A kernel that is not defined: threads wait for ever, or the order of threads matters."""


@cache
def host_compiler() -> str:
    """The path of g++, or of what $CXX names."""
    found = shutil.which(os.environ.get("CXX", "g++"))
    if not found:
        raise FileNotFoundError("random kernels are judged by a host compiler: apt install g++")
    return found


@cache
def _header() -> TemporaryDirectory[str]:
    """A folder with the oracle's header, read by g++ once for all kernels of this process."""
    folder = TemporaryDirectory(prefix="oracle")
    copy = Path(folder.name) / ORACLE.name
    for header in (ORACLE, UNITS):
        shutil.copy(header, folder.name)
    subprocess.run(
        [host_compiler(), *FLAGS, "-x", "c++-header", copy, "-o", f"{copy}.gch"], check=True
    )
    return folder


class Building:
    """g++ at work on some kernels."""

    def __init__(self, kernels: Sequence[Source]) -> None:
        self._kernels = tuple(kernels)
        self._folder = TemporaryDirectory(prefix="oracle")
        self._library = Path(self._folder.name) / "oracle.so"
        source = self._library.with_suffix(".cpp")
        source.write_text(oracle_text(kernels), encoding="utf-8")
        self._job = subprocess.Popen(
            [host_compiler(), *FLAGS, "-shared", "-I", _header().name, "-o", self._library, source],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def results(self) -> list[Wanted | str]:
        """What each kernel leaves, or why it is not defined."""
        with self._folder:
            _, said = self._job.communicate()
            if self._job.returncode:
                raise NotC(f"g++: {said[:3000]}")
            library = ctypes.CDLL(str(self._library))
            return [_result(library, n, kernel) for n, kernel in enumerate(self._kernels)]


def _result(library: ctypes.CDLL, number: int, kernel: Source) -> Wanted | str:
    try:
        forwards = _run(library, number, kernel)
        backwards = _run(library, number, kernel, backwards=True)
        other = _run(library, number, kernel, other_zero=True)
    except OracleError as problem:
        return str(problem)
    for name, values in forwards.items():
        if values.tobytes() != backwards[name].tobytes():
            return f"`{name}` depends on the order of threads"
    return forwards, other


def _run(
    library: ctypes.CDLL, number: int, kernel: Source, backwards: bool = False,
    other_zero: bool = False,
) -> Arrays:  # fmt: skip
    arrays, words = first_arrays(kernel), scalars(kernel)
    held = {name: array.ctypes.data for name, array in arrays.items()}
    cells: dict[str, Any] = {
        name: ctypes.create_string_buffer(word.tobytes()) for name, word in words.items()
    }
    texels = {name: image.texels.copy() for name, image in images(arrays["in_u"]).items()}
    cells |= {name: ctypes.c_void_p(array.ctypes.data) for name, array in texels.items()}
    held |= {name: ctypes.addressof(cell) for name, cell in cells.items()}
    pointers = (ctypes.c_void_p * len(PARAMETERS))(*(held[name] for name in PARAMETERS))
    if library.run(number, pointers, int(backwards), int(other_zero)):
        raise OracleError("threads wait for ever")
    return arrays
