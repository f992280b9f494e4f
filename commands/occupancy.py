"""`cutrace occupancy`: how many blocks an SM holds at once, and what keeps it from more."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..base.config import bytes_of
from ..base.dataclass import dataclass
from ..base.errors import CheckFailed, CutraceError
from ..models.replay.interface.options import ReplayOptions
from ..traces.address import as_given
from .options.answer import Answer
from .options.recording import RECORDING
from .options.replay import REPLAY, with_devices
from .options.selection import SELECTION, Selection
from .options.tabular import ReportFormat, plain_view
from .options.verb import Line, Typed, argument, flag, shown, value, verb
from .running.resolve_trace import open_trace

if TYPE_CHECKING:
    from os import PathLike

    from ..analyzer.occupancy.occupancy import Resident
    from ..analyzer.report.document import Document
    from ..analyzer.report.view import View
    from ..traces.reader import Trace


@dataclass(frozen=True)
class Occupancies(Answer["Resident"]):
    """The occupancy of a launch, or of given numbers, on each device."""

    residents: "tuple[Resident, ...]"
    options: ReplayOptions

    @property
    def items(self) -> "tuple[Resident, ...]":
        """The answer for each launch and device."""
        return self.residents

    def __repr__(self) -> str:
        from ..analyzer.occupancy.occupancy import share

        return "\n".join(
            f"{r.device}: {r.occupancy.blocks} blocks of {r.occupancy.need.threads} threads"
            " on an SM,"
            f" {share(r.occupancy, r.occupancy.active_warps)}, limited by"
            f" {', '.join(r.occupancy.limited_by)}"
            for r in self.residents
        )

    def document(self, view: "View", has_curves: bool = False) -> "Document":
        """Return the occupancy as a document, with its curves or without."""
        from ..analyzer.occupancy.occupancy import draw_curves
        from ..analyzer.occupancy.occupancy_report import occupancy_document

        curves = [draw_curves(r, self.options) if has_curves else () for r in self.residents]
        return occupancy_document(self.residents, curves, view)

    def _repr_html_(self) -> str:
        from ..analyzer.report import render
        from ..analyzer.report.view import View

        return render(self.document(View(), len(self) == 1), "html")


@verb(
    "Look up",
    "cutrace occupancy scale.cutrace -d h100",
    "cutrace occupancy --threads 256 --registers 64 --shared 48K -d h100",
)
def occupancy(
    subject: Annotated[
        "Trace | str | PathLike[str] | None",
        argument("A trace (default: numbers from options)", "[TRACE]"),
        Typed(Path | None),
    ] = None,
    *,
    threads: Annotated[int | None, value("Threads a block.", "N")] = None,
    shared: Annotated[
        int | str | None,
        value("Shared memory a block: 49152, 48K.", "BYTES"),
        Typed(str | None),
    ] = None,
    barriers: Annotated[int | None, value("Named barriers a block.", "N")] = None,
    total: Annotated[
        int | None, value("Threads of the grid, for advice on the number of blocks.", "N")
    ] = None,
    blocks: Annotated[int | None, value("Test whether N blocks fit on an SM at once.", "N")] = None,
    selection: Selection = SELECTION,
    replay: ReplayOptions = REPLAY,
    **options: Any,
) -> Occupancies:
    """Show every limit on resident blocks, from a trace or from numbers alone.

    In Python `options` are those of `analyze`: `registers` is per thread. Raises `CutraceError` for
    both a trace and numbers, and for neither.
    """
    from ..analyzer.occupancy.occupancy import from_launch, from_numbers
    from ..models.analyses.occupancy import Need
    from ..models.replay.device.device import load_devices
    from ..models.replay.suppose import suppose

    counting = with_devices(replay)
    devices = load_devices(counting.devices, counting.set)
    if subject is not None:
        own = {"threads": threads, "shared": shared, "barriers": barriers, "total": total}
        if numbers := [f"--{name}" for name, number in own.items() if number is not None]:
            where = as_given(subject) if isinstance(subject, Path) else str(subject)
            raise CutraceError(f"{where}: a trace has its own numbers; leave out {numbers[0]}")
        trace = selection.of_trace(open_trace(subject, RECORDING, replay))
        launches = suppose(trace, replay.pad, replay.align).launches
        residents = [
            from_launch(one, device, counting, blocks) for one in launches for device in devices
        ]
    elif selection != SELECTION:
        raise CutraceError("--launch and --kernels: give a trace, whose launches they choose")
    elif threads is None:
        raise CutraceError("nothing to fit on an SM: give a trace, or --threads N")
    else:
        need = Need(
            threads, counting.registers, bytes_of(shared or 0, "--shared", 0), barriers or 1
        )
        residents = [from_numbers(device, need, counting, total, blocks) for device in devices]
    return Occupancies(tuple(residents), counting)


@shown(occupancy)
def _show(
    answer: Occupancies,
    line: Line,
    curves: Annotated[
        bool | None, flag("Draw occupancy curves (default: only for a single result).")
    ] = None,
    format: ReportFormat = "table",
) -> str:
    from ..analyzer.report import render

    trace = line.values["subject"]
    last = line.again("analyze", trace) if trace else "cutrace devices NAME"
    has_curves = len(answer) == 1 if curves is None else curves
    text = render(answer.document(plain_view(line.first, last), has_curves), format)
    if trace is None and all(one.occupancy.refusal for one in answer):
        named, threads = ", ".join(answer.options.devices), line.values["threads"]
        failed = CheckFailed(f"no block of {threads} threads fits on {named}")
        failed.report = text
        raise failed
    return text
