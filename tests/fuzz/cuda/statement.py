"""Random statements that a thread runs by itself: branches, loops, switches, jumps."""

from collections.abc import Callable

from fuzz.cuda.chain import chain, joined
from fuzz.cuda.change import (
    WORDS,
    assign,
    atomic,
    atomic_of_less,
    change,
    change_any,
    condition,
    declare,
    element,
    exchange,
    in_place,
    place,
    store,
)
from fuzz.cuda.scope import Scope
from fuzz.cuda.tree import C_NAMES, Block, Expr, Stmt, Variable

MOST_COST = 150
"""Runs of an innermost statement by one thread, at most."""
MOST_DEPTH = 5
Maker = Callable[[Scope], Stmt | None]


def block(scope: Scope, most: int, least: int = 1) -> Block:
    """Some random statements, with variables of their own."""
    scope = scope.inside(depth=scope.depth)
    found: list[Stmt] = []
    for _ in range(scope.dice.between(least, most)):
        made = statement(scope)
        if made:
            found.append(made)
    if scope.depth and scope.dice.chance(35):  # what is overwritten later is seen here
        found += [made for made in (store(scope),) if made]
    return tuple(found)


def statement(scope: Scope) -> Stmt | None:
    """A random statement, None where what was drawn does not fit."""
    return scope.dice.pick(_MAKERS)(scope)


def _if(scope: Scope) -> Stmt | None:
    if scope.depth >= MOST_DEPTH:
        return None
    inside = scope.inside(reach="lane")
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
    return Stmt(form, parts, (block(scope.inside(reach="lane"), 2),))


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
    inside = scope.inside(reach="lane", cost=cost, loops=scope.loops + 1, small=[*scope.small, k])
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
    inside = scope.inside(reach="lane", cost=scope.cost * most, loops=scope.loops + 1,
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
    changed = change_any(scope)
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
    inside = scope.inside(reach="lane", loops=scope.loops)
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
    inside = scope.inside(reach="lane", loops=0, cost=scope.cost * most)
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
        reach="lane", cost=scope.cost * most, loops=scope.loops + 1, small=[*scope.small, k]
    )
    read = f"{p}[{back}]"
    plus = {"f32": f"({target.form} + {read})", "f64": f"({target.form} - {read})"}.get(
        array.type, f"({C_NAMES[array.type]})({target.form} ^ {read})"
    )
    return Stmt(form, (scope.expr("u32", 1), Expr(array.type, plus)), (block(inside, 2),))


def _tangle(scope: Scope) -> Stmt | None:
    """Three stretches of code that lead to one another: a loop that can be entered anywhere."""
    most = scope.dice.pick((3, 5, 8))
    if scope.depth >= MOST_DEPTH or scope.cost * most > MOST_COST:
        return None
    way, k = scope.fresh("way"), scope.fresh("g")
    scope.variables.append(Variable(k, "i32", f"int {k} = 0;"))
    inside = scope.inside(reach="lane", loops=0, cost=scope.cost * most)
    form = (
        f"{k} = {most};\nif ({{0}}) goto {way}_b;\nif ({{1}}) goto {way}_c;\n"
        f"{way}_a: {{\n    <0>\n}}\nif (--{k} <= 0) goto {way}_d;\nif ({{2}}) goto {way}_c;\n"
        f"{way}_b: {{\n    <1>\n}}\nif (--{k} <= 0) goto {way}_d;\nif ({{3}}) goto {way}_a;\n"
        f"{way}_c: {{\n    <2>\n}}\nif (--{k} > 0 && {{4}}) goto {way}_b;\n{way}_d:;"
    )
    parts = tuple(condition(scope) for _ in range(5))
    return Stmt(form, parts, tuple(block(inside, 2) for _ in range(3)))


def _into_loop(scope: Scope) -> Stmt | None:
    """A switch whose cases lie in a loop (Duff's device)."""
    most = scope.dice.pick((2, 4))
    if scope.depth >= MOST_DEPTH or scope.cost * most > MOST_COST:
        return None
    k = scope.fresh("k")
    inside = scope.inside(reach="lane", loops=scope.loops + 1, cost=scope.cost * most,
                          small=[*scope.small, k])  # fmt: skip
    form = (
        f"{{ int {k} = {most};\nswitch ({{0}} & 3) {{\ncase 0: do {{ {{\n    <0>\n}}\n"
        f"case 1: {{\n    <1>\n}}\ncase 2: {{\n    <2>\n}}\ndefault:;\n"
        f"}} while (--{k} > 0 && {{1}}); }} }}"
    )
    parts = (scope.expr("u32", 1), condition(scope))
    return Stmt(form, parts, tuple(block(inside, 2) for _ in range(3)))


def _nest(scope: Scope) -> Stmt | None:
    """A loop that lanes leave, or cut short, from within branches of branches."""
    most = scope.dice.pick((3, 5, 9))
    if scope.depth >= MOST_DEPTH - 1 or scope.cost * most > MOST_COST:
        return None
    k = scope.fresh("k")
    inside = scope.inside(reach="lane", cost=scope.cost * most, loops=scope.loops + 1,
                          small=[*scope.small, k])  # fmt: skip
    bound, parts = _bound(scope, most)
    body = block(inside, 2)
    for _ in range(scope.dice.between(1, 2)):
        inner = inside
        branches: tuple[Block, ...] = ()
        for _ in range(scope.dice.between(1, 3)):
            inner = inner.inside()
            out = (*block(inner, 1), _way_out(inner))
            branches = ((*out, *(branches and (_either(inner, branches),))),)
        body += (_either(inside, branches),)
    return Stmt(f"for (int {k} = 0; {k} < {bound}; {k}++) {{\n    <0>\n}}", parts, (body,))


