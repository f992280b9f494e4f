"""What a verb must not import: most of the time of a small question is start-up."""

import subprocess
import sys
from pathlib import Path

import pytest

COMPILERS = {"llvmlite", "numba"}
NEVER = {"networkx", "pandas", "pydantic", "scipy", "dask", "jinja2"}
TABLES = {"numpy", "polars", "pyarrow"}
KERNEL = """// cutrace: scale<<<2, 64>>>(a:i32[128]=arange)
__global__ void scale(int *a) { a[blockIdx.x * 64 + threadIdx.x] *= 3; }
"""
LIST = """import sys
from cutrace.commands._main import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def imported(folder: Path, *words: str) -> set[str]:
    """What a command imports: packages, and modules with a point in their names."""
    command = [sys.executable, "-c", LIST, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    modules = done.stderr.split("\n")[-2].split()
    assert "cutrace.commands._main" in modules
    return {*modules, *(module.partition(".")[0] for module in modules)}


def test_the_version_needs_nothing_but_the_command_line(tmp_path: Path) -> None:
    for words in (["--version"], ["-q", "--version"]):
        assert not imported(tmp_path, *words) & (COMPILERS | NEVER | TABLES | {"rich"})
    assert "typer" not in imported(tmp_path, "--version")


def test_counters_and_devices_are_listed_without_tables(tmp_path: Path) -> None:
    assert not imported(tmp_path, "counters") & (COMPILERS | NEVER | TABLES)
    assert not imported(tmp_path, "devices") & (COMPILERS | NEVER | {"polars"})


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """The folder of a small trace, and what recording it imported."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "k.cu").write_text(KERNEL)
    return folder, imported(folder, "record", "k.cu")


def test_a_small_kernel_is_recorded_without_what_others_need(
    recorded: tuple[Path, set[str]],
) -> None:
    heavy = NEVER | {"numba", "polars", "rich", "pyarrow.compute", "numpy.ma", "numpy.random"}
    assert not recorded[1] & (heavy | {"html", "secrets"})


def test_a_small_trace_is_replayed_without_a_compiler(recorded: tuple[Path, set[str]]) -> None:
    got = imported(recorded[0], "analyze", "k.cutrace", "-d", "h100")
    assert not got & (COMPILERS | NEVER | {"rich", "tree_sitter", "pyarrow.compute"})
    assert not imported(recorded[0], "why", "k.cutrace", "-d", "h100") & (COMPILERS | NEVER)


def test_a_larger_trace_needs_a_compiler_for_the_first_question_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "k.cu").write_text(KERNEL.replace("<<<2,", "<<<4096,").replace("[128]", "[262144]"))
    imported(tmp_path, "record", "k.cu")
    first, second = (imported(tmp_path, "analyze", "k.cutrace", "-d", "h100") for _ in range(2))
    assert "llvmlite" in first
    assert not second & (COMPILERS | NEVER)
