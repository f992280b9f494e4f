"""A profile of a program that runs now, without a trace of it."""

from dataclasses import dataclass

from ..errors import CutraceError
from ..models.replay.live import LiveTrace
from ..models.replay.options import ReplayOptions
from .counted import Counted, Question, profile_counted, read_question
from .profile import Profile

SAID = (
    "counted while it ran, without a trace: what caches hold is not counted, and loads and stores"
    " are those of the PTX"
)


@dataclass(frozen=True, slots=True)
class Listener:
    """What listens to a session (`trace` takes the place of a trace), and what is asked of it."""

    question: Question
    trace: LiveTrace

    def profile(self) -> Profile:
        """Return the profile of all launches, once the session has ended."""
        manifest = self.trace.manifest
        counted = [
            Counted(counts, launch.table, supposed=(SAID,))
            for launch, by_device in self.trace.results()
            for counts in by_device
        ]
        return Profile(tuple(profile_counted(self.question, manifest, counted)), manifest)


def listen(options: ReplayOptions) -> Listener:
    """Make ready to listen.

    Raises `CutraceError` for what needs a trace, and for unknown devices and values.
    """
    for name in ("pad", "align"):
        if getattr(options, name):
            raise CutraceError(f"{name} reads the trace again; leave --no-trace away")
    question = read_question(options)
    return Listener(question, LiveTrace(list(question.devices.values()), question.options))
