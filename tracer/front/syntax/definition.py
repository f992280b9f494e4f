"""Find the top-level definitions of a file, classify them as host or device code, and blank them.

Host code that NVRTC cannot compile is blanked: every character except line ends becomes a space, so
that no line moves. Preprocessor directives inside stay, since later text may need them.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ....base.dataclass import dataclass
from .syntax import CONTAINERS, parse_source

if TYPE_CHECKING:
    from tree_sitter import Node

MARKERS = frozenset(
    {
        *("__global__", "__device__", "__constant__", "__managed__", "__shared__"),
        *("cutrace_texture", "cutrace_surface"),
    }
)
"""Words that mark a definition as device code."""

_COMMENT = re.compile(rb'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)\n]*\))?((?:\\\r?\n|[^\n])*)", re.M)
_NEAR = 400
"""Bytes before a definition that are searched for a marker in a conditional."""
_CONDITIONAL_END = re.compile(rb"(?:\n[ \t]*#[ \t]*(?:else|elif|endif)\b[^\n]*\s*)+$")
_DIRECTIVE = re.compile(rb"\s*#\s*(if|ifdef|ifndef|else|elif|endif|define|undef)\b")
_HOST_CALL = re.compile(rb"<<<|\bmain\s*\(|\bcuda[A-Z]\w*\s*\(|\bstd::c(?:out|err)\b|\bexit\s*\(")
_CLASSES = ("class_specifier", "struct_specifier", "union_specifier")
_NOT_CODE = frozenset(
    {
        *("comment", "preproc_def", "preproc_function_def", "preproc_include", "preproc_call"),
        *("identifier", "namespace_identifier", "string_literal"),
    }
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition: bytes `start` to `end` of the UTF-8 text, lines `first` to `last` from 1.

    `is_host` is True if it must be host code: a function that launches or calls the runtime
    library, or a non-const file-scope variable. Device code cannot use either; with
    `-default-device` the variable would become a device variable and take memory.
    """

    start: int
    end: int
    first: int
    last: int
    is_device: bool
    is_host: bool
    is_function: bool
    name: str

    def covers(self, line: int) -> bool:
        """Return True if the definition includes part of that line."""
        return self.first <= line <= self.last


