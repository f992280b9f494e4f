"""Convert file-scope texture and surface references, which NVRTC 12 dropped, into objects.

`texture<float, 1> t;` becomes, on the same line, a constant variable that holds a handle:
`namespace cutrace_texture { __constant__ texture<float, 1> t; } using cutrace_texture::t;`, and
`surface<void, 2> s;` likewise in `cutrace_surface`. `headers/reference_class.cuh` has the class
templates and the fetches. The namespace identifies a handle by its PTX name,
`_ZN15cutrace_texture1tE` (`is_handle`), so the trace can omit the load of the handle, which a real
reference does not make.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from .demangle import demangle
from .source import TextureReference
from .syntax.syntax import CONTAINERS, parse_source

if TYPE_CHECKING:
    from tree_sitter import Node

NAMESPACE = "cutrace_texture"
_SURFACES = "cutrace_surface"
_NAMESPACES = {b"texture": NAMESPACE, b"surface": _SURFACES}
_MANGLED = f"{len(NAMESPACE)}{NAMESPACE}"
_DECLARED = re.compile(r"\b(?:texture|surface)\s*<")
_SYMBOL = re.compile(
    rf"^(?:\.visible |\.weak )?\.const \.align \d+ \.\w+ (\w*{_MANGLED}\w+)", re.MULTILINE
)
_KINDS = {
    **{"cudaTextureType1D": 1, "cudaTextureType2D": 2, "cudaTextureType3D": 3},
    **{"cudaTextureType1DLayered": 0xF1, "cudaTextureType2DLayered": 0xF2},
    **{"cudaTextureTypeCubemap": 0x0C, "cudaTextureTypeCubemapLayered": 0xFC},
}


def is_handle(symbol: str) -> bool:
    """Return True if a PTX variable holds the handle of a texture or surface reference."""
    return _MANGLED in symbol or bool(surface_name(symbol))


def surface_name(symbol: str) -> str:
    """Return the C name of the surface reference of a PTX variable, or `""`."""
    read = demangle(symbol) if _SURFACES in symbol else None
    return read.name.replace(f"{_SURFACES}::", "") if read else ""


def declares_references(text: str) -> bool:
    """Return True if a text may declare references."""
    return _DECLARED.search(text) is not None


def replace_references(text: str) -> tuple[str, dict[str, tuple[str, ...]]]:
    """Return the text with handles for references, and each one's template arguments by name."""
    if not declares_references(text):
        return text, {}
    raw = text.encode()
    declared: dict[str, tuple[str, ...]] = {}
    for node in reversed(list(_references(parse_source(text)))):
        names = [_name(each) for each in node.children_by_field_name("declarator")]
        kind = node.child_by_field_name("type")
        assert kind is not None
        namespace = _NAMESPACES[_template(kind)]
        declared |= dict.fromkeys(names, _arguments(kind))
        usings = " ".join(f"using {namespace}::{name};" for name in names)
        handles = f"{(kind.text or b'').decode()} {', '.join(names)};"
        lines = "\n" * ((node.text or b"").count(b"\n") - (kind.text or b"").count(b"\n"))
        new = f"namespace {namespace} {{ __constant__ {handles} }} {usings}{lines}"
        raw = raw[: node.start_byte] + new.encode() + raw[node.end_byte :]
    return raw.decode(), declared


def list_references(
    ptx: str, declared: Mapping[str, tuple[str, ...]]
) -> tuple[TextureReference, ...]:
    """Return the references of a module, with the PTX names of their handles."""
    return tuple(_reference(symbol, declared) for symbol in _SYMBOL.findall(ptx))


def _reference(symbol: str, declared: Mapping[str, tuple[str, ...]]) -> TextureReference:
    read = demangle(symbol)
    name = read.name.replace(f"{NAMESPACE}::", "") if read else symbol
    arguments = (*declared.get(name.rpartition("::")[2], ()), "", "", "")
    return TextureReference(
        name=name,
        symbol=symbol,
        texel=arguments[0],
        kind=_KINDS.get(arguments[1], int(arguments[1]) if arguments[1].isdigit() else 1),
        read_mode="normalized_float" if "Normalized" in arguments[2] else "element",
    )


def _references(node: "Node") -> Iterator["Node"]:
    for child in node.children:
        kind = child.child_by_field_name("type")
        if child.type in CONTAINERS:
            yield from _references(child)
        elif child.type == "declaration" and kind and _template(kind) in _NAMESPACES:
            yield child


def _template(kind: "Node") -> bytes:
    """Return `texture` of `texture<float, 1>`."""
    name = kind.child_by_field_name("name") if kind.type == "template_type" else None
    return (name.text if name else None) or b""


def _arguments(kind: "Node") -> tuple[str, ...]:
    listed = kind.child_by_field_name("arguments")
    return tuple((each.text or b"").decode() for each in listed.named_children) if listed else ()


def _name(declarator: "Node") -> str:
    """Return the declared name: t for `t(0, cudaFilterModeLinear)` and `t = {...}`."""
    match = re.match(rb"\w+", declarator.text or b"")
    return match[0].decode() if match else ""
