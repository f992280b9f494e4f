import numpy as np
from program import Array, Program


def brain(values: Array) -> Array:
    """Round float32 to the nearest bfloat16, as its 16 bits."""
    bits = values.astype(np.float32).view(np.uint32)
    return (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)


def run(program: Program) -> None:
    x, y = program.floats((2, 256), np.float16)
    a = np.float16(1.25)
    device_x, out = (program.to_device(each.view(np.uint32)) for each in (x, y))
    program.launch("axpy", 1, 128, out, device_x, a, 128)
    wide = x.astype(np.float64) * a + y  # exact, so that one rounding is left
    program.same(out, wide.astype(np.float16).view(np.uint32))

    small = (program.integers(-3, 4, (2, 128)) / 2).astype(np.float16)
    total = program.zeros(1, np.float32)
    sent = [program.to_device(each.view(np.uint32)) for each in small]
    program.launch("dot", 1, 32, total, *sent, 64)
    program.same(total, [(small[0].astype(np.float64) * small[1]).sum()])

    values = np.ldexp(program.floats(256) - 0.5, program.integers(-26, 17, 256)).astype(np.float32)
    halves = ((program.floats(256) - 0.5) * 1000).astype(np.float16)
    halves[:2] = [2.5, 3.5]
    down, nearest = program.zeros(256, np.float16), program.zeros(256, np.int16)
    up = program.zeros(256, np.float32)
    sent = [program.to_device(values), program.to_device(halves)]
    program.launch("convert", 2, 128, down, nearest, up, *sent, 256)
    with np.errstate(over="ignore"):
        program.same(down, values.astype(np.float16))
    program.same(nearest, np.rint(halves))
    program.same(up, abs(halves.astype(np.float32)))

    picked = program.zeros(256, np.float16)
    low, high = np.float16(-100), np.float16(200)
    program.launch("clamp_and_pick", 1, 256, picked, sent[1], low, high, 256)
    clamped = np.clip(halves, low, high)
    program.same(picked, np.where(clamped < 0, -clamped, clamped / np.float16(4)))

    products = program.zeros(256, np.uint16)
    others = program.floats(256)
    program.launch("brain", 1, 256, products, sent[0], program.to_device(others), 256)
    left, right = ((brain(each) << np.uint32(16)).view(np.float32) for each in (values, others))
    program.same(products, brain(left * right))
