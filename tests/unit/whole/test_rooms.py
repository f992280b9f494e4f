"""The tree: what each folder says of itself, and who imports whom."""

import ast
import re
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[3]
STAGES = ("analyzer", "base", "commands", "jit", "models", "tracer", "traces")


def product() -> list[Path]:
    """The files of the package, the gallery left out."""
    inside = (path for stage in STAGES for path in (ROOT / stage).rglob("*.py"))
    return [*ROOT.glob("*.py"), *(p for p in inside if "gallery" not in p.parts)]


@cache
def imports(path: Path) -> list[Path]:
    """The files of the package that a file imports, for types only or inside functions too."""
    imported: list[Path] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            names = [folder / alias.name for alias in node.names]
            found = (*names, folder) if folder.is_dir() else (folder,)
            files = (each.with_suffix(".py") for each in found)
            imported += (file for file in files if file.is_file())
    return imported


def circles() -> list[set[str]]:
    """The circles of imports, as sets of files."""
    graph = nx.DiGraph(
        (str(p.relative_to(ROOT)), str(i.relative_to(ROOT))) for p in product() for i in imports(p)
    )
    return [found for found in nx.strongly_connected_components(graph) if len(found) > 1]


def test_the_imports_of_a_file_are_found() -> None:
    found = {str(p.relative_to(ROOT)) for p in imports(ROOT / "tracer" / "simt" / "run.py")}
    assert {"base/errors.py", "tracer/simt/kernel/launch.py", "tracer/simt/wave.py"} <= found


def test_no_files_import_each_other_in_a_circle() -> None:
    assert circles() == []


def test_no_two_folders_import_each_other() -> None:
    edges = {(p.parent, i.parent) for p in product() for i in imports(p) if p.parent != i.parent}
    assert edges
    assert {(a.name, b.name) for a, b in edges if (b, a) in edges} == set()


def closure(start: Path) -> set[Path]:
    """A file and all that it imports, directly or not, inside functions too."""
    reached, queue = {start}, [start]
    while queue:
        more = {*imports(queue.pop())} - reached
        reached |= more
        queue += more
    return reached


def test_a_recording_imports_neither_the_analyzer_nor_the_replay() -> None:
    reached = {path.relative_to(ROOT) for path in closure(ROOT / "commands" / "record.py")}
    assert Path("tracer/simt/run.py") in reached
    assert [path for path in reached if path.parts[0] == "analyzer"] == []
    of_models = {str(path) for path in reached if path.parts[0] == "models"}
    assert "models/replay/device/device.py" in of_models  # a program sees a device
    assert "models/replay/replay.py" not in of_models


def test_every_folder_of_the_package_says_what_it_is_for() -> None:
    for folder in {path.parent for path in product()}:
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_files_and_folders_that_the_pages_name_are_there(page: str) -> None:
    text = re.sub(r"^```diff$.*?^```$", "", (ROOT / page).read_text(), flags=re.M | re.S)
    named = re.findall(
        r"`((?:analyzer|base|commands|docs|jit|models|scripts|tests|tracer|traces)/[\w/.]+)`", text
    )
    assert named
    made = {"commands/VERB.py", "models/devices/NAME.toml"}
    assert [name for name in named if name not in made and not (ROOT / name).exists()] == []


def test_the_files_that_are_called_slow_are_there() -> None:
    listed = re.findall(r'"(test_\w+)"', (ROOT / "tests" / "conftest.py").read_text())
    there = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    assert listed
    assert {*listed} <= there


def test_no_module_compiles_methods_of_dataclasses_while_it_is_imported() -> None:
    with_own = {"tracer/program/startup/nvcc_host.py"}  # it imports nothing of ours
    wanted = re.compile(r"^from dataclasses import .*\bdataclass\b", re.MULTILINE)
    found = {str(p.relative_to(ROOT)) for p in product() if wanted.search(p.read_text("utf-8"))}
    assert found == with_own
