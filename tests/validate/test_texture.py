"""Samples of textures are those that an NVIDIA H200 took: scripts/capture/texture.py."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from cases.texture_case import Case, texture_cases
from textures import texture_of, values_of

TAKEN = pq.read_table(Path(__file__).with_name("texture.parquet"))
SAMPLES = dict(zip(TAKEN["case"].to_pylist(), TAKEN["samples"].to_pylist(), strict=True))


def samples(case: Case) -> Any:
    """The samples that cutrace takes."""
    texture = texture_of(
        case.values,
        case.mode,
        case.filter_mode,
        case.normalized,
        case.read_mode,
        array="" if case.memory == "array" else "memory",
    )
    found = values_of(texture, *case.places, fetch=case.memory == "linear")
    return found.astype(np.float32)


@pytest.mark.parametrize("case", list(texture_cases()), ids=lambda case: case.name)
def test_a_texture_is_sampled_as_hardware_samples_it(case: Case) -> None:
    found, taken = samples(case), np.array(SAMPLES[case.name], np.float32)
    if case.filter_mode == "linear" and case.element == "f4":  # the order of the sum is not known
        np.testing.assert_allclose(found, taken, rtol=0, atol=2**-23)
    elif case.element == "f2" and len(case.shape) > 1:  # nor the width of a sum of half floats
        np.testing.assert_allclose(found, taken, rtol=0, atol=2**-10)
        assert (found != taken).sum() <= 0.03 * len(taken)
    else:
        assert found.tolist() == taken.tolist()
