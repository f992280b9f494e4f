"""Compute PyTorch's own operators on the host, or have them run; record what it compiles.

ATen's kernels are machine code. With `--libraries run` they run as such, and are recorded; else an
operator for CUDA tensors is computed by its CPU kernel over the same memory, in its turn in the
stream, which is faster; the trace has its name as a library call. Kernels of `torch.compile`
(Triton) and of extensions run and are recorded. A torch without CUDA stays on the CPU; Triton
kernels accept its tensors. The code runs in the user's Python, so it imports the standard library
only.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

_MESSAGE = (
    "cutrace: torch runs on the CPU: it was built without CUDA. Triton kernels accept the CPU"
    " tensors."
)
_OPERATORS = (
    "cutrace: torch's built-in CUDA kernels are machine code: its operators are computed on the"
    " host, and their kernels are not counted (cutrace info names them); with --libraries run they"
    " run"
)
NATIVE = (
    *("empty", "_efficientzerotensor", "as_strided", "set_", "resize_", "view", "unfold"),
    *("_reshape_alias", "_copy_from", "_local_scalar_dense", "record_stream", "is_set_to"),
    *("_pin_memory", "is_pinned", "_to_copy"),
)
"""Beginnings of operators of ATen that launch no kernel, and are left to it."""
COMPOSITE = ("copy_", "convolution")
"""Operators without a kernel for CUDA alone: ATen's for all devices launches kernels by itself."""
STATISTICS = ("running_mean", "running_var")
"""Arguments that normalizations write, as their schema does not say."""
_ANY_DIRECTION = 4  # cudaMemcpyDefault

observers: list[Callable[[str, Any], None]] = []
"""What is told of each operator computed on the host, outside of graphs: its name, its result."""

INDUCTOR = {
    "TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER": "0",  # it loads machine code from files
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # workers would not be patched
}


def choose_host(torch: Any) -> None:
    """Give a torch that was built with CUDA its device, and keep any other on the CPU."""
    if getattr(torch.version, "cuda", None):
        compute_operators(torch)
    else:
        keep_on_host(torch)


def keep_on_host(torch: Any) -> None:
    """Make `torch.cuda` report no device, and print the reason at the first query."""
    warnings: list[str] = []

    def is_available() -> bool:
        if not warnings:
            warnings.append(_MESSAGE)
            print(_MESSAGE, file=sys.stderr)
        return False

    torch.cuda.is_available = is_available
    torch.cuda.device_count = lambda: int(is_available())
    torch.cuda.get_device_capability = lambda device=None: _capability()


def _capability() -> tuple[int, int]:
    """Return the compute capability of the device of `-d`."""
    driver = ctypes.CDLL("libcuda.so.1")
    major, minor = ctypes.c_int(), ctypes.c_int()
    driver.cuInit(0)
    driver.cuDeviceComputeCapability(ctypes.byref(major), ctypes.byref(minor), 0)
    return major.value, minor.value


def compute_operators(torch: Any) -> None:
    """Register a kernel on the host for every operator that ATen has for CUDA, unless they run."""
    for name, value in INDUCTOR.items():
        os.environ.setdefault(name, value)
    push_ranges(torch)
    name_tensors(torch)
    if os.environ.get("CUTRACE_LIBRARIES") == "run":
        return
    torch.backends.cudnn.enabled = False
    for kind in ("flash", "mem_efficient", "cudnn"):  # the CPU has none of their operators
        getattr(torch.backends.cuda, f"enable_{kind}_sdp")(False)
    library = torch.library.Library("aten", "IMPL")
    host = OperatorHost(torch, library)
    names = torch._C._dispatch_get_registrations_for_dispatch_key("CUDA")
    found = (name.removeprefix("aten::") for name in names if name.startswith("aten::"))
    for name in (*found, *COMPOSITE):
        if not name.startswith(NATIVE) and "cudnn" not in name and "miopen" not in name:
            host.register(name)


