"""What to type when a source says no launch: its kernels, and a launch line that would fit one."""

import re

from ..front.source import KernelSignature
from .listing import example_name
from .numba_array import array_of

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
_THREADS, _COLUMNS = 256, 16
"""Threads in a block and, of two dimensions, in a row of it."""


def explain_launches(source: str, kernels: tuple[KernelSignature, ...], text: str = "") -> str:
    """The message for a source without a launch line: kernels, where to say it, an example.

    `text` is the source's own, which tells more of what would fit.
    """
    if not kernels:
        return f"{source} has no kernel: expected a __global__ function"
    listed = "".join(f"\n  {each}" for each in kernels)
    plain = [each for each in kernels if not (_takes_texture(each) or _takes_value(each, text))]
    if not plain:
        return (
            f"{source} does not say which kernel to launch. Its kernels:{listed}\n"
            f"{_explain_script(kernels[0])}"
        )
    return (
        f"{source} does not say which kernel to launch. Its kernels:{listed}\n"
        f"Write a launch into a comment of the source (// cutrace: ...) or on the command line:\n"
        f'  cutrace record {source} --launch "{example_line(plain[0], text, kernels)}"'
        f"{_explain_structures(plain[0], text)}{_show_own(plain[0], text)}"
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


def _explain_structures(kernel: KernelSignature, text: str) -> str:
    """How an array of structures is written."""
    names = [_base(c) for c, _ in kernel.parameters if _is_structure(c, kernel.name, text)]
    return "".join(
        f"\nAn array of `{name}` is written as its bytes, sizeof({name}) each"
        for name in dict.fromkeys(names)
    )


def _show_own(kernel: KernelSignature, text: str) -> str:
    """How the program itself launches the kernel, for its sizes."""
    name = re.escape(example_name(kernel).partition("<")[0].rpartition("::")[2])
    own = re.search(rf"\b{name}\s*(?:<[^;{{}}]*>)?\s*<<<[^;{{}}]*?>>>\s*\([^;{{}}]*\)", text)
    return f"\nThe program itself launches it so:\n  {' '.join(own[0].split())}" if own else ""


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
    kernel: KernelSignature, text: str = "", kernels: tuple[KernelSignature, ...] = ()
) -> str:
    """A launch of 1024 threads: arrays of 1024 elements, inputs counting from 0.

    Of 64 by 64 threads and elements where the kernel, as `text` has it, asks for its place in y;
    with shared memory where it leaves the size of that open, and in blocks that its launch bounds
    allow. One of several of its name among `kernels` is called by its PTX name.
    """
    body = _body(kernel, text)
    is_flat = _FLAT.search(body) is not None
    count, shape = (_SIDE, f"{_SIDE},{_SIDE}") if is_flat else (_COUNT, f"{_COUNT}")
    launch = _launch_shape(is_flat, min(_THREADS, kernel.max_threads or _THREADS))
    if "extern __shared__" in body:
        launch += f", {_SHARED}"
    arguments = (
        f"{name or f'p{number}'}:u8[{shape},{_STRUCTURE}]"
        if _is_structure(c_type, kernel.name, text)
        else _argument(name or f"p{number}", c_type, count, shape, text)
        for number, (c_type, name) in enumerate(kernel.parameters, 1)
    )
    is_overloaded = sum(each.name == kernel.name for each in kernels) > 1
    name = kernel.mangled if is_overloaded else example_name(kernel)
    return f"{name}<<<{launch}>>>({', '.join(arguments)})"


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