def _either(scope: Scope, branches: tuple[Block, ...]) -> Stmt:
    if scope.dice.chance(40):
        other = block(scope.inside(), 1)
        form = "if ({0}) {\n    <0>\n} else {\n    <1>\n}"
        return Stmt(form, (condition(scope),), (*branches, other))
    return Stmt("if ({0}) {\n    <0>\n}", (condition(scope),), branches)


def _way_out(scope: Scope) -> Stmt:
    """`break`, `continue` or a return, for some lanes."""
    word, parts = scope.dice.pick(("break;", "continue;", "continue;")), (condition(scope),)
    if scope.gives and scope.dice.chance(15):
        value = (scope.expr(scope.gives, 1),) if scope.gives != "void" else ()
        word, parts = "return {1};" if value else "return;", (*parts, *value)
    changed = change_any(scope)
    inside = (changed,) if changed else ()
    return Stmt(f"if ({{0}}) {{\n    <0>\n    {word}\n}}", parts, (inside,))


def _kept(scope: Scope) -> Stmt | None:
    """A value that is kept over a region in which lanes go different ways."""
    target = place(scope)
    if not target or scope.depth >= MOST_DEPTH:
        return None
    kept, x = scope.fresh("x"), target.form
    inside = scope.inside(reach="lane")
    region = [change(inside, target), *block(inside, 2)]
    makers = (_if, _nest, _while, _for)
    made = scope.dice.pick(makers)(inside)
    region += [made] if made else []
    form = (
        f"{{ {C_NAMES[target.type]} {kept} = {x};\nif ({{0}}) {{\n    <0>\n}}\n"
        f"{x} = {joined(scope, target.type, x, kept)}; }}"
    )
    return Stmt(form, (condition(scope),), (tuple(region),))


def _call(scope: Scope) -> Stmt | None:
    """A call for its result: of one's own choice of function, where pointers lie in a table."""
    fitting = [c for c in scope.callees if scope.places[c.gives] and c.cost * scope.cost <= 600]
    if not fitting:
        return None
    callee = scope.dice.pick(fitting)
    called = scope.call(callee, 1)
    return Stmt(f"{scope.dice.pick(scope.places[callee.gives])} = {{0}};", (called,))


_COPIES = (
    "copy_4(&{data}[t * 4], &in_u[{0} & 1023], 4);",
    "copy_4(&{data}[t * 4 + ({2} & 3)], &in_i[{0} & 1023], {1} & 4);",
    "copy_8(&{data}[t * 4 + 2], &in_f[({0} & 511) * 2], 8);",
    "copy_8(&{data}[t * 4], &in_l[{0} & 1023], {1} & 8);",
    "copy_16(&{data}[t * 4], &in_u[({0} & 255) * 4], 16);",
    "copy_16(&{data}[t * 4], &in_b[({0} & 63) * 16], ({1} & 3) * 4);",
)


def _copy(scope: Scope) -> Stmt | None:
    """Copies from global to shared memory that lanes begin, and later wait for, on their own."""
    target = place(scope, WORDS)
    if not scope.in_kernel or not target or scope.depth >= MOST_DEPTH:
        return None
    data, second = (scope.shared("u32", "[1200]", 4800, 16) for _ in range(2))
    if not data or not second:
        return None
    inside = scope.inside(reach="lane", loops=0, gives="")
    first, then = (_copy_to(scope, name) for name in (data, second))
    k = scope.fresh("k")
    form = (
        f"for (int {k} = 0; {k} < 4; {k}++) {data}[t * 4 + {k}] = {second}[t * 4 + {k}] = {k};\n"
        f"<0>\ncopy_commit();\n<1>\ncopy_commit();\n<2>\ncopy_wait_but_one();\n"
        f"{target.form} ^= {data}[t * 4 + ({{0}} & 3)];\n<3>\ncopy_wait();\n"
        f"{target.form} += {second}[t * 4 + ({{1}} & 3)];"
    )
    parts = tuple(scope.expr("u32", 1) for _ in range(2))
    return Stmt(form, parts, ((first,), (then,), block(inside, 2, 0), block(inside, 1, 0)))


def _surface(scope: Scope) -> Stmt | None:
    """Write the texel that this thread owns."""
    if not scope.forms:
        return None
    return Stmt("surface_write(surf, gid & 31, gid >> 5, {0});", (scope.expr("u32", 1),))


def _copy_to(scope: Scope, data: str) -> Stmt:
    form = scope.dice.pick(_COPIES).replace("{data}", data)
    copy = Stmt(form, tuple(scope.expr("u32", 1) for _ in range(3)))
    return Stmt("if ({0}) {\n    <0>\n}", (condition(scope),), ((copy,),))


_MAKERS: tuple[Maker, ...] = (
    *(declare,) * 5, *(assign,) * 12,
    *(in_place,) * 20, *(change_any,) * 6, *(store,) * 10, *(_if,) * 9,
    *(_short_circuit,) * 3, *(_for,) * 8, *(_while,) * 5, *(_leave,) * 7, *(_return,) * 3,
    *(_switch,) * 3, *(_goto,) * 2, *(_tangle,) * 2, _into_loop, *(_nest,) * 2,
    *(_kept,) * 2, *(chain,) * 5, *(element,) * 6, *(_walk,) * 3, *(exchange,) * 3,
    *(atomic,) * 4, *(atomic_of_less,) * 4, *(_copy,) * 2, *(_surface,) * 2, *(_call,) * 4,
)  # fmt: skip
