"""Call sites of a kernel: the possible callees, and the registers that recursion spills."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from ....base.dataclass import dataclass
from ...ptx.kernel import BasicBlock, CallTarget, Instruction, Kernel, Register
from ..kernel.function_pointer import callees
from .register_frame import Frame, Place


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call that ends a basic block: its possible callees, the block after it, and the registers
    that it spills: places in the frame, each with its offset in the spill area."""

    pc: int
    function: int
    target: CallTarget
    callees: tuple[int, ...]
    after: int | None
    spilled: tuple[tuple[Place, int], ...] = ()
    puts_aside: bool = False


@dataclass(slots=True)
class Calls:
    """The calls of a kernel, by the block that they end (`ending`) and by the block after them
    (`returning`); `aside_bytes` is the spill area of one level of recursion per warp."""

    ending: dict[int, CallSite] = field(default_factory=dict)
    returning: dict[int, CallSite] = field(default_factory=dict)
    aside_bytes: int = 0

    def add(self, block: int, site: CallSite) -> None:
        """Add the call at the end of a block."""
        self.ending[block] = site
        if site.after is not None:
            self.returning[site.after] = site


def find_calls(kernel: Kernel, frame: Frame) -> Calls:
    """Return the calls of functions that have a body.

    Lanes of a warp may reach the same depth of recursion through different calls. A spill of one
    lane must therefore never overlap the spill of another lane by another call: a level has one
    part per size of a place, with the same layout for all calls.
    """
    calls = Calls()
    sites: dict[int, tuple[CallSite, list[Place]]] = {}
    for block in kernel.blocks:
        instruction = kernel.instructions[block.last - 1]
        if is_inner_call(kernel, block, instruction):
            sites[block.number] = _site(kernel, frame, block, instruction)
    most: Counter[int] = Counter()
    for _, places in sites.values():
        most |= Counter(place.size for place in places)
    begins: dict[int, int] = {}
    for size in sorted(most, reverse=True):
        begins[size] = calls.aside_bytes
        calls.aside_bytes += 32 * size * most[size]
    for number, (site, places) in sites.items():
        calls.add(number, replace(site, spilled=tuple(_lay_out(places, begins))))
    return calls


def _lay_out(places: Iterable[Place], begins: Mapping[int, int]) -> Iterator[tuple[Place, int]]:
    """Yield places with their offsets in the spill area, each in the part for its size."""
    ends = dict(begins)
    for place in places:
        yield place, ends[place.size]
        ends[place.size] += 32 * place.size


def is_inner_call(kernel: Kernel, block: BasicBlock, instruction: Instruction) -> bool:
    """Return whether an instruction calls a function of the module."""
    target = _target(instruction)
    return target is not None and (
        isinstance(target.callee, Register) or bool(callees(kernel, block.function, target))
    )


def _target(instruction: Instruction) -> CallTarget | None:
    return next((o for o in instruction.operands if isinstance(o, CallTarget)), None)


def _site(
    kernel: Kernel, frame: Frame, block: BasicBlock, instruction: Instruction
) -> tuple[CallSite, list[Place]]:
    """Return a call site without its spills, and the places to spill."""
    target = _target(instruction)
    assert target is not None
    reached = tuple(callees(kernel, block.function, target))
    after = block.successors[0] if block.successors else None
    recursive = frame.passing.recursive
    again = after is not None and block.function in recursive and bool(recursive & set(reached))
    places = list(_put_aside(kernel, frame, block, target, after)) if again else []
    site = CallSite(block.last - 1, block.function, target, reached, after, puts_aside=again)
    return site, places


def _put_aside(
    kernel: Kernel, frame: Frame, block: BasicBlock, target: CallTarget, after: int | None
) -> Iterator[Place]:
    """Yield the places of the registers that are live after a call, and of the function's own
    parameters."""
    assert after is not None
    return_names = {r.name for r in target.returns if isinstance(r, Register)}
    for function, name in sorted(kernel.live_in[after]):
        if name not in return_names and (function, name) not in frame.parameters:
            yield frame.place(function, name)
    own = kernel.functions[block.function].function
    pieces = {
        (*place, *span)
        for variable in (*own.returns, *own.parameters)
        if variable.space == "param"
        for place in [frame.passing.place(block.function, variable.name)]
        for span in frame.passing.spans(place)
    }
    for piece in sorted(pieces):
        yield frame.others[piece]
