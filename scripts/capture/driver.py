"""NVIDIA's driver through its C functions, for the programs that capture what a GPU does.

Needs nothing but NumPy and the driver.
"""

import ctypes
import subprocess
from typing import Any

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
MEMORY = 1 << 24
_OPTIMIZATION_LEVEL = 7
"""CUjit_option, in cuda.h."""


class Gpu:
    """The first GPU, through the driver's C functions."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        name = ctypes.create_string_buffer(99)
        self._device = ctypes.c_int()
        self("cuDeviceGet", ctypes.byref(self._device), 0)
        self("cuDeviceGetName", name, 99, self._device)
        self.name = name.value.decode()
        self.memory = 0
        self._start()

    def start_over(self) -> None:
        """Make a new context after a fault, which spoils the old one for good."""
        self("cuDevicePrimaryCtxReset_v2", self._device)
        self._start()

    def _start(self) -> None:
        context, memory = ctypes.c_void_p(), ctypes.c_uint64()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self("cuCtxSetCurrent", context)
        self("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(MEMORY))
        self.memory = memory.value

    def __call__(self, function: str, *arguments: Any) -> None:
        status = getattr(self._cuda, function)(*arguments)
        if status:
            raise OSError(status, f"{function} failed with status {status}")

    def load(self, ptx: str, level: int = 4) -> ctypes.c_void_p:
        """Assemble PTX, optimized so far (0 to 4); OSError if the driver refuses it."""
        module, text = ctypes.c_void_p(), ptx.encode() + b"\0"
        option, value = ctypes.c_int(_OPTIMIZATION_LEVEL), ctypes.c_void_p(level)
        given = (ctypes.byref(option), ctypes.byref(value))
        self("cuModuleLoadDataEx", ctypes.byref(module), text, 1, *given)
        return module

    def read(self, start: int, size: int) -> bytes:
        """Copy bytes of device memory back."""
        into = ctypes.create_string_buffer(size)
        self("cuMemcpyDtoH_v2", into, ctypes.c_uint64(self.memory + start), ctypes.c_size_t(size))
        return into.raw


def driver_version() -> str:
    """Return the driver's version as its own tool prints it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]
