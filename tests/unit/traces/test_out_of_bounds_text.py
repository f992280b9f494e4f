"""The position of an access beside the nearest array, as messages name it."""

import pytest

from cutrace.traces.out_of_bounds import gap_text


@pytest.mark.parametrize(
    ("address", "width", "text"),
    [
        (132, 4, "just past the end of"),  # the array is 100 to 131
        (133, 1, "1 byte past the end of"),
        (136, 4, "4 bytes past the end of"),
        (128, 8, "4 bytes beyond the end of"),
        (131, 2, "1 byte beyond the end of"),
        (99, 1, "1 byte before"),
        (96, 4, "4 bytes before"),
    ],
)
def test_a_gap_is_in_bytes_but_for_none(address: int, width: int, text: str) -> None:
    assert gap_text(100, 32, address, width) == text
