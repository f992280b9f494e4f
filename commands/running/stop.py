"""A limit of processor time."""

import signal
from collections.abc import Callable
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

from ...base.errors import KernelFault
from ...base.interrupt import interrupt


class Stop:
    """Ends its body with a KernelFault after some seconds of processor time.

    Only in the main thread of a Unix process. Other processes of the machine do not count.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self.is_over = seconds, False
        self._before: Callable[[int, FrameType | None], Any] | int | None = None

    def __enter__(self) -> None:
        if hasattr(signal, "setitimer") and current_thread() is main_thread():
            self._before = signal.signal(signal.SIGPROF, self._end)
            signal.setitimer(signal.ITIMER_PROF, self._seconds)

    def __exit__(self, *problem: object) -> None:
        if self._before is not None:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, self._before)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.is_over = True
        text = f"it took longer than {self._seconds:g} s of processor time, the limit (--seconds)"
        interrupt(KernelFault(text, "endless"))
