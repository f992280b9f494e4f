"""Load a program's device code: modules of the session with their kernels and variables.

A module arrives as PTX text, as a fatbinary, or as a bundle of several from our linker step. This
file parses the fatbinary's entries, selects the PTX that suits the device's compute capability,
links several PTX texts into one by renaming their local symbols, and answers the driver calls that
find kernels, variables and their resources. Without PTX for the device its machine code runs.
"""

import ast
import os
import re
import struct
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from pathlib import Path

import pyarrow as pa

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.schema import Compiler, Space
from ..front.ptx import compiled_from, with_plain_paths
from ..front.signature import list_kernels
from ..front.source import Compiled
from ..ptx.lexer import InvalidPtxError
from ..sass.access import has_based_copies, refuse_copy
from ..sass.cubin import INSTALL, Cubin, has_disassembler, open_cubin
from ..sass.frame import write_frame
from ..session.function import Function
from ..session.module import Module
from ..simt.kernel.layout import parameter_offsets
from .session import BASE, CONSTANTS, Device, ProgramSession
from .wire import INVALID_PTX, NO_IMAGE, RUNTIME, SYMBOL_NOT_FOUND, Answer, Verbs

_TARGET = re.compile(r"^\s*\.target\s+(sm_(\d+)([af]?)\b|\w+)", re.MULTILINE)
_VERSION = re.compile(r"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)
_COMPILER = re.compile(r"^// Cuda compilation tools, release [\d.]+, V([\d.]+)", re.MULTILINE)
_ENTRY_NAME = re.compile(rb"\.entry\s+([\w$]+)")
_DEVICE_RUNTIME = re.compile(r"\.extern\s+\.func\s+\([^)]*\)\s*cudaCG")
_HINTED = ".L2::cache_hint"
MOST_THREADS = 1024


def read_code(data: bytes, capability: int, typed: Mapping[str, str] | None = None) -> Compiled:
    """Return a module's PTX: the text itself, or the fatbinary entry that suits the device.

    `typed` holds sources that exist in no file. Raises CutraceError if there is machine code only,
    or code that this device does not run.
    """
    texts = read_ptx(data, capability)
    if any(_DEVICE_RUNTIME.search(text) for text in texts):
        texts.append((RUNTIME / "device_runtime.ptx").read_text(encoding="utf-8"))
    ptx = with_plain_paths(link_texts(texts))
    sources = compiled_from(ptx, typed)
    target, version = _TARGET.search(ptx), _COMPILER.search(ptx)
    compiler = Compiler("nvcc", version[1] if version else "", target=target[1] if target else "")
    texts = [text for path in sources for text in _cuda_texts(path, sources[path])]
    python = [text for path, text in sources.items() if path.endswith(".py")]
    kernels = list_kernels(ptx, texts, python=python)
    assembly = read_options(data, capability)
    return Compiled(ptx, {}, compiler, "", sources, kernels, assembly=assembly)


def _cuda_texts(path: str, text: str) -> Iterator[str]:
    """Yield the CUDA C++ of a source: of a Python file the strings with kernels."""
    if not path.endswith(".py"):
        yield text
        return
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError):
        return
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    yield from (value for value in values if isinstance(value, str) and "__global__" in value)


class MachineCodeError(CutraceError):
    """Code without PTX; `cubins` are the parts that the device itself would run."""

    def __init__(self, message: str, cubins: Sequence[bytes] = ()) -> None:
        super().__init__(message)
        self.cubins = cubins


