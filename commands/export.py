"""`cutrace export`: write what other programs read."""

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..analyzer.exports import Exporter, exporter, names
from ..base.errors import CutraceError, nearest
from ..models.replay.interface.options import DEFAULT_DEVICE, ReplayOptions
from .options.complete import starting
from .options.replay import REPLAY, first_line, with_devices
from .options.selection import SELECTION, Selection
from .options.verb import argument, value, verb
from .terminal.progress import progress

if TYPE_CHECKING:
    from ..traces.reader import Trace

FORMATS = {
    "cuda-profile": ("profiler_log", "render", "8800gtx"),
    "cuda-profile-csv": ("profiler_log", "render_csv", "8800gtx"),
    "nvprof-metrics": ("nvprof_csv", "render_metrics", "k20"),
    "nvprof-gpu-trace": ("nvprof_csv", "render_gpu_trace", "k20"),
    "ncu-raw": ("ncu_csv", "render_raw", DEFAULT_DEVICE),
    "ncu-details": ("ncu_csv", "render_details", DEFAULT_DEVICE),
    "folded": ("stacks", "render_folded", DEFAULT_DEVICE),
    "speedscope": ("stacks", "render_speedscope", DEFAULT_DEVICE),
    "callgrind": ("stacks", "render_callgrind", DEFAULT_DEVICE),
}
"""Format: the file of `analyzer/profilers`, its function, and a device that had it."""
NAMES = (*FORMATS, *names())


@verb(
    "Ask",
    "cutrace export scale.cutrace --to ncu-raw",
    "cutrace export program.cutrace --to ncu-raw --kernels gemm -o gemm.csv",
    "cutrace export scale.cutrace --to folded -o scale.folded",
)
def export(
    trace: Annotated[Path, argument("A trace")],
    to: Annotated[
        str,
        value(
            "A profiler's file, stacks of lines for flame graphs and KCachegrind, or a trace"
            " as other tools read it.",
            "|".join(NAMES),
            complete=starting(lambda: NAMES),
        ),
    ],
    out: Annotated[
        Path | None, value("The output file (default: print it).", None, "--out", "-o")
    ] = None,
    config: Annotated[
        Path | None,
        value("A file with counters and options, one a line (default: all of the device).", None),
    ] = None,
    *,
    selection: Selection = SELECTION,
    replay: ReplayOptions = REPLAY,
    **options: Any,
) -> str:
    """Write a trace, or its counters, as other programs read them."""
    from ..analyzer.profile import count
    from ..analyzer.profilers.profiler_environment import read_config
    from ..analyzer.text.output import write_report
    from ..traces.reader import read_trace

    if to not in NAMES:
        exporters = ", ".join(NAMES)
        raise CutraceError(f"cannot export to {to!r}{nearest(to, NAMES)}; there are {exporters}")
    if to not in FORMATS:
        return _export(exporter(to), selection.of_trace(read_trace(trace)), out, replay)
    module, function, device = FORMATS[to]
    render = getattr(import_module(f"..analyzer.profilers.{module}", __package__), function)
    lines = [read_config(config)] if config else []
    _tell_device(replay, device)
    counting = with_devices(replay, device)
    with progress("counting"):
        text: str = render(count(selection.of_trace(read_trace(trace)), counting), *lines)
    if out is None:
        return text
    write_report(out, text)
    return str(out)


def _export(writer: Exporter, trace: "Trace", out: Path | None, replay: ReplayOptions) -> str:
    """Write a format by its file in `analyzer/exports`, or by a user's extension."""
    options = with_devices(replay, writer.DEVICE) if writer.DEVICE else replay
    if writer.DEVICE:
        _tell_device(replay, writer.DEVICE)
    with progress("exporting") as share:
        share.expect(trace, 1)
        return writer.write(trace, out, options)


def _tell_device(replay: ReplayOptions, otherwise: str) -> None:
    """Name the device on stderr if the command line selects none."""
    if line := first_line(replay, otherwise):
        print(line, file=sys.stderr)
