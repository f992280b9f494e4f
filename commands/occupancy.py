"""`cutrace occupancy`: how many blocks an SM holds at once, and what keeps it from more."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.errors import CheckFailed, CutraceError
from ..models.replay.interface.options import ReplayOptions
from ..traces.address import as_given
from .options.command_line import quote, typed
from .options.replay import first_line, replays, with_devices
from .options.selection import Selection, selects
from .options.tabular import ReportFormat, plain_view

PANEL = "Look up"
EXAMPLES = (
    "cutrace occupancy scale.cutrace -d h100",
    "cutrace occupancy --threads 256 --registers 64 --shared 48K -d h100",
)


def _number(text: str) -> Any:
    return typer.Option(metavar="N", help=text)


@replays
@selects
def command(
    replay: ReplayOptions,
    selection: Selection,
    trace: Annotated[
        Path | None, typer.Argument(help="A trace (default: numbers from options)")
    ] = None,
    threads: Annotated[int | None, _number("Threads a block.")] = None,
    shared: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Shared memory a block: 49152, 48K."),
    ] = None,
    barriers: Annotated[int | None, _number("Named barriers a block.")] = None,
    total: Annotated[
        int | None, _number("Threads of the grid, for advice on the number of blocks.")
    ] = None,
    blocks: Annotated[int | None, _number("Test whether N blocks fit on an SM at once.")] = None,
    curves: Annotated[
        bool | None, typer.Option(help="Draw occupancy curves (default: only for a single result).")
    ] = None,
    format: ReportFormat = "table",
) -> str:
    """Show every limit on resident blocks, from a trace or from numbers alone."""
    from ..analyzer.occupancy.occupancy import draw_curves, from_launch, from_numbers
    from ..analyzer.occupancy.occupancy_report import occupancy_document
    from ..analyzer.report import check_format, render
    from ..base.config import bytes_of
    from ..models.analyses.occupancy import Need
    from ..models.replay.device.device import load_devices
    from ..models.replay.suppose import suppose
    from ..traces.reader import read_trace

    check_format(format)
    options = with_devices(replay)
    devices = load_devices(options.devices, options.set)
    if trace is not None:
        own = {"threads": threads, "shared": shared, "barriers": barriers, "total": total}
        if flags := [f"--{name}" for name, value in own.items() if value is not None]:
            raise CutraceError(
                f"{as_given(trace)}: a trace has its own numbers; leave out {flags[0]}"
            )
        launches = suppose(selection.of_trace(read_trace(trace)), replay.pad, replay.align).launches
        residents = [
            from_launch(one, device, options, blocks) for one in launches for device in devices
        ]
    elif selection != Selection():
        raise CutraceError("--launch and --kernels: give a trace, whose launches they choose")
    elif threads is None:
        raise CutraceError("nothing to fit on an SM: give a trace, or --threads N")
    else:
        need = Need(threads, options.registers, bytes_of(shared or 0, "--shared", 0), barriers or 1)
        residents = [from_numbers(device, need, options, total, blocks) for device in devices]
    has_curves = len(residents) == 1 if curves is None else curves
    drawn = [draw_curves(one, options) if has_curves else () for one in residents]
    again = f"cutrace analyze {quote(trace)}{typed(selection)}{typed(replay)}"
    last = again if trace else "cutrace devices NAME"
    view = plain_view(first_line(replay), last)
    text = render(occupancy_document(residents, drawn, view), format)
    if trace is None and all(one.occupancy.refusal for one in residents):
        failed = CheckFailed(f"no block of {threads} threads fits on {', '.join(options.devices)}")
        failed.report = text
        raise failed
    return text
