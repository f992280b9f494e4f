import numpy as np
from program import Program


def run(program: Program) -> None:
    a, b = program.integers(0, 256, (2, 64, 32), np.uint8)
    out = program.zeros(64, np.uint32)
    sent = [program.to_device(each.view(np.uint32)) for each in (a, b)]
    program.launch("differences", 2, 32, out, *sent, 8)
    program.same(out, abs(a.astype(int) - b).sum(axis=1))
    motion(program)
    layer(program)
    blend(program)


def motion(program: Program) -> None:
    before = program.integers(0, 256, (32, 40), np.uint8)
    now = np.roll(before, (2, -3), (0, 1))
    vectors = program.zeros((4, 5, 2), np.int32)
    program.launch(
        "motion", (5, 4), (9, 9), vectors, program.to_device(now), program.to_device(before), 40, 32
    )
    expected = np.zeros((4, 5, 2), int)
    for by, bx in np.ndindex(4, 5):
        best = 1 << 32
        for dy, dx in np.ndindex(9, 9):
            y, x = 8 * by + dy - 4, 8 * bx + dx - 4
            if 0 <= y <= 24 and 0 <= x <= 32:
                block = now[8 * by : 8 * by + 8, 8 * bx : 8 * bx + 8].astype(int)
                sum_ = int(abs(block - before[y : y + 8, x : x + 8]).sum())
                best = min(best, sum_ << 8 | dy << 4 | dx)
        expected[by, bx] = (best & 15) - 4, (best >> 4 & 15) - 4
    program.same(vectors, expected)


def layer(program: Program) -> None:
    weights = program.integers(-128, 128, (64, 32), np.int8)
    values = program.integers(-128, 128, 32, np.int8)
    out = program.zeros(64, np.int8)
    sent = [program.to_device(each.view(np.int32)) for each in (weights, values)]
    program.launch("quantised_layer", 2, 32, out, *sent, 8, 1 / 1024)
    sums = weights.astype(int) @ values.astype(int)
    program.same(out, np.clip(np.rint(sums / 1024), -128, 127))


def blend(program: Program) -> None:
    a, b = program.integers(0, 256, (2, 100, 4), np.uint8)
    out = program.zeros(100, np.uint32)
    sent = [program.to_device(each.view(np.uint32)) for each in (a, b)]
    program.launch("blend", 2, 64, out, *sent, 100)
    alpha = b[:, 3:].astype(int)
    program.same(out, ((a * alpha + b * (255 - alpha) + 127) // 255).astype(np.uint8).view("<u4"))
