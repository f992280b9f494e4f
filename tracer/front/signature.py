"""Match the PTX entries of a compiled source with the C signatures written in it.

PTX lists the kernels by mangled name; the source has the names of their parameters. The demangled
name selects the definition, and the parameter types select among overloads.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from .demangle import Demangled, demangle, plain, without_file
from .source import KernelSignature
from .syntax.syntax import Written, written_kernels

_ENTRY = re.compile(
    r"^\s*(?:\.(?:visible|weak)\s+)?\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?", re.MULTILINE
)
_BOUND = re.compile(r"\.entry\s+([\w$]+)[^{;]*?\.(?:max|req)ntid\s+([\d\s,]+)")
_PARAMETER = re.compile(
    r"\.param[^,]*?\.([busf]\d+)\s+(\.ptr\b)?[^,]*?([\w$]+(?:\[\d+\])?)\s*(?:,|$)"
)

_NUMBA = re.compile(r"B\d+v\d+B\d+c")
"""ABI tags of a Numba kernel's name: its number and its compiler flags."""

_OBJECT = re.compile(r"\bcuda(?:Texture|Surface)Object_t\b")


def entries(ptx: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the PTX names of the kernels in `ptx`, in order, with their parameters' PTX types.

    A parameter marked as a pointer (`.ptr`) is `void *`.
    """
    return {
        name: tuple(("void *" if ptr else t, own) for t, ptr, own in _PARAMETER.findall(listed))
        for name, listed in _ENTRY.findall(ptx)
    }


def list_kernels(
    ptx: str,
    texts: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    python: Sequence[str] = (),
) -> tuple[KernelSignature, ...]:
    """Return a signature for each entry of `ptx`.

    `texts` are the sources that may define the kernels, `python` the Python files that may; `names`
    maps name expressions to PTX names. An instance is named by its name expression.
    """
    written = [kernel for text in texts for kernel in written_kernels(text)]
    expressions = {mangled: expression for expression, mangled in (names or {}).items()}
    bounds = {name: prod(map(int, sizes.split(","))) for name, sizes in _BOUND.findall(ptx)}
    return tuple(
        _with_names(
            _signature(
                mangled, parameters, written, expressions.get(mangled), bounds.get(mangled, 0)
            ),
            (*texts, *python),
        )
        for mangled, parameters in entries(ptx).items()
    )


def _with_names(kernel: KernelSignature, texts: Sequence[str]) -> KernelSignature:
    """Name the parameters of a Numba or Triton kernel after those of its Python function.

    Triton prefixes parameters with the kernel's name.
    """
    begin = f"{kernel.mangled}_param_"
    named = tuple((kind, name.removeprefix(begin)) for kind, name in kernel.parameters)
    if named != kernel.parameters and not any(name.isdigit() for _, name in named):
        return replace(kernel, parameters=named)
    if not _NUMBA.search(kernel.mangled):
        return kernel
    names = python_parameters(kernel.name, len(kernel.parameters), texts)
    pairs = zip(kernel.parameters, names, strict=False)
    by_source = tuple((c_type, name) for (c_type, _), name in pairs)
    return replace(kernel, parameters=by_source or kernel.parameters)


def _signature(
    mangled: str,
    parameters: tuple[tuple[str, str], ...],
    written: Sequence[Written],
    expression: str | None,
    max_threads: int,
) -> KernelSignature:
    read = demangle(mangled)
    name = expression or (_full_name(read) if read else without_file(mangled))
    if read and _NUMBA.search(mangled):
        name = _last(name)  # without the Python module
    match = _best_match(mangled, read, written)
    if match:
        parameters = tuple((_instance(t, match, read), n) for t, n in match.parameters)
    elif read:
        parameters = tuple((plain(t), "") for t in read.parameters)
    return KernelSignature(mangled, name, parameters, max_threads)


def _full_name(read: Demangled) -> str:
    return read.name if read.arguments is None else f"{read.name}<{', '.join(read.arguments)}>"


def _best_match(mangled: str, read: Demangled | None, written: Sequence[Written]) -> Written | None:
    """Return the definition with this name and parameter count; of overloads the best match."""
    name = read.name if read else without_file(mangled)
    candidates = [k for k in written if k.name == name] or [
        k for k in written if _last(k.name) == _last(name)
    ]
    if read:
        candidates = [k for k in candidates if (k.template is None) == (read.arguments is None)]
        candidates = [k for k in candidates if len(k.parameters) == len(read.parameters)]
    return max(candidates, key=lambda kernel: _agreement(kernel, read), default=None)


def _agreement(kernel: Written, read: Demangled | None) -> int:
    """Count the parameters with the same type words as in the PTX name."""
    types = read.parameters if read else ()
    pairs = zip(kernel.parameters, types, strict=False)
    return sum(_words(_instance(t, kernel, read)) == _words(plain(p)) for (t, _), p in pairs)


def _instance(ctype: str, kernel: Written, read: Demangled | None) -> str:
    """Substitute template arguments in a parameter's type: `const T *` -> `const float *`."""
    if not kernel.template or not read or not read.arguments:
        return ctype
    values = dict(zip(kernel.template, read.arguments, strict=False))
    return re.sub(r"\w+", lambda word: values.get(word[0], word[0]), ctype)


def _words(ctype: str) -> list[str]:
    """Return the words of a type, sorted, without those that a mangled name lacks.

    An array is a pointer: `float [8][N]` and `float (*)[N]` have the same words.
    """
    pointers = re.sub(r"\[[^]]*\]", "*", ctype.replace("unsigned int", "unsigned"))
    words = re.findall(r"\w+|[*&]", _OBJECT.sub("unsigned long long", pointers))
    return sorted(word for word in words if word not in ("__restrict__", "struct", "volatile"))


def _last(name: str) -> str:
    return name.rpartition("::")[2]


def python_parameters(name: str, count: int, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the parameters of the Python function with this name and count, or ().

    >>> python_parameters("add", 2, ["def add(a, b):\\n    pass\\n"])
    ('a', 'b')
    """
    candidates = (names for text in texts for own, names in _functions(text) if own == name)
    return next((names for names in candidates if len(names) == count), ())


@lru_cache(maxsize=16)
def _functions(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    try:
        return tuple(_defined(ast.parse(text)))
    except (SyntaxError, ValueError):  # a source in another language
        return ()


def _defined(tree: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            listed = (*node.args.posonlyargs, *node.args.args)
            yield node.name, tuple(each.arg for each in listed)
