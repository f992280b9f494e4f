"""Run the kernels of tests/golden/ptx on a GPU, and say which leave something else than they say.

`python scripts/golden_on_gpu.py` needs an NVIDIA driver and NumPy, and nothing of cutrace. Left out
are kernels with textures or surfaces, those that have to fail, and what the driver's assembler
refuses for this GPU, which is named.
"""

import ctypes
import re
import sys
from pathlib import Path

import numpy as np
from driver import Gpu

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from ptx_golden import Golden, read_golden  # noqa: E402

ALIGN = 256


def leaves(gpu: Gpu, text: str, case: Golden) -> list[str]:
    """Run a kernel; return a line for each array that is not as it should be."""
    module, kernel = gpu.load(text), ctypes.c_void_p()
    gpu("cuModuleGetFunction", ctypes.byref(kernel), module, case.name.encode())
    arrays = [*case.sources, *(np.zeros_like(a) for a in case.wanted)]
    places, end = [], 0
    for array in arrays:
        places.append(end)
        start = ctypes.c_uint64(gpu.memory + end)
        gpu("cuMemcpyHtoD_v2", start, array.tobytes(), ctypes.c_size_t(array.nbytes))
        end += -(-array.nbytes // ALIGN) * ALIGN
    given = [ctypes.c_uint64(gpu.memory + place) for place in places]
    pointers = (ctypes.c_void_p * len(given))(*(ctypes.addressof(g) for g in given))
    gpu("cuLaunchKernel", kernel, 1, 1, 1, case.block, 1, 1, 0, None, pointers, None)
    gpu("cuCtxSynchronize")
    wrong = []
    results = list(zip(arrays, places, strict=True))[len(case.sources) :]
    for number, ((array, place), wanted) in enumerate(zip(results, case.wanted, strict=True)):
        found = np.frombuffer(gpu.read(place, array.nbytes), array.dtype)
        if found.tolist() != wanted.tolist():
            at = int(np.flatnonzero(found != wanted)[0])
            wrong.append(f"result {number} at {at}: {found[at]} here, {wanted[at]} in the case")
    gpu("cuModuleUnload", module)
    return wrong


def main() -> None:
    """Run them all."""
    gpu, equal = Gpu(), 0
    for path in sorted((ROOT / "tests" / "golden" / "ptx").glob("*/*.ptx")):
        text, name = path.read_text(), f"{path.parent.name}/{path.stem}"
        case = read_golden(text)
        if case.fault or re.search(r"^// (texture|surface) ", text, re.MULTILINE):
            continue
        try:
            wrong = leaves(gpu, text, case)
        except OSError as refusal:
            print(f"{name}: {refusal}")
            gpu.start_over()
            continue
        equal += not wrong
        for line in wrong:
            print(f"{name}: {line}")
    print(f"{equal} kernels leave on {gpu.name} what they say")


if __name__ == "__main__":
    main()
