"""A random kernel by its seed: launch, structs, device functions, variables, body."""

from math import prod

from fuzz.cuda import statement
from fuzz.cuda.change import OUTPUTS, SLOTS, condition
from fuzz.cuda.dice import Dice
from fuzz.cuda.form import FLOATS, INTEGERS, Form
from fuzz.cuda.scope import Array, Callee, Scope
from fuzz.cuda.together import together
from fuzz.cuda.tree import C_NAMES, Block, Expr, Function, Kernel, Launch, Stmt, Variable

ELEMENTS = 1024
INPUTS = tuple(
    Array(name, type_, ELEMENTS)
    for name, type_ in (("in_i", "i32"), ("in_u", "u32"), ("in_f", "f32"), ("in_d", "f64"),
                        ("in_b", "u8"), ("in_l", "i64"))
)  # fmt: skip
SCALARS = {"n": "i32", "w": "u32", "scale": "f32", "wide": "i64"}
_SIZES = (
    *(1, 7, 16, 31, 32, 32, 45, 63, 64, 64, 65, 96, 100, 128, 128, 200, 256, 300),
    *(20, 20, 21, 24, 25, 28, 30, 33, 33, 34, 36, 39, 40, 40),
)
_CLUSTERS = ((2, 1, 1), (2, 1, 1), (4, 1, 1), (1, 2, 1), (2, 2, 1), (1, 1, 2), (8, 1, 1))
SAMPLES: dict[str, list[Form]] = {
    "u32": [("sample_u(tex_u, {0})", ("i32",)), ("sample_u(tex_u, (int)({0} & 1023))", ("u32",)),
            ("sample_3(tex_3, ({0} & 15) - 4, ({1} & 7) - 2, {1} >> 3 & 3)", ("i32", "i32"))] * 3
           + [("surface_read(surf, gid & 31, gid >> 5)", ())],
    "f32": [("sample_f(tex_f, ({0} & 127) - 32, ({1} & 63) - 8)", ("i32", "i32")),
            ("sample_l(tex_l, ({0} & 511) - 128, ({1} & 255) - 32)", ("i32", "i32")),
            ("gather_f(tex_f, ({0} & 63) - 16, ({1} & 31) - 4)", ("i32", "i32"))],
    "i32": [("sample_w(tex_w, ({0} & 1023) - 500, ({1} & 255) - 100)", ("i32", "i32"))],
}  # fmt: skip
"""Samples of the textures and the surface: texture.py."""
_VECTORS = {
    "int4": ("i32", "xyzw"), "float2": ("f32", "xy"), "uchar4": ("u8", "xyzw"),
    "float4": ("f32", "xyzw"), "uint2": ("u32", "xy"), "double2": ("f64", "xy"),
    "short2": ("i16", "xy"),
}  # fmt: skip


def make_kernel(seed: int) -> Kernel:
    """The kernel of a seed."""
    dice = Dice(seed)
    launch = make_launch(dice)
    globals_: list[tuple[str, str]] = []
    functions: list[Function] = []
    callees: list[Callee] = []
    tables = _tables(dice, globals_)
    structs = _structs(dice, globals_)
    for number in range(dice.pick((0, 0, 1, 1, 2, 3))):
        made, callee = _function(dice, f"fn{number}", callees, structs, tables)
        functions.append(made)
        callees.append(callee)
    if dice.chance(25):
        functions += _family(dice, callees, structs, tables, globals_)
    functions.append(_kernel(dice, f"k{seed}", launch, callees, structs, tables))
    return Kernel(seed, launch, tuple(globals_), tuple(functions))


