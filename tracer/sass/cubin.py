"""A cubin: its kernels and variables, and the machine code of a kernel.

NVIDIA's nvdisasm names the instructions. All else is in the ELF file: `.nv.info` has the offsets of
parameters in constant bank 0 and the size of a thread's stack, the symbols and relocations have the
variables and functions of banks 3 and 4. Linked programs keep each function in a separate section:
it follows the kernel, as if both were one section.

Source of the attributes' numbers: the names that `cuobjdump -elf` and `readelf` print beside them.
"""

import json
import re
import struct
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from ...base.cache import Cache, key_of
from ...base.claim import scratch_folder
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.machine_schedule import CODE_BYTES
from ..front.sass import Section, attributes, sections
from ..front.toolkit import find_file

SCHEMA = 13
"""Major version of nvdisasm's JSON that is known."""

INSTALL = 'python -m pip install "nvidia-cuda-nvdisasm>=13,<14"'
"""What installs the disassembler."""

_MOST_THREADS, _THREADS = 0x05, 0x10  # EIATTR_MAX_THREADS, EIATTR_REQNTID
_BANK = 0x0A  # EIATTR_PARAM_CBANK
_PARAMETER, _LARGE_PARAMETER = 0x17, 0x45  # EIATTR_KPARAM_INFO, EIATTR_KPARAM_INFO_V2
_FRAME, _STACK, _REGISTERS = 0x11, 0x12, 0x2F  # EIATTR_FRAME_SIZE, MIN_STACK_SIZE, REGCOUNT
_EXTERNS = 0x0F  # EIATTR_EXTERNS
_BRANCHES = 0x34  # EIATTR_INDIRECT_BRANCH_TARGETS
_CLUSTER, _IN_CLUSTERS = 0x3D, 0x3E  # EIATTR_CTA_PER_CLUSTER, EIATTR_EXPLICIT_CLUSTER
_BARRIERS = 0x4C  # EIATTR_NUM_BARRIERS
_NO_STACK = 0xFFFFFFFF
"""The stack of a kernel that calls functions by address, whose callees nobody counts."""

_DEFAULT_STACK = 1024
"""Bytes of a thread's stack, as a driver has them unless a program asks for others."""
_UNDEFINED = 0
_FUNCTION, _ENTRY = 2, 0x10  # STT_FUNC, and the mark of a kernel in a symbol's `st_other`
_MACHINE, _RELOCATABLE = 190, 1  # EM_CUDA, ET_REL
_NEW_ABI = 8  # since which e_flags has the architecture one byte further up
_ALIGNMENT = 128
"""Bytes at whose multiples a function begins."""
_WITHOUT_BYTES = (".nv.shared", ".nv.global", ".nv_debug.shared")
"""Sections that are memory of the device: the file has their sizes alone."""
_PAIR_BARRIERS = {
    "__nv_reservedSMEM_tmem_allocation_pipeline_mbarrier": 0,
    "__nv_reservedSMEM_tcgen05_partition": 8,
}
"""Where the mbarrier of pairs lies behind a symbol: of ptxas 12.9, and of 13."""

