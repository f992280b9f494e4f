"""scripts/slim.py: which files of an environment go, and which another package keeps."""

import runpy
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "slim.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the scripts are not beside the tests")

NVRTC = "nvidia/cuda_nvrtc/lib"


def install(
    folder: Path, name: str, needs: tuple[str, ...] = (), files: tuple[str, ...] = ()
) -> None:
    """Write what pip writes of a package without code."""
    facts = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    facts.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0"]
    (facts / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {n}" for n in needs)]))
    (facts / "RECORD").write_text("".join(f"{each},,\n" for each in files))
    for each in files:
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        (folder / each).write_text("x")


def found(folder: Path) -> list[str]:
    """The files that would be deleted."""
    script: dict[str, Any] = runpy.run_path(str(SCRIPT))
    every = list(distributions(path=[str(folder)]))
    return sorted(path.relative_to(folder).as_posix() for path in script["find_files"](every))


def environment(folder: Path) -> None:
    """Install cutrace with some of its packages."""
    needs = ("nvidia-cuda-nvrtc-cu12>=12.9; sys_platform != 'darwin'", "numpy>=1.26", "pyarrow>=17")
    install(folder, "cutrace", needs)
    libraries = tuple(f"{NVRTC}/{name}" for name in ("libnvrtc.so.12", "libnvrtc.alt.so.12"))
    install(folder, "nvidia-cuda-nvrtc-cu12", files=libraries)
    install(folder, "numpy", files=("numpy/core.py", "numpy/fft/tests/test_fft.py"))
    arrow = ("libarrow.so", "libarrow_flight.so.2600", "libarrow_s3.so.2600", "_s3fs.so", "_fs.so")
    install(folder, "pyarrow", files=tuple(f"pyarrow/{name}" for name in arrow))


def test_files_that_only_cutrace_could_load_and_does_not_are_deleted(tmp_path: Path) -> None:
    environment(tmp_path)
    assert found(tmp_path) == [
        "numpy/fft/tests/test_fft.py",
        f"{NVRTC}/libnvrtc.alt.so.12",
        "pyarrow/_s3fs.so",
        "pyarrow/libarrow_flight.so.2600",
        "pyarrow/libarrow_s3.so.2600",
    ]


def test_a_package_that_another_one_needs_stays_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment(tmp_path)
    install(tmp_path, "torch", ("nvidia_cuda_nvrtc_cu12==12.9.86", "numpy; extra == 'all'"))
    install(tmp_path, "pandas", ("PyArrow>=13",))
    assert found(tmp_path) == ["numpy/fft/tests/test_fft.py"]
    assert capsys.readouterr().out.splitlines() == [
        "nvidia-cuda-nvrtc-cu12 stays whole for torch",
        "pyarrow stays whole for pandas",
    ]
