"""Compare what PyTorch's and NVIDIA's kernels compute under cutrace with a CPU.

cutrace record [--libraries run] [-d a100] scripts/try_torch.py -- [CASE...]

torch (from PyPI, 5 GB with its libraries) and bitsandbytes are to be installed. Without
--libraries run most operators are computed on the host. Exits with 1 if a difference is larger
than its bound.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

torch: Any = importlib.import_module("torch")
functional: Any = torch.nn.functional

Difference = tuple[str, float, float]
"""What was computed, its largest difference from the CPU's, relative, and the bound."""


def _difference(name: str, ours: Any, host: Any, bound: float) -> Difference:
    ours, host = ours.detach().cpu(), host.detach().to(ours.dtype)
    return name, float((ours - host).abs().max() / host.abs().max()), bound


def convolution() -> Iterator[Difference]:
    """cuDNN's convolution, forward and backward."""
    for kind, bound in ((torch.float32, 1e-5), (torch.float16, 1e-2)):
        x, weight, above = torch.randn(2, 8, 16, 16), torch.randn(16, 8, 3, 3), None
        results = []
        for device, type_ in (("cpu", torch.float32), ("cuda", kind)):
            a, b = (each.detach().to(device, type_).requires_grad_() for each in (x, weight))
            y = functional.conv2d(a, b, padding=1)
            above = torch.randn_like(y) if above is None else above
            y.backward(above.to(device, type_))
            results.append((y, a.grad, b.grad))
        for name, host, ours in zip(("output", "input", "weight"), *results, strict=True):
            yield _difference(f"{kind} {name}", ours, host, bound)


def attention() -> Iterator[Difference]:
    """Scaled dot product attention by each of torch's kernels that has the operator."""
    backends = torch.nn.attention.SDPBackend
    q, k, v = (torch.randn(1, 2, 64, 64) for _ in range(3))
    host = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    for name in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH"):
        with torch.nn.attention.sdpa_kernel(getattr(backends, name)):
            halves = (each.cuda().half() for each in (q, k, v))
            ours = functional.scaled_dot_product_attention(*halves, is_causal=True)
        yield _difference(name, ours, host, 1e-2)


def fourier() -> Iterator[Difference]:
    """cuFFT's transforms, of one to three dimensions."""
    complex_ = torch.randn(2, 32, 48, dtype=torch.complex64)
    for name, values in (("rfft", torch.randn(3, 1000)), ("fft2", complex_), ("irfft", complex_)):
        transform = getattr(torch.fft, name)
        yield _difference(name, transform(values.cuda()), transform(values), 1e-5)


def factors() -> Iterator[Difference]:
    """cuSOLVER's factors of a matrix, multiplied again."""
    matrix = torch.randn(24, 24)
    packed, pivots = torch.linalg.lu_factor(matrix.cuda())
    row, lower, upper = torch.lu_unpack(packed.cpu(), pivots.cpu())
    yield _difference("lu", row @ lower @ upper, matrix, 1e-5)


def collective() -> Iterator[Difference]:
    """NCCL's calls, of one rank."""
    distributed = torch.distributed
    distributed.init_process_group("nccl", store=distributed.HashStore(), rank=0, world_size=1)
    values = torch.randn(1000)
    ours, parts = values.cuda(), [torch.empty(1000, device="cuda")]
    distributed.all_reduce(ours)
    distributed.all_gather(parts, ours)
    distributed.destroy_process_group()
    yield _difference("all_gather", parts[0], values, 0)


def quantized() -> Iterator[Difference]:
    """Values in 4 and 8 bits by bitsandbytes, and back. Its CPU kernel takes the second nearest
    code of 8 bits for one in a thousand."""
    bits: Any = importlib.import_module("bitsandbytes.functional")
    values = torch.randn(64, 64)
    for name in ("4bit", "blockwise"):
        quantize, dequantize = (
            getattr(bits, f"{verb}_{name}") for verb in ("quantize", "dequantize")
        )
        ours, host = (dequantize(*quantize(each)) for each in (values.cuda(), values))
        yield _difference(name, ours, host, 2e-2)


CASES: dict[str, Callable[[], Iterator[Difference]]] = {
    each.__name__: each
    for each in (convolution, attention, fourier, factors, collective, quantized)
}


def main(names: list[str]) -> int:
    """Print a row for each result; return whether one is too far away."""
    torch.manual_seed(0)
    is_wrong = False
    for name in names or CASES:
        for what, difference, bound in CASES[name]():
            is_wrong |= not difference <= bound
            mark = "ok" if difference <= bound else "WRONG"
            print(f"{name:12} {what:24} {difference:.1e} {mark}", flush=True)
    return is_wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
