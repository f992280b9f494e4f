import numpy as np
from numpy.typing import NDArray
from program import Program


def run(program: Program) -> None:
    wide(program)
    compare_and_swap(program)
    hash_table(program)
    components(program)


def wide(program: Program) -> None:
    values = program.integers(-(2**62), 2**62, 300, np.int64)
    sum_, bits, most = (program.zeros(1, np.uint64) for _ in range(3))
    least, device = program.zeros(1, np.int64), program.to_device(values)
    program.launch("wide", 3, 128, sum_, least, bits, most, device, 300)
    program.same(sum_, [values.view(np.uint64).sum()])
    program.same(least, [values.min()])
    program.same(bits, [np.bitwise_xor.reduce(values.view(np.uint64))])
    program.same(most, [values.view(np.uint64).max()])
    sum_.fill(0)
    program.launch("shared_wide", 1, 128, sum_, device)
    program.same(sum_, [values[:128].view(np.uint64).sum() + np.uint64(128 * 129 // 2)])


def compare_and_swap(program: Program) -> None:
    values = program.floats(256)
    most, product = program.zeros(1, np.float32), program.to_device(np.ones(1))
    program.launch("by_compare_and_swap", 2, 128, most, product, program.to_device(values))
    program.same(most, [values.max()])
    program.same(product, [3.0**4])


def hash_table(program: Program) -> None:
    inserted = program.integers(0, 200, 400, np.uint32) * np.uint32(7919)
    wanted = np.arange(0, 250, dtype=np.uint32) * np.uint32(7919)
    keys = program.to_device(np.full(512, 0xFFFFFFFF, np.uint32))
    counts, out = program.zeros(512, np.uint32), program.zeros(250, np.uint32)
    program.launch("insert", 4, 128, keys, counts, 511, program.to_device(inserted), 400)
    program.launch("look_up", 2, 128, out, keys, counts, 511, program.to_device(wanted), 250)
    program.same(out, (inserted[:, None] == wanted).sum(axis=0))


def labels_of(n: int, edges: NDArray[np.int32]) -> NDArray[np.int32]:
    labels = np.arange(n, dtype=np.int32)
    while True:
        before = labels.copy()
        low = np.minimum(labels[edges[:, 0]], labels[edges[:, 1]])
        np.minimum.at(labels, edges[:, 0], low)
        np.minimum.at(labels, edges[:, 1], low)
        if (labels == before).all():
            return labels


def components(program: Program) -> None:
    n = 300
    edges = program.integers(0, n, (200, 2))
    parent, labels = program.to_device(np.arange(n, dtype=np.int32)), program.zeros(n, np.int32)
    program.launch("join", 2, 128, parent, program.to_device(edges), len(edges))
    program.launch("flatten", 3, 128, labels, parent, n)
    program.same(labels, labels_of(n, edges))
