"""The kernels of a compiled source with their C signatures: PTX entries met with what was written.

PTX says which kernels there are, by mangled name; the source says how their parameters are called.
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
"""The tags behind the name of a Numba kernel: its number and its compiler's flags."""

_OBJECT = re.compile(r"\bcuda(?:Texture|Surface)Object_t\b")


def entries(ptx: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """The PTX names of the kernels in `ptx`, in order, with their parameters as PTX types them.

    One that is said to be a pointer (`.ptr`) is `void *`.
    """
    return {
        name: tuple(("void *" if ptr else t, own) for t, ptr, own in _PARAMETER.findall(listed))
        for name, listed in _ENTRY.findall(ptx)
    }


def list_kernels(
    ptx: str, texts: Sequence[str] = (), names: Mapping[str, str] | None = None
) -> tuple[KernelSignature, ...]:
    """A signature for each entry of `ptx`.

    `texts` are the sources in which the kernels may be written; `names` maps name expressions to
    PTX names, and an instance is called as it was asked for.
    """
    written = [kernel for text in texts for kernel in written_kernels(text)]
    expressions = {mangled: expression for expression, mangled in (names or {}).items()}
    bounds = {name: prod(map(int, sizes.split(","))) for name, sizes in _BOUND.findall(ptx)}
    return tuple(
        _with_names(
            _signature(
                mangled, parameters, written, expressions.get(mangled), bounds.get(mangled, 0)
            ),
            texts,
        )
        for mangled, parameters in entries(ptx).items()
    )


def _with_names(kernel: KernelSignature, texts: Sequence[str]) -> KernelSignature:
    """Call the parameters of a kernel of Numba or Triton as its Python function does.

    Triton's have the name of the kernel in front.
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
    """The writing with that name and number of parameters; of overloads the likest types."""
    name = read.name if read else without_file(mangled)
    candidates = [k for k in written if k.name == name] or [
        k for k in written if _last(k.name) == _last(name)
    ]
    if read:
        candidates = [k for k in candidates if (k.template is None) == (read.arguments is None)]
        candidates = [k for k in candidates if len(k.parameters) == len(read.parameters)]
    return max(candidates, key=lambda kernel: _agreement(kernel, read), default=None)


def _agreement(kernel: Written, read: Demangled | None) -> int:
    """How many parameters are written with the very words that the PTX name has."""
    types = read.parameters if read else ()
    pairs = zip(kernel.parameters, types, strict=False)
    return sum(_words(_instance(t, kernel, read)) == _words(plain(p)) for (t, _), p in pairs)


def _instance(ctype: str, kernel: Written, read: Demangled | None) -> str:
    """A parameter's type with the template's arguments put in: `const T *` -> `const float *`."""
    if not kernel.template or not read or not read.arguments:
        return ctype
    values = dict(zip(kernel.template, read.arguments, strict=False))
    return re.sub(r"\w+", lambda word: values.get(word[0], word[0]), ctype)


def _words(ctype: str) -> list[str]:
    """The words of a type, in any order, without those that a name does not carry.

    An array is a pointer: `float [8][N]` and `float (*)[N]` have the same words.
    """
    pointers = re.sub(r"\[[^]]*\]", "*", ctype.replace("unsigned int", "unsigned"))
    words = re.findall(r"\w+|[*&]", _OBJECT.sub("unsigned long long", pointers))
    return sorted(word for word in words if word not in ("__restrict__", "struct", "volatile"))


def _last(name: str) -> str:
    return name.rpartition("::")[2]


def python_parameters(name: str, count: int, texts: Iterable[str]) -> tuple[str, ...]:
    """The parameters of the function of that name with so many of them; empty where there is none.

    >>> python_parameters("add", 2, ["def add(a, b):\\n    pass\\n"])
    ('a', 'b')
    """
    candidates = (names for text in texts for own, names in _functions(text) if own == name)
    return next((names for names in candidates if len(names) == count), ())


@lru_cache(maxsize=16)
def _functions(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    try:
        return tuple(_defined(ast.parse(text)))
    except (SyntaxError, ValueError):  # a source of another language
        return ()


def _defined(tree: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            listed = (*node.args.posonlyargs, *node.args.args)
            yield node.name, tuple(each.arg for each in listed)
