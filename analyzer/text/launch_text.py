"""A launch as CUDA writes it."""

from ...inert import one_line
from ...traces.schema import Launch
from .kernel_name import short_name


def launch_text(launch: Launch, room: int = 0) -> str:
    """`reverse<<<1024, 256>>>(out, in)`; scalars with their values, `n=1024`.

    With `room` a name that is longer is shortened to so many characters.
    """
    name = short_name(launch.name, room) if room else launch.name
    shape = [_extent(launch.grid), _extent(launch.block)]
    if launch.shared_dynamic:
        shape.append(str(launch.shared_dynamic))
    arguments = (a.name if a.name == a.value else f"{a.name}={a.value}" for a in launch.arguments)
    return one_line(f"{name}<<<{', '.join(shape)}>>>({', '.join(arguments)})")


def ranges_text(launch: Launch) -> str:
    """The NVTX ranges in which it was called for, as `step 3 / solve`; empty if in none."""
    return one_line(" / ".join(launch.ranges))


def _extent(extent: tuple[int, ...]) -> str:
    """`256` or `(16, 16)`: what CUDA's dim3 takes, without trailing ones."""
    while len(extent) > 1 and extent[-1] == 1:
        extent = extent[:-1]
    return str(extent[0]) if len(extent) == 1 else str(extent)
