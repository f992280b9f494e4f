"""Run Triton over cutrace's library: PTX instead of machine code, host arrays as arguments.

Triton's own launcher calls the driver. Here the launcher replaces host pointers, of NumPy arrays
and torch CPU tensors, by device copies for the duration of a kernel. The code runs in the user's
Python, so it imports the standard library only.
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
"""Triton specializes kernels on whether pointers are multiples of this; copies keep that."""

_DEVICE_POINTER = 3  # CU_POINTER_ATTRIBUTE_DEVICE_POINTER
_warned: set[str] = set()


def _warn(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        print(f"cutrace: {text}", file=sys.stderr)


class Pointer:
    """A device address in the form of a Triton tensor."""

    def __init__(self, address: int) -> None:
        self._address = address

    def data_ptr(self) -> int:
        """Return the address."""
        return self._address


class HostArray:
    """A NumPy array, or another package's device array, in the form of a Triton tensor."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.dtype = array.dtype
        self.is_on_device = hasattr(array, "__cuda_array_interface__")

    def data_ptr(self) -> int:
        """Return the start address."""
        if self.is_on_device:
            return int(self.array.__cuda_array_interface__["data"][0])
        return int(self.array.ctypes.data)

    def bounds(self) -> tuple[int, int, bool]:
        """Return start and size of the underlying allocation, and whether it is read-only."""
        root = self.array
        while type(root.base) is type(root):
            root = root.base
        return int(root.ctypes.data), int(root.nbytes), not self.array.flags.writeable


class Lender:
    """Copies host memory to the device for the duration of a kernel."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._places: dict[tuple[int, int], int] = {}
        self._lent: dict[tuple[int, int], bool] = {}
        self._scratch: list[int] = []

    def lend(self, argument: Any) -> Any:
        """Return the kernel's value of an argument: the argument itself unless it is in host
        memory.
        """
        if isinstance(argument, tuple):
            return self._lend_tuple(argument)
        if hasattr(argument, "base") and hasattr(argument, "block_shape"):  # a tensor descriptor
            moved = copy.copy(argument)
            object.__setattr__(moved, "base", self.lend(argument.base))
            return moved
        if not hasattr(argument, "data_ptr"):
            return argument
        address = argument.data_ptr()
        if not address or self._is_on_device(address):
            return Pointer(address)
        # Copy the whole allocation, not the view: two arguments may be views of one array, and must
        # overlap on the device as they do in the host.
        start, size, is_kept = _bounds(argument)
        return Pointer(self._take(start, size, is_kept) + address - start)

    def scratch(self, size: int, alignment: int, stream: Any) -> Pointer:
        """Return device scratch memory for one kernel, for tensor maps that it makes."""
        del stream
        place = self._allocate(0, size + alignment)
        self._scratch.append(place)
        return Pointer(-(-place // alignment) * alignment)

    def take_back(self) -> None:
        """Copy back what kernels may have written, and free the scratch memory."""
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
        # Device memory is reused by later kernels over the same allocation; contents are copied in
        # once per kernel. One writable view is enough for the allocation to be copied back.
        key = start, size
        if key not in self._places:
            self._drop_what_overlaps(start, size)
            self._places[key] = self._allocate(start, size)
        if key not in self._lent:
            ctypes.memmove(self._places[key], start, size)
        self._lent[key] = is_kept and self._lent.get(key, True)
        return self._places[key]

    def _drop_what_overlaps(self, start: int, size: int) -> None:
        """Free cached copies that overlap: the host has freed and reused that memory."""
        for first, bytes_ in list(self._places):
            if (
                first < start + size
                and start < first + bytes_
                and (first, bytes_) not in self._lent
            ):
                place = self._places.pop((first, bytes_))
                self._driver.cuMemFree_v2(ctypes.c_uint64(place - first % ALIGNMENT))

    def _allocate(self, start: int, size: int) -> int:
        # Keep the address modulo ALIGNMENT: Triton specializes kernels on it.
        place = ctypes.c_uint64()
        shift = start % ALIGNMENT
        byte_count = ctypes.c_size_t(size + shift)
        if self._driver.cuMemAlloc_v2(ctypes.byref(place), byte_count):
            raise MemoryError(f"the device has no room for {size} bytes more")
        return place.value + shift


def _bounds(argument: Any) -> tuple[int, int, bool]:
    """Return the allocation that holds an argument: start, bytes, whether it must not change."""
    if isinstance(argument, HostArray):
        return argument.bounds()
    whole = getattr(argument, "base", argument)  # result of triton.reinterpret
    if hasattr(whole, "untyped_storage"):
        storage = whole.untyped_storage()
        return storage.data_ptr(), storage.nbytes(), False
    return argument.data_ptr(), argument.nbytes, False


def adapt_driver(module: Any) -> None:
    """Make Triton's NVIDIA driver present cutrace's device (`triton.backends.nvidia.driver`)."""
    kind, driver = module.CudaDriver, ctypes.CDLL("libcuda.so.1")
    if folder := os.environ.get("CUTRACE_LIBCUDA"):
        module.libcuda_dirs = lambda: [folder]

    def begin(self: Any) -> None:
        self.utils, self.launcher_cls = module.CudaUtils(), module.CudaLauncher
        properties = self.utils.get_device_properties
        self.utils.get_device_properties = lambda device: properties(
            device or 0
        )  # None on torch's CPU device
        self.get_current_device = lambda: 0
        self.set_current_device = lambda device: None
        self.get_current_stream = lambda device=None: _stream()
        self.get_device_capability = lambda device=0: _capability(driver)

    def torch_device(self: Any) -> Any:
        kind = "cuda" if _has_cuda(sys.modules.get("torch")) else "cpu"
        return sys.modules["torch"].device(kind) if "torch" in sys.modules else kind

    kind.__init__ = begin
    kind.is_active = staticmethod(lambda: True)
    kind.get_active_torch_device = torch_device
    kind.get_benchmarker = lambda self: count
    kind.get_empty_cache_for_benchmark = lambda self: None
    kind.clear_cache = lambda self, cache: None
    module.CudaLauncher = _lending(module.CudaLauncher)


def _has_cuda(torch: Any) -> bool:
    return bool(torch and getattr(torch.version, "cuda", None))


def _stream() -> int:
    """Return torch's current stream, if torch has any."""
    torch = sys.modules.get("torch")
    return int(torch.cuda.current_stream().cuda_stream) if torch and _has_cuda(torch) else 0


