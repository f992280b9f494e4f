"""Run a sweep: each job in its own process or by an executor; completed jobs are cached."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from hashlib import sha256
from json import dumps
from pathlib import Path
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

from ...base.claim import Lock, scratch_folder
from ...base.cores import cores
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...base.executor import Executor, WorkerPool, WorkItem, run, run_tasks
from ...base.options import changed
from ...base.version import __version__
from ...models.replay.interface.options import ReplayOptions
from ...tracer.session.record_options import PTX, RecordOptions, default_options
from ..terminal.progress import ProgressReporter, progress

if TYPE_CHECKING:
    import polars as pl

    from ...analyzer.sweep.destination import Destination
    from ...analyzer.sweep.suite import Job, Suite


SOURCE_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".ptx", ".py", ".npy")
"""Suffixes of files next to a source that may affect the job."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Values of the devices' `set`, one combination of a suite's `parameters`.

    `devices` are the resulting devices; `refusals` hold the reasons for those that cannot be made.
    """

    parameters: Mapping[str, Any]
    set: Mapping[str, Any]
    devices: tuple[str, ...]
    refusals: Mapping[str, str]


def list_settings(suite: "Suite", options: ReplayOptions) -> tuple[Setting, ...]:
    """Return all combinations of device settings in a suite.

    Raises `CutraceError` for a device without any valid combination.
    """
    from ...models.replay.device.catalog import match_devices
    from ...models.replay.device.device import load_device

    names = [one for name in options.devices for one in match_devices(name) or (name,)]
    settings = []
    for combination in suite.settings():
        values, refusals = {**options.set, **combination}, dict[str, str]()
        for name in names if combination else ():
            try:
                load_device(name, values)
            except CutraceError as error:
                refusals[name] = str(error).removeprefix("--set: ")
        devices = tuple(name for name in names if name not in refusals)
        settings.append(Setting(combination, values, devices, refusals))
    for name in names:
        if all(name in setting.refusals for setting in settings):
            raise CutraceError(f"{suite.path}: set: {settings[0].refusals[name]}")
    return tuple(settings)


@dataclass(frozen=True, slots=True)
class Task:
    """A worker's task: the job, the replay options, and the `settings` of devices.

    `files` are the source and its neighbours, for workers on other machines; empty if the worker
    reads them itself. `code` is what runs, as `--code` says it.
    """

    job: "Job"
    options: ReplayOptions
    settings: tuple[Setting, ...]
    files: Mapping[str, bytes]
    code: str = PTX


def files_beside(source: Path) -> dict[str, bytes]:
    """Return the source and the files next to it, by name."""
    paths = sorted(
        p for p in source.parent.iterdir() if p.suffix in SOURCE_SUFFIXES and p.is_file()
    )
    return {path.name: path.read_bytes() for path in paths}


def do_task(task: Task) -> "pl.DataFrame":
    """Record and replay a job; return its table. Raises `CutraceError` on failure."""
    with scratch_folder() as folder, _environment(task.job), _quiet():
        return _count(task, Path(folder))


def _count(task: Task, folder: Path) -> "pl.DataFrame":
    import polars as pl

    from ...analyzer.profile import count
    from ...analyzer.sweep.sweep_table import refuse, tabulate, with_settings
    from ...models.replay.device.device import load_device
    from ...tracer.front.source import DEFAULT_TARGET
    from ...tracer.session.source.record import record
    from ...traces.reader import read_trace

    job = task.job
    for name, data in task.files.items():
        (folder / name).write_bytes(data)
    source = folder / job.source.name if task.files else job.source
    with default_options(RecordOptions(code=task.code)):
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
        frames = [refuse(job, trace, load_device(name), why) for name, why in refusals]
        if setting.devices:
            options = replace(task.options, device=setting.devices, set=setting.set)
            frames.append(tabulate(job, count(trace, options)))
        tables += [with_settings(table, setting.parameters) for table in frames]
    return pl.concat(tables, how="vertical_relaxed")  # a key with numbers and texts becomes text


_ENVIRONMENT = Lock()
"""Serializes scripts' settings: the threads of a process share one environment."""


