"""Run one NVRTC compilation and turn its outcome into a Compiled.

`compile_source` calls NVRTC with the source's options. `finish` builds the Compiled: kernels with
signatures, texture references, warnings and sources. `read_diagnostics` parses the compiler's log.
`portable_ptx` and `portable_log` remove this machine's paths, so that PTX and messages are the same
on every machine.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.schema import Compiler
from . import nvrtc
from .ptx import with_plain_paths
from .signature import list_kernels
from .source import Compiled, Source, decode_source
from .standin_headers import MMA_HEADER, NAME
from .syntax.syntax import written_kernels
from .texture_reference import list_references
from .toolkit import in_cuda, include_folders

LIGHT = "-D_CG_LIMIT_INCLUDED_DEPENDENCIES"
"""Keeps `cooperative_groups.h` from including libcu++, which costs NVRTC 0.6 s."""

_END = "\n;\n"
"""Ends a source: NVRTC drops requested instances behind a final unused template."""


def compile_source(
    source: Source,
    target: str,
    *,
    text: str | None = None,
    extra: tuple[str, ...] = (),
    headers: Mapping[str, str] | None = None,
    instances: Sequence[str] = (),
) -> nvrtc.Outcome:
    """Compile `source` (or `text` in its place) with its name expressions and `instances`.

    `headers` exist in memory only. The log contains no path of this machine.
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
    """Return the result of a compilation that gave PTX; CutraceError for a source without kernels.

    `textures` holds the template arguments of texture references; `notes` follow the warnings in
    the log; `missing` are sentences about headers. `texts` are the user's headers as compiled, by
    path.
    """
    raw = with_plain_paths(outcome.ptx or "")
    mangled_names = {name: outcome.names[name] for name in source.options.name_expressions}
    sources = user_sources(raw, source, texts or {})
    kernels = list_kernels(raw, tuple(sources.values()), mangled_names)
    if not kernels:
        raise CutraceError("\n".join((_no_kernels(source), *missing)))
    ptx = portable_ptx(raw, source)
    return Compiled(
        ptx=ptx,
        names=dict(outcome.names),
        compiler=Compiler(
            "nvrtc",
            outcome.version,
            ("-lineinfo", *source.options.words),
            _virtual(target),
            tuple(missing),
        ),
        log="\n".join((*_warnings(outcome.log), *notes)),
        sources=sources,
        kernels=kernels,
        textures=list_references(ptx, textures or {}),
    )


def _warnings(log: str) -> Iterator[str]:
    """Yield the messages of a log about the user's files, not about CUDA's headers."""
    for each in read_diagnostics(log):
        if not in_cuda(each.places[0][0]):
            yield each.text


def _virtual(target: str) -> str:
    """Return the target in NVRTC's form: `sm_75` is compiled for `compute_75`."""
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


_HEAD = re.compile(
    r"^(?P<file>\S.*?)\((?P<line>\d+)\): (?P<kind>(?:catastrophic )?error|warning|remark)"
    r"(?: #\d+(?:-D)?)?: (?P<words>.*)$"
)
_AT = re.compile(r' at line (\d+)(?: of "?([^"]+?)"?)?$')
_TAIL = re.compile(r"^\d+ (?:catastrophic )?errors? detected|^Compilation terminated|^Remark: ")
_MISSING = re.compile(r'cannot open source file "([^"]+)"')
_INDENT = 2  # the compiler indents a shown line by two columns
NAME_MAP = "__nv_name_map"
"""Pseudo file in which NVRTC reports errors of name expressions."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One compiler message.

    `places` are (file, line): its own first, then the places of the template instantiations.
    `column` counts from 0, in characters of its own line; -1 if the compiler shows none.
    """

    kind: str
    words: str
    places: tuple[tuple[str, int], ...]
    column: int
    text: str

    @property
    def is_error(self) -> bool:
        """Return True if the message is an error."""
        return self.kind.endswith("error")

    @property
    def missing_header(self) -> str:
        """Return the header that could not be opened, or `""`."""
        match = _MISSING.search(self.words)
        return match[1] if match else ""

    @property
    def name_expression(self) -> str:
        """Return the requested template instance that does not exist, or `""`."""
        if self.places[0][0] != NAME_MAP:
            return ""
        _, _, tail = self.text.partition("#pragma nv_mangled_name ")
        return tail.partition("\n")[0].strip()

    def at(self, path: str, line: int) -> "Diagnostic":
        """Return the message at another place, without the source line that the compiler shows."""
        text = f"{path}({line}): {self.kind}: {self.words}"
        return Diagnostic(self.kind, self.words, ((path, line),), -1, text)


