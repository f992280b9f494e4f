import numpy as np
from program import Program

ALGORITHMS = ["RAKING", "RAKING_COMMUTATIVE_ONLY", "WARP_REDUCTIONS"]
TEMPLATES = [
    *(f"reduce_blocks<128, cub::BLOCK_REDUCE_{name}>" for name in ALGORITHMS),
    "scan_tiles<64, 4>",
]


def run(program: Program) -> None:
    values = program.integers(-(10**6), 10**6, 384)
    blocks = values.reshape(3, 128)
    device = program.to_device(values)
    for name in TEMPLATES[:3]:
        sums, least = program.zeros(3, np.int32), program.zeros(3, np.int32)
        program.launch(name, 3, 128, sums, least, device)
        program.same(sums, blocks.sum(axis=1))
        program.same(least, blocks.min(axis=1))

    wide = program.integers(-(10**12), 10**12, 1000, np.int64)
    out = program.zeros(1000, np.int64)
    program.launch("scan_tiles<64, 4>", 1, 64, out, program.to_device(wide), 1000)
    program.same(out, np.cumsum(wide) - wide)

    keys = program.integers(0, 2**32, 256, np.uint32) & np.uint32(0xF000FF0F)
    sorted_keys, places = program.to_device(keys), program.zeros(256, np.uint16)
    program.launch("sort_block", 1, 64, sorted_keys, places)
    order = np.argsort(keys, kind="stable")
    program.same(sorted_keys, keys[order])
    program.same(places, order)
