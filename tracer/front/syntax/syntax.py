"""Parse sources with tree-sitter-cuda: kernels with their parameters, without a compiler."""

import re
from collections.abc import Iterator
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
