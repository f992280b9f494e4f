"""One compilation of a source by NVRTC, and the Compiled that is made of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ....errors import CutraceError
from ....traces.schema import Compiler
from ..ptx import with_plain_paths
from ..signature import list_kernels
from ..source import Compiled, Source
from ..syntax.syntax import written_kernels
from ..texture_reference import list_references
from ..toolkit import in_cuda, include_folders
from . import nvrtc
from .diagnostic import read_diagnostics
from .portable import portable_log, portable_ptx, user_sources

LIGHT = "-D_CG_LIMIT_INCLUDED_DEPENDENCIES"
"""Keeps `cooperative_groups.h` from reading libcu++, which takes NVRTC 0.6 s."""

_END = "\n;\n"
"""NVRTC forgets the instances asked for after a last definition that is an unused template."""


def compile_source(
    source: Source,
    target: str,
    *,
    text: str | None = None,
    extra: tuple[str, ...] = (),
    headers: Mapping[str, str] | None = None,
    instances: Sequence[str] = (),
) -> nvrtc.Outcome:
    """Compile `source` (or `text` in its place), its name expressions and `instances`.

    `headers` exist in memory only. The log has no path of this machine in it.
    """
    cuda = (f"-I{folder}" for folder in include_folders())
    outcome = nvrtc.compile_program(
        (source.text if text is None else text) + _END,
        source.name,
        _virtual(target),
        ("-lineinfo", *source.options.words, *extra, *cuda),
        tuple(dict.fromkeys((*source.options.name_expressions, *instances))),
        headers,
    )
    return replace(outcome, log=portable_log(outcome.log))


def finish(
    source: Source,
    target: str,
    outcome: nvrtc.Outcome,
    *,
    textures: Mapping[str, tuple[str, ...]] | None = None,
    notes: Sequence[str] = (),
    missing: Sequence[str] = (),
    texts: Mapping[str, str] | None = None,
) -> Compiled:
    """Make the result of a compilation that gave PTX; a source without kernels is a CutraceError.

    `textures` holds the template arguments of texture references; `notes` go into the log after
    the warnings; `missing` are sentences on headers. `texts` are the user's headers as they were
    compiled, by path.
    """
    raw = with_plain_paths(outcome.ptx or "")
    asked = {name: outcome.names[name] for name in source.options.name_expressions}
    sources = user_sources(raw, source, texts or {})
    kernels = list_kernels(raw, tuple(sources.values()), asked)
    if not kernels:
        raise CutraceError("\n".join((_no_kernels(source), *missing)))
    ptx = portable_ptx(raw, source)
    return Compiled(
        ptx=ptx,
        names=dict(outcome.names),
        compiler=Compiler(
            "nvrtc", outcome.version, ("-lineinfo", *source.options.words), _virtual(target)
        ),
        log="\n".join((*_warnings(outcome.log), *notes)),
        missing=tuple(missing),
        sources=sources,
        kernels=kernels,
        textures=list_references(ptx, textures or {}),
    )


def _warnings(log: str) -> Iterator[str]:
    """The messages of a log that speak of the user's files, not of CUDA's headers."""
    for each in read_diagnostics(log):
        if not in_cuda(each.places[0][0]):
            yield each.text


def _virtual(target: str) -> str:
    """The target as NVRTC takes it: `sm_75` is compiled for `compute_75`."""
    return target.replace("sm_", "compute_")


def _no_kernels(source: Source) -> str:
    templates = [kernel for kernel in written_kernels(source.text) if kernel.template]
    if not templates:
        return f"{source.name} has no kernel: no __global__ function was found in it"
    first = templates[0]
    listed = ", ".join(
        f"{kernel.name}<{', '.join(kernel.template or ())}> (line {kernel.line})"
        for kernel in templates
    )
    return (
        f"{source.name} has only templates of kernels, and none is launched in it: {listed}; "
        f'name an instance, as in name_expressions=["{first.name}<...>"]'
    )
