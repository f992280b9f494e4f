"""Link a module's entry with all functions it can call into one Kernel.

Each function is cut into basic blocks, its control-flow graph is built, and reconvergence points,
block ranks and register liveness are computed. Blocks and instructions of all functions then share
one numbering.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from .kernel import (
    NO_BLOCK,
    BasicBlock,
    CallTarget,
    Function,
    FunctionSpan,
    Guard,
    Immediate,
    Instruction,
    Kernel,
    Label,
    Module,
    Operand,
    Register,
    Symbol,
    Vector,
)
from .opcodes import LEAVES, destinations, is_barrier, sources
from .reconvergence import (
    Kinds,
    Parting,
    find_warp_syncs,
    immediate_post_dominators,
    partings,
    run_order,
)


@dataclass(frozen=True, slots=True)
class Cut:
    """A basic block in its function's own numbering: instructions `first` to `last` (exclusive)."""

    first: int
    last: int
    successors: tuple[int, ...]
    leaves: bool


def cut_blocks(function: Function, is_inner_call: Callable[[Instruction], bool]) -> list[Cut]:
    """Cut a function at branches, barriers, calls of PTX functions, returns and branch targets."""
    return _cut(function, is_inner_call, frozenset())


def cut_at_meetings(
    function: Function,
    is_inner_call: Callable[[Instruction], bool],
    cuts: list[Cut],
    seed_pcs: frozenset[int] = frozenset(),
) -> tuple[list[Cut], frozenset[int]]:
    """Make each warp-synchronous instruction where divergent lanes can meet a block by itself.

    `seed_pcs` are such instructions that the caller already knows. Return the blocks and all such
    instructions.
    """
    meeting_pcs = seed_pcs | find_warp_syncs(
        function.instructions,
        [(cut.first, cut.last) for cut in cuts],
        {number: cut.successors for number, cut in enumerate(cuts)},
        [number for number, cut in enumerate(cuts) if cut.leaves],
    )
    return (_cut(function, is_inner_call, meeting_pcs) if meeting_pcs else cuts), meeting_pcs


def _cut(
    function: Function, is_inner_call: Callable[[Instruction], bool], meeting_pcs: frozenset[int]
) -> list[Cut]:
    # A meeting starts a block and ends it, so that lanes can wait there without splitting a block.
    instructions = function.instructions
    starts = {0, *meeting_pcs, *(index + 1 for index in meeting_pcs)}
    for index, instruction in enumerate(instructions):
        if _ends_block(instruction) or (
            instruction.opcode == "call" and is_inner_call(instruction)
        ):
            starts.add(index + 1)
        starts.update(_targets(function, instruction))
    starts.discard(len(instructions))
    firsts = sorted(starts)
    number = {first: block for block, first in enumerate(firsts)}
    lasts = [*firsts[1:], len(instructions)]
    return [
        Cut(first, last, _successors(function, last - 1, number), _leaves(instructions[last - 1]))
        for first, last in zip(firsts, lasts, strict=True)
    ]


