"""`cutrace.occupancy`: resident blocks per SM, and the resource that limits them."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from ...analyzer.html.curve_svg import draw_curve
from ...analyzer.occupancy.occupancy import (
    Resident,
    draw_curves,
    from_launch,
    from_numbers,
    render,
    share,
)
from ...base.config import bytes_of
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...base.html_table import render_table
from ...models.analyses.occupancy import Need
from ...models.replay.device.device import load_devices
from ...models.replay.interface.options import ReplayOptions
from .subject import Subject, opened, replayed

COLUMNS = {
    **{"heading": pl.String, "device": pl.String, "threads": pl.Int64, "blocks": pl.Int64},
    **{"warps": pl.Int64, "most_warps": pl.Int64, "occupancy": pl.Float64},
    **{"limited_by": pl.String, "refusal": pl.String},
}


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
        return render(self.residents, [()] * len(self)).rstrip()

    def frame(self) -> pl.DataFrame:
        """Return one row per launch and device."""
        return pl.DataFrame([*self._rows()], COLUMNS, orient="row")

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for r in self.residents:
            result = r.occupancy
            yield (
                *(r.heading, r.device, result.need.threads, result.blocks, result.active_warps),
                *(result.max_warps, result.active_warps / result.max_warps),
                *(", ".join(result.limited_by), result.refusal),
            )

    def _repr_html_(self) -> str:
        rows = [
            (
                *(r.device, str(r.occupancy.need.threads), str(r.occupancy.blocks)),
                *(
                    f"{r.occupancy.active_warps} of {r.occupancy.max_warps}",
                    ", ".join(r.occupancy.limited_by),
                ),
            )
            for r in self.residents
        ]
        head = ("device", "threads a block", "blocks", "warps", "limited by")
        table = render_table("occupancy of an SM", head, rows, len(rows))
        if len(self) > 1:
            return table
        curves = draw_curves(self.residents[0], self.options)
        drawn = "".join(
            draw_curve(curve, self.residents[0].occupancy.max_warps) for curve in curves
        )
        return f"{table}<style>{STYLE}</style>{drawn}"


STYLE = """
svg.curve .grid { stroke: #999 } svg.curve .line { fill: none; stroke: #3a6fb5; stroke-width: 2.5 }
svg.curve circle.here { fill: #d66014 } svg.curve path.here { stroke: #d66014 }
svg.curve text { font: 13px system-ui; fill: currentColor }
"""


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
