"""Random statements that a thread runs by itself: assignments, branches, loops, memory of its own.

Shapes in which a variable is overwritten under a condition and read after it are frequent: they
found more wrong numbers than all others.
"""

from collections.abc import Callable

from fuzz.cuda.form import FLOATS, INTEGERS
from fuzz.cuda.scope import Scope
from fuzz.cuda.tree import C_NAMES, Block, Expr, Stmt, Variable

MOST_COST = 150
"""Runs of an innermost statement by one thread, at most."""
MOST_DEPTH = 4
OUTPUTS = {
    **{"i32": "out_i", "u32": "out_u", "i64": "out_l", "f32": "out_f", "f64": "out_d"},
    **{"u8": "out_b", "i16": "out_h"},
}
"""Arrays of results by type, 8 elements a thread."""
SLOTS = 8

Maker = Callable[[Scope], Stmt | None]


def block(scope: Scope, most: int, least: int = 1) -> Block:
    """Some random statements, with variables of their own."""
    scope = scope.inside(depth=scope.depth)
    found: list[Stmt] = []
    for _ in range(scope.dice.between(least, most)):
        made = statement(scope)
        if made:
            found.append(made)
    return tuple(found)


def statement(scope: Scope) -> Stmt | None:
    """A random statement, None where what was drawn does not fit."""
    return scope.dice.pick(_MAKERS)(scope)


def place(scope: Scope, types: tuple[str, ...] = (*INTEGERS, *FLOATS)) -> Expr | None:
    """Something to assign to."""
    held = [name for name in types if scope.places[name]]
    if not held:
        return None
    type_ = scope.dice.pick(held)
    return Expr(type_, scope.dice.pick(scope.places[type_]))


def _assign(scope: Scope) -> Stmt | None:
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


def _declare(scope: Scope) -> Stmt | None:
    """A variable of this block, which those after it may name."""
    type_ = scope.dice.pick(("f32", "f32", "f32", "i32", "u32", "f64", *INTEGERS))
    name = scope.fresh("d")
    made = Stmt(f"{C_NAMES[type_]} {name} = ({C_NAMES[type_]})({{0}});", (scope.expr(type_),))
    scope.places[type_].append(name)
    return made


def _change(scope: Scope) -> Stmt | None:
    target = place(scope)
    return change(scope, target) if target else None


def _in_place(scope: Scope) -> Stmt | None:
    """Store something and overwrite a variable, both under a condition."""
    target = place(scope, ("f32", "f32", "f64", "i32", "u32", *INTEGERS))
    if not target:
        return None
    inside = [change(scope, target)]
    stored = store(scope)
    if stored and scope.dice.chance(60):
        inside.insert(scope.dice.below(2), stored)
    if scope.dice.chance(40):
        inside += [made for made in (_change(scope),) if made]
    return Stmt("if ({0}) {\n    <0>\n}", (condition(scope),), (tuple(inside),))


def condition(scope: Scope) -> Expr:
    """A condition, often one that divides a warp by its lanes."""
    kind = scope.dice.below(13)
    if scope.in_kernel and kind > 9:  # whole warps go different ways
        return Expr("b", scope.dice.pick(_WARPS))
    if scope.small and kind < 3:
        name, most = scope.dice.pick(scope.small), scope.dice.pick((1, 5, 16, 31, 32, 33, 40, 100))
        return Expr("b", f"({name} {scope.dice.pick(('<', '>=', '==', '!='))} {most})")
    if scope.small and kind < 5:
        name, of = scope.dice.pick(scope.small), scope.dice.pick((2, 3, 4, 7))
        return Expr("b", f"({name} % {of} {scope.dice.pick(('==', '!=', '<'))} 1)")
    return scope.expr("b", scope.dice.between(1, 2))


