import numpy as np
from program import Array, Program


def run(program: Program) -> None:
    hotspot(program)
    path_finder(program)
    jacobi(program)
    srad(program)
    sobel(program)


def around(values: Array) -> tuple[Array, Array, Array, Array, Array]:
    """The values north, south, west and east, edges repeated, and the values themselves."""
    p = np.pad(values, 1, mode="edge")
    return p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:], values


def hotspot(program: Program) -> None:
    rows, columns = 37, 50
    heat, power = program.floats((rows, columns)) * 80, program.floats((rows, columns))
    a, b, source = program.to_device(heat), program.zeros(heat.shape, np.float32), power
    device_power = program.to_device(source)
    for _ in range(3):
        program.launch(
            "hotspot", (4, 3), (16, 16), b, a, device_power, rows, columns, 0.5, 0.1, 0.2, 0.05, 80
        )
        north, south, west, east, here = around(heat.astype(np.float64))
        change = power + (south + north - 2 * here) * 0.2 + (east + west - 2 * here) * 0.1
        heat = here + 0.5 * (change + (80 - here) * 0.05)
        a, b = b, a
    program.close(a, heat)


def path_finder(program: Program) -> None:
    columns, rows, step = 600, 20, 5
    costs = program.integers(0, 10, (rows, columns))
    best = program.integers(0, 10, columns)
    a, b = program.to_device(best), program.zeros(columns, np.int32)
    for start in range(0, rows, step):
        part = program.to_device(costs[start : start + step])
        blocks = -(-columns // (128 - 2 * step))
        program.launch("path_finder", blocks, 128, b, part, a, columns, step)
        a, b = b, a
    expected = best.astype(np.int64)
    for row in costs:
        p = np.pad(expected, 1, constant_values=1 << 40)
        expected = np.minimum(np.minimum(p[:-2], p[1:-1]), p[2:]) + row
    program.same(a, expected)


def jacobi(program: Program) -> None:
    values = program.floats((10, 18, 34), np.float64)
    out = program.to_device(values)
    program.launch("jacobi_3d", (3, 3), (16, 8), out, program.to_device(values), 34, 18, 10)
    v, expected = values, values.copy()
    sums = v[:-2, 1:-1, 1:-1] + v[2:, 1:-1, 1:-1] + v[1:-1, 1:-1, :-2] + v[1:-1, 1:-1, 2:]
    sums = sums + v[1:-1, :-2, 1:-1] + v[1:-1, 2:, 1:-1]
    expected[1:-1, 1:-1, 1:-1] = 0.75 * v[1:-1, 1:-1, 1:-1] + sums * 0.03125
    program.close(out, expected, 1e-14)


def srad(program: Program) -> None:
    rows, columns = 30, 40
    image = np.exp(program.floats((rows, columns)))
    device = program.to_device(image)
    parts = [program.zeros(image.shape, np.float32) for _ in range(5)]
    expected = image.astype(np.float64)
    for _ in range(2):
        q0 = float(expected.var() / expected.mean() ** 2)
        grid, block = (3, 4), (16, 8)
        program.launch("srad_coefficients", grid, block, *parts, device, q0, rows, columns)
        program.launch("srad_update", grid, block, device, *parts, 0.5, rows, columns)
        expected = srad_step(expected, q0)
    program.close(device, expected, 1e-4)


def srad_step(image: Array, q0: float) -> Array:
    n, s, w, e, j = around(image)
    n, s, w, e = n - j, s - j, w - j, e - j
    gradient, laplacian = (n**2 + s**2 + w**2 + e**2) / j**2, (n + s + w + e) / j
    q = (gradient / 2 - laplacian**2 / 16) / (1 + laplacian / 4) ** 2
    c = np.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1)
    _, c_south, _, c_east, _ = around(c)
    return np.asarray(j + 0.125 * (c * n + c_south * s + c * w + c_east * e))


def sobel(program: Program) -> None:
    image = program.integers(0, 256, (45, 60), np.uint8)
    out = program.zeros(image.shape, np.uint8)
    program.launch("sobel", (4, 3), (16, 16), out, program.to_device(image), 60, 45)
    p = np.pad(image.astype(int), 1, mode="edge")
    across = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    down = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    program.same(out, np.minimum(abs(across) + abs(down), 255))
