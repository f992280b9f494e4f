"""Function pointers: addresses of functions, the targets of calls, and shared parameter storage.

Function addresses are in a window of the generic ones; nothing can be loaded from it.
"""

from collections.abc import Iterator

from ...ptx.kernel import CallTarget, Function, Kernel, Module, Symbol

_CODE, _STEP = 0x0600_0000, 64


def function_address(module: Module, name: str) -> int | None:
    """Return the address of a function of a module, None if it has no such function."""
    name = module.aliases.get(name, name)
    if name not in module.functions:
        return None
    return _CODE + _STEP * list(module.functions).index(name)


def callees(kernel: Kernel, caller: int, target: CallTarget) -> list[int]:
    """Return the indices of the kernel's functions that a call may enter.

    For a pointer those are the functions on its `.calltargets` list, or all functions that the
    module takes the address of, with as many parameters of the same sizes.
    """
    if isinstance(target.callee, Symbol):
        name = kernel.module.aliases.get(target.callee.name, target.callee.name)
        return [k for k, span in enumerate(kernel.functions) if span.function.name == name]
    function = kernel.functions[caller].function
    listed = function.branch_targets.get(target.prototype or "")
    return [
        k
        for k, span in enumerate(kernel.functions)
        if k and _fits(function, target, span.function)
        if not listed or span.function.name in listed
    ]


def _fits(caller: Function, target: CallTarget, callee: Function) -> bool:
    actuals = (target.returns, target.arguments)
    formals = (callee.returns, callee.parameters)
    if tuple(map(len, actuals)) != tuple(map(len, formals)):
        return False
    sizes = {variable.name: variable.size for variable in caller.variables}
    pairs = zip((*actuals[0], *actuals[1]), (*formals[0], *formals[1]), strict=True)
    return all(
        sizes.get(mine.name, its.size) == its.size
        for mine, its in pairs
        if isinstance(mine, Symbol)
    )


def calls(kernel: Kernel) -> Iterator[tuple[int, CallTarget, int]]:
    """Yield every edge of the call graph: the caller, the operands, the callee."""
    for caller, target, reached in _sites(kernel):
        for callee in reached:
            yield caller, target, callee


def _sites(kernel: Kernel) -> Iterator[tuple[int, CallTarget, list[int]]]:
    """Yield every call: the caller, the operands, the possible callees."""
    for block in kernel.blocks:
        for instruction in kernel.instructions[block.first : block.last]:
            for operand in instruction.operands:
                if isinstance(operand, CallTarget):
                    yield block.function, operand, callees(kernel, block.function, operand)


def apart(kernel: Kernel, recursive: frozenset[int]) -> frozenset[int]:
    """Return the functions that get copies of their arguments, instead of sharing the caller's
    storage.

    Recursive functions read their own parameters after they wrote the callee's. So do functions
    that share a pointer with recursive ones.
    """
    functions = set(recursive)
    groups = [set(reached) for _, _, reached in _sites(kernel)]
    while more := {k for group in groups if functions & group for k in group} - functions:
        functions |= more
    return frozenset(functions)


def parameter_places(
    kernel: Kernel, copied: frozenset[int] = frozenset()
) -> dict[tuple[int, str], tuple[int, str]]:
    """Map `.param` variables, (function, name), to the one that represents their shared storage.

    A caller's arguments and its callee's parameters share storage, except for callees with copies.
    Functions that one pointer can reach share theirs.
    """
    above: dict[tuple[int, str], tuple[int, str]] = {}

    def root(key: tuple[int, str]) -> tuple[int, str]:
        while key in above:
            key = above[key]
        return key

    def join(places: list[tuple[int, str]], others: list[tuple[int, str]]) -> None:
        for one, other in zip(places, others, strict=True):
            place, its = root(one), root(other)
            if place != its:
                above[place] = its

    for caller, target, reached in _sites(kernel):
        formal_lists = [_formals(kernel, callee) for callee in reached]
        for formals in formal_lists:
            join(formal_lists[0], formals)
        actuals = (*target.returns, *target.arguments)
        pairs = [
            ((caller, mine.name), its)
            for mine, its in zip(actuals, formal_lists[0] if formal_lists else [], strict=False)
            if isinstance(mine, Symbol)
        ]
        if not copied & set(reached):
            join([mine for mine, _ in pairs], [its for _, its in pairs])
    return {key: root(key) for key in above}


def _formals(kernel: Kernel, callee: int) -> list[tuple[int, str]]:
    function = kernel.functions[callee].function
    return [(callee, variable.name) for variable in (*function.returns, *function.parameters)]
