import numpy as np
from program import Program

TEMPLATES = ["product_tiles<8>", "product_tiles<16>"]


def run(program: Program) -> None:
    a, b = program.floats((2, 50, 50))
    expected = a.astype(np.float64) @ b
    out = program.zeros((50, 50), np.float32)
    sent = program.to_device(a), program.to_device(b)
    for tile in (8, 16):
        out.fill(0)
        blocks = -(-50 // tile)
        program.launch(f"product_tiles<{tile}>", (blocks, blocks), (tile, tile), out, *sent, 50)
        program.close(out, expected, 1e-6)

    a, b = program.floats((2, 128, 128))
    out = program.zeros((128, 128), np.float32)
    sent = program.to_device(a), program.to_device(b)
    program.launch("product_registers", (2, 2), 256, out, *sent, 128)
    program.close(out, a.astype(np.float64) @ b, 1e-6)

    left, right = program.floats((20, 30), np.float64), program.floats((30, 25), np.float64)
    wide = program.zeros((20, 25), np.float64)
    sent = program.to_device(left), program.to_device(right)
    program.launch("product_double", (4, 3), (8, 8), wide, *sent, 20, 30, 25, shared=2 * 64 * 8)
    program.close(wide, left @ right, 1e-14)

    square = program.integers(0, 1 << 30, (96, 96))
    turned = program.zeros((96, 96), np.int32)
    program.launch("transpose_diagonal", (3, 3), (32, 8), turned, program.to_device(square), 96)
    program.same(turned, square.T)

    pixels = program.integers(0, 256, (64, 64), np.uint8)
    out = program.zeros((64, 16), np.uint32)
    program.launch("transpose_bytes", 16, 16, out, program.to_device(pixels.view(np.uint32)), 16)
    program.same(out, np.ascontiguousarray(pixels.T).view(np.uint32))
