"""Seconds of a product of matrices in simulators of Python's packages, and recorded by cutrace.

python scripts/measure/python_simulators.py numba|triton [N]

The kernel multiplies matrices of N times N numbers by tiles of 16 x 16; its second launch counts.
Both check the product. Numba has a simulator of its own; what triton-viz draws is what Triton's
interpreter does, which is measured without it.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

NUMBA = """
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


TRITON = """
import sys, time
import torch, triton
import triton.language as tl

@triton.jit
def product(a, b, c, n: tl.constexpr, tile: tl.constexpr):
    y = tl.program_id(1) * tile + tl.arange(0, tile)
    x = tl.program_id(0) * tile + tl.arange(0, tile)
    total = tl.zeros((tile, tile), tl.float32)
    for first in range(0, n, tile):
        k = first + tl.arange(0, tile)
        left = tl.load(a + y[:, None] * n + k[None, :])
        total += tl.dot(left, tl.load(b + k[:, None] * n + x[None, :]), input_precision="ieee")
    tl.store(c + y[:, None] * n + x[None, :], total)

n = int(sys.argv[1])
a = torch.arange(n * n, dtype=torch.float32).reshape(n, n) % 7
c = torch.empty_like(a)
for _ in range(2):  # the first time it is compiled
    start = time.perf_counter()
    product[(n // 16, n // 16)](a, a, c, n, 16)
    taken = time.perf_counter() - start
assert (c == a @ a).all()
print(taken)
"""

KINDS = {
    "numba": (NUMBA, {"NUMBA_ENABLE_CUDASIM": "1"}),
    "triton": (TRITON, {"TRITON_INTERPRET": "1"}),
}
"""Scripts, and the environment in which they are simulated."""


def main() -> None:
    """Run both, one after the other."""
    kind, size = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "128"
    text, environment = KINDS[kind]
    with tempfile.TemporaryDirectory(prefix="cutrace-") as folder:
        script = Path(folder, "product.py")
        script.write_text(text)
        simulated = _seconds([str(script), size], environment, folder)
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
