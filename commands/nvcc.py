"""`cutrace nvcc`: NVIDIA's compiler, for programs that are to be recorded."""

from .options.help import TakesAll
from .options.verb import ProgramWords, verb


@verb("Record", "cutrace nvcc -o app app.cu", 'make NVCC="cutrace nvcc"', cls=TakesAll)
def nvcc(words: ProgramWords = None) -> int:
    """Compile a program, as nvcc does, so that it can be recorded: make NVCC="cutrace nvcc"."""
    from ..tracer.program.build import show_nvcc
    from ..tracer.program.toolkit import toolkit_builder
    from .running.program import choose_device

    return show_nvcc(toolkit_builder().command(words or (), choose_device(None).capability))
