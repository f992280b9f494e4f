"""CUDA C to PTX, without contraction of products and sums: by NVRTC, or by an nvcc."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz.cuda.batch import Source, cuda_text

from cutrace.tracer.front import nvrtc

TARGET = "compute_90"


class NotC(Exception):
    """A compiler refuses the text: a reducer took away too much, or the generator errs."""


def to_ptx(kernels: Sequence[Source], nvcc: str = "") -> str:
    """The PTX of some kernels; `nvcc` is the path of one, "" asks NVRTC."""
    text = cuda_text(kernels)
    return _by_nvcc(text, nvcc) if nvcc else _by_nvrtc(text)


def _by_nvrtc(text: str) -> str:
    outcome = nvrtc.compile_program(text, "kernels.cu", TARGET, ("--fmad=false", "-w"))
    if outcome.ptx is None:
        raise NotC(f"NVRTC: {outcome.log[:3000]}")
    return outcome.ptx


def _by_nvcc(text: str, nvcc: str) -> str:
    with TemporaryDirectory(prefix="fuzz") as folder:
        source, ptx = Path(folder) / "kernels.cu", Path(folder) / "kernels.ptx"
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [nvcc, "-ptx", f"-arch={TARGET}", "--fmad=false", "-w", "-o", ptx, source],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            raise NotC(f"nvcc: {done.stderr[:3000]}")
        return ptx.read_text(encoding="utf-8")
