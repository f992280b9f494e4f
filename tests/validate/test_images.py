"""Texture and surface instructions give what an NVIDIA H200 gave: scripts/capture/images.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases.image_case import ImageCase, image_cases
from cases.image_run import run_image
from numpy.typing import NDArray
from ptx.ptx_case import stored_dtype

QUIRKS = {
    "tex.1d.v4.s32.s32": "a row of a CUDA array: zeros there, texels here (a copy may be fetched)",
    "[$s0, {$s2}], {3}; f4x1 1d border linear": "an offset in one dimension blends with the border",
}
"""Where hardware does what nobody asks for, and cutrace does not follow."""


def captured() -> Iterator[tuple[str, tuple[bytes, bytes]]]:
    """The name of each case that the driver took, with its results and its image."""
    kept = np.load(Path(__file__).with_name("images.npz"))
    columns = []
    for what in ("results", "image"):
        ends = np.cumsum(kept[f"{what}_sizes"])
        data = kept[f"{what}_bytes"].tobytes()
        columns.append([data[end - size : end] for end, size in zip(ends, kept[f"{what}_sizes"],
                                                                    strict=True)])  # fmt: skip
    return zip(kept["case"].tolist(), zip(*columns, strict=True), strict=True)


TAKEN = dict(captured())
CASES = [
    case
    for case in image_cases()
    if case.name in TAKEN and not any(words in case.name for words in QUIRKS)
]


def close(case: ImageCase, kind: str, ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    """Equal, but for the order in which hardware adds up what it weighs."""
    if (ours == theirs).all() or case.filter_mode == "point":
        return bool((ours == theirs).all())
    if kind == "f32":
        gap = np.abs(ours.view(np.float32) - theirs.view(np.float32))
        return bool((gap <= 2**-23).all())
    halves = [each.view(np.uint16).astype(np.int64) for each in (ours, theirs)]
    wrong = halves[0] != halves[1]
    return bool(wrong.sum() <= 0.03 * wrong.size and np.abs(halves[0] - halves[1]).max() <= 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_instruction_does_to_images_what_the_silicon_does(case: ImageCase) -> None:
    results, image = TAKEN[case.name]
    found, after = run_image(case)
    for kind, ours in zip(case.results, found, strict=True):
        theirs = np.frombuffer(results[: ours.nbytes], stored_dtype(kind))
        results = results[ours.nbytes :]
        assert close(case, kind, ours, theirs), (ours.tolist(), theirs.tolist())
    assert after == image


def test_what_was_captured_is_what_is_compared() -> None:
    assert len(TAKEN) == 576
    assert len(CASES) == 576 - 3
