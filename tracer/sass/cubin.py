"""A kernel of a cubin: its machine instructions, constant banks and sizes.

NVIDIA's nvdisasm names the instructions, the ELF file has the rest: `.nv.info` says where the
parameters lie in constant bank 0 and how large a thread's stack is, the symbols and relocations
which variables and functions banks 3 and 4 have.

Source of the attributes' numbers: the names that `cuobjdump -elf` and `readelf` print beside them.
"""

import json
import re
import struct
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...base.cache import Cache, key_of
from ...base.claim import scratch_folder
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..front.sass import BYTES, attributes, sections
from ..front.toolkit import find_file

SCHEMA = 13
"""Major version of nvdisasm's JSON that is known."""

_PARAMETERS, _STACK = 0x0A, 0x12  # EIATTR_PARAM_CBANK, EIATTR_MIN_STACK_SIZE
_BRANCHES = 0x34  # EIATTR_INDIRECT_BRANCH_TARGETS
_DEFAULT_STACK = 1024
"""Bytes of a thread's stack, as a driver has them unless a program asks for others."""
_UNDEFINED = 0


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


@dataclass(frozen=True, slots=True)
class Code:
    """The machine code of a kernel for a capability (`89`).

    `parameters` is where its parameters begin in constant bank 0, `stack` the bytes of a thread's
    stack, `banks` the bytes of constant banks by number, `variables` the symbols in bank 3, and
    `pointers` the symbols whose addresses bank 4 has, by offset. `functions` are the addresses of
    its subroutines by name, `branch_targets` those of its indirect branches.
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

    def refuse(self, instruction: Instruction, why: str) -> CutraceError:
        """Return the error for an instruction."""
        return CutraceError(
            f"kernel `{self.kernel}`, machine code of sm_{self.capability}, address "
            f"{instruction.address:#06x}: {why}: `{instruction.text}`"
        )


def read_code(cubin: bytes, kernel: str, capability: int) -> Code:
    """Return a kernel's machine code; CutraceError for a file that nvdisasm refuses."""
    by_name = {each.name: each for each in sections(cubin)}
    text = by_name.get(f".text.{kernel}")
    if text is None:
        raise CutraceError(f"the machine code for sm_{capability} has no kernel {kernel}")
    info = dict[int, list[bytes]]()
    for name in (".nv.info", f".nv.info.{kernel}"):
        if name in by_name:
            for number, value in attributes(by_name[name].of(cubin)):
                info.setdefault(number, []).append(value)
    symbols = list(_symbols(cubin))
    own = next((n for n, each in enumerate(symbols) if each.name == kernel), -1)
    stacks = [struct.unpack("<II", value) for value in info.get(_STACK, ())]
    stack = next((size for number, size in stacks if number == own), 0)
    functions = {s.name: s.offset for s in symbols if s.section == text.name and s.name}
    if any(name.startswith(f"${kernel}$") for name in functions):
        stack = max(stack, _DEFAULT_STACK)  # functions, which may call themselves
    return Code(
        kernel=kernel,
        capability=capability,
        instructions=tuple(_instructions(cubin, kernel, text.of(cubin))),
        parameters=next((struct.unpack_from("<IH", v)[1] for v in info.get(_PARAMETERS, ())), 0),
        stack=stack,
        shared=by_name[name].size if (name := f".nv.shared.{kernel}") in by_name else 0,
        banks=dict(_banks(cubin, kernel)),
        variables=tuple(s for s in symbols if s.section == ".nv.constant3" and s.size),
        pointers=dict(_pointers(cubin, symbols)),
        functions=functions,
        branch_targets=dict(_targets(info.get(_BRANCHES, ()))),
    )


def _targets(values: Any) -> Iterator[tuple[int, tuple[int, ...]]]:
    for value in values:
        place = 0
        while place + 12 <= len(value):
            address, _, count = struct.unpack_from("<IHxxI", value, place)
            yield address, struct.unpack_from(f"<{count}I", value, place + 12)
            place += 12 + 4 * count


