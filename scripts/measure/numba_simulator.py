"""Seconds of a kernel of Numba in Numba's own simulator, and recorded by cutrace.

python scripts/measure/numba_simulator.py [N]

The kernel multiplies matrices of N times N numbers by tiles in shared memory; its second launch
counts. Both check the product.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = """
import sys, time
import numpy as np
from numba import cuda, float32

@cuda.jit
def product(a, b, c):
    left = cuda.shared.array((16, 16), float32)
    right = cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for tile in range(a.shape[1] // 16):
        left[ty, tx] = a[y, tx + tile * 16]
        right[ty, tx] = b[ty + tile * 16, x]
        cuda.syncthreads()
        for k in range(16):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    c[y, x] = total

n = int(sys.argv[1])
a = np.arange(n * n, dtype=np.float32).reshape(n, n) % 7
given, made = cuda.to_device(a), cuda.device_array((n, n), np.float32)
for _ in range(2):  # the first time it is compiled
    start = time.perf_counter()
    product[(n // 16, n // 16), (16, 16)](given, given, made)
    cuda.synchronize()
assert (made.copy_to_host() == a @ a).all()
print(time.perf_counter() - start)
"""


def main() -> None:
    """Run both, one after the other."""
    size = sys.argv[1] if len(sys.argv) > 1 else "128"
    with tempfile.TemporaryDirectory(prefix="cutrace-") as folder:
        script = Path(folder, "product.py")
        script.write_text(SCRIPT)
        simulated = _seconds([str(script), size], {"NUMBA_ENABLE_CUDASIM": "1"}, folder)
        recorded = _seconds(["-m", "cutrace", "record", str(script), size], {}, folder)
    print(f"{size} x {size}: simulator {simulated:.2f} s, cutrace {recorded:.4f} s with its trace,")
    print(f"{simulated / recorded:.0f} times as fast")


def _seconds(words: list[str], more: dict[str, str], folder: str) -> float:
    environment = {**os.environ, **more, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, *words], env=environment, cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(done.stderr)
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    main()
