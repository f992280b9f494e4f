import numpy as np
from program import Program


def run(program: Program) -> None:
    products(program)
    correlation(program)
    finite_differences(program)
    gram_schmidt(program)


def products(program: Program) -> None:
    a, x = program.floats((40, 70), np.float64), program.floats(70, np.float64)
    device, product = program.to_device(a), program.zeros(40, np.float64)
    back = program.zeros(70, np.float64)
    program.launch("times_vector", 1, 64, product, device, program.to_device(x), 40, 70)
    program.close(product, a @ x, 1e-14)
    program.launch("transposed_times_vector", 2, 64, back, device, product, 40, 70)
    program.close(back, a.T @ (a @ x), 1e-14)


def correlation(program: Program) -> None:
    data = program.floats((50, 30))
    data[:, 3] = 2  # a column without spread
    mean, deviation = program.zeros(30, np.float32), program.zeros(30, np.float32)
    out, device = program.zeros((30, 30), np.float32), program.to_device(data)
    program.launch("mean_and_deviation", 1, 32, mean, deviation, device, 50, 30)
    program.launch("correlation", 1, 32, out, device, mean, deviation, 50, 30)
    centred = data - data.mean(axis=0, dtype=np.float64)
    spread = centred.std(axis=0)
    spread[spread <= 0.1] = 1
    expected = centred.T @ centred / 50 / np.outer(spread, spread)
    np.fill_diagonal(expected, 1)
    program.close(out, expected)


def finite_differences(program: Program) -> None:
    ex, ey, hz = program.floats((3, 20, 24))
    source = np.arange(5, dtype=np.float32)
    devices = [program.to_device(each) for each in (ex, ey, hz)]
    sent, grid, block = program.to_device(source), (2, 3), (16, 8)
    ex, ey, hz = (each.astype(np.float64) for each in (ex, ey, hz))
    for step in range(5):
        program.launch("electric", grid, block, *devices, sent, step, 20, 24)
        program.launch("magnetic", grid, block, devices[2], *devices[:2], 20, 24)
        ey[0] = source[step]
        ey[1:] -= (hz[1:] - hz[:-1]) / 2
        ex[:, 1:] -= (hz[:, 1:] - hz[:, :-1]) / 2
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    for device, expected in zip(devices, (ex, ey, hz), strict=True):
        program.close(device, expected)


def gram_schmidt(program: Program) -> None:
    a = program.floats((80, 12), np.float64)
    q, r = program.zeros((80, 12), np.float64), program.zeros((12, 12), np.float64)
    program.launch("gram_schmidt", 1, 64, q, r, program.to_device(a), 80, 12)
    expected_q, expected_r = np.linalg.qr(a)
    signs = np.sign(np.diag(expected_r))
    program.close(q, expected_q * signs, 1e-12)
    program.close(r, expected_r * signs[:, None], 1e-12)
