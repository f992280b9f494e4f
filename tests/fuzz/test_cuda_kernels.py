"""Random CUDA C kernels leave what g++ says, in both engines; scripts/fuzz runs more of them."""

import subprocess
from pathlib import Path

import pytest
from fuzz.cuda import found
from fuzz.cuda.check import Found, How, check_kernels
from fuzz.cuda.kernel import make_kernel

FIXED, NEW, CHUNK = 60, 10, 20
UNITS = (
    *("cluster_sync", "peer(", "peer_load", "gate_wait", "copy_arrive", "bulk_copy", "group_sync"),
    *("copy_wait", "cas_16", "add_f16", "product_", "transpose", "wmma_f16", "sample_", "ways["),
)
"""What some of the fixed kernels have to reach."""
FOUND = sorted(Path(__file__).with_name("found").glob("*.cu"))


def first_new_seed() -> int:
    """A seed of this commit's own; a fixed one outside of git."""
    try:
        said = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return 1 << 32
    return int(said.stdout[:10], 16)


def wrong(checked: list[Found]) -> list[str]:
    """What is wrong with which kernel."""
    return [f"seed {f.kernel.seed}: {f.kind}: {f.text}" for f in checked if f.kind]


def test_the_fixed_kernels_reach_the_units_of_a_chip() -> None:
    text = "".join(make_kernel(seed).text() for seed in range(FIXED))
    assert [word for word in UNITS if word not in text] == []


@pytest.mark.parametrize("first", range(0, FIXED, CHUNK))
def test_random_kernels_leave_what_the_oracle_leaves(first: int) -> None:
    kernels = [make_kernel(seed) for seed in range(first, first + CHUNK)]
    checked = check_kernels(kernels, How(quick=True))
    assert wrong(checked) == []
    assert len(checked) == CHUNK


@pytest.mark.parametrize("part", range(0, NEW, 10))
def test_kernels_that_nobody_has_seen_leave_what_the_oracle_leaves(part: int) -> None:
    first = first_new_seed() + part
    checked = check_kernels([make_kernel(seed) for seed in range(first, first + 10)])
    assert wrong(checked) == []
    assert len(checked) == 10


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_a_kernel_that_failed_once_leaves_what_the_oracle_leaves(path: Path) -> None:
    (checked,) = check_kernels([found.read(path)])
    assert (checked.kind, checked.text) == ("", "")
