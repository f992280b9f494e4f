"""A linked kernel of PTX with its launch."""

from functools import cached_property

from ...ptx.kernel import Kernel, key_of
from ...ptx.lines import source_line
from ..kernel.launch import Launch
from ..kernel.layout import local_bytes, shared_layout
from ..memory.memory import Memory
from ..warp.program import BlockPlan, Program
from .decoder import Decoder, spoken_name
from .load_module import LoadedModule
from .stack import stack_bytes


class PtxProgram:
    """A linked kernel with its launch.

    `plans` are its basic blocks that are decoded (interp/decode.py); the slots of the `decoder` are
    those of all their steps.
    """

    def __init__(
        self, kernel: Kernel, launch: Launch, memory: Memory, loaded: LoadedModule
    ) -> None:
        self.kernel, self.launch, self.memory, self.loaded = kernel, launch, memory, loaded
        self.key = key_of(kernel)
        self.plans: dict[int, BlockPlan] = {}
        shared, own, stack = shared_layout(kernel), local_bytes(kernel), stack_bytes(kernel)
        self.program = Program(
            name=spoken_name(kernel, launch),
            launch=launch,
            memory=memory,
            shared_bytes=-(-(shared.size + launch.shared_dynamic) // 16) * 16,
            local_bytes=-(-own // 16) * 16 + stack if stack else own,
            open_arrays=tuple(name for (_, name), v in shared.variables.items() if v.is_extern),
            source_line=lambda pc: source_line(kernel, pc),
            text=lambda pc: kernel.instructions[pc].text,
        )

    @cached_property
    def decoder(self) -> Decoder:
        """The context of decoding."""
        return Decoder(self.kernel, self.launch, self.memory, self.loaded)
