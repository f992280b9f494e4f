"""The pytest plugin: `cutrace_session`, a session whose kernels a test holds to numbers.

Every run of pytest beside an installed cutrace imports this file, so it imports nothing more until
a test asks for the fixture.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .commands.running.checked_session import CheckedSession


@pytest.fixture
def cutrace_session(tmp_path: Path) -> "Iterator[CheckedSession]":
    """Record kernels in `tmp_path`; then ask: `profile()`, `assert_budget()`."""
    from .commands.running.checked_session import CheckedSession

    with CheckedSession(tmp_path / "session.cutrace") as gpu:
        yield gpu
