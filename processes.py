"""Processes of this machine that do calls: each imports what it is asked to call, and nothing else.

Those of `multiprocessing` import the script that starts them, too, which must be written for that.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .errors import CutraceError

if TYPE_CHECKING:
    from concurrent.futures import Future

_SERVE = f"from {__name__} import serve; serve()"


class ProcessLost(CutraceError):
    """A process that ended before it answered."""


class Process:
    """A process that does one call after another. A function of a module is told by its name."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            process_group=0,  # Ctrl-C is for who started it, and ends it
        )

    def send(self, call: Callable[..., Any], /, *arguments: Any) -> None:
        """Have a call done."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):  # who wants the answer is told
            self._child.stdin.write(pickle.dumps((call, arguments)))
            self._child.stdin.flush()

    def receive(self) -> Any:
        """Wait for the answer to a call and return it, or raise the call's exception."""
        assert self._child.stdout is not None
        try:
            is_answer, found = pickle.load(self._child.stdout)
        except (EOFError, pickle.UnpicklingError):
            raise ProcessLost(f"a process ended with status {self._child.wait()}") from None
        if is_answer:
            return found
        raise found

    def end(self) -> None:
        """End it, whatever it does."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


class Processes:
    """An executor of so many processes; one that is lost takes no task but its own with it."""

    def __init__(self, count: int) -> None:
        from concurrent.futures import ThreadPoolExecutor
        from queue import Queue

        self._threads = ThreadPoolExecutor(count)
        self._idle: Queue[Process] = Queue()
        for _ in range(count):
            self._idle.put(Process())

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> "Future[Any]":
        """Have a call done by the first process that is idle."""
        return self._threads.submit(self._do, call, *arguments)

    def _do(self, call: Callable[..., Any], /, *arguments: Any) -> Any:
        process = self._idle.get()
        try:
            process.send(call, *arguments)
            return process.receive()
        except ProcessLost:
            process.end()
            process = Process()
            raise
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """Let what has begun end, and nothing else begin."""
        self._threads.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().end()


def serve() -> None:
    """The main function of a process: calls on stdin, answers on stdout, prints on stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
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
                os._exit(1)  # whoever asked has ended
