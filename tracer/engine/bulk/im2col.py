"""Boxes of im2col maps: the pixels that a convolution meets, one after another.

The box moves over the pixels between two corners, which the map gives relative to the array's
ends, in steps of the traversal: along W first, then H, then D, then the next image. Offsets of the
instruction are added to the place of each, so that its filter's element is read; pixels out of the
array are filled.
"""

import numpy as np
from numpy.typing import NDArray

from .tensor_map import TensorMap


def pixels_of(
    tensor: TensorMap, corner: tuple[int, ...], offsets: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the global addresses of a box's elements, and which of them are inside.

    `corner` is (channel, w, h, d, image), as many of w, h and d as there are, `offsets` those.
    """
    middle = tensor.rank - 2
    channel = corner[0] + np.arange(tensor.channels, dtype=np.int64)
    place, image = list(corner[1 : 1 + middle]), corner[-1]
    first = list(tensor.lower)
    last = [tensor.extents[1 + k] + tensor.upper[k] for k in range(middle)]
    addresses, inside = [], []
    for _ in range(tensor.pixels):
        at = [(offsets[k] if offsets else 0) + place[k] for k in range(middle)]
        within = all(0 <= at[k] < tensor.extents[1 + k] for k in range(middle))
        within = within and 0 <= image < tensor.extents[-1]
        start = tensor.address + image * tensor.strides[-1]
        start += sum(at[k] * tensor.strides[k] for k in range(middle))
        addresses.append(start + channel * tensor.size)
        inside.append(within & (channel >= 0) & (channel < tensor.extents[0]))
        image = _step(place, first, last, tensor.steps[1 : 1 + middle], image)
    return np.concatenate(addresses), np.concatenate(inside)


def _step(
    place: list[int], first: list[int], last: list[int], steps: tuple[int, ...], image: int
) -> int:
    """Move on to the next pixel; return its image."""
    for axis, step in enumerate(steps):
        place[axis] += step
        if place[axis] < last[axis]:
            return image
        place[axis] = first[axis]
    return image + 1
