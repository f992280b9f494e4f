"""Recording options, and the recording of a source with them."""

from pathlib import Path

from ...base.dataclass import dataclass
from ...base.options import option
from ...base.progress import RunProgress, running
from ...tracer.session.record_options import (
    RecordOptions,
    check_code,
    code_option,
    default_options,
)
from ..terminal.progress import ProgressReporter, progress

SOURCES = (".cu", ".ptx", ".py")


ARRAYS = (
    "An array is NAME:TYPE[SIZE]=VALUES, with zeros, arange, random:SEED (floats from 0 to below 1,"
    " integers from 0 to below the number of elements) or FILE.npy."
)


@dataclass(frozen=True, slots=True)
class Recording(RecordOptions):
    """Options that record a source: launch lines, compiler options and session options."""

    launch: tuple[str, ...] = option(
        (),
        "A launch as CUDA writes it, in quotes; several run in order. Without it the"
        f" source's own `// cutrace:` comments count. {ARRAYS}",
        "KERNEL<<<GRID,BLOCK>>>(ARGS)",
    )
    arch: str | None = option(None, "The architecture to compile for.", "compute_NN")
    define: tuple[str, ...] = option((), "Define a macro.", "NAME[=VALUE]", "-D", prefix="-D")
    include: tuple[Path, ...] = option(
        (), "Look for headers here too.", "FOLDER", "-I", prefix="-I"
    )
    standard: str | None = option(
        None, "The C++ standard.", "c++NN", *("-std", "--std"), prefix="-std="
    )

    @property
    def compiler_options(self) -> tuple[str, ...]:
        """The compiler's options, in its own spelling."""
        return (
            *(f"-D{text}" for text in self.define),
            *(f"-I{folder}" for folder in self.include),
            *((f"-std={self.standard}",) if self.standard else ()),
        )


@dataclass(frozen=True, slots=True)
class RunCode:
    """Which code runs, of a verb that has no other options of a recording."""

    code: str = code_option()

    def __post_init__(self) -> None:
        check_code(self.code)


RECORDING, RUN_CODE = Recording(), RunCode()
"""The defaults."""


def record_source(source: Path, out: Path | None, recording: Recording) -> Path:
    """Record a source into `out`."""
    from ...tracer.front.source import DEFAULT_TARGET
    from ...tracer.session.filter import read_filter
    from ...tracer.session.source.record import record

    arch = recording.arch or DEFAULT_TARGET
    read_filter(recording)  # reject invalid options before anything runs
    share = ProgressReporter()

    def how_far() -> str:
        share.update(ran.share)
        return share.text() if ran.blocks else launches_text(ran)

    with running() as ran, default_options(recording), progress(f"recording {source}", how_far):
        return record(source, recording.launch, out, arch=arch, options=recording.compiler_options)


def launches_text(ran: RunProgress) -> str:
    """Return the progress if the number of launches is unknown; empty at first.

    >>> launches_text(RunProgress(launches=1, part=0.5))
    '1 launch, 50 % of the next'
    """
    parts = [f"{ran.launches:,} launch{'es' * (ran.launches != 1)}"] if ran.launches else []
    if ran.part:
        parts.append(f"{100 * ran.part:.0f} % of the {'next' if parts else 'first launch'}")
    return ", ".join(parts)
