"""Build CUDA C++ programs with NVIDIA's nvcc against our runtime library; cache them by content.

`Builder` composes the nvcc command: device code as uncompressed PTX with line information and no
SASS, because the recorder executes PTX. `build_program` looks a program up by the command
and the text of all included files. `run_nvcc` and `show_nvcc` run the compiler, and run it again
with compatibility headers if its errors show that the source is for another CUDA version.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import IO

from ...base.cache import folder_of, kept_folder, key_of
from ...base.claim import scratch_folder
from ...base.cores import cores
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..front import standin_headers
from ..front.toolkit import Toolkit, advise, find_host_compiler, find_toolkit, older_libraries
from ..session.destination import missing_file
from .library import HEADERS, STAND_INS, build_library
from .wire import RUNTIME

LEAST_CAPABILITY = 75
"""Oldest compute capability that nvcc 13 compiles for."""

_CODE_OPTIONS = ("-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode",
                 "--generate-code")  # fmt: skip
_TRIES = 3
"""Number of build attempts if sources change during the build."""
_OTHER_RUNTIME = ("-cudart", "--cudart", "-cudadevrt", "--cudadevrt")
_NOT_OURS = ("-dlto", "--dlink-time-opt", "-lcudart_static")
"""Options to drop: link-time optimization of SASS, and NVIDIA's static runtime."""

_STATIC_LIBRARY = re.compile(r"(-l|.*/lib)(\w+?)_static(?:_nocallback)?(\.a)?")


@dataclass(frozen=True, slots=True)
class Builder:
    """The inputs of a build: toolkit, host compiler, and the folders of our runtime and headers.

    The headers replace some of the toolkit's.
    """

    toolkit: Toolkit
    host: str
    library: Path
    headers: Path

    def command(self, words: Sequence[str], capability: int) -> list[str]:
        """Return the nvcc command for a user's arguments, with our options replacing its own."""
        named, other_options = split_code_options([*shared_libraries(_ptx_for_cubin(words))])
        archs = named or [str(max(capability, LEAST_CAPABILITY))]
        codes = (f"-gencode=arch=compute_{arch},code=compute_{arch}" for arch in archs)
        threads = ("--threads", "0") if len(archs) > 1 else ()
        return [
            *(str(self.toolkit.nvcc), *codes, *threads, "-lineinfo", "-g"),
            *("--no-compress", "-cudart", "shared", "-cudadevrt", "none"),
            *("-include", str(RUNTIME / "legacy.h")),
            *(("-ccbin", self.host) if not _names_compiler(other_options) else ()),
            *(*other_options, f"-I{self.headers}", "-Xcompiler", f"-idirafter,{HEADERS}"),
            *(f"-L{self.library / 'stubs'}", f"-L{self.library}"),
            *("-Xlinker", f"-rpath={self.library}"),
        ]


def _ptx_for_cubin(words: Sequence[str]) -> Sequence[str]:
    """Replace -cubin by -ptx: the module loader accepts PTX in a cubin's file."""
    if not {"-cubin", "--cubin"}.intersection(words):
        return words
    named = {"-o", "--output-file"}.intersection(words)
    sources = () if named else [Path(word) for word in words if word.endswith(".cu")]
    options = ("--ptx" if word in ("-cubin", "--cubin") else word for word in words)
    return [*options, *(part for path in sources[:1] for part in ("-o", f"{path.stem}.cubin"))]


def make_builder() -> Builder:
    """Find the compilers and build the library if needed; raise CutraceError if one is
    missing.
    """
    toolkit, host = find_toolkit(), find_host_compiler()
    return Builder(toolkit, host, build_library(toolkit, host), _write_headers())


def _write_headers() -> Path:
    """Return the folder of our `mma.h`, which fixes the mapping of lanes to fragment elements.

    The PTX specification of wmma instructions leaves that mapping open.
    """

    name, text = standin_headers.MMA_HEADER, standin_headers.TENSOR_CORE

    def write(folder: Path) -> None:
        (folder / name).write_text(text)

    return kept_folder("headers", key_of(name, text), write)


def shared_libraries(words: Iterable[str]) -> Iterator[str]:
    """Yield the words with our library in place of NVIDIA's static ones, which nvlink would read.

    >>> list(shared_libraries(["a.o", "-lcublas_static", "/tk/lib64/libcudart_static.a"]))
    ['a.o', '-lcublas']
    """
    ours = {each.linked for each in STAND_INS}
    for word in words:
        match = _STATIC_LIBRARY.fullmatch(word)
        if match is None or match[2] not in ours | {"cudart"}:
            yield word
        elif match[2] != "cudart":
            yield f"{match[1]}{match[2]}{'.so' if match[3] else ''}"


def split_code_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Remove the options that select code generation; return the virtual architectures and the
    rest.

    Each architecture is compiled to PTX, so that the best one for a device can be chosen at load
    time. Machine code for a newer architecture comes from the same PTX and adds no entry.

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


