"""The options that say what of a program is recorded."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from .quote import quote


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="What is recorded", **more)


@dataclass(frozen=True, slots=True)
class Keeping:
    """What was asked, by the names of the parameters of `choose_wish`; only what was given."""

    asked: dict[str, Any]

    def typed(self) -> list[str]:
        """The options again, as one would type them."""
        words: list[str] = []
        for name, value in self.asked.items():
            if name == "only":
                words += [w for k, v in value.items() for w in (f"--only-{k}", v)]
            elif name == "control":
                words += ["--no-control"]
            else:
                words += [f"--{name.replace('_', '-')}", str(value)]
        return [quote(word) for word in words]


def keeping_options(
    only_kernels: Annotated[
        str | None, _option(metavar="NAME,...", help="Record launches of these kernels alone.")
    ] = None,
    only_launches: Annotated[
        str | None, _option(metavar="N|N-M,...", help="Record these launches, counted from 0.")
    ] = None,
    only_blocks: Annotated[
        str | None, _option(metavar="N|N-M,...", help="Record these blocks of each grid.")
    ] = None,
    only_warps: Annotated[
        str | None, _option(metavar="N|N-M,...", help="Record these warps of each block.")
    ] = None,
    only_lines: Annotated[
        str | None, _option(metavar="[FILE:]LINE,...", help="Record the accesses of these lines.")
    ] = None,
    only_spaces: Annotated[
        str | None,
        _option(metavar="global|shared|...", help="Record the accesses to these state spaces."),
    ] = None,
    no_control: Annotated[
        bool, _option("--no-control", help="Leave out which instructions the warps ran.")
    ] = False,
    sample_blocks: Annotated[
        str | None,
        _option(
            metavar="N|F%",
            help="Draw so many blocks and run only those; counters are scaled up, with intervals.",
        ),
    ] = None,
    sample_seed: Annotated[
        int | None, _option(metavar="S", help="Seed of the draw; else 0.")
    ] = None,
    max_trace_size: Annotated[
        str | None,
        _option(metavar="BYTES", help="The largest trace: 500K, 10M, 2G."),
    ] = None,
) -> Keeping:
    """Gather the options."""
    only = {
        "kernels": only_kernels,
        "launches": only_launches,
        "blocks": only_blocks,
        "warps": only_warps,
        "lines": only_lines,
        "spaces": only_spaces,
    }
    asked = {
        "only": {name: words for name, words in only.items() if words is not None} or None,
        "control": False if no_control else None,
        "sample_blocks": sample_blocks,
        "sample_seed": sample_seed,
        "max_trace_size": max_trace_size,
    }
    return Keeping({name: value for name, value in asked.items() if value is not None})
