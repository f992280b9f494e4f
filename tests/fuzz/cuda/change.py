"""Random statements without others inside: assignments, stores, atomics.

Shapes in which a variable is overwritten under a condition and read after it are frequent: they
found more wrong numbers than all others.
"""

from fuzz.cuda.form import FLOATS, INTEGERS
from fuzz.cuda.scope import Scope
from fuzz.cuda.tree import C_NAMES, Expr, Stmt

OUTPUTS = {
    **{"i32": "out_i", "u32": "out_u", "i64": "out_l", "f32": "out_f", "f64": "out_d"},
    **{"u8": "out_b", "i16": "out_h"},
}
"""Arrays of results by type, 8 elements a thread."""
SLOTS = 8
WORDS = ("u32", "u32", "i32", "u64", "i64")
"""Types that take the bits of a word."""


def place(scope: Scope, types: tuple[str, ...] = (*INTEGERS, *FLOATS)) -> Expr | None:
    """Something to assign to."""
    held = [name for name in types if scope.places[name]]
    if not held:
        return None
    type_ = scope.dice.pick(held)
    return Expr(type_, scope.dice.pick(scope.places[type_]))


def assign(scope: Scope) -> Stmt | None:
    target = place(scope)
    if not target:
        return None
    return Stmt(f"{target.form} = {{0}};", (scope.expr(target.type),))


def change(scope: Scope, target: Expr) -> Stmt:
    """Overwrite a variable by something made of itself."""
    x, kind = target.form, scope.dice.below(12) % 8  # the first four write in place
    if target.type in FLOATS:
        tail = "f" if target.type == "f32" else ""
        form = (
            f"{x} = fmax{tail}({x}, {{0}});", f"{x} = fmin{tail}({x}, {{0}});", f"{x} = -{x};",
            f"{x} = fabs{tail}({x});", f"{x} += {{0}};", f"{x} *= {{0}};", f"{x} -= {{0}};",
            f"{x} = {{0}} - {x};",
        )[kind]  # fmt: skip
        parts = (scope.expr(target.type, 1),) if "{0}" in form else ()
        return Stmt(form, parts)
    unsigned = target.type in ("u32", "u64")
    sign = scope.dice.pick(("+", "-", "*", "^", "|", "&") if unsigned else ("^", "|", "&"))
    if kind < 5:
        return Stmt(f"{x} {sign}= {{0}};", (scope.expr(target.type, 1),))
    if kind == 5 and unsigned:
        return Stmt(f"{x}++;")
    shift = scope.expr("u32", 1)
    return Stmt(f"{x} = {x} >> ({{0}} & 7);", (shift,))


def declare(scope: Scope) -> Stmt | None:
    """A variable of this block, which those after it may name."""
    type_ = scope.dice.pick(("f32", "f32", "f32", "i32", "u32", "f64", *INTEGERS))
    name = scope.fresh("d")
    made = Stmt(f"{C_NAMES[type_]} {name} = ({C_NAMES[type_]})({{0}});", (scope.expr(type_),))
    scope.places[type_].append(name)
    return made


def change_any(scope: Scope) -> Stmt | None:
    target = place(scope)
    return change(scope, target) if target else None


def in_place(scope: Scope) -> Stmt | None:
    """Store something and overwrite a variable, both under a condition."""
    target = place(scope, ("f32", "f32", "f64", "i32", "u32", *INTEGERS))
    if not target:
        return None
    inside = [change(scope, target)]
    stored = store(scope)
    if stored and scope.dice.chance(60):
        inside.insert(scope.dice.below(2), stored)
    if scope.dice.chance(40):
        inside += [made for made in (change_any(scope),) if made]
    return Stmt("if ({0}) {\n    <0>\n}", (condition(scope),), (tuple(inside),))


def condition(scope: Scope) -> Expr:
    """A condition, often one that divides a warp by its lanes."""
    kind = scope.dice.below(13)
    if scope.in_kernel and kind > 9:  # whole warps go different ways
        return Expr("b", scope.dice.pick(WARPS))
    if scope.small and kind < 3:
        name, most = scope.dice.pick(scope.small), scope.dice.pick((1, 5, 16, 31, 32, 33, 40, 100))
        return Expr("b", f"({name} {scope.dice.pick(('<', '>=', '==', '!='))} {most})")
    if scope.small and kind < 5:
        name, of = scope.dice.pick(scope.small), scope.dice.pick((2, 3, 4, 7))
        return Expr("b", f"({name} % {of} {scope.dice.pick(('==', '!=', '<'))} 1)")
    return scope.expr("b", scope.dice.between(1, 2))


WARPS = (
    *("(t < 32)", "(t < 32)", "(t >= 32)", "(t < 64)", "(t >= 64)", "(t / 32 == 1)"),
    *("((t / 32 & 1) != 0)", "(t < threads - 32)", "((bx & 1) != 0)", "(t / 32 + bx != 2)"),
)


def store(scope: Scope) -> Stmt | None:
    """Keep a value among the results."""
    if not scope.in_kernel:
        return None
    held = [name for name in OUTPUTS if scope.places[name]]
    type_ = scope.dice.pick(held or ["i32", "f32"])
    value = scope.expr(type_, scope.dice.pick((0, 0, 0, 1)))
    at, parts = slot(scope, type_)
    return Stmt(f"{OUTPUTS[type_]}[{at}] = {{0}};", (value, *parts))


