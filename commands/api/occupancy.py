"""`cutrace.occupancy`: resident blocks per SM, and the resource that limits them."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from ...analyzer.occupancy.occupancy import (
    Resident,
    draw_curves,
    from_launch,
    from_numbers,
    share,
)
from ...analyzer.occupancy.occupancy_report import occupancy_document
from ...analyzer.report import render
from ...analyzer.report.document import Document
from ...analyzer.report.view import View
from ...base.config import bytes_of
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...models.analyses.occupancy import Need
from ...models.replay.device.device import load_devices
from ...models.replay.interface.options import ReplayOptions
from .subject import Subject, opened, replayed

COLUMN_TYPES = (
    *(pl.String, pl.String, pl.Int64, pl.Int64, pl.Int64, pl.Int64, pl.Float64),
    *(pl.String, pl.String),
)


@dataclass(frozen=True)
class Occupancies(Sequence[Resident]):
    """The occupancy of a launch, or of given numbers, on each device."""

    residents: tuple[Resident, ...]
    options: ReplayOptions

    def __getitem__(self, index: Any) -> Any:
        return self.residents[index]

    def __len__(self) -> int:
        return len(self.residents)

    def __repr__(self) -> str:
        return "\n".join(
            f"{r.device}: {r.occupancy.blocks} blocks of {r.occupancy.need.threads} threads"
            " on an SM,"
            f" {share(r.occupancy, r.occupancy.active_warps)}, limited by"
            f" {', '.join(r.occupancy.limited_by)}"
            for r in self.residents
        )

    def __str__(self) -> str:
        return render(self._document(False), "table").rstrip()

    def _document(self, has_curves: bool) -> Document:
        curves = [draw_curves(r, self.options) if has_curves else () for r in self.residents]
        return occupancy_document(self.residents, curves, View())

    def frame(self) -> pl.DataFrame:
        """Return one row per launch and device."""
        rows = self._document(False).rows
        assert rows
        head, values = rows()
        types = dict(zip(head, COLUMN_TYPES, strict=True))
        return pl.DataFrame([*values], types, orient="row")

    def _repr_html_(self) -> str:
        return render(self._document(len(self) == 1), "html")


def occupancy(
    subject: Subject | None = None,
    *,
    threads: int | None = None,
    shared: int | str = 0,
    barriers: int = 1,
    total: int | None = None,
    blocks: int | None = None,
    **replay: Any,
) -> Occupancies:
    """Return the limits on resident blocks: of each launch of a trace, or of given numbers.

    Without a trace, `threads` per block are required, with bytes of `shared` memory and named
    `barriers`; `registers=` is per thread. `total` threads of the grid are for advice, `blocks`
    checks whether that many fit. Raises `CutraceError` for both a trace and numbers, and for
    neither.
    """
    options = replayed(replay)
    devices = load_devices(options.devices, options.set)
    if (subject is None) == (threads is None):
        raise CutraceError("occupancy() takes a trace, or threads=N; give one of them")
    if subject is not None:
        launches = opened(subject, options).launches
        residents = [from_launch(one, d, options, blocks) for one in launches for d in devices]
    else:
        need = Need(threads or 0, options.registers, bytes_of(shared, "shared", 0), barriers)
        residents = [from_numbers(device, need, options, total, blocks) for device in devices]
    return Occupancies(tuple(residents), options)
