"""`cutrace.advise`: changes to make in a kernel, with the line and the evidence."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from ...analyzer.advice import advise as rules
from ...analyzer.advice.advise import advice_document
from ...analyzer.evidence.evidence import Finding
from ...analyzer.launch_profile import LaunchProfile
from ...analyzer.profile import count_supposed
from ...analyzer.report import render
from ...analyzer.report.view import View
from ...base.dataclass import dataclass
from .subject import Subject, opened, replayed

COLUMNS = {
    **{"launch": pl.Int64, "kernel": pl.String, "device": pl.String, "rule": pl.String},
    **{"place": pl.String, "what": pl.String, "change": pl.String, "evidence": pl.String},
    **{"proof": pl.String, "share": pl.Float64, "gain_ns": pl.Float64, "access": pl.String},
}


@dataclass(frozen=True)
class Advice(Sequence[tuple[LaunchProfile, Finding]]):
    """All findings, each with its launch on a device, the best first."""

    by_launch: tuple[tuple[LaunchProfile, tuple[Finding, ...]], ...]

    @property
    def findings(self) -> tuple[tuple[LaunchProfile, Finding], ...]:
        """Every finding with its launch."""
        return tuple((launch, finding) for launch, group in self.by_launch for finding in group)

    def __getitem__(self, index: Any) -> Any:
        return self.findings[index]

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        lines = (f"{f.place or p.launch.name} ({f.rule}): {f.change}" for p, f in self.findings)
        return "\n".join(lines) or "nothing to advise"

    def __str__(self) -> str:
        return render(advice_document(self.by_launch, View()), "table").rstrip()

    def frame(self) -> pl.DataFrame:
        """Return one row per finding; `share` of the launch's traffic, 0 to 1, most `gain_ns`."""
        return pl.DataFrame([*self._rows()], COLUMNS, orient="row")

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for p, f in self.findings:
            head = p.number, p.launch.name, p.device, f.rule, f.place
            yield *head, f.what, f.change, f.evidence, f.proof, f.share, f.gain, f.access

    def _repr_html_(self) -> str:
        return render(advice_document(self.by_launch, View()), "html")


def advise(subject: Subject, **replay: Any) -> Advice:
    """Return the findings of every rule for the launches of a trace, on each device.

    `replay` are options of `analyze`. Raises `CutraceError` as it does.
    """
    options = replayed(replay)
    trace = opened(subject, options)
    groups = rules.advise(trace, count_supposed(trace, options), options)
    return Advice(tuple((launch, tuple(findings)) for launch, findings in groups))