_RESERVED, _RESERVED_BYTES = ".nv.shared.reserved.0", 1024
"""Where this section is, static shared memory has the system's kilobyte before the kernel's own."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A machine instruction as nvdisasm prints it, with its 32 bits of an immediate operand.

    `guard` is `P0`, `!P0`, or empty; `calls` is True of a call of a subroutine.
    """

    address: int
    opcode: str
    operands: tuple[str, ...]
    guard: str
    immediate: int
    calls: bool = False

    @property
    def text(self) -> str:
        """The instruction as nvdisasm prints it."""
        guard = f"@{self.guard} " if self.guard else ""
        return f"{guard}{self.opcode} {', '.join(self.operands)}".strip()


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol of the file: the section that holds it (empty: undefined), and its place there."""

    name: str
    section: str
    offset: int
    size: int
    is_function: bool = False
    is_kernel: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """The machine code of a kernel for a capability (`89`).

    `parameters` is where its parameters begin in constant bank 0, `stack` the bytes of a thread's
    stack, `banks` the bytes of constant banks by number, `variables` the symbols in bank 3, and
    `pointers` the symbols with addresses in bank 4, by offset. `functions` are the addresses of
    its subroutines by name, `branch_targets` those of its indirect branches. `globals` are the
    names of variables in global memory. `text` are the instructions' bytes, empty if they are in
    several sections. `file` is the name for messages, `places` are the offsets of the parameters,
    in their order. `pair_barrier` is the shared address of the mbarrier by which a pair of blocks
    allocates tensor memory, 0 for none.
    """

    kernel: str
    capability: int
    instructions: tuple[Instruction, ...]
    parameters: int
    stack: int
    shared: int
    banks: Mapping[int, bytes]
    variables: tuple[Symbol, ...]
    pointers: Mapping[int, Symbol]
    functions: Mapping[str, int]
    branch_targets: Mapping[int, tuple[int, ...]]
    globals: Collection[str] = ()
    text: bytes = b""
    file: str = ""
    places: tuple[int, ...] = ()
    pair_barrier: int = 0

    @property
    def title(self) -> str:
        """The file, kernel and capability, for a message."""
        file = f"{self.file}: " if self.file else ""
        return f"{file}kernel `{self.kernel}`, machine code of sm_{self.capability}"

    def refuse(self, instruction: Instruction, why: str) -> CutraceError:
        """Return the error for an instruction."""
        return CutraceError(
            f"{self.title}, address {instruction.address:#06x}: {why}: `{instruction.text}`"
        )


@dataclass(frozen=True, slots=True)
class KernelResources:
    """A kernel's resources by its cubin: registers per thread, bytes of static shared memory, of a
    thread's frame and of constants, barriers, and its bounds.

    `parameters` are the offset and size of each, in order. `bounds` are directives of PTX with
    their numbers. `calls_driver` says whether it calls functions that the driver brings.
    """

    registers: int
    shared: int
    frame: int
    constants: int
    barriers: int
    parameters: tuple[tuple[int, int], ...]
    bounds: Mapping[str, tuple[int, ...]]
    calls_driver: bool = False


@contextmanager
def reading(file: str) -> Iterator[None]:
    """Raise CutraceError where numbers of a cubin lead out of it."""
    try:
        yield
    except (struct.error, ValueError, LookupError, OverflowError) as error:
        named = f"{file}: " if file else ""
        raise CutraceError(f"{named}machine code is cut off or damaged") from error


class Cubin:
    """A cubin of a `file`, which messages name; raises CutraceError if it is damaged."""

    def __init__(self, data: bytes, file: str = "") -> None:
        self.data, self.file = data, file
        with reading(file):
            machine, _, flags = struct.unpack_from("<HI24xI", data, 18)
            self.sections = {each.name: each for each in sections(data)}
            self._by_number = [each.name for each in sections(data)]
            short = [s.name for s in self.sections.values() if s.start + s.size > len(data)]
            short = [name for name in short if not name.startswith(_WITHOUT_BYTES)]
            (parts,) = struct.unpack_from("<Q", data, 0x20)
            size, count = struct.unpack_from("<HH", data, 0x36)
            if short or parts + size * count > len(data):
                raise ValueError
            self.symbols = [*self._symbols()]
        if machine != _MACHINE:
            raise CutraceError(
                f"{self._named}an ELF file for a machine that is no GPU of NVIDIA's: expected a "
                "cubin"
            )
        self.capability = flags >> (8 if data[8] >= _NEW_ABI else 0) & 0xFF

    @property
    def _named(self) -> str:
        return f"{self.file}: " if self.file else ""

    @property
    def is_relocatable(self) -> bool:
        """Whether it is an object file, to be linked with others."""
        return self.data[16] == _RELOCATABLE

    def _symbols(self) -> Iterator[Symbol]:
        table, strings = self.section(".symtab"), self.section(".strtab")
        for place in range(0, len(table), 24):
            name, info, other, section, value, size = struct.unpack_from("<IBBHQQ", table, place)
            text = strings[name : strings.index(b"\0", name)].decode()
            owner = ""
            if _UNDEFINED < section < len(self._by_number):
                owner = self._by_number[section]
            is_function = info & 15 == _FUNCTION
            is_kernel = is_function and bool(other & _ENTRY) and bool(owner)
            yield Symbol(plain(text), owner, value, size, is_function, is_kernel)

    def section(self, name: str) -> bytes:
        """Return the bytes of a section; none if there is no such."""
        return self.sections[name].of(self.data) if name in self.sections else b""

    @cached_property
    def kernels(self) -> tuple[str, ...]:
        """The names of its kernels."""
        return tuple(each.name for each in self.symbols if each.is_kernel)

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {each.name: n for n, each in enumerate(self.symbols) if each.is_function}

    @cached_property
    def _shared_facts(self) -> Mapping[int, Mapping[int, int]]:
        """The attributes of functions in `.nv.info`, by their number and that of the symbol."""
        facts: dict[int, dict[int, int]] = {}
        for number, value in attributes(self.section(".nv.info")):
            if number in (_REGISTERS, _FRAME, _STACK):
                symbol, count = struct.unpack("<II", value)
                facts.setdefault(number, {})[symbol] = count
        return facts

    def _fact(self, number: int, function: str, default: int = 0) -> int:
        return self._shared_facts.get(number, {}).get(self._numbers[function], default)

    def _info(self, function: str) -> Mapping[int, Sequence[bytes]]:
        facts = dict[int, list[bytes]]()
        for number, value in attributes(self.section(f".nv.info.{function}")):
            facts.setdefault(number, []).append(value)
        return facts

    def resources(self, kernel: str) -> KernelResources:
        """Return the resources of a kernel."""
        text, info = self._text_of(kernel), self._info(kernel)
        reserved = _RESERVED_BYTES if _RESERVED in self.sections else 0
        own = self.sections.get(f".nv.shared.{kernel}")
        bounds = {}
        for name, number in (("maxntid", _MOST_THREADS), ("reqntid", _THREADS),
                             ("reqnctapercluster", _CLUSTER)):  # fmt: skip
            for value in info.get(number, ()):
                bounds[name] = struct.unpack(f"<{len(value) // 4}I", value)
        if _IN_CLUSTERS in info:
            bounds["explicitcluster"] = ()
        if "reqntid" in bounds:
            bounds.pop("maxntid", None)
        return KernelResources(
            registers=self._fact(_REGISTERS, kernel, text.info >> 24),
            shared=max(own.size - reserved, 0) if own else 0,
            frame=self._fact(_FRAME, kernel),
            constants=sum(self.sections[name].size for _, name in self._banks_of(kernel)),
            barriers=next((v[0] for v in info.get(_BARRIERS, ())), -1),
            parameters=tuple((place, size) for _, place, size in sorted(_parameters(info))),
            bounds=bounds,
            calls_driver=_EXTERNS in info,
        )

    @cached_property
    def _banks(self) -> Mapping[str, Sequence[tuple[int, str]]]:
        """The numbers and sections of constant banks, by their kernel; `""` for all kernels."""
        banks: dict[str, list[tuple[int, str]]] = {}
        for name in self.sections:
            if match := re.fullmatch(r"\.nv\.constant(\d+)(?:\.(.*))?", name):
                banks.setdefault(match[2] or "", []).append((int(match[1]), name))
        return banks

    def _banks_of(self, kernel: str) -> Sequence[tuple[int, str]]:
        return *self._banks.get("", ()), *self._banks.get(kernel, ())

    def _text_of(self, kernel: str) -> Section:
        text = self.sections.get(f".text.{kernel}")
        if text is None:
            raise CutraceError(
                f"{self._named}the machine code for sm_{self.capability} has no kernel {kernel}"
            )
        return text

    def code(self, kernel: str) -> Code:
        """Return a kernel's machine code; CutraceError for what nvdisasm refuses."""
        text = self._text_of(kernel)
        by_section = self._reached_sections(text.name)
        functions = {
            each.name: by_section[each.section] + each.offset
            for each in self.symbols
            if each.section in by_section and each.name
        }
        stack = self._fact(_STACK, kernel)
        if stack == _NO_STACK:
            stack = max(self._fact(_FRAME, kernel), _DEFAULT_STACK)
        if any(name.startswith(f"${kernel}$") for name in functions) or len(by_section) > 1:
            stack = max(stack, _DEFAULT_STACK)  # functions, which may call themselves
        listings = _listings(self, [*by_section])
        targets: dict[int, tuple[int, ...]] = {}
        for section, base in by_section.items():
            for value in self._info(section.removeprefix(".text.")).get(_BRANCHES, ()):
                targets |= {
                    base + at: tuple(base + each for each in to) for at, to in _targets(value)
                }
        bank = self._info(kernel).get(_BANK, ())
        return Code(
            kernel=kernel,
            capability=self.capability,
            instructions=tuple(
                one
                for section, base in by_section.items()
                for one in _instructions(
                    listings[section],
                    self.section(section),
                    base,
                    functions,
                    {place: symbol for place, symbol, _ in self.relocations(section)},
                )
            ),
            parameters=next((struct.unpack_from("<IH", v)[1] for v in bank), 0),
            stack=stack,
            shared=own.size if (own := self.sections.get(f".nv.shared.{kernel}")) else 0,
            banks={number: self.section(name) for number, name in self._banks_of(kernel)},
            variables=tuple(s for s in self.symbols if s.section == ".nv.constant3" and s.size),
            pointers={place: symbol for place, symbol, _ in self.relocations(".nv.constant4")},
            functions=functions,
            branch_targets=targets,
            globals={s.name for s in self.symbols if s.section.startswith(".nv.global")},
            text=text.of(self.data) if len(by_section) == 1 else b"",
            file=self.file,
            places=tuple(place for place, _ in self.resources(kernel).parameters),
            pair_barrier=next(
                (
                    s.offset + _PAIR_BARRIERS[s.name]
                    for s in self.symbols
                    if s.name in _PAIR_BARRIERS
                ),
                0,
            ),
        )

    def _reached_sections(self, first: str) -> Mapping[str, int]:
        """Return the sections of code that a section refers to, itself first, and where each lies
        behind the one before."""
        places = {first: 0}
        end, pending = self.sections[first].size, [first]
        while pending:
            for _, symbol, _ in self.relocations(pending.pop()):
                if symbol.section.startswith(".text.") and symbol.section not in places:
                    end = -(-end // _ALIGNMENT) * _ALIGNMENT
                    places[symbol.section] = end
                    end += self.sections[symbol.section].size
                    pending.append(symbol.section)
        return places

    def relocations(self, section: str) -> Iterator[tuple[int, Symbol, int]]:
        """Yield a section's relocations: their offset in it, the symbol, and the addend."""
        for kind, size in ((".rel", 16), (".rela", 24)):
            data = self.section(f"{kind}{section}")
            for place in range(0, len(data) - size + 1, size):
                offset, info = struct.unpack_from("<QQ", data, place)
                added = struct.unpack_from("<q", data, place + 16)[0] if size == 24 else 0
                yield offset, self.symbols[info >> 32], added

    def number_of(self, section: str) -> int:
        """Return the number of a symbol in a section of code."""
        return next(n for n, s in enumerate(self.symbols) if s.is_function and s.section == section)


@lru_cache(maxsize=16)
def open_cubin(data: bytes, file: str = "") -> Cubin:
    """Return a cubin; the last ones are kept."""
    return Cubin(data, file)


def read_code(cubin: bytes, kernel: str) -> Code:
    """Return a kernel's machine code; CutraceError for a file that nvdisasm refuses."""
    return open_cubin(cubin).code(kernel)


def plain(name: str) -> str:
    """Return a name as PTX has it: ELF allows more letters.

    >>> plain("_ZN1a1bE"), plain("table.2")
    ('_ZN1a1bE', 'table$2')
    """
    return re.sub(r"[^\w$]", "$", name)


def _parameters(info: Mapping[int, Sequence[bytes]]) -> Iterator[tuple[int, int, int]]:
    """Yield the ordinal, offset and size of each parameter.

    An attribute has index, ordinal, offset, and bits with the size from 18 on; in a kernel
    with more than 4 KiB of parameters, a separate field of 16 bits has the size.
    """
    for value in info.get(_PARAMETER, ()):
        _, ordinal, offset, bits = struct.unpack("<IHHI", value)
        yield ordinal, offset, bits >> 18
    for value in info.get(_LARGE_PARAMETER, ()):
        _, ordinal, offset, size = struct.unpack_from("<IHHH", value)
        yield ordinal, offset, size


def _targets(value: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    place = 0
    while place + 12 <= len(value):
        address, _, count = struct.unpack_from("<IHxxI", value, place)
        yield address, struct.unpack_from(f"<{count}I", value, place + 12)
        place += 12 + 4 * count


_ALL_PREDICATES = "PR"
_OPERAND = re.compile(r",(?![^\[]*\])")
HALF = re.compile(r"32@(lo|hi)\(\(?([^\s()]+)(?: \+ (0x[0-9a-f]+|\d+))?\)?\)")
"""Half of a symbol's address, perhaps with a number added."""
_JUMPS = ("BRA", "BSSY", "CALL.REL", "LEPC")
_DISASSEMBLED: Cache[list[Any]] = Cache(
    "disassembled", 1 << 26, lambda value: json.dumps(value).encode(), json.loads
)


def _listings(cubin: Cubin, names: Sequence[str]) -> Mapping[str, Sequence[Any]]:
    """Return nvdisasm's instructions of sections of code."""
    related = [(place, s.name, more) for n in names for place, s, more in cubin.relocations(n)]
    key = key_of(_made_by(), repr((cubin.capability, names, related)), *map(cubin.section, names))
    header, functions = _DISASSEMBLED.get(key, lambda: _disassemble(cubin, names))
    if header["SchemaVersion"]["major"] != SCHEMA:
        raise CutraceError(
            f"nvdisasm writes version {header['SchemaVersion']['major']} of its JSON, expected "
            f"{SCHEMA}: {INSTALL}"
        )
    by_name = {f".text.{each['function-name']}": each for each in functions}
    return {name: by_name[name]["sass-instructions"] for name in names}


def _instructions(
    listed: Sequence[Any],
    code: bytes,
    base: int,
    functions: Mapping[str, int],
    symbols: Mapping[int, Symbol],
) -> Iterator[Instruction]:
    for number, each in enumerate(listed):
        at = CODE_BYTES * number
        word = int.from_bytes(code[at : at + CODE_BYTES], "little")
        attributes = each.get("other-attributes", {})
        guard = each.get("predicate", "").lstrip("@")
        if guard == _ALL_PREDICATES:  # nvdisasm takes an operand for the predicate
            guard = f"{'!' * (word >> 15 & 1)}P{word >> 12 & 7}".replace("P7", "PT")
        opcode, operands = each["opcode"], _operands(each["opcode"], each.get("operands", ""))
        operands = tuple(_resolve(text, functions, symbols.get(at)) for text in operands)
        # nvdisasm puts the predicate in the place of all predicates, as in @P0 P2R R1,@P0,R2,0x7
        operands = tuple("PR" if text.startswith("@") else text for text in operands)
        if operands and opcode.startswith(_JUMPS) and operands[-1].startswith("0x"):
            operands = *operands[:-1], hex(int(operands[-1], 16) + base)
        if opcode.startswith("CALL.ABS") and plain(operands[-1].strip("`()")) in functions:
            opcode = opcode.replace("ABS", "REL")  # both are one section here
        calls = "subroutine-call" in attributes or opcode.startswith("CALL")
        yield Instruction(base + at, opcode, operands, guard, word >> 32 & 0xFFFFFFFF, calls)


def _resolve(text: str, functions: Mapping[str, int], symbol: Symbol | None = None) -> str:
    """Return an operand with the half of a function's address as a number, and that of a variable
    by its name: of a linked file's static ones nvdisasm prints the place in their section.

    >>> _resolve("32@lo(0x340)", {}, Symbol("table", ".nv.global.init", 0x340, 64))
    '32@lo(table)'
    """
    match = HALF.fullmatch(text)
    if match and symbol and match[2] == hex(symbol.offset):
        return text.replace(match[2], symbol.name)
    if match is None or plain(match[2]) not in functions:
        return text
    whole = functions[plain(match[2])] + int(match[3] or "0", 0)
    return hex(whole & 0xFFFFFFFF if match[1] == "lo" else whole >> 32)


def _operands(opcode: str, text: str) -> tuple[str, ...]:
    if opcode.startswith("LDGSTS"):  # two addresses without a comma between them
        text = text.replace("][", "],[")
    return tuple(each.strip() for each in _OPERAND.split(text) if each.strip())


@cache
def _made_by() -> str:
    path = _program()
    return repr((path.stat().st_size, path.stat().st_mtime_ns))


def has_disassembler() -> bool:
    """Return whether NVIDIA's disassembler is installed."""
    return find_file("nvdisasm") is not None


def _program() -> Path:
    path = find_file("nvdisasm")
    if path is None:
        raise CutraceError(f"machine code needs NVIDIA's disassembler: {INSTALL}")
    return path


def _disassemble(cubin: Cubin, names: Sequence[str]) -> list[Any]:
    """Run nvdisasm on functions of a cubin."""
    numbers = ",".join(str(cubin.number_of(name)) for name in names)
    with scratch_folder() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin.data)
        answer = subprocess.run(
            [str(_program()), "-json", "-fun", numbers, str(path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,  # Ctrl-C is for the parent
        )
    if answer.returncode:
        lines = answer.stderr.decode(errors="replace").splitlines()
        errors = [" ".join(line.split()) for line in lines if " warning " not in line]
        problem = errors[0] if errors else f"it ended with {answer.returncode}"
        kernel = names[0].removeprefix(".text.")
        raise CutraceError(f"{cubin._named}kernel `{kernel}`: nvdisasm refuses it: {problem}")
    document: list[Any] = json.loads(answer.stdout)
    return document
