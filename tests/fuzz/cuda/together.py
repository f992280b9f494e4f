"""Statements that the threads of a warp or block run together: shuffles, votes, shared memory.

They stand only where all threads of the block arrive, and name only lanes that exist.
"""

from collections.abc import Callable

from fuzz.cuda import arrival, matrix, statement
from fuzz.cuda.change import WARPS, WORDS, change, condition, place
from fuzz.cuda.form import FLOATS
from fuzz.cuda.scope import Array, Scope
from fuzz.cuda.tree import C_NAMES, Block, Expr, Stmt

SHUFFLED = ("i32", "u32", "f32", "f32", "i64", "u64", "f64")
SHARED = ("i32", "u32", "f32", "f64", "u64", "i16", "u8")


def together(scope: Scope, most: int) -> Block:
    """Statements that all threads run, with others between."""
    found: list[Stmt] = []
    share = 90 if scope.reach == "cluster" else 60
    for _ in range(scope.dice.between(1, most)):
        makers = _MAKERS[scope.reach] if scope.dice.chance(share) else (statement.statement,)
        made = scope.dice.pick(makers)(scope)
        if made:
            found.append(made)
    return tuple(found)


def _shuffle(scope: Scope) -> Stmt | None:
    target = place(scope, SHUFFLED)
    if not target:
        return None
    x, c = target.form, C_NAMES[target.type]
    y = scope.fresh("y")
    delta = scope.dice.pick((1, 2, 3, 4, 8, 16))
    width = scope.dice.pick((32, 32, 32, 16, 8))
    take = change(scope, target)
    kind = scope.dice.below(5)
    if kind == 0:
        form = f"{x} = __shfl_sync(wm, {x}, (int)({{0}} % wn));"
        return Stmt(form, (scope.expr("u32", 1),))
    if kind == 1:
        form = (
            f"{{ {c} {y} = __shfl_down_sync(wm, {x}, {delta}, {width});\n"
            f"if ((lane & {width - 1}) + {delta} < {width} && lane + {delta} < wn)\n"
            f"    {x} = {_joined(target.type, x, y)}; }}"
        )
        return Stmt(form)
    if kind == 2:
        form = (
            f"{{ {c} {y} = __shfl_up_sync(wm, {x}, {delta}, {width});\n"
            f"if ((lane & {width - 1}) >= {delta}) {{\n    {x} = {y};\n    <0>\n}} }}"
        )
        return Stmt(form, (), ((take,),))
    if kind == 3:
        form = (
            f"{{ {c} {y} = __shfl_xor_sync(wm, {x}, {delta});\n"
            f"if ((lane ^ {delta}) < wn) {x} = {_joined(target.type, x, y)}; }}"
        )
        return Stmt(form)
    k = scope.fresh("k")
    form = (
        f"for (int {k} = 16; {k} > 0; {k} >>= 1) {{\n"
        f"    {c} {y} = __shfl_down_sync(wm, {x}, {k});\n"
        f"    if (lane + {k} < wn) {x} = {_joined(target.type, x, y)};\n}}"
    )
    return Stmt(form)


def _joined(type_: str, x: str, y: str) -> str:
    """One value of two."""
    if type_ in FLOATS:
        return f"{x} + {y}"
    unsigned = "unsigned" if type_ in ("i32", "u32") else "unsigned long long"
    return f"({C_NAMES[type_]})(({unsigned}){x} + ({unsigned}){y})"


_VOTES = (
    "__ballot_sync(wm, {0})", "__popc(__ballot_sync(wm, {0}) & ((1u << lane) - 1))",
    "(unsigned)__any_sync(wm, {0})", "(unsigned)__all_sync(wm, {0})",
    "__match_any_sync(wm, {1} & 3)",
    *(f"__reduce_{what}_sync(wm, {{1}})" for what in ("add", "min", "max", "and", "or", "xor")),
)  # fmt: skip
_VOTES_OF_BLOCK = tuple(f"(unsigned)__syncthreads_{what}({{0}})" for what in ("count", "or", "and"))


def _vote(scope: Scope, forms: tuple[str, ...] = _VOTES) -> Stmt | None:
    target = place(scope, ("u32",))
    if not target:
        return None
    parts = scope.expr("b", 1), scope.expr("u32", 1)
    return Stmt(f"{target.form} = {scope.dice.pick(forms)};", parts)


def _vote_of_block(scope: Scope) -> Stmt | None:
    return _vote(scope, _VOTES_OF_BLOCK)


