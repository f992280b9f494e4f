"""Run the kernels of tests/golden/ptx on a GPU, and say which leave something else than they say.

`python scripts/capture/golden_ptx.py [KERNEL.ptx]` needs an NVIDIA driver and NumPy, and nothing of
cutrace. Each kernel runs in a process of its own, since a fault spoils the driver for good. Left
out are kernels with textures or surfaces, those that have to fail, and what the driver's assembler
refuses for this GPU, which is named.
"""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from driver import Gpu

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from ptx.ptx_golden import Golden, read_golden  # noqa: E402

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


def try_one(path: Path) -> None:
    """Run one kernel and print what is wrong with it, or that it is equal."""
    text = path.read_text()
    try:
        wrong = leaves(Gpu(), text, read_golden(text))
    except OSError as refusal:
        wrong = [str(refusal)]
    print("; ".join(wrong) or "equal")


def main() -> None:
    """Run them all, or the one that is named."""
    if len(sys.argv) > 1:
        try_one(Path(sys.argv[1]))
        return
    for path in sorted((ROOT / "tests" / "golden" / "ptx").glob("*/*.ptx")):
        text = path.read_text()
        if read_golden(text).fault or re.search(r"^// (texture|surface) ", text, re.MULTILINE):
            continue
        command = [sys.executable, __file__, str(path)]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60)
        print(f"{path.parent.name}/{path.stem}: {(said.stdout or said.stderr).strip()}", flush=True)


if __name__ == "__main__":
    main()
