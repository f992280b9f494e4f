"""Each field of texture descriptors does what it did on an NVIDIA H200, or is refused by its name.

The program is scripts/capture/texture_fields.cu, recorded here as it is. Its cases stand in
`texture_fields.npz` with the driver's answers and the samples of each.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from program_run import record

Case: TypeAlias = tuple[str, NDArray[np.uint32]]
SOURCE = Path(__file__).parents[2] / "scripts" / "capture" / "texture_fields.cu"
KEPT = np.load(Path(__file__).with_name("texture_fields.npz"))
COUNTS = {"srgb": 244, "border": 93, "mip": 347, "cube": 213, "view": 577, "errors": 43}

REFUSED = {
    "maxAnisotropy": r"aniso(flat)?([2-9]|\d\d+)-.*",
    "seamlessCubemap": r"cube.*-filter1-seamless[12]-.*|cubemip-seamless1",
    "normalised coordinates": r"mipnotnormalized-.*",
    "normalized_coords": r"cube-norm0|bad-cube-unnormalized",
    "readMode": r"bad-read(float)?_.*",
    "cudaResourceViewDesc.format": r"view-.*",
    "cudaResourceViewDesc.firstLayer": r"viewlayers[1-9]_.*",
    "cudaResourceViewDesc.lastLayer": r"viewlayers0_[06]-.*",
    "pitchInBytes": r"pitch(bytes0|bytes32|width0|width131072|height0)",
    "rows": r"pitchheight65000",
    "texture": r"linearbytes[01]",
    "of kind": r"kind(1[7-9]|2\d|3[01])-.*|channels-.*-17",
}
"""What cutrace leaves out: words of its refusal, and the names of the cases."""


def cases(lines: Iterable[str], samples: NDArray[np.uint32]) -> dict[str, Case]:
    """The error and the samples of each case by its name; of equal names the last."""
    found, start = {}, 0
    for line in lines:
        name, _, error, count = line.split("|")
        found[name] = (error, samples[start : start + int(count)])
        start += int(count)
    return found


def check_samples(name: str, ours: NDArray[np.uint32], theirs: NDArray[np.uint32]) -> None:
    """As many as may differ, by as much as may be.

    Gradients choose a level to a 256th, of texels from -2 to 2; sRGB texels are mixed in an order
    of the chip's own, as other floats are; of rows blended with their border 1 in 12 differs.
    """
    one, other = ours.view(np.float32), theirs.view(np.float32)
    same = (ours == theirs) | (one == other) | (np.isnan(one) & np.isnan(other))
    gap = np.abs(one[~same].astype(np.float64) - other[~same])
    share, most, beyond = 0.02, 6e-8, 0
    if name.endswith("-grad") or name.startswith("mip3d"):
        share, most, beyond = 0.35, 4 / 256 + 1e-4, 4
    elif "srgb" in name:
        share, most = 0.04, 0.0032
    elif name.startswith("border1d"):
        share = 0.1
    assert gap.size <= share * same.size, name
    assert (gap > most).sum() <= beyond, (name, gap.max())


def check_part(found: Mapping[str, Case], kept: Mapping[str, Case], said: str) -> None:
    """Compare all cases, and what was said of those that were refused."""
    for name, (error, theirs) in kept.items():
        words = [word for word, names in REFUSED.items() if re.fullmatch(names, name)]
        own, ours = found.get(name, ("cudaErrorNotSupported", theirs))
        if words and own == "cudaErrorNotSupported":
            assert any(word in said for word in words), name
            continue
        assert own == error, name
        check_samples(name, ours, theirs)


@pytest.mark.parametrize("part", COUNTS)
def test_a_field_does_what_it_does_on_the_chip(tmp_path: Path, part: str) -> None:
    lines: Any = KEPT[f"{part}_cases"]
    assert len({line.split("|")[0] for line in lines}) == COUNTS[part]
    kept = cases(lines, KEPT[part])
    untraced = ("--kernels", "none")  # the values alone: a trace of 4,000 launches takes a minute
    done = record(tmp_path, SOURCE.read_text(), str(tmp_path), part, options=untraced)
    written = tmp_path / f"textures.{part}.bin"
    samples = np.fromfile(written, np.uint32).reshape(-1, 4)
    found = cases(written.with_suffix(".txt").read_text().split(), samples)
    check_part(found, kept, done.err)
