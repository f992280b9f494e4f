"""Long chains of operations on floats, with selects and both zeros; values kept over a region.

What is wrong with the sign of a zero, or with a value of another moment, shows at the end of many
operations: each alone was right.
"""

import re

from fuzz.cuda.change import condition, place
from fuzz.cuda.form import FLOATS
from fuzz.cuda.scope import Scope
from fuzz.cuda.tree import C_NAMES, Expr, Stmt

_LINKS = (
    *("X = -X;", "X = {0} ? X : -X;", "X = {0} ? -Z : X;", "X = {0} ? Y : X;", "X = -X * Z;"),
    *("X = X < Y ? Y : X;", "X = X == Z ? Y : X;", "X = X > Z ? X : Z;", "X = X <= Y ? -X : Y;"),
    *("X = X * Y;", "X = X + Y;", "X = X - Y;", "X = Y - X;", "X += X;", "X = X * X - Y;"),
    *("X = X * ({0} ? -ONE : ONE);", "X = X + ({0} ? -Z : Z);", "X = ({0} ? X : Y) * -Z + X;"),
    *("X = ONE / X;", "X = X / (Y + Y);", "X = truncT(X * HALF);", "X = rintT(X) - X;"),
    *("X = fabsT(X - Y);", "X = copysignT(X, number(Y));", "X = fmaT(X, Y, -X);"),
    *("X = fmaxT(X, ONE);", "X = fminT(-X, -ONE);", "X = sqrtT(fabsT(X));", "X = floorT(-X);"),
    *("X = bits(X) < 0 ? -Y : X;", "X = bits(Y) < 0 ? X - X : X + Y;", "X = (C)(int)({0}) - X;"),
    *("if ({0}) X = -X;", "if (X < Y) X = Y * HALF;", "if ({0}) X += Y;", "if (X != X) X = -Z;"),
    "{ C SPARE = X; if ({0}) { X = Y; Y = -SPARE; } }",
)


def chain(scope: Scope) -> Stmt | None:
    """Four to twelve operations on a variable and another, each with the result of the last."""
    target = place(scope, ("f32", "f32", "f64"))
    if not target:
        return None
    links = tuple(_link(scope, target) for _ in range(scope.dice.between(4, 12)))
    if scope.dice.chance(40):
        return Stmt("if ({0}) {\n    <0>\n}", (condition(scope),), (links,))
    return Stmt("{\n    <0>\n}", (), (links,))


def _link(scope: Scope, target: Expr) -> Stmt:
    form, short = scope.dice.pick(_LINKS), target.type == "f32"
    words = {
        **{"X": target.form, "Y": scope.dice.pick(scope.places[target.type])},
        **{"C": C_NAMES[target.type], "SPARE": scope.fresh("x")},
        **{name: by + "f" * short for name, by in (("Z", "0.0"), ("ONE", "1.0"), ("HALF", "0.25"))},
    }
    form = re.sub(r"(?<=[a-z])T(?=\()", "f" * short, form)
    form = re.sub(r"\b[A-Z]+\b", lambda word: words[word[0]], form)
    return Stmt(form, (condition(scope),) if "{0}" in form else ())


def joined(scope: Scope, type_: str, x: str, kept: str) -> str:
    """A value made of a variable and of what it was before."""
    c = C_NAMES[type_]
    if type_ in FLOATS:
        forms = (f"{x} - {kept}", f"{x} < {kept} ? {kept} : {x}", f"-{kept} + {x}", f"{x} * {kept}")
        return scope.dice.pick(forms)
    return scope.dice.pick(
        (f"({c})({x} ^ {kept})", f"({c})({x} > {kept} ? {kept} : {x})", f"({c})~{kept}")
    )
