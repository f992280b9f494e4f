"""Programs of CUDA C++, built by NVIDIA's nvcc over our runtime library, and kept by content.

Kernels go in as PTX alone, plain, with source lines: that is what is recorded.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from ...base.cache import folder_of, kept_folder, key_of
from ...base.claim import scratch_folder
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..front import standin_headers as tensor_core
from ..front.toolkit import older_libraries
from ..session.destination import missing_file
from .library import HEADERS, build_library
from .toolkit import Toolkit, advise, find_host_compiler, find_toolkit
from .wire import RUNTIME

LEAST_CAPABILITY = 75
"""nvcc 13 compiles for nothing older."""

_CODE_OPTIONS = ("-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode",
                 "--generate-code")  # fmt: skip
_TRIES = 3
"""How often a program is built whose sources change meanwhile."""
_OTHER_RUNTIME = ("-cudart", "--cudart", "-cudadevrt", "--cudadevrt")
_NOT_OURS = ("-dlto", "--dlink-time-opt", "-lcudart_static")
"""What is left out: optimization of machine code, and NVIDIA's own runtime."""


@dataclass(frozen=True, slots=True)
class Builder:
    """What builds a program: the toolkit, the host compiler, the folders with our runtime and with
    headers in place of the toolkit's.
    """

    toolkit: Toolkit
    host: str
    library: Path
    headers: Path

    def command(self, words: Sequence[str], capability: int) -> list[str]:
        """The nvcc command for what a user typed behind `nvcc`, with ours in place of its own."""
        named, other_options = split_code_options(_ptx_for_cubin(words))
        archs = named or [str(max(capability, LEAST_CAPABILITY))]
        codes = (f"-gencode=arch=compute_{arch},code=compute_{arch}" for arch in archs)
        return [
            *(str(self.toolkit.nvcc), *codes, "-lineinfo", "-g"),
            *("--no-compress", "-cudart", "shared", "-cudadevrt", "none"),
            *("-include", str(RUNTIME / "legacy.h")),
            *(("-ccbin", self.host) if not _names_compiler(other_options) else ()),
            *(*other_options, f"-I{self.headers}", "-Xcompiler", f"-idirafter,{HEADERS}"),
            *(f"-L{self.library / 'stubs'}", f"-L{self.library}"),
            *("-Xlinker", f"-rpath={self.library}"),
        ]


def _ptx_for_cubin(words: Sequence[str]) -> Sequence[str]:
    """PTX in the file of machine code that is asked for: modules are loaded from either."""
    if not {"-cubin", "--cubin"}.intersection(words):
        return words
    named = {"-o", "--output-file"}.intersection(words)
    sources = () if named else [Path(word) for word in words if word.endswith(".cu")]
    options = ("--ptx" if word in ("-cubin", "--cubin") else word for word in words)
    return [*options, *(part for path in sources[:1] for part in ("-o", f"{path.stem}.cubin"))]


def make_builder() -> Builder:
    """Find the compilers and build the library if need be; CutraceError says what is missing."""
    toolkit, host = find_toolkit(), find_host_compiler()
    return Builder(toolkit, host, build_library(toolkit, host), _write_headers())


def _write_headers() -> Path:
    """The folder with our `mma.h`, which says what wmma instructions leave open: who holds what."""

    def write(folder: Path) -> None:
        (folder / tensor_core.NAME).write_text(tensor_core.TENSOR_CORE)

    return kept_folder("headers", key_of(tensor_core.TENSOR_CORE), write)


