"""`wgmma.mma_async.sp` against sums of the numbers that its metadata names."""

from typing import Any

import numpy as np
import pytest
from cases.sparse_wgmma_kernel import kernel
from numpy.typing import NDArray
from ptx.ptx_run import run_kernel


def chunks(matrix: NDArray[Any], row_bytes: int) -> NDArray[np.uint8]:
    """A matrix as its descriptor has it: chunk by chunk of eight rows."""
    octets = np.ascontiguousarray(matrix).view(np.uint8).reshape(-1, 8, row_bytes // 16, 16)
    return octets.swapaxes(1, 2).reshape(-1)


def whole(stored: NDArray[Any], codes: NDArray[np.int64]) -> NDArray[Any]:
    """The sparse matrix (64, K): codes (64, K / 4) say where the two of each four columns are."""
    out = np.zeros((64, 2 * stored.shape[1]), stored.dtype)
    for row in range(64):
        for group, code in enumerate(codes[row]):
            for place in range(2):
                column = 4 * group + (int(code) >> 2 * place & 3)
                out[row, column] = stored[row, 2 * group + place]
    return out


CODES = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110])


def metadata(codes: NDArray[np.int64], selector: int) -> NDArray[np.uint32]:
    """The register of each of 128 threads: 16 rows a warp; 16 bits of two rows, or 32 of one."""
    out = np.full(128, 0xEEEEEEEE, np.uint32)
    for row in range(64):
        warp, local = divmod(row, 16)
        for group in range(codes.shape[1]):
            if codes.shape[1] == 8:
                lane, shift = 2 * selector + group // 4, 4 * (group % 4) + 16 * (local // 8)
            else:
                lane, shift = local // 8 + 2 * (group // 8), 4 * (group % 8)
            at = 32 * warp + 4 * (local % 8) + lane
            kept = int(out[at]) & ~(15 << shift)
            out[at] = kept | int(codes[row, group]) << shift
    return out


def fragments(stored: NDArray[Any]) -> NDArray[np.uint32]:
    """A in registers (128, 4): the layout of `mma.m16n8` for each 16 rows."""
    words = np.ascontiguousarray(stored).view(np.uint32).reshape(64, 8)
    out = np.zeros((128, 4), np.uint32)
    for thread in range(128):
        row, quad = 16 * (thread // 32) + thread % 32 // 4, thread % 4
        for register in range(4):
            out[thread, register] = words[row + 8 * (register % 2), quad + 4 * (register // 2)]
    return out


def unpacked(d: NDArray[Any]) -> NDArray[Any]:
    """D (64, 8) from the registers of 128 threads."""
    out = np.zeros((64, 8), d.dtype)
    for thread in range(128):
        row, column = 16 * (thread // 32) + thread % 32 // 4, 2 * (thread % 4)
        for register in range(4):
            out[row + 8 * (register // 2), column + register % 2] = d[4 * thread + register]
    return out


@pytest.mark.parametrize("from_registers", [False, True])
@pytest.mark.parametrize("selector", [0, 1])
def test_f16_with_metadata_in_two_threads_of_a_quad(selector: int, from_registers: bool) -> None:
    rng = np.random.default_rng(selector)
    stored = rng.integers(-8, 9, (64, 16)).astype(np.float16)
    b = rng.integers(-8, 9, (8, 32)).astype(np.float16)  # its columns; sums are exact
    codes = CODES[rng.integers(0, len(CODES), (64, 8))]
    tail = f"{selector}, 0, 1, 1" + (", 0" if from_registers else ", 0, 0")
    form = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16"
    image = np.concatenate([chunks(stored, 32), chunks(b, 64)])
    text = kernel(form, tail, from_registers, "f32")
    out = np.zeros(512, np.float32)
    arrays = [image.view(np.uint32), fragments(stored).reshape(-1), metadata(codes, selector), out]
    found = unpacked(run_kernel(text, "k", 128, arrays)[-1])
    wanted = whole(stored.astype(np.float64), codes) @ b.astype(np.float64).T
    assert found.tolist() == wanted.tolist()


def test_bytes_with_metadata_in_all_threads_of_a_quad() -> None:
    rng = np.random.default_rng(3)
    stored = rng.integers(-128, 128, (64, 32)).astype(np.int8)
    b = rng.integers(0, 256, (8, 64)).astype(np.uint8)
    codes = CODES[rng.integers(0, len(CODES), (64, 16))]
    form = "wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.u8"
    text = kernel(form, "0, 0", False, "b32")
    image = np.concatenate([chunks(stored, 32), chunks(b, 64)])
    out = np.zeros(512, np.int32)
    arrays = [image.view(np.uint32), np.zeros(512, np.uint32), metadata(codes, 0), out]
    found = unpacked(run_kernel(text, "k", 128, arrays)[-1])
    wanted = whole(stored.astype(np.int64), codes) @ b.astype(np.int64).T
    assert found.tolist() == wanted.tolist()
