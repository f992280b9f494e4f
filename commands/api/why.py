"""`cutrace.why`: a drawing of the worst warp of a line."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ...analyzer.text.output import write_figure
from ...analyzer.why import svg, text
from ...analyzer.why.explain import Explanation, explain
from ...base.dataclass import dataclass
from .subject import Subject, opened, replayed

COLUMNS: dict[str, type[pl.DataType] | pl.DataType] = {
    "device": pl.String,
    "place": pl.String,
    "access": pl.String,
    "cost": pl.Int64,
    "ideal": pl.Int64,
    "unit": pl.String,
    "sentence": pl.String,
    "reason": pl.String,
    "refusal": pl.String,
    "addresses": pl.List(pl.UInt64),
}
"""`addresses` has one per lane of the warp, null for an inactive lane; in global memory as an
offset into the session's memory, as arrays have it.
"""


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
        return text.render(self.explanations).rstrip()

    @property
    def svg(self) -> str:
        """The drawing of `cutrace why --figure FILE.svg`."""
        return svg.render(self.explanations)

    def save(self, path: str | Path) -> Path:
        """Write the drawing as SVG, PNG or PDF, by the suffix; return its path."""
        write_figure(Path(path), self.svg)
        return Path(path)

    def frame(self) -> pl.DataFrame:
        """Return one row per device: the access's cost, its minimum, and the reason."""
        return pl.DataFrame([*self._rows()], COLUMNS, orient="row")

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for e in self.explanations:
            access = e.access
            cells = (access.identifier, access.cost, access.ideal, access.unit) if access else ()
            place = str(e.place) if e.place else ""
            yield (
                *(e.device, place, *(cells or ("", None, None, ""))),
                *(e.sentence, e.reason, e.refusal),
                [*access.addresses] if access else [],
            )

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
