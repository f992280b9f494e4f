import numpy as np
from program import Array, Program


def xorshift(state: Array) -> Array:
    state = state ^ (state << np.uint32(13))
    state = state ^ (state >> np.uint32(17))
    after: Array = state ^ (state << np.uint32(5))
    return after


def run(program: Program) -> None:
    hits = program.zeros(1, np.uint64)
    program.launch("throw_darts", 4, 128, hits, 40)
    state = np.arange(1, 513, dtype=np.uint32) * np.uint32(2654435761)
    expected = 0
    for _ in range(40):
        x = state = xorshift(state)
        y = state = xorshift(state)
        square = (x >> np.uint32(16)).astype(np.uint64) ** 2
        square += (y >> np.uint32(16)).astype(np.uint64) ** 2
        expected += int((square < 2**32).sum())
    program.same(hits, [expected])

    places = program.zeros(128, np.int64)
    program.launch("walk", 2, 64, places, 12345, 10)
    state_now, sums = 12345, []
    for _ in range(128):
        sums.append(0)
        for _ in range(10):
            state_now = (state_now * 6364136223846793005 + 1442695040888963407) % 2**64
            sums[-1] += (state_now >> 33) - 2**30
    program.same(places, sums)

    directions = np.empty((2, 32), np.uint32)
    directions[0] = np.uint32(1) << np.arange(31, -1, -1, dtype=np.uint32)
    directions[1, 0] = 1 << 31
    for k in range(1, 32):
        directions[1, k] = directions[1, k - 1] ^ (directions[1, k - 1] >> np.uint32(1))
    out = program.zeros((2, 300), np.float32)
    program.launch("sobol", (1, 2), 64, out, program.to_device(directions), 300)
    index = np.arange(300)
    gray = index ^ (index >> 1)
    chosen = (gray[:, None] >> np.arange(32) & 1).astype(bool)
    numbers = [np.bitwise_xor.reduce(np.where(chosen, row, 0), axis=1) for row in directions]
    program.same(out, (np.array(numbers) / 2**32).astype(np.float32))
