"""Run sparse products of warpgroups on a GPU of compute capability 9.0, and keep what they leave.

`python scripts/capture/sparse_wgmma.py [OUT.npz]` needs CuPy. It runs the cases of
tests/validate/sparse_wgmma.npz again, and writes the file with the results.
"""

import sys
import tempfile
from pathlib import Path

import cupy
import numpy as np

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests/validate/sparse_wgmma.npz"
sys.path.insert(0, str(ROOT / "tests"))

from cases.sparse_wgmma_kernel import kernel_of  # noqa: E402


def main() -> None:
    """Run all cases."""
    cases = dict(np.load(CASES))
    unused = cupy.zeros(512, np.uint32)
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(cases["names"]):
            path = Path(folder, f"{name}.ptx")
            path.write_text(kernel_of(str(name)))
            run = cupy.RawModule(path=str(path)).get_function("k")
            result = cupy.zeros(512, np.uint32)
            given = (cupy.asarray(cases[key][number]) for key in ("images", "metadata"))
            image, metadata = given
            run((1,), (128,), (image, unused, metadata, result))
            cases["results"][number] = cupy.asnumpy(result)
    np.savez_compressed(sys.argv[1] if len(sys.argv) > 1 else CASES, **cases)


if __name__ == "__main__":
    main()
