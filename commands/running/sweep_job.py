"""One job of a sweep, wherever it is done: recorded once, replayed for every setting of devices."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

from ...claim import scratch_folder
from ...errors import CutraceError
from ...lazy_dataclass import dataclass
from ...models.replay.options import ReplayOptions
from ...owner import Lock

if TYPE_CHECKING:
    import polars as pl

    from ...analyzer.sweep.suite import Job, Suite

BESIDE = (".cu", ".cuh", ".h", ".hpp", ".ptx", ".py", ".npy")
"""Files beside a source that may change what it does."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is `set` in the devices, of which a suite has `chosen` some.

    `devices` are those that there are then; `refusals` say of others why they cannot be made.
    """

    chosen: Mapping[str, Any]
    set: Mapping[str, Any]
    devices: tuple[str, ...]
    refusals: Mapping[str, str]


def list_settings(suite: "Suite", options: ReplayOptions) -> tuple[Setting, ...]:
    """Everything that a suite sets in the devices.

    `CutraceError` for a device of which none can be made.
    """
    from ...models.replay.device.catalog import match_devices
    from ...models.replay.device.device import load_device

    names = [one for name in options.devices for one in match_devices(name) or (name,)]
    settings = []
    for chosen in suite.settings():
        values, refusals = {**options.set, **chosen}, dict[str, str]()
        for name in names if chosen else ():
            try:
                load_device(name, values)
            except CutraceError as error:
                refusals[name] = str(error).removeprefix("--set: ")
        devices = tuple(name for name in names if name not in refusals)
        settings.append(Setting(chosen, values, devices, refusals))
    for name in names:
        if all(name in setting.refusals for setting in settings):
            raise CutraceError(f"{suite.path}: set: {settings[0].refusals[name]}")
    return tuple(settings)


@dataclass(frozen=True, slots=True)
class Task:
    """A worker's task: the job, the replay options, and the `settings` of devices.

    `files` are the source and those beside it, for workers on other machines; empty where the
    worker reads them itself.
    """

    job: "Job"
    options: ReplayOptions
    settings: tuple[Setting, ...]
    files: Mapping[str, bytes]


def files_beside(source: Path) -> dict[str, bytes]:
    """The source and the files beside it, by name."""
    paths = sorted(p for p in source.parent.iterdir() if p.suffix in BESIDE and p.is_file())
    return {path.name: path.read_bytes() for path in paths}


def do_task(task: Task) -> "pl.DataFrame":
    """Record a job and count it; return its table. `CutraceError` for what goes wrong."""
    with scratch_folder() as folder, _environment(task.job), _quiet():
        return _count(task, Path(folder))


def _count(task: Task, folder: Path) -> "pl.DataFrame":
    import polars as pl

    from ...analyzer.profile import count
    from ...analyzer.sweep.sweep_table import refuse, tabulate, with_settings
    from ...models.replay.device.device import load_device
    from ...tracer.front.source import DEFAULT_TARGET
    from ...tracer.host.source.record import record
    from ...traces.reader import read_trace

    job = task.job
    for name, data in task.files.items():
        (folder / name).write_bytes(data)
    source = folder / job.source.name if task.files else job.source
    path = record(
        source,
        job.launches,
        folder / "job.cutrace",
        arch=job.arch or DEFAULT_TARGET,
        options=job.options,
    )
    trace, tables = read_trace(path), []
    for setting in task.settings:
        refusals = setting.refusals.items()
        made = [refuse(job, trace, load_device(name), why) for name, why in refusals]
        if setting.devices:
            options = replace(task.options, device=setting.devices, set=setting.set)
            made.append(tabulate(job, count(trace, options)))
        tables += [with_settings(table, setting.chosen) for table in made]
    return pl.concat(tables, how="vertical_relaxed")  # numbers and texts of one key are texts


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
