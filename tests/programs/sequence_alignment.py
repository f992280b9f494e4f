import numpy as np
from program import Array, Program

TILES, PENALTY = 5, 10


def aligned(similar: Array) -> Array:
    n = len(similar)
    scores = np.zeros((n, n), np.int64)
    scores[0] = scores[:, 0] = -PENALTY * np.arange(n)
    for y in range(1, n):
        for x in range(1, n):
            gap = max(scores[y - 1, x], scores[y, x - 1]) - PENALTY
            scores[y, x] = max(gap, scores[y - 1, x - 1] + similar[y, x])
    return scores


def common(a: Array, b: Array) -> int:
    row = np.zeros(len(b) + 1, np.int64)
    for letter in a:
        longer = np.where(b == letter, row[:-1] + 1, 0)
        row = np.maximum.accumulate(np.maximum(row, np.concatenate([[0], longer])))
    return int(row[-1])


def run(program: Program) -> None:
    n = 16 * TILES + 1
    similar = program.integers(-5, 10, (n, n))
    edges = np.zeros((n, n), np.int32)
    edges[0] = edges[:, 0] = -PENALTY * np.arange(n)
    scores, device = program.to_device(edges), program.to_device(similar)
    for diagonal in range(2 * TILES - 1):
        first = max(0, diagonal - TILES + 1)
        tiles = min(diagonal, TILES - 1) - first + 1
        program.launch("align_tiles", tiles, 16, scores, device, n, PENALTY, diagonal, first)
    program.same(scores, aligned(similar))

    a, b = program.integers(65, 69, 120, np.int8), program.integers(65, 69, 120, np.int8)
    length = program.zeros(1, np.int32)
    sent = program.to_device(a), program.to_device(b)
    program.launch("common_subsequence", 1, 64, length, *sent, 120, shared=3 * 121 * 2)
    program.same(length, [common(a, b)])