def split_code_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take out what says which code to make; return the virtual architectures, and the rest.

    Each is compiled to PTX, so that a device can be given what suits it best. Machine code for a
    newer architecture is made of the same PTX and names none.

    >>> split_code_options(["-O3", "-gencode", "arch=compute_80,code=sm_86", "-arch=sm_90a"])
    (['80', '90a'], ['-O3'])
    """
    kept_words: list[str] = []
    archs: list[str] = []
    codes: list[str] = []
    arguments = iter(words)
    for word in arguments:
        name, _, value = word.partition("=")
        if name in _CODE_OPTIONS:
            for part in re.split(r",(?=\w+=)", value or next(arguments, "")):
                key, _, listed = part.rpartition("=")
                is_code = (key or name).lstrip("-") in ("code", "gpu-code")
                (codes if is_code else archs).extend(_architectures(listed))
        elif name in _OTHER_RUNTIME:
            value = value or next(arguments, "")
        elif word not in _NOT_OURS:
            kept_words.append(word)
    return list(dict.fromkeys(archs or codes)), kept_words


def _architectures(text: str) -> Iterator[str]:
    """Yield `90a` of `sm_90a`, and the oldest that nvcc knows for older ones."""
    for number, suffix in re.findall(r"_(\d+)([af]?)\b", text):
        yield f"{number}{suffix}" if int(number) >= LEAST_CAPABILITY else str(LEAST_CAPABILITY)


def _names_compiler(words: Sequence[str]) -> bool:
    return any(word.partition("=")[0] in ("-ccbin", "--compiler-bindir") for word in words)


def build_program(sources: Sequence[Path], options: Sequence[str], capability: int) -> Path:
    """Build sources into a program, or take the one built before of the same; return its path.

    The same means the same command, and the same text in all that was included then. CutraceError
    with what the compiler said if it refuses.
    """
    builder = make_builder()
    for source in sources:
        if not source.is_file():
            raise missing_file(source)
    inputs = list(sources)
    if len(sources) > 1:
        inputs = [
            _built(builder, builder.command(["-c", str(source), *options], capability), "object.o")
            for source in sources
        ]
    command = builder.command([*map(str, inputs), *options], capability)
    return _built(builder, command, sources[0].stem)


def _built(builder: Builder, command: Sequence[str], name: str) -> Path:
    """What a command of nvcc makes, in a file of this name: a program, or an object file."""
    command_key = key_of(os.getcwd(), builder.toolkit.version, *command)
    index, before = folder_of("includes") / command_key, ""
    with suppress(OSError):
        before = _key_with_texts(command_key, index.read_text().splitlines())
    if before and (place := folder_of("programs") / before / name).is_file():
        return place
    for _ in range(_TRIES):
        begin = time.time_ns()
        with scratch_folder() as folder:
            program, depends = Path(folder, name), Path(folder, "depends")
            _run([*command, "-MMD", "-MF", str(depends), "-o", str(program)])
            rule = depends.read_text() if depends.is_file() else ""  # linking alone writes none
            paths = _read_dependencies(rule, builder.toolkit.root)
            key = _key_with_texts(command_key, paths)
            if key == before or not _changed_since(begin, paths):
                place = kept_folder("programs", key, partial(_copy, program))
                index.parent.mkdir(parents=True, exist_ok=True)
                index.write_text("\n".join(paths))
                return place / name
        before = key
    raise CutraceError(f"{name}: its sources change whenever nvcc compiles them; build it again")


def _changed_since(begin: int, paths: Iterable[str]) -> bool:
    """Whether a file was written or took its name since a time, in nanoseconds of the clock.

    The system's clock for files is some milliseconds behind, in which nvcc has read none of them.
    """
    return any(os.stat(path).st_ctime_ns > begin for path in paths)


def _key_with_texts(command_key: str, paths: Iterable[str]) -> str:
    return key_of(
        command_key, *(part for path in paths for part in (path, Path(path).read_bytes()))
    )


def _read_dependencies(text: str, toolkit: Path) -> list[str]:
    r"""The paths of a rule of make, without those of the toolkit.

    >>> _read_dependencies("a.o : a.cu \\\n  inc/my\\ header.h /tk/bin/../x.h", Path("/tk"))
    ['a.cu', 'inc/my header.h']
    """
    words = re.findall(r"(?:\\ |\S)+", text.partition(" : ")[2].replace("\\\n", " "))
    paths = [word.replace("\\ ", " ") for word in words]
    return [path for path in paths if not Path(path).is_relative_to(toolkit)]


def _copy(program: Path, into: Path) -> None:
    shutil.copy2(program, into / program.name)


def _run(command: Sequence[str]) -> None:
    answer = run_nvcc(command)
    if answer.returncode:
        message = (answer.stderr.strip() or answer.stdout.strip()) or "it says nothing"
        raise CutraceError(f"nvcc does not build it:\n{message}{advise(message)}")
    if answer.stderr.strip():
        print(answer.stderr.strip(), file=sys.stderr)


_OF_OLDER_CUDA = re.compile(
    r'texture is not a template|identifier "texture" is undefined|cudaDeviceProp\W* has no member'
    r"|\bto\W+cudaMemLocation|Instruction '(vote|shfl)' without '.sync'"
    r'|identifier "__shfl\w*" is undefined|cudaGraphEdgeData'
    r"|cudaGraphNodeParams\W*. is incompatible|cudaGraphNodeParams\W* to|cuCtxCreate_v4\b"
    r'|namespace "std" has no member|identifier "cuda(ConfigureCall|SetupArgument|Launch)"'
    r"|.cuda(ConfigureCall|SetupArgument|Launch)\W was not declared"
)
"""What nvcc 13, and g++ for a file of host code, say of programs that `older.h` is for."""

_OF_SURFACE_REFERENCES = re.compile(
    r'surface is not a template|identifier "surface" is undefined|"surfaceReference" is undefined'
)
"""What it says of programs that `surface_reference.h` is for."""

_OF_OLDER_LIBRARIES = re.compile(
    r'namespace "(thrust|cub)[\w:]*" has no member|not a member of \W(thrust|cub)\b'
    r"|fatal error: (thrust|cub)/\S+: No such file|requires at least C\+\+ ?17"
)
"""What they say of programs for the Thrust and CUB of CUDA 12."""

_OF_OTHER_HEADERS = re.compile(r"CUDA compiler and CUDA toolkit headers are incompatible")
"""What libcu++ says where another package wants the runtime's headers older than nvcc, as torch
does. Within a major version they fit."""

_ERROR = re.compile(r"\berror\b", re.IGNORECASE)


def run_nvcc(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run it to its end; what it says is in what is returned."""
    while True:
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
        )
        again = _for_other(command, answer.stderr + answer.stdout) if answer.returncode else None
        if again is None:
            return answer
        command = again


