"""The pytest plugin: `cutrace_session`, `cutrace_recording`, `cutrace_program`.

With the fixtures a test checks kernels against limits. Every pytest run with cutrace installed
imports this file, so it imports nothing else until a test uses a fixture.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .commands.running.pytest_fixtures import CheckedProgram, CheckedSession
    from .commands.running.recording_here import recording


@pytest.fixture
def cutrace_session(tmp_path: Path) -> "Iterator[CheckedSession]":
    """Record kernels in `tmp_path`; then ask: `profile()`, `assert_budget()`."""
    from .commands.running.pytest_fixtures import CheckedSession

    with CheckedSession(tmp_path / "session.cutrace") as gpu:
        yield gpu


@pytest.fixture
def cutrace_recording(tmp_path: Path) -> "Iterator[recording]":
    """Record what the test launches by Numba, CuPy and others; then ask, as `cutrace_session`."""
    from .commands.running.recording_here import recording

    with recording(tmp_path / "recording.cutrace") as recorded:
        yield recorded


@pytest.fixture
def cutrace_program(tmp_path: Path) -> "Callable[..., CheckedProgram]":
    """Record whole programs: `cutrace_program("./app", "1024").assert_budget(...)`."""
    from .commands.running.pytest_fixtures import CheckedProgram

    count = iter(range(1 << 30))

    def run(
        *words: "str | os.PathLike[str]", device: str = "", timeout: float = 0.0
    ) -> "CheckedProgram":
        """Run a program, or build a source (.cu) and run that, with arguments."""
        return CheckedProgram(words, tmp_path / f"program{next(count)}.cutrace", device, timeout)

    return run
