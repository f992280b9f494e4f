"""Launch bounds as PTX spells them: what the driver says of each kernel, which launches it takes.

python launch_bounds.py KERNELS OUT: KERNELS is tests/validate/launch_bounds.csv, whose first two
columns are read; OUT is written anew in its form. A launch is `.` if it is taken, `V` if it is
CUDA_ERROR_INVALID_VALUE, `C` if it is CUDA_ERROR_INVALID_CLUSTER_SIZE.
"""

import ctypes
import sys
from pathlib import Path
from typing import Any

SHAPES: list[tuple[Any, Any, Any]] = [  # grid, block, cluster
    *(
        ((1, 1, 1), (n, 1, 1), None)
        for n in (1, 32, 33, 64, 127, 128, 129, 256, 512, 1023, 1024, 1025)
    ),
    *(
        ((1, 1, 1), b, None)
        for b in (
            (16, 8, 1),
            (8, 16, 1),
            (8, 4, 4),
            (4, 8, 4),
            (1, 128, 1),
            (1, 1, 64),
            (32, 32, 1),
            (16, 4, 1),
            (17, 4, 1),
            (64, 2, 1),
            (2, 64, 1),
        )
    ),
    *(((g, 1, 1), (128, 1, 1), None) for g in (2, 3, 4, 16)),
    ((2, 2, 1), (128, 1, 1), None),
    ((2, 2, 2), (128, 1, 1), None),
    ((1, 2, 2), (128, 1, 1), None),
    ((4, 4, 4), (64, 2, 1), None),
    *(
        ((g, 1, 1), (128, 1, 1), (c, 1, 1))
        for g, c in (
            (2, 2),
            (4, 2),
            (4, 4),
            (8, 8),
            (16, 16),
            (32, 32),
            (3, 3),
            (3, 2),
            (2, 1),
            (1, 1),
            (2, 0),
        )
    ),
    ((2, 2, 1), (128, 1, 1), (2, 2, 1)),
    ((2, 2, 1), (128, 1, 1), (1, 2, 1)),
    ((1, 2, 2), (128, 1, 1), (1, 2, 2)),
    ((2, 1, 1), (129, 1, 1), (2, 1, 1)),
]
ATTRIBUTES = (0, 10, 11, 12, 13)
"""Of CUfunction_attribute: most threads a block, whether a cluster must be set, and which."""
NON_PORTABLE = 14
STATUS = {0: ".", 1: "V", 912: "C"}
PTX = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k() %s
{
.reg .b32 %%r<4>;
mov.u32 %%r1, %%tid.x;
ret;
}
"""


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
        *(("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)),
    )


def launch(cuda: Any, function: Any, grid: Any, block: Any, cluster: Any) -> str:
    """Launch, in clusters if any are asked for; one letter says how it went."""
    attribute = (ctypes.c_uint * 18)(4, 0, *(cluster or ()))
    place = ctypes.cast(attribute, ctypes.c_void_p)
    config = Config(*grid, *block, 0, None, place, 0 if cluster is None else 1)
    status = cuda.cuLaunchKernelEx(ctypes.byref(config), function, None, None)
    return STATUS.get(status, str(status))


def main(kernels: Path, out: Path) -> None:
    """Ask about every kernel."""
    cuda, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    cuda.cuInit(0)
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(context)
    head, *lines = kernels.read_text().splitlines()
    rows = [head]
    for directives, non_portable in (line.split(";")[:2] for line in lines):
        module, function, value = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        cuda.cuModuleLoadData(ctypes.byref(module), (PTX % directives).encode() + b"\0")
        cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k")
        cuda.cuFuncSetAttribute(function, NON_PORTABLE, int(non_portable))
        values = []
        for number in ATTRIBUTES:
            cuda.cuFuncGetAttribute(ctypes.byref(value), number, function)
            values.append(str(value.value))
        launches = "".join(launch(cuda, function, *shape) for shape in SHAPES)
        cuda.cuCtxSynchronize()
        rows.append(";".join((directives, non_portable, *values, launches)))
    out.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
