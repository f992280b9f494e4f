"""Processes of this machine as an executor."""

from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from queue import Queue
from typing import Any


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
