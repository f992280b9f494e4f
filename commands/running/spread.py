"""Work spread over an executor: anything with `submit`, whose futures call back when they are done.

That is what `concurrent.futures` has, and Dask's client and mpi4py's pool likewise. A task whose
worker is lost is given out again, and others go on.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from queue import Queue
from typing import Any, Protocol, TypeVar

from ...errors import CutraceError

Task = TypeVar("Task")
ATTEMPTS = 3
"""How often a task is given out that no worker brings back."""


class Executor(Protocol):
    """An executor; its futures have `result`, `cancel` and `add_done_callback`."""

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Any:
        """Have a call done by somebody."""


def spread(
    executor: Executor, call: Callable[[Task], Any], tasks: Sequence[Task]
) -> Iterator[tuple[int, Any]]:
    """Do the tasks; yield the number of each as it ends, with what the call returned.

    Instead of that stands the exception of the last attempt where no worker brought a task back.
    `CutraceError` where the executor takes no more; what is not done then is given up.
    """
    done: Queue[tuple[int, Any]] = Queue()
    attempts = [0] * len(tasks)
    futures: dict[int, Any] = {}

    def give(number: int) -> None:
        attempts[number] += 1
        try:
            futures[number] = executor.submit(call, tasks[number])
        except Exception as error:
            raise CutraceError(
                f"the executor takes no more work: {told(error)}; finished jobs are kept;"
                " run the same again to go on"
            ) from error
        futures[number].add_done_callback(partial(_note, done, number))

    try:
        for number in range(len(tasks)):
            give(number)
        while futures:
            number, future = done.get()
            try:
                result = future.result()
            except Exception as error:
                if attempts[number] < ATTEMPTS:
                    give(number)
                    continue
                result = error
            del futures[number]
            yield number, result
    finally:
        for future in futures.values():
            with suppress(Exception):
                future.cancel()


def told(error: Exception) -> str:
    """An exception of somebody else's in one line.

    >>> told(ConnectionError("the worker has gone"))
    'ConnectionError: the worker has gone'
    """
    return f"{type(error).__name__}: {error}".partition("\n")[0]


class Processes:
    """So many processes of this machine; one that is lost takes no task but its own with it."""

    def __init__(self, count: int, initializer: Callable[[], None]) -> None:
        self._start = partial(ProcessPoolExecutor, 1, get_context("spawn"), initializer)
        self._threads = ThreadPoolExecutor(count)
        self._idle: Queue[ProcessPoolExecutor] = Queue()
        for _ in range(count):
            self._idle.put(self._start())

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Have a call done by the first process that is idle."""
        return self._threads.submit(self._do, call, *arguments)

    def _do(self, call: Callable[..., Any], /, *arguments: Any) -> Any:
        process = self._idle.get()
        try:
            return process.submit(call, *arguments).result()
        except BrokenProcessPool:
            process = self._start()
            raise
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """Let what has begun end, and nothing else begin."""
        self._threads.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().shutdown()


def _note(done: "Queue[tuple[int, Any]]", number: int, future: Any) -> None:
    done.put((number, future))
