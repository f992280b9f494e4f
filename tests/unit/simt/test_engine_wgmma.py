"""`wgmma`: four warps multiply matrices that descriptors find in shared memory."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import CutraceError, KernelFault

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 image[];
.visible .entry k(.param .u64 images, .param .u64 c, .param .u64 d)
{
.reg .b64 %p<4>; .reg .b64 %qa; .reg .b64 %qb; .reg .b32 %r<12>; .reg .b32 %d<128>;
.reg .pred %c<4>;
ld.param.u64 %p0, [images]; ld.param.u64 %p1, [c]; ld.param.u64 %p2, [d];
mov.u32 %r0, %tid.x; shl.b32 %r3, %r0, 4; mov.u32 %r4, %r3;
FILL: cvt.u64.u32 %p3, %r4; add.u64 %p3, %p0, %p3;
ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%p3]; st.shared.v4.b32 [%r4], {%r5, %r6, %r7, %r8};
add.u32 %r4, %r4, 2048; setp.lt.u32 %c0, %r4, 32768; @%c0 bra FILL;
fence.proxy.async.shared::cta; bar.sync 0;
"""


def multiply(
    mnemonic: str, image: NDArray[Any], descriptors: tuple[int, int], c: NDArray[Any],
    more: str = ", 1, 1, 1, 0, 0", fence: str = "wgmma.fence.sync.aligned;",
) -> NDArray[Any]:  # fmt: skip
    """Run one wgmma over an image of shared memory; `c` (threads, registers) are accumulators."""
    count = c.shape[1]
    registers = ", ".join(f"%d{k}" for k in range(count))
    lines = [HEAD, f"mul.wide.u32 %p3, %r0, {4 * count}; add.u64 %p1, %p1, %p3;"]
    lines += ["add.u64 %p2, %p2, %p3;"]
    lines += [f"ld.global.b32 %d{k}, [%p1+{4 * k}];" for k in range(count)]
    lines += [f"mov.b64 %qa, {descriptors[0]}; mov.b64 %qb, {descriptors[1]};", fence]
    lines += [f"{mnemonic} {{{registers}}}, %qa, %qb{more};", "wgmma.commit_group.sync.aligned;"]
    lines += ["wgmma.wait_group.sync.aligned 0;"]
    lines += [f"st.global.b32 [%p2+{4 * k}], %d{k};" for k in range(count)]
    with cutrace.Session() as gpu:
        module = gpu.load_ptx("\n".join([*lines, "ret;\n}\n"]))
        given = [gpu.to_device(each) for each in (image, c)]
        out = gpu.device_array(c.shape, np.uint32)
        module.get_function("k")[1, len(c), 0, 32768](*given, out)
        return out.copy_to_host()


def descriptor(start: int, leading: int, stride: int, swizzle: int = 0) -> int:
    return start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | swizzle << 62


