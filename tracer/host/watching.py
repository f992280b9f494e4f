"""What a session watches for: its own arguments, else what `cutrace record` says."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from ...errors import CutraceError
from ..engine.launch import Watch

MOST_INSTRUCTIONS = 1 << 31
"""Steps of a warp are 32 bits in a trace."""

_WATCH: ContextVar[Watch] = ContextVar("cutrace_watch", default=Watch())  # noqa: B039 (frozen)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """While the body runs, sessions that open watch for this, unless they say otherwise."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def choose_watch(max_instructions: int | None, check_uninitialized: bool | None) -> Watch:
    """What a session watches for; CutraceError for a number that makes no sense."""
    watch = _WATCH.get()
    if max_instructions is not None:
        watch = replace(watch, max_instructions=max_instructions)
    if check_uninitialized is not None:
        watch = replace(watch, uninitialized=check_uninitialized)
    if not 1 <= watch.max_instructions <= MOST_INSTRUCTIONS:
        raise CutraceError(
            f"max_instructions is {watch.max_instructions}, "
            f"expected 1 to {MOST_INSTRUCTIONS} for each warp"
        )
    return watch