def read_diagnostics(log: str) -> tuple[Diagnostic, ...]:
    """Return the messages of a log in order; a note belongs to the message before it."""
    return tuple(_read(chunk) for chunk in _chunks(log))


def _chunks(log: str) -> Iterator[list[str]]:
    chunk: list[str] = []
    for line in log.splitlines():
        if _HEAD.match(line):
            if chunk:
                yield chunk
            chunk = [line]
        elif chunk and line.strip() and not _TAIL.match(line):
            chunk.append(line)
    if chunk:
        yield chunk


def _read(chunk: list[str]) -> Diagnostic:
    head = _HEAD.match(chunk[0])
    assert head is not None
    own = head["file"], int(head["line"])
    whence = ((at[2] or own[0], int(at[1])) for line in chunk[1:] if (at := _AT.search(line)))
    caret = next((line for line in chunk[1:] if line.strip() == "^"), "")
    column = caret.find("^") - _INDENT if caret else -1
    return Diagnostic(head["kind"], head["words"], (own, *whence), column, "\n".join(chunk))


_FILE = re.compile(r'^(\s*\.file\s+(\d+)\s+)"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_LOC = re.compile(r"^\s*\.loc\s+(\d+ \d+ \d+)(?:,.*inlined_at (\d+ \d+ \d+))?.*\n", re.MULTILINE)
OWN = frozenset({NAME, MMA_HEADER})
"""Headers that cutrace supplies itself; they shadow files of the same name."""
BUILT_IN = OWN | {"__nv_nvrtc_builtin_header.h"}
"""Headers whose code is never shown to the user."""


def portable_ptx(ptx: str, source: Source) -> str:
    """Return PTX with portable paths, forward slashes in them, and locations in files only."""

    def shorten(match: re.Match[str]) -> str:
        header = _cuda_header(match[3]) or _as_given(match[3], source)
        return f'{match[1]}"{_slashes(header)}"'

    return _hide_built_in(_FILE.sub(shorten, ptx))


def _hide_built_in(ptx: str) -> str:
    """Attribute code from built-in headers to the line that calls it."""
    hidden = {number for _, number, path in _FILE.findall(ptx) if path in BUILT_IN}
    if not hidden:
        return ptx
    call_sites: dict[str, str] = {}
    callers: dict[str, str] = {}

    def visible(match: re.Match[str]) -> str:
        place, caller = match[1], match[2]
        if place.split()[0] not in hidden:
            call_sites[place] = match[0]
            return match[0]
        callers[place] = caller = callers.get(caller, caller) if caller else ""
        if not caller or caller.split()[0] in hidden:
            return ""
        return call_sites.get(caller, f"\t.loc\t{caller}\n")

    return _LOC.sub(visible, ptx)


def portable_log(log: str) -> str:
    """Return the compiler's messages with CUDA's headers named as they are included."""
    for folder in include_folders():
        log = log.replace(folder + os.sep, "").replace(folder + "/", "")
    return log.strip()


def user_sources(ptx: str, source: Source, texts_by_path: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the user's files in NVRTC's `ptx`, by given path, the source first.

    Headers in `texts_by_path` (by normal path, as compiled) are taken from there; others are read.
    """
    texts = {_slashes(source.name): source.text}
    for _, _, path in _FILE.findall(ptx):
        source_path = _as_given(path, source)
        source_path = _slashes(source_path)
        if source_path in texts or _cuda_header(path):
            continue
        if (text := texts_by_path.get(os.path.normpath(source_path))) is not None:
            texts[source_path] = text
        elif Path(source_path).is_file():
            texts[source_path] = decode_source(Path(source_path).read_bytes())
    return texts


def _cuda_header(path: str) -> str:
    """Return the include name of a CUDA header, `""` for any other file."""
    return next(filter(None, (_below(path, folder) for folder in include_folders())), "")


def _as_given(path: str, source: Source) -> str:
    if any(_below(path, folder) for folder in _given_absolute(source)):
        return _slashes(path)
    return _below(path, os.getcwd()) or _slashes(path)


def _given_absolute(source: Source) -> Iterator[str]:
    """Yield the folders that the user gave as absolute paths."""
    for folder in (os.path.dirname(source.name), *source.options.includes):
        if os.path.isabs(folder):
            yield folder


def _below(path: str, folder: str) -> str:
    """Return `path` relative to `folder`, or `""` if it is outside."""
    head = _slashes(folder).rstrip("/") + "/"
    whole = _slashes(path)
    return whole[len(head) :] if whole.startswith(head) else ""


def _slashes(path: str) -> str:
    r"""`C:\\a\\b.cu` as PTX escapes it, or `C:\a\b.cu`, as `C:/a/b.cu`."""
    return path.replace("\\\\", "/").replace("\\", "/")
