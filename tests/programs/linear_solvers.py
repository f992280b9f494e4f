import numpy as np
from program import Array, Program

N = 24


def lu_of(a: Array) -> Array:
    lu = a.copy()
    for k in range(N - 1):
        lu[k + 1 :, k] /= lu[k, k]
        lu[k + 1 :, k + 1 :] -= np.outer(lu[k + 1 :, k], lu[k, k + 1 :])
    return lu


def run(program: Program) -> None:
    a = program.floats((N, N), np.float64) + N * np.eye(N)
    b = program.floats(N, np.float64)

    device_a = program.to_device(a.astype(np.float32))
    device_b = program.to_device(b.astype(np.float32))
    m = program.zeros((N, N), np.float32)
    for k in range(N - 1):
        program.launch("multipliers", 1, 32, m, device_a, N, k)
        program.launch("eliminate", (3, 6), (8, 4), device_a, device_b, m, N, k)
    program.close(device_a, np.triu(lu_of(a)), 1e-5)
    upper = device_a.copy_to_host().astype(np.float64)
    solved = np.linalg.solve(upper, device_b.copy_to_host().astype(np.float64))
    np.testing.assert_allclose(a @ solved, b, rtol=1e-4)

    device = program.to_device(a)
    program.launch("lu_in_place", 1, 64, device, N)
    program.close(device, lu_of(a), 1e-13)

    square = a @ a.T
    lower = program.zeros((N, N), np.float64)
    program.launch("cholesky", 1, 32, lower, program.to_device(square), N)
    program.close(lower, np.linalg.cholesky(square), 1e-13)
