"""What to type when a source says no launch: its kernels, and a launch line that would fit one."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod

from ...front.source import KernelSignature
from ..launch.numba_array import array_of
from ..listing import example_name
from .own_launch import read_own_launch

_TYPES = {
    **{"char": "i8", "signed char": "i8", "unsigned char": "u8", "bool": "u8"},
    **{"short": "i16", "unsigned short": "u16", "int": "i32", "signed": "i32", "unsigned": "u32"},
    **{"long": "i64", "unsigned long": "u64", "long long": "i64", "unsigned long long": "u64"},
    **{"__half": "f16", "half": "f16", "float": "f32", "double": "f64"},
    **{"uchar": "u8", "ushort": "u16", "uint": "u32", "ulong": "u64", "size_t": "u64"},
    **{"clock_t": "i64", "ptrdiff_t": "i64", "__nv_bfloat16": "u16", "void": "f32"},
    **{f"int{bits}_t": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": f"u{bits}" for bits in (8, 16, 32, 64)},
}
_VECTORS = {
    **{"cuComplex": "float2", "cuFloatComplex": "float2", "cuDoubleComplex": "double2"},
    **{"half2": "half2", "__half2": "half2", "__nv_bfloat162": "__nv_bfloat162"},
}
_VECTOR = re.compile(r"(u?(?:char|short|int|long|longlong)|float|double|half|__nv_bfloat16)([1-4])")
_ALIASES = 8  # names that stand for names that stand for a type
_FLAT = re.compile(r"(?:threadIdx|blockIdx|%tid|%ctaid)\.y")
_COUNT, _SIDE, _SHARED, _STRUCTURE = 1024, 64, 2048, 64
"""Elements in a row and in each of two dimensions, bytes of shared memory and of a structure."""
_MOST, _BLOCK = 1 << 22, 1024
"""Threads of a program's own launch that are suggested at most, and those of a block."""
_SHOWN = 4
"""Kernels of a source for which a launch is written."""
_THREADS, _COLUMNS = 256, 16
"""Threads in a block and, of two dimensions, in a row of it."""


SizeOf = Callable[[Sequence[str]], Mapping[str, int]]


def _unknown(names: Sequence[str]) -> Mapping[str, int]:
    return {}


def explain_launches(
    source: str, kernels: tuple[KernelSignature, ...], text: str = "", size_of: SizeOf = _unknown
) -> str:
    """The message for a source without a launch line: kernels, where to say it, an example.

    `text` is the source's own, which tells more of what would fit; `size_of` finds what the
    structures take that it defines.
    """
    if not kernels:
        whole = f"; `cutrace record {source} --` runs the whole program" if "main(" in text else ""
        return f"{source} has no kernel: expected a __global__ function{whole}"
    listed = "".join(f"\n  {each}" for each in kernels)
    plain = [each for each in kernels if not (_takes_texture(each) or _takes_value(each, text))]
    if not plain:
        return (
            f"{source} does not say which kernel to launch. Its kernels:{listed}\n"
            f"{_explain_script(kernels[0])}"
        )
    shown = plain[:_SHOWN]
    structures = [*dict.fromkeys(name for each in shown for name in _structures(each, text))]
    sizes = size_of(structures)
    written = "".join(
        f'\n  cutrace record {source} --launch "{example_line(each, text, kernels, sizes)}"'
        for each in shown
    )
    own = "".join(f"\n  {line}" for each in shown if (line := _own_launch(each, text)))
    told = f"\nThe program itself launches so:{own}" if own else ""
    whole = "Write"
    if own and re.search(r"\bmain\s*\(", text):
        whole = f"Run the whole program:\n  cutrace record {source} --\nOr write"
    return (
        f"{source} does not say which kernel to launch. Its kernels:{listed}\n"
        f"{whole} a launch into a comment of the source (// cutrace: ...) or on the command line:"
        f"{written}{_explain_structures(structures, sizes)}{told}"
    )


def _explain_script(kernel: KernelSignature) -> str:
    """Why a launch line cannot say it, and what can."""
    if _takes_texture(kernel):
        return (
            "A kernel that takes textures is launched from a Python script, which makes them with "
            "gpu.texture(...):\n  cutrace gallery texture shows some"
        )
    return (
        "A kernel that takes a structure by value is launched from a Python script, which passes "
        "a NumPy scalar:\n"
        '  p = np.array((1.5, 2), np.dtype([("x", "f4"), ("n", "i4")], align=True))'
    )


def _explain_structures(names: Sequence[str], sizes: Mapping[str, int]) -> str:
    """How arrays of structures are written."""
    return "".join(
        f"\nAn array of `{name}` is written as its bytes, {sizes.get(name, f'sizeof({name})')} each"
        for name in names
    )


