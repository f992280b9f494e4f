"""A program's device code: its images become modules of the session, with kernels and variables."""

import re
import struct
import sys
from collections.abc import Mapping
from math import prod

from ...errors import CutraceError
from ...traces.schema import Compiler, Space
from ..engine.kernel.parameter_layout import parameter_offsets
from ..front.ptx import compiled_from, with_plain_paths
from ..front.signature import list_kernels
from ..front.source import Compiled
from ..host.launch.function import Function
from ..host.module import Module
from .answers import NO_IMAGE, SYMBOL_NOT_FOUND, Answer, Verbs
from .arena import BASE, CONSTANTS
from .device import Device
from .image import read_options, read_ptx
from .linked import link_texts
from .session import ProgramSession
from .wire import RUNTIME

_TARGET = re.compile(r"^\s*\.target\s+(\w+)", re.MULTILINE)
_CAPABILITY = re.compile(r"^\s*\.target\s+sm_(\d+)", re.MULTILINE)
_COMPILER = re.compile(r"^// Cuda compilation tools, release [\d.]+, V([\d.]+)", re.MULTILINE)
_DEVICE_RUNTIME = re.compile(r"\.extern\s+\.func\s+\([^)]*\)\s*cudaCG")
MOST_THREADS = 1024


def read_code(data: bytes, capability: int, typed: Mapping[str, str] | None = None) -> Compiled:
    """The PTX of a program's module: its text, or the one among its images that suits a device.

    `typed` are sources that are in no file. CutraceError where there is machine code only.
    """
    texts = read_ptx(data, capability)
    if any(_DEVICE_RUNTIME.search(text) for text in texts):
        texts.append((RUNTIME / "device_runtime.ptx").read_text(encoding="utf-8"))
    ptx = with_plain_paths(link_texts(texts))
    sources = compiled_from(ptx, typed)
    target, version = _TARGET.search(ptx), _COMPILER.search(ptx)
    compiler = Compiler("nvcc", version[1] if version else "", target=target[1] if target else "")
    kernels = list_kernels(ptx, list(sources.values()))
    assembly = read_options(data, capability)
    return Compiled(ptx, {}, compiler, "", sources, kernels, assembly=assembly)


class Code:
    """The modules of a program, by the numbers that it is given for them, and their kernels.

    `typed` are the sources that it has in no file, by the paths that its compiler gives them.
    """

    def __init__(self, session: ProgramSession, device: Device) -> None:
        self._session = session
        self.device = device
        self._modules: list[Module] = []
        self.functions: list[Function] = []
        self._owners: list[Module] = []
        self.typed: dict[str, str] = {}

    @property
    def verbs(self) -> Verbs:
        """What it answers."""
        return {
            "MODULE": self.load,
            "FUNCTION": self.find,
            "REGISTERS": self.count_registers,
            "SYMBOL": self.find_symbol,
            "FITS": self.count_resident,
        }

    def load(self, data: bytes) -> Answer:
        """Take a module."""
        try:
            self._modules.append(self._load(data))
        except CutraceError as problem:
            print(f"cutrace: {problem}", file=sys.stderr)
            return NO_IMAGE
        return (len(self._modules) - 1,)

    def _load(self, data: bytes) -> Module:
        return self._session.load(read_code(data, self.device.capability, self.typed))

    def find(self, module: int, name: bytes) -> Answer:
        """Find a kernel: its number, what it takes."""
        owner = self._modules[module]
        try:
            function = owner.get_function(name.decode())
        except CutraceError as problem:
            print(f"cutrace: {problem}", file=sys.stderr)
            return SYMBOL_NOT_FOUND
        self.functions.append(function)
        self._owners.append(owner)
        known = function.known
        constant = sum(a.size for a in owner.symbols.values() if a.space == Space.CONST)
        limits = known.limits
        # .reqntid leaves this at what the device takes, as an H200's driver says
        threads = min(prod(limits.max_block), MOST_THREADS) if limits.max_block else MOST_THREADS
        sizes = [_three(each) for each in (limits.cluster, limits.required_block)]
        target = _CAPABILITY.search(owner.ptx)
        version = int(target[1]) if target else 0
        offsets = parameter_offsets(known.kernel)
        places = [n for p in known.kernel.parameters for n in (offsets[p.name], p.size)]
        own = (known.shared.size, constant, known.local.size, threads, version)
        demands = (int(limits.must_set_cluster), *sizes[0], *sizes[1])
        return (len(self.functions) - 1, *own, *demands, struct.pack(f"<{len(places)}I", *places))

    def beside(self, function: int, name: str) -> Function:
        """Another kernel of the module that a kernel is of, by its PTX name."""
        return self._owners[function].get_function(name)

    def find_symbol(self, module: int, name: bytes) -> Answer:
        """Find a variable: where the program has it mapped, and its bytes."""
        place = self._modules[module].symbols.get(name.decode())
        if place is None:
            return SYMBOL_NOT_FOUND
        moved = BASE + CONSTANTS if place.space == Space.CONST else 0
        return (place.address + moved, place.size)

    def count_registers(self, function: int) -> Answer:
        """Wait for the assembler: registers a thread, of the nearest architecture."""
        return (self._registers(function),)

    def count_resident(self, function: int, threads: int, dynamic: int) -> Answer:
        """How many blocks an SM of the device holds."""
        shared = self.functions[function].known.shared.size + dynamic
        return (self.device.fits(self._registers(function), shared, threads),)

    def _registers(self, function: int) -> int:
        return self.functions[function].registers(self.device.capability)


def _three(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return all three sizes of a directive of PTX; zeros where it is not there."""
    return (*sizes, 1, 1)[:3] if prod(sizes) and sizes else (0, 0, 0)