def matrix_of(registers: NDArray[Any], columns: int) -> NDArray[Any]:
    """D (64, columns) of what each of 128 threads holds (PTX ISA, figure of wgmma's D)."""
    found = np.zeros((64, columns), registers.dtype)
    for thread in range(128):
        for k in range(columns // 2):
            row = 16 * (thread // 32) + thread % 32 // 4 + 8 * (k % 4 // 2)
            found[row, 8 * (k // 4) + 2 * (thread % 4) + k % 2] = registers[thread, k]
    return found


def place_rows(image: NDArray[np.uint8], start: int, rows: NDArray[Any], swizzle: int) -> None:
    """Rows as a tensor map writes them: as wide as the swizzle, chunks exchanged."""
    data = rows.view(np.uint8).reshape(len(rows), -1)
    for row, bytes_ in enumerate(data):
        for chunk in range(data.shape[1] // 16):
            at = start + row * data.shape[1] + 16 * chunk
            at ^= (at >> 7 & (0, 7, 3, 1)[swizzle]) << 4
            image[at : at + 16] = bytes_[16 * chunk : 16 * chunk + 16]


@pytest.mark.parametrize(("swizzle", "width"), [(1, 128), (2, 64), (3, 32)])
@pytest.mark.parametrize("step", [0, 1])
def test_swizzled_rows_of_halves_give_the_product(swizzle: int, width: int, step: int) -> None:
    rng = np.random.default_rng(swizzle)
    a = rng.integers(-4, 5, (64, width // 2)).astype(np.float16)
    b = rng.integers(-4, 5, (24, width // 2)).astype(np.float16)
    c = rng.integers(-9, 9, (128, 12)).astype(np.float32)
    image = np.zeros(32768, np.uint8)
    place_rows(image, 0, a, swizzle)
    place_rows(image, 16384, b, swizzle)
    k = step * 16 % (width // 2)
    descriptors = (
        descriptor(2 * k, 16, 8 * width, swizzle),
        descriptor(16384 + 2 * k, 16, 8 * width, swizzle),
    )
    found = multiply("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16", image, descriptors,
                     c.view(np.uint32))  # fmt: skip
    wanted = a[:, k : k + 16].astype(np.float64) @ b[:, k : k + 16].T + matrix_of(c, 24)
    assert matrix_of(found.view(np.float32), 24).tolist() == wanted.tolist()


def test_columns_side_by_side_are_read_turned() -> None:
    rng = np.random.default_rng(7)
    a = rng.integers(-4, 5, (16, 64)).astype(np.float16)  # each row one k, 64 rows of A
    b = rng.integers(-4, 5, (16, 64)).astype(np.float16)
    image = np.zeros(32768, np.uint8)
    place_rows(image, 0, a, 1)
    place_rows(image, 16384, b, 1)
    descriptors = descriptor(0, 0, 1024, 1), descriptor(16384, 0, 1024, 1)
    found = multiply("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", image, descriptors,
                     np.zeros((128, 32), np.uint32), ", 1, 1, -1, 1, 1")  # fmt: skip
    wanted = -(a.astype(np.float64).T @ b)
    assert matrix_of(found.view(np.float32), 64).tolist() == wanted.tolist()


def test_bytes_saturate_and_nothing_is_added_where_the_scale_is_false() -> None:
    rng = np.random.default_rng(8)
    a = rng.integers(-128, 128, (64, 32)).astype(np.int8)
    b = rng.integers(0, 256, (8, 32)).astype(np.uint8)
    image = np.zeros(32768, np.uint8)
    place_rows(image, 0, a, 3)
    place_rows(image, 16384, b, 3)
    c = np.full((128, 4), 2**31 - 1, np.uint32)
    descriptors = descriptor(0, 16, 256, 3), descriptor(16384, 16, 256, 3)
    name = "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8"
    product = a.astype(np.int64) @ b.T.astype(np.int64)
    wrapped = multiply(name, image, descriptors, c, ", 1")
    assert (matrix_of(wrapped.view(np.int32), 8) == (product + 2**31 - 1).astype(np.int32)).all()
    name = "wgmma.mma_async.sync.aligned.m64n8k32.s32.satfinite.s8.u8"
    clamped = multiply(name, image, descriptors, c, ", 1")
    wanted = np.minimum(product + 2**31 - 1, 2**31 - 1)
    assert matrix_of(clamped.view(np.int32), 8).tolist() == wanted.tolist()
    alone = multiply(name, image, descriptors, c, ", 0")
    assert matrix_of(alone.view(np.int32), 8).tolist() == product.tolist()


HALVES = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"


def test_without_a_fence_before_it_it_is_a_fault() -> None:
    with pytest.raises(KernelFault, match=r"warp 0 of block 0 multiplies without a `wgmma\.fence`"):
        multiply(HALVES, np.zeros(32768, "u1"), (0, 0), np.zeros((128, 4), "u4"), fence="")


def test_a_descriptor_that_reaches_beyond_the_block_is_a_fault() -> None:
    descriptors = descriptor(32768 - 256, 128, 256), descriptor(0, 128, 256)
    with pytest.raises(KernelFault, match=r"descriptor of a factor.*and the block has 32768 bytes"):
        multiply(HALVES, np.zeros(32768, "u1"), descriptors, np.zeros((128, 4), "u4"))


def test_a_shape_that_does_not_exist_is_refused() -> None:
    name = "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16"
    with pytest.raises(CutraceError, match="does not know this shape or type of wgmma"):
        multiply(name, np.zeros(32768, "u1"), (0, 0), np.zeros((128, 6), "u4"))
