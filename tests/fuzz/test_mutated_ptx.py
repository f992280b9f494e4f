"""PTX that is nearly right runs or ends in a sentence; scripts/fuzz_kernels.py tries more."""

import re

import pytest
from fuzz.nearly import nearly, refusal

EXAMPLES = 400
PLACE = re.compile(r"line \d+|\.cu:\d+|^source\.ptx: not PTX|^no kernel |<<<")
"""A line of the PTX or of its source; or what concerns a whole text, or a launch."""


@pytest.mark.parametrize("first", range(0, EXAMPLES, 50))
def test_mutated_ptx_runs_or_is_refused_with_its_place(first: int) -> None:
    said = [refusal(nearly(number)) for number in range(first, first + 50)]
    assert [message for message in said if message and not PLACE.search(message)] == []
    assert len(said) == 50