def push_ranges(torch: Any) -> None:
    """Make the ranges of `torch.profiler.record_function` NVTX ranges, too."""
    kind = torch.autograd.profiler.record_function
    enter, leave = kind.__enter__, kind.__exit__

    def push(self: Any) -> Any:
        torch.cuda.nvtx.range_push(self.name)
        return enter(self)

    def pop(self: Any, *problem: Any) -> Any:
        torch.cuda.nvtx.range_pop()
        return leave(self, *problem)

    kind.__enter__, kind.__exit__ = push, pop


POOLS = ("_cuda_beginAllocateCurrentThreadToPool", "_cuda_beginAllocateToPool")
"""Functions of torch._C that begin a pool of memory for a graph."""


def name_tensors(torch: Any) -> None:
    """Make each tensor an array of its own, with the name of a module's parameter.

    So the trace has its accesses apart, and one behind its end is outside of every array. Graphs
    need torch's own pools, which come back with the first of them.
    """
    enable = torch._C._cuda_cudaCachingAllocator_enable
    enable(False)

    def with_pools(begin: Callable[..., Any]) -> Callable[..., Any]:
        def begin_with_pools(*arguments: Any, **named: Any) -> Any:
            enable(True)
            return begin(*arguments, **named)

        return begin_with_pools

    graph = torch.cuda.CUDAGraph
    graph.capture_begin = with_pools(graph.capture_begin)
    for name in POOLS:
        if begin := getattr(torch._C, name, None):
            setattr(torch._C, name, with_pools(begin))
    kind = torch.nn.Module
    apply, depth = kind._apply, [0]

    def apply_and_name(self: Any, *arguments: Any, **named: Any) -> Any:
        depth[0] += 1
        try:
            result = apply(self, *arguments, **named)
        finally:
            depth[0] -= 1
        if not depth[0]:  # the outermost module has the whole names
            for name, value in (*self.named_parameters(), *self.named_buffers()):
                if value.is_cuda and type(value) in (torch.Tensor, torch.nn.Parameter):
                    _driver()._cutrace_name(ctypes.c_uint64(value.data_ptr()), name.encode())
        return result

    kind._apply = apply_and_name


class OperatorHost:
    """Kernels for CUDA tensors that call the CPU's over the same memory."""

    def __init__(self, torch: Any, library: Any) -> None:
        self._torch = torch
        self._library = library
        self._turns: list[Any] = []  # functions that captured graphs call
        self._has_warned = False

    def register(self, name: str) -> None:
        """Register an operator, by its name without `aten::`; leave out what torch refuses."""
        base, _, overload = name.partition(".")
        operator = getattr(getattr(self._torch.ops.aten, base), overload or "default")
        own = self._copy if name == "copy_" else self._on_host(operator)
        self._library.impl(name, own, "CUDA")

    def _on_host(self, operator: Any) -> Callable[..., Any]:
        """Return the kernel of one operator."""
        name = operator.name().encode()

        def compute(*arguments: Any, **named: Any) -> Any:
            call = OperatorCall(self._torch, operator, arguments, named)
            self._take_turn(name, call)
            for observe in observers if call.is_done else ():
                observe(operator.name(), call.result)
            return call.result

        return compute

    def _take_turn(self, name: bytes, call: "OperatorCall") -> None:
        if not self._has_warned:
            self._has_warned = True
            print(_OPERATORS, file=sys.stderr)
        stream = self._torch.cuda.current_stream()
        is_capturing = _is_capturing(stream)
        errors: list[BaseException] = []

        def turn() -> None:
            try:
                call.run()
            except BaseException as error:  # it may not pass through C
                errors.append(error)

        if is_capturing:
            call.capture()
        function = _TURN(turn)
        written = ctypes.c_void_p(next((each.data_ptr() for each in call.written()), 0))
        if is_capturing:
            self._turns.append((function, name))
        _driver()._cutrace_operator(ctypes.c_void_p(stream.cuda_stream), name, written, function)
        if not is_capturing and not call.is_done and not errors:
            stream.synchronize()
        if errors:
            raise errors[0]

    def _copy(self, to: Any, source: Any, non_blocking: bool = False) -> Any:
        """Copy as the driver does if the bytes stay the same, otherwise on the host."""
        alike = to.dtype == source.dtype and to.shape == source.shape
        alike = alike and to.is_contiguous() and source.is_contiguous()
        alike = alike and not (to.is_neg() or source.is_neg() or to.is_conj() or source.is_conj())
        if not alike:
            return self._on_host(self._torch.ops.aten.copy_.default)(to, source, non_blocking)
        if to.numel():
            stream = self._torch.cuda.current_stream()
            size = ctypes.c_size_t(to.numel() * to.element_size())
            places = map(ctypes.c_void_p, (to.data_ptr(), source.data_ptr()))
            status = _runtime().cudaMemcpyAsync(
                *places, size, _ANY_DIRECTION, ctypes.c_void_p(stream.cuda_stream)
            )
            if status:
                raise RuntimeError(f"CUDA error {status} of a copy")
            if not non_blocking and not _is_capturing(stream):
                stream.synchronize()
        return to


