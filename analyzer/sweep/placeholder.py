"""Placeholders: `{N}` and `{(N + 31) / 32}` in a text, filled in with integers or words.

Between braces stands a name, or integer arithmetic over names with `+ - * / %` and parentheses; a
division rounds down, as it does in the code.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping

from ...errors import CutraceError, nearest

Setting = int | str
BRACES = re.compile(r"\{([^{}]*)\}")
_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def names_in(text: str, where: str) -> frozenset[str]:
    """The names that a text's placeholders read; `CutraceError` if one is not arithmetic."""
    found: set[str] = set()
    for inside in BRACES.findall(text):
        found |= {n.id for n in ast.walk(_parse(inside, where)) if isinstance(n, ast.Name)}
    return frozenset(found)


def fill(text: str, settings: Mapping[str, Setting], where: str) -> str:
    """Fill in all placeholders; `CutraceError` names one that has no value, and the nearest.

    >>> fill("f<<<{(N + 31) / 32}, 32>>>(x:{T}[{N}])", {"N": 40, "T": "f32"}, "")
    'f<<<2, 32>>>(x:f32[40])'
    """
    return BRACES.sub(lambda match: str(_value(match[1], settings, where)), text)


def _value(inside: str, settings: Mapping[str, Setting], where: str) -> Setting:
    try:
        return _evaluate(_parse(inside, where), settings, where)
    except ZeroDivisionError:
        raise CutraceError(f"{where}: {{{inside}}} divides by zero") from None


def _parse(inside: str, where: str) -> ast.expr:
    try:
        return ast.parse(inside.strip(), mode="eval").body
    except SyntaxError:
        raise _no_arithmetic(inside, where) from None


def _evaluate(node: ast.expr, settings: Mapping[str, Setting], where: str) -> Setting:
    match node:
        case ast.Name(id=name):
            if name not in settings:
                raise CutraceError(f"{where}: no value for {{{name}}}{nearest(name, settings)}")
            return settings[name]
        case ast.Constant(value=int(value)):
            return value
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATIONS:
            sides = [_evaluate(side, settings, where) for side in (left, right)]
            first, second = (side for side in sides)
            if isinstance(first, int) and isinstance(second, int):
                return _OPERATIONS[type(sign)](first, second)
    raise _no_arithmetic(ast.unparse(node), where)


def _no_arithmetic(inside: str, where: str) -> CutraceError:
    return CutraceError(
        f"{where}: {{{inside}}}: expected a name, or integer arithmetic with + - * / % over names"
    )
