"""Warps sampled beside a long replay, which leaves a core idle at times; else when asked for."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import field

from ...lazy_dataclass import dataclass
from ...models.replay.device.device import Device
from ...models.replay.device.measured import load_measured
from ...models.replay.jobs import cores
from ...traces.reader import LaunchTrace
from .sample_warps import Ran, sample_warps

WORTH = 1 << 18
"""Rows of accesses from which on a thread is worth its start."""


@dataclass(slots=True)
class SampledWarps:
    """The sampled warps of a launch. A thread of their own reads them as soon as a replay on the
    devices tells how far it is, if any estimate follows from them.
    """

    launch: LaunchTrace
    devices: Sequence[Device]
    _found: Future[Ran] | None = field(default=None, repr=False)

    def begin_beside(self, tell: Callable[[float], None]) -> Callable[[float], None]:
        """Return what a replay is to tell in place of `tell`."""

        def begin(done: float) -> None:
            if done < 1 and self._found is None and self._is_worth_a_thread:
                thread = ThreadPoolExecutor(1, "sample")
                # threads would share the files that a launch has open
                self._found = thread.submit(sample_warps, deepcopy(self.launch))
                thread.shutdown(wait=False)
            tell(done)

        return begin

    def __call__(self) -> Ran:
        """Return them."""
        if self._found is None:
            self._found = Future()
            self._found.set_result(sample_warps(self.launch))
        return self._found.result()

    @property
    def _is_worth_a_thread(self) -> bool:
        is_long = self.launch.count("accesses") >= WORTH and cores() > 1
        return is_long and any(map(load_measured, self.devices))
