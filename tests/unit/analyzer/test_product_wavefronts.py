"""Wavefronts of shared memory that read the operands of a warpgroup's products."""

from pathlib import Path

import numpy as np
import pytest

import cutrace

KERNEL = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry multiply(.param .u64 unused)
{{
    .reg .f32 %d<128>;
    .reg .b32 %a<4>;
    .reg .b64 %q;
    .shared .align 1024 .b8 image[16384];
    mov.b64 %q, 0;
    wgmma.fence.sync.aligned;
    {product}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    ret;
}}
"""


# Nsight Compute's memory_l1_wavefronts_shared on an H100, over the products of a launch: kernels
# of ThunderKittens (64 and 256 columns), DeepGEMM (128) and FlashAttention 3 (the others)
@pytest.mark.parametrize(
    ("a", "columns", "wavefronts"),
    [
        *[("%q", 64, 32), ("%q", 128, 48), ("%q", 192, 64), ("%q", 256, 80), ("%q", 16, 20)],
        *[("{%a0, %a1, %a2, %a3}", 64, 16), ("{%a0, %a1, %a2, %a3}", 128, 32)],
    ],
)
def test_each_operand_in_shared_memory_is_read_once(
    a: str, columns: int, wavefronts: int, tmp_path: Path
) -> None:
    results = ", ".join(f"%d{n}" for n in range(columns // 2))
    turns = "1, 1, 1, 0, 0" if a == "%q" else "1, 1, 1, 0"
    product = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16"
    text = KERNEL.format(product=f"{product} {{{results}}}, {a}, %q, {turns};")
    with cutrace.Session(tmp_path / "product.cutrace") as gpu:
        kernel = gpu.load_ptx(text).get_function("multiply")
        kernel[(3, 1), 256](gpu.to_device(np.zeros(1, np.int32)))
    (launch,) = cutrace.analyze(tmp_path / "product.cutrace", device="h100").launches
    for end in ("", "_ideal"):
        assert launch.counters[f"memory_l1_wavefronts_shared{end}"] == 3 * 2 * wavefronts
    assert launch.counters["derived__memory_l1_wavefronts_shared_excessive"] == 0
