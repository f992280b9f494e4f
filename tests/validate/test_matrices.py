"""Products of `mma.h` leave what an NVIDIA H200 left, bit for bit.

`counters/fresh_tensor.cu` was compiled there with NVIDIA's own header; `matrices.npz` is what
`scripts/capture/counters.py --results` kept of its arrays.
"""

from pathlib import Path

import numpy as np

import cutrace
from cutrace.tracer.session.source.launch_line import (
    LineLauncher,
    find_launch_comments,
    parse_launch,
)

HERE = Path(__file__).parent
SOURCE = HERE / "counters" / "fresh_tensor.cu"
FACTORS = {"a", "b", "p", "q", "u", "v"}


def test_products_of_every_precision_are_the_chips() -> None:
    wanted = np.load(HERE / "matrices.npz")
    with cutrace.Session() as gpu:
        launcher = LineLauncher(gpu, gpu.compile(SOURCE, "compute_90"), HERE)
        for comment in find_launch_comments(SOURCE.read_text()):
            launcher.launch(parse_launch(comment.text))
        held = {name: array.copy_to_host() for name, array in launcher.arrays.items()}
    assert set(held) == set(wanted.files)
    products = set(held) - FACTORS
    assert all(np.count_nonzero(wanted[name]) > wanted[name].size / 2 for name in products)
    unequal = {name for name in held if held[name].tobytes() != wanted[name].tobytes()}
    assert unequal == set()
