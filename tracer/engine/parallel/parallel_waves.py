"""Waves of a launch in several threads at once, to the same rows and the same memory.

Machine code runs without Python's lock. Of n threads each runs every n-th wave, with buffers and
patterns of its own, marks the words of global memory that it reads and writes, and holds the rows.
After a round of waves the marks of the threads are compared: where none wrote what another read or
wrote, memory and rows are as if one wave had run after the other, and the rows are handed on in the
order of waves while the next round runs. Where they clash, or a wave fails, memory is put back as
it was before the launch, for all to be run again in one thread.
"""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ....errors import CutraceError
from ..array.program import Program
from ..engine_choice import ALONE, Choice
from ..launch import Sink
from ..memory.memory import Memory
from ..rows.pattern import PatternTable
from .held_rows import HeldRows, OwnPatterns
from .read_write_sets import Marks, do_clash

ROUND_BYTES = 1 << 25
"""Bytes of rows at which a round is meant to end."""

HELD_BYTES = 1 << 29
"""Bytes of rows that a round may hold."""

ASIDE_BYTES = 128
"""Bytes of global memory a thread of the launch that are worth putting aside."""

MOST_WAVES = 64
"""Waves that a thread runs in a round at most; in the first it runs one, to see what that takes."""

FEW_PATTERNS = 1 << 12
"""Patterns of earlier waves that a thread keeps: to forget them, and find them again, takes longer
than to put so many aside with each wave."""

CLASH = "its blocks read or write what others of them wrote, and were run again"

_GIVEN_UP: WeakKeyDictionary[Memory, dict[str, str]] = WeakKeyDictionary()
"""Kernels of a session that did not get through, by name, and why: they are not tried again."""


def cores() -> int:
    """Return the cores of this machine."""
    return os.cpu_count() or 1


def why_alone(program: Program, blocks: int, choice: Choice) -> str:
    """Return why a launch, of `blocks` blocks a wave, runs in one thread; empty if it need not."""
    launch, held = program.launch, len(_reachable(program))
    given_up = _GIVEN_UP.get(program.memory, {}).get(program.kernel.name)
    if launch.order or given_up:
        return launch.order or str(given_up)
    if choice.ways is None:
        return choice.alone
    if launch.executed <= blocks:
        return "all its blocks are one wave"
    if held > ASIDE_BYTES * launch.executed * launch.threads:
        return f"to put {held} bytes of memory aside would take longer than several could save"
    if cores() == 1:
        return "this machine has one core"
    return ""


def _reachable(program: Program) -> NDArray[np.uint8]:
    """Return the global memory that a launch may change."""
    memory = program.memory.global_
    reports = program.launch.watch.bounds == "report"
    return memory.bytes[: memory.mapped] if reports else memory.used


class StoppedError(CutraceError):
    """Waves cannot go on side by side; it says why."""


@dataclass(slots=True)
class _Worker:
    """A thread's own things: rows of `most` bytes, `held` in this round; `stop` asks it to end."""

    number: int
    program: Program
    choice: Choice
    marks: Marks
    most: int
    stop: Event
    patterns: OwnPatterns = field(default_factory=OwnPatterns)
    held: int = 0

    def run(self, waves: list[NDArray[np.int64]]) -> list[HeldRows]:
        """Run waves of blocks with these numbers, one after the other."""
        self.held = 0
        with np.errstate(all="ignore"):
            return [self._run_wave(numbers) for numbers in waves]

    def _run_wave(self, numbers: NDArray[np.int64]) -> HeldRows:
        if self.patterns.store.count > FEW_PATTERNS:
            self.patterns.begin_launch()
        rows = HeldRows(self.patterns.store, self.marks, self._grow)
        self.choice.make(numbers, self.patterns, rows, self.number).run()
        rows.end()
        return rows

    def _grow(self, more: int) -> None:
        self.held += more
        if self.held > self.most:
            raise StoppedError(f"the rows of a wave of its blocks take more than {self.most} bytes")
        if self.stop.is_set():
            raise StoppedError("another thread has stopped")


class Abreast:
    """The waves of a launch, of `blocks` blocks each, in several threads; `written` is how many
    were handed on."""

    def __init__(self, program: Program, blocks: int, choice: Choice) -> None:
        assert choice.ways is not None
        self.written = 0
        self._program = program
        self._launch = program.launch
        self._blocks = blocks
        self._waves = -(-program.launch.executed // blocks)
        self._reachable = _reachable(program)
        self._stop = Event()
        ways, size = choice.ways(), len(self._reachable)
        count = min(program.launch.watch.jobs, cores(), self._waves)
        self._workers = [
            _Worker(n, program, choice, Marks(ways, size), HELD_BYTES // count, self._stop)
            for n in range(1, count + 1)
        ]

    def run(self, patterns: PatternTable, sink: Sink) -> str:
        """Run all waves; else return why that was not possible, with memory as it was before."""
        before = self._put_aside()
        try:
            with ThreadPoolExecutor(len(self._workers), "cutrace-wave") as pool:
                try:
                    self._run_rounds(pool, patterns, sink)
                finally:
                    self._stop.set()
        except StoppedError as problem:
            self._reachable[:] = before
            why = str(problem)
            _GIVEN_UP.setdefault(self._program.memory, {})[self._program.kernel.name] = why
            return why
        return ""

    def _put_aside(self) -> NDArray[np.uint8]:
        """Return a copy of global memory, which lies where the last one of the session lay."""
        from ..compiled.compiled_kernel import buffers_of

        used = self._reachable
        aside = buffers_of(self._program.memory)[ALONE].take("aside", len(used), "u1")[: len(used)]
        np.copyto(aside, used)
        return aside

    def _run_rounds(self, pool: ThreadPoolExecutor, patterns: PatternTable, sink: Sink) -> None:
        done: list[HeldRows] = []
        first, waves = 0, 1
        while first < self._waves:
            running = self._start(pool, first, waves)
            self._hand_over(done, patterns, sink)
            done = _finish(running)
            first += len(done)
            held = sum(worker.held for worker in self._workers)
            waves = max(1, min(MOST_WAVES, waves * ROUND_BYTES // max(held, 1)))
        self._hand_over(done, patterns, sink)

    def _start(
        self, pool: ThreadPoolExecutor, first: int, waves: int
    ) -> list[Future[list[HeldRows]]]:
        """Have each thread run so many `waves` from the `first` on, as far as there are so many."""
        count = len(self._workers)
        last = min(first + waves * count, self._waves)
        return [
            pool.submit(
                worker.run,
                [self._launch.wave(n, self._blocks) for n in range(first + place, last, count)],
            )
            for place, worker in enumerate(self._workers)
        ]

    def _hand_over(self, done: list[HeldRows], patterns: PatternTable, sink: Sink) -> None:
        """Write the rows of waves that have ended; StoppedError if any waves so far clash."""
        if done and do_clash([worker.marks for worker in self._workers]):
            raise StoppedError(CLASH)
        while done:
            done.pop(0).hand_over(patterns, sink)
            self.written += 1


def _finish(running: list[Future[list[HeldRows]]]) -> list[HeldRows]:
    """Return the rows of waves in order; StoppedError if one failed.

    A kernel that fails beside others may do so for what they wrote: only one thread can tell.
    """
    try:
        parts = [future.result() for future in running]
    except StoppedError:
        raise
    except CutraceError as problem:
        raise StoppedError(CLASH) from problem
    except Exception as problem:
        raise StoppedError(f"{type(problem).__name__} in one of several: {problem}") from problem
    return [part[n] for n in range(len(parts[0])) for part in parts if n < len(part)]
