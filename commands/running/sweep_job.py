"""One job of a sweep, wherever it is done: recorded once, replayed for every setting of devices."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from threading import Lock, current_thread, main_thread
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...errors import CutraceError
from ...lazy_dataclass import dataclass
from ...models.replay.options import ReplayOptions
from ...traces.folder.leftover import scratch_folder

if TYPE_CHECKING:
    import polars as pl

    from ...analyzer.sweep.suite import Job

BESIDE = (".cu", ".cuh", ".h", ".hpp", ".ptx", ".py", ".npy")
"""Files beside a source that may change what it does."""


@dataclass(frozen=True, slots=True)
class Task:
    """A worker's task: the job, the replay options, and the `settings` of devices.

    `files` are the source and those beside it, for workers on other machines; empty where the
    worker reads them itself.
    """

    job: "Job"
    options: ReplayOptions
    settings: tuple[Mapping[str, Any], ...]
    files: Mapping[str, bytes]
    version: str = __version__


def files_beside(source: Path) -> dict[str, bytes]:
    """The source and the files beside it, by name."""
    paths = sorted(p for p in source.parent.iterdir() if p.suffix in BESIDE and p.is_file())
    return {path.name: path.read_bytes() for path in paths}


def do_task(task: Task) -> "tuple[str, pl.DataFrame | None]":
    """Record a job and count it; return what went wrong, or its table."""
    if task.version != __version__:
        return f"a worker has cutrace {__version__}, the sweep {task.version}", None
    try:
        with scratch_folder() as folder, _environment(task.job), _quiet():
            return "", _count(task, Path(folder))
    except CutraceError as error:
        return str(error), None


def _count(task: Task, folder: Path) -> "pl.DataFrame":
    import polars as pl

    from ...analyzer.profile import count
    from ...analyzer.sweep.sweep_table import tabulate, with_settings
    from ...tracer.front.source import DEFAULT_TARGET
    from ...tracer.host.source.record import record

    job = task.job
    for name, data in task.files.items():
        (folder / name).write_bytes(data)
    source = folder / job.source.name if task.files else job.source
    trace = record(
        source,
        job.launches,
        folder / "job.cutrace",
        arch=job.arch or DEFAULT_TARGET,
        options=job.options,
    )
    tables = []
    for settings in task.settings:
        options = replace(task.options, set={**task.options.set, **settings})
        tables.append(with_settings(tabulate(job, count(trace, options)), settings))
    return pl.concat(tables)


_ENVIRONMENT = Lock()
"""One script at a time has its settings: the threads of a process share one environment."""


@contextmanager
def _environment(job: "Job") -> Iterator[None]:
    """The settings of a script's job as environment variables, for as long as it runs."""
    if job.source.suffix != ".py":
        yield
        return
    with _ENVIRONMENT:
        before = dict(os.environ)
        os.environ.update({name: str(value) for name, value in job.settings.items()})
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _quiet() -> AbstractContextManager[Any]:
    """What kernels print goes to stderr: stdout belongs to the report. Threads share it, and would
    leave it to one another in any order; they leave it as it is."""
    return redirect_stdout(sys.stderr) if current_thread() is main_thread() else nullcontext()
