"""Functions as values: their addresses, and which of them a call can reach.

Addresses lie in a window of their own among the generic ones; nothing can be loaded from it.
"""

from collections.abc import Iterator

from ..ptx.kernel import CallTarget, Function, Kernel, Module, Symbol

_CODE, _STEP = 0x0600_0000, 64


def function_address(module: Module, name: str) -> int | None:
    """Return the address of a function of a module, None if it has no such function."""
    name = module.aliases.get(name, name)
    if name not in module.functions:
        return None
    return _CODE + _STEP * list(module.functions).index(name)


def callees(kernel: Kernel, caller: int, target: CallTarget) -> list[int]:
    """Return the indices of the kernel's functions that a call may enter.

    Through a pointer those are the ones on its `.calltargets` list, or all whose address the module
    takes, that have as many parameters of the same sizes.
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
    given = (target.returns, target.arguments)
    taken = (callee.returns, callee.parameters)
    if tuple(map(len, given)) != tuple(map(len, taken)):
        return False
    sizes = {variable.name: variable.size for variable in caller.variables}
    pairs = zip((*given[0], *given[1]), (*taken[0], *taken[1]), strict=True)
    return all(
        sizes.get(mine.name, its.size) == its.size
        for mine, its in pairs
        if isinstance(mine, Symbol)
    )


def calls(kernel: Kernel) -> Iterator[tuple[int, CallTarget, int]]:
    """Yield every way from a call to a function: the caller, the operands, the callee."""
    for block in kernel.blocks:
        for instruction in kernel.instructions[block.first : block.last]:
            for operand in instruction.operands:
                if isinstance(operand, CallTarget):
                    for callee in callees(kernel, block.function, operand):
                        yield block.function, operand, callee


def parameter_places(kernel: Kernel) -> dict[tuple[int, str], tuple[int, str]]:
    """Map `.param` variables, (function, name), to the one that stands for all of their place.

    What a caller passes and what its callee takes are one place; functions that one pointer can
    reach share theirs.
    """
    above: dict[tuple[int, str], tuple[int, str]] = {}

    def root(key: tuple[int, str]) -> tuple[int, str]:
        while key in above:
            key = above[key]
        return key

    for caller, target, callee in calls(kernel):
        function = kernel.functions[callee].function
        theirs = (*function.returns, *function.parameters)
        for mine, its in zip((*target.returns, *target.arguments), theirs, strict=True):
            if isinstance(mine, Symbol):
                place, other = root((caller, mine.name)), root((callee, its.name))
                if place != other:
                    above[place] = other
    return {key: root(key) for key in above}
