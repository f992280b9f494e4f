import numpy as np
from program import Array, Program


def run(program: Program) -> None:
    mandelbrot(program)
    dither(program)
    life(program)
    convolution(program)


def mandelbrot(program: Program) -> None:
    out = program.zeros((40, 60), np.uint8)
    left, top, step = np.float32(-2), np.float32(1), np.float32(0.05)
    program.launch("mandelbrot", (4, 5), (16, 8), out, 60, 40, left, top, step, 100)
    x = left.astype(np.float64) + np.arange(60) * np.float64(step)
    y = top.astype(np.float64) - np.arange(40) * np.float64(step)
    cr, ci = (each.astype(np.float32) for each in np.meshgrid(x, y))  # one rounding, as with fma
    zr, zi, count = np.zeros_like(cr), np.zeros_like(cr), np.zeros(cr.shape, int)
    for _ in range(100):
        rr, ii = zr * zr, zi * zi
        on = rr + ii <= 4
        zi = np.where(on, 2 * zr * zi + ci, zi)
        zr = np.where(on, rr - ii + cr, zr)
        count += on
    program.same(out, count)


def dither(program: Program) -> None:
    grey = program.integers(0, 256, (12, 64), np.uint8)
    bits = program.zeros((12, 2), np.uint32)
    program.launch("dither", (1, 12), 64, bits, program.to_device(grey), 64)
    bayer = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])
    on = grey > np.tile(bayer * 16 + 8, (3, 16))
    program.same(bits, np.packbits(on, axis=1).view(">u4"))


def after(cells: Array) -> Array:
    shifts = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
    count = np.sum([np.roll(cells, shift, (0, 1)) for shift in shifts], axis=0)
    alive: Array = ((count == 3) | ((count == 2) & (cells == 1))).astype(np.uint8)
    return alive


def life(program: Program) -> None:
    cells = program.integers(0, 2, (48, 96), np.uint8)
    now, spare = program.to_device(cells), program.zeros(cells.shape, np.uint8)
    packed = np.packbits(cells, axis=1, bitorder="little").view("<u4")
    bits, spare_bits = program.to_device(packed), program.zeros(packed.shape, np.uint32)
    for _ in range(3):
        cells = after(cells)
        program.launch("life_cells", (6, 3), (16, 16), spare, now, 96, 48)
        program.launch("life_bits", 48, 3, spare_bits, bits, 3, 48)
        now, spare, bits, spare_bits = spare, now, spare_bits, bits
    program.same(now, cells)
    program.same(bits, np.packbits(cells, axis=1, bitorder="little").view("<u4"))


def convolution(program: Program) -> None:
    weights, image = program.floats(17), program.floats((32, 96))
    program.write("weights", weights)
    a, b = program.to_device(image), program.zeros(image.shape, np.float32)
    program.launch("convolve_rows", (3, 4), (32, 8), b, a, 96)
    rows = np.array([np.convolve(row, weights, "same") for row in image.astype(np.float64)])
    program.close(b, rows)
    program.launch("convolve_columns", (3, 4), (32, 8), a, b, 96, 32)
    program.close(a, np.array([np.convolve(c, weights, "same") for c in rows.T]).T)