def _capability(driver: Any) -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    driver.cuInit(0)
    driver.cuDeviceComputeCapability(ctypes.byref(major), ctypes.byref(minor), 0)
    return major.value, minor.value


@cache
def _lender() -> Lender:
    return Lender()


def _lending(kind: Any) -> Any:
    """Return a launcher class that copies host arguments to the device."""

    class LendingLauncher(kind):  # type: ignore[misc]
        """Triton's launcher with all arguments in device memory."""

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
    """Make the program's allocator (`triton.set_allocator`) return device memory."""
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
    """Stop the pipeline of `triton.backends.nvidia.compiler` at PTX: the recorder executes that."""
    module.CUDABackend.make_cubin = lambda self, src, *more: src.encode()


def keep_parameter_names(module: Any) -> None:
    """Keep the names of parameters (`triton.compiler`)."""
    compiled = module.compile

    def compile_again(src: Any, target: Any = None, options: Any = None, **more: Any) -> Any:
        kernel = compiled(src, target=target, options=options, **more)
        text = _with_names(kernel, src)
        kernel.kernel = _with_own_file(text, getattr(src, "fn", None)).encode()
        return kernel

    module.compile = compile_again


def _with_names(kernel: Any, source: Any) -> str:
    """Return the PTX with parameters named as in Python, after the kernel's name."""
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
    """Return the PTX with the function's current file: Triton's cache is keyed by content."""
    code = getattr(getattr(function, "fn", None), "__code__", None)
    if code is None:
        return text
    path = os.path.abspath(code.co_filename)
    pattern = re.compile(rf'^(\s*\.file\s+\d+\s+")[^"]*/{re.escape(os.path.basename(path))}"', re.M)
    return pattern.sub(lambda match: f'{match[1]}{path}"', text)


def take_arrays(module: Any) -> None:
    """Let kernels accept NumPy arrays and foreign device arrays (`triton.runtime.jit`)."""
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
    """Return milliseconds of a call, as `triton.testing.do_bench`: the bound of its launches.

    The bound is the least time that the device needs for the kernels' work, from their counters.
    The launches are in no trace. A call without launches is timed on the host.
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
    """Replace all measurements of `triton.testing` by the bound."""
    for name in ("do_bench", "do_bench_cudagraph", "do_bench_proton"):
        if hasattr(module, name):
            setattr(module, name, count)


def count_for_inductor(module: Any) -> None:
    """Replace the measurements of `torch._inductor.runtime.benchmarking` by the bound."""

    def benchmark(self: Any, call: Callable[[], Any], return_mode: str = "min", **more: Any) -> Any:
        return count(call, return_mode=return_mode)

    for kind in vars(module).values():
        for name in ("benchmark_gpu", "benchmark_gpu_with_cuda_graph"):
            if isinstance(kind, type) and name in vars(kind):
                setattr(kind, name, benchmark)


CHANGES: dict[str, Callable[[Any], None]] = {
    "torch._inductor.runtime.benchmarking": count_for_inductor,
    "triton.backends.nvidia.driver": adapt_driver,
    "triton.backends.nvidia.compiler": keep_ptx,
    "triton.compiler": keep_parameter_names,
    "triton.runtime.jit": take_arrays,
    "triton.testing": count_in_place_of_timing,
}
"""The patch of each module, applied on its import."""
