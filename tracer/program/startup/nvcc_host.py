"""Serve packages that call nvcc at run time with PTX from cutrace's nvcc.

These are PyCUDA, CuPy if its `backend` is nvcc, TileLang, tvm_ffi and torch. The source is stored
in the cache, so that the PTX's line information has a file to name. The output is cached with it
and stays valid until an included file changes.

CUDA C++ that is written in a Python file has its lines: `#line` directives name them.
"""

import ast
import ctypes
import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


@dataclass
class NvccOutput:
    """The output of nvcc for a source."""

    source: Path
    command: list[str]
    ptx: bytes = b""
    status: int = 0
    out: str = ""
    err: str = ""


def make_ptx(text: str, options: Sequence[str]) -> NvccOutput:
    """Compile a source, or return the cached output."""
    folder = Path(os.environ["CUTRACE_SOURCES"], hashlib.sha256(text.encode()).hexdigest()[:16])
    source = folder / "kernel.cu"
    compilation = NvccOutput(source, [*_nvcc(), "--ptx", *options, str(source)])
    digest = hashlib.sha256(repr((compilation.command, os.getcwd())).encode()).hexdigest()[:16]
    cache_file = folder / f"{digest}.json"
    if cache_file.is_file():
        before = json.loads(cache_file.read_text())
        if all(_state(path) == state for path, state in before["states"].items()):
            compilation.ptx, compilation.out, compilation.err = (
                before["ptx"].encode(),
                before["out"],
                before["err"],
            )
            return compilation
    folder.mkdir(parents=True, exist_ok=True)
    if not source.is_file() or source.read_text() != text:
        _write(source, text)
    begin = time.time_ns()
    scratch = os.environ.get("CUTRACE_SCRATCH", "")  # removed together with the recorder
    with TemporaryDirectory(dir=scratch if os.path.isdir(scratch) else None) as place:
        states = _compile(compilation, Path(place, "kernel.ptx"), Path(place, "depends"))
    # A file that changed while nvcc ran may have been read in either state: do not cache.
    if not compilation.status and not any(_changed_since(begin, path) for path in states):
        value = {
            "states": states,
            "ptx": compilation.ptx.decode(),
            "out": compilation.out,
            "err": compilation.err,
        }
        _write(cache_file, json.dumps(value))
    return compilation


def _write(path: Path, text: str) -> None:
    """Write a file atomically: another process may be reading it."""
    draft = path.with_name(os.urandom(16).hex())
    try:
        with draft.open("x") as file:
            file.write(text)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _nvcc() -> list[str]:
    return [os.environ["CUTRACE_PYTHON"], "-m", "cutrace", "nvcc"]


def _compile(compilation: NvccOutput, ptx: Path, depends: Path) -> dict[str, list[int]]:
    """Run nvcc; return size and modification time of each file that it read."""
    process = subprocess.run(
        [*compilation.command, "-MD", "-MF", str(depends), "-o", str(ptx)],
        capture_output=True, text=True, errors="replace",
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
    )  # fmt: skip
    compilation.status, compilation.out, compilation.err = (
        process.returncode,
        process.stdout,
        process.stderr,
    )
    if compilation.status:
        return {}
    compilation.ptx = ptx.read_bytes()
    rule = depends.read_text().partition(" : ")[2].replace("\\\n", " ")
    words = re.findall(r"(?:\\ |\S)+", rule)
    return {path: _state(path) for path in (word.replace("\\ ", " ") for word in words)}


def _state(path: str) -> list[int]:
    try:
        status = os.stat(path)
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]


def _changed_since(begin: int, path: str) -> bool:
    """Return whether a file was written, renamed or removed since a time."""
    try:
        return os.stat(path).st_ctime_ns > begin
    except OSError:
        return True


GENERATED = "<generated>"
"""The file of CUDA C++ that no Python file has, as a framework puts it around a kernel."""


def with_lines_of_python(source: str) -> str:
    """Return CUDA C++ with the file and line of each part that a calling Python file has.

    What follows such a part has lines of the whole source, under the name `GENERATED`.
    """
    frame = sys._getframe()
    files = set[str]()
    while frame := frame.f_back:  # type: ignore[assignment]
        files.add(frame.f_code.co_filename)
    marked = source
    for file in sorted(files):
        for line, text in _cuda_texts(file):
            before, found, after = marked.partition(text)
            if found:
                next_line = source[: source.index(text) + len(text)].count("\n") + 1
                rest = f'\n#line {next_line} "{GENERATED}"\n{after}' if after else ""
                marked = f'{before}\n#line {line} "{file}"\n{text}{rest}'
    return marked


_KERNEL = re.compile(r"\b__global__\b[^;{}]*\{")


@lru_cache(maxsize=64)
def _cuda_texts(file: str) -> tuple[tuple[int, str], ...]:
    """Return line and value of each string of a Python file that has a kernel.

    Left out are strings whose lines are not those of the file: with escapes, or of several parts.
    """
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return ()
    return tuple(
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and _KERNEL.search(node.value)
        and node.value.count("\n") == (node.end_lineno or 0) - node.lineno
    )


