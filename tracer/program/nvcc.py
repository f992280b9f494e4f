"""A run of NVIDIA's compiler: once, or twice for a program that only CUDA 11 and older take."""

import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO

from .missing import advise
from .wire import RUNTIME

_OF_OLDER_CUDA = re.compile(
    r'texture is not a template|identifier "texture" is undefined|cudaDeviceProp\W* has no member'
    r"|\bto\W+cudaMemLocation|Instruction '(vote|shfl)' without '.sync'"
)
"""What nvcc 13, and g++ for a file of host code, say of programs that `older.h` is for."""

_ERROR = re.compile(r"\berror\b", re.IGNORECASE)


def run_nvcc(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run it to its end; what it says is in what is returned."""

    def call(words: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
        )

    answer = call(command)
    if answer.returncode and _OF_OLDER_CUDA.search(answer.stderr + answer.stdout):
        return call(_for_older(command))
    return answer


def show_nvcc(command: Sequence[str]) -> int:
    """Run it and print what it says as it comes; return its exit status.

    From the first error on that waits for the end, when it is known whether a second run follows.
    """
    status, said, complained = _show(command)
    if status and _OF_OLDER_CUDA.search(complained + said):
        status, said, complained = _show(_for_older(command))
    sys.stdout.write(said)
    sys.stderr.write(complained)
    if status and (advice := advise(said + complained)):
        sys.stderr.write(f"cutrace: {advice.lstrip()}\n")
    return status


def _for_older(command: Sequence[str]) -> list[str]:
    return [*command, "-include", str(RUNTIME / "older.h")]


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