class OperatorCall:
    """A call of an operator with its arguments; a graph that has captured it calls `run` again."""

    def __init__(
        self, torch: Any, operator: Any, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        self._torch = torch
        self._operator = operator
        self._arguments = arguments, named
        self.is_done = False
        self.result: Any = None

    def written(self) -> list[Any]:
        """Return the tensors among the arguments that are written."""
        values, named = self._arguments
        found: list[Any] = []
        for number, parameter in enumerate(self._operator._schema.arguments):
            value: Any = values[number] if number < len(values) else named.get(parameter.name)
            is_written = parameter.alias_info and parameter.alias_info.is_write
            if is_written or parameter.name in STATISTICS:
                found += filter(self._is_tensor, _leaves(value))
        return found

    def capture(self) -> None:
        """Make the results, for their shapes, and leave what a replay is to write."""
        before = [(each, self._view(each).clone()) for each in self.written()]
        self.run()
        for tensor, values in before:
            if tensor.shape == values.shape:
                self._view(tensor).copy_(values)

    def run(self) -> None:
        """Compute the results, into the tensors of an earlier run if there was one."""
        moved: list[tuple[Any, Any]] = []
        values, named = self._map(lambda each: self._to_host(each, moved), self._arguments)
        with self._torch.no_grad():
            result = self._compute(values, named)
        for device, host in moved:
            self._follow(device, host)
        results = list(_leaves(result))
        earlier = list(_leaves(self.result)) if self.is_done else [None] * len(results)
        pairs = {id(host): device for device, host in moved}
        made = iter(
            [self._to_device(new, old, pairs) for new, old in zip(results, earlier, strict=True)]
        )
        self.result, self.is_done = self._map(lambda each: next(made), result), True

    def _compute(self, values: Any, named: Any) -> Any:
        """Call the CPU kernel, or compute what the operator is made of."""
        name = self._operator.name()
        if own := PARTS.get(name):
            return own(self._torch, *values, **named)
        try:
            return self._operator(*values, **named)
        except NotImplementedError:
            parts = self._torch._decomp.decomposition_table.get(self._operator)
            if parts is None:
                raise NotImplementedError(
                    f"cutrace: {name} is machine code on a GPU, and torch has no CPU kernel that"
                    " computes it on the host: choose --libraries run"
                ) from None
            return parts(*values, **named)

    def _is_tensor(self, value: Any) -> bool:
        return isinstance(value, self._torch.Tensor)

    def _map(self, change: Callable[[Any], Any], value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)([self._map(change, each) for each in value])
        if isinstance(value, dict):
            return {key: self._map(change, each) for key, each in value.items()}
        return change(value)

    def _to_host(self, value: Any, moved: list[tuple[Any, Any]]) -> Any:
        torch = self._torch
        if self._is_tensor(value) and value.device.type == "cuda":
            for device, host in moved:
                if device is value:
                    return host
            moved.append((value, self._view(value)))
            return moved[-1][1]
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cpu")
        if isinstance(value, torch.Generator) and value.device.type == "cuda":
            return _host_generator(torch, value)
        return value

    def _view(self, tensor: Any) -> Any:
        """Return a CPU tensor over the memory of a CUDA tensor."""
        torch = self._torch
        if not tensor.numel():
            return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
        storage, item = tensor.untyped_storage(), tensor.element_size()
        data = (ctypes.c_byte * (storage.nbytes() // item * item)).from_address(storage.data_ptr())
        whole = torch.frombuffer(data, dtype=torch.uint8).view(tensor.dtype)
        view = whole.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
        view = torch._conj(view) if tensor.is_conj() else view
        return torch._neg_view(view) if tensor.is_neg() else view

    def _follow(self, device: Any, host: Any) -> None:
        """Give a CUDA tensor the shape that an operator gave to an empty `out=` argument."""
        if device.shape != host.shape:
            device.resize_(host.shape)
            self._view(device).copy_(host)

    def _to_device(self, result: Any, earlier: Any, pairs: dict[int, Any]) -> Any:
        if not self._is_tensor(result) or id(result) in pairs:
            return pairs.get(id(result), result)
        if earlier is None:
            earlier = self._torch.empty_strided(
                result.size(), result.stride(), dtype=result.dtype, device="cuda"
            )
        if result.numel():
            self._view(earlier).copy_(result)
        return earlier


def _lstm_cell(
    torch: Any, ours: Any, hidden: Any, before: Any, bias: Any = None, hidden_bias: Any = None
) -> tuple[Any, Any, Any]:
    """Return output, state, and the gates for the backward pass."""
    gates = ours + hidden if bias is None else ours + hidden + bias + hidden_bias
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    state = f * before + i * g
    return o * state.tanh(), state, torch.cat((i, f, g, o), 1)


def _lstm_cell_backward(
    torch: Any, of_output: Any, of_state: Any, before: Any, state: Any, gates: Any, has_bias: bool
) -> tuple[Any, Any, Any]:
    """Return the gradients of the gates, of the state before, and of the bias."""
    i, f, g, o = gates.chunk(4, 1)
    tanh = state.tanh()
    of_output = torch.zeros_like(state) if of_output is None else of_output
    through = of_output * o * (1 - tanh * tanh)
    through = through if of_state is None else through + of_state
    parts = (
        *(through * g * i * (1 - i), through * before * f * (1 - f)),
        *(through * i * (1 - g * g), of_output * tanh * o * (1 - o)),
    )
    of_gates = torch.cat(parts, 1)
    return of_gates, through * f, of_gates.sum(0) if has_bias else None


def _gru_cell(
    torch: Any, ours: Any, hidden: Any, before: Any, bias: Any = None, hidden_bias: Any = None
) -> tuple[Any, Any]:
    """Return the output, and the gates for the backward pass."""
    if bias is not None:
        ours, hidden = ours + bias, hidden + hidden_bias
    (r, z, n), (hidden_r, hidden_z, hidden_n) = ours.chunk(3, 1), hidden.chunk(3, 1)
    r, z = (r + hidden_r).sigmoid(), (z + hidden_z).sigmoid()
    n = (n + r * hidden_n).tanh()
    return n + z * (before - n), torch.cat((r, z, n, before, hidden_n), 1)


def _gru_cell_backward(torch: Any, of_output: Any, gates: Any, has_bias: bool) -> tuple[Any, ...]:
    """Return the gradients of both gates, of the output before, and of both biases."""
    r, z, n, before, hidden_n = gates.chunk(5, 1)
    of_n = of_output * (1 - z) * (1 - n * n)
    of_r, of_z = of_n * hidden_n * r * (1 - r), of_output * (before - n) * z * (1 - z)
    ours, hidden = torch.cat((of_r, of_z, of_n), 1), torch.cat((of_r, of_z, of_n * r), 1)
    biases = (ours.sum(0), hidden.sum(0)) if has_bias else (None, None)
    return ours, hidden, of_output * z, *biases


def _flash_attention(
    torch: Any,
    query: Any,
    key: Any,
    value: Any,
    dropout: float = 0.0,
    is_causal: bool = False,
    has_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Return output and logarithms of sums; a GPU's lengths of sequences and seeds are empty."""
    compute = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    output, sums = compute(query, key, value, dropout, is_causal, scale=scale)
    lengths, seed = torch.empty(0, dtype=torch.int32), torch.zeros(2, dtype=torch.int64)
    return (
        output,
        sums,
        lengths,
        lengths,
        query.size(2),
        key.size(2),
        seed,
        seed,
        query.new_empty(0),
    )


def _flash_attention_backward(
    torch: Any,
    above: Any,
    query: Any,
    key: Any,
    value: Any,
    output: Any,
    sums: Any,
    *others: Any,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Return the gradients of query, key and value."""
    _, _, _, _, dropout, is_causal, _, _ = others
    compute = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    inputs = (query, key, value, output, sums)
    return tuple(compute(above, *inputs, dropout, is_causal, scale=scale))


def _efficient_attention(
    torch: Any,
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    has_sums: bool,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Return output, logarithms of sums, and seeds."""
    compute = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    results = compute(query, key, value, dropout, is_causal, attn_mask=bias, scale=scale)
    seed = torch.zeros((), dtype=torch.int64)
    return *results, seed, seed


def _efficient_attention_backward(
    torch: Any,
    above: Any,
    query: Any,
    key: Any,
    value: Any,
    bias: Any,
    output: Any,
    sums: Any,
    *others: Any,
    scale: float | None = None,
) -> tuple[Any, ...]:
    """Return the gradients of query, key and value; that of a bias is not computed."""
    _, _, dropout, wanted, *causal = others
    if wanted[3]:
        raise NotImplementedError("cutrace: the gradient of an attention's bias is not computed")
    compute = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    inputs = (query, key, value, output, sums)
    is_causal = bool(causal and causal[0])
    results = compute(above, *inputs, dropout, is_causal, attn_mask=bias, scale=scale)
    return *results, None


PARTS: dict[str, Callable[..., Any]] = {
    "aten::_scaled_dot_product_flash_attention": _flash_attention,
    "aten::_scaled_dot_product_flash_attention_backward": _flash_attention_backward,
    "aten::_scaled_dot_product_efficient_attention": _efficient_attention,
    "aten::_scaled_dot_product_efficient_attention_backward": _efficient_attention_backward,
    "aten::_thnn_fused_lstm_cell": _lstm_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "aten::_thnn_fused_gru_cell": _gru_cell,
    "aten::_thnn_fused_gru_cell_backward": _gru_cell_backward,
}
"""Operators that torch has for a GPU alone: a CPU has others, or computes their parts."""


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


_TURN = ctypes.CFUNCTYPE(None)
_generators: dict[int, Any] = {}


def _host_generator(torch: Any, generator: Any) -> Any:
    """Return the CPU generator that stands for a CUDA one: the same seed."""
    seed = generator.initial_seed()
    own = _generators.get(id(generator))
    if own is None or own.initial_seed() != seed:
        _generators[id(generator)] = own = torch.Generator().manual_seed(seed)
    return own


def _is_capturing(stream: Any) -> bool:
    state = ctypes.c_int()
    _runtime().cudaStreamIsCapturing(ctypes.c_void_p(stream.cuda_stream), ctypes.byref(state))
    return state.value == 1  # cudaStreamCaptureStatusActive


@cache
def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


@cache
def _runtime() -> Any:
    major = sys.modules["torch"].version.cuda.partition(".")[0]
    return ctypes.CDLL(f"libcudart.so.{major}")


CHANGES: dict[str, Callable[[Any], None]] = {"torch": choose_host}