def for_device(words: Sequence[str], capability: int) -> list[str]:
    """Name one architecture if several are named: the best for the device that is to run the code.

    >>> for_device(["-gencode", "arch=compute_75,code=sm_75", "-arch=sm_90a", "-O3"], 90)
    ['-arch=compute_90a', '-O3']
    """
    from .code import rank, runs, split_target  # `cutrace nvcc` needs none of its imports

    named, other_options = split_code_options(words)
    fitting = [arch for arch in named if runs(*split_target(arch), capability)]
    if len(named) < 2 or not fitting:
        return list(words)
    best = max(fitting, key=lambda arch: rank(split_target(arch)))
    return [f"-arch=compute_{best}", *other_options]


def _architectures(text: str) -> Iterator[str]:
    """Yield `90a` for `sm_90a`, also of architectures that do not exist: nvcc names them.

    An architecture that nvcc no longer knows yields the oldest it knows.
    """
    for number, suffix in re.findall(r"\b(?:sm|compute|lto)_(\d*)(\w*)", text):
        if not suffix and number and int(number) < LEAST_CAPABILITY:
            _tell_old(number)
            yield str(LEAST_CAPABILITY)
        else:
            yield f"{number}{suffix}"


@cache
def _tell_old(number: str) -> None:
    """Say once that nvcc no longer compiles for an architecture."""
    print(
        f"cutrace: nvcc 13 compiles for 7.5 and newer: compute_{number} becomes"
        f" compute_{LEAST_CAPABILITY}",
        file=sys.stderr,
    )


def _names_compiler(words: Sequence[str]) -> bool:
    return any(word.partition("=")[0] in ("-ccbin", "--compiler-bindir") for word in words)


def build_program(sources: Sequence[Path], options: Sequence[str], capability: int) -> Path:
    """Build sources into a program, or return the cached one; return its path.

    The cache key covers the command and the text of every included file. Raises CutraceError with
    the compiler's output if it rejects the source.
    """
    builder = make_builder()
    for source in sources:
        if not source.is_file():
            raise missing_file(source)
    options = for_device(options, capability)
    inputs = list(sources)
    if len(sources) > 1:

        def compile_one(source: Path) -> Path:
            command = builder.command(["-c", str(source), *options], capability)
            return _built(builder, command, "object.o")

        with ThreadPoolExecutor(cores()) as pool:
            inputs = [*pool.map(compile_one, sources)]
    command = builder.command([*map(str, inputs), *options], capability)
    return _built(builder, command, sources[0].stem)


def _built(builder: Builder, command: Sequence[str], name: str) -> Path:
    """Return the output of an nvcc command, a program or an object file, under this file name."""
    command_key = key_of(os.getcwd(), builder.toolkit.version, *command, *_library_texts(command))
    index, before = folder_of("includes") / command_key, ""
    with suppress(OSError):
        before = _key_with_texts(command_key, index.read_text().splitlines())
    if before and (place := folder_of("programs") / before / name).is_file():
        return place
    # The dependencies are known only after a build. A source may change while nvcc reads it, so the
    # output is kept only if no file changed since the start, or if two builds see the same texts.
    for _ in range(_TRIES):
        begin = time.time_ns()
        with scratch_folder() as folder:
            program, depends = Path(folder, name), Path(folder, "depends")
            _run([*command, "-MMD", "-MF", str(depends), "-o", str(program)])
            rule = depends.read_text() if depends.is_file() else ""  # linking writes none
            paths = _read_dependencies(rule, builder.toolkit.root)
            key = _key_with_texts(command_key, paths)
            if key == before or not _changed_since(begin, paths):
                place = kept_folder("programs", key, partial(_copy, program))
                index.parent.mkdir(parents=True, exist_ok=True)
                index.write_text("\n".join(paths))
                return place / name
        before = key
    raise CutraceError(f"{name}: its sources change whenever nvcc compiles them; build it again")


def _library_texts(command: Sequence[str]) -> Iterator[bytes]:
    """Yield the contents of the libraries that `-l` takes from folders of `-L`."""
    folders = [word[2:] for word in command if word.startswith("-L")]
    for word in command:
        if word.startswith("-l"):
            files = (Path(f, f"lib{word[2:]}{end}") for f in folders for end in (".so", ".a"))
            yield from (path.read_bytes() for path in files if path.is_file())


