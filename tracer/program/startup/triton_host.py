"""Triton over cutrace's library: PTX in place of machine code, and arrays of the host as arguments.

Triton's own launcher calls the driver; here it gets device memory in place of what lies in the
host's: NumPy's arrays and torch's tensors on the CPU. It runs in the Python of the user, so it
imports nothing but what every Python has.
"""

import copy
import ctypes
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

ALIGNMENT = 16
"""Kernels are compiled for pointers that are multiples of this, or are not, in the host."""

OLDEST_WITH_TENSOR_MEMORY = 100
WITHOUT_TENSOR_MEMORY = 90
_LEFT_OUT = re.compile(
    r"^\s*(?:@\S+\s+)?(tcgen05|clusterlaunchcontrol|multimem|st\.bulk)\b", re.MULTILINE
)
_DEVICE_POINTER = 3  # CU_POINTER_ATTRIBUTE_DEVICE_POINTER
_warned: set[str] = set()


def _warn(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        print(f"cutrace: {text}", file=sys.stderr)


class Pointer:
    """A place in device memory, as Triton takes a tensor."""

    def __init__(self, address: int) -> None:
        self._address = address

    def data_ptr(self) -> int:
        """Where it is."""
        return self._address


class HostArray:
    """An array of NumPy, or one on the device that others made, as Triton takes a tensor."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.dtype = array.dtype
        self.is_on_device = hasattr(array, "__cuda_array_interface__")

    def data_ptr(self) -> int:
        """Where it begins."""
        if self.is_on_device:
            return int(self.array.__cuda_array_interface__["data"][0])
        return int(self.array.ctypes.data)

    def bounds(self) -> tuple[int, int, bool]:
        """Where the memory lies of which it is a part, how large it is, and whether it is kept."""
        root = self.array
        while type(root.base) is type(root):
            root = root.base
        return int(root.ctypes.data), int(root.nbytes), not self.array.flags.writeable


class Lender:
    """Lends device memory in place of the host's while a kernel runs."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._places: dict[tuple[int, int], int] = {}
        self._lent: dict[tuple[int, int], bool] = {}
        self._scratch: list[int] = []

    def lend(self, argument: Any) -> Any:
        """Return what a kernel gets for an argument: itself, unless that lies in the host."""
        if isinstance(argument, tuple):
            return self._lend_tuple(argument)
        if hasattr(argument, "base") and hasattr(argument, "block_shape"):  # a tensor's descriptor
            moved = copy.copy(argument)
            object.__setattr__(moved, "base", self.lend(argument.base))
            return moved
        if not hasattr(argument, "data_ptr"):
            return argument
        address = argument.data_ptr()
        if not address or self._is_on_device(address):
            return Pointer(address)
        start, size, is_kept = _bounds(argument)
        return Pointer(self._take(start, size, is_kept) + address - start)

    def scratch(self, size: int, alignment: int, stream: Any) -> Pointer:
        """Return memory that a kernel needs while it runs, for tensor maps that it makes."""
        del stream
        place = self._allocate(0, size + alignment)
        self._scratch.append(place)
        return Pointer(-(-place // alignment) * alignment)

    def take_back(self) -> None:
        """Copy what kernels may have written to where it belongs, and free what they needed."""
        while self._scratch:
            self._driver.cuMemFree_v2(ctypes.c_uint64(self._scratch.pop()))
        for (start, size), is_kept in self._lent.items():
            if not is_kept:
                ctypes.memmove(start, self._places[start, size], size)
        self._lent.clear()

    def _lend_tuple(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        moved = [self.lend(each) for each in arguments]
        if all(new is old for new, old in zip(moved, arguments, strict=True)):
            return arguments
        kind: Any = type(arguments)
        return kind(*moved) if hasattr(arguments, "_fields") else tuple(moved)

    def _is_on_device(self, address: int) -> bool:
        pointer = ctypes.c_uint64()
        place = ctypes.c_uint64(address)
        status: int = self._driver.cuPointerGetAttribute(
            ctypes.byref(pointer), _DEVICE_POINTER, place
        )
        return status == 0

    def _take(self, start: int, size: int, is_kept: bool) -> int:
        key = start, size
        if key not in self._places:
            self._drop_what_overlaps(start, size)
            self._places[key] = self._allocate(start, size)
        if key not in self._lent:
            ctypes.memmove(self._places[key], start, size)
        self._lent[key] = is_kept and self._lent.get(key, True)
        return self._places[key]

    def _drop_what_overlaps(self, start: int, size: int) -> None:
        """Memory that the host has freed since, and used again in other pieces."""
        for first, bytes_ in list(self._places):
            if (
                first < start + size
                and start < first + bytes_
                and (first, bytes_) not in self._lent
            ):
                place = self._places.pop((first, bytes_))
                self._driver.cuMemFree_v2(ctypes.c_uint64(place - first % ALIGNMENT))

    def _allocate(self, start: int, size: int) -> int:
        place = ctypes.c_uint64()
        shift = start % ALIGNMENT
        byte_count = ctypes.c_size_t(size + shift)
        if self._driver.cuMemAlloc_v2(ctypes.byref(place), byte_count):
            raise MemoryError(f"the device has no room for {size} bytes more")
        return place.value + shift


def _bounds(argument: Any) -> tuple[int, int, bool]:
    """The memory that an argument is a part of: start, bytes, whether it must not change."""
    if isinstance(argument, HostArray):
        return argument.bounds()
    whole = getattr(argument, "base", argument)  # of triton.reinterpret
    if hasattr(whole, "untyped_storage"):
        storage = whole.untyped_storage()
        return storage.data_ptr(), storage.nbytes(), False
    return argument.data_ptr(), argument.nbytes, False


def adapt_driver(module: Any) -> None:
    """Have Triton's driver for NVIDIA show cutrace's device (`triton.backends.nvidia.driver`)."""
    kind, driver = module.CudaDriver, ctypes.CDLL("libcuda.so.1")
    if folder := os.environ.get("CUTRACE_LIBCUDA"):
        module.libcuda_dirs = lambda: [folder]

    def begin(self: Any) -> None:
        self.utils, self.launcher_cls = module.CudaUtils(), module.CudaLauncher
        properties = self.utils.get_device_properties
        self.utils.get_device_properties = lambda device: properties(
            device or 0
        )  # torch's CPU: None
        self.get_current_device = lambda: 0
        self.set_current_device = lambda device: None
        self.get_current_stream = lambda device=None: 0
        self.get_device_capability = lambda device=0: _capability(driver)

    def host_device(self: Any) -> Any:
        return sys.modules["torch"].device("cpu") if "torch" in sys.modules else "cpu"

    kind.__init__ = begin
    kind.is_active = staticmethod(lambda: True)
    kind.get_active_torch_device = host_device
    kind.get_benchmarker = lambda self: count
    kind.get_empty_cache_for_benchmark = lambda self: None
    kind.clear_cache = lambda self, cache: None
    module.CudaLauncher = _lending(module.CudaLauncher)


def _capability(driver: Any) -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    driver.cuInit(0)
    driver.cuDeviceComputeCapability(ctypes.byref(major), ctypes.byref(minor), 0)
    return major.value, minor.value


@cache
def _lender() -> Lender:
    return Lender()


def _lending(kind: Any) -> Any:
    """A launcher that lends memory to the kernel."""

    class LendingLauncher(kind):  # type: ignore[misc]
        """Triton's launcher, behind arguments that lie on the device."""

        def __call__(self, *arguments: Any) -> None:
            lender = _lender()
            try:
                with _allocating(lender):
                    super().__call__(*(lender.lend(each) for each in arguments))
            finally:
                lender.take_back()

    return LendingLauncher


@contextmanager
def _allocating(lender: Lender) -> Iterator[None]:
    """Have the program's allocator (`triton.set_allocator`) give memory on the device."""
    allocator = getattr(sys.modules.get("triton.runtime._allocation"), "_allocator", None)
    if allocator is None or type(allocator.get()).__name__ == "NullAllocator":
        yield
        return
    before = allocator.get()
    allocator.set(lender.scratch)
    try:
        yield
    finally:
        allocator.set(before)


def keep_ptx(module: Any) -> None:
    """Have `triton.backends.nvidia.compiler` end with PTX, which is what is recorded."""
    module.CUDABackend.make_cubin = lambda self, src, *more: src.encode()


def compile_for_what_is_there(module: Any) -> None:
    """Name parameters, and compile for 9.0 what only 10.0 runs (`triton.compiler`)."""
    compiled = module.compile

    def compile_again(src: Any, target: Any = None, options: Any = None, **more: Any) -> Any:
        kernel = compiled(src, target=target, options=options, **more)
        used = _LEFT_OUT.search(kernel.asm.get("ptx", ""))
        if used and target is not None and target.arch >= OLDEST_WITH_TENSOR_MEMORY:
            older = copy.copy(target)
            object.__setattr__(older, "arch", WITHOUT_TENSOR_MEMORY)
            _warn(
                f"{kernel.name}: Triton uses {used[1]} for compute capability {target.arch / 10}, "
                "which is not recorded; it is compiled for 9.0"
            )
            own = _own_options(module, target, options or {})
            kernel = compiled(src, target=older, options=own, **more)
        text = _with_names(kernel, src)
        kernel.kernel = _with_own_file(text, getattr(src, "fn", None)).encode()
        return kernel

    module.compile = compile_again


def _own_options(module: Any, target: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options that do not follow from the target."""
    usual = module.make_backend(target).parse_options({}).__dict__
    return {name: value for name, value in options.items() if value != usual.get(name)}


def _with_names(kernel: Any, source: Any) -> str:
    """The PTX with parameters that are called as Python calls them, behind the kernel's name."""
    text: str = kernel.kernel.decode()
    types = getattr(source, "signature", {})
    if any(not isinstance(each, str) or each.startswith("tensordesc") for each in types.values()):
        return text
    names = [str(name) for name, type_ in types.items() if type_ != "constexpr"]
    names += ["global_scratch", "profile_scratch"]
    start = f"{kernel.name}_param_"

    def rename(match: re.Match[str]) -> str:
        number = int(match[1])
        return start + names[number] if number < len(names) else match[0]

    return re.sub(rf"\b{re.escape(start)}(\d+)\b", rename, text)


def _with_own_file(text: str, function: Any) -> str:
    """The PTX with the file of its function where this lies now: Triton keeps PTX by content."""
    code = getattr(getattr(function, "fn", None), "__code__", None)
    if code is None:
        return text
    path = os.path.abspath(code.co_filename)
    pattern = re.compile(rf'^(\s*\.file\s+\d+\s+")[^"]*/{re.escape(os.path.basename(path))}"', re.M)
    return pattern.sub(lambda match: f'{match[1]}{path}"', text)


def take_arrays(module: Any) -> None:
    """Let kernels take arrays of NumPy, and those on the device (`triton.runtime.jit`)."""
    run = module.JITFunction.run

    def run_with_arrays(self: Any, *arguments: Any, **named: Any) -> Any:
        tensors = {name: _as_tensor(each) for name, each in named.items()}
        return run(self, *map(_as_tensor, arguments), **tensors)

    module.JITFunction.run = run_with_arrays


def _as_tensor(argument: Any) -> Any:
    if hasattr(argument, "data_ptr") or isinstance(argument, type):
        return argument
    numpy = sys.modules.get("numpy")
    is_array = numpy is not None and isinstance(argument, numpy.ndarray)
    return HostArray(argument) if is_array or _is_on_device(argument) else argument


def _is_on_device(argument: Any) -> bool:
    return hasattr(argument, "__cuda_array_interface__") and hasattr(argument, "dtype")


def count(
    call: Callable[[], Any],
    *arguments: Any,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **more: Any,
) -> Any:
    """Milliseconds of a call, as `triton.testing.do_bench`: the bound that its launches have.

    It is the least time that the device needs for what the kernel does, by its counters. The
    launches are in no trace. What launches nothing has the host's time.
    """
    del arguments, more
    milliseconds = _count(call)
    if quantiles is not None:
        times = [milliseconds] * len(quantiles)
        return times[0] if len(times) == 1 else times
    return [milliseconds] if return_mode == "all" else milliseconds


def _count(call: Callable[[], Any]) -> float:
    driver = ctypes.CDLL("libcuda.so.1")
    counter = ctypes.c_uint64()
    _warn(
        "times that Triton measures are counted: the least that the device needs for what a "
        "kernel does (bound_time); these launches are in no trace"
    )
    begun = time.perf_counter()
    status = driver._cutrace_count(1, None)
    try:
        call()
    finally:
        driver._cutrace_count(0, ctypes.byref(counter))
    if status or not counter.value:
        return 1e3 * (time.perf_counter() - begun)
    return counter.value / 1e9


def count_in_place_of_timing(module: Any) -> None:
    """Have all that `triton.testing` measures counted."""
    for name in ("do_bench", "do_bench_cudagraph", "do_bench_proton"):
        if hasattr(module, name):
            setattr(module, name, count)


CHANGES: dict[str, Callable[[Any], None]] = {
    "triton.backends.nvidia.driver": adapt_driver,
    "triton.backends.nvidia.compiler": keep_ptx,
    "triton.compiler": compile_for_what_is_there,
    "triton.runtime.jit": take_arrays,
    "triton.testing": count_in_place_of_timing,
}
"""What is changed in which module, when that is imported."""
