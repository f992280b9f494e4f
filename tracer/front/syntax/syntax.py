"""Parse sources with tree-sitter-cuda, without a compiler: kernels, parameters, definitions.

The top-level definitions of a file are classified as host or device code. Host code that NVRTC
cannot compile is blanked: every character except line ends becomes a space, so that no line moves.
Preprocessor directives inside stay, since later text may need them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING

from ....base.dataclass import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

CONTAINERS = frozenset(
    {
        *("translation_unit", "namespace_definition", "declaration_list", "linkage_specification"),
        *("template_declaration", "preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif"),
        *("preproc_elifdef", "ERROR"),
    }
)
"""Node types that contain top-level definitions."""


@dataclass(frozen=True, slots=True)
class Written:
    """A function, usually a kernel, as its source declares it.

    `name` is qualified; `template` holds the names of its template parameters, None if it is no
    template; `parameters` are (C type, name); `line` counts from 1.
    """

    name: str
    template: tuple[str, ...] | None
    parameters: tuple[tuple[str, str], ...]
    line: int


@cache
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_cuda

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def parse_source(text: str) -> "Node":
    """Return the root of the syntax tree of CUDA C++; positions are byte offsets in UTF-8.

    `__align__(8)` is replaced by spaces: the grammar lacks it, and no caller needs it. So are
    branches of conditionals that would unbalance the braces.
    """
    raw = _ALIGN.sub(lambda match: b" " * len(match[0]), show_one_branch(text.encode()))
    return _parser().parse(raw).root_node


_ALIGN = re.compile(rb"\b(?:__align__|__builtin_align__|__declspec)[ \t]*\([^()\n]*(?:\(\w*\))?\)")


def find_nodes(root: "Node", *kinds: str) -> "list[Node]":
    """Return every node of these types at any depth, in text order."""
    import tree_sitter

    nodes = tree_sitter.QueryCursor(_query(kinds)).captures(root).get("found", [])
    return sorted(nodes, key=lambda node: node.start_byte)


@cache
def _query(kinds: tuple[str, ...]) -> "Query":
    import tree_sitter

    language = _parser().language
    assert language is not None
    return tree_sitter.Query(language, " ".join(f"({kind}) @found" for kind in kinds))


def written_kernels(text: str) -> tuple[Written, ...]:
    """Return every `__global__` function that `text` declares or defines, in order."""
    return tuple(_kernels(parse_source(text), (), None))


def _kernels(
    node: "Node", scope: tuple[str, ...], template: tuple[str, ...] | None
) -> Iterator[Written]:
    for child in node.children:
        if child.type == "template_declaration":
            yield from _kernels(child, scope, template_parameters(child))
        elif child.type == "namespace_definition":
            name = child.child_by_field_name("name")
            yield from _kernels(child, (*scope, *_texts(name)), None)
        elif child.type in CONTAINERS:
            yield from _kernels(child, scope, template)
        elif any(part.type == "__global__" for part in child.children):
            kernel = read_function(child, scope, template)
            if kernel:
                yield kernel


def read_function(
    node: "Node", scope: tuple[str, ...] = (), template: tuple[str, ...] | None = None
) -> Written | None:
    """Return the signature in a function's declaration or definition; None if it is none."""
    function = _declarator(node, "function_declarator")
    name = function and function.child_by_field_name("declarator")
    parameters = function and function.child_by_field_name("parameters")
    if not name or not parameters or name.type not in ("identifier", "qualified_identifier"):
        return None
    signature = tuple(_parameter(each) for each in parameters.children if each.type in _PARAMETERS)
    if signature == (("void", ""),):
        signature = ()
    return Written("::".join((*scope, text_of(name))), template, signature, node.start_point[0] + 1)


_PARAMETERS = (
    "parameter_declaration",
    "optional_parameter_declaration",
    "variadic_parameter_declaration",
)


