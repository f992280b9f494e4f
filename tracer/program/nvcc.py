"""A run of NVIDIA's compiler: once, or again for programs and headers of another CUDA."""

import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO

from ..front.toolkit import older_libraries
from .missing import advise
from .wire import RUNTIME

_OF_OLDER_CUDA = re.compile(
    r'texture is not a template|identifier "texture" is undefined|cudaDeviceProp\W* has no member'
    r"|\bto\W+cudaMemLocation|Instruction '(vote|shfl)' without '.sync'"
    r'|identifier "__shfl\w*" is undefined|cudaGraphEdgeData'
    r"|cudaGraphNodeParams\W*. is incompatible|cudaGraphNodeParams\W* to|cuCtxCreate_v4\b"
    r'|namespace "std" has no member|identifier "cuda(ConfigureCall|SetupArgument|Launch)"'
    r"|.cuda(ConfigureCall|SetupArgument|Launch)\W was not declared"
)
"""What nvcc 13, and g++ for a file of host code, say of programs that `older.h` is for."""

_OF_SURFACE_REFERENCES = re.compile(
    r'surface is not a template|identifier "surface" is undefined|"surfaceReference" is undefined'
)
"""What it says of programs that `surface_reference.h` is for."""

_OF_OLDER_LIBRARIES = re.compile(
    r'namespace "(thrust|cub)[\w:]*" has no member|not a member of \W(thrust|cub)\b'
    r"|fatal error: (thrust|cub)/\S+: No such file|requires at least C\+\+ ?17"
)
"""What they say of programs for the Thrust and CUB of CUDA 12."""

_OF_OTHER_HEADERS = re.compile(r"CUDA compiler and CUDA toolkit headers are incompatible")
"""What libcu++ says where another package wants the runtime's headers older than nvcc, as torch
does. Within a major version they fit."""

_ERROR = re.compile(r"\berror\b", re.IGNORECASE)


def run_nvcc(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run it to its end; what it says is in what is returned."""
    while True:
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
        )
        again = _for_other(command, answer.stderr + answer.stdout) if answer.returncode else None
        if again is None:
            return answer
        command = again


def show_nvcc(command: Sequence[str]) -> int:
    """Run it and print what it says as it comes; return its exit status.

    From the first error on that waits for the end, when it is known whether another run follows.
    """
    while True:
        status, said, complained = _show(command)
        again = _for_other(command, complained + said) if status else None
        if again is None:
            break
        command = again
    sys.stdout.write(said)
    sys.stderr.write(complained)
    if status and (advice := advise(said + complained)):
        sys.stderr.write(f"cutrace: {advice.lstrip()}\n")
    return status


def _for_other(command: Sequence[str], said: str) -> list[str] | None:
    """The command with what another CUDA needs by what was said; None if that is all."""
    wanted: list[str] = []
    if _OF_OLDER_CUDA.search(said):
        wanted += ["-include", str(RUNTIME / "older.h")]
    if _OF_SURFACE_REFERENCES.search(said):
        wanted += ["-include", str(RUNTIME / "surface_reference.h")]
    if _OF_OLDER_LIBRARIES.search(said):
        wanted += [f"-I{folder}" for folder in older_libraries()]
    if _OF_OTHER_HEADERS.search(said):
        wanted.append("-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK")
    return [*command, *wanted] if not set(wanted) <= set(command) else None


def _show(command: Sequence[str]) -> tuple[int, str, str]:
    """The exit status, and what is held back of both outputs."""
    with (
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process,
        ThreadPoolExecutor(2) as pool,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        held = pool.map(_pass_on, (process.stdout, process.stderr), (sys.stdout, sys.stderr))
        said, complained = held
        return process.wait(), said, complained


def _pass_on(source: IO[str], to: IO[str]) -> str:
    """Copy line by line up to the first error; return the rest."""
    held = ""
    for line in source:
        if held or _ERROR.search(line):
            held += line
        else:
            to.write(line)
            to.flush()
    return held
