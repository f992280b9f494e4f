"""`cutrace toolkit`: a folder that builds take for NVIDIA's CUDA toolkit."""

from .options.verb import Line, verb


@verb("Record", "cutrace toolkit")
def toolkit(line: Line) -> str:
    """Print the folder of a CUDA toolkit with which CMake, make and others build for recording."""
    from ..tracer.program.toolkit import make_toolkit

    return str(make_toolkit())
