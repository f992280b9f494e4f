import numpy as np
from program import Program

ARCH = "compute_80"
KINDS = [("int", np.int32, 128), ("float", np.float32, 64), ("long long", np.int64, 32)]
TEMPLATES = [f"reduce_last_block<{name}, {block}>" for name, _, block in KINDS]


def run(program: Program) -> None:
    for template, (_, dtype, block) in zip(TEMPLATES, KINDS, strict=True):
        values = program.integers(-500, 500, 3000).astype(dtype)
        out, partial = program.zeros(1, dtype), program.zeros(9, dtype)
        source = program.to_device(values)
        for _ in range(2):  # the counter wraps to 0 for the next launch
            program.launch(template, 9, block, out, partial, source, 3000)
            program.same(out, [values.sum(dtype=np.int64)])

    a, b = program.integers(0, 100, 2000), program.integers(0, 100, 2000)
    total = program.zeros(1, np.float64)
    sent = [program.to_device(each.astype(np.float64)) for each in (a, b)]
    program.launch("dot_with_lock", 40, 64, total, *sent, 2000)
    program.same(total, [a @ b])

    values = program.integers(-(2**31), 2**31, 256)
    low, high, every = (
        program.to_device(np.array([start]).astype(dtype))
        for start, dtype in ((2**31 - 1, np.int32), (0, np.uint32), (2**32 - 1, np.uint32))
    )
    program.launch("least_and_greatest", 4, 64, low, high, every, program.to_device(values))
    program.same(low, [values.min()])
    program.same(high, [values.view(np.uint32).max()])
    program.same(every, [np.bitwise_and.reduce(values.view(np.uint32) | np.uint32(16))])