def _ends_block(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    return opcode in LEAVES or opcode in ("bra", "brx") or is_barrier(instruction)


def _targets(function: Function, instruction: Instruction) -> tuple[int, ...]:
    """Return the instruction indices that a branch can target, in the order of its list."""
    if instruction.opcode not in ("bra", "brx"):
        return ()
    label = instruction.operands[-1]
    assert isinstance(label, Label)
    names = (label.name,) if instruction.opcode == "bra" else function.branch_targets[label.name]
    return tuple(function.labels[name] for name in names)


def _successors(function: Function, last: int, number: dict[int, int]) -> tuple[int, ...]:
    """Return the successors of the block that `last` ends: (taken, fall-through)."""
    instruction = function.instructions[last]
    targets = tuple(number[target] for target in _targets(function, instruction))
    falls = instruction.guard or not (targets or instruction.opcode in (*LEAVES, "brx"))
    return (*targets, number[last + 1]) if falls else targets


def _leaves(instruction: Instruction) -> bool:
    """Return True if all lanes leave the function here normally (not by a trap)."""
    return instruction.opcode in ("ret", "exit") and instruction.guard is None


_Live = list[frozenset[tuple[int, str]]]


def link_kernel(module: Module, entry_name: str, meetings: frozenset[int] = frozenset()) -> Kernel:
    """Link the entry and every function that it can reach.

    `meetings` are pcs of warp-synchronous instructions at which divergent lanes meet; the linker
    finds others itself.

    Calls of functions without a body (`vprintf`, `malloc`) do not end a block. An indirect call can
    reach the functions of its `.calltargets`, by default all functions with an address
    that the module takes.
    """

    def is_inner(call: Instruction) -> bool:
        return has_body(module, call)

    reached = name_leaders(_reach(module, _find_entry(module, entry_name)))
    functions = [separate_returns(function, is_inner) for function in reached]
    splits = []
    start = 0
    for function in functions:
        span = range(start, start + len(function.instructions))
        offsets = frozenset(pc - start for pc in meetings if pc in span)
        splits.append(cut_at_meetings(function, is_inner, cut_blocks(function, is_inner), offsets))
        start = span.stop
    cuts = [own for own, _ in splits]
    count = sum(map(len, cuts))
    meeting_pcs: set[int] = set()
    instructions: list[Instruction] = []
    blocks: list[BasicBlock] = []
    spans: list[FunctionSpan] = []
    live_in: _Live = []
    live_out: _Live = []
    for index, (function, own) in enumerate(zip(functions, cuts, strict=True)):
        spans.append(FunctionSpan(function, len(blocks), count + index))
        _append_live(live_in, live_out, index, function, own)
        blocks += _place(function, own, index, len(blocks), len(instructions), count + index)
        meeting_pcs.update(len(instructions) + k for k in splits[index][1])
        instructions += function.instructions
    return Kernel(
        entry_name,
        module,
        tuple(spans),
        tuple(instructions),
        tuple(blocks),
        tuple(live_in),
        tuple(live_out),
        frozenset(meeting_pcs),
    )


def has_body(module: Module, call: Instruction) -> bool:
    """Return True if a `call` runs PTX: its callee has a body, or is known only at run time."""
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
    """Return the callee of a direct call, resolving an alias."""
    assert isinstance(target.callee, Symbol)
    name = target.callee.name
    function = module.functions.get(module.aliases.get(name, name))
    if function is None:
        raise CutraceError(
            f"PTX line {call.ptx_line}: {call.text} calls {name}, expected a function"
            f"{nearest(name, module.functions)}"
        )
    argument_counts = (len(target.returns), len(target.arguments))
    parameter_counts = (len(function.returns), len(function.parameters))
    if argument_counts != parameter_counts:
        raise CutraceError(
            f"PTX line {call.ptx_line}: {call.text} has {argument_counts[0]} results and"
            f" {argument_counts[1]} "
            f"arguments, {name} has {parameter_counts[0]} and {parameter_counts[1]}"
        )
    return function


def _reach(module: Module, entry: Function) -> list[Function]:
    """Return the entry and all functions it can call, in order of first call."""
    reached = {entry.name: entry}
    pending = [entry]
    for function in pending:  # the loop appends to this list
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
    """Return all address-taken functions, in the module's order."""
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


def is_pair_mask(number: int) -> bool:
    """Return whether `and` with a number of 32 bits clears the bit of a shared address that tells
    the two blocks of a pair apart (10.0).

    The compiler may clear low bits of the mask, too, that alignment makes 0 anyway: ten of them
    where shared memory is aligned to 1,024 bytes.
    """
    return (number | 0xFFFF) & 0xFFFF_FFFF == 0xFEFF_FFFF


def name_leaders(functions: list[Function]) -> list[Function]:
    """Replace the `and` that clears the pair's bit of a shared address by `mapa.leader`, where the
    code has instructions of pairs.

    On the hardware the addresses of a block's own memory contain its rank in the cluster, so that
    the result is the first block's. cutrace's do not.
    """
    if not any("cta_group::2" in i.modifiers for f in functions for i in f.instructions):
        return functions
    return [replace(f, instructions=tuple(map(_name_leader, f.instructions))) for f in functions]


def _name_leader(instruction: Instruction) -> Instruction:
    if instruction.opcode != "and" or instruction.type != "b32":
        return instruction
    mask = instruction.operands[2]
    if isinstance(mask, Immediate) and is_pair_mask(mask.bits):
        return replace(instruction, opcode="mapa", modifiers=("leader", "u32"))
    return instruction


def _is_not_reached(number: int, cut: Cut) -> bool:
    """Return True for `L: bra L`, which compilers emit for unreachable code: it acts as a trap."""
    return cut.last - cut.first == 1 and cut.successors == (number,)


def _place(
    code: Function, cuts: list[Cut], function: int, block: int, pc: int, exit_: int
) -> Iterator[BasicBlock]:
    """Yield a function's blocks, numbered from `block` on, with instructions from `pc` on."""
    endings = (code.instructions[cut.last - 1].opcode for cut in cuts)
    switches = frozenset(number for number, opcode in enumerate(endings) if opcode == "brx")
    after = {number: cut.successors for number, cut in enumerate(cuts)}
    leaving = [number for number, cut in enumerate(cuts) if cut.leaves]
    # Unreachable self-loops get no successors here, so that they do not hold reconvergence back.
    ending = {number: () if _is_not_reached(number, cut) else cut.successors
              for number, cut in enumerate(cuts)}  # fmt: skip
    joins = immediate_post_dominators(ending, leaving, len(cuts))
    ranks = {number: rank for rank, number in enumerate(run_order(after, 0))}
    returns = [number for number in leaving if cuts[number].last - cuts[number].first == 1]
    # A kernel's exit ends its lanes; a function's exit returns them to the call's stack entry.
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
            tuple(place[outer_join] for outer_join in parting.outer_joins),
            place.get(parting.leaving, NO_BLOCK),
        )