def _structures(kernel: KernelSignature, text: str) -> list[str]:
    """The structures of which a kernel takes arrays."""
    names = [_base(c) for c, _ in kernel.parameters if _is_structure(c, kernel.name, text)]
    return [*dict.fromkeys(names)]


def _own_launch(kernel: KernelSignature, text: str) -> str:
    """How the program itself launches the kernel; empty where it does not."""
    name = re.escape(example_name(kernel).partition("<")[0].rpartition("::")[2])
    own = re.search(rf"\b{name}\s*(?:<[^;{{}}]*>)?\s*<<<[^;{{}}]*?>>>\s*\([^;{{}}]*\)", text)
    return " ".join(own[0].split()) if own else ""


def _takes_texture(kernel: KernelSignature) -> bool:
    return any("cudaTextureObject_t" in c_type for c_type, _ in kernel.parameters)


def _takes_value(kernel: KernelSignature, text: str) -> bool:
    """Whether it takes a vector, or a structure that the source defines, by value."""
    names = [
        _meaning(_base(c_type), text) for c_type, _ in kernel.parameters if not _points(c_type)
    ]
    return any(
        _VECTOR.fullmatch(name)
        or re.search(
            rf"(?<!enum )\b(?:struct|class|union)\b[^;{{}}()]*\b{re.escape(name)}\s*(?::[^;]*)?{{",
            text,
        )
        or re.search(rf"}}\s*{re.escape(name)}\s*;", text)
        for name in names
        if name not in _TYPES
    )


def example_line(
    kernel: KernelSignature,
    text: str = "",
    kernels: tuple[KernelSignature, ...] = (),
    sizes: Mapping[str, int] = {},
) -> str:
    """The program's own launch, as far as its text tells its shape and its numbers.

    Else a launch of 1024 threads: arrays of 1024 elements, inputs counting from 0.

    A second integer is taken for the length of a row: it is 64, and arrays are as much longer.
    Of 64 by 64 threads and elements where the kernel, as `text` has it, asks for its place in y;
    with shared memory where it leaves the size of that open, and in blocks that its launch bounds
    allow. One of several of its name among `kernels` is called by its PTX name. `sizes` are the
    bytes of structures.
    """
    is_overloaded = sum(each.name == kernel.name for each in kernels) > 1
    name = kernel.mangled if is_overloaded else example_name(kernel)
    if own := _own_line(kernel, text, sizes):
        return f"{name}{own}"
    body = _body(kernel, text)
    is_flat = _FLAT.search(body) is not None
    count, shape = (_SIDE, f"{_SIDE},{_SIDE}") if is_flat else (_COUNT, f"{_COUNT}")
    sizes_of = _sizes(kernel, text, count)
    if not is_flat and len({*sizes_of}) > 1:
        shape = f"{_COUNT * _SIDE}"
    launch = _launch_shape(is_flat, min(_THREADS, kernel.max_threads or _THREADS))
    if "extern __shared__" in body:
        launch += f", {_SHARED}"
    arguments = (
        f"{name or f'p{number}'}:u8[{shape},{sizes.get(_base(c_type), _STRUCTURE)}]"
        if _is_structure(c_type, kernel.name, text)
        else _argument(name or f"p{number}", c_type, sizes_of[number - 1], shape, text)
        for number, (c_type, name) in enumerate(kernel.parameters, 1)
    )
    return f"{name}<<<{launch}>>>({', '.join(arguments)})"


def _sizes(kernel: KernelSignature, text: str, count: int) -> list[int]:
    """What stands for each parameter if it is an integer: `count`, of later ones the side."""
    sizes, known = [], 0
    for c_type, _ in kernel.parameters:
        element = _TYPES.get(_meaning(_base(c_type), text), "f32")
        is_integer = not _points(c_type) and not element.startswith("f")
        sizes.append(_SIDE if is_integer and known else count)
        known += is_integer
    return sizes


def _own_line(kernel: KernelSignature, text: str, sizes: Mapping[str, int]) -> str:
    """What follows the name in the program's own launch; empty where the text does not tell."""
    own = read_own_launch(example_name(kernel).partition("<")[0].rpartition("::")[2], text, sizes)
    if own is None or len(own.numbers) != len(kernel.parameters):
        return ""
    threads = prod(own.grid) * prod(own.block)
    if not 0 < threads <= _MOST or not 0 < prod(own.block) <= _BLOCK:
        return ""
    arguments = []
    for number, (c_type, name) in enumerate(kernel.parameters):
        value, size = own.numbers[number], own.sizes[number]
        if _points(c_type):
            element = sizes.get(_base(c_type)) if _is_structure(c_type, kernel.name, text) else None
            arguments.append(
                _own_array(name or f"p{number + 1}", c_type, size, element, threads, text)
            )
        elif value is None:
            return ""
        else:
            is_real = _TYPES.get(_meaning(_base(c_type), text), "").startswith("f")
            arguments.append(str(float(value) if is_real else int(value)))
    shape = [_own_extent(own.grid), _own_extent(own.block)]
    shape += [str(own.shared)] if own.shared else []
    return f"<<<{', '.join(shape)}>>>({', '.join(arguments)})"