def _part_of_warp(scope: Scope) -> Stmt | None:
    """A shuffle among the lanes that took a branch."""
    target = place(scope, SHUFFLED)
    if not target:
        return None
    mask, taken = scope.fresh("mask"), scope.fresh("c")
    form = (
        f"{{ bool {taken} = {{0}};\nunsigned {mask} = __ballot_sync(wm, {taken});\n"
        f"if ({taken}) {{\n"
        f"    {target.form} = __shfl_sync({mask}, {target.form}, __ffs({mask}) - 1);\n"
        "    <0>\n} }"
    )
    return Stmt(form, (condition(scope),), ((change(scope, target),),))


def _shared(scope: Scope) -> tuple[str, str, int] | None:
    """A new shared array with room for every thread."""
    type_ = scope.dice.pick(SHARED)
    name = scope.shared(type_, "[512]", 512 * 8)
    return (name, type_, 512) if name else None


def _exchange(scope: Scope) -> Stmt | None:
    """Each thread fills elements of a shared array, then all read anywhere in it."""
    made = _shared(scope)
    if not made:
        return None
    name, type_, size = made
    k = scope.fresh("k")
    readers = scope.inside(inputs=[*scope.inputs, *[Array(name, type_, size)] * 3])
    whole = scope.dice.chance(40)
    if whole:
        fill = f"for (int {k} = t; {k} < {size}; {k} += threads) {name}[{k}] = {{0}};"
        value = scope.inside(small=[*scope.small, k]).expr(type_, 1)
    else:
        fill, value = f"{name}[t] = {{0}};", scope.expr(type_, 1)
        readers = scope.inside()
    form = f"__syncthreads();\n{fill}\n__syncthreads();\n"
    target = place(scope, (type_,))
    parts = [value]
    if target:
        form += f"{target.form} = {name}[{{1}} % threads];\n"
        parts.append(scope.expr("u32", 1))
    inside = tuple(m for m in (statement.statement(readers) for _ in range(2)) if m)
    return Stmt(f"{form}<0>", tuple(parts), (inside,))


def _scan(scope: Scope) -> Stmt | None:
    """A scan, or a sum by a tree, in shared memory."""
    made = _shared(scope)
    if not made or scope.cost > 8:
        return None
    name, type_, _ = made
    target = place(scope, (type_,))
    if not target:
        return None
    x, k = target.form, scope.fresh("k")
    more = (change(scope, target),)
    if scope.dice.chance(50):
        form = (
            f"__syncthreads();\n{name}[t] = {x};\n__syncthreads();\n"
            f"for (int {k} = 1; {k} < threads; {k} *= 2) {{\n"
            f"    if (t >= {k}) {{\n        {x} = {_sum(type_, x, f'{name}[t - {k}]')};\n"
            "        <0>\n    }\n"
            f"    __syncthreads();\n    {name}[t] = {x};\n    __syncthreads();\n}}"
        )
    else:
        form = (
            f"__syncthreads();\n{name}[t] = {x};\n__syncthreads();\n"
            f"for (int {k} = 256; {k} > 0; {k} >>= 1) {{\n"
            f"    if (t < {k} && t + {k} < threads) {{\n"
            f"        {name}[t] = {_sum(type_, f'{name}[t]', f'{name}[t + {k}]')};\n"
            "        <0>\n    }\n"
            f"    __syncthreads();\n}}\n{x} = {name}[0];"
        )
    return Stmt(form, (), (more,))


def _sum(type_: str, x: str, y: str) -> str:
    if type_ in FLOATS:
        return f"{x} + {y}"
    return f"({C_NAMES[type_]})((unsigned long long){x} + (unsigned long long){y})"


def _histogram(scope: Scope) -> Stmt | None:
    target, name = place(scope, ("u32",)), scope.shared("u32", "[16]", 64)
    if not target or not name:
        return None
    how = scope.dice.pick(("Add", "Xor", "Max", "Or"))
    form = (
        f"__syncthreads();\nif (t < 16) {name}[t] = {{0}};\n"
        f"if (threads < 16 && t == 0) for (int k = threads; k < 16; k++) {name}[k] = 5u;\n"
        f"__syncthreads();\n"
        f"if ({{1}}) {{\n    atomic{how}(&{name}[{{2}} & 15], {{3}});\n    <0>\n}}\n"
        "__syncthreads();\n"
        f"{target.form} = {name}[{{4}} & 15];"
    )
    u = scope.expr
    parts = (u("u32", 1), condition(scope), u("u32", 1), u("u32", 1), u("u32", 1))
    return Stmt(form, parts, ((change(scope, target),),))


