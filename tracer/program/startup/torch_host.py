"""Keep torch on the CPU: its own GPU kernels are machine code, which cannot be recorded.

Triton kernels accept its CPU tensors, and ask torch for the compute capability to compile for.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

_MESSAGE = (
    "cutrace: torch runs on the CPU: its built-in CUDA kernels cannot be recorded. Triton kernels"
    " accept the CPU tensors."
)


def keep_on_host(torch: Any) -> None:
    """Make `torch.cuda` report no device, and print the reason at the first query."""
    warnings: list[str] = []

    def is_available() -> bool:
        if not warnings:
            warnings.append(_MESSAGE)
            print(_MESSAGE, file=sys.stderr)
        return False

    torch.cuda.is_available = is_available
    torch.cuda.device_count = lambda: int(is_available())
    torch.cuda.get_device_capability = lambda device=None: _capability()


def _capability() -> tuple[int, int]:
    """Return the compute capability of the device of `-d`."""
    driver = ctypes.CDLL("libcuda.so.1")
    major, minor = ctypes.c_int(), ctypes.c_int()
    driver.cuInit(0)
    driver.cuDeviceComputeCapability(ctypes.byref(major), ctypes.byref(minor), 0)
    return major.value, minor.value


CHANGES: dict[str, Callable[[Any], None]] = {"torch": keep_on_host}
