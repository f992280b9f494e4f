"""Executors that do their work at once, or lose it."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class Losing:
    """An executor of which each worker takes the first task with it that it is given.

    `given` are the calls in order, lost ones too.
    """

    def __init__(self, times: int = 0) -> None:
        self.left = times
        self.given: list[Any] = []

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.given += arguments
        if self.left:
            self.left -= 1
            future.set_exception(ConnectionError("the worker has gone"))
        else:
            future.set_result(call(*arguments))
        return future
