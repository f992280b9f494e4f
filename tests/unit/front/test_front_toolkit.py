"""NVIDIA's libraries are found in its wheels; where there are none, one sentence says so."""

import sys
from pathlib import Path

import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.front import resources, toolkit
from cutrace.tracer.front.ptx import compiled_from


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("nvrtc", "cuda_nvrtc/lib/libnvrtc.so.12"),
        ("nvrtc", "cuda_nvrtc/bin/nvrtc64_120_0.dll"),
        ("ptxas", "cuda_nvcc/bin/ptxas"),
        ("ptxas", "cuda_nvcc/bin/ptxas.exe"),
    ],
)
def test_a_library_is_found_on_linux_and_on_windows(
    name: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "nvidia"
    library = package / path
    library.parent.mkdir(parents=True)
    (package / "__init__.py").touch()
    library.touch()
    (library.parent / "libnvrtc.alt.so.12").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    assert toolkit.find_file(name) == library


@pytest.fixture
def no_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "_wheel_folders", lambda package: iter(()))


@pytest.mark.usefixtures("no_wheels")
def test_macos_is_told_to_bring_ptx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(CutraceError, match=r"none for macOS; .* give cutrace the \.ptx file"):
        toolkit.library("nvrtc")


@pytest.mark.usefixtures("no_wheels")
def test_a_machine_without_the_wheel_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(CutraceError, match=r'pip install "nvidia-cuda-nvrtc-cu12>=12\.9,<13"'):
        toolkit.library("nvrtc")


@pytest.mark.usefixtures("no_wheels")
def test_without_the_assembler_nothing_is_measured() -> None:
    assert resources.resources(".entry k(\n)\n", "k") == ()


def test_headers_of_nvidia_and_their_copies_are_no_sources_of_a_program(tmp_path: Path) -> None:
    folders = (
        "nvidia/cu13/include/cccl/cuda",
        f"headers/{'0' * 32}",
        "cuda-13.0/include",
        "app/include",
    )
    files = [tmp_path / folder / "barrier.h" for folder in folders]
    for file in files:
        file.parent.mkdir(parents=True)
        file.touch()
    ptx = "".join(f'.file {n} "{file}"\n' for n, file in enumerate(files, 1))
    assert list(compiled_from(ptx)) == [str(files[-1])]