def _symbols(cubin: bytes) -> Iterator[Symbol]:
    by_name = {each.name: each for each in sections(cubin)}
    names = [each.name for each in sections(cubin)]
    table, strings = by_name[".symtab"].of(cubin), by_name[".strtab"].of(cubin)
    for place in range(0, len(table), 24):
        name, _, _, section, value, size = struct.unpack_from("<IBBHQQ", table, place)
        text = strings[name : strings.index(b"\0", name)].decode()
        owner = names[section] if _UNDEFINED < section < len(names) else ""
        yield Symbol(text, owner, value, size)


def _banks(cubin: bytes, kernel: str) -> Iterator[tuple[int, bytes]]:
    pattern = re.compile(rf"\.nv\.constant(\d+)(\.{re.escape(kernel)})?")
    for each in sections(cubin):
        if match := pattern.fullmatch(each.name):
            yield int(match[1]), each.of(cubin)


def _pointers(cubin: bytes, symbols: list[Symbol]) -> Iterator[tuple[int, Symbol]]:
    for each in sections(cubin):
        if each.name in (".rel.nv.constant4", ".rela.nv.constant4"):
            size = 24 if each.name.startswith(".rela") else 16
            data = each.of(cubin)
            for place in range(0, len(data), size):
                offset, kind = struct.unpack_from("<QQ", data, place)
                yield offset, symbols[kind >> 32]


_ALL_PREDICATES = "PR"
_OPERAND = re.compile(r",(?![^\[]*\])")
_DISASSEMBLED: Cache[list[Any]] = Cache(
    "disassembled", 1 << 26, lambda value: json.dumps(value).encode(), json.loads
)


def _instructions(cubin: bytes, kernel: str, code: bytes) -> Iterator[Instruction]:
    document = _DISASSEMBLED.get(key_of(_made_by(), cubin), lambda: _disassemble(cubin))
    header, functions = document
    if header["SchemaVersion"]["major"] != SCHEMA:
        raise CutraceError(
            f"nvdisasm writes version {header['SchemaVersion']['major']} of its JSON, expected "
            f'{SCHEMA}: python -m pip install "nvidia-cuda-nvdisasm>=13,<14"'
        )
    listed = next(each for each in functions if each["function-name"] == kernel)
    for number, each in enumerate(listed["sass-instructions"]):
        address = BYTES * number
        word = int.from_bytes(code[address : address + BYTES], "little")
        attributes = each.get("other-attributes", {})
        guard = each.get("predicate", "").lstrip("@")
        if guard == _ALL_PREDICATES:  # nvdisasm takes an operand for the predicate
            guard = f"{'!' * (word >> 15 & 1)}P{word >> 12 & 7}".replace("P7", "PT")
        yield Instruction(
            address,
            each["opcode"],
            _operands(each["opcode"], each.get("operands", "")),
            guard,
            word >> 32 & 0xFFFFFFFF,
            "subroutine-call" in attributes,
        )


def _operands(opcode: str, text: str) -> tuple[str, ...]:
    if opcode.startswith("LDGSTS"):  # two addresses without a comma between them
        text = text.replace("][", "],[")
    return tuple(each.strip() for each in _OPERAND.split(text) if each.strip())


@cache
def _made_by() -> str:
    path = _program()
    return repr((path.stat().st_size, path.stat().st_mtime_ns))


def _program() -> Path:
    path = find_file("nvdisasm")
    if path is None:
        raise CutraceError(
            "machine code needs NVIDIA's disassembler: "
            'python -m pip install "nvidia-cuda-nvdisasm>=13,<14"'
        )
    return path


def _disassemble(cubin: bytes) -> list[Any]:
    """Run nvdisasm on a cubin."""
    with scratch_folder() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        answer = subprocess.run(
            [str(_program()), "-json", str(path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,  # Ctrl-C is for the parent
        )
    if answer.returncode:
        problem = answer.stderr.decode(errors="replace").strip()
        raise CutraceError(f"nvdisasm refuses this machine code: {problem}")
    document: list[Any] = json.loads(answer.stdout)
    return document
