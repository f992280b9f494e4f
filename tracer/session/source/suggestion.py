"""Suggest launch lines for a source without one.

The message lists the source's kernels and an example line for each. `read_own_launch` evaluates the
program's own `<<<...>>>` with the constants before it; if that fails, the example has default sizes
that fit the parameters.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from math import ceil, prod
from typing import Any

from ....base.dataclass import dataclass
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
_COUNT, _SIDE, _SHARED, _STRUCTURE = 1024, 64, 2048, 64
"""Default elements of a row and of a 2-D side, bytes of shared memory and of a structure."""
_MOST, _BLOCK = 1 << 22, 1024
"""Maximum threads of a program's own launch in a suggestion, and those of a block."""
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
    """Return the program's own launch, as far as its text has constant shape and numbers.

    The default is a launch of 1024 threads: arrays of 1024 elements, inputs counting from 0.

    A second integer is taken for the length of a row: it is 64, and arrays are longer by that
    factor. The launch has 64 by 64 threads and elements if the kernel in `text` reads its y
    position, dynamic shared memory if the kernel leaves its size open, and blocks that its launch
    bounds allow. If several of `kernels` have its name, the PTX name is used. `sizes` are the bytes
    of structures.
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
    """Return a value for each parameter if it is an integer: `count`, for later ones the side."""
    sizes, integer_count = [], 0
    for c_type, _ in kernel.parameters:
        element = _TYPES.get(_meaning(_base(c_type), text), "f32")
        is_integer = not _points(c_type) and not element.startswith("f")
        sizes.append(_SIDE if is_integer and integer_count else count)
        integer_count += is_integer
    return sizes


def _own_line(kernel: KernelSignature, text: str, sizes: Mapping[str, int]) -> str:
    """Return the text after the name in the program's own launch; empty if unknown."""
    own = read_own_launch(_own_name(kernel), text, sizes)
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
    """Return an array of the size that the program allocates, by default one element per thread."""
    if structure:
        return f"{name}:u8[{(size or threads * structure) // structure},{structure}]"
    base = _meaning(_base(c_type), text)
    vector = _VECTOR.fullmatch(base)
    written = _argument(name, c_type, 1, "1", text)
    element, suffix = written.partition(":")[2].split("[", 1)
    lanes = int(vector[2]) if vector else 1
    count = size // (int(element[1:]) // 8 * lanes) if size else threads
    shape = f"{max(count, 1)},{lanes}" if vector else f"{max(count, 1)}"
    return f"{name}:{element}[{shape}]{suffix.partition(']')[2]}"


def _own_extent(extent: tuple[int, ...]) -> str:
    return str(extent[0]) if len(extent) == 1 else f"({', '.join(map(str, extent))})"


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


