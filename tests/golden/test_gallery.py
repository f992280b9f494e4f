"""Every gallery kernel computes what NumPy computes, and its counters are these integers.

A family is a folder of traces/gallery with sources, `reference.py` (the kernels in NumPy) and
`expected.toml`; a source without launch comments is launched by the Python script that is named
in `expected.toml`, which checks its own results.
"""

import json
import re
import runpy
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cutrace
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.tracer.session.source.launch_line import (
    DTYPES,
    ArrayArgument,
    LaunchLine,
    LineLauncher,
    find_launch_comments,
    initial_values,
    parse_launch,
)
from cutrace.tracer.session.source.record import record

GALLERY = Path(str(files("cutrace.traces") / "gallery"))
Record = Callable[[Path], Path]
Analyze = Callable[[Path, Any], Mapping[str, Sequence[LaunchProfile]]]


def expected_tables() -> Iterator[Any]:
    """Every [[expected]] table, with the text of its file beside it."""
    for path in sorted(GALLERY.glob("*/expected.toml")):
        for number, table in enumerate(tomllib.loads(path.read_text())["expected"]):
            name = f"{path.parent.name}-{Path(table['source']).stem}-{number}"
            proves = table.get("documents", {}).items()
            marks = [pytest.mark.document(item, figure) for item, figure in proves]
            yield pytest.param(path.parent / table["source"], table, id=name, marks=marks)


def commented_sources() -> Iterator[Any]:
    """Every source that says how to launch it, as CUDA C++ and as PTX."""
    for path in sorted((*GALLERY.glob("*/*.cu"), *GALLERY.glob("*/*.ptx"))):
        if find_launch_comments(path.read_text()):
            yield pytest.param(path, id=f"{path.parent.name}-{path.name}")


class Reference:
    """The host's arrays of one source, and the NumPy functions that play the kernels."""

    def __init__(self, folder: Path) -> None:
        self.functions = runpy.run_path(str(folder / "reference.py"))
        self.arrays: dict[str, Any] = {}
        self.folder = folder

    def launch(self, line: LaunchLine) -> None:
        """Do in NumPy what the launch line says."""
        kernel = line.kernel.partition("<")[0]
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kernel).lower()
        self.functions[name](*[self._value(argument) for argument in line.arguments])

    def _value(self, argument: Any) -> Any:
        if not isinstance(argument, ArrayArgument):
            return argument.value
        if argument.type:
            shape, dtype = argument.shape, DTYPES[argument.type]
            values = initial_values(argument.initial, shape, dtype, self.folder)
            if argument.initial or argument.name not in self.arrays:
                self.arrays[argument.name] = values
        return self.arrays[argument.name]


@pytest.mark.parametrize("source", list(commented_sources()))
def test_a_gallery_kernel_computes_what_numpy_computes(source: Path, tmp_path: Path) -> None:
    lines = [parse_launch(comment.text) for comment in find_launch_comments(source.read_text())]
    reference = Reference(source.parent)
    with cutrace.Session(tmp_path / "a.cutrace") as gpu:
        if source.suffix == ".ptx":
            module = gpu.load_ptx(source)
        else:
            templates = [line.kernel for line in lines if "<" in line.kernel]
            module = gpu.compile(source, name_expressions=templates)
        launcher = LineLauncher(gpu, module, source.parent)
        for line in lines:
            for name, values in reference.arrays.items():
                if name.startswith("out"):  # so that no earlier launch's result can pass for this
                    values[...] = 0
                    launcher.arrays[name].fill(0)
            launcher.launch(line)
            reference.launch(line)
            for name, values in reference.arrays.items():
                computed = launcher.arrays[name].copy_to_host()
                np.testing.assert_array_equal(computed, values, err_msg=f"{line.text}: {name}")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Record a source, once."""
    folder = tmp_path_factory.mktemp("gallery")

    def trace_of(source: Path) -> Path:
        trace = folder / f"{source.parent.name}-{source.stem}.cutrace"
        return trace if trace.exists() else record(source, out=trace)

    return trace_of


@pytest.fixture(scope="module")
def analyzed(recorded: Record) -> Analyze:
    """Analyze a source once per choice of options, for all devices that its tables name."""
    devices: dict[tuple[Path, str], dict[str, None]] = {}
    for source, table in (each.values for each in expected_tables()):
        asked = devices.setdefault((source, _key(table)), {})
        asked.update(dict.fromkeys(table["devices"]))

    @cache
    def by_device(source: Path, key: str) -> Mapping[str, Sequence[LaunchProfile]]:
        found: dict[str, list[LaunchProfile]] = {}
        trace, each = recorded(source), [*devices[source, key]]
        for launch in cutrace.analyze(trace, device=each, **json.loads(key)).launches:
            found.setdefault(launch.device, []).append(launch)
        return found

    return lambda source, table: by_device(source, _key(table))


def _key(table: Any) -> str:
    return json.dumps(table.get("options", {}))


@pytest.mark.parametrize(("source", "table"), list(expected_tables()))
def test_the_counters_of_a_gallery_kernel_are_these(
    source: Path, table: Any, analyzed: Analyze
) -> None:
    launches = analyzed(source, table)
    for device in table["devices"]:
        counted = {
            name: [
                "refused" if launch.refusal else launch.counters[name]
                for launch in launches[device]
            ]
            for name in table["counters"]
        }
        assert counted == table["counters"], device


def test_hello_prints_ten_lines(tmp_path: Path) -> None:
    printed = StringIO()
    record(GALLERY / "hello" / "hello.cu", out=tmp_path / "hello.cutrace", output=printed)
    assert printed.getvalue() == "".join(f"Hello from thread {thread}\n" for thread in range(10))


def test_a_device_says_why_it_refuses_a_launch(recorded: Record) -> None:
    trace = recorded(GALLERY / "transpose" / "transpose_shared.cu")
    refusals = [launch.refusal for launch in cutrace.analyze(trace, device="8800gtx").launches]
    assert refusals[0] == ""
    assert refusals[1].startswith("cannot launch: 512 threads a block at most")
