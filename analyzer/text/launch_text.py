"""A launch as CUDA writes it."""

from ...inert import one_line
from ...traces.schema import Launch
from .kernel_name import short_name

ROOM, SHOWN = 240, 48
"""Characters of a kernel's name, and of an argument, that a person reads: templates make names of
thousands. Formats for programs have all of them."""


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def launch_text(launch: Launch, room: int = 0) -> str:
    """`reverse<<<1024, 256>>>(out, in)`; scalars with their values, `n=1024`.

    With `room` a name that is longer is shortened to so many characters, and a value to SHOWN.
    """
    name = short_name(launch.name, room) if room else launch.name
    shape = [_extent(launch.grid), _extent(launch.block)]
    if launch.shared_dynamic:
        shape.append(str(launch.shared_dynamic))
    values = ((a.name, _shown(a.value) if room else a.value) for a in launch.arguments)
    arguments = (name if name == value else f"{name}={value}" for name, value in values)
    return one_line(f"{name}<<<{', '.join(shape)}>>>({', '.join(arguments)})")


def ranges_text(launch: Launch) -> str:
    """The NVTX ranges in which it was called for, as `step 3 / solve`; empty if in none."""
    return one_line(" / ".join(launch.ranges))


def _extent(extent: tuple[int, ...]) -> str:
    """`256` or `(16, 16)`: what CUDA's dim3 takes, without trailing ones."""
    while len(extent) > 1 and extent[-1] == 1:
        extent = extent[:-1]
    return str(extent[0]) if len(extent) == 1 else str(extent)
