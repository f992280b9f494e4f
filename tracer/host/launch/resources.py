"""What the assembler makes of a kernel, asked in the background while the kernel runs."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache

from ....errors import CutraceError
from ....owner import in_child
from ....traces.machine_schedule import pack_schedule
from ....traces.schema import Resources
from ...engine.call.call import BROUGHT
from ...front.machine_code.facts import Facts
from ...front.resources import SEEN, measure
from ...ptx.kernel import CallTarget, Kernel, Symbol
from .assembled import assembled_accesses

DRIVER_REGISTERS = 32
"""What the driver's functions take of a thread on 9.0: a kernel has the most of all it may call.

Source: eight kernels on an H100, tests/validate/counters/print.cu; others were not measured."""


def ask_resources(
    ptx: str, kernel: Kernel, options: Sequence[str] = ()
) -> "Future[tuple[Resources, ...]]":
    """Return what will be the kernel's resources for every architecture that can be asked.

    `options` are the assembler's. Without an assembler (macOS) there are none: the trace then says
    nothing of registers.
    """
    return assembler().submit(_resources_if_any, ptx, kernel, options)


@cache
def assembler() -> ThreadPoolExecutor:
    """The threads that ask, one pool a process; a launch that fails leaves its question to them."""
    workers = min(4, os.cpu_count() or 1)
    return ThreadPoolExecutor(workers, thread_name_prefix="cutrace-assembler")


in_child(assembler.cache_clear)


def _resources_if_any(ptx: str, kernel: Kernel, options: Sequence[str]) -> tuple[Resources, ...]:
    try:
        return tuple(_with_accesses(ptx, kernel, options))
    except CutraceError:
        return ()


def _with_accesses(ptx: str, kernel: Kernel, options: Sequence[str]) -> Iterator[Resources]:
    measured = measure(ptx, kernel.name, options=options)
    for each in measured.resources:
        if each.arch == SEEN:
            yield replace(
                each,
                registers=max(each.registers, DRIVER_REGISTERS * _calls_driver(kernel)),
                accesses=assembled_accesses(kernel, measured.facts.by_line),
                schedule=_schedule(kernel, measured.facts),
            )
        else:
            yield each


def _calls_driver(kernel: Kernel) -> bool:
    """Whether a kernel calls a function whose code is the driver's."""
    operands = (operand for one in kernel.instructions for operand in one.operands)
    calls = (operand.callee for operand in operands if isinstance(operand, CallTarget))
    return any(isinstance(callee, Symbol) and callee.name in BROUGHT for callee in calls)


def _schedule(kernel: Kernel, facts: Facts) -> str:
    """The schedule with the kernel's pcs; what comes before them all is the first one's."""
    pcs: dict[int, int] = {}
    for pc, instruction in enumerate(kernel.instructions):
        pcs.setdefault(instruction.ptx_line, pc)
    return pack_schedule([replace(each, pc=pcs.get(each.pc, 0)) for each in facts.schedule])
