"""Reductions of bulk copies: each element of memory is updated by one of the source."""

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ....native.machine_code import address, compile_function
from ..lanes import DTYPES
from ..op.update import update

_LOOP = """{definitions}
define void @{name}(i64 %n, ptr %words, ptr %given) {{
entry:
  %empty = icmp eq i64 %n, 0
  br i1 %empty, label %done, label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %pw = getelementptr {t}, ptr %words, i64 %i
  %old = load {t}, ptr %pw, align 1
  %pb = getelementptr {t}, ptr %given, i64 %i
  %b = load {t}, ptr %pb, align 1
  {body}
  store {t} %new, ptr %pw, align 1
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


@cache
def _compiled(operation: str, kind: str, in_global: bool) -> Callable[..., None] | None:
    found = update(operation, kind, in_global)
    if found is None:
        return None
    element, body, definitions = found
    name = f"bulk_{operation}_{kind}{'_global' * in_global}"
    text = _LOOP.format(name=name, t=element, body=body, definitions=definitions)
    return compile_function(text, name, ctypes.c_int64, *(ctypes.c_void_p,) * 2)


def is_reduction(operation: str, kind: str) -> bool:
    """Whether there is such an operation on a type: there is none on numbers of 8 or 16 bits."""
    return kind not in ("u8", "u16") and _compiled(operation, kind, True) is not None


def reduce_bytes(
    to: NDArray[np.uint8], source: NDArray[np.uint8], operation: str, kind: str, in_global: bool
) -> None:
    """Update the elements of `to`, contiguous bytes, by those of `source`, one after another."""
    run = _compiled(operation, kind, in_global)
    assert run is not None
    count = to.size // DTYPES[kind].itemsize
    given = source.copy()
    run(count, address(to), address(given))
