"""What the kernels of the bench work on, and what they should give, in NumPy."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = NODES = 100_000
LONGEST = 5000
PARETO = 1.3


@dataclass(frozen=True)
class Sparse:
    """A matrix, or a graph, by rows: row r has the columns `column[start[r] : start[r + 1]]`."""

    start: NDArray[np.int32]
    column: NDArray[np.int32]


def skewed_rows(rows: int, seed: int) -> Sparse:
    """Rows whose lengths follow a Pareto distribution, the middle one being the longest."""
    random = np.random.default_rng(seed)
    lengths = np.minimum((random.pareto(PARETO, rows) + 1).astype(np.int64), LONGEST)
    lengths[rows // 2] = LONGEST
    start = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    return Sparse(start, random.integers(0, rows, start[-1]).astype(np.int32))


@cache
def matrix(rows: int = ROWS) -> Sparse:
    """The matrix of the sparse product."""
    return skewed_rows(rows, 1)


@cache
def graph(nodes: int = NODES) -> Sparse:
    """The graph of the search."""
    return skewed_rows(nodes, 2)


@cache
def levels(nodes: int = NODES) -> NDArray[np.int32]:
    """Distances from node 0, -1 where there is no way."""
    edges = graph(nodes)
    source = np.repeat(np.arange(nodes), np.diff(edges.start))
    found: NDArray[np.int32] = np.full(nodes, -1, dtype=np.int32)
    found[0] = level = 0
    while True:
        reached = edges.column[found[source] == level]
        new = reached[found[reached] < 0]
        if not new.size:
            return found
        level += 1
        found[new] = level


def first_levels(nodes: int = NODES) -> NDArray[np.int32]:
    """Distances before the search: that of node 0 is known."""
    known: NDArray[np.int32] = np.full(nodes, -1, dtype=np.int32)
    known[0] = 0
    return known


def row_sums(rows: int = ROWS) -> NDArray[Any]:
    """The product of a matrix of ones with a vector of ones."""
    return np.diff(matrix(rows).start).astype(np.float32)


def keys(count: int) -> NDArray[np.int32]:
    """Numbers to sort or to count."""
    return np.random.default_rng(9).integers(0, 1 << 30, count).astype(np.int32)


@cache
def mandelbrot_counts(size: int, limit: int) -> NDArray[np.int32]:
    """Iterations of each point in float32, every operation rounded: NumPy's answer."""
    scale = np.float32(0.005859375)
    ci, cr = np.meshgrid(
        np.arange(size, dtype=np.float32) * scale - np.float32(1.5),
        np.arange(size, dtype=np.float32) * scale - np.float32(2.0),
        indexing="ij",
    )
    zr, zi = np.zeros_like(cr), np.zeros_like(ci)
    counts = np.zeros(cr.shape, dtype=np.int32)
    inside = np.ones(cr.shape, dtype=np.bool_)
    for _ in range(limit):
        inside &= zr * zr + zi * zi < 4
        counts += inside
        following = np.where(inside, zr * zr - zi * zi + cr, zr)
        zi = np.where(inside, 2 * zr * zi + ci, zi)
        zr = following
    return counts