@contextmanager
def _environment(job: "Job") -> Iterator[None]:
    """Set a script job's settings as environment variables while the body runs."""
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
    """Redirect kernels' prints to stderr: stdout carries the report.

    Threads share stdout and would restore it in any order, so in threads it stays unchanged.
    """
    return redirect_stdout(sys.stderr) if current_thread() is main_thread() else nullcontext()


def run_suite(
    suite: "Suite",
    out: "Destination",
    options: ReplayOptions,
    processes: int | None = None,
    executor: Executor | None = None,
    code: str = PTX,
) -> "list[pl.DataFrame]":
    """Run the open jobs, write the table, and return every job's table in order.

    Completed jobs are cached at `out`, where the next sweep reads them. Raises `CutraceError`
    naming the failed jobs, after the others have ended.
    """
    with closing(out):
        return _run_jobs(suite, out, options, processes, executor, code)


def _run_jobs(
    suite: "Suite",
    out: "Destination",
    options: ReplayOptions,
    processes: int | None,
    executor: Executor | None,
    code: str,
) -> "list[pl.DataFrame]":
    from ...analyzer.sweep.suite import list_jobs
    from ...analyzer.sweep.sweep_table import join_tables

    jobs, settings = list_jobs(suite), list_settings(suite, options)
    parameters = {**changed(options), "sweep": suite.settings(), "runs": code}
    names, keys = [_key(job, parameters) for job in jobs], out.begin()
    waiting = [n for n, name in enumerate(names) if name not in keys]
    count = min(processes or cores(), len(waiting))
    if executor or count > 1:  # other jobs use the other cores
        options = replace(options, jobs=options.jobs or 1)
    tasks = [
        Task(
            jobs[n],
            options,
            settings,
            files_beside(jobs[n].source) if executor else {},
            code,
        )
        for n in waiting
    ]
    failed: dict[int, CutraceError] = {}
    share = ProgressReporter()

    def how_far() -> str:
        text = f"{sum(name in keys for name in names)} of {len(jobs)} recordings"
        return ", ".join(filter(None, (text, share.text())))

    with progress("sweep", how_far):
        for ended, (number, answer) in enumerate(_work(tasks, count, executor), 1):
            if isinstance(answer, CutraceError):
                failed[waiting[number]] = answer
            else:
                out.keep(names[waiting[number]], answer)
                keys.add(names[waiting[number]])
            share.update(ended / len(waiting))
    if failed:
        problems = "\n".join(f"{jobs[n]}: {problem}" for n, problem in sorted(failed.items()))
        raise CutraceError(f"{len(failed)} of {len(jobs)} recordings failed\n{problems}")
    tables = out.read(names)
    out.write(join_tables(suite, tables))
    return tables


def _work(
    tasks: Sequence[Task], count: int, executor: Executor | None
) -> Iterator[tuple[int, Any]]:
    """Run the tasks; yield the number of each on completion, with its table or its error."""
    if executor is not None:
        yield from run_tasks(executor, do_task, tasks)
    elif count <= 1:
        yield from ((number, run(WorkItem(do_task, task))) for number, task in enumerate(tasks))
    else:
        with closing(WorkerPool(count)) as pool:
            yield from run_tasks(pool, do_task, tasks)


def _key(job: "Job", arguments: Mapping[str, Any]) -> str:
    """Return a cache key over all inputs of a job's numbers."""
    texts = {name: sha256(data).hexdigest() for name, data in files_beside(job.source).items()}
    parts = [__version__, str(job), job.launches, job.options, job.arch, job.take, job.source.name]
    whole = dumps([parts, texts, dict(arguments)], sort_keys=True, default=str)
    return sha256(whole.encode()).hexdigest()[:24]
