"""The order of tests, which of the unit tests are slow, and what the assembler is asked in tests.

What takes a minute by itself comes first, so that no core waits at the end. `scripts/test unit`
leaves out what is slow: files whose tests take over 0.2 s of CPU each, on average.
"""

import gc
import os
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import settings

FIRST = ("test_storage.py", "test_counters.py", "test_variants.py")
"""Children of `test_storage.py` are forks of a worker, which copy what it has; all tests of each
other read what one fixture records and analyzes."""

EVERY_ARCHITECTURE = {
    *("test_device_code", "test_documents", "test_host_session", "test_machine_bounds"),
    *("test_program_linked", "test_surfaces"),
}
"""Test files that read what the assembler says for older architectures. Elsewhere sessions, and
commands of `command_server.py`, ask it for one: ten take 0.3 s of CPU a kernel, a fifth of the time
of all tests."""

settings.register_profile("beside other tests", deadline=None)  # and the first call may compile
settings.load_profile("beside other tests")
for variable in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "COLUMNS", "NO_COLOR"):
    os.environ.pop(variable, None)  # what the commands and scripts that tests start would obey
os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))  # for those with another home
# nvcc reads no std::legendre and the like, which <cmath> of GCC has: a fifth of its time
os.environ["NVCC_APPEND_FLAGS"] = "-D_GLIBCXX_BITS_SPECFUN_H"

UNIT = Path(__file__).parent / "unit"
SLOW_FOLDERS = {"advice", "commands", "program", "python"}
"""These record whole kernels, run the command line, or build programs with a host compiler."""
SLOW_FILES = {
    *("test_analyzer_bounds", "test_analyzer_idle", "test_counter_twins", "test_miss_ratios"),
    *("test_html_report", "test_html_browser", "test_figure", "test_editor"),
    *("test_engine_compiled", "test_engine_compiled_calls", "test_engine_compiled_generic"),
    *("test_engine_escape", "test_engine_small_launch"),
    *("test_bounds", "test_engine_control", "test_engine_divergence", "test_engine_heap"),
    *("test_engine_instruction_limit", "test_engine_meeting", "test_engine_memory"),
    *("test_engine_machine_room", "test_engine_pointer", "test_engine_progress"),
    "test_engine_turns",
    *("test_engine_uninitialized", "test_engine_warp"),
    *("test_front_as_nvcc", "test_front_tensor_core"),
    *("test_host_in_part", "test_host_record", "test_sampling"),
    *("test_model_bounds", "test_model_jobs", "test_model_whatif", "test_ptx_by_hand"),
    *("test_claim", "test_hostile_manifest"),
}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage until all tests are known: a sixth of the time to find them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in FIRST)
    for item in items:
        if is_slow(item.path):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and never among the tests themselves: a tenth of all time else."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def is_slow(path: Path) -> bool:
    """Whether the tests of a file are left out by `scripts/test unit`."""
    if not path.is_relative_to(UNIT):
        return False
    return path.relative_to(UNIT).parts[0] in SLOW_FOLDERS or path.stem in SLOW_FILES


@pytest.fixture(autouse=True, scope="module")
def one_architecture(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ask the assembler for Hopper's registers alone where no test reads the others'."""
    from cutrace.tracer.front.resources import measure

    if request.path.stem in EVERY_ARCHITECTURE:
        yield
        return
    few = partial(measure, archs=("sm_90",))
    with patch("cutrace.tracer.session.resources.measure", few):
        yield
