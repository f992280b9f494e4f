"""A block of its own for what comes back from a call.

Registers are taken back, and results taken, in the block after a call of a PTX function: only lanes
that come back may run it. So a branch to the instruction after a call, as the end of a loop may
have, goes around a jump that is put between, and any `@p call` becomes a branch around a plain one.
"""

from collections.abc import Callable
from dataclasses import replace

from .kernel import Function, Guard, Instruction, Label


def separate_returns(function: Function, is_inner_call: Callable[[Instruction], bool]) -> Function:
    """Return the function with a jump after each call that a label or a guard makes doubtful."""
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
