"""Distinct numbers by sorting.

`np.unique` of NumPy 2.3 and later hashes integers, which takes 10 to 30 times as long where there
are ten thousand of them or more, and imports `numpy.ma` first.
"""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)


def sorted_unique(numbers: "npt.NDArray[Number]") -> "npt.NDArray[Number]":
    """Return the distinct numbers, ascending, like `np.unique`: (n,) of their type.

    >>> sorted_unique(np.array([[3, 1], [3, 2]])).tolist()
    [1, 2, 3]
    """
    ordered: npt.NDArray[Any] = np.sort(numbers, axis=None)
    return ordered[_is_new(ordered)]


def sorted_places(
    numbers: "npt.NDArray[Number]",
) -> tuple["npt.NDArray[Number]", "npt.NDArray[np.int64]", "npt.NDArray[np.int64]"]:
    """Return the distinct numbers (n,), ascending, their first positions, and the inverse, (n,).

    >>> [found.tolist() for found in sorted_places(np.array([3, 1, 3]))]
    [[1, 3], [1, 0], [1, 0, 1]]
    """
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    is_new = _is_new(ordered)
    which = np.empty(len(order), np.int64)
    which[order] = np.cumsum(is_new) - 1
    return ordered[is_new], order[is_new], which


def _is_new(ordered: "npt.NDArray[Number]") -> "npt.NDArray[np.bool_]":
    """Return whether each of some sorted numbers differs from the previous one."""
    is_new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return is_new
