"""`cuda.bindings.runtime` calls our runtime in place of NVIDIA's, which it has in itself.

Its modules of Cython take functions from one another by capsules: those of its lowest module are
exchanged before another one reads them.
"""

import ctypes
from collections.abc import Callable
from typing import Any


def call_ours(lowest: Any) -> None:
    """Let `cuda.bindings._internal.runtime` hand out our functions, which are loaded already."""
    python, ours = ctypes.pythonapi, ctypes.CDLL(None)
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetName.restype = ctypes.c_void_p
    python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    python.PyCapsule_New.restype = ctypes.py_object
    capsules = lowest.__pyx_capi__
    for name, capsule in capsules.items():
        if name.startswith("_cuda") and hasattr(ours, name[1:]):
            function = ctypes.cast(getattr(ours, name[1:]), ctypes.c_void_p)
            signature = python.PyCapsule_GetName(capsule)  # text of the module, which stays
            capsules[name] = python.PyCapsule_New(function, signature, None)


CHANGES: dict[str, Callable[[Any], None]] = {"cuda.bindings._internal.runtime": call_ours}