def _append_live(
    live_in: _Live, live_out: _Live, index: int, function: Function, cuts: list[Cut]
) -> None:
    after = [cut.successors for cut in cuts]
    spans = [function.instructions[cut.first : cut.last] for cut in cuts]
    before_each, after_each = find_live(function, spans, after)
    live_in += [frozenset((index, name) for name in names) for names in before_each]
    live_out += [frozenset((index, name) for name in names) for names in after_each]


def separate_returns(function: Function, is_inner_call: Callable[[Instruction], bool]) -> Function:
    """Insert a jump after each call with an ambiguous return block.

    This is a call with a label behind it, or one with a guard. A guarded call becomes a branch
    around an unguarded one:

        @%p call f;          @!%p bra after;
                      ->     call f;
                             bra after;
                             after: ...

    So the block behind a call holds only lanes that return from it.
    """
    places: list[int] = []
    labels: dict[str, int] = {}
    instructions: list[Instruction] = []
    targets = set(function.labels.values())
    for index, instruction in enumerate(function.instructions):
        places.append(len(instructions))
        called = instruction.opcode == "call"
        followed = index + 1 in targets and called and is_inner_call(instruction)
        if not followed and not (called and instruction.guard):
            instructions.append(instruction)
            continue
        after = f"after call {index}"
        if instruction.guard:
            guard = Guard(instruction.guard.register, not instruction.guard.negated)
            instructions.append(_jump(instruction, after, guard))
        instructions += [replace(instruction, guard=None), _jump(instruction, after, None)]
        labels[after] = len(instructions)
    places.append(len(instructions))
    labels |= {name: places[index] for name, index in function.labels.items()}
    return replace(function, instructions=tuple(instructions), labels=labels)


def _jump(call: Instruction, to: str, guard: Guard | None) -> Instruction:
    written = f"@{'!' * guard.negated}{guard.register.name} bra" if guard else "bra"
    return Instruction(
        "bra", (), (Label(to),), guard, f"{written} ({to});", call.ptx_line, call.location
    )


Names = list[list[str]]


def find_live(
    function: Function,
    blocks: Sequence[Sequence[Instruction]],
    successors: Sequence[Sequence[int]],
) -> tuple[Names, Names]:
    """Return the registers that are live at the start and at the end of each block.

    A guarded instruction may leave its destination unchanged, so it kills nothing. The callee of an
    inner call cannot access the caller's registers: those live after the call are live during it.
    Register results of old PTX are read when the function returns.
    """
    names = list(function.registers)
    bits = {name: 1 << number for number, name in enumerate(names)}
    results = sum(bits[v.name] for v in function.returns if v.space == "reg")
    uses = [_summarize(instructions, bits, results) for instructions in blocks]
    live_in = [0] * len(blocks)
    live_out = [0] * len(blocks)
    changed = True
    while changed:
        changed = False
        # Backward data-flow analysis on bit sets. Reverse order visits most successors first, so
        # the fixed point takes few passes.
        for block in reversed(range(len(blocks))):
            for after in successors[block]:
                live_out[block] |= live_in[after]
            read, written = uses[block]
            before = read | (live_out[block] & ~written)
            changed |= before != live_in[block]
            live_in[block] = before
    return [_name(b, names) for b in live_in], [_name(b, names) for b in live_out]


def _summarize(
    instructions: Sequence[Instruction], bits: Mapping[str, int], results: int
) -> tuple[int, int]:
    """Return the registers that a block reads before writing, and those it always writes."""
    read = written = 0
    for instruction in instructions:
        now = results if instruction.opcode == "ret" else 0
        for register in sources(instruction):
            now |= bits[register.name]
        read |= now & ~written
        if instruction.guard is None:
            for register in destinations(instruction):
                written |= bits[register.name]
    return read, written


def _name(bits: int, names: Sequence[str]) -> list[str]:
    """Return the names of the set bits; the time depends on set bits only."""
    register_names = []
    while bits:
        lowest = bits & -bits
        register_names.append(names[lowest.bit_length() - 1])
        bits ^= lowest
    return register_names
