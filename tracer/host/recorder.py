"""What takes the recording of a session: the writer of a trace, or what stands in for one."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from ...traces.schema import Compiler, Event, Launch, Resources


class Recorder(AbstractContextManager["Recorder"], Protocol):
    """Takes what a session does, from `with` to its end."""

    def compiler(self, compiler: Compiler) -> None:
        """Take who compiled."""

    def source(self, name: str, text: str) -> str:
        """Take a source text; return the name that it has from now on."""

    def event(self, event: Event) -> None:
        """Take a copy or a set."""

    def launch(self, launch: Launch) -> Any:
        """Take the next launch; return what takes its rows, as a `LaunchWriter` does."""

    def fault(self, message: str) -> None:
        """Take the message of the fault that ends the session."""

    def withdraw(self) -> None:
        """Forget the launch that was begun last: it was given up."""

    def rename(self, old: str, new: str) -> None:
        """Call an array by another name, in all that was taken so far, too."""

    def resources(self, launch: int, resources: tuple[Resources, ...]) -> None:
        """Take what the assembler made of the kernel of a launch, by its number."""
