"""Limits and checks of a session: its own arguments, else those of `cutrace record`."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from ....errors import CutraceError
from ...engine.launch import BOUNDS, ENGINES, Watch

MOST_INSTRUCTIONS = 1 << 31
"""Steps of a warp are 32 bits in a trace."""

MOST_THREADS = (2**31 - 1) * 65535 * 65535 * 1024
"""Threads of the largest launch that any device takes."""

_WATCH: ContextVar[Watch] = ContextVar("cutrace_watch", default=Watch())  # noqa: B039 (frozen)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """While the body runs, sessions that open watch for this, unless they say otherwise."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


def choose_watch(
    max_instructions: int | None = None,
    check_uninitialized: bool | None = None,
    max_threads: int | None = None,
    engine: str | None = None,
    bounds: str | None = None,
) -> Watch:
    """What a session watches for; CutraceError for a number or a word that makes no sense."""
    watch = _WATCH.get()
    if max_instructions is not None:
        watch = replace(watch, max_instructions=max_instructions)
    if check_uninitialized is not None:
        watch = replace(watch, uninitialized=check_uninitialized)
    if max_threads is not None:
        watch = replace(watch, max_threads=max_threads)
    if engine is not None:
        watch = replace(watch, engine=engine)
    if bounds is not None:
        watch = replace(watch, bounds=bounds)
    if watch.bounds not in BOUNDS:
        raise CutraceError(f"there are no bounds `{watch.bounds}`, expected {' or '.join(BOUNDS)}")
    if watch.engine not in ENGINES:
        expected = ", ".join(ENGINES)
        raise CutraceError(f"there is no engine `{watch.engine}`, expected one of {expected}")
    _check_range("max_instructions", watch.max_instructions, MOST_INSTRUCTIONS, "for each warp")
    _check_range("max_threads", watch.max_threads, MOST_THREADS, "for each launch")
    return watch


def _check_range(name: str, value: int, most: int, of_what: str) -> None:
    if not 1 <= value <= most:
        raise CutraceError(f"{name} is {value}, expected 1 to {most} {of_what}")