def _parameter(node: "Node") -> tuple[str, str]:
    """Return `("const float *", "x")` for `const float *x = 0`."""
    whole = node.text or b""
    default = node.child_by_field_name("default_value")
    if default:
        whole = whole[: default.start_byte - node.start_byte].rstrip().removesuffix(b"=")
    name = _declarator(node, "identifier")
    if not name:
        return _squeeze(whole), ""
    first, last = (at - node.start_byte for at in (name.start_byte, name.end_byte))
    return _squeeze(whole[:first] + whole[last:]), text_of(name)


def _declarator(node: "Node", kind: str) -> "Node | None":
    """Follow the declarators inward to the first of that kind."""
    at = node.child_by_field_name("declarator")
    while at and at.type != kind:
        inner = at.child_by_field_name("declarator")
        at = inner or next((c for c in at.named_children if c.type.endswith(_INNER)), None)
    return at


_INNER = ("declarator", "identifier")


def template_parameters(node: "Node") -> tuple[str, ...]:
    """Return the names between `template <` and `>`."""
    listed = node.child_by_field_name("parameters")
    names = []
    for each in listed.named_children if listed else ():
        name = _declarator(each, "identifier") or each.child_by_field_name("name")
        name = name or next((c for c in each.named_children if c.type == "type_identifier"), None)
        names.append(text_of(name) if name else "")
    return tuple(names)


def text_of(node: "Node") -> str:
    """Return the source text of a node."""
    return (node.text or b"").decode()


def _texts(node: "Node | None") -> tuple[str, ...]:
    return (text_of(node),) if node else ()


def _squeeze(text: bytes) -> str:
    """Put one space between words and before a star: `const float* ` -> `const float *`."""
    return re.sub(r"(?<=[\w>])(?=[*&])", " ", " ".join(text.decode().split()))


_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|else|elif|endif)\b", re.MULTILINE)
_NOT_CODE = re.compile(
    rb'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.){1,4}\'', re.DOTALL
)


@dataclass
class _Conditional:
    """Start of each branch of a preprocessor conditional, after its directive, and the end."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


def show_one_branch(text: bytes) -> bytes:
    """Blank all but the first branch of each conditional with unbalanced braces in a branch."""
    if b"#" not in text:
        return text
    for each in _conditionals(text):
        branches = list(zip(each.starts, each.ends, strict=True))
        if any(_open_braces(text[start:end]) for start, end in branches):
            for start, end in branches[1:]:
                text = text[:start] + re.sub(rb"[^\r\n]", b" ", text[start:end]) + text[end:]
    return text


def _conditionals(text: bytes) -> list[_Conditional]:
    """Return the conditionals of a text, inner ones before outer ones."""
    waiting: list[_Conditional] = []
    conditionals = []
    for directive in _DIRECTIVE.finditer(text):
        line_end = text.find(b"\n", directive.end()) + 1 or len(text)
        if directive[1].startswith(b"if"):
            waiting.append(_Conditional([line_end]))
        elif waiting:
            waiting[-1].ends.append(directive.start())
            if directive[1] == b"endif":
                conditionals.append(waiting.pop())
            else:
                waiting[-1].starts.append(line_end)
    return conditionals


def _open_braces(branch: bytes) -> int:
    code = _NOT_CODE.sub(b"", branch)
    return code.count(b"{") - code.count(b"}")


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
_MACRO_LINE = re.compile(rb"\s*#\s*(if|ifdef|ifndef|else|elif|endif|define|undef)\b")
_HOST_CALL = re.compile(rb"<<<|\bmain\s*\(|\bcuda[A-Z]\w*\s*\(|\bstd::c(?:out|err)\b|\bexit\s*\(")
_CLASSES = ("class_specifier", "struct_specifier", "union_specifier")
_NO_DEFINITION = frozenset(
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
        elif (
            child.is_named
            and child.type not in _NO_DEFINITION
            and child.end_byte > child.start_byte
        ):
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
            in_macro = in_macro or bool(_MACRO_LINE.match(line))
            if not in_macro:
                first = max(at, each.start)
                raw[first : at + len(line)] = _spaces(bytes(raw[first : at + len(line)]))
            in_macro = in_macro and line.rstrip(b"\r\n").endswith(b"\\")
            at += len(line)
    return raw.decode()


def _spaces(line: bytes) -> bytes:
    return re.sub(rb"[^\r\n]", b" ", line)
