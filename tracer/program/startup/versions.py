"""At exit, name the packages and versions that called a function our library refused."""

import ctypes
import sys

PACKAGES = ("numba_cuda", "cupy", "triton", "torch", "pycuda", "cuda.core", "cuda.bindings")


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