class Code:
    """The modules of a program, by handle, with their kernels.

    `typed` holds sources that exist in no file, by the paths that their compiler gives them.
    `kept_ptx` are the folders of the PTX of which the program loads the machine code.
    """

    def __init__(
        self, session: ProgramSession, device: Device, kept_ptx: Sequence[Path] = ()
    ) -> None:
        self._session = session
        self._kept_ptx = kept_ptx
        self.device = device
        self._modules: list[Module] = []
        self._hinted: list[bytes] = []
        """The data of modules whose copies have a policy of the cache; of others none."""
        self.functions: list[Function] = []
        self._owners: list[Module] = []
        self.faults: dict[int, str] = {}
        """Why a device stops at a function's machine code, by the function's handle."""
        self.typed: dict[str, str] = {}
        self._refusals: set[str] = set()
        self._announced: set[tuple[str, int]] = set()

    @property
    def verbs(self) -> Verbs:
        """The handlers of its messages."""
        return {
            "MODULE": self.load,
            "FUNCTION": self.find,
            "KERNELS": self.list_kernels,
            "REGISTERS": self.count_registers,
            "SYMBOL": self.find_symbol,
            "FITS": self.count_resident,
        }

    def load(self, data: bytes, file: bytes) -> Answer:
        """Load a module; `file` has it, if it is not from memory."""
        try:
            loaded = self._load(data, Path(os.fsdecode(file)).name)
        except CutraceError as problem:
            if (text := str(problem)) not in self._refusals:  # each call tries to load it again
                self._refusals.add(text)
                print(f"cutrace: {text}", file=sys.stderr)
            return INVALID_PTX if isinstance(problem, InvalidPtxError) else NO_IMAGE
        self._modules.append(loaded)
        self._hinted.append(data if _HINTED in loaded.ptx else b"")
        return (len(self._modules) - 1,)

    def _load(self, data: bytes, file: str) -> Module:
        capability = self.device.capability
        try:
            return self._session.load(read_code(data, capability, self.typed))
        except MachineCodeError as error:
            if not error.cubins:
                raise
            cubin = open_cubin(choose_cubin(error.cubins, file, capability), file)
        if not file and (text := self._ptx_of(cubin)):
            return self._session.load(read_code(text, capability, self.typed))
        if not has_disassembler():
            raise CutraceError(f"kernels of {file or 'a module'} are machine code alone: {INSTALL}")
        if (file, cubin.capability) not in self._announced:
            self._announced.add((file, cubin.capability))
            print(
                f"cutrace: kernels of {file or 'a module from memory'} run as machine code of "
                f"sm_{cubin.capability}: it has no PTX for {capability // 10}.{capability % 10}",
                file=sys.stderr,
            )
        frame = write_frame(cubin)
        compiler = Compiler("ptxas", "", target=f"sm_{cubin.capability}")
        kernels = list_kernels(frame)
        return self._session.load(
            Compiled(frame, {}, compiler, "", {}, kernels, cubin=cubin.data, file=file)
        )

    def _ptx_of(self, cubin: Cubin) -> bytes | None:
        """Return the newest kept PTX that has all kernels of the machine code."""
        files = [file for folder in self._kept_ptx for file in folder.rglob("*.ptx")]
        names = {name.encode() for name in cubin.kernels}
        for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True):
            text = path.read_bytes()
            if names and names <= {*_ENTRY_NAME.findall(text)}:
                return text
        return None

    def find(self, module: int, name: bytes) -> Answer:
        """Find a kernel by name; return its handle and its parameters."""
        owner = self._modules[module]
        try:
            function = owner.get_function(name.decode())
        except CutraceError as problem:
            print(f"cutrace: {problem}", file=sys.stderr)
            return SYMBOL_NOT_FOUND
        self.functions.append(function)
        self._owners.append(owner)
        if fault := self._broken_code(module, name.decode()):
            self.faults[len(self.functions) - 1] = fault
        kernel_facts = function.facts
        constant = sum(a.size for a in owner.symbols.values() if a.space == Space.CONST)
        limits = kernel_facts.limits
        # Without .reqntid this is the device's own limit, as an H200's driver reports it.
        threads = min(prod(limits.max_block), MOST_THREADS) if limits.max_block else MOST_THREADS
        sizes = [_three(each) for each in (limits.cluster, limits.required_block)]
        version = _target(owner.ptx)[0]
        offsets = parameter_offsets(kernel_facts.kernel)
        places = [n for p in kernel_facts.kernel.parameters for n in (offsets[p.name], p.size)]
        own = (kernel_facts.shared.size, constant, kernel_facts.local.size, threads, version)
        demands = (int(limits.must_set_cluster), *sizes[0], *sizes[1])
        return (len(self.functions) - 1, *own, *demands, struct.pack(f"<{len(places)}I", *places))

    def _broken_code(self, module: int, kernel: str) -> str:
        """Return why a device stops at a kernel's machine code, in the file beside its PTX.

        ptxas assembles some copies with a policy of the cache wrongly (`unset_descriptor`).
        """
        data = self._hinted[module]
        if not data.startswith(struct.pack("<I", MAGIC)) or not has_disassembler():
            return ""
        capability = self.device.capability
        for entry in (each for image in read_images(data) for each in image):
            if not _is_code_of(entry, capability):
                continue
            cubin = open_cubin(entry.data)
            if kernel in cubin.kernels and has_based_copies(cubin.section(f".text.{kernel}")):
                code = cubin.code(kernel)
                copies = (each for each in code.instructions if each.opcode.startswith("LDGSTS"))
                faults = (refuse_copy(code, each) for each in copies)
                return next((str(fault) for fault in faults if fault), "")
        return ""

    def list_kernels(self, module: int) -> Answer:
        """Return the names of a module's kernels, each with a zero byte after it."""
        names = (each.mangled.encode() for each in self._modules[module].signatures)
        return (b"".join(name + b"\0" for name in names),)

    def sibling_kernel(self, function: int, name: str) -> Function:
        """Return another kernel of the same module by its PTX name."""
        return self._owners[function].get_function(name)

    def find_symbol(self, module: int, name: bytes) -> Answer:
        """Find a variable; return its address in the program's mapping and its size in bytes."""
        place = self._modules[module].symbols.get(name.decode())
        if place is None:
            return SYMBOL_NOT_FOUND
        moved = BASE + CONSTANTS if place.space == Space.CONST else 0
        return (place.address + moved, place.size)

    def count_registers(self, function: int) -> Answer:
        """Wait for the assembler; return registers per thread on the nearest architecture."""
        return (self._registers(function),)

    def count_resident(self, function: int, threads: int, dynamic: int) -> Answer:
        """Return the number of resident blocks per SM."""
        shared = self.functions[function].facts.shared.size + dynamic
        return (self.device.fits(self._registers(function), shared, threads),)

    def _registers(self, function: int) -> int:
        return self.functions[function].registers(self.device.capability)


