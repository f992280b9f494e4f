"""Boxes of tensor maps that an H200 loaded and stored: their maps, and what memory held."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cutrace.tracer.simt.tma.tensor_map import IM2COL, TensorMap

SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
"""Bytes of an element by CUtensorMapDataType."""


@dataclass(frozen=True)
class BoxCase:
    """A map, where its box begins and lies in shared memory; `operation` is a store's."""

    tensor: TensorMap
    corner: tuple[int, ...]
    at: int = 0
    offsets: tuple[int, ...] = ()
    operation: str = ""

    def memory(self) -> NDArray[np.uint8]:
        """The tensor's bytes: random ones, but no floats that are infinite or NaN."""
        tensor = self.tensor
        strides = tensor.strides or (tensor.extents[0] * tensor.size,)
        rows = tensor.extents[-1] if tensor.strides else 1
        size = -(-(strides[-1] * rows + 64) // 8)
        bits = np.asarray(np.random.PCG64(9).random_raw(size), dtype=np.uint64)
        if tensor.element in (6, 9):
            return (bits.view(np.uint16) & np.uint16(0xBFFF)).view(np.uint8)
        if tensor.element in (7, 10, 11, 12):
            return (bits.view(np.uint32) & np.uint32(0xBFFF_FFFF)).view(np.uint8)
        return bits.view(np.uint8)


def tiled(
    element: int, extents: tuple[int, ...], box: tuple[int, ...], corner: tuple[int, ...],
    steps: tuple[int, ...] = (), at: int = 0, operation: str = "", **more: Any,
) -> BoxCase:  # fmt: skip
    """A box whose innermost coordinate is made a multiple of 16 bytes, as it has to be."""
    stride, strides = extents[0] * SIZES[element], []
    for extent in extents[1:]:
        stride = -(-stride // 16) * 16
        strides.append(stride)
        stride *= extent
    steps = steps or (1,) * len(extents)
    tensor = TensorMap(0, 0, element, extents, tuple(strides), box, steps, **more)
    unit = 16 // SIZES[element]
    return BoxCase(tensor, (corner[0] // unit * unit, *corner[1:]), at, (), operation)


def im2col(
    extents: tuple[int, ...], corners: tuple[tuple[int, ...], tuple[int, ...]], channels: int,
    pixels: int, corner: tuple[int, ...], offsets: tuple[int, ...], steps: tuple[int, ...] = (),
    **more: Any,
) -> BoxCase:  # fmt: skip
    """Pixels of an image of halves."""
    plain = tiled(6, extents, extents, corner, steps)
    tensor = replace(plain.tensor, kind=IM2COL, box=(0,) * len(extents), lower=corners[0],
                     upper=corners[1], channels=channels, pixels=pixels, **more)  # fmt: skip
    return replace(plain, tensor=tensor, offsets=offsets)


def _loads() -> list[BoxCase]:
    found = []
    for swizzle, span in enumerate((256, 32, 64, 128)):
        for inner in sorted({16, 32, 64, span}):
            for at in (0, 128, 512, 896) if inner <= span else ():
                box = (inner // 2, 12)
                found.append(tiled(6, (200, 40), box, (3, 2), at=at, swizzle=swizzle))
    for element, size in enumerate(SIZES):
        width, fills = 32 // size, element >= 6
        extents = (4 * width, 20)
        found.append(tiled(element, extents, (width, 8), (-3, -2), fills_nan=fills))
        found.append(tiled(element, extents, (width, 8), (4 * width - 2, 15), swizzle=1))
    found += [
        tiled(0, (1000,), (256,), (900,)),
        tiled(7, (1000,), (64,), (-5,)),
        tiled(6, (32, 9, 7), (32, 4, 3), (1, -1, 5), swizzle=2),
        tiled(6, (32, 9, 7), (32, 5, 3), (0, 2, 1), (1, 2, 2)),
        tiled(6, (32, 9, 7, 5), (16, 4, 3, 2), (1, -1, 5, 4)),
        tiled(6, (16, 9, 7, 5), (16, 7, 3, 5), (0, 1, 0, 0), (1, 3, 1, 2), swizzle=1),
        tiled(7, (8, 6, 5, 4, 3), (8, 3, 2, 2, 2), (0, 4, 3, 1, -1)),
        tiled(7, (8, 6, 5, 4, 3), (8, 6, 5, 4, 3), (1, 0, 0, 1, 0), (1, 2, 2, 3, 1)),
        tiled(6, (64, 40), (64, 8), (0, 3), (2, 1)),
        tiled(6, (64, 40), (32, 8), (1, 3), (1, 5)),
        tiled(6, (64, 40), (32, 7), (1, -3), (1, 2)),
    ]
    return found


def _images() -> list[BoxCase]:
    line, plane = ((-1,), (-1,)), ((-1, -1), (-1, -1))
    deep = ((-1, -1, -1), (-1, -1, -1))
    wide, tall = (16, 9, 3), (16, 9, 7, 3)
    return [
        im2col(wide, line, 16, 8, (0, -1, 0), (0,)),
        im2col(wide, line, 16, 24, (0, -1, 0), (2,)),
        im2col((32, 9, 3), ((0,), (-2,)), 16, 13, (8, 3, 1), (1,)),
        im2col(tall, plane, 16, 40, (0, -1, -1, 0), (0, 0)),
        im2col(tall, plane, 16, 40, (0, 3, 2, 0), (2, 1), swizzle=1),
        im2col(tall, plane, 16, 40, (0, -1, -1, 1), (1, 2), (1, 2, 2, 1)),
        im2col(tall, ((0, 0), (0, 0)), 8, 100, (4, 5, 6, 1), (0, 0)),
        im2col((16, 5, 4, 4, 3), deep, 16, 60, (0, -1, 0, 1, 0), (1, 0, 2)),
        im2col(tall, ((-2, -1), (1, -2)), 16, 50, (0, -2, -1, 0), (3, 1), fills_nan=True),
        im2col(tall, plane, 16, 30, (0, 0, 0, 0), (0, 0), (1, 3, 2, 1)),
    ]


_REDUCTIONS = (
    *(("add", 3), ("add", 6), ("add", 7), ("add", 9), ("add", 4), ("min", 3), ("max", 6)),
    *(("min", 9), ("max", 5), ("inc", 2), ("dec", 2), ("and", 2), ("or", 4), ("xor", 0)),
    *(("xor", 2), ("add", 8), ("add", 10), ("min", 1)),
)

INTERLEAVED = 4
"""Cases between the boxes and the images that had interleaved layouts, which are left out."""

BOXES = _loads()
LOADS = {f"load{k}": case for k, case in enumerate(BOXES)} | {
    f"load{len(BOXES) + INTERLEAVED + k}": case for k, case in enumerate(_images())
}
STORES = {
    f"store{k}": case
    for k, case in enumerate(
        [
            tiled(6, (200, 40), (32, 12), (3, 2), at=256, swizzle=2),
            tiled(7, (40, 20), (8, 8), (-3, -2)),
            tiled(7, (40, 20), (32, 8), (20, 15), at=1024, swizzle=3),
            tiled(6, (32, 9, 7), (32, 4, 3), (1, -1, 5)),
            tiled(6, (64, 40), (32, 7), (1, -3), (1, 2)),
            *(
                tiled(element, (4 * (32 // SIZES[element]), 20), (32 // SIZES[element], 8), (2, 14),
                      operation=operation, swizzle=1)
                for operation, element in _REDUCTIONS
            ),
        ]
    )
}  # fmt: skip
