"""What to type when a source says no launch: its kernels, and a launch line that would fit one."""

import re

from ..front.source import KernelSignature
from .listing import example_name

_TYPES = {
    **{"char": "i8", "signed char": "i8", "unsigned char": "u8", "bool": "u8"},
    **{"short": "i16", "unsigned short": "u16", "int": "i32", "unsigned int": "u32"},
    **{"unsigned": "u32", "long long": "i64", "unsigned long long": "u64", "size_t": "u64"},
    **{"__half": "f16", "half": "f16", "float": "f32", "double": "f64"},
    **{"uchar": "u8", "ushort": "u16", "uint": "u32", "long": "i64", "unsigned long": "u64"},
    **{f"int{bits}_t": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": f"u{bits}" for bits in (8, 16, 32, 64)},
}
_VECTOR = re.compile(r"(u?(?:char|short|int|long|longlong)|float|double)([1-4])")
_FLAT = re.compile(r"(?:threadIdx|blockIdx|%tid|%ctaid)\.y")
_COUNT, _SIDE, _SHARED, _STRUCTURE = 1024, 64, 2048, 64
"""Elements in a row and in each of two dimensions, bytes of shared memory and of a structure."""


def explain_launches(source: str, kernels: tuple[KernelSignature, ...], text: str = "") -> str:
    """The message for a source without a launch line: kernels, where to say it, an example.

    `text` is the source's own, which tells more of what would fit.
    """
    if not kernels:
        return f"{source} has no kernel: expected a __global__ function"
    listed = "".join(f"\n  {each}" for each in kernels)
    plain = [each for each in kernels if not _takes_texture(each)]
    if not plain:
        return (
            f"{source} does not say which kernel to launch. Its kernels:{listed}\n"
            "A kernel that takes textures is launched from a Python script, which makes them with "
            "gpu.texture(...):\n  cutrace gallery texture shows some"
        )
    return (
        f"{source} does not say which kernel to launch. Its kernels:{listed}\n"
        f"Write a launch into a comment of the source (// cutrace: ...) or on the command line:\n"
        f'  cutrace record {source} --launch "{example_line(plain[0], text)}"'
        f"{_explain_structures(plain[0], text)}{_show_own(plain[0], text)}"
    )


def _explain_structures(kernel: KernelSignature, text: str) -> str:
    """How an array of structures is written."""
    names = [_base(c_type) for c_type, _ in kernel.parameters if _is_structure(c_type, text)]
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


def example_line(kernel: KernelSignature, text: str = "") -> str:
    """A launch of 1024 threads: arrays of 1024 elements, inputs counting from 0.

    Of 64 by 64 threads and elements where the kernel, as `text` has it, asks for its place in y;
    with shared memory where it leaves the size of that open.
    """
    body = _body(kernel, text)
    is_flat = _FLAT.search(body) is not None
    count, shape = (_SIDE, f"{_SIDE},{_SIDE}") if is_flat else (_COUNT, f"{_COUNT}")
    launch = "(4, 4), (16, 16)" if is_flat else "4, 256"
    if "extern __shared__" in body:
        launch += f", {_SHARED}"
    arguments = (
        _argument(name or f"p{number}", c_type, count, shape, text)
        for number, (c_type, name) in enumerate(kernel.parameters, 1)
    )
    return f"{example_name(kernel)}<<<{launch}>>>({', '.join(arguments)})"


def _body(kernel: KernelSignature, text: str) -> str:
    """The kernel's definition and what follows it up to the next kernel."""
    name = example_name(kernel).partition("<")[0].rpartition("::")[2]
    parts = re.split(r"__global__|\.entry", text)[1:]
    return next((part for part in parts if re.search(rf"\b{re.escape(name)}\b", part)), "")


def _argument(name: str, c_type: str, count: int, shape: str, text: str) -> str:
    base = _base(c_type)
    if "*" not in c_type:
        return "1.0" if _TYPES.get(base, "").startswith("f") else str(count)
    initial = "=arange" if "const" in c_type else ""
    if vector := _VECTOR.fullmatch(base):
        element = vector[1].replace("longlong", "long long")
        element = f"unsigned {element[1:]}" if element.startswith("u") else element
        return f"{name}:{_TYPES[element]}[{shape},{vector[2]}]{initial}"
    if _is_structure(c_type, text):
        return f"{name}:u8[{shape},{_STRUCTURE}]"
    return f"{name}:{_TYPES.get(base, 'f32')}[{shape}]{initial}"


def _is_structure(c_type: str, text: str) -> bool:
    """Whether it points at a structure that the source defines."""
    name = re.escape(_base(c_type))
    opened = rf"\b(?:struct|class|union)\s+(?:__align__\(\d+\)\s*)?{name}\b[^;<>(),]*{{"
    defined = rf"{opened}|}}\s*{name}\s*;"
    return "*" in c_type and re.search(defined, text) is not None


def _base(c_type: str) -> str:
    qualifiers = ("const", "volatile", "__restrict__")
    words = c_type.replace("*", " ").split()
    return " ".join(word for word in words if word not in qualifiers)
