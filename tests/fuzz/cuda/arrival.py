"""Statements in which threads arrive apart: mbarriers, asynchronous copies, groups of warps."""

from collections.abc import Callable

from fuzz.cuda import statement
from fuzz.cuda.change import WORDS, condition, place
from fuzz.cuda.scope import Scope
from fuzz.cuda.tree import Block, Stmt

_ARRIVALS = (
    "gate_arrive(&{gate});",
    "gate_arrive_and_wait(&{gate});",
    "copy_4(&{data}[t], &in_u[{0} & 1023], 4); copy_arrive(&{gate});",
    "copy_4(&{data}[t], &in_u[{0} & 1023], {1} & 4); copy_arrive(&{gate});",
    "gate_expect(&{gate}, 16);\n"
    "bulk_copy(&{data}[512 + t * 4], &in_u[({0} & 255) * 4], 16, &{gate});",
)
"""How a thread arrives at an mbarrier, with and without bytes that are still to come."""


def gate(scope: Scope) -> Stmt | None:
    """Phases of an mbarrier at which threads arrive on different ways."""
    target = place(scope, WORDS)
    name, data = scope.shared("u64", "", 8), _words(scope, 512 + 4 * 300)
    if not target or not name or not data:
        return None
    k = scope.fresh("k")
    phases = scope.dice.between(1, 3)
    wait = scope.dice.pick(("gate_wait", "gate_poll"))
    ways = []
    for _ in range(2):
        arrive = _arrive(scope, name, data)
        before, after = _alone(scope), _alone(scope)
        if scope.dice.chance(40):
            after = (Stmt(f"{wait}(&{name}, {k} & 1);"), *after)
        ways.append((*before, arrive, *after))
    form = (
        f"__syncthreads();\nif (t == 0) gate_init(&{name}, threads);\n"
        f"{data}[t] = {data}[512 + t * 4] = {data}[513 + t * 4] = {data}[514 + t * 4] = "
        f"{data}[515 + t * 4] = {{1}};\n__syncthreads();\n"
        f"for (int {k} = 0; {k} < {phases}; {k}++) {{\n    if ({{0}}) {{\n        <0>\n"
        f"    }} else {{\n        <1>\n    }}\n    {wait}(&{name}, {k} & 1);\n"
        f"    {target.form} ^= {data}[{{2}} % threads] + {data}[512 + {{3}} % (4 * threads)];\n"
        f"    __syncthreads();\n}}\nif (t == 0) gate_end(&{name});"
    )
    parts = (condition(scope), *(scope.expr("u32", 1) for _ in range(3)))
    return Stmt(form, parts, tuple(ways))


def _arrive(scope: Scope, gate: str, data: str) -> Stmt:
    form = scope.dice.pick(_ARRIVALS).replace("{gate}", gate).replace("{data}", data)
    return Stmt(form, (scope.expr("u32", 1), scope.expr("u32", 1)), fixed=True)


def _alone(scope: Scope) -> Block:
    """What a thread does by itself, and from which it comes back."""
    return statement.block(scope.inside(reach="lane", loops=0, gives=""), 2, 0)


def _words(scope: Scope, count: int) -> str | None:
    return scope.shared("u32", f"[{count}]", 4 * count, 16)


def group(scope: Scope) -> Stmt | None:
    """A barrier of some warps, while the others do something else."""
    target, data = place(scope, WORDS), _words(scope, 512)
    if not target or not data:
        return None
    number = scope.dice.between(1, 15)
    count = scope.dice.pick(("32", "64", "96"))
    some = f"(unsigned)min({count}, threads)"
    meet = f"group_sync({number}, {some});"
    if scope.dice.chance(40):  # the lanes of a warp meet from two places
        meet = f"if ({{2}}) {{\n        <3>\n        {meet}\n    }} else {{\n        {meet}\n    }}"
    form = (
        f"__syncthreads();\nif (t < {count}) {{\n    <0>\n    {data}[t] = {{0}};\n    {meet}\n"
        f"    {target.form} ^= {data}[{{1}} % {some}];\n    <1>\n"
        f"    group_sync({number}, {some});\n}} else {{\n    <2>\n}}"
    )
    parts = (*(scope.expr("u32", 1) for _ in range(2)), condition(scope))
    return Stmt(form, parts, tuple(_alone(scope) for _ in range(4)))


def producer(scope: Scope) -> Stmt | None:
    """Warps that arrive at a barrier and go on, and others that wait for them."""
    target, data = place(scope, WORDS), _words(scope, 512)
    if not target or not data:
        return None
    number = scope.dice.between(1, 15)
    form = (
        f"__syncthreads();\nif (t < 32) {{\n    <0>\n    {data}[t] = {{0}};\n"
        f"    __threadfence_block();\n    group_arrive({number}, threads);\n    <1>\n"
        f"}} else {{\n    <2>\n    group_sync({number}, threads);\n"
        f"    {target.form} ^= {data}[{{1}} & 31];\n}}\n__syncthreads();"
    )
    parts = tuple(scope.expr("u32", 1) for _ in range(2))
    return Stmt(form, parts, tuple(_alone(scope) for _ in range(3)))


def bulk(scope: Scope) -> Stmt | None:
    """Words of shared memory that some lanes store or add to global memory at once."""
    data = _words(scope, 300 * 4)
    if not data:
        return None
    act = scope.dice.pick(
        (f"bulk_store(&own[gid * 4], &{data}[t * 4], 16);",
         f"bulk_add(&sum_u[({{2}} & 1) * 4], &{data}[t * 4], 16);")
    )  # fmt: skip
    form = (
        f"__syncthreads();\nfor (int k = 0; k < 4; k++) {data}[t * 4 + k] = {{0}} + k;\n"
        f"if ({{1}}) {{\n    <0>\n    {act}\n}}\n__syncthreads();"
    )
    parts = (scope.expr("u32", 1), condition(scope), scope.expr("u32", 1))
    return Stmt(form, parts, (_alone(scope),))


MAKERS: tuple[Callable[[Scope], Stmt | None], ...] = (gate, gate, group, producer, bulk)