def _three(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return all three sizes of a PTX directive; zeros if the directive is absent."""
    return (*sizes, 1, 1)[:3] if prod(sizes) and sizes else (0, 0, 0)


MAGIC = 0xBA55ED50
BUNDLE_MAGIC = 0x52545543
"""Magic number of the bundle that our linker step writes: `driver/bundle.h`."""

PTX, MACHINE_CODE = 1, 2
_HEAD = struct.Struct("<IHHQ")
_BUNDLE_HEAD = struct.Struct("<IIQ")
_ENTRY = struct.Struct("<HHIQIIQI")
_LZ4, _ZSTD = 0x2000, 0x8000
_SPECIFIC = 0x300000
_SUFFIXES = {0x100000: "a", 0x200000: "f"}
_MOVES_REGISTERS = re.compile(r"--compile-only$|-c$|--?maxrregcount=\d+$|-O[0-3]$")
_HEAD_BYTES = 4096
"""Bytes of a text that hold its target."""
_OLDEST = 75
"""Oldest architecture that nvcc 13 compiles for; its code runs on older devices, too."""
_DEVICE_RUNTIME_CALL = b"__cudaDeviceSynchronizeDeprecationAvoidance()"
"""A function that only cudadevrt, the library for launches by kernels, calls."""


@dataclass(frozen=True)
class Entry:
    """A fatbinary entry: `arch` is 90 for compute_90 or sm_90, `suffix` its `a` or `f`, `options`
    are the assembler's for PTX.

    `packed` is its body, `whole` the bytes of that without compression.
    """

    kind: int
    arch: int
    packed: bytes
    options: str = ""
    suffix: str = ""
    flags: int = 0
    whole: int = 0

    @cached_property
    def data(self) -> bytes:
        """Its body; machine code for other devices is never decompressed."""
        for flag, codec in ((_ZSTD, "zstd"), (_LZ4, "lz4_raw")):
            if self.flags & flag:
                try:
                    return bytes(pa.decompress(self.packed, self.whole, codec, asbytes=True))
                except (pa.ArrowException, OSError) as error:
                    raise CutraceError("a module's code is cut off or damaged") from error
        return self.packed


def read_images(data: bytes) -> Iterator[list[Entry]]:
    """Yield the entries of each fatbinary; raise CutraceError if the data is none."""
    # Layout: a header (magic, version, header size, payload size), then entries. An entry is a
    # header, with kind, sizes, architecture and flags, and a body. Headers hold their own size.
    at = 0
    while at < len(data):
        magic, _, head, size = _HEAD.unpack_from(data, at)
        if magic != MAGIC:
            raise CutraceError("the program's device code has a format that cutrace does not know")
        yield list(_entries(data[at + head : at + head + size]))
        at += head + size


def _entries(data: bytes) -> Iterator[Entry]:
    at = 0
    while at + _ENTRY.size <= len(data):
        kind, _, head, size = _ENTRY.unpack_from(data, at)[:4]
        (arch,) = struct.unpack_from("<I", data, at + 28)
        (flags,) = struct.unpack_from("<Q", data, at + 40)
        (packed,) = struct.unpack_from("<I", data, at + 16)
        (whole,) = struct.unpack_from("<Q", data, at + 56) if head >= 64 else (0,)
        is_packed = flags & (_ZSTD | _LZ4)
        body = data[at + head : at + head + (packed if is_packed else size)]
        options = _options(data[at : at + head]) if kind == PTX else ""
        yield Entry(kind, arch, body, options, _SUFFIXES.get(flags & _SPECIFIC, ""), flags, whole)
        at += head + size


def _options(head: bytes) -> str:
    """Return the options string; the entry's header has its offset and length."""
    (place,) = struct.unpack_from("<I", head, 20)
    if not place or place + 8 > len(head):
        return ""
    start, size = struct.unpack_from("<II", head, place)
    return head[start : start + size].rstrip(b"\0").decode("ascii", "replace")


def read_ptx(data: bytes, capability: int) -> list[str]:
    """Return the PTX texts of a module: as they are, or one selected from each fatbinary.

    Raises CutraceError for machine code, and for PTX that this device does not run.
    """
    if data.startswith(b"\x7fELF"):
        raise MachineCodeError("a module has machine code alone (a cubin), no PTX", (data,))
    if data.startswith(struct.pack("<I", BUNDLE_MAGIC)):
        try:
            return [text for piece in _pieces(data) for text in read_ptx(piece, capability)]
        except MachineCodeError:
            raise CutraceError(
                "a module is linked of machine code: have it compiled to PTX, with "
                "-arch=compute_90 in place of -arch=sm_90 or -cubin"
            ) from None
    if data.startswith(struct.pack("<I", MAGIC)):
        return choose_ptx(list(read_images(data)), capability)
    text = _text(data)
    if not runs(*_target(text), capability):
        raise InvalidPtxError(_foreign([_target(text)], capability))
    return [text]


def read_options(data: bytes, capability: int) -> tuple[str, ...]:
    """Return the assembler options of a module's PTX that affect registers, as nvcc stored them.

    >>> read_options(b"// PTX as text", 90)
    ()
    """
    if not data.startswith(struct.pack("<I", MAGIC)):
        return ()
    for image in read_images(data):
        ptx_entry = _chosen([entry for entry in image if entry.kind == PTX], capability)
        if ptx_entry and _DEVICE_RUNTIME_CALL not in ptx_entry.data:
            return tuple(w for w in ptx_entry.options.split() if _MOVES_REGISTERS.match(w))
    return ()


def _pieces(data: bytes) -> Iterator[bytes]:
    at = _BUNDLE_HEAD.size
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        yield data[at + 8 : at + 8 + size]
        at += 8 + size


def choose_ptx(images: list[list[Entry]], capability: int) -> list[str]:
    """Return the PTX of each fatbinary for a device of this compute capability.

    nvcc links cudadevrt into code compiled with -rdc=true. We implement its calls, so its PTX is
    left out. Raises CutraceError if there is machine code only, or no PTX that the device runs.
    """
    texts: list[str] = []
    for image in images:
        entries = [entry for entry in image if entry.kind == PTX]
        if any(_DEVICE_RUNTIME_CALL in entry.data for entry in entries):
            continue
        if entry := _chosen(entries, capability):
            texts.append(_text(entry.data))
        elif entries and not any(_is_code_of(entry, capability) for entry in image):
            own = [(each.arch, each.suffix) for each in image if each.kind == MACHINE_CODE]
            raise CutraceError(_foreign(map(_target_of, entries), capability, own))
    if not texts:
        codes = [[e for e in image if _is_code_of(e, capability)] for image in images]
        cubins = [max(image, key=_specificity).data for image in codes if image]
        found = {(e.arch, e.suffix) for image in images for e in image if e.kind == MACHINE_CODE}
        targets = ", ".join(f"sm_{arch}{suffix}" for arch, suffix in sorted(found))
        raise MachineCodeError(
            f"the program has machine code alone ({targets or 'none that is known'}), no PTX, and "
            f"none for compute capability {capability // 10}.{capability % 10}: choose -d of one "
            "of these, or build it with `cutrace nvcc`, or with -gencode "
            "arch=compute_90,code=compute_90",
            cubins,
        )
    return texts


def _specificity(entry: Entry) -> tuple[int, int]:
    return rank((entry.arch, entry.suffix))


def choose_cubin(cubins: Sequence[bytes], file: str, capability: int) -> bytes:
    """Return the cubin that a device runs; CutraceError if there is none."""
    opened = [open_cubin(each, file) for each in cubins]
    named = f"{file or 'a module'}: machine code"
    fitting = [each for each in opened if is_native(each.capability, "", capability)]
    if not fitting:
        arch = opened[0].capability
        raise CutraceError(
            f"{named} of sm_{arch} does not run on compute capability {capability // 10}."
            f"{capability % 10}: choose -d sm_{arch}"
        )
    return min(fitting, key=lambda cubin: cubin.is_relocatable).data


def _chosen(entries: list[Entry], capability: int) -> Entry | None:
    """Return the newest PTX that the device runs, the most specific of its architecture, if any."""
    fitting = [entry for entry in entries if runs(*_target_of(entry), capability)]
    return max(fitting, key=lambda entry: rank(_target_of(entry)), default=None)


def _is_code_of(entry: Entry, capability: int) -> bool:
    """Return whether an entry is machine code that a device runs."""
    return entry.kind == MACHINE_CODE and is_native(entry.arch, entry.suffix, capability)


def is_native(arch: int, suffix: str, capability: int) -> bool:
    """Return whether a device runs machine code: of its generation, not newer; `sm_90a` on 9.0
    alone.

    >>> [is_native(80, "", 86), is_native(86, "", 80), is_native(90, "a", 90)]
    [True, False, True]
    """
    if suffix == "a":
        return arch == capability
    return arch <= capability and arch // 10 == capability // 10


def rank(target: tuple[int, str]) -> tuple[int, int]:
    """Return a key by which the newest and most specific architecture is the largest."""
    # Specific beats generic within an architecture: `a` runs on one device, `f` on a family.
    arch, suffix = target
    return arch, ("", "f", "a").index(suffix)


def split_target(target: str) -> tuple[int, str]:
    """Return the number and the suffix of an architecture.

    >>> split_target("90a"), split_target("75")
    ((90, 'a'), (75, ''))
    """
    digits = target.rstrip("af")
    return (int(digits) if digits.isdigit() else 0), target[len(digits) :]


def _target_of(entry: Entry) -> tuple[int, str]:
    """Return the architecture number and suffix of a PTX entry; its header stores no suffix."""
    return entry.arch, _target(_text(entry.data[:_HEAD_BYTES]))[1]


def _target(ptx: str) -> tuple[int, str]:
    """Return the architecture number and suffix of a text; 0 if it names none."""
    match = _TARGET.search(ptx)
    return (int(match[2]), match[3]) if match and match[2] else (0, "")


def runs(arch: int, suffix: str, capability: int) -> bool:
    """Return whether a device runs PTX: `sm_90a` 9.0 only; `sm_100f` 10.0 and newer 10.x."""
    if suffix == "f":
        return arch <= capability and arch // 10 == capability // 10
    return arch == capability if suffix else arch <= max(capability, _OLDEST)


def _foreign(
    targets: Iterable[tuple[int, str]], capability: int, codes: Iterable[tuple[int, str]] = ()
) -> str:
    """Return the message for PTX and machine code of which a device runs none.

    >>> _foreign([(90, "a")], 80)
    'the device is of compute capability 8.0, the code for sm_90a (9.0 alone): choose -d sm_90'
    >>> _foreign([(120, "")], 70, [(75, ""), (120, "")]).partition("the code for ")[2]
    'sm_75 (7.5 to 7.9), sm_120 (12.0 and newer): choose -d sm_75'
    """
    portable = set(targets)
    ranked = sorted(portable | set(codes), key=rank)
    parts = []
    for arch, suffix in ranked:
        reach = "alone" if suffix == "a" else f"to {arch // 10}.9"
        if not suffix and (arch, suffix) in portable:
            reach = "and newer"
        parts.append(f"sm_{arch}{suffix} ({arch // 10}.{arch % 10} {reach})")
    return (
        f"the device is of compute capability {capability // 10}.{capability % 10}, the code for "
        f"{', '.join(parts)}: choose -d sm_{ranked[0][0]}"
    )


def _text(data: bytes) -> str:
    return data.rstrip(b"\0").decode("utf-8", "replace")


_WHOLE_LINES = (".version", ".target", ".address_size", ".file")
_LINKAGE = re.compile(r"^\.(visible|weak|common|extern)\s+")
_FUNCTION = re.compile(r"^(?:\.\w+\s+)*?\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)")
_VARIABLE = re.compile(
    r"^(?:\.\w+\s+)*?\.(?:global|const|shared)\b[^=;]*?([\w$]+)\s*(?:\[[^=;]*)?[=;]"
)
_FILE = re.compile(r"(\.file\s+|\.loc\s+|\binlined_at\s+)(\d+)")
_LABEL = re.compile(r"\$L__info_string")


@dataclass(frozen=True, slots=True)
class _Statement:
    """A module-level PTX directive; `name` is the symbol that it declares or defines, if any."""

    text: str
    linkage: str
    name: str
    is_function: bool

    @property
    def is_declaration(self) -> bool:
        """True if the symbol is defined elsewhere."""
        return self.linkage == "extern" or (self.is_function and self.text.rstrip().endswith(";"))


def link_texts(texts: Sequence[str]) -> str:
    """Link PTX texts into one that an assembler accepts."""
    if len(texts) == 1:
        return texts[0]
    parts = [list(_statements(_renumbered(text, n))) for n, text in enumerate(texts)]
    own = Counter(each.name for part in parts for each in part if each.name and not each.linkage)
    # Names without linkage are local to their text, so two texts may use one for different symbols.
    # Only those are renamed; all other names must stay as they are, because the program looks them
    # up or another text refers to them.
    clashing = {name for name, count in own.items() if count > 1}
    parts = [[_renamed(each, clashing, n) for each in part] for n, part in enumerate(parts)]
    statements = [each for part in parts for each in part]
    # The text of the most specific target decides: the others' code runs there, too.
    best = max(range(len(texts)), key=lambda n: rank(_target(texts[n])))
    head = [each for each in parts[best] if each.text.startswith(_WHOLE_LINES[1:3])]
    newest = max((version for text in texts if (version := _VERSION.search(text))), key=_number)
    head.insert(0, _statement(newest[0].strip()))
    named = list(_once([each for each in statements if each.name]))
    other_statements = [
        each for each in statements if not each.name and not each.text.startswith(_WHOLE_LINES)
    ]
    files = [each for each in statements if each.text.startswith(".file")]
    # PTX requires a declaration before use: prototypes first, because initializers of variables may
    # take the address of a function, then variables, then bodies.
    ordered = [
        *(head + [each for each in named if each.is_function and each.is_declaration]),
        *(each for each in named if not each.is_function),
        *(each for each in named if each.is_function and not each.is_declaration),
        *(files + other_statements),
    ]
    return _comments(texts[0]) + "\n".join(each.text for each in ordered) + "\n"


def _number(version: re.Match[str]) -> tuple[int, int]:
    return int(version[1]), int(version[2])


def _comments(text: str) -> str:
    """Return the lines before the first directive; they name the compiler."""
    return text[: text.index(".version")]


def _statements(text: str) -> Iterator[_Statement]:
    lines: list[str] = []
    depth = 0
    for line in text.splitlines():
        code = line.partition("//")[0].strip()
        if not lines and not code:
            continue
        lines.append(line)
        depth += code.count("{") - code.count("}")
        ends = code.endswith((";", "}")) or (len(lines) == 1 and code.startswith(_WHOLE_LINES))
        if depth == 0 and ends:
            yield _statement("\n".join(lines).strip())
            lines = []


def _statement(text: str) -> _Statement:
    linkage = _LINKAGE.match(text)
    function, variable = _FUNCTION.match(text), _VARIABLE.match(text)
    match = function or variable
    return _Statement(
        text, linkage[1] if linkage else "", match[1] if match else "", function is not None
    )


def _renumbered(text: str, number: int) -> str:
    """Offset a text's .file numbers and the labels of its debug strings, so that texts do not
    clash.
    """
    moved = _FILE.sub(lambda match: f"{match[1]}{int(match[2]) + 100_000 * number}", text)
    return _LABEL.sub(f"$L__info_string_{number}_", moved)


def _renamed(statement: _Statement, names: set[str], number: int) -> _Statement:
    """Append the text's number to its local symbols."""
    text = statement.text
    for name in names:
        if name in text:
            text = re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])", f"{name}${number}", text)
    return _statement(text)


def _once(statements: Sequence[_Statement]) -> Iterator[_Statement]:
    """Yield each definition once; a declaration of a defined symbol takes over its linkage."""
    defined = {each.name: each for each in reversed(statements) if not each.is_declaration}
    declared: set[str] = set()
    for each in statements:
        definition = defined.get(each.name)
        if definition is each:
            yield each
        elif each.is_declaration and each.name not in declared:
            declared.add(each.name)
            if definition is None:
                yield each
            elif each.is_function:
                linkage = f".{definition.linkage} " if definition.linkage else ""
                yield _statement(linkage + _LINKAGE.sub("", each.text))
