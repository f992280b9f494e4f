"""What scripts import of this package is there: most need a GPU, and run in no test."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPTS = sorted((ROOT / "scripts").rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Modules of the package, each with a name that it has.

    scripts/capture/counters.py calls `our` with the text of a module's name.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.name, "__name__") for each in node.names if _is_ours(each.name))
        elif isinstance(node, ast.ImportFrom) and node.module and _is_ours(node.module):
            yield from ((node.module, each.name) for each in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "our":
            yield f"cutrace.{ast.literal_eval(node.args[0])}", "__name__"


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "cutrace"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_script_imports_of_the_package_is_there(script: Path) -> None:
    for module, name in imports(ast.parse(script.read_text(encoding="utf-8"))):
        assert hasattr(import_module(module), name) or import_module(f"{module}.{name}")


def test_modules_are_found_in_statements_and_in_text() -> None:
    text = 'import cutrace.base\ndef f():\n    from cutrace.jit import loop\n    our("tracer.simt")'
    expected = {("cutrace.base", "__name__"), ("cutrace.jit", "loop")}
    expected |= {("cutrace.tracer.simt", "__name__")}
    assert {*imports(ast.parse(text))} == expected
