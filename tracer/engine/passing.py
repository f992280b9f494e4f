"""Arguments and results in registers, as old PTX has them: `.func (.reg .u32 r) f (.reg .u32 a)`.

Arguments are put into the callee's registers before the call; results are taken from them at the
block after it.
"""

from typing import TYPE_CHECKING

from ..ptx.kernel import CallTarget, Register
from .program import Step
from .slot import Fetch, Slots, Store

if TYPE_CHECKING:
    from .decode import Decoder
    from .group import Group


def pass_registers(decoder: "Decoder", target: CallTarget, callee: int) -> list[Step]:
    """Return what puts arguments into the callee's registers, where it takes them in registers."""
    parameters = decoder.kernel.functions[callee].function.parameters
    steps: list[Step] = []
    for operand, variable in zip(target.arguments, parameters, strict=True):
        if variable.space == "reg":
            slot = decoder.slots.of_passed((callee, variable.name))
            fetch = decoder.fetch(operand, variable.element)
            steps.append(_pass(fetch, decoder.store_slot(slot, variable.element)))
    return steps


def _pass(fetch: Fetch, store: Store) -> Step:
    def move(group: "Group") -> None:
        value = fetch(group.frame)
        group.wave.owned.pop(id(value), None)
        store(group.frame, value)

    return move


def returned_registers(
    decoder: "Decoder", target: CallTarget, callee: int
) -> list[tuple[int, int]]:
    """Return pairs of slots, the callee's register and the caller's, for results in registers."""
    returns = decoder.kernel.functions[callee].function.returns
    return [
        (decoder.slots.of_passed((callee, v.name)), decoder.slots.of(decoder.function, operand))
        for operand, v in zip(target.returns, returns, strict=True)
        if v.space == "reg" and isinstance(operand, Register)
    ]


def take_returned(slots: Slots, source: int, to: int) -> Step:
    """Return what puts a callee's register into the caller's where the call has come back."""
    fetch = slots.fetch_slot(source, slots.zeros[to].dtype)
    slots.write(to)

    def take(group: "Group") -> None:
        value = fetch(group.frame)
        group.wave.owned.pop(id(value), None)
        group.frame[to] = value

    return take
