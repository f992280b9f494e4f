"""A launch's warps in machine code: latencies of instructions that set a scoreboard.

These latencies are not in the schedule but measured: a load has the latency of the cache that
served it, as in PTX, other instructions that of a similar one.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ...models.replay.device.device import Device
from ...models.replay.device.measured import Measured
from ...traces.schema import Launch
from .chain import Chain, Step
from .machine_chain import MachineWarp
from .machine_code import code_for, count_runs
from .machine_pipes import machine_mix

MEMORY = frozenset(range(0x160, 0x170)) | frozenset(range(0x180, 0x1B0)) | {0x03B}
"""Operations of machine code that access memory, textures and surfaces among them."""
MEMORY_WAITS = frozenset({"dram", "l2", "l1", "shared", "atomic"})
EXCHANGE = ("chase", "chase_shared"), "pipe"
"""What others take that have no fixed latency: the way to shared memory and back."""
VARIABLE: Mapping[int, tuple[tuple[str, str], str]] = {
    **dict.fromkeys((0x182, 0x1B9), (("chase", "chase_const"), "const")),
    **dict.fromkeys((0x184, 0x18C, 0x18D), (("chase", "chase_shared"), "shared")),
    **dict.fromkeys(  # MUFU, F2I, I2F, F2F, FRND, FLO, POPC, FCHK: one pipe
        (0x108, 0x105, 0x111, 0x106, 0x112, 0x104, 0x110, 0x107, 0x113, 0x100, 0x109, 0x102),
        (("latency", "tanh.approx.f32"), "pipe"),
    ),
    0x1A1: (("latency", "match.any"), "pipe"),
    0x1C4: (("latency", "redux.add"), "pipe"),
}
"""The measurement of machine instructions that set a scoreboard; what their readers wait for."""


def runs_in_machine_code(
    launch: Launch, device: Device, code: Mapping[int, Sequence[Step]], measured: Measured
) -> Callable[[Sequence[tuple[int, int]]], Chain] | None:
    """Return what runs a history in machine code; None where the trace has none for the device.

    `code` are the steps of each basic block of the PTX. CutraceError if the schedule is damaged.
    """
    machine = code_for(launch, "sm_{}{}".format(*device.capability))
    if machine is None:
        return None
    steps = {step.pc: step for block in code.values() for step in block}
    block_of = {step.pc: block for block, each in code.items() for step in each}
    latency = partial(_machine_latency, steps, measured)

    def run(history: Sequence[tuple[int, int]]) -> Chain:
        times, entries = count_runs(machine, history, block_of)
        warp = MachineWarp(machine, times, entries, steps, latency, measured.taken_cycles)
        chain = warp.run()
        chain.issued = machine_mix(machine, times)
        return chain

    return run


def _machine_latency(
    steps: Mapping[int, Step], measured: Measured, operation: int, pc: int
) -> tuple[float, str]:
    """Cycles of a machine instruction that sets a scoreboard, and what its reader waits for."""
    step = steps.get(pc)
    if operation in MEMORY and step and step.waits in MEMORY_WAITS:
        return step.latency, step.waits
    name, why = VARIABLE.get(operation, EXCHANGE)
    return measured.at(*name), why
