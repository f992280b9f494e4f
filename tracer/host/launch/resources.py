"""What the assembler makes of a kernel, asked in the background while the kernel runs."""

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

from ....errors import CutraceError
from ....traces.schema import Resources
from ...front.resources import resources


def ask_resources(
    ptx: str, kernel: str, options: Sequence[str] = ()
) -> "Future[tuple[Resources, ...]]":
    """Return what will be the kernel's resources for every architecture that can be asked.

    `options` are the assembler's. Without an assembler (macOS) there are none: the trace then says
    nothing of registers.
    """
    return _assembler().submit(_resources_if_any, ptx, kernel, options)


@cache
def _assembler() -> ThreadPoolExecutor:
    workers = min(4, os.cpu_count() or 1)
    return ThreadPoolExecutor(workers, thread_name_prefix="cutrace-assembler")


def _resources_if_any(ptx: str, kernel: str, options: Sequence[str]) -> tuple[Resources, ...]:
    try:
        return resources(ptx, kernel, options=options)
    except CutraceError:
        return ()