def slot(scope: Scope, type_: str) -> tuple[str, tuple[Expr, ...]]:
    """An element that this thread owns among the results of a type; its part is number 1."""
    number = scope.dice.below(SLOTS)
    match tuple(OUTPUTS).index(type_) % 3:  # one rule an array, or elements would have two owners
        case 0:
            return f"{number} * total + gid", ()
        case 1 if scope.dice.chance(30):
            return f"gid * {SLOTS} + ({{1}} & {SLOTS - 1})", (scope.expr("u32", 1),)
        case 1:
            return f"gid * {SLOTS} + {number}", ()
        case _:
            return f"gid * {SLOTS} + ({number} ^ (gid & {SLOTS - 1}))", ()


def element(scope: Scope) -> Stmt | None:
    """Write an element of a local array."""
    if not scope.arrays:
        return None
    array = scope.dice.pick(scope.arrays)
    value = scope.expr(array.type, 1)
    index, parts = scope.index(array)
    shifted = index.replace("{0}", "{1}")
    sign = scope.dice.pick(("=", "=", "^=", "+=") if array.type[0] == "u" else ("=",))
    return Stmt(f"{array.name}[{shifted}] {sign} {{0}};", (value, *parts))


def exchange(scope: Scope) -> Stmt | None:
    """Exchange two variables under a condition, through a third."""
    target = place(scope, ("i32", "u32", "f32", "f64", "i64", "u64"))
    if not target or len(scope.places[target.type]) < 2:
        return None
    other = scope.dice.pick(scope.places[target.type])
    spare = scope.fresh("x")
    form = (
        f"if ({{0}}) {{\n    {C_NAMES[target.type]} {spare} = {target.form};\n"
        f"    {target.form} = {other};\n    {other} = {spare};\n}}"
    )
    return Stmt(form, (condition(scope),))


def atomic(scope: Scope) -> Stmt | None:
    """Sums that do not depend on order, in elements of which each knows one operation."""
    if not scope.in_kernel:
        return None
    names = ("Add", "Min", "Max", "And", "Or", "Xor")
    number = scope.dice.below(len(names))
    wide = scope.dice.chance(30)
    type_ = "u64" if wide else "u32"
    value = scope.expr(type_, 1)
    index = scope.expr("u32", 1)
    kind = scope.dice.below(4)
    if kind == 0:  # an element of its own, whose old value may be looked at
        target = place(scope, ("u32",))
        if target:
            at = "&own[gid * 4 + ({1} & 3)]"
            how = scope.dice.pick(
                (f"atomicAdd({at}, {{0}})", f"atomicExch({at}, {{0}})", f"atomicInc({at}, {{0}})",
                 f"atomicDec({at}, {{0}})", f"atomicCAS({at}, {{0}}, 7u)",
                 "cas_128(&own[gid * 4], own[gid * 4], {0}, {1})",
                 "cas_128(&own[gid * 4], 77u, {0}, {1})",
                 f"atomicMax({at}, {{0}})", f"atomicXor({at}, {{0}})")
            )  # fmt: skip
            return Stmt(f"{target.form} = {how};", (scope.expr("u32", 1), index))
    array = "sum_l" if wide else "sum_u"
    return Stmt(
        f"atomic{names[number]}(&{array}[{number * 8} + ({{1}} & 7)], {{0}});", (value, index)
    )


_LESS_THAN_A_WORD = (
    *(
        "X = add_f16x2(&own_h[OWN], {0} & 0xBFFFBFFFu);",
        "X = add_bf16x2(&own_h[OWN], {0} & 0xBFFFBFFFu);",
    ),
    *("X = add_f16((unsigned short *)&own_h[OWN], {0} & 0xBFFFu);",) * 2,
    "X = add_bf16((unsigned short *)&own_h[OWN] + 1, {0} & 0xBFFFu);",
    *("X = cas_16(&own_s[OWN], (unsigned short){2}, (unsigned short){0});",) * 2,
    "X = cas_16(&own_s[OWN], own_s[OWN], (unsigned short){0});",
    *("X = cas_8(&own_c[OWN], (unsigned char)77, (unsigned char){0});",) * 2,
    "X = cas_8(&own_c[OWN], own_c[OWN], (unsigned char){0});",
    *("add_16(&sum_s[{1} & 63], (unsigned short){0});",) * 2,
    "add_pair_f16x2(&sum_h[gid / 4 * 2 & 1022], small_f16({0} & 1), small_f16({1} & 1) << 16);",
    "max_pair_f16x2(&max_h[{1} & 30], {0} & 0xBFFFBFFFu | 0x10001u, {2} & 0x3FFF3FFFu | 0x10001u);",
    "min_pair_f16x2(&max_h[32 + ({1} & 30)], {0} & 0xBFFFBFFFu | 65537u, {2} & 0xFF3FFFu | 1u);",
)
"""What threads do to their own halves, shorts and bytes, and to those of all in any order."""


def atomic_of_less(scope: Scope) -> Stmt | None:
    """An atomic on less than a word, whose word others may be changing."""
    target = place(scope, WORDS)
    if not target or not scope.in_kernel:
        return None
    form = scope.dice.pick(_LESS_THAN_A_WORD)
    own = "gid * 4 + ({1} & 3)" if "own_h" in form else "({1} & 3) * total + gid"
    form = form.replace("OWN", own).replace("X =", f"{target.form} =")
    return Stmt(form, tuple(scope.expr("u32", 1) for _ in range(3)))
