"""`cutrace nvcc`: NVIDIA's compiler, for programs that are to be recorded."""

from typing import Any

import typer

from .options.help import Verb

PANEL = "Record"
EXAMPLES = (
    "cutrace nvcc -o app app.cu",
    'make NVCC="cutrace nvcc"',
)
_KEY = "cutrace.nvcc"


class TakesAll(Verb):
    """A verb that receives its command line unparsed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments unparsed."""
        ctx.meta[_KEY] = tuple(args)
        return super().parse_args(ctx, [])


CLASS = TakesAll


def command(ctx: typer.Context) -> int:
    """Compile a program, as nvcc does, so that it can be recorded: make NVCC="cutrace nvcc"."""
    from ..tracer.program.build import make_builder, show_nvcc
    from .running.program import choose_device

    words = make_builder().command(ctx.meta[_KEY], choose_device(None).capability)
    return show_nvcc(words)
