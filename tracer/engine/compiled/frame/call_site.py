"""The calls of a kernel: which functions each may enter, and what a recursion puts aside."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ....ptx.kernel import BasicBlock, CallTarget, Instruction, Kernel, Register
from ...kernel.function_pointer import callees
from .register_frame import Frame, Place


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call that ends a basic block: the functions that it may enter, the block after it, and what
    it puts aside: places of registers, each with the bytes before it there."""

    pc: int
    function: int
    target: CallTarget
    callees: tuple[int, ...]
    after: int | None
    aside: tuple[tuple[Place, int], ...] = ()
    puts_aside: bool = False


@dataclass(slots=True)
class Calls:
    """The calls of a kernel by the block that they end, and by the block after them; `aside_bytes`
    is what a level of recursion needs for a warp."""

    ending: dict[int, CallSite] = field(default_factory=dict)
    returning: dict[int, CallSite] = field(default_factory=dict)
    aside_bytes: int = 0

    def add(self, block: int, site: CallSite) -> None:
        """Add a call at the end of a block."""
        self.ending[block] = site
        if site.after is not None:
            self.returning[site.after] = site
        ends = (offset + 32 * place.size for place, offset in site.aside)
        self.aside_bytes = max(self.aside_bytes, *ends, 0)


def find_calls(kernel: Kernel, frame: Frame) -> Calls:
    """Return the calls of functions that have a body."""
    found = Calls()
    for block in kernel.blocks:
        instruction = kernel.instructions[block.last - 1]
        if is_inner_call(kernel, block, instruction):
            found.add(block.number, _site(kernel, frame, block, instruction))
    return found


def is_inner_call(kernel: Kernel, block: BasicBlock, instruction: Instruction) -> bool:
    """Whether an instruction calls a function of the module."""
    target = _target(instruction)
    return target is not None and (
        isinstance(target.callee, Register) or bool(callees(kernel, block.function, target))
    )


def _target(instruction: Instruction) -> CallTarget | None:
    return next((o for o in instruction.operands if isinstance(o, CallTarget)), None)


def _site(kernel: Kernel, frame: Frame, block: BasicBlock, instruction: Instruction) -> CallSite:
    target = _target(instruction)
    assert target is not None
    reached = tuple(callees(kernel, block.function, target))
    after = block.successors[0] if block.successors else None
    recursive = frame.passing.recursive
    again = after is not None and block.function in recursive and bool(recursive & set(reached))
    aside: list[tuple[Place, int]] = []
    end = 0
    for place in _put_aside(kernel, frame, block, target, after) if again else ():
        aside.append((place, end))
        end += 32 * place.size
    pc = block.last - 1
    return CallSite(pc, block.function, target, reached, after, tuple(aside), again)


def _put_aside(
    kernel: Kernel, frame: Frame, block: BasicBlock, target: CallTarget, after: int | None
) -> Iterator[Place]:
    """Yield the places of what is live after a call, and of the function's own parameters."""
    assert after is not None
    taken = {r.name for r in target.returns if isinstance(r, Register)}
    for function, name in sorted(kernel.live_in[after]):
        if name not in taken and (function, name) not in frame.parameters:
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
