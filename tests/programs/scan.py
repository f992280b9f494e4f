import numpy as np
from program import Program


def run(program: Program) -> None:
    values = program.integers(-1000, 1000, 3000)
    sums = np.cumsum(values, dtype=np.int32)
    source, out = program.to_device(values), program.zeros(3000, np.int32)

    program.launch("scan_hillis_steele", 1, 256, out, source)
    program.same(out, np.where(np.arange(3000) < 256, sums, 0))

    program.launch("scan_blelloch", 1, 256, out, source, 512, shared=(512 + 16) * 4)
    shifted = np.concatenate([[0], sums[:511], np.zeros(3000 - 512, np.int32)])
    program.same(out, shifted)

    blocks = -(-3000 // 256)
    partial = program.zeros(256, np.int32)
    program.launch("scan_shuffle", blocks, 256, out, partial, source, 3000)
    program.launch("scan_shuffle", 1, 256, partial, None, partial, blocks)
    program.launch("add_sums", blocks, 256, out, partial, 3000)
    program.same(out, sums)

    out.fill(0)
    states = program.zeros(-(-3000 // 64), np.uint64)
    program.launch("scan_look_back", len(states.copy_to_host()), 64, out, states, source, 3000)
    program.same(out, sums)