def _table(scope: Scope) -> Stmt | None:
    """A diagonal wave over a table in shared memory: addresses go below zero and come back."""
    target = place(scope, ("i32",))
    name, k = scope.shared("i32", "[17][17]", 4 * 17 * 17), scope.fresh("k")
    if not target or not name or scope.cost > 2:
        return None
    form = (
        f"__syncthreads();\nfor (int k = t; k < 17 * 17; k += threads)\n"
        f"    {name}[k / 17][k % 17] = (int)((unsigned)k * {{0}});\n__syncthreads();\n"
        f"for (int {k} = 0; {k} < 16; {k}++) {{\n"
        f"    if (t <= {k} && t < 16)\n"
        f"        {name}[{k} - t + 1][t + 1] = max({name}[{k} - t][t], "
        f"max({name}[{k} - t + 1][t], {name}[{k} - t][t + 1]) - {{1}});\n"
        f"    __syncthreads();\n}}\n"
        f"{target.form} ^= {name}[16 - (t & 15)][{{2}} % 17u];"
    )
    parts = (Expr("u32", "2654435761u"), Expr("i32", "3"), scope.expr("u32", 1))
    return Stmt(form, parts)


def _loop(scope: Scope) -> Stmt | None:
    """A loop whose trips are the same for all threads of the block."""
    trips = scope.dice.between(2, 4)
    if scope.depth >= 2 or scope.cost * trips > 16:
        return None
    k = scope.fresh("k")
    inside = scope.inside(cost=scope.cost * trips, loops=0, small=[*scope.small, k], gives="")
    bounds = [str(trips), f"(n & 1) + {trips - 1}"]
    if scope.reach != "cluster" or not scope.clusters:
        bounds.append(f"(int)blockIdx.x % 2 + {trips - 1}")
    if scope.reach == "warp":
        bounds.append(f"(t / 32 & 1) + {trips - 1}")
    form = f"for (int {k} = 0; {k} < {scope.dice.pick(bounds)}; {k}++) {{\n    <0>\n}}"
    return Stmt(form, (), (together(inside, 4),))


def _branch(scope: Scope) -> Stmt | None:
    """A branch that all threads of a block take alike."""
    if scope.depth >= 2:
        return None
    taken = scope.dice.pick(("blockIdx.x & 1", "n > 3", "gridDim.x > 1", "w % 3 == 1"))
    reach = "block" if "blockIdx" in taken and scope.reach == "cluster" else scope.reach
    inside = scope.inside(loops=0, gives="", reach=reach)
    return Stmt(f"if ({taken}) {{\n    <0>\n}}", (), (together(inside, 3),))


def _warps(scope: Scope) -> Stmt | None:
    """A branch or a loop that the lanes of a warp take alike, and other warps do not."""
    if scope.depth >= 2:
        return None
    inside = scope.inside(loops=0, gives="", reach="warp")
    taken = scope.dice.pick([each for each in WARPS if "threads" not in each])  # may cut a warp
    kind = scope.dice.below(3)
    if kind == 0:
        return Stmt(f"if ({taken}) {{\n    <0>\n}}", (), (together(inside, 3),))
    if kind == 1:
        blocks = together(inside.inside(), 3), together(inside.inside(), 3)
        return Stmt(f"if ({taken}) {{\n    <0>\n}} else {{\n    <1>\n}}", (), blocks)
    if scope.cost > 4:
        return None
    k = scope.fresh("k")
    inside = inside.inside(cost=scope.cost * 4, small=[*scope.small, k])
    form = f"for (int {k} = t / 32 + bx & 3; {k} >= 0; {k}--) {{\n    <0>\n}}"
    return Stmt(form, (), (together(inside, 3),))


