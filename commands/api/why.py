"""`cutrace.why`: a drawing of the worst warp of a line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ...analyzer.report import render
from ...analyzer.report.view import View
from ...analyzer.text.output import write_figure
from ...analyzer.why import svg
from ...analyzer.why.explain import Explanation, explain
from ...analyzer.why.why_report import why_document
from ...base.dataclass import dataclass
from .subject import Subject, opened, replayed

TYPES: tuple[type[pl.DataType] | pl.DataType, ...] = (
    *(pl.String, pl.String, pl.String, pl.Int64, pl.Int64, pl.String, pl.String, pl.String),
    *(pl.String, pl.List(pl.UInt64)),
)


@dataclass(frozen=True)
class Why(Sequence[Explanation]):
    """One access on each device, as a sequence of explanations; `svg` is their drawing."""

    explanations: tuple[Explanation, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.explanations[index]

    def __len__(self) -> int:
        return len(self.explanations)

    def __repr__(self) -> str:
        return "\n".join(f"{e.device}: {e.sentence or e.refusal}" for e in self.explanations)

    def __str__(self) -> str:
        return render(why_document(self.explanations, View()), "table").rstrip()

    @property
    def svg(self) -> str:
        """The drawing of `cutrace why --figure FILE.svg`."""
        return svg.draw_together(self.explanations)

    def save(self, path: str | Path) -> Path:
        """Write the drawing as SVG, PNG or PDF, by the suffix; return its path."""
        write_figure(Path(path), self.svg)
        return Path(path)

    def frame(self) -> pl.DataFrame:
        """Return one row per device: the access's cost, its minimum, and the reason."""
        rows = why_document(self.explanations, View()).rows
        assert rows
        head, values = rows()
        return pl.DataFrame([*values], dict(zip(head, TYPES, strict=True)), orient="row")

    def _repr_html_(self) -> str:
        return f'<div style="max-width: 1000px">{self.svg}</div>'


def why(
    subject: Subject, where: str | None = None, access: str | None = None, **replay: Any
) -> Why:
    """Explain on each device the worst access of a line (`FILE:LINE`), or of the whole trace.

    `access` is an identifier from an earlier explanation; `replay` are options of `analyze`. Raises
    `CutraceError` for a line, access or device that does not exist.
    """
    options = replayed(replay)
    return Why(explain(opened(subject), where, options, access))
