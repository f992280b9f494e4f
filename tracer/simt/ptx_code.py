"""PTX as an instruction set of the core (warp/instruction_set.py)."""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...base.errors import CutraceError
from ..ptx.kernel import KERNELS, Kernel, KernelKey
from ..ptx.opcodes import MEMORY
from .decode.address import place_parameters
from .decode.control_flow import control_flow
from .decode.load_module import LoadedModule
from .decode.moves import moves_of
from .decode.ptx_program import PtxProgram
from .decode.special_register import reads_place, special_registers
from .interp.decode import plan_block, require_decodable
from .kernel.launch import Launch
from .kernel.layout import recursive_functions
from .kernel.spin_loop import has_loops
from .memory.memory import Memory
from .ops.lanes import Array
from .warp.control_flow import ControlFlow
from .warp.instruction_set import Executor, Traits
from .warp.program import BlockPlan, Program, Wave

if TYPE_CHECKING:
    from .codegen.compiled_kernel import CompiledKernel
    from .codegen.fallback import Fallbacks


class PtxCode:
    """A linked kernel of PTX for one launch; see `InstructionSet`."""

    def __init__(
        self, kernel: Kernel, launch: Launch, memory: Memory, loaded: LoadedModule
    ) -> None:
        self._own = PtxProgram(kernel, launch, memory, loaded)
        if len(launch.arguments) != len(kernel.parameters):
            raise CutraceError(
                f"kernel `{self.program.name}` takes {len(kernel.parameters)} arguments, "
                f"{len(launch.arguments)} were given"
            )

    @property
    def program(self) -> Program:
        """The launch."""
        return self._own.program

    @property
    def key(self) -> Hashable:
        """Equal for kernels of the same text."""
        return self._own.key

    @property
    def traits(self) -> Traits:
        """Facts of the kernel's text."""
        return _traits(self._own.key)

    @property
    def flow(self) -> ControlFlow:
        """How each basic block ends; lanes reconverge where the control-flow graph says."""
        return control_flow(self._own.key)

    def registers(self, numbers: NDArray[np.int64], first: int = 0) -> list[Array]:
        """Return zeros, and the special registers in their slots."""
        require_decodable(self._own)
        slots = self._own.decoder.slots
        registers = slots.zeros[first:]
        specials = {name: slot for name, slot in slots.specials.items() if slot >= first}
        if specials:
            values = special_registers(self.program.launch, numbers, specials)
            for name, slot in specials.items():
                registers[slot - first] = values[name]
        return registers

    def plan(self, block: int) -> BlockPlan:
        """Return the decoded block."""
        return plan_block(self._own, block)

    def compile(self, warps: int) -> "_PtxMachineCode":
        """Return the kernel's machine code."""
        from .codegen.compiled_kernel import compile_kernel, refuse_launch
        from .codegen.fallback import Fallbacks

        refuse_launch(self._own)
        code = compile_kernel(self._own)
        code.refuse_large(warps)
        escapes = Fallbacks(self._own, code.made)
        place_parameters(self._own)
        return _PtxMachineCode(self._own, code, escapes)


@lru_cache(maxsize=KERNELS)
def _traits(like: KernelKey) -> Traits:
    return Traits(
        instructions=len(like.kernel.instructions),
        has_loops=has_loops(like) or bool(recursive_functions(like.kernel)),
        reads_place=reads_place(like.kernel),
        moves=moves_of(like),
        accesses=max(
            sum(
                each.opcode in MEMORY for each in like.kernel.instructions[block.first : block.last]
            )
            for block in like.kernel.blocks
        ),
    )


class _PtxMachineCode:
    """The machine code of a kernel; see `MachineCode`."""

    def __init__(self, own: PtxProgram, code: "CompiledKernel", escapes: "Fallbacks") -> None:
        self._own, self._code, self._escapes = own, code, escapes

    def executor(self, wave: Wave, registers: Sequence[Array] | None) -> Executor:
        """Return what runs the blocks of a wave."""
        from .codegen.compiled_blocks import CompiledBlocks

        return CompiledBlocks(wave, self._own, self._code, self._escapes, registers)
