"""Run the cases of image_case.py in the engine: what each leaves, and its image."""

from typing import Any

import numpy as np
from cases.image_case import ImageCase
from numpy.typing import NDArray
from ptx.ptx_case import SCRATCH, kernel_text, stored_dtype
from ptx.ptx_run import HEADER, run_kernel

from cutrace.tracer.session.recording import Recording
from cutrace.tracer.session.surface import Surface, TexelForm, make_surface
from cutrace.tracer.session.texture import Modes, Texture, make_texture
from cutrace.traces.schema import Event


class NoEvents:
    """Takes what a session does and keeps none of it."""

    def event(self, event: Event) -> None:
        pass


def record_nothing() -> Recording:
    """A session's state without a trace."""
    return Recording(NoEvents(), print)  # type: ignore[arg-type]


def run_image(case: ImageCase) -> tuple[list[NDArray[Any]], bytes]:
    """Return a case's results, and the bytes of its image if it writes."""
    recording = record_nothing()
    texture, surface = make_handles(recording, case)
    handles = [np.full(case.lanes, each.handle, np.uint64) for each in (texture, surface)]
    results = [np.zeros(case.lanes, stored_dtype(kind)) for kind in case.results]
    scratch = np.zeros(case.lanes * SCRATCH, np.uint8)
    arrays = [*handles, *case.operands, *results, scratch]
    text = HEADER + kernel_text(case.case, "case")
    found = run_kernel(text, "case", case.lanes, arrays, memory=recording.memory)
    first = len(handles) + len(case.operands)
    after = surface.copy_to_host().tobytes() if case.writes else b""
    return found[first : first + len(results)], after


def make_handles(recording: Recording, case: ImageCase) -> tuple[Texture, Surface]:
    """Make a surface of the case's image, and a texture over it."""
    image, values = case.image, case.image.values
    cubemap = "cube" in image.geometry
    form = TexelForm(image.channels, image.layers > 0)
    surface = make_surface(recording, values[..., 0] if image.channels == 1 else values, form, None)
    modes = Modes(case.mode, case.filter_mode, case.normalized or cubemap, case.read_mode)
    form = TexelForm(image.channels, image.geometry[0] == "a", cubemap)
    return make_texture(recording, surface, modes, form, None), surface
