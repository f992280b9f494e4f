"""PyCUDA compiles by nvcc: by the one that cutrace has, to PTX, with lines.

The source lies in a file of the cache, by which PTX names its lines.
"""

import hashlib
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def compile_to_ptx(compiler: Any) -> None:
    """Let `pycuda.compiler` make PTX of a source, where it would make machine code."""

    def compile_plain(
        source: object, options: Sequence[str], keep: bool, nvcc: str, cache_dir: object,
        target: str = "cubin",
    ) -> bytes:  # fmt: skip
        from pycuda.driver import CompileError

        text = str(source)
        folder = Path(os.environ["CUTRACE_SOURCES"], hashlib.sha256(text.encode()).hexdigest()[:16])
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "kernel.cu"
        path.write_text(text)
        with TemporaryDirectory() as place:
            made = Path(place, "kernel.ptx")
            command = [*_nvcc(), "--ptx", *options, "-o", str(made), str(path)]
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", env=_environment()
            )
            if done.returncode:
                said = f"nvcc compilation of {path} failed"
                raise CompileError(said, command, stdout=done.stdout, stderr=done.stderr)
            return made.read_bytes()

    compiler.compile_plain = compile_plain
    add_library = compiler.DynamicModule.add_stdlib

    def add_own(self: Any, library: str) -> Any:
        """Functions by which kernels launch kernels are there; no file of CUDA's has them here."""
        return self if library == "cudadevrt" else add_library(self, library)

    compiler.DynamicModule.add_stdlib = add_own


def _nvcc() -> list[str]:
    return [os.environ["CUTRACE_PYTHON"], "-m", "cutrace", "nvcc"]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


CHANGES: dict[str, Callable[[Any], None]] = {"pycuda.compiler": compile_to_ptx}
