"""A compiled kernel: the machine code of its basic blocks, and the buffers that its waves share.

`compile_kernel` returns the code of a program, or raises the reason why the array engine must run
it. `CompiledKernel` also holds the arrays over basic blocks and accesses that all waves use.
"""

from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.errors import CutraceError
from ....jit.machine_code import compile_assembly
from ....jit.structure import Binding, Column
from ...ptx.kernel import KERNELS, Kernel, KernelKey, key_of
from ..decode.load_module import symbols_of
from ..decode.ptx_program import PtxProgram
from ..decode.stack import stack_bytes
from ..interp.decode import require_decodable
from ..kernel.spin_loop import endless_of
from ..rows.access_rows import ROWS
from ..warp.machine import Machine
from .emit_kernel import KernelText, write_kernel
from .register_frame import Place

BUFFER_BYTES = 1 << 28
"""Maximum bytes of registers and rows of a wave; a kernel that needs more is not compiled."""

_NAME = "kernel"


def compile_kernel(program: PtxProgram) -> "CompiledKernel":
    """Return the code of a program's kernel; CutraceError names the instruction that is not
    compiled, or that no engine supports."""
    symbols = symbols_of(program.kernel, program.loaded)
    key = program.key, tuple(symbols.items())
    if key not in _CODE:
        while len(_CODE) >= KERNELS:
            _CODE.pop(next(iter(_CODE)))
        _CODE[key] = _code_or_problem(program, symbols)
    outcome = _CODE[key]
    if isinstance(outcome, CutraceError):
        raise outcome.with_traceback(None)
    return outcome


def _code_or_problem(
    program: PtxProgram, symbols: dict[tuple[int, str], int]
) -> "CompiledKernel | CutraceError":
    """Return the code, or the error: the cache keeps both for the kernel's next launch."""
    try:
        require_decodable(program)
        return CompiledKernel(program.kernel, symbols)
    except CutraceError as problem:
        return problem


_Key: TypeAlias = tuple[KernelKey, tuple[tuple[tuple[int, str], int], ...]]
_CODE: "dict[_Key, CompiledKernel | CutraceError]" = {}


class CompiledKernel:
    """The code of a kernel, and arrays over its basic blocks and accesses; `tables` holds the
    fields of a machine that are equal for all waves."""

    def __init__(self, kernel: Kernel, symbols: dict[tuple[int, str], int]) -> None:
        self.kernel = kernel
        kernel_text = write_kernel(kernel, symbols, _NAME)
        self.made = kernel_text
        self.frame = kernel_text.frame
        sites = np.diff([*kernel_text.first_site, len(kernel_text.sites)])
        self.most_sites = int(sites.max(initial=0))
        codes = _compile(kernel_text)
        codes[list(endless_of(key_of(kernel)))] = 0
        tables: dict[str, Column] = {
            "codes": codes,
            "site_count": sites.astype(np.int32),
            "first_site": np.array(kernel_text.first_site, dtype=np.int32),
        }
        self.tables = Binding(Machine, tables)
        self.zeroed = self._places_read_first(kernel)

    def _places_read_first(self, kernel: Kernel) -> list[Place]:
        """Return the places to zero at first: a path reads them before it writes them."""
        frame = self.frame
        live_keys = frozenset().union(*(kernel.live_in[span.entry] for span in kernel.functions))
        placed = [
            frame.place(*key) for key in (live_keys | frame.carries) - frame.parameters.keys()
        ]
        return [*placed, *frame.others.values()]

    def capacity(self, warps: int, limit: int = ROWS) -> int:
        """Return the maximum number of rows for this many warps, which stop once they have
        `limit`."""
        return limit + self.most_sites * warps

    def refuse_large(self, warps: int) -> None:
        """Raise CutraceError if this many warps need more than BUFFER_BYTES."""
        needed = warps * self.frame.size + 24 * self.capacity(warps)
        if needed > BUFFER_BYTES:
            raise CutraceError(
                f"kernel `{self.kernel.name}`: the compiled engine would need {needed} bytes for "
                f"its registers and rows, more than {BUFFER_BYTES}"
            )


def _compile(kernel_text: KernelText) -> NDArray[np.int64]:
    """Return the addresses of the functions of the basic blocks."""
    for definition, vectors in kernel_text.support.values():
        compile_assembly(definition, vectors)
    return np.array(_load_kernel(kernel_text.text, tuple(kernel_text.codes)), dtype=np.int64)


LONG_FUNCTION = 1 << 17
"""Characters of a basic block's function above which LLVM's compile time explodes: 3200 fused
multiply-adds of doubles in a row, 350,000 characters, take 72 s at effort 1 and 6 s at 0."""


def effort_for(text: str) -> int:
    r"""The effort that a kernel's text is worth.

    >>> effort_for("define @a\n" + "x" * 100_000), effort_for("define @a\n" + "x" * 200_000)
    (1, 0)
    >>> effort_for("".join("\ndefine @a\n" + "x" * 1000 for _ in range(200)))
    1
    """
    return int(max(map(len, text.split("\ndefine "))) <= LONG_FUNCTION)


@lru_cache(maxsize=KERNELS)
def _load_kernel(text: str, codes: tuple[int, ...]) -> list[int]:
    find = compile_assembly(text, effort=effort_for(text))
    return [find(f"{_NAME}.{number}") for number in codes]


def refuse_launch(program: PtxProgram) -> None:
    """Raise CutraceError for a launch that the compiled engine does not support."""
    if program.launch.options.check_uninitialized:
        raise CutraceError("the compiled engine does not look for bytes that nobody wrote")
    if stack_bytes(program.kernel):
        raise CutraceError("the compiled engine has no stack of any size")
    if program.launch.blocks_a_cluster > 1:
        raise CutraceError("the compiled engine takes no clusters of several blocks")
    if program.memory.global_.used.size >= 1 << 31:
        raise CutraceError("the compiled engine takes less than 2 GiB of global memory")
