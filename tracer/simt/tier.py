"""When a kernel is compiled: a launch is interpreted until it is hot, a known one from its start.

Both ways to run a block write the same trace, byte for byte. The interpreter supports every
instruction, and needs no compiler, which takes longer than a short launch runs. A launch with loops
has an unknown length: it is compiled once it has run BRIEF instructions, and its waves go on in
machine code where they are. `--engine` overrides this: never compile, or compile at once.
"""

from collections import Counter
from typing import TYPE_CHECKING

from ...base.errors import CutraceError
from ..ptx.kernel import KERNELS, KernelKey, key_of
from .access.address import place_parameters
from .interp.decode import decode
from .interp.interpreter import Interpreter
from .kernel.layout import recursive_functions
from .kernel.spin_loop import has_loops
from .ops.lanes import LANES
from .warp.program import Program
from .wave import Executor, Wave

if TYPE_CHECKING:
    from .codegen.compiled_kernel import CompiledKernel
    from .codegen.fallback import Fallbacks

MANY_LANES = 1 << 12
"""Lanes from which a launch with loops is compiled. Compiling takes some 0.1 s, once; in the array
engine a divergent loop of as few lanes takes seconds, a NumPy call per step.
"""

VERY_MANY_LANES = 1 << 18
"""Lanes from which a launch without loops is compiled."""

MANY_INSTRUCTIONS = 1 << 24
"""Instructions of all lanes from which a launch without loops is compiled: one second in the array
engine.
"""

OFTEN = 32
"""Short launches of a kernel after which it is compiled: compiling takes as long as some 30 of them
in the array engine, which decodes the kernel for each.
"""

BRIEF = 1 << 15
"""Instructions, each of a group of warps, after which a launch is hot: some 0.1 s."""

NEVER = 1 << 62

_SPENT: Counter[KernelKey] = Counter()
"""Short launches of each kernel."""

_HOT: set[KernelKey] = set()
"""Kernels that had a hot launch."""


class LaunchTier:
    """Whether the blocks of a launch are machine code by now.

    It is hot, and compiled, once `left` instructions of groups of warps have run. Raises
    CutraceError for unknown instructions, and if the launch requires machine code and the kernel
    has none.
    """

    def __init__(self, program: Program, blocks: int) -> None:
        self._program = program
        self._warps = blocks * -(-program.launch.threads // LANES)
        self._code: CompiledKernel | None = None
        self._escapes: Fallbacks | None = None
        self.left = NEVER
        engine = program.launch.options.engine
        if engine == "compiled":
            self._compile()
        elif engine == "auto" and _is_worth_compiling(program):
            self._try_to_compile()
        if not self.is_compiled:
            decode(program)
            if engine == "auto" and _may_go_over(program):
                self.left = BRIEF

    @property
    def is_compiled(self) -> bool:
        """Whether there is machine code."""
        return self._code is not None

    def spend(self, instructions: int) -> None:
        """Count instructions of groups of warps; compile the kernel once the launch is hot."""
        self.left -= instructions
        if self.left < 0:
            self.heat()

    def heat(self) -> None:
        """Compile the kernel if it is not known that this is of no use."""
        if self.left < NEVER // 2:
            self.left = NEVER
            _HOT.add(key_of(self._program.kernel))
            self._try_to_compile()

    def _try_to_compile(self) -> None:
        try:
            self._compile()
        except CutraceError:
            self._code = None

    def _compile(self) -> None:
        from .codegen.compiled_kernel import compile_kernel, refuse_launch
        from .codegen.fallback import Fallbacks

        program = self._program
        refuse_launch(program)
        code = compile_kernel(program)
        code.refuse_large(self._warps)
        self._escapes = Fallbacks(program, code.made)
        place_parameters(program)
        self._code = code

    def compiled_blocks(self, wave: Wave, interpreter: Interpreter | None) -> Executor:
        """Return machine code for a wave, with the registers of its interpreter."""
        from .codegen.compiled_blocks import CompiledBlocks

        assert self._code is not None
        assert self._escapes is not None
        return CompiledBlocks(wave, self._code, self._escapes, interpreter)


def _is_worth_compiling(program: Program) -> bool:
    """Return whether the launch likely takes longer in the interpreter than compiling does."""
    kernel = key_of(program.kernel)
    if kernel in _HOT or _is_launched_often(kernel):
        return True
    # Of the whole grid: the few blocks of a sample may run long.
    lanes = program.launch.blocks * program.launch.threads
    if has_loops(kernel):
        return lanes >= MANY_LANES or not _may_go_over(program)
    instructions = len(program.kernel.instructions)
    return lanes >= VERY_MANY_LANES or lanes * instructions >= MANY_INSTRUCTIONS


def _may_go_over(program: Program) -> bool:
    """Return whether a launch may be long, and its waves can go over to machine code in its midst:
    the registers that a recursion has saved cannot."""
    return has_loops(key_of(program.kernel)) and not recursive_functions(program.kernel)


def _is_launched_often(kernel: KernelKey) -> bool:
    """Count a short launch; return whether its kernel had enough of them to be compiled."""
    if len(_SPENT) > KERNELS:
        _SPENT.clear()
    _SPENT[kernel] += 1
    return _SPENT[kernel] > OFTEN
