"""Advice by counts, where too many accesses were recorded to be read for the first screen."""

from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.analyzer.advice import advise
from cutrace.commands._main import run

N = 64
SOURCE = """
extern "C" __global__ void product(float *c, const float *a, const float *b, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}
extern "C" __global__ void copy(float *c, const float *a, const float *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i];
}
"""


@pytest.mark.parametrize(("kernel", "grid", "block"), [("product", (4, 4), (16, 16)),
                                                       ("copy", 16, 256)])  # fmt: skip
def test_a_large_product_is_told_to_use_a_tile_and_a_copy_is_not(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kernel: str,
    grid: object,
    block: object,
) -> None:
    path = tmp_path / "t.cutrace"
    with cutrace.Session(path) as gpu:
        arrays = [gpu.to_device(np.ones((N, N), np.float32), name=name) for name in "cab"]
        gpu.compile(SOURCE).get_function(kernel)[grid, block](*arrays, N)
    monkeypatch.setattr(advise, "ROWS", 0)
    run(["analyze", str(path), "-d", "h100"])
    told = " ".join(capsys.readouterr().out.split())
    if kernel == "copy":
        assert "a tile" not in told
        return
    asked, read = 2 * 4 * N**3, 2 * 4 * N**2  # two words for each step, of two arrays
    assert "fix let each block bring a tile into shared memory once" in told
    assert "finding source.cu:7: loads ask for" in told
    assert (
        f"loads ask for {asked / 1e6:.3g} MB, {asked // read} times what memory hands out" in told
    )
