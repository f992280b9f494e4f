"""What an array of a launch line holds at first: `zeros`, `arange`, `random:SEED`, `file.npy`."""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import CutraceError, nearest
from ..path import missing_file

DTYPES: Mapping[str, np.dtype[Any]] = {
    **{
        f"{sign}{bits}": np.dtype(f"{sign}{bits // 8}") for bits in (8, 16, 32, 64) for sign in "iu"
    },
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
}
"""The element types of a launch line: kind and bits."""

_FORMS = ("zeros", "arange", "random:SEED", "file.npy")


def check_initial(initial: str) -> str:
    """What is wrong with it, or `""`. Nothing at all means zeros that nobody copied."""
    if initial in ("", "zeros", "arange") or initial.strip('"').endswith(".npy"):
        return ""
    word, _, seed = initial.partition(":")
    if word == "random" and seed.isascii() and seed.isdigit():
        return ""
    return f"expected one of {', '.join(_FORMS)}, got `{initial}`{nearest(initial, _FORMS)}"


def initial_values(
    initial: str, shape: tuple[int, ...], dtype: np.dtype[Any], folder: Path
) -> NDArray[Any]:
    """The values: counting from 0 in row-major order, random, or a file's (relative to `folder`).

    Random numbers are the same on every machine: integers from 0 to below the number of elements
    (or the type's end), so that they can be indices; floats are multiples of 1/256 in [0, 1), so
    that sums of their products are exact.
    """
    count = prod(shape)
    if initial == "arange":
        return _counting(count, dtype).reshape(shape)
    if initial.startswith("random:"):
        return _random(int(initial.partition(":")[2]), count, dtype).reshape(shape)
    if initial.endswith(".npy"):
        return _load(folder, initial, shape, dtype)
    return np.zeros(shape, dtype)


def _counting(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        return np.arange(count).astype(dtype)


def _random(seed: int, count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    words = np.random.PCG64(seed).random_raw(count)
    if dtype.kind == "f":
        return ((words >> np.uint64(56)) / 256.0).astype(dtype)
    below = min(count, int(np.iinfo(dtype).max) + 1)
    return ((words >> np.uint64(11)) % np.uint64(below)).astype(dtype)


def _load(folder: Path, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    path = folder / name
    if not path.is_file():
        raise missing_file(path)
    try:
        values = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as problem:
        raise CutraceError(f"{name}: expected an array saved by numpy.save: {problem}") from None
    if values.dtype != dtype or values.shape != shape:
        raise CutraceError(
            f"{name} holds {values.dtype} of shape {values.shape}, expected {dtype} of {shape}"
        )
    return np.asarray(values)
