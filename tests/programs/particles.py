import numpy as np
from program import Program


def run(program: Program) -> None:
    bodies = program.floats((192, 4))
    accelerations = program.zeros((192, 4), np.float32)
    sent = program.to_device(bodies)
    program.launch("gravity", 3, 64, accelerations, sent, 192, 0.01, shared=64 * 16)
    wide = bodies.astype(np.float64)
    apart = wide[None, :, :3] - wide[:, None, :3]
    pull = wide[:, 3] / ((apart**2).sum(axis=2) + np.float64(np.float32(0.01))) ** 1.5
    expected = np.zeros((192, 4))
    expected[:, :3] = (apart * pull[:, :, None]).sum(axis=1)
    program.close(accelerations, expected)

    n, each = 100, 12
    position = program.floats((n, 4), np.float64) * 4
    neighbours = (np.arange(n) + program.integers(1, n, (each, n))) % n
    force = program.zeros((n, 4), np.float64)
    lists = program.to_device(neighbours.astype(np.int32))
    sent = program.to_device(position)
    program.launch("lennard_jones", 2, 64, force, sent, lists, each, n, 9.0, 0.5, 0.25)
    apart = position[:, :3] - position[neighbours][:, :, :3]
    inverse = 1 / (apart**2).sum(axis=2)
    strength = np.where(inverse > 1 / 9, inverse**4 * (0.5 * inverse**3 - 0.25), 0)
    expected = np.zeros((n, 4))
    expected[:, :3] = (apart * strength[..., None]).sum(axis=0)
    program.close(force, expected, 1e-12)

    samples, places = program.floats((64, 4)), program.floats((3, 90))
    program.write("samples", samples.view([("", np.float32, 4)]).reshape(64))
    out = program.zeros((90, 2), np.float32)
    axes = [program.to_device(axis) for axis in places]
    program.launch("scanner_field", 2, 64, out, *axes, 90, 64)
    angle = 2 * np.pi * (places.T.astype(np.float64) @ samples[:, :3].T)
    expected = np.stack([np.cos(angle) @ samples[:, 3], np.sin(angle) @ samples[:, 3]], axis=1)
    program.close(out, expected)
