"""Kernels written in Python: how their parameters are called, which PTX does not say."""

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache


def python_parameters(name: str, count: int, texts: Iterable[str]) -> tuple[str, ...]:
    """The parameters of the function of that name with so many of them; empty where there is none.

    >>> python_parameters("add", 2, ["def add(a, b):\\n    pass\\n"])
    ('a', 'b')
    """
    found = (names for text in texts for own, names in _functions(text) if own == name)
    return next((names for names in found if len(names) == count), ())


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