def show_nvcc(command: Sequence[str]) -> int:
    """Run it and print what it says as it comes; return its exit status.

    From the first error on that waits for the end, when it is known whether another run follows.
    """
    while True:
        status, output, complained = _show(command)
        again = _for_other(command, complained + output) if status else None
        if again is None:
            break
        command = again
    sys.stdout.write(output)
    sys.stderr.write(complained)
    if status and (advice := advise(output + complained)):
        sys.stderr.write(f"cutrace: {advice.lstrip()}\n")
    return status


def _for_other(command: Sequence[str], output: str) -> list[str] | None:
    """The command with what another CUDA needs by what was said; None if that is all."""
    extra_options: list[str] = []
    if _OF_OLDER_CUDA.search(output):
        extra_options += ["-include", str(RUNTIME / "older.h")]
    if _OF_SURFACE_REFERENCES.search(output):
        extra_options += ["-include", str(RUNTIME / "surface_reference.h")]
    if _OF_OLDER_LIBRARIES.search(output):
        extra_options += [f"-I{folder}" for folder in older_libraries()]
    if _OF_OTHER_HEADERS.search(output):
        extra_options.append("-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK")
    return [*command, *extra_options] if not set(extra_options) <= set(command) else None


def _show(command: Sequence[str]) -> tuple[int, str, str]:
    """The exit status, and what is held back of both outputs."""
    with (
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process,
        ThreadPoolExecutor(2) as pool,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        outputs = pool.map(_pass_on, (process.stdout, process.stderr), (sys.stdout, sys.stderr))
        output, complained = outputs
        return process.wait(), output, complained


def _pass_on(source: IO[str], to: IO[str]) -> str:
    """Copy line by line up to the first error; return the rest."""
    errors = ""
    for line in source:
        if errors or _ERROR.search(line):
            errors += line
        else:
            to.write(line)
            to.flush()
    return errors
