"""`cutrace advise`: what to change in a kernel, with the line, the evidence and what it gains."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..base.dataclass import dataclass
from ..models.replay.interface.options import ReplayOptions
from .options.answer import Answer
from .options.replay import REPLAY, with_devices
from .options.selection import READING, Reading
from .options.tabular import ReportFormat, view_of
from .options.verb import Line, ProgramWords, SubjectOrProgram, shown, verb
from .running.resolve_trace import open_trace
from .terminal.progress import ADVICE, ADVICE_PASSES, REPLAYING, progress

if TYPE_CHECKING:
    import polars as pl

    from ..analyzer.advice.advise import LaunchFindings
    from ..analyzer.evidence.evidence import Finding
    from ..analyzer.launch_profile import LaunchProfile
    from ..analyzer.report.document import Document
    from ..analyzer.report.view import View


@dataclass(frozen=True)
class Advice(Answer[tuple["LaunchProfile", "Finding"]]):
    """All findings, each with its launch on a device, the best first."""

    by_launch: "LaunchFindings"

    @property
    def findings(self) -> "tuple[tuple[LaunchProfile, Finding], ...]":
        """Every finding with its launch."""
        return tuple((launch, finding) for launch, group in self.by_launch for finding in group)

    items = findings

    def __repr__(self) -> str:
        lines = (f"{f.place or p.launch.name} ({f.rule}): {f.change}" for p, f in self.findings)
        return "\n".join(lines) or "nothing to advise"

    def document(self, view: "View") -> "Document":
        """Return the findings as a document."""
        from ..analyzer.advice.advise import advice_document

        return advice_document(self.by_launch, view)

    def frame(self) -> "pl.DataFrame":
        """Return one row per finding; `share` of the launch's traffic, 0 to 1, most `gain_ns`."""
        import polars as pl

        columns = {
            **{"launch": pl.Int64, "kernel": pl.String, "device": pl.String, "rule": pl.String},
            **{"place": pl.String, "what": pl.String, "change": pl.String, "evidence": pl.String},
            **{"proof": pl.String, "share": pl.Float64, "gain_ns": pl.Float64},
            **{"access": pl.String},
        }
        return pl.DataFrame([*self._rows()], columns, orient="row")

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for p, f in self.findings:
            head = p.number, p.launch.name, p.device, f.rule, f.place
            yield *head, f.what, f.change, f.evidence, f.proof, f.share, f.gain, f.access


@verb(
    "Ask",
    "cutrace advise scale.cu",
    "cutrace advise scale.cutrace -d h100,gtx580 --format json",
)
def advise(
    subject: SubjectOrProgram = None,
    *,
    program: ProgramWords = None,
    replay: ReplayOptions = REPLAY,
    recording: Reading = READING,
    **options: Any,
) -> Advice:
    """Say what to change in a kernel, where, what shows it, and what it gains at most.

    In Python `options` are those of `analyze`, and of a recording; the findings are those of every
    rule for each launch on each device. Raises `CutraceError` as `analyze` does.
    """
    from ..analyzer.advice import advise as rules
    from ..analyzer.profile import count
    from ..models.replay.suppose import suppose

    counting = with_devices(replay)
    sizes = REPLAYING * len(counting.devices), ADVICE
    trace = open_trace(subject, recording, replay, program)
    with progress("replaying", sizes=sizes) as share:
        selection = recording.select(trace)
        profile = count(selection, counting)
        share.begin()
        share.expect(selection, len(counting.devices) * ADVICE_PASSES)
        groups = rules.advise(suppose(trace, replay.pad, replay.align), profile, counting)
        return Advice(tuple((launch, tuple(findings)) for launch, findings in groups))


@shown(advise)
def _show(answer: Advice, line: Line, format: ReportFormat = "table") -> str:
    from ..analyzer.report import render

    again = line.again("analyze", line.values["subject"])
    return render(answer.document(view_of(line, "launch", None, again)), format)