_SIZES = {
    **{name: int(kind[1:]) // 8 for name, kind in _TYPES.items() if name != "void"},
    **{"unsigned int": 4, "uchar4": 4, "float2": 8, "int2": 8},
    **dict.fromkeys(("float4", "int4", "uint4", "double2"), 16),
}
"""Bytes of the types that an expression may name."""
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_CALLS: Mapping[str, Callable[..., Any]] = {"ceil": ceil, "ceilf": ceil, "min": min, "max": max}
_DEPTH, _LARGEST = 12, 1 << 40
"""Maximum chain length of names, and the largest number that counts as a size."""
Number = int | float
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OwnLaunch:
    """Grid, block, bytes of dynamic shared memory, and each argument: a number, or None.

    `sizes` holds the bytes of each array argument with a known allocation.
    """

    grid: Shape
    block: Shape
    shared: int
    numbers: tuple[Number | None, ...]
    sizes: tuple[int | None, ...]


class _UnknownError(Exception):
    """The text does not determine the value."""


def read_own_launch(name: str, text: str, sizes: Mapping[str, int] = {}) -> OwnLaunch | None:
    """Return a kernel's first launch in a program's text with constant shape and numbers.

    `sizes` are the bytes of the program's own types.
    """
    plain = _without_comments(text)
    pattern = rf"\b{re.escape(name)}\s*(?:<[^;{{}}<>]*>)?\s*<<<"
    for match in re.finditer(pattern, plain):
        try:
            return _Reader(plain, match.start(), {**_SIZES, **sizes}).launch(match.end())
        except (_UnknownError, SyntaxError, ValueError, RecursionError):
            continue
    return None


class _Reader:
    """Evaluator of a text's constants, as defined before a place in it."""

    def __init__(self, text: str, place: int, sizes: Mapping[str, int]) -> None:
        self.text, self.place, self.sizes = text, place, sizes

    def launch(self, start: int) -> OwnLaunch:
        """Return the launch with its configuration at `start`."""
        shape, end = _split(self.text, start, ">>>")
        opening = self.text.find("(", end)
        if len(shape) < 2 or opening < 0:
            raise _UnknownError
        arguments, _ = _split(self.text, opening + 1, ")")
        shared = self.number(shape[2], 0) if len(shape) > 2 else 0
        return OwnLaunch(
            self.extent(shape[0]),
            self.extent(shape[1]),
            int(shared),
            tuple(map(self._number_or_none, arguments)),
            tuple(map(self._bytes_of, arguments)),
        )

    def extent(self, words: str) -> Shape:
        """Evaluate `256`, `n / 256`, `dim3(16, 16)`, or a variable with one as its value."""
        constructor = re.fullmatch(r"\s*(?:dim3)?\s*[({](.*)[)}]\s*", words, re.S)
        if constructor and words.strip().startswith(("dim3", "{")):
            parts = _split(constructor[1] + ")", 0, ")")[0]
            return tuple(int(self.number(part, 0)) for part in parts)
        if re.fullmatch(r"\s*\w+\s*", words):
            declared = rf"\bdim3\s+(?:[^;]*,\s*)?{words.strip()}\s*(?:=\s*dim3\s*)?[({{]"
            if match := self._last(declared):
                inner = _split(self.text, match.end(), ")}")[0]
                return tuple(int(self.number(part, 0)) for part in inner)
        return (int(self.number(words, 0)),)

    def number(self, words: str, depth: int) -> Number:
        """Evaluate a constant expression."""
        value = self._value(ast.parse(_as_python(words, self.sizes), mode="eval").body, depth)
        if not -_LARGEST < value < _LARGEST:
            raise _UnknownError
        return value

    def _value(self, node: ast.AST, depth: int) -> Number:
        # Walk the tree instead of calling `eval`: the text is any program's.
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        if isinstance(node, ast.Name):
            return self._named(node.id, depth + 1)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand, depth)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            call = _CALLS.get(node.func.id)
            if call:
                return _number(call(*(self._value(each, depth) for each in node.args)))
        if isinstance(node, ast.BinOp):
            return self._binary(node, depth)
        raise _UnknownError

    def _binary(self, node: ast.BinOp, depth: int) -> Number:
        lhs, right = (self._value(each, depth) for each in (node.left, node.right))
        if isinstance(node.op, ast.Div):
            if not right:
                raise _UnknownError
            # C's integer division rounds toward zero, Python's `//` down.
            whole = isinstance(lhs, int) and isinstance(right, int)
            return int(lhs / right) if whole else lhs / right
        act = _BINARY.get(type(node.op))
        if act is None or (isinstance(node.op, ast.LShift) and not 0 <= right < 48):
            raise _UnknownError
        try:
            return _number(act(lhs, right))
        except (TypeError, ZeroDivisionError):
            raise _UnknownError from None

    def _named(self, name: str, depth: int) -> Number:
        """Return the value of a name's last definition before the launch."""
        if depth > _DEPTH:
            raise _UnknownError
        word = re.escape(name)
        if macro := self._last(rf"^[ \t]*#[ \t]*define[ \t]+{word}[ \t]+([^\n]+)"):
            return self.number(macro[1], depth)
        if match := self._last(rf"\b{word}\s*=(?!=)\s*([^;,={{}}]+?)\s*[;,]"):
            return self.number(match[1], depth)
        raise _UnknownError

    def _last(self, pattern: str) -> "re.Match[str] | None":
        matches = [*re.finditer(pattern, self.text[: self.place], re.M)]
        return matches[-1] if matches else None

    def _number_or_none(self, words: str) -> Number | None:
        try:
            return self.number(words, 0)
        except (_UnknownError, SyntaxError, ValueError, RecursionError):
            return None

    def _bytes_of(self, words: str) -> int | None:
        """Return the bytes that a pointer was allocated with."""
        name = re.search(r"(\w+)\s*$", words)
        if not name:
            return None
        pattern = (
            rf"\bcudaMalloc(?:Managed|Host)?\s*\(\s*(?:\([^()]*\)\s*)?&\s*{re.escape(name[1])}\s*,"
        )
        match = self._last(pattern)
        if not match:
            return None
        size = self._number_or_none(_split(self.text, match.end(), ")")[0][0])
        return int(size) if size and size > 0 else None


def _number(value: object) -> Number:
    if isinstance(value, int | float):
        return value
    raise _UnknownError


def _as_python(words: str, sizes: Mapping[str, int]) -> str:
    """Translate a C expression to Python: sizes for types, no casts, no suffixes."""
    words = re.sub(
        r"\bsizeof\s*\(\s*(?:struct\s+)?([\w ]+?)\s*\)", lambda w: _size(w[1], sizes), words
    )
    types = "|".join(sorted(map(re.escape, _SIZES), key=len, reverse=True))
    words = re.sub(r"\(\s*(?:float|double)\s*\)", " 1.0 * ", words)
    words = re.sub(rf"\(\s*(?:{types})\s*\)", " ", words)
    words = re.sub(r"\b(0[xX][\da-fA-F]+|\d+)[uUlL]+\b", r"\1", words)
    words = re.sub(r"\b(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)[fF]\b", r"\1", words)
    return " ".join(words.replace("std::", "").split())


def _size(name: str, sizes: Mapping[str, int]) -> str:
    if name not in sizes:
        raise _UnknownError
    return str(sizes[name])


def _split(text: str, start: int, ends: str) -> tuple[list[str], int]:
    """Return the comma-separated parts up to the closing token, and its end; `>>>` is one token."""
    depth, at, parts = 0, start, [""]
    while at < len(text):
        letter = text[at]
        closes = text.startswith(ends, at) if ends == ">>>" else letter in ends
        if closes and not depth:
            return [part.strip() for part in parts], at + (3 if ends == ">>>" else 1)
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
        at += 1
    raise _UnknownError