def marking_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the device markers and macros that expand to one: `#define HD __host__ __device__`."""
    macros = [(name, set(re.findall(r"\w+", body))) for t in texts for name, body in _defines(t)]
    words = set(MARKERS)
    while more := {name for name, body in macros if body & words} - words:
        words |= more
    return frozenset(words)


def _defines(text: str) -> list[tuple[str, str]]:
    return _DEFINE.findall(text)


def definitions(text: str, markers: frozenset[str] = MARKERS) -> tuple[Definition, ...]:
    """Return the definitions of a file in order, including members of classes with device code.

    Namespaces, `extern "C"` blocks and `#if` are searched inside. For a function only the text
    before its body decides whether it is device code.
    """
    return tuple(_walk(parse_source(text), marker_pattern(markers), text.encode()))


def marker_pattern(markers: frozenset[str]) -> re.Pattern[bytes]:
    """Return a pattern that matches any of these words."""
    return re.compile(rb"\b(?:" + b"|".join(word.encode() for word in sorted(markers)) + rb")\b")


def _walk(node: "Node", markers: re.Pattern[bytes], raw: bytes) -> Iterator[Definition]:
    for child in node.children:
        if _is_container(child):
            yield from _walk(child, markers, raw)
        elif child.is_named and child.type not in _NOT_CODE and child.end_byte > child.start_byte:
            is_device = bool(markers.search(_COMMENT.sub(b" ", _deciding_text(child))))
            is_device = (
                is_device
                or _is_marked_before(raw, child.start_byte, markers)
                or _is_class_for_both(child)
            )
            yield _definition(child, is_device, not is_device and _is_host(child))
            if is_device:
                yield from _members(child, markers)


def _is_class_for_both(node: "Node") -> bool:
    """Return True for a class with members marked as host code: its others may be device code."""
    is_class = any(
        each.type in _CLASSES and each.child_by_field_name("body")
        for each in (node, *node.children)
    )
    return is_class and b"__host__" in _COMMENT.sub(b" ", node.text or b"")


def _is_marked_before(raw: bytes, start: int, markers: re.Pattern[bytes]) -> bool:
    """Return True if a conditional right before a definition ends with a marker.

    `#if USE_CONSTANT` / `__constant__` / `#endif` / `float table[4] = {...};`
    """
    before = _COMMENT.sub(b" ", raw[max(0, start - _NEAR) : start])
    ending = _CONDITIONAL_END.search(before)
    words = before[: ending.start()].split() if ending else []
    return bool(words and markers.fullmatch(words[-1]))


def _is_container(node: "Node") -> bool:
    """Return True if definitions are searched inside the node.

    A template is one definition, and so is `extern "C" void f() {...}`.
    """
    if node.type == "linkage_specification":
        return any(child.type == "declaration_list" for child in node.children)
    return node.type in CONTAINERS and node.type != "template_declaration"


def _members(node: "Node", markers: re.Pattern[bytes]) -> Iterator[Definition]:
    """Yield the unmarked members of a class that has marked ones."""
    for inner in (node, *node.children):
        body = inner.child_by_field_name("body") if inner.type in _CLASSES else None
        for member in body.named_children if body else ():
            text = _COMMENT.sub(b" ", _deciding_text(member))
            if member.type.endswith(("_definition", "declaration")) and not markers.search(text):
                yield _definition(member, False, False)


def _deciding_text(node: "Node") -> bytes:
    """Return the text to search for markers: a function up to its body, all of anything else."""
    whole = node.text or b""
    function = node
    while function.type in ("template_declaration", "linkage_specification"):
        function = function.children[-1]
    body = function.child_by_field_name("body") if "function" in function.type else None
    return whole[: body.start_byte - node.start_byte] if body else whole


def _is_host(node: "Node") -> bool:
    if node.type == "function_definition":
        return bool(_HOST_CALL.search(_COMMENT.sub(b" ", node.text or b"")))
    return _is_variable(node)


def _is_variable(node: "Node") -> bool:
    """Return True if a declaration creates a mutable variable."""
    declared = node.children_by_field_name("declarator")
    if node.type != "declaration" or any("function" in _innermost(each) for each in declared):
        return False
    if _is_in_broken_braces(node):
        return False
    fixed = {"const", "constexpr", "extern", "typedef"}
    return bool(declared) and not any((c.text or b"").decode() in fixed for c in node.children)


def _is_in_broken_braces(node: "Node") -> bool:
    """Return True if the parser lost track of braces nearby, so this may be a class member."""
    around = node.parent.children if node.parent else []
    return any(each.type == "ERROR" and b"}" in (each.text or b"") for each in around)


def _innermost(node: "Node") -> str:
    """Return the node types of the declarators, outermost first, as one word."""
    inner = node.child_by_field_name("declarator")
    return f"{node.type} {_innermost(inner)}" if inner else node.type


def _definition(node: "Node", is_device: bool, is_host: bool) -> Definition:
    return Definition(
        start=node.start_byte,
        end=node.end_byte,
        first=node.start_point[0] + 1,
        last=node.end_point[0] + 1,
        is_device=is_device,
        is_host=is_host,
        is_function=node.type == "function_definition",
        name=defined_name(node.text or b""),
    )


def defined_name(text: bytes) -> str:
    """Return the defined name: the first line's word before `(`, `=`, `[`, or its last one."""
    head = _COMMENT.sub(b" ", text).decode(errors="replace").partition("{")[0]
    match = re.search(r"(~?\w+)\s*(?:\(|=|\[|;|$)", " ".join(head.split()))
    return match[1] if match else ""


def at_column(definition: Definition, text: str, line: int, column: int) -> bool:
    """Return True if a definition covers a column (in characters, from 0) of a line of `text`."""
    lines = text.split("\n")
    if column < 0 or line > len(lines):
        return False
    before = "\n".join((*lines[: line - 1], lines[line - 1][:column]))
    return definition.start <= len(before.encode()) < definition.end


def blank(text: str, cut: Iterable[Definition]) -> str:
    """Return the text with these definitions blanked; line ends and `#if`, `#define` etc. stay."""
    raw = bytearray(text.encode())
    for each in cut:
        at = raw.rfind(b"\n", 0, each.start) + 1
        in_macro = False
        for line in bytes(raw[at : each.end]).splitlines(keepends=True):
            in_macro = in_macro or bool(_DIRECTIVE.match(line))
            if not in_macro:
                first = max(at, each.start)
                raw[first : at + len(line)] = _spaces(bytes(raw[first : at + len(line)]))
            in_macro = in_macro and line.rstrip(b"\r\n").endswith(b"\\")
            at += len(line)
    return raw.decode()


def _spaces(line: bytes) -> bytes:
    return re.sub(rb"[^\r\n]", b" ", line)
