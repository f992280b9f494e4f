"""When a kernel is compiled: a launch is interpreted until it is hot, a known one from its start.

Both ways to run a block write the same trace, byte for byte. The interpreter supports every
instruction, and needs no compiler, which takes longer than a short launch runs. A launch with loops
or recursion has an unknown length: it is compiled once it has run BRIEF instructions, and its waves
go on in machine code where they are. `--engine` overrides this: never compile, or compile at once.
"""

from collections import Counter
from collections.abc import Hashable, Sequence

from ...base.errors import CutraceError
from .ops.lanes import LANES, Array
from .warp.instruction_set import Executor, InstructionSet, MachineCode
from .warp.program import Wave

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
in the array engine, which decodes the blocks that run for each.
"""

BRIEF = 1 << 15
"""Instructions, each of a group of warps, after which a launch is hot: some 0.1 s."""

NEVER = 1 << 62

KERNELS = 256
"""Maximum number of kernels whose launches are counted."""

_SPENT: Counter[Hashable] = Counter()
"""Short launches of each kernel."""

_HOT: set[Hashable] = set()
"""Kernels that had a hot launch."""


class LaunchTier:
    """Whether the blocks of a launch are machine code by now.

    It is hot, and compiled, once `left` instructions of groups of warps have run. Raises
    CutraceError if the launch requires machine code and the kernel has none.
    """

    def __init__(self, code: InstructionSet, blocks: int) -> None:
        self._code = code
        launch = code.program.launch
        self._warps = blocks * -(-launch.threads // LANES)
        self._machine_code: MachineCode | None = None
        self.left = NEVER
        if launch.options.engine == "compiled":
            self._compile()
        elif launch.options.engine == "auto" and _is_worth_compiling(code):
            self._try_to_compile()
        if not self.is_compiled and launch.options.engine == "auto" and code.traits.has_loops:
            self.left = BRIEF

    @property
    def is_compiled(self) -> bool:
        """Whether there is machine code."""
        return self._machine_code is not None

    def spend(self, instructions: int) -> None:
        """Count instructions of groups of warps; compile the kernel once the launch is hot."""
        self.left -= instructions
        if self.left < 0:
            self.heat()

    def heat(self) -> None:
        """Compile the kernel if it is not known that this is of no use."""
        if self.left < NEVER // 2:
            self.left = NEVER
            _HOT.add(self._code.key)
            self._try_to_compile()

    def _try_to_compile(self) -> None:
        try:
            self._compile()
        except CutraceError:
            self._machine_code = None

    def _compile(self) -> None:
        self._machine_code = self._code.compile(self._warps)

    def executor(self, wave: Wave, registers: Sequence[Array] | None) -> Executor:
        """Return machine code for a wave, which goes on with these registers."""
        assert self._machine_code is not None
        return self._machine_code.executor(wave, registers)


def _is_worth_compiling(code: InstructionSet) -> bool:
    """Return whether the launch likely takes longer in the interpreter than compiling does."""
    if code.key in _HOT or _is_launched_often(code.key):
        return True
    # Of the whole grid: the few blocks of a sample may run long.
    launch, traits = code.program.launch, code.traits
    lanes = launch.blocks * launch.threads
    if traits.has_loops:
        return lanes >= MANY_LANES
    return lanes >= VERY_MANY_LANES or lanes * traits.instructions >= MANY_INSTRUCTIONS


def _is_launched_often(kernel: Hashable) -> bool:
    """Count a short launch; return whether its kernel had enough of them to be compiled."""
    if len(_SPENT) > KERNELS:
        _SPENT.clear()
    _SPENT[kernel] += 1
    return _SPENT[kernel] > OFTEN
