import tomllib
from pathlib import Path

import pytest

import cutrace
from cutrace.tracer.front.toolkit import wheel_of

ROOT = Path(__file__).parents[3]
NOT_PACKAGED = {"tests", "scripts", "docs", "build", "dist"}


def test_pyproject_lists_every_folder_that_has_an_init_file() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = {
        ".".join(("cutrace", *folder.relative_to(ROOT).parts))
        for folder in (path.parent for path in ROOT.rglob("__init__.py"))
        if not any(p in NOT_PACKAGED or p[0] == "." for p in folder.relative_to(ROOT).parts)
    }
    assert found == set(settings["tool"]["setuptools"]["packages"])


@pytest.mark.parametrize("folder", ["models/devices/measured", "analyzer/counters"])
def test_data_beside_the_modules_is_in_the_wheel(folder: str) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    data = {
        path
        for package, patterns in settings["package-data"].items()
        for pattern in patterns
        for path in (ROOT / package.removeprefix("cutrace").replace(".", "/").strip("/")).glob(
            pattern
        )
    }
    files = {path for path in (ROOT / folder).iterdir() if path.suffix in (".csv", ".toml")}
    assert files
    assert files <= data


def test_the_headers_that_a_message_advises_to_install_are_an_extra() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extra = {
        line.partition(">")[0] for line in settings["project"]["optional-dependencies"]["headers"]
    }
    assert extra == {wheel_of("curand_kernel.h")}


def test_what_reads_traces_is_all_dependencies_but_the_compilers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lines = (ROOT / "scripts" / "read.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        line for line in settings["project"]["dependencies"] if not line.startswith("nvidia-")
    ]


def test_no_folder_of_tests_or_of_the_gallery_is_a_package() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))
    assert not list((ROOT / "traces" / "gallery").rglob("__init__.py"))


def test_public_names_are_these_and_each_can_be_imported() -> None:
    names = ["CutraceError", "Session", "TraceWriter", "advise", "analyze", "check", "compare"]
    names += [
        "counters",
        "devices",
        "import_trace",
        "judge",
        "miss_ratios",
        "occupancy",
        "read_trace",
        "record",
        "recording",
        "report",
    ]
    names += ["scan_traces", "sweep", "why"]
    assert cutrace.__all__ == names
    assert [getattr(cutrace, name).__name__ for name in names] == names


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'analyse'"):
        _ = cutrace.analyse
