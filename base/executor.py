"""Run tasks on an executor: any object with `submit` and futures that support callbacks.

`concurrent.futures` has this interface, as have Dask's client and mpi4py's pool. If a worker is
lost, its task is submitted again and the others continue.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from queue import Queue
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .cores import limit_cores
from .dataclass import dataclass
from .errors import CutraceError
from .version import __version__

if TYPE_CHECKING:
    from concurrent.futures import Future


Task = TypeVar("Task")
ATTEMPTS = 3
"""Most attempts of a task that loses its worker."""


class Executor(Protocol):
    """An executor; its futures have `result`, `cancel` and `add_done_callback`."""

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Any:
        """Submit a call."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """The unit that a worker receives: a function, its task, and the attempt.

    `attempt` distinguishes repetitions: Dask's client caches by the call, and would return the lost
    worker's result again.
    """

    call: Callable[[Any], Any]
    task: Any
    attempt: int = 1
    version: str = __version__


def run(errand: WorkItem) -> Any:
    """Run a task; return the function's result, or the `CutraceError` that it raises."""
    if errand.version != __version__:
        return CutraceError(f"a worker has cutrace {__version__}, and not {errand.version}")
    try:
        return errand.call(errand.task)
    except CutraceError as error:
        return error


def run_tasks(
    executor: Executor, call: Callable[[Task], Any], tasks: Sequence[Task]
) -> Iterator[tuple[int, Any]]:
    """Run tasks; yield the number of each on completion, with its result.

    The result may be the `CutraceError` that the function raised, or one that says that no worker
    returned the task. Raises CutraceError if the executor accepts no more work; open tasks are then
    cancelled.
    """
    with _without_forks(executor) as unforked:
        yield from _run_tasks(unforked, call, tasks)


def _run_tasks(
    executor: Executor, call: Callable[[Task], Any], tasks: Sequence[Task]
) -> Iterator[tuple[int, Any]]:
    completions: Queue[tuple[int, Any]] = Queue()
    attempts = [0] * len(tasks)
    futures: dict[int, Any] = {}

    def give(number: int) -> None:
        attempts[number] += 1
        errand = WorkItem(call, tasks[number], attempts[number])
        try:
            futures[number] = executor.submit(run, errand)
        except Exception as error:
            raise CutraceError(
                f"the executor takes no more work: {_error_line(error)}; finished jobs are kept;"
                " run the same again to go on"
            ) from error
        futures[number].add_done_callback(partial(_store_result, completions, number))

    try:
        for number in range(len(tasks)):
            give(number)
        while futures:
            number, future = completions.get()
            try:
                result = future.result()
            except Exception as error:
                # `run` returns a task's CutraceError as its result, so an exception here means
                # that the worker or its transport failed: the task is worth another attempt.
                if attempts[number] < ATTEMPTS:
                    give(number)
                    continue
                result = CutraceError(
                    f"given to workers {ATTEMPTS} times, and none brought it back:"
                    f" {_error_line(error)}"
                    f" (they need memory enough, and cutrace {__version__})"
                )
            del futures[number]
            yield number, result
    finally:
        for future in futures.values():
            with suppress(Exception):
                future.cancel()


@contextmanager
def _without_forks(executor: Executor) -> Iterator[Executor]:
    """Yield the executor, or a pool of our own processes if it forks.

    A forked process inherits the locks that threads of this process hold, and may wait for them for
    ever.
    """
    context = getattr(executor, "_mp_context", None)
    if context is None or context.get_start_method() != "fork":
        yield executor
        return
    own = WorkerPool(getattr(executor, "_max_workers", 1))
    try:
        yield own
    finally:
        own.close()


def _error_line(error: Exception) -> str:
    """Return a foreign exception in one line.

    >>> _error_line(ConnectionError("the worker has gone"))
    'ConnectionError: the worker has gone'
    """
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _store_result(completions: "Queue[tuple[int, Any]]", number: int, future: Any) -> None:
    completions.put((number, future))


_SERVE = f"from {__name__} import serve; serve()"


class WorkerLost(CutraceError):
    """A worker process ended before it answered."""


class WorkerProcess:
    """A process that runs calls one by one. A module's function is sent by name."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            process_group=0,  # Ctrl-C goes to the parent, which ends it
        )

    def send(self, call: Callable[..., Any], /, *arguments: Any) -> None:
        """Send a call."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):  # receive() reports that it has ended
            self._child.stdin.write(pickle.dumps((call, arguments)))
            self._child.stdin.flush()

    def receive(self) -> Any:
        """Wait for a call's result and return it, or raise the call's exception."""
        assert self._child.stdout is not None
        try:
            is_answer, answer = pickle.load(self._child.stdout)
        except (EOFError, pickle.UnpicklingError):
            raise WorkerLost(f"a process ended with status {self._child.wait()}") from None
        if is_answer:
            return answer
        raise answer

    def end(self) -> None:
        """Kill the process."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


class WorkerPool:
    """An executor of `count` processes; a lost process fails only its own task."""

    def __init__(self, count: int) -> None:
        from concurrent.futures import ThreadPoolExecutor
        from queue import Queue

        self._threads = ThreadPoolExecutor(count)
        self._idle: Queue[WorkerProcess] = Queue()
        for _ in range(count):
            self._idle.put(WorkerProcess())

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Submit a call to the first idle process."""
        return self._threads.submit(self._do, call, *arguments)

    def _do(self, call: Callable[..., Any], /, *arguments: Any) -> Any:
        # There are as many threads as processes, so one is idle. A lost process is replaced before
        # it goes back to the queue: the pool keeps its size.
        process = self._idle.get()
        try:
            process.send(call, *arguments)
            return process.receive()
        except WorkerLost:
            process.end()
            process = WorkerProcess()
            raise
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """Wait for running calls, and start no others."""
        self._threads.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().end()


def serve() -> None:
    """Main function of a worker process: calls on stdin, answers on stdout, prints on stderr."""
    # Keep the pipe under another descriptor and point 1 at stderr: a print by the task, or by a C
    # library below it, must not end up between the pickled answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    limit_cores(1)
    with suppress(EOFError):
        while True:
            call, arguments = pickle.load(sys.stdin.buffer)
            try:
                answer = pickle.dumps((True, call(*arguments)))
            except Exception as error:
                answer = pickle.dumps((False, error))
            try:
                answers.write(answer)
                answers.flush()
            except BrokenPipeError:
                os._exit(1)  # the parent has ended
