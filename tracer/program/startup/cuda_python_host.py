"""Redirect `cuda.bindings.runtime`, which links NVIDIA's runtime statically, to our runtime.

Its Cython modules import each other's functions through capsules. We replace the capsules of the
lowest module before another module reads them.
"""

import ctypes
from collections.abc import Callable
from typing import Any


def call_ours(lowest: Any) -> None:
    """Replace the functions of `cuda.bindings._internal.runtime` by ours, already loaded."""
    python, ours = ctypes.pythonapi, ctypes.CDLL(None)
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetName.restype = ctypes.c_void_p
    python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    python.PyCapsule_New.restype = ctypes.py_object
    capsules = lowest.__pyx_capi__
    for name, capsule in capsules.items():
        if name.startswith("_cuda") and hasattr(ours, name[1:]):
            function = ctypes.cast(getattr(ours, name[1:]), ctypes.c_void_p)
            signature = python.PyCapsule_GetName(capsule)  # text of a module that stays
            capsules[name] = python.PyCapsule_New(function, signature, None)


CHANGES: dict[str, Callable[[Any], None]] = {"cuda.bindings._internal.runtime": call_ours}