_WARPS = (
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


def _if(scope: Scope) -> Stmt | None:
    if scope.depth >= MOST_DEPTH:
        return None
    inside = scope.inside(uniform=False)
    first = block(inside, 3)
    if scope.dice.chance(45):
        second = block(inside, 3)
        return Stmt(
            "if ({0}) {\n    <0>\n} else {\n    <1>\n}", (condition(scope),), (first, second)
        )
    return Stmt("if ({0}) {\n    <0>\n}", (condition(scope),), (first,))


def _short_circuit(scope: Scope) -> Stmt | None:
    """Conditions with effects: `a && (x = e, b)`."""
    target = place(scope)
    if not target or scope.depth >= MOST_DEPTH:
        return None
    sign = scope.dice.pick(("&&", "||"))
    parts = (condition(scope), scope.expr(target.type, 1), scope.expr("b", 1))
    form = f"if ({{0}} {sign} ({target.form} = {{1}}, {{2}})) {{\n    <0>\n}}"
    return Stmt(form, parts, (block(scope.inside(uniform=False), 2),))


def _for(scope: Scope) -> Stmt | None:
    """A loop whose trips are known, or depend on the thread, or on data."""
    if scope.depth >= MOST_DEPTH:
        return None
    most = scope.dice.pick((2, 3, 4, 7, 8, 15, 31))
    cost = scope.cost * (most + 1)
    if cost > MOST_COST:
        return None
    k = scope.fresh("k")
    bound, parts = _bound(scope, most)
    inside = scope.inside(uniform=False, cost=cost, loops=scope.loops + 1, small=[*scope.small, k])
    kind = scope.dice.below(6)
    step = f"{k}++"
    start = "0"
    if kind == 0:
        step = f"{k} += 2"
    elif kind == 1 and scope.small:
        start = f"({scope.dice.pick(scope.small)} & 3)"
    elif kind == 2:
        return Stmt(
            f"for (int {k} = {bound}; {k} > 0; {k}--) {{\n    <0>\n}}", parts, (block(inside, 4),)
        )
    form = f"for (int {k} = {start}; {k} < {bound}; {step}) {{\n    <0>\n}}"
    return Stmt(form, parts, (block(inside, 4),))


def _bound(scope: Scope, most: int) -> tuple[str, tuple[Expr, ...]]:
    kind = scope.dice.below(6)
    if kind < 2:
        return str(most), ()
    if kind < 4 and scope.small:
        return f"({scope.dice.pick(scope.small)} & {most})" if most in (3, 7, 15, 31) else (
            f"({scope.dice.pick(scope.small)} % {most})"
        ), ()  # fmt: skip
    return f"(int)({{0}} % {most}u)", (scope.expr("u32", 1),)


def _while(scope: Scope) -> Stmt | None:
    """Loops that end by a condition on data, or when their fuel is burnt."""
    most = scope.dice.pick((3, 5, 8, 20))
    if scope.depth >= MOST_DEPTH or scope.cost * most > MOST_COST:
        return None
    k = scope.fresh("k")
    inside = scope.inside(uniform=False, cost=scope.cost * most, loops=scope.loops + 1,
                          small=[*scope.small, k])  # fmt: skip
    parts = (condition(scope),)
    body = (block(inside, 4),)
    form = scope.dice.pick(
        (
            f"for (int {k} = 0; {{0}} && {k} < {most}; {k}++) {{\n    <0>\n}}",
            f"{{ int {k} = {most}; while ({k}-- > 0 && {{0}}) {{\n    <0>\n}} }}",
            f"{{ int {k} = 0; do {{\n    <0>\n}} while (++{k} < {most} && {{0}}); }}",
            f"{{ int {k} = 0; while (true) {{\n    if (++{k} > {most} || {{0}}) break;\n"
            "    <0>\n} }",
        )
    )
    return Stmt(form, parts, body)


def _leave(scope: Scope) -> Stmt | None:
    """`break`, `continue`, under a condition."""
    if not scope.loops:
        return None
    word = scope.dice.pick(("break;", "break;", "continue;"))
    inside: Block = (Stmt(word),)
    changed = _change(scope)
    if changed and scope.dice.chance(50):
        inside = (changed, *inside)
    return Stmt("if ({0}) {\n    <0>\n}", (condition(scope),), (inside,))


def _return(scope: Scope) -> Stmt | None:
    if not scope.gives or not scope.dice.chance(40):
        return None
    if scope.gives == "void":
        return Stmt("if ({0}) {\n    return;\n}", (condition(scope),))
    return Stmt("if ({0}) {\n    return {1};\n}", (condition(scope), scope.expr(scope.gives, 1)))


def _switch(scope: Scope) -> Stmt | None:
    if scope.depth >= MOST_DEPTH:
        return None
    cases = scope.dice.between(2, 6)
    inside = scope.inside(uniform=False, loops=scope.loops)
    blocks, text = [], [f"switch ({{0}} & {scope.dice.pick((3, 7))}) {{"]
    for number in range(cases):
        text += [f"case {number}: {{", f"    <{number}>", "}"]
        # a `break` within the block, drawn for a loop, would leave the switch: as good
        blocks.append(block(inside, 2))
        if scope.dice.chance(65):
            text.append("    break;")
    if scope.dice.chance(60):
        text += ["default: {", f"    <{cases}>", "}"]
        blocks.append(block(inside, 2))
    selector = scope.expr(scope.dice.pick(("i32", "u32")), 1)
    return Stmt("\n".join((*text, "    break;", "}")), (selector,), tuple(blocks))


def _goto(scope: Scope) -> Stmt | None:
    """A loop with two entries, and one with a way out of its middle."""
    most = scope.dice.pick((3, 6))
    if scope.depth >= MOST_DEPTH or scope.cost * most * 2 > MOST_COST:
        return None
    label, k = scope.fresh("way"), scope.fresh("g")
    scope.variables.append(Variable(k, "i32", f"int {k} = 0;"))
    inside = scope.inside(uniform=False, loops=0, cost=scope.cost * most)
    form = scope.dice.pick(
        (
            f"{k} = {most};\nif ({{0}}) goto {label}_b;\n{label}_a: {{\n    <0>\n}}\n"
            f"{label}_b: {{\n    <1>\n}}\nif (--{k} > 0 && {{1}}) goto {label}_a;",
            f"{k} = {most};\nif ({{0}}) goto {label}_b;\n{label}_a: {{\n    <0>\n}}\n"
            f"if (--{k} <= 0) goto {label}_c;\n{label}_b: {{\n    <1>\n}}\n"
            f"if (--{k} > 0 && {{1}}) goto {label}_b;\nif ({k} > 0) goto {label}_a;\n{label}_c:;",
        )
    )
    parts = (condition(scope), condition(scope))
    return Stmt(form, parts, (block(inside, 2), block(inside, 2)))


def _element(scope: Scope) -> Stmt | None:
    """Write an element of a local array."""
    if not scope.arrays:
        return None
    array = scope.dice.pick(scope.arrays)
    value = scope.expr(array.type, 1)
    index, parts = scope.index(array)
    shifted = index.replace("{0}", "{1}")
    sign = scope.dice.pick(("=", "=", "^=", "+=") if array.type[0] == "u" else ("=",))
    return Stmt(f"{array.name}[{shifted}] {sign} {{0}};", (value, *parts))


def _walk(scope: Scope) -> Stmt | None:
    """A pointer that goes over an input, also from below its start."""
    if not scope.inputs or scope.cost * 8 > MOST_COST or scope.depth >= MOST_DEPTH:
        return None
    array = scope.dice.pick([a for a in scope.inputs if a.size >= 256] or scope.inputs)
    p, k = scope.fresh("p"), scope.fresh("k")
    target = place(scope, (array.type,))
    if not target or array.size < 256:
        return None
    step = scope.dice.pick((1, 2, 5, 8))
    most = scope.dice.between(2, 8)
    start = f"{array.name} + ({{0}} & 127)"
    back = scope.dice.pick((0, 0, 200, 1000))
    form = (
        f"{{ const {C_NAMES[array.type]} *{p} = {start} - {back};\n"
        f"for (int {k} = 0; {k} < {most}; {k}++, {p} += {step}) {{\n"
        f"    {target.form} = {{1}};\n    <0>\n}} }}"
    )
    inside = scope.inside(
        uniform=False, cost=scope.cost * most, loops=scope.loops + 1, small=[*scope.small, k]
    )
    read = f"{p}[{back}]"
    plus = {"f32": f"({target.form} + {read})", "f64": f"({target.form} - {read})"}.get(
        array.type, f"({C_NAMES[array.type]})({target.form} ^ {read})"
    )
    return Stmt(form, (scope.expr("u32", 1), Expr(array.type, plus)), (block(inside, 2),))


def _exchange(scope: Scope) -> Stmt | None:
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


def _atomic(scope: Scope) -> Stmt | None:
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
                 f"atomicMax({at}, {{0}})", f"atomicXor({at}, {{0}})")
            )  # fmt: skip
            return Stmt(f"{target.form} = {how};", (scope.expr("u32", 1), index))
    array = "sum_l" if wide else "sum_u"
    return Stmt(
        f"atomic{names[number]}(&{array}[{number * 8} + ({{1}} & 7)], {{0}});", (value, index)
    )


_MAKERS: tuple[Maker, ...] = (
    *(_declare,) * 5, *(_assign,) * 12,
    *(_in_place,) * 20, *(_change,) * 6, *(store,) * 10, *(_if,) * 9,
    *(_short_circuit,) * 3, *(_for,) * 8, *(_while,) * 5, *(_leave,) * 7, *(_return,) * 3,
    *(_switch,) * 3, *(_goto,) * 2, *(_element,) * 6, *(_walk,) * 3, *(_exchange,) * 3,
    *(_atomic,) * 4,
)  # fmt: skip