def serve_pycuda(compiler: Any) -> None:
    """Make `pycuda.compiler` compile a source to PTX instead of a cubin."""

    def compile_plain(
        source: object, options: Sequence[str], keep: bool, nvcc: str, cache_dir: object,
        target: str = "cubin",
    ) -> bytes:  # fmt: skip
        from pycuda.driver import CompileError

        compilation = make_ptx(with_lines_of_python(str(source)), options)
        if compilation.status:
            message = f"nvcc compilation of {compilation.source} failed"
            raise CompileError(
                message, compilation.command, stdout=compilation.out, stderr=compilation.err
            )
        return compilation.ptx

    compiler.compile_plain = compile_plain
    add_library = compiler.DynamicModule.add_stdlib

    def add_own(self: Any, library: str) -> Any:
        """Skip cudadevrt: our library implements its functions, and its file does not exist."""
        return self if library == "cudadevrt" else add_library(self, library)

    compiler.DynamicModule.add_stdlib = add_own


def serve_cupy(compiler: Any) -> None:
    """Make `cupy.cuda.compiler` compile to PTX, also for kernels that launch kernels."""

    def compile_using_nvcc(
        source: str, options: Sequence[str] = (), arch: object = None, filename: str = "kern.cu",
        code_type: str = "cubin", separate_compilation: bool = False, log_stream: Any = None,
    ) -> bytes:  # fmt: skip
        own = [option for option in options if option not in ("-o", "preprocess.ptx")]
        compilation = make_ptx(source, [f"-arch=sm_{arch or compiler._get_arch()}", *own])
        if compilation.status:
            error = compiler.CompileException
            raise error(
                compilation.out + compilation.err, source, str(compilation.source), options, "nvcc"
            )
        if log_stream is not None:
            log_stream.write(compilation.out + compilation.err)
        return compilation.ptx

    compiler.compile_using_nvcc = compile_using_nvcc
    compile_cached = compiler._compile_with_cache_cuda

    def compile_with_lines(source: str, *arguments: Any, **named: Any) -> Any:
        """Compile with `#line` directives, which are a part of the cache's key, too."""
        return compile_cached(with_lines_of_python(source), *arguments, **named)

    compiler._compile_with_cache_cuda = compile_with_lines


def name_nvcc(environment: Any) -> None:
    """Make `cupy._environment` return cutrace's nvcc; CuPy splits the value at spaces."""
    environment._nvcc_path = " ".join(_nvcc())


def _toolkit() -> str | None:
    """Return the folder of cutrace's toolkit; None, with a message, if something is missing."""
    toolkit = subprocess.run(
        (os.environ["CUTRACE_PYTHON"], "-m", "cutrace", "toolkit"),
        capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
    )  # fmt: skip
    if toolkit.returncode:
        print(toolkit.stderr, end="", file=sys.stderr)
        return None
    return toolkit.stdout.strip()


def serve_tvm_ffi(extension: Any) -> None:
    """Make `tvm_ffi.cpp` build with cutrace's toolkit, for the device, without nvidia-smi."""
    find_home, find_target = extension._find_cuda_home, extension._get_cuda_target
    extension._find_cuda_home = cache(lambda: _toolkit() or find_home())

    def target() -> str:
        if "TVM_FFI_CUDA_ARCH_LIST" in os.environ:
            return str(find_target())
        cuda, value, digits = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ""
        cuda.cuInit(0)
        for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
            cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, 0)
            digits += str(value.value)
        return f"-gencode=arch=compute_{digits},code=compute_{digits}"

    extension._get_cuda_target = target


def serve_extensions(cpp_extension: Any) -> None:
    """Make `torch.utils.cpp_extension` build with cutrace's toolkit."""
    toolkit = _toolkit()
    if toolkit is None:
        return
    cpp_extension.CUDA_HOME = toolkit
    cpp_extension.FileBaton = ExtensionLock
    load_inline = cpp_extension.load_inline

    def load_with_lines(
        name: str, cpp_sources: Any, cuda_sources: Any = None, *arguments: Any, **named: Any
    ) -> Any:
        """Build with `#line` directives for the Python file that has the source."""
        texts = [cuda_sources] if isinstance(cuda_sources, str) else cuda_sources
        texts = texts and [with_lines_of_python(text) for text in texts]
        return load_inline(name, cpp_sources, texts, *arguments, **named)

    cpp_extension.load_inline = load_with_lines


def serve_tilelang(nvcc: Any) -> None:
    """Make `tilelang.contrib.nvcc` compile to PTX instead of machine code."""
    compile_cuda = nvcc.compile_cuda

    def compile_to_ptx(
        code: str, target_format: str = "ptx", arch: Any = None, options: Any = None, *more: Any,
        **named: Any,
    ) -> Any:  # fmt: skip
        own = [options] if isinstance(options, str) else options or []
        # pip may install an nvcc that is newer than the headers that torch pins
        own = [*own, "-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK"]
        return compile_cuda(code, "ptx", arch, own, *more, **named)

    nvcc.compile_cuda = compile_to_ptx


class ExtensionLock:
    """torch's lock of a folder that it builds in; a process that is killed releases it."""

    def __init__(self, path: str, *settings: Any, **named: Any) -> None:
        self._path = path
        self._file = -1

    def try_acquire(self) -> bool:
        """Take the lock; return whether it was free."""
        self._file = os.open(self._path, os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            return False
        return True

    def wait(self) -> None:
        """Wait until the lock is free."""
        self._file = os.open(self._path, os.O_CREAT | os.O_RDWR)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self.release()

    def release(self) -> None:
        """Free the lock."""
        os.close(self._file)


CHANGES: dict[str, Callable[[Any], None]] = {
    "pycuda.compiler": serve_pycuda,
    "tilelang.contrib.nvcc": serve_tilelang,
    "tvm_ffi.cpp.extension": serve_tvm_ffi,
    "torch.utils.cpp_extension": serve_extensions,
    "cupy.cuda.compiler": serve_cupy,
    "cupy._environment": name_nvcc,
}