def make_launch(dice: Dice) -> Launch:
    """Any number of threads up to 300, in up to 3 dimensions."""
    threads = dice.pick(_SIZES) if dice.chance(80) else dice.between(1, 300)
    blocks = dice.pick((1, 1, 2, 3)) if threads > 64 else dice.pick((1, 2, 3, 4))
    block, grid = (threads, 1, 1), (blocks, 1, 1)
    if dice.chance(25):
        block = dice.pick(((8, 4, 1), (16, 2, 1), (5, 3, 2), (16, 8, 1), (3, 11, 1), (4, 4, 4),
                           (33, 2, 1), (1, 40, 1), (2, 3, 15), (10, 9, 1)))  # fmt: skip
    if dice.chance(20):
        grid = dice.pick(((2, 2, 1), (1, 2, 1), (1, 1, 2), (3, 1, 1), (2, 1, 2)))
    cluster = dice.pick(_CLUSTERS) if dice.chance(22) else (1, 1, 1)
    x, y, z = (-(-g // c) * c for g, c in zip(grid, cluster, strict=True))
    launch = Launch((x, y, z), block, cluster)
    if prod(cluster) > 1 and launch.blocks * launch.threads >= ELEMENTS:
        return Launch(cluster, (min(300, ELEMENTS // prod(cluster) - 1), 1, 1), cluster)
    return launch if launch.blocks * launch.threads < ELEMENTS else Launch((2, 1, 1), block)


def _tables(dice: Dice, globals_: list[tuple[str, str]]) -> list[Array]:
    """Constant tables."""
    if not dice.chance(30):
        return []
    type_ = dice.pick(("i32", "f32", "u8", "u64"))
    values = ", ".join(
        f"{dice.below(250)}" if type_ != "f32" else f"{dice.below(99) - 40}.5f" for _ in range(16)
    )
    where = dice.pick(("__constant__", "__device__ const"))
    globals_.append(("table", f"{where} {C_NAMES[type_]} table[16] = {{ {values} }};\n"))
    return [Array("table", type_, 16)]


def _structs(dice: Dice, globals_: list[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Structs with their members' names and types."""
    if not dice.chance(35):
        return {}
    members = [
        (name, dice.pick((*INTEGERS, *FLOATS, "i32", "f32")))
        for name in "abcdef"[: dice.between(2, 5)]
    ]
    text = "".join(f"    {C_NAMES[type_]} {name};\n" for name, type_ in members)
    globals_.append(("Pack", f"struct Pack {{\n{text}}};\n"))
    return {"Pack": members}


def _locals(scope: Scope, structs: dict[str, list[tuple[str, str]]], many: int) -> None:
    """Variables with first values, arrays, structs, vectors."""
    dice = scope.dice
    for _ in range(dice.between(many, 2 * many)):
        type_ = dice.pick(("f32", "f32", "f32", "i32", "i32", "u32", "u32", *INTEGERS, *FLOATS))
        name = scope.fresh(type_[0])
        _declare(scope, name, type_, f"{C_NAMES[type_]} {name} = {scope.expr(type_, 1).text()};")
        scope.places[type_].append(name)
    if dice.chance(35):
        type_ = dice.pick(("i32", "u32", "f32", "u8", "i16", "f64", "u64"))
        name, size = scope.fresh("a"), dice.pick((4, 8, 16))
        values = ", ".join(_exactly(scope, type_) for _ in range(size))
        _declare(scope, name, type_, f"{C_NAMES[type_]} {name}[{size}] = {{ {values} }};")
        scope.arrays.append(Array(name, type_, size))
    for struct, members in structs.items():
        name = scope.fresh("q")
        values = ", ".join(_exactly(scope, type_) for _, type_ in members)
        _declare(scope, name, struct, f"{struct} {name} = {{ {values} }};")
        for member, type_ in members:
            scope.places[type_].append(f"{name}.{member}")
    if dice.chance(25):
        vector = dice.pick(tuple(_VECTORS))
        type_, components = _VECTORS[vector]
        name = scope.fresh("v")
        values = ", ".join(_exactly(scope, type_) for _ in components)
        _declare(scope, name, vector, f"{vector} {name} = make_{vector}({values});")
        scope.places[type_] += [f"{name}.{component}" for component in components]


def _exactly(scope: Scope, type_: str) -> str:
    return f"({C_NAMES[type_]}){scope.expr(type_, 0).text()}"


def _declare(scope: Scope, name: str, type_: str, text: str) -> None:
    scope.variables.append(Variable(name, type_, text))


_SCALARS = (*INTEGERS, *FLOATS, "f32", "i32", "u32")
_RESULTS = ("i32", "u32", "f32", "f32", "f64", "u64", "i16", "u8")


def _function(
    dice: Dice, name: str, callees: list[Callee],
    structs: dict[str, list[tuple[str, str]]], tables: list[Array], family: Callee | None = None,
) -> tuple[Function, Callee]:  # fmt: skip
    """A device function; one in four calls itself, and those of a family one another."""
    scope = Scope(dice, callees=list(callees), inputs=list(tables), cost=4)
    takes = [dice.pick(_SCALARS) for _ in range(dice.between(1, 3))]
    gives = dice.pick(_RESULTS)
    if family:
        takes, gives = list(family.takes[:-1]), family.gives
    parameters = [f"arg{k}" for k in range(len(takes))]
    for parameter, type_ in zip(parameters, takes, strict=True):
        scope.places[type_].append(parameter)
    recursive = family is not None or dice.chance(25)
    _locals(scope, structs if dice.chance(50) else {}, 1)
    scope.gives = gives
    head = ", ".join(f"{C_NAMES[t]} {p}" for t, p in zip(takes, parameters, strict=True))
    kind = dice.pick(("", "__noinline__ ", "__noinline__ ", "__forceinline__ "))
    if recursive:
        takes, head = [*takes, "i32"], head + ", int depth"
        kind = "" if family else dice.pick(("", "__noinline__ "))
    body = statement.block(scope, 4)
    if recursive:
        body += _again(scope, family.name if family else name, takes, gives)
    last = f"return {scope.expr(gives).text()};"
    function = Function(name, f"__device__ {kind}{C_NAMES[gives]} {name}({head})",
                        tuple(scope.variables), body, last)  # fmt: skip
    return function, Callee(name, tuple(takes), gives, 40 if recursive else 10)


def _family(
    dice: Dice, callees: list[Callee], structs: dict[str, list[tuple[str, str]]],
    tables: list[Array], globals_: list[tuple[str, str]],
) -> list[Function]:  # fmt: skip
    """Functions that call one another through a table of pointers, and the table."""
    takes = (*(dice.pick(_SCALARS) for _ in range(dice.between(1, 2))), "i32")
    gives, many = dice.pick(_RESULTS), dice.between(2, 4)
    names = [f"way{k}" for k in range(many)]
    either = f"({{0}} & 1 ? way0 : way{many - 1})"
    called = Callee(dice.pick((f"ways[{{0}} % {many}u]",) * 3 + (either,)), takes, gives, 40)
    made = [_function(dice, name, callees, structs, tables, called)[0] for name in names]
    types = ", ".join(C_NAMES[type_] for type_ in takes)
    heads = "".join(f"__device__ {C_NAMES[gives]} {name}({types});\n" for name in names)
    where = dice.pick(("__constant__ Way", "__device__ const Way", "__device__ Way"))
    table = f"typedef {C_NAMES[gives]} (*Way)({types});\n{where} ways[{many}] = "
    globals_.append(("way0", heads))
    globals_.append(("ways", f"{table}{{ {', '.join(names)} }};\n"))
    callees.append(called)
    return made


def _again(scope: Scope, name: str, takes: list[str], gives: str) -> Block:
    """A call of itself with less depth; nobody goes deeper than 3."""
    result = scope.fresh("r")
    _declare(scope, result, gives, f"{C_NAMES[gives]} {result} = 0;")
    scope.places[gives].append(result)
    first = name.count("{")
    arguments = ", ".join(f"{{{first + k}}}" for k in range(len(takes) - 1))
    parts = tuple(scope.expr(each, 1) for each in (*("u32",) * first, *takes[:-1]))
    end = "if (depth <= 0 || depth > 3) {\n    return {0};\n}"
    stop = Stmt(end, (scope.expr(gives, 1),), fixed=True)
    call = Stmt(f"{result} = {name}({arguments}, depth - 1);", parts)
    if scope.dice.chance(40):
        call = Stmt("if ({0}) {\n    <0>\n}", (scope.expr("b", 1),), ((call,),))
    return (stop, call, *statement.block(scope, 3))


def _kernel(
    dice: Dice, name: str, launch: Launch, callees: list[Callee],
    structs: dict[str, list[tuple[str, str]]], tables: list[Array],
) -> Function:  # fmt: skip
    scope = Scope(dice, callees=callees, inputs=[*INPUTS, *tables], parameters=dict(SCALARS),
                  in_kernel=True, reach="cluster", clusters=prod(launch.cluster),
                  forms=SAMPLES if dice.chance(30) else {})  # fmt: skip
    if launch.cluster == (1, 1, 1):
        scope.reach, scope.clusters = "block", 0
    _numbers(scope, launch)
    _locals(scope, structs, 3)
    body: Block = ()
    if scope.clusters or dice.chance(
        50
    ):  # the other kernels are of threads that know nothing of each other
        body = together(scope, dice.pick((3, 5, 7, 9)))
        scope.gives, scope.reach = "void", "lane"
        body += statement.block(scope, 4)
    else:
        scope.gives, scope.reach = "void", "lane"
        if dice.chance(30):
            body = (Stmt("if ({0}) {\n    return;\n}", (condition(scope),)),)
        most = dice.pick((3, 5, 8, 12))
        body += statement.block(scope, most, most // 2)
    body += _last_stores(scope)
    dims = f"__cluster_dims__{launch.cluster} " if scope.clusters else ""
    head = f'extern "C" __global__ void {dims}{name}(...)'
    return Function(name, head, tuple(scope.variables), body)


def _numbers(scope: Scope, launch: Launch) -> None:
    """Numbers of the thread, by as many dimensions as the launch has."""
    plain = launch.block[1:] == (1, 1) and launch.grid[1:] == (1, 1)
    t = "threadIdx.x" if plain else (
        "(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x"
    )  # fmt: skip
    b = "blockIdx.x" if plain else (
        "(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x"
    )  # fmt: skip
    threads = "blockDim.x" if plain else "blockDim.x * blockDim.y * blockDim.z"
    blocks = "gridDim.x" if plain else "gridDim.x * gridDim.y * gridDim.z"
    for name, text in (
        ("t", f"int t = {t};"),
        ("threads", f"int threads = {threads};"),
        ("gid", f"int gid = ({b}) * threads + t;"),
        ("total", f"int total = {blocks} * threads;"),
        ("lane", "int lane = t & 31;"),
        ("wn", "int wn = min(32, threads - (t & ~31));"),
        ("wm", "unsigned wm = wn == 32 ? 0xffffffffu : (1u << wn) - 1;"),
        ("tx", "int tx = threadIdx.x;"),
        ("ty", "int ty = threadIdx.y;"),
        ("bx", "int bx = blockIdx.x;"),
    ):
        _declare(scope, name, "i32", text)
    scope.small += ["t", "t", "t", "lane", "tx", "bx", "gid", *(() if plain else ("ty",))]


def _last_stores(scope: Scope) -> Block:
    """Every variable among the results, as far as there is room."""
    found: list[Stmt] = []
    for type_, array in OUTPUTS.items():
        places = scope.places[type_][:SLOTS]
        for number, name in enumerate(places):
            at = {
                0: f"{number} * total + gid", 1: f"gid * {SLOTS} + {number}",
                2: f"gid * {SLOTS} + ({number} ^ (gid & {SLOTS - 1}))",
            }[tuple(OUTPUTS).index(type_) % 3]  # fmt: skip
            if scope.dice.chance(95):
                found.append(Stmt(f"{array}[{at}] = {{0}};", (Expr(type_, name),)))
    return tuple(found)
