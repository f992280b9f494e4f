import numpy as np
from program import Array, Program

TEMPLATES = ["fourier<5>", "fourier<8>", "cosine_tiles<false>", "cosine_tiles<true>"]


def run(program: Program) -> None:
    fourier(program)
    cosine(program)
    haar(program)
    walsh(program)


def fourier(program: Program) -> None:
    for log in (5, 8):
        n = 1 << log
        values = program.floats((3, n, 2)) - np.float32(0.5)
        spectrum = np.fft.fft(values[..., 0].astype(np.float64) + 1j * values[..., 1])
        device = program.to_device(values)
        program.launch(f"fourier<{log}>", 3, n // 2, device, -1.0)
        program.close(device, np.stack([spectrum.real, spectrum.imag], axis=-1), 1e-6)
        program.launch(f"fourier<{log}>", 3, n // 2, device, 1.0)
        program.close(device, values * n, 1e-6)


def cosine(program: Program) -> None:
    image = program.floats((24, 32))
    angles = np.outer(np.arange(8), 2 * np.arange(8) + 1) * np.pi / 16
    table = np.cos(angles) * np.where(np.arange(8) == 0, np.sqrt(1 / 8), 0.5)[:, None]
    program.write("cosines", table.astype(np.float32))
    a, b = program.to_device(image), program.zeros(image.shape, np.float32)
    program.launch("cosine_tiles<false>", (4, 3), (8, 8), b, a, 32)
    tiles = image.astype(np.float64).reshape(3, 8, 4, 8)
    program.close(b, np.einsum("uy,aybx,vx->aubv", table, tiles, table))
    program.launch("cosine_tiles<true>", (4, 3), (8, 8), a, b, 32)
    program.close(a, image)


def haar(program: Program) -> None:
    values = program.integers(0, 1000, 128).astype(np.float32)
    out = program.zeros(128, np.float32)
    program.launch("haar", 1, 64, out, program.to_device(values), 128, shared=512)
    line, parts = values.astype(np.float64), []
    while len(line) > 1:
        parts.append((line[::2] - line[1::2]) / 2)
        line = (line[::2] + line[1::2]) / 2
    program.same(out, np.concatenate([line, *reversed(parts)]))


def walsh(program: Program) -> None:
    values = program.integers(-99, 100, 96)
    signs = (-1) ** np.bitwise_count(np.arange(32)[:, None] & np.arange(32)).astype(int)
    device = program.to_device(values)
    program.launch("walsh", 1, 96, device, 32)
    expected: Array = values.reshape(3, 32) @ signs
    program.same(device, expected)