def _changed_since(begin: int, paths: Iterable[str]) -> bool:
    """Return whether a file was written or renamed since a time, in nanoseconds of the clock.

    File timestamps lag the clock by some milliseconds; nvcc reads no file in that interval.
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
        if {*_UNDEFINED.findall(message)} == {"main"}:
            raise CutraceError(_advise_main(command))
        raise CutraceError(f"nvcc does not build it:\n{message}{_advise(command, message)}")
    if answer.stderr.strip():
        print(answer.stderr.strip(), file=sys.stderr)


_UNDEFINED = re.compile(r"undefined reference to [`']([^']+)'")


def _advise_main(command: Sequence[str]) -> str:
    """Return what to do about sources without a `main`."""
    sources = [word for word in command if re.search(r"\.(?:cu|cpp|cc|cxx|c)$", word)]
    names = [os.path.basename(word) for word in sources]
    one = next((name for name in names if name.endswith(".cu")), "FILE.cu")
    return (
        f"no main in {' and '.join(names) or 'these sources'}: name the file that has it, too, or"
        f" launch a kernel alone, without --: cutrace record {one} --launch"
        ' "KERNEL<<<4, 256>>>(a:f32[1024])"'
    )


def _advise(command: Sequence[str], message: str) -> str:
    """Return a hint for a failed command of nvcc, else ""."""
    nvcc = Path(command[0])
    return advise(message) or Toolkit(nvcc.parent.parent, nvcc.name).advise_release(message)


_OF_OLDER_CUDA = re.compile(
    r'texture is not a template|identifier "texture" is undefined|cudaDeviceProp\W* has no member'
    r"|\bto\W+cudaMemLocation|Instruction '(vote|shfl)' without '.sync'"
    r'|identifier "__shfl\w*" is undefined|cudaGraphEdgeData'
    r"|cudaGraphNodeParams\W*. is incompatible|cudaGraphNodeParams\W* to|cuCtxCreate_v4\b"
    r'|identifier "cuda(ConfigureCall|SetupArgument|Launch)"'
    r"|.cuda(ConfigureCall|SetupArgument|Launch)\W was not declared"
)
"""Errors of nvcc 13, and of g++ for host-only files, in programs that need `older.h`."""

_OF_STANDARD_HEADERS = re.compile(
    r'namespace "std" has no member'
    r'|identifier "(assert|u?int(8|16|32|64)_t|(FLT|DBL|INT|UINT|LLONG)_(MAX|MIN))" is undefined'
)
_OF_UNKNOWN_NAMES = re.compile(r'identifier "\w+" is undefined|was not declared|incomplete type')
"""Errors in programs that need `standard.h`, and those that may in a program with `older.h`."""

_OF_SURFACE_REFERENCES = re.compile(
    r'surface is not a template|identifier "surface" is undefined|"surfaceReference" is undefined'
)
"""Errors in programs that need `surface_reference.h`."""

_OF_OLDER_LIBRARIES = re.compile(
    r'namespace "(thrust|cub)[\w:]*" has no member|not a member of \W(thrust|cub)\b'
    r"|fatal error: (thrust|cub)/\S+: No such file|requires at least C\+\+ ?17"
)
"""Errors in programs written for the Thrust and CUB of CUDA 12."""

_OF_OTHER_HEADERS = re.compile(r"CUDA compiler and CUDA toolkit headers are incompatible")
"""Error of libcu++ if another package, torch for one, requires runtime headers older than nvcc.

Headers and nvcc of one major version are compatible.
"""

_ERROR = re.compile(r"\berror\b", re.IGNORECASE)


@contextmanager
def _temporaries() -> Iterator[dict[str, str]]:
    """Yield the environment of a compiler whose temporary files end with this process."""
    with scratch_folder() as folder:
        yield {**os.environ, "TMPDIR": str(folder)}


def run_nvcc(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run nvcc to completion; the returned object holds its output."""
    while True:
        with _temporaries() as environment:
            answer = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        again = _for_other(command, answer.stderr + answer.stdout) if answer.returncode else None
        if again is None:
            return answer
        command = again


def show_nvcc(command: Sequence[str]) -> int:
    """Run nvcc and print its output as it arrives; return its exit status.

    Output from the first error on is held back until nvcc ends, because only then is it known
    whether the command is run again with other headers.
    """
    while True:
        status, output, complained = _show(command)
        again = _for_other(command, complained + output) if status else None
        if again is None:
            break
        command = again
    sys.stdout.write(output)
    sys.stderr.write(complained)
    if status and (advice := _advise(command, output + complained)):
        sys.stderr.write(f"cutrace: {advice.lstrip()}\n")
    return status


def _for_other(command: Sequence[str], output: str) -> list[str] | None:
    """Return the command plus the options that another CUDA version needs; None if nothing is to
    add.
    """
    extra_options: list[str] = []
    if _OF_OLDER_CUDA.search(output):
        extra_options += ["-include", str(RUNTIME / "older.h")]
    may_be_older = str(RUNTIME / "older.h") in command and _OF_UNKNOWN_NAMES.search(output)
    if may_be_older or _OF_STANDARD_HEADERS.search(output):
        extra_options += ["-include", str(RUNTIME / "standard.h")]
    if _OF_SURFACE_REFERENCES.search(output):
        extra_options += ["-include", str(RUNTIME / "surface_reference.h")]
    if _OF_OLDER_LIBRARIES.search(output):
        extra_options += [f"-I{folder}" for folder in older_libraries()]
    if _OF_OTHER_HEADERS.search(output):
        extra_options.append("-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK")
    return [*command, *extra_options] if not set(extra_options) <= set(command) else None


def _show(command: Sequence[str]) -> tuple[int, str, str]:
    """Return the exit status and the held-back parts of stdout and stderr."""
    with (
        _temporaries() as environment,
        subprocess.Popen(
            command,
            env=environment,
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
    """Copy lines up to the first error; return the remaining text."""
    errors = ""
    for line in source:
        if errors or _ERROR.search(line):
            errors += line
        else:
            to.write(line)
            to.flush()
    return errors
