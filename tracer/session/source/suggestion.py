"""Suggest launch lines for a source without one.

The message lists the source's kernels, an example line for each with sizes that fit its parameters,
and the program's own launches: what their expressions are worth is known when the program runs.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from ...front.source import KernelSignature
from ..arguments import array_of
from ..module import example_name

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
_ALIASES = 8  # chain length of type aliases that is followed
_FLAT = re.compile(r"(?:threadIdx|blockIdx|%tid|%ctaid)\.y")
_OPEN_SHARED = re.compile(r"extern\s+__shared__[^;]*?(\w+)\s*\[\s*\]\s*;")
_COUNT, _SIDE, _SHARED, _STRUCTURE = 1024, 64, 2048, 64
"""Default elements of a row and of a 2-D side, bytes of shared memory and of a structure."""
_SHOWN = 4
"""Maximum number of kernels with an example launch."""
_THREADS, _COLUMNS = 256, 16
"""Default threads of a block, and of a row of a two-dimensional one."""


SizeOf = Callable[[Sequence[str]], Mapping[str, int]]


def _unknown(names: Sequence[str]) -> Mapping[str, int]:
    return {}


def explain_launches(
    source: str, kernels: tuple[KernelSignature, ...], text: str = "", size_of: SizeOf = _unknown
) -> str:
    """Return the message for a source without a launch line: kernels, syntax, an example.

    `text` is the source's own, from which better examples are derived; `size_of` returns the bytes
    of the structures that it defines.
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
    launch_note = f"\nThe program itself launches so:{own}" if own else ""
    whole = "Write"
    if own and re.search(r"\bmain\s*\(", text):
        whole = f"Run the whole program:\n  cutrace record {source} --\nOr write"
    return (
        f"{source} does not say which kernel to launch. Its kernels:{listed}\n"
        f"{whole} a launch into a comment of the source (// cutrace: ...) or on the command line:"
        f"{written}{_explain_structures(structures, sizes)}{launch_note}"
    )


def _explain_script(kernel: KernelSignature) -> str:
    """Return why a launch line cannot express the launch, and what can."""
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
    """Return how arrays of structures are written."""
    return "".join(
        f"\nAn array of `{name}` is written as its bytes, {sizes.get(name, f'sizeof({name})')} each"
        for name in names
    )


def _structures(kernel: KernelSignature, text: str) -> list[str]:
    """Return the structure types of a kernel's array parameters."""
    names = [_base(c) for c, _ in kernel.parameters if _is_structure(c, kernel.name, text)]
    return [*dict.fromkeys(names)]


def _without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def _own_name(kernel: KernelSignature) -> str:
    """Return the kernel's name as its source writes it, without namespace and arguments."""
    return example_name(kernel).partition("<")[0].rpartition("::")[2]


def _own_launch(kernel: KernelSignature, text: str) -> str:
    """Return the program's own launch of the kernel; empty if there is none."""
    name = re.escape(_own_name(kernel))
    own = re.search(
        rf"\b{name}\s*(?:<[^;{{}}]*>)?\s*<<<[^;{{}}]*?>>>\s*\([^;{{}}]*\)", _without_comments(text)
    )
    return " ".join(own[0].split()) if own else ""


def _takes_texture(kernel: KernelSignature) -> bool:
    return any("cudaTextureObject_t" in c_type for c_type, _ in kernel.parameters)


def _takes_value(kernel: KernelSignature, text: str) -> bool:
    """Return True if it takes a vector, or a structure that the source defines, by value."""
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
    """Return a launch of 1024 threads: arrays of 1024 elements, inputs counting from 0.

    A second integer is taken for the length of a row: it is 64, and arrays are longer by that
    factor. The launch has 64 by 64 threads and elements if the kernel in `text` reads its y
    position, dynamic shared memory if the kernel leaves its size open, and blocks that its launch
    bounds allow. If several of `kernels` have its name, the PTX name is used. `sizes` are the bytes
    of structures.
    """
    is_overloaded = sum(each.name == kernel.name for each in kernels) > 1
    name = kernel.mangled if is_overloaded else example_name(kernel)
    body = _body(kernel, text)
    is_flat = _FLAT.search(body) is not None
    count, shape = (_SIDE, f"{_SIDE},{_SIDE}") if is_flat else (_COUNT, f"{_COUNT}")
    sizes_of = _sizes(kernel, text, count)
    if not is_flat and _SIDE in sizes_of:
        shape = f"{_COUNT * _SIDE}"
    launch = _launch_shape(is_flat, min(_THREADS, kernel.max_threads or _THREADS))
    if any(re.search(rf"\b{each}\b", body) for each in _OPEN_SHARED.findall(text)):
        launch += f", {_SHARED}"
    arguments = (
        f"{name or f'p{number}'}:u8[{shape},{sizes.get(_base(c_type), _STRUCTURE)}]"
        if _is_structure(c_type, kernel.name, text)
        else _argument(name or f"p{number}", c_type, sizes_of[number - 1], shape, text)
        for number, (c_type, name) in enumerate(kernel.parameters, 1)
    )
    return f"{name}<<<{launch}>>>({', '.join(arguments)})"


def _sizes(kernel: KernelSignature, text: str, count: int) -> list[int]:
    """Return a value for each parameter if it is an integer: `count`, for later ones the side; 1
    for a bool."""
    sizes, integer_count = [], 0
    for c_type, _ in kernel.parameters:
        base = _meaning(_base(c_type), text)
        is_flag = not _points(c_type) and base == "bool"
        is_integer = not (_points(c_type) or is_flag or _TYPES.get(base, "f32").startswith("f"))
        sizes.append(1 if is_flag else _SIDE if is_integer and integer_count else count)
        integer_count += is_integer
    return sizes


def _launch_shape(is_flat: bool, threads: int) -> str:
    """Return grid and block, of at most `threads`, that cover the elements."""
    if not is_flat:
        return f"{-(-_COUNT // threads)}, {threads}"
    columns = min(_COLUMNS, threads)
    rows = threads // columns
    return f"({-(-_SIDE // columns)}, {-(-_SIDE // rows)}), ({columns}, {rows})"


def _body(kernel: KernelSignature, text: str) -> str:
    """Return the kernel's definition and the text up to the next kernel."""
    name = _own_name(kernel)
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
    """Return True if it points at something other than numbers, vectors and template parameters."""
    base = _base(c_type)
    meaning = _meaning(base, text)
    is_parameter = re.search(rf"<.*\b{re.escape(base)}\b.*>", kernel) is not None
    is_plain = meaning in _TYPES or _VECTOR.fullmatch(meaning) or is_parameter
    return _points(c_type) and not is_plain


def _points(c_type: str) -> bool:
    """Return True for a pointer, or an array, which as a parameter is one."""
    return "*" in c_type or "[" in c_type


def _meaning(base: str, text: str) -> str:
    """Resolve a type alias to a number or vector, as far as `text` defines it."""
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
        base = next(group for group in alias.groups() if group)
    return base


def _plain(base: str) -> str:
    """Return one spelling for each integer type: `unsigned long` for `long unsigned int`."""
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
