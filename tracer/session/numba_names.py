"""Names of Numba's shared arrays: `tile` of `tile = cuda.shared.array(...)`, not `_cudapy_smem_1`.

Numba numbers the arrays of a process as it compiles them, those of one function from its top to its
bottom. If the kernel has as many as a function of its source assigns, they have the names there.
Otherwise (arrays of device functions, or removed ones) a name says where the array is first used.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

import pyarrow as pa

_SHARED = re.compile(r"_cudapy_smem_(\d+)$")
_OPEN = "_cudapy_smem"
"""Prefix of all shared arrays of Numba."""


def numba_names(
    variables: Sequence[str], instructions: pa.Table, sources: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the names of a kernel's shared arrays by PTX name; empty without arrays of Numba.

    `instructions` is the kernel's table of the trace, `sources` are texts by path.
    """
    if not any(name.startswith(_OPEN) for name in variables):
        return {}
    places = instructions.select(["file", "line"]).to_pylist()
    lines = [(row["file"], row["line"]) for row in places]
    numbers = {name: int(match[1]) for name in variables if (match := _SHARED.match(name))}
    ordered = sorted(numbers, key=lambda name: numbers[name])
    assigned = [name for name in _assigned(lines, sources) if name]
    if len(assigned) == len(ordered) == len({*assigned}):
        return dict(zip(ordered, assigned, strict=True))
    texts = instructions["text"].to_pylist()
    firsts = {
        name: next((n for (_, n), text in zip(lines, texts, strict=True) if name in text), 0)
        for name in ordered
    }
    many = [*firsts.values()]
    return {
        name: f"shared memory{f' {index}' * (many.count(line) > 1)}, line {line}"
        for index, (name, line) in enumerate(firsts.items(), start=1)
    }


def _assigned(lines: Sequence[tuple[str, int]], sources: Mapping[str, str]) -> Iterator[str]:
    """Yield the names that get a shared array in the functions that the lines belong to."""
    for file, text in sources.items():
        own = {line for name, line in lines if PurePath(name).name == PurePath(file).name}
        try:
            functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
        except (SyntaxError, ValueError):
            continue
        for function in functions:
            if own.intersection(range(function.lineno, (function.end_lineno or 0) + 1)):
                yield from _arrays(function)


def _arrays(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the targets of `cuda.shared.array(...)` from top to bottom."""
    assigns = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    for node in sorted(assigns, key=lambda each: (each.lineno, each.col_offset)):
        if isinstance(node.value, ast.Call) and _is_shared_array(node.value.func):
            target = node.targets[0]
            yield target.id if isinstance(target, ast.Name) else ""


def _is_shared_array(function: ast.expr) -> bool:
    """Return whether a function is `cuda.shared.array`, or `shared.array`."""
    return ast.unparse(function).split(".")[-2:] == ["shared", "array"]