def _peers(scope: Scope) -> Stmt | None:
    """Shared memory that the blocks of a cluster fill for one another, and read and add to."""
    target, name = place(scope, WORDS), scope.shared("u32", "[512]", 2048)
    if not target or not name or not scope.clusters:
        return None
    rank = f"(({{0}} + cluster_rank()) % {scope.clusters}u)"
    act = scope.dice.pick(
        (f"peer_store(&{name}[t], RANK, {{1}});", f"peer_add(&{name}[{{2}} & 15], {rank}, {{1}});",
         f"atomicAdd(peer({name}, {rank}) + ({{2}} & 15), {{1}});",
         f"atomicMax(peer(&{name}[{{2}} & 15], {rank}), {{1}});",
         f"peer({name}, RANK)[t] = {{1}};")
    )  # fmt: skip
    own = f"((cluster_rank() + {scope.dice.below(8)}) % {scope.clusters}u)"
    act = act.replace("RANK", own)
    # the element of the next block is read by other ways: generic, and by its own state space
    read = scope.dice.pick(
        (f"peer({name}, {rank})[{{2}} & 511]", f"peer_load(&{name}[{{2}} & 511], {rank})")
    )
    meet = scope.dice.pick(
        ("cluster_sync();", "cluster_arrive();\n<3>\ncluster_wait();",
         "if ({6}) {\n    <3>\n    cluster_arrive();\n} else {\n    cluster_arrive();\n    <4>\n}\n"
         "cluster_wait();")
    )  # fmt: skip
    form = (
        f"{meet}\nfor (int k = t; k < 512; k += threads) {name}[k] = {{3}} + k;\n"
        f"cluster_sync();\nif ({{4}}) {{\n    {act}\n    <0>\n}}\ncluster_sync();\n"
        f"if ({{5}}) {{\n    <1>\n    {target.form} ^= {read};\n}} else {{\n    <2>\n}}\n"
        "cluster_sync();"
    )
    seen = [Array(f"peer({name}, (cluster_rank() + 1) % {scope.clusters}u)", "u32", 512)] * 3
    alone = scope.inside(reach="lane", loops=0, gives="")
    reads = alone.inside(inputs=[*scope.inputs, *seen])
    u = scope.expr
    parts = (u("u32", 1), u("u32", 1), u("u32", 1), Expr("u32", "7u"), condition(scope),
             condition(scope), condition(scope))  # fmt: skip
    seen_in = (alone, reads, reads, alone, alone)
    blocks = tuple(statement.block(each, 2, 0) for each in seen_in)
    return Stmt(form, parts, blocks)


def _sent(scope: Scope) -> Stmt | None:
    """Words that threads send to another block of the cluster, which waits for all of them."""
    target, name = place(scope, WORDS), scope.shared("u32", "[2400]", 9600, 16)
    gate = scope.shared("u64", "", 8)
    if not target or not name or not gate or not scope.clusters:
        return None
    rank = f"((cluster_rank() + {scope.dice.below(8)}) % {scope.clusters}u)"
    at = f"&{gate}, {rank}"
    source, k = f"(&{name}[1200 + t * 4])", scope.fresh("k")
    send, size = scope.dice.pick(
        ((f"peer_send(&{name}[t], {at}, {{0}});", 4),
         (f"peer_send_add(&{name}[t], {at}, {{0}});", 4),
         (f"{source}[1] = {{0}};\npeer_copy(&{name}[t * 4], {source}, {at});", 16),
         (f"peer_store(&{name}[t], {rank}, {{0}});\npeer_arrive({at});", 0))
    )  # fmt: skip
    begin = f"if (t == 0) gate_expect(&{gate}, {size} * threads);\n    " if size else ""
    form = (
        f"for (int {k} = t; {k} < 2400; {k} += threads) {name}[{k}] = {k};\n"
        f"if (t == 0) gate_init(&{gate}, {'1' if size else 'threads'});\ncluster_sync();\n"
        f"for (int {k} = 0; {k} < {scope.dice.between(1, 2)}; {k}++) {{\n    {begin}"
        f"if ({{1}}) {{\n        <0>\n        {send}\n    }} else {{\n        {send}\n"
        f"        <1>\n    }}\n    gate_wait(&{gate}, {k} & 1);\n"
        f"    {target.form} ^= {name}[{{2}} % ({max(size, 4) // 4} * threads)];\n"
        f"    cluster_sync();\n}}\nif (t == 0) gate_end(&{gate});"
    )
    alone = scope.inside(reach="lane", loops=0, gives="")
    parts = (scope.expr("u32", 1), condition(scope), scope.expr("u32", 1))
    return Stmt(form, parts, (statement.block(alone, 1, 0), statement.block(alone, 1, 0)))


Maker = Callable[[Scope], Stmt | None]
_OF_WARP: tuple[Maker, ...] = (
    *(_shuffle,) * 5, *(_vote,) * 2, *(_part_of_warp,) * 2, *(_loop,) * 2, _branch,
    *matrix.MAKERS * 2,
)  # fmt: skip
_OF_BLOCK: tuple[Maker, ...] = (
    *_OF_WARP, _vote_of_block, *(_exchange,) * 4, *(_scan,) * 2, _histogram, _table, _loop, _branch,
    *(_warps,) * 5, *arrival.MAKERS * 3,
)  # fmt: skip
_MAKERS: dict[str, tuple[Maker, ...]] = {
    "warp": _OF_WARP, "block": _OF_BLOCK, "cluster": (*_OF_BLOCK, *(_peers, _sent) * 40),
}  # fmt: skip
"""By whose threads all arrive."""