def _own_array(
    name: str, c_type: str, size: int | None, structure: int | None, threads: int, text: str
) -> str:
    """An array of the bytes that the program allocates, else of an element a thread."""
    if structure:
        return f"{name}:u8[{(size or threads * structure) // structure},{structure}]"
    base = _meaning(_base(c_type), text)
    vector = _VECTOR.fullmatch(base)
    written = _argument(name, c_type, 1, "1", text)
    element, rest = written.partition(":")[2].split("[", 1)
    lanes = int(vector[2]) if vector else 1
    count = size // (int(element[1:]) // 8 * lanes) if size else threads
    shape = f"{max(count, 1)},{lanes}" if vector else f"{max(count, 1)}"
    return f"{name}:{element}[{shape}]{rest.partition(']')[2]}"


def _own_extent(extent: tuple[int, ...]) -> str:
    return str(extent[0]) if len(extent) == 1 else f"({', '.join(map(str, extent))})"


def _launch_shape(is_flat: bool, threads: int) -> str:
    """Grid and block, of `threads` at most, that cover the elements."""
    if not is_flat:
        return f"{-(-_COUNT // threads)}, {threads}"
    columns = min(_COLUMNS, threads)
    rows = threads // columns
    return f"({-(-_SIDE // columns)}, {-(-_SIDE // rows)}), ({columns}, {rows})"


def _body(kernel: KernelSignature, text: str) -> str:
    """The kernel's definition and what follows it up to the next kernel."""
    name = example_name(kernel).partition("<")[0].rpartition("::")[2]
    word = re.compile(rf"\b(?:{re.escape(name)}|{re.escape(kernel.mangled or name)})\b")
    parts = re.split(r"__global__|\.entry", text)[1:]
    return next((part for part in parts if word.search(part)), "")


def _argument(name: str, c_type: str, count: int, shape: str, text: str) -> str:
    element, dimensions = array_of(c_type)
    if dimensions:
        sizes = {1: f"{count}", 2: f"{_SIDE},{_SIDE}"}.get(
            dimensions, ",".join(["16"] * dimensions)
        )
        return f"{name}:{_TYPES.get(element, 'f32')}[{sizes}]"
    base = _meaning(_base(c_type), text)
    if not _points(c_type):
        return "1.0" if _TYPES.get(base, "").startswith("f") else str(count)
    initial = "=arange" if "const" in c_type else ""
    if vector := _VECTOR.fullmatch(base):
        element = vector[1].replace("longlong", "long long")
        element = f"unsigned {element[1:]}" if element.startswith("u") else element
        return f"{name}:{_TYPES[_plain(element)]}[{shape},{vector[2]}]{initial}"
    return f"{name}:{_TYPES.get(base, 'f32')}[{shape}]{initial}"


def _is_structure(c_type: str, kernel: str, text: str) -> bool:
    """Whether it points at what is neither a number nor a vector nor a template's parameter."""
    base = _base(c_type)
    meaning = _meaning(base, text)
    is_parameter = re.search(rf"<.*\b{re.escape(base)}\b.*>", kernel) is not None
    known = meaning in _TYPES or _VECTOR.fullmatch(meaning) or is_parameter
    return _points(c_type) and not known


def _points(c_type: str) -> bool:
    """Whether it is a pointer, or an array, which is one as a parameter."""
    return "*" in c_type or "[" in c_type


def _meaning(base: str, text: str) -> str:
    """The number or vector that a type's name stands for, as far as `text` defines it."""
    for _ in range(_ALIASES):
        base = _VECTORS.get(_plain(base), _plain(base))
        name = re.escape(base)
        alias = re.search(
            rf"\btypedef\s+([^;{{}}()]+?)\s*\b{name}\s*;|\busing\s+{name}\s*=([^;<>()]+);"
            rf"|^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+([\w ]+?)[ \t]*$",
            text,
            re.MULTILINE,
        )
        if base in _TYPES or not alias:
            break
        base = next(found for found in alias.groups() if found)
    return base


def _plain(base: str) -> str:
    """One spelling for each integer: `long unsigned int` is `unsigned long`."""
    words = base.split()
    if not {*words} & {"short", "long", "signed", "unsigned"}:
        return base
    size = [word for word in words if word not in ("int", "unsigned", "signed")]
    sign = "unsigned" if "unsigned" in words else "signed" if size in ([], ["char"]) else ""
    return " ".join((*sign.split(), *size))


def _base(c_type: str) -> str:
    qualifiers = ("const", "volatile", "__restrict__", "struct", "class")
    words = re.sub(r"\(\*\)|\[[^]]*\]|[*&]", " ", c_type).split()
    return " ".join(word for word in words if word not in qualifiers)
