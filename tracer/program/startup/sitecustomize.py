"""Startup hook of a recorded Python: patch packages as they are imported.

The interpreter imports this module by itself. Kernels of Numba get line information for their
Python source. At exit, packages that called a function our library refused are named with their
versions; below an error about a missing library, the package that has it. The code runs in other
interpreters than cutrace's, so it imports the standard library only. A `sitecustomize` of the
user's own runs as well.
"""

import atexit
import ctypes
import importlib.util
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = str(Path(__file__).parent)
PACKAGES = (
    *("numba_cuda", "cupy", "triton", "torch", "jax", "jaxlib", "pycuda", "warp"),
    *("cuda.core", "cuda.bindings"),
)
BEFORE_COMPILING: list[Callable[[Any], None]] = []
"""Hooks called with the Python function of each Numba kernel before it is compiled."""


_MISSING_LIBRARY = re.compile(r"lib(\w+)\.so[.\d]*: cannot open shared object file")
_WHEEL = re.compile(r"(nvidia-(?:cuda-)?([a-z]+)[\w-]*)[^;]*")

# CuTe DSL says so because the recorder asks it for PTX (CUTE_DSL_KEEP).
warnings.filterwarnings("ignore", "Cache is disabled as user wants to generate PTX")


class AfterImport(MetaPathFinder):
    """Import hook that calls a function with a module after its import."""

    def __init__(self, name: str, then: Callable[[Any], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the module by the other finders; wrap its loader so that it calls the function."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        loader: Any = spec and spec.loader
        if loader is not None:
            run = loader.exec_module

            def run_and_call(module: ModuleType) -> None:
                run(module)
                self._then(module)

            loader.exec_module = run_and_call
        return spec


def give_lines(dispatcher: Any) -> None:
    """Compile all kernels of `numba.cuda.dispatcher` with line information."""
    kind = dispatcher.CUDADispatcher
    kind.compile, kind.compile_device = map(_with_lines, (kind.compile, kind.compile_device))


def _with_lines(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with line information; retry without it if Numba fails on it (empty tuples)."""

    def compile_with_lines(self: Any, *arguments: Any, **named: Any) -> Any:
        options = self.targetoptions
        for callback in BEFORE_COMPILING:
            callback(self.py_func)
        if options.get("debug") or options.get("lineinfo"):
            return compiled(self, *arguments, **named)
        options["lineinfo"] = True
        try:
            return compiled(self, *arguments, **named)
        except Exception as error:
            if "NumbaError" in {each.__name__ for each in type(error).__mro__}:
                raise
        finally:
            options["lineinfo"] = False
        return compiled(self, *arguments, **named)

    return compile_with_lines


def give_warp_lines(config: Any) -> None:
    """Compile the kernels of Warp to PTX with line information.

    Its toolkit is newer than the driver that we stand for: by itself it compiles to machine code.
    It assembles the PTX, too, but leaves the text in its cache, where the recorder finds it.
    """
    config.lineinfo = True
    config.cuda_output = getattr(config, "cuda_output", None) or "ptx"


def flag_as_nvrtc_does(debuginfo: Any) -> None:
    """Flag the debug information's version as NVRTC does: as an error on mismatch.

    Numba flags it as a warning, and nvJitLink links only modules with equal flags
    (`numba.cuda.debuginfo`).
    """
    kind = debuginfo.DIBuilder
    flagged, constant = kind._set_module_flags, kind._const_int
    error, warning = 1, 2  # behaviors of module flags in LLVM's language reference

    def set_flags(self: Any) -> None:
        self._const_int = lambda number: constant(error if number == warning else number)
        flagged(self)
        del self._const_int

    kind._set_module_flags = set_flags


def tell_versions() -> None:
    """Print the versions on stderr if our library refused a call of this process."""
    count = getattr(ctypes.CDLL(None), "__cudaCountRefusals", None)
    if count is None or not count():
        return
    packages = ((name, sys.modules.get(name)) for name in PACKAGES)
    versions = [
        f"{name} {getattr(module, '__version__', '')}".strip()
        for name, module in packages
        if module
    ]
    if versions:
        print(
            f"cutrace: what is not supported was asked for by {', '.join(versions)}",
            file=sys.stderr,
        )


def name_missing_library(error: BaseException) -> None:
    """Print which package has the library that an error says cannot be opened."""
    library = _MISSING_LIBRARY.search(str(error))
    if library and (wheel := find_wheel(library[1].lower())):
        print(f"cutrace: install it with: python -m pip install '{wheel}'", file=sys.stderr)


def find_wheel(library: str) -> str:
    """Return what an installed package requires that has a library; a missing one first.

    `library` is a file's name without `lib` and `.so`, in small letters.
    """
    from importlib.metadata import distributions  # every start of Python would wait for it

    packages = [*distributions()]
    installed = {package.name for package in packages}
    wheels = (_WHEEL.match(each) for package in packages for each in package.requires or ())
    fitting = [wheel for wheel in wheels if wheel and library.startswith(wheel[2])]
    order = [(wheel[1] not in installed, len(wheel[2]), wheel[0].strip()) for wheel in fitting]
    return max(order, default=(False, 0, ""))[2]


def explain_missing_libraries() -> None:
    """Name the package of a missing library after the traceback that ends the program."""
    show = sys.excepthook

    def show_and_name(kind: Any, error: BaseException, trace: Any) -> None:
        show(kind, error, trace)
        name_missing_library(error)

    sys.excepthook = show_and_name


def run_the_next() -> None:
    """Run the `sitecustomize` that ours shadows."""
    sys.path[:] = [place for place in sys.path if place != HERE]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec and spec.loader:
        sys.modules["sitecustomize"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


def patch_packages() -> None:
    """Patch the imported packages now, and the others on import."""
    hosts = ("triton", "torch", "jax", "cupy", "nvcc", "cuda_python")
    others = (_sibling_module(f"{name}_host").CHANGES for name in hosts)
    for name, change in chain(_CHANGES.items(), *(each.items() for each in others)):
        if module := sys.modules.get(name):
            change(module)
        else:
            sys.meta_path.insert(0, AfterImport(name, change))


def _sibling_module(name: str) -> Any:
    """Load a module of this folder, which is not on sys.path."""
    spec = importlib.util.spec_from_file_location(f"cutrace_{name}", Path(HERE, f"{name}.py"))
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_CHANGES: dict[str, Callable[[Any], None]] = {
    "numba.cuda.dispatcher": give_lines,
    "numba.cuda.debuginfo": flag_as_nvrtc_does,
    "warp.config": give_warp_lines,
}

if __name__ == "sitecustomize":
    patch_packages()
    atexit.register(tell_versions)
    explain_missing_libraries()
    run_the_next()
