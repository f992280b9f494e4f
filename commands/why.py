"""`cutrace why`: the worst warp of a source line, drawn."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from ..models.replay.interface.options import ReplayOptions
from .options.answer import Answer
from .options.replay import REPLAY, with_devices
from .options.selection import READING, Reading
from .options.tabular import ReportFormat, plain_view
from .options.verb import Line, Subject, argument, shown, value, verb
from .running.resolve_trace import open_trace
from .terminal.progress import progress

if TYPE_CHECKING:
    import polars as pl

    from ..analyzer.report.document import Document
    from ..analyzer.report.view import View
    from ..analyzer.why.explain import Explanation


@dataclass(frozen=True)
class Why(Answer["Explanation"]):
    """One access on each device, as a sequence of explanations; `svg` is their drawing."""

    explanations: "tuple[Explanation, ...]"

    @property
    def items(self) -> "tuple[Explanation, ...]":
        """The explanation on each device."""
        return self.explanations

    def __repr__(self) -> str:
        return "\n".join(f"{e.device}: {e.sentence or e.refusal}" for e in self.explanations)

    def document(self, view: "View") -> "Document":
        """Return the explanations as a document."""
        from ..analyzer.why.why_report import why_document

        return why_document(self.explanations, view)

    @property
    def svg(self) -> str:
        """The drawing of `cutrace why --figure FILE.svg`."""
        from ..analyzer.why import svg

        return svg.draw_together(self.explanations)

    def save(self, path: str | Path) -> Path:
        """Write the drawing as SVG, PNG or PDF, by the suffix; return its path."""
        from ..analyzer.text.output import write_figure

        write_figure(Path(path), self.svg)
        return Path(path)

    def frame(self) -> "pl.DataFrame":
        """Return one row per device: the access's cost, its minimum, and the reason.

        `addresses` has one per lane of the warp, null for an inactive lane; in global memory as an
        offset into the session's memory, as arrays have it.
        """
        import polars as pl

        return self._plain().frame(addresses=pl.List(pl.UInt64))

    def _repr_html_(self) -> str:
        return f'<div style="max-width: 1000px">{self.svg}</div>'


@verb(
    "Ask",
    "cutrace why scale.cu",
    "cutrace why scale.cu scale.cu:7 -d h100",
    "cutrace why program.cutrace --launch 3",
    "cutrace why scale.cutrace --figure lanes.png",
    "cutrace why scale.cutrace -d all --format json",
)
def why(
    subject: Subject,
    where: Annotated[
        str | None,
        argument(
            "A source line (LINE alone of a single file), or the identifier of an access"
            " (default: the worst access).",
            "FILE:LINE|ID",
        ),
    ] = None,
    access: Annotated[
        str | None, value("The identifier of an access, as an earlier answer shows it.", "ID")
    ] = None,
    *,
    replay: ReplayOptions = REPLAY,
    recording: Reading = READING,
    **options: Any,
) -> Why:
    """Show why a line costs what it costs: its worst warp, lane by lane.

    In Python `options` are those of `analyze`, and of a recording. Raises `CutraceError` for a
    line, access or device that does not exist.
    """
    from ..analyzer.why.explain import explain

    where, access = _read_question(where, access)
    replay_options = with_devices(replay)
    trace = open_trace(subject, recording, replay)
    with progress("searching") as share:
        trace = recording.select(trace)
        share.expect(trace, len(replay_options.devices))
        return Why(explain(trace, where, replay_options, access))


@shown(why)
def _show(
    answer: Why,
    line: Line,
    figure: Annotated[
        Path | None,
        value("Write the picture to this file, too.", "FILE.svg|png|pdf", "--figure", "--svg"),
    ] = None,
    format: ReportFormat = "table",
) -> str:
    from ..analyzer.report import render

    if figure is not None:
        answer.save(figure)
    again = f"{line.again('analyze', line.values['subject'])} --by line"
    return render(answer.document(plain_view(line.first, again)), format)


def _read_question(where: str | None, access: str | None) -> tuple[str | None, str | None]:
    """Parse the argument, which is either a line or an access."""
    if where is None or not re.fullmatch(r"\d+(\.\d+){4}", where):
        return where, access
    if access not in (None, where):
        raise CutraceError(f"two accesses: {where} and --access {access}; give one")
    return None, where
