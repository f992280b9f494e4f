"""Compile whole .cu files: blank the host code and keep all line numbers.

The source is compiled like nvcc's device pass, with a prelude, with all unmarked code treated as
device code (`-default-device`), and with empty host headers. Code that fails to compile and has no
device marker is host code: it is blanked, and the rest compiled again. This loop ends with PTX, or
with an error in device code, which is the user's. The template instances that the program uses are
requested.

    compile -> errors -> blank each one's unmarked definition -> compile -> ... -> PTX
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from .compile import BUILT_IN, LIGHT, OWN, Diagnostic, compile_source, finish, read_diagnostics
from .nvrtc import Outcome
from .source import Compiled, Source
from .standin_headers import (
    HOST_LIBRARIES,
    NAME,
    STANDARD,
    included,
    local_files,
    may_be_missing,
    quoted,
    resolve_includes,
    stand_ins,
)
from .syntax.instance import used_instances
from .syntax.syntax import (
    Definition,
    at_column,
    blank,
    defined_name,
    definitions,
    marker_pattern,
    marking_words,
    written_kernels,
)
from .texture_reference import replace_references
from .toolkit import wheel_of

_TOKEN = re.compile(
    rb"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\r?\n|[^\n])*"
    rb"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[{};]",
    re.DOTALL | re.MULTILINE,
)
_OPENING = re.compile(rb'\b(?:namespace\b[\w\s:]*|extern\s*"C"\s*)$')


def chunks(text: str, markers: frozenset[str]) -> Iterator[Definition]:
    """Yield the file's definitions in order; each ends at a top-level `;` or `}`.

    Namespaces and `extern "C"` blocks are searched inside; `markers` make a definition device code.
    """
    raw = text.encode()
    pattern = marker_pattern(markers)
    start = depth = 0
    for token in _TOKEN.finditer(raw):
        mark = token[0]
        if mark not in (b"{", b"}", b";"):
            if not raw[start : token.start()].strip():
                start = token.end()  # a comment or directive before the definition
        elif mark == b"{" and not depth and _OPENING.search(raw, start, token.start()):
            start = token.end()
        else:
            depth = max(depth + (mark == b"{") - (mark == b"}"), 0)
            if depth == 0 and raw[start : token.start()].strip():
                yield _chunk(raw, start, token.end(), pattern)
            start = start if depth else token.end()


def _chunk(raw: bytes, start: int, end: int, markers: re.Pattern[bytes]) -> Definition:
    """Return the definition between two byte offsets, without leading blanks."""
    begin = end - len(raw[start:end].lstrip())
    return Definition(
        start=begin,
        end=end,
        first=raw.count(b"\n", 0, begin) + 1,
        last=raw.count(b"\n", 0, end) + 1,
        is_device=bool(markers.search(raw, begin, end)),
        is_host=False,
        is_function=raw[end - 1 : end] == b"}",
        name=defined_name(raw[begin:end]),
    )


_ROUNDS = 100
_SHOWN = 5
_ECHO = re.compile('does not apply here|incomplete type "void"')
DESIGNATING = "c++20"
"""First standard with designated initialisers, which g++ and so nvcc accept in any."""
_DESIGNATED = re.compile(r"[{,]\s*\.\w+\s*=")
_COMPOUND = re.compile(r"(?:(?<=[=(,?:])|\breturn\b)\s*\((?:struct\s+)?\w+\)(?=\s*\{)")
"""C compound literals, `(float4){0, 0, 0, 0}`, which g++ accepts and NVRTC does not."""
_LIBRARY = re.compile(r"\b(?:std|cub|thrust|cuda)\b")


def whole_to_ptx(source: Source, target: str) -> Compiled:
    """Compile the device code of a program; errors that remain raise a CutraceError."""
    program = _Program(source, target)
    errors = program.compile()
    if errors and (_wants_libraries(source, errors) or program.misses_library(errors)):
        program = program.with_libraries()
        errors = program.compile()
    if errors and _DESIGNATED.search(source.text) and not source.options.std:
        newer = replace(source, options=replace(source.options, std=DESIGNATING))
        return whole_to_ptx(newer, target)
    if errors:
        raise CutraceError("\n".join(program.refusal(errors)))
    return finish(
        source,
        target,
        program.outcome,
        textures=program.textures,
        notes=tuple(program.left_out()),
        missing=tuple(program.missing_headers()),
        texts={path: file.original for path, file in program.local.items()},
    )


def _braced(match: re.Match[str]) -> str:
    """Return `= (S){1}` as `=  S {1}`: no character moves."""
    return re.sub(r"[()]|\bstruct\b", lambda word: " " * len(word[0]), match[0])


def _wants_libraries(source: Source, errors: Iterable[Diagnostic]) -> bool:
    """Return True if device code may have failed for lack of the C++ library, cub or thrust."""
    return "using namespace std" in source.text or any(
        _LIBRARY.search(error.text) for error in errors
    )


@dataclass(slots=True)
class _File:
    """One of the user's files: its text, with handles for texture references, and its definitions.

    `cut` are the blanked definitions, each with the reason; `chunks` are the definitions split by
    braces alone.
    """

    original: str
    text: str
    definitions: tuple[Definition, ...]
    chunks: tuple[Definition, ...]
    cut: dict[Definition, str]

    def cut_host_code(self, line: int, column: int, reason: str) -> bool:
        """Blank the host code in that line; return False if there is none.

        Of several definitions in a line, blank the one at the column, if that is known.
        """
        matches = [each for each in self.definitions if each.covers(line)]
        matches = [each for each in matches if at_column(each, self.text, line, column)] or matches
        return self._cut(matches, reason)

    def cut_chunk(self, line: int, reason: str) -> bool:
        """Blank the host code in that line by its braces; return False if there is none."""
        return self._cut([each for each in self.chunks if each.covers(line)], reason)

    def source_of(self, definition: Definition) -> str:
        """Return the text of a definition."""
        return self.text.encode()[definition.start : definition.end].decode()

    def _cut(self, candidates: Iterable[Definition], reason: str) -> bool:
        fresh = [each for each in candidates if not each.is_device and each not in self.cut]
        self.cut |= dict.fromkeys(fresh, reason)
        return bool(fresh)


class _Program:
    """Compilation state of a program: its files, headers in memory, instances to request."""

    def __init__(self, source: Source, target: str, full: bool = False) -> None:
        self.source = source
        self.target = target
        self.full = full
        self.outcome = Outcome(None, "", {})
        self.textures: dict[str, tuple[str, ...]] = {}
        folders = (*source.options.includes, os.path.dirname(source.name) or ".")
        self.folders = folders
        texts = local_files(source.name, source.text, folders)
        markers = marking_words([source.text, *texts.values()])
        self.main = self._file(source.name, source.text, markers)
        self.local = {path: self._file(path, text, markers) for path, text in texts.items()}
        every = [self.main.text, *(file.text for file in self.local.values())]
        self.headers = stand_ins(every, folders, full)
        self.own = {
            name
            for text in every
            for name in quoted(text)
            if self.headers.get(name) == "" and not self._open(name) and not may_be_missing(name)
        }
        for name in self.own:  # no stand-in: the compiler reports the missing header
            del self.headers[name]
        self.instances = list(used_instances("\n".join([source.text, *texts.values()])))

    def with_libraries(self) -> "_Program":
        """Return a copy with libcu++, cub and thrust; blanked functions stay blanked."""
        program = _Program(self.source, self.target, full=True)
        for old, new in zip(self._named_files(), program._named_files(), strict=True):
            new[1].cut |= {
                each: why
                for each, why in old[1].cut.items()
                if each.is_function and not _LIBRARY.search(why)
            }
        return program

    def misses_library(self, errors: Iterable[Diagnostic]) -> bool:
        """Return True if an error names a definition blanked for its use of the C++ library."""
        message = " ".join(error.words for error in errors)
        return any(
            f'"{each.name}"' in message
            and (_LIBRARY.search(reason) or _LIBRARY.search(file.source_of(each)))
            for _, file in self._named_files()
            for each, reason in file.cut.items()
            if each.name
        )

    def _file(self, name: str, original: str, markers: frozenset[str]) -> _File:
        resolved = resolve_includes(name, original, self.folders)
        text, references = replace_references(_COMPOUND.sub(_braced, resolved))
        self.textures |= references
        parts = definitions(text, markers)
        cut = {each: "it is the host's" for each in parts if each.is_host}
        return _File(original, text, parts, tuple(chunks(text, markers)), cut)

    def compile(self) -> list[Diagnostic]:
        """Compile and blank until there is PTX; else return the user's errors."""
        errors: list[Diagnostic] = []
        for _ in range(_ROUNDS):
            # Repair every error of a round, since a compilation is the expensive part. A round
            # without a repair is final. Definitions of the syntax tree are blanked first;
            # splitting by braces is the fallback for code that the tree parses wrongly.
            self.outcome = self._compile_once()
            if self.outcome.ptx is not None:
                return []
            errors = [each for each in read_diagnostics(self.outcome.log) if each.is_error]
            if not [error for error in errors if self._repair(error)] and not self._cut_chunk(
                errors
            ):
                break
        return errors

    def _compile_once(self) -> Outcome:
        self._give_headers()
        light = () if self.full else (LIGHT,)
        return compile_source(
            self.source,
            self.target,
            text=blank(self.main.text, self.main.cut),
            extra=("-default-device", f"--pre-include={NAME}", *light),
            headers=self.headers,
            instances=self.instances,
        )

    def _give_headers(self) -> None:
        """Put the user's blanked headers into memory under their include paths."""
        for path, file in self.local.items():
            self.headers[path.replace("\\", "/")] = blank(file.text, file.cut)

    def _repair(self, error: Diagnostic) -> bool:
        """Remove the cause of an error, unless it is device code of the user."""
        if error.missing_header in self.own:
            return False
        if error.missing_header:
            return self._stand_in(error.missing_header)
        if error.name_expression:
            return self._forget_instance(error.name_expression)
        # Blank host code at the error or, failing that, at a place that instantiated it. The
        # column is known for the first place only.
        columns = (error.column, *[-1] * len(error.places))
        for (path, line), column in zip(error.places, columns, strict=False):
            file = self._open(path)
            if file and file.cut_host_code(line, column, error.words):
                return True
        return not self._open(error.places[0][0]) and self._stand_in(error.places[0][0])

    def _cut_chunk(self, errors: Iterable[Diagnostic]) -> bool:
        """Fallback: blank host code by its braces, if the syntax tree split it wrongly."""
        for error in errors:
            for path, line in error.places:
                file = self._open(path)
                if file and file.cut_chunk(line, error.words):
                    return True
        return False

    def _open(self, path: str) -> _File | None:
        """Return the user's file that the compiler calls `path`."""
        if path == self.source.name:
            return self.main
        return self.local.get(os.path.normpath(path))

    def _stand_in(self, header: str) -> bool:
        """Replace a header by an empty text; return False if it already is."""
        if self.headers.get(header) == "" or header in OWN:
            return False
        self.headers[header] = ""
        return True

    def _forget_instance(self, expression: str) -> bool:
        """Drop the request for a guessed instance."""
        squeezed = "".join(expression.split())
        matches = [each for each in self.instances if "".join(each.split()) == squeezed]
        self.instances = [each for each in self.instances if each not in matches]
        return bool(matches)

    def left_out(self) -> Iterator[str]:
        """Yield log lines about blanked code."""
        for name, file in self._named_files():
            cut = sorted(file.cut, key=lambda each: each.start)
            if cut:
                listed = ", ".join(f"{each.name} ({each.first})" for each in cut)
                yield f"{name}: left out as host code, with their lines: {listed}"

    def refusal(self, errors: Sequence[Diagnostic]) -> Iterator[str]:
        """Yield the error message: the compiler's messages, and the blanked code that they name."""
        yield f"{self.source.name} does not compile"
        yield from self.missing_headers()
        yield from self._bad_instances(errors)
        own = [self._at_users_line(error) for error in errors if not error.name_expression]
        own.sort(key=lambda error: _ECHO.search(error.words) is not None)
        yield from (error.text for error in own[:_SHOWN])
        if len(own) > _SHOWN:
            yield f"and {len(own) - _SHOWN} more errors"
        if any(error.missing_header for error in own):
            yield "-I FOLDER names the folder of a header that is not beside the file"
        message = " ".join(error.words for error in errors)
        for name, file in self._named_files():
            for each, reason in file.cut.items():
                if each.name and f'"{each.name}"' in message:
                    yield f"{name}({each.first}): {each.name} was left out as host code: {reason}"

    def _at_users_line(self, error: Diagnostic) -> Diagnostic:
        """Move an error inside the reference classes to the user's line that uses them."""
        if error.places[0][0] not in BUILT_IN:
            return error
        places = (place for place in error.places if self._open(place[0]))
        return next((error.at(*place) for place in places), error)

    def _bad_instances(self, errors: Iterable[Diagnostic]) -> Iterator[str]:
        """Yield a line per name expression that names nothing, with the compiler's first error."""
        first = {each.name_expression: each.words for each in reversed([*errors])}
        kernel_names = [kernel.name for kernel in written_kernels(self.source.text)]
        for name, words in first.items():
            if name:
                near = nearest(name.partition("<")[0], kernel_names)
                yield f"there is no kernel instance {name} in it: {words}{near}"

    def _named_files(self) -> Iterator[tuple[str, _File]]:
        yield self.source.name, self.main
        yield from self.local.items()

    def missing_headers(self) -> Iterator[str]:
        """Yield the missing headers that the user's files or CUDA's headers include."""
        nested = [name for name, text in self.headers.items() if not text and wheel_of(name)]
        for name, file in self._named_files():
            for line, text in enumerate(file.text.splitlines(), 1):
                for header in included(text):
                    is_available = header in STANDARD or header.startswith(HOST_LIBRARIES)
                    is_available = is_available or self._open(header) is not None
                    needed = [each for each in nested if each.endswith(f"/{header}")]
                    if self.headers.get(header) == "" and not is_available:
                        nested = [each for each in nested if each != header]
                        yield f"{name}({line}): the header {header} {_not_found(header)}"
                    elif needed:
                        nested.remove(needed[0])
                        yield f"{name}({line}): {_of_cuda(needed[0])}"
        yield from map(_of_cuda, nested)


def _of_cuda(header: str) -> str:
    return f"the header {header} of CUDA's {_not_found(header)}"


def _not_found(header: str) -> str:
    wheel = wheel_of(header)
    return "was not found and left out" + (f"; python -m pip install {wheel}" if wheel else "")
