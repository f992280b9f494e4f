"""Module and entry name to Kernel: the entry and what it can call, in one numbering."""

from collections.abc import Iterator

from ...errors import CutraceError, nearest
from .block import Cut, cut_at_meetings, cut_blocks
from .graph import immediate_post_dominators, run_order
from .kernel import (
    NOWHERE,
    BasicBlock,
    CallTarget,
    Function,
    FunctionSpan,
    Instruction,
    Kernel,
    Module,
    Operand,
    Register,
    Symbol,
    Vector,
)
from .landing import separate_returns
from .liveness import find_live
from .reconvergence import Kinds, Parting, partings

_Live = list[frozenset[tuple[int, str]]]


def link_kernel(module: Module, entry_name: str, meetings: frozenset[int] = frozenset()) -> Kernel:
    """Join the entry and every function that it can reach.

    At `meetings` (pcs) lanes meet that parted; others are found.

    Calls of functions without a body (`vprintf`, `malloc`) stay inside a block. An indirect call
    can reach the functions of its `.calltargets`, or else all whose address the module takes.
    """

    def is_inner(call: Instruction) -> bool:
        return has_body(module, call)

    reached = _reach(module, _find_entry(module, entry_name))
    functions = [separate_returns(function, is_inner) for function in reached]
    parted = []
    start = 0
    for function in functions:
        span = range(start, start + len(function.instructions))
        known = frozenset(pc - start for pc in meetings if pc in span)
        parted.append(cut_at_meetings(function, is_inner, cut_blocks(function, is_inner), known))
        start = span.stop
    cuts = [own for own, _ in parted]
    count = sum(map(len, cuts))
    found: set[int] = set()
    instructions: list[Instruction] = []
    blocks: list[BasicBlock] = []
    spans: list[FunctionSpan] = []
    live_in: _Live = []
    live_out: _Live = []
    for index, (function, own) in enumerate(zip(functions, cuts, strict=True)):
        spans.append(FunctionSpan(function, len(blocks), count + index))
        _append_live(live_in, live_out, index, function, own)
        blocks += _place(function, own, index, len(blocks), len(instructions), count + index)
        found.update(len(instructions) + k for k in parted[index][1])
        instructions += function.instructions
    return Kernel(
        entry_name,
        module,
        tuple(spans),
        tuple(instructions),
        tuple(blocks),
        tuple(live_in),
        tuple(live_out),
        frozenset(found),
    )


def has_body(module: Module, call: Instruction) -> bool:
    """Whether a `call` runs PTX: its callee has a body, or is only known when it runs."""
    target = call.operands[0]
    assert isinstance(target, CallTarget)
    return isinstance(target.callee, Register) or not _callee(module, call, target).is_extern


def _find_entry(module: Module, name: str) -> Function:
    entries = [f.name for f in module.functions.values() if f.is_entry and not f.is_extern]
    if name not in entries:
        there = ", ".join(entries) or "no kernel at all"
        raise CutraceError(
            f"no kernel {name} in the PTX, which has {there}{nearest(name, entries)}"
        )
    return module.functions[name]


def _callee(module: Module, call: Instruction, target: CallTarget) -> Function:
    """Return the function that a direct call names, through its alias if it is one."""
    assert isinstance(target.callee, Symbol)
    name = target.callee.name
    function = module.functions.get(module.aliases.get(name, name))
    if function is None:
        raise CutraceError(
            f"PTX line {call.ptx_line}: {call.text} calls {name}, expected a function"
            f"{nearest(name, module.functions)}"
        )
    given = (len(target.returns), len(target.arguments))
    taken = (len(function.returns), len(function.parameters))
    if given != taken:
        raise CutraceError(
            f"PTX line {call.ptx_line}: {call.text} has {given[0]} results and {given[1]} "
            f"arguments, {name} has {taken[0]} and {taken[1]}"
        )
    return function


def _reach(module: Module, entry: Function) -> list[Function]:
    """Return the entry and all that it can call, in order of first call."""
    reached = {entry.name: entry}
    pending = [entry]
    for function in pending:  # grows while it is walked
        for callee in _callees(module, function):
            if callee.name not in reached and not callee.is_extern:
                reached[callee.name] = callee
                pending.append(callee)
    return pending


def _callees(module: Module, function: Function) -> Iterator[Function]:
    for instruction in function.instructions:
        target = instruction.operands[0] if instruction.opcode == "call" else None
        if isinstance(target, CallTarget) and isinstance(target.callee, Symbol):
            yield _callee(module, instruction, target)
        elif isinstance(target, CallTarget):
            names = function.branch_targets.get(target.prototype or "") or _addressed(module)
            for name in names:
                callee = module.functions.get(module.aliases.get(name, name))
                if callee is not None:
                    yield callee


def _addressed(module: Module) -> list[str]:
    """Return all functions whose address the module takes, in its order."""
    names = {
        symbol for variable in module.variables.values() for _, symbol, _ in variable.relocations
    }
    for function in module.functions.values():
        for instruction in function.instructions:
            names.update(_symbols(instruction.operands))
    names.update(module.aliases[name] for name in names & module.aliases.keys())
    return [name for name in module.functions if name in names]


def _symbols(operands: tuple[Operand, ...]) -> Iterator[str]:
    for operand in operands:
        match operand:
            case Symbol(name):
                yield name
            case Vector(elements):
                yield from _symbols(elements)
            case CallTarget(arguments=arguments):
                yield from _symbols(arguments)


def _is_not_reached(number: int, cut: Cut) -> bool:
    """Whether a block is `L: bra L`, which compilers write where control cannot come: a trap."""
    return cut.last - cut.first == 1 and cut.successors == (number,)


def _place(
    code: Function, cuts: list[Cut], function: int, block: int, pc: int, exit_: int
) -> Iterator[BasicBlock]:
    """Number a function's blocks from `block` on, its instructions from `pc` on."""
    endings = (code.instructions[cut.last - 1].opcode for cut in cuts)
    switches = frozenset(number for number, opcode in enumerate(endings) if opcode == "brx")
    after = {number: cut.successors for number, cut in enumerate(cuts)}
    leaving = [number for number, cut in enumerate(cuts) if cut.leaves]
    ending = {number: () if _is_not_reached(number, cut) else cut.successors
              for number, cut in enumerate(cuts)}  # fmt: skip
    joins = immediate_post_dominators(ending, leaving, len(cuts))
    ranks = {number: rank for rank, number in enumerate(run_order(after, 0))}
    returns = [number for number in leaving if cuts[number].last - cuts[number].first == 1]
    kinds = Kinds(switches, returns, is_entry=not function)
    sooner = partings(ending, leaving, joins, ranks, len(cuts), kinds)
    place = {number: block + number for number in range(len(cuts))} | {len(cuts): exit_}
    for number, cut in enumerate(cuts):
        parting = sooner.get(number) or Parting(joins[number], ())
        yield BasicBlock(
            block + number,
            function,
            pc + cut.first,
            pc + cut.last,
            tuple(block + successor for successor in cut.successors),
            place[parting.join],
            block + ranks[number],
            tuple(place[behind] for behind in parting.behind),
            place.get(parting.leaving, NOWHERE),
        )


def _append_live(
    live_in: _Live, live_out: _Live, index: int, function: Function, cuts: list[Cut]
) -> None:
    after = [cut.successors for cut in cuts]
    spans = [function.instructions[cut.first : cut.last] for cut in cuts]
    before_each, after_each = find_live(function, spans, after)
    live_in += [frozenset((index, name) for name in names) for names in before_each]
    live_out += [frozenset((index, name) for name in names) for names in after_each]
