"""The PTX module around machine code: the declarations of a cubin, as a session loads them.

Kernels have their parameters, bounds and static shared memory, and no instructions; variables have
their initial values. The lifted code takes the place of a kernel's body (kernel.py).
"""

from collections.abc import Iterator, Sequence

from ...base.errors import CutraceError
from ..front.demangle import demangle
from .cubin import Cubin, Symbol, reading

DRIVER_FUNCTIONS = {
    "vprintf": ((8, 8), 4),
    "__assertfail": ((8, 8, 4, 8, 8), 0),
    "malloc": ((8,), 8),
    "free": ((8,), 0),
}
"""Functions of the driver: the bytes of their parameters and of their result, from R4 on."""

SHARED = "shared_memory"
"""The name of a kernel's static shared memory, whose variables have none in machine code."""

_VERSION = "8.8"
_INITIAL, _ZERO, _CONSTANT = ".nv.global.init", ".nv.global", ".nv.constant3"
_SPACES = {_INITIAL: "global", _ZERO: "global", _CONSTANT: "const"}
_WORD = 8
_ALIGNMENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def write_frame(cubin: Cubin) -> str:
    """Return PTX with the declarations of a cubin."""
    head = f".version {_VERSION}\n.target sm_{cubin.capability}\n.address_size 64\n"
    declared = {each.name for each in cubin.symbols if not each.section}
    functions = (_function(name) for name in DRIVER_FUNCTIONS if name in declared)
    kernels = (_kernel(cubin, name) for name in cubin.kernels)
    with reading(cubin.file):
        return "".join((head, *functions, *_variables(cubin), *kernels))


def _function(name: str) -> str:
    parameters, result = DRIVER_FUNCTIONS[name]
    back = f"(.param .b{8 * result} r) " if result else ""
    listed = ", ".join(f".param .b{8 * size} p{n}" for n, size in enumerate(parameters))
    return f".extern .func {back}{name}({listed});\n"


def _variables(cubin: Cubin) -> Iterator[str]:
    symbols = [s for s in cubin.symbols if s.section in _SPACES and s.size and not s.is_function]
    names = {each.name for each in symbols}
    pointers = {section: [*cubin.relocations(section)] for section in _SPACES}
    texts = {}
    for each in symbols:
        inside = {
            place - each.offset: f"{symbol.name}+{more}"
            for place, symbol, more in pointers[each.section]
            if each.offset <= place < each.offset + each.size and symbol.name in names
        }
        texts[each.name] = _variable(cubin, each, inside)
    # A pointer's target stands before it.
    first = {s.name for each in pointers.values() for _, s, _ in each}
    yield from (text for name, text in texts.items() if name in first)
    yield from (text for name, text in texts.items() if name not in first)


def _variable(cubin: Cubin, symbol: Symbol, pointers: dict[int, str]) -> str:
    start = f".visible .{_SPACES[symbol.section]} .align {_alignment_of(symbol.offset)}"
    if symbol.section == _ZERO:
        return f"{start} .b8 {symbol.name}[{symbol.size}];\n"
    data = cubin.section(symbol.section)[symbol.offset : symbol.offset + symbol.size]
    if not pointers:
        values = f" = {{{', '.join(map(str, data))}}}" if any(data) else ""
        return f"{start} .b8 {symbol.name}[{symbol.size}]{values};\n"
    if symbol.size % _WORD or any(place % _WORD for place in pointers):
        raise CutraceError(f"{symbol.name}: cutrace does not know a variable with such addresses")
    words = (
        pointers.get(place) or str(int.from_bytes(data[place : place + _WORD], "little"))
        for place in range(0, symbol.size, _WORD)
    )
    return f"{start} .u64 {symbol.name}[{symbol.size // _WORD}] = {{{', '.join(words)}}};\n"


def _alignment_of(offset: int) -> int:
    return min(offset & -offset or 256, 256)


def _kernel(cubin: Cubin, name: str) -> str:
    facts = cubin.resources(name)
    bounds = "".join(
        f".{directive} {', '.join(map(str, numbers))}\n"
        for directive, numbers in facts.bounds.items()
    )
    shared = f".shared .align 16 .b8 {SHARED}[{facts.shared}];\n" if facts.shared else ""
    use = f"mov.u32 %r, {SHARED};\n" if facts.shared else ""
    parameters = ", ".join(_parameters(facts.parameters, types_of(name)))
    body = f"{{\n{shared}.reg .b32 %r;\n{use}ret;\n}}\n"
    return f".visible .entry {name}({parameters})\n{bounds}{body}"


_TYPES = {"float": "f32", "double": "f64"}


def types_of(kernel: str) -> Sequence[str]:
    """Return the types of a kernel's parameters, as far as its name says them."""
    read = demangle(kernel)
    return read.parameters if read else ()


def _parameters(parameters: Sequence[tuple[int, int]], types: Sequence[str]) -> Iterator[str]:
    """Yield declarations of parameters; one that alignment alone does not place says its offset."""
    end = 0
    names = types if len(types) == len(parameters) else [""] * len(parameters)
    for number, ((offset, size), type_) in enumerate(zip(parameters, names, strict=True)):
        own = [a for a in _ALIGNMENTS if offset % a == 0 and -(-end // a) * a == offset]
        place = "" if own else f".offset {offset} "
        own = own or [a for a in _ALIGNMENTS if offset % a == 0]
        end = offset + size
        name = f"p{number + 1}"
        if size in (4, 8) and size in own:
            yield f".param {place}.{_TYPES.get(type_, f'u{8 * size}')} {name}"
        else:
            yield f".param {place}.align {own[-1]} .b8 {name}[{size}]"
