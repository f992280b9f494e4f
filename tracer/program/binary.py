"""What can be said of a program from its file: why one that was to be recorded could not be."""

from pathlib import Path

from ...errors import CutraceError


def not_recorded(word: str, path: Path | None) -> CutraceError:
    """Why a program that ran to its end never called our library."""
    data = path.read_bytes() if path and path.is_file() else b""
    reason = "nothing was recorded"
    if b"__cudaRegisterFatBinary" in data and b"libcudart.so" not in data:
        reason = (
            "it has NVIDIA's runtime in itself (nvcc's default); build it with `cutrace nvcc`, or "
            "with nvcc's option -cudart shared"
        )
    return CutraceError(f"{word}: it called nothing of CUDA's runtime or driver: {reason}")
