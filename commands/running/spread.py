"""Work spread over an executor: anything with `submit`, whose futures call back when they are done.

That is what `concurrent.futures` has, and Dask's client and mpi4py's pool likewise. A task whose
worker is lost is given out again; what it raises itself is an answer, and comes back as one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import Queue
from typing import Any, Protocol, TypeVar

Task = TypeVar("Task")
ATTEMPTS = 3
"""How often a task is given out that no worker brings back."""


class Executor(Protocol):
    """What takes a call, and returns a future with `result`, `cancel` and `add_done_callback`."""

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Any:
        """Have a call done by somebody."""


def spread(
    executor: Executor, call: Callable[[Task], Any], tasks: Sequence[Task]
) -> Iterator[tuple[int, Any]]:
    """Do the tasks; yield the number of each as it ends, with what the call returned.

    Raises what the last attempt at a task raised. What is not done then is given up.
    """
    done: Queue[tuple[int, Any]] = Queue()
    attempts = [0] * len(tasks)
    futures: dict[int, Any] = {}

    def give(number: int) -> None:
        attempts[number] += 1
        futures[number] = executor.submit(call, tasks[number])
        futures[number].add_done_callback(partial(_note, done, number))

    try:
        for number in range(len(tasks)):
            give(number)
        while futures:
            number, future = done.get()
            try:
                result = future.result()
            except Exception:
                if attempts[number] == ATTEMPTS:
                    raise
                give(number)
                continue
            del futures[number]
            yield number, result
    finally:
        for future in futures.values():
            with suppress(Exception):
                future.cancel()


def _note(done: "Queue[tuple[int, Any]]", number: int, future: Any) -> None:
    done.put((number, future))
