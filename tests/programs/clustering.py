import numpy as np
from program import Program

FEATURES, CENTRES, COUNT = 4, 5, 700


def run(program: Program) -> None:
    points = program.integers(0, 200, (FEATURES, COUNT))
    points += program.integers(0, CENTRES, (1, COUNT)) * 300  # five heaps
    centres = points[:, :CENTRES].T.copy()
    sent, nowhere = program.to_device(points), np.full(COUNT, -1, np.int32)
    membership, known = program.to_device(nowhere), nowhere
    for _ in range(4):
        program.write("centres", centres.reshape(-1))
        changed = program.zeros(1, np.int32)
        program.launch("assign", 6, 128, membership, changed, sent, COUNT)
        distances = ((points.T[:, None] - centres[None]) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        program.same(membership, nearest)
        program.same(changed, [(nearest != known).sum()])
        known = nearest
        totals = program.zeros((CENTRES, FEATURES + 1), np.int32)
        program.launch("gather", 6, 128, totals, sent, membership, COUNT)
        wanted = [
            [*points[:, nearest == c].sum(axis=1), (nearest == c).sum()] for c in range(CENTRES)
        ]
        program.same(totals, wanted)
        sums = np.array(wanted, np.int32)
        counts = np.maximum(sums[:, FEATURES:], 1)
        centres = sums[:, :FEATURES] // counts
