"""CUDA C++ to PTX by NVRTC, with line information and CUDA's own headers.

Nothing of this machine stays in the PTX: `.file` names the source as the user gave it, the user's
headers relative to it or to their `-I`, and CUDA's headers as they are included (`cuda_fp16.h`).
"""

from collections.abc import Mapping

from ...errors import CutraceError, nearest
from ...traces.schema import Compiler
from . import nvrtc
from .portable import portable_log, portable_ptx, user_sources
from .signature import list_kernels
from .source import Compiled, Source
from .toolkit import include_folders


def to_ptx(source: Source, target: str) -> Compiled:
    """Compile for `target` (`compute_75`); the compiler's own errors are a CutraceError.

    Every `__global__` function that is no template is in the PTX, and of templates the instances
    that `source.options.name_expressions` ask for.
    """
    outcome = compile_text(source, target)
    if outcome.ptx is None:
        raise CutraceError(f"{source.name} does not compile\n{outcome.log}")
    return finish(source, target, outcome)


def compile_text(
    source: Source,
    target: str,
    *,
    text: str | None = None,
    extra: tuple[str, ...] = (),
    headers: Mapping[str, str] | None = None,
) -> nvrtc.Outcome:
    """One compilation of `source` (or of `text` in its place); the log has no machine's paths."""
    target = _check_target(target)
    cuda = (f"-I{folder}" for folder in include_folders())
    words = (f"--gpu-architecture={target}", "-lineinfo", *source.options.words, *extra, *cuda)
    outcome = nvrtc.compile_program(
        source.text if text is None else text,
        source.name,
        words,
        source.options.name_expressions,
        headers,
    )
    return nvrtc.Outcome(outcome.ptx, portable_log(outcome.log), outcome.names)


def finish(source: Source, target: str, outcome: nvrtc.Outcome) -> Compiled:
    """Make the result of a compilation that gave PTX."""
    ptx = outcome.ptx or ""
    sources = user_sources(ptx, source)
    return Compiled(
        ptx=portable_ptx(ptx, source),
        names=dict(outcome.names),
        compiler=Compiler("nvrtc", nvrtc.version(), ("-lineinfo", *source.options.words), target),
        log=outcome.log,
        sources=sources,
        kernels=list_kernels(ptx, tuple(sources.values()), outcome.names),
    )


def _check_target(target: str) -> str:
    known = nvrtc.architectures()
    virtual = target.replace("sm_", "compute_")
    if virtual.rstrip("af") not in known:
        raise CutraceError(
            f"target {target}: NVRTC {nvrtc.version()} compiles for {known[0]} to {known[-1]}"
            f"{nearest(virtual, known)}; the trace of any of them is replayed on every device"
        )
    return virtual
