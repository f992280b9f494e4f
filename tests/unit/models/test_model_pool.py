"""What is passed on for distinct rows, repeated: addresses by hand, compiled or not."""

import numpy as np
import pytest

from cutrace.models.replay.count import repeating
from cutrace.models.replay.count.pool import Pool
from cutrace.models.replay.native.compiled import rows_asked
from cutrace.models.replay.native.loops import REPEATING_WORTH
from cutrace.models.replay.seam import Kind

GLOBAL, LOCAL = Kind("global", "load", "ca", 32), Kind("local", "load", "", 128)


@pytest.mark.parametrize("compiled", [False, True])
def test_rows_have_the_requests_of_the_row_that_they_repeat_moved(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 0 makes two requests, row 1 none, row 2 one of local memory, which moves 32 times."""
    pool = Pool(
        (GLOBAL, LOCAL), np.array([0, 0, 1]), np.array([0, 32, 1024]), np.array([0, 2, 2, 3])
    )
    number, shift, row = np.array([2, 0, 1, 0]), np.array([4, 64, 8, 0]), np.array([5, 6, 7, 9])
    monkeypatch.setitem(rows_asked, repeating.__name__, REPEATING_WORTH if compiled else 0)
    made = pool.repeat(number, shift, row)
    assert made.addresses[:, 0].tolist() == [1024 + 4 * 32, 64, 32 + 64, 0, 32]
    assert made.kind.tolist() == [1, 0, 0, 0, 0]
    assert made.row.tolist() == [5, 6, 6, 9, 9]
    assert made.active.shape == (5, 1)
    assert made.active.all()
