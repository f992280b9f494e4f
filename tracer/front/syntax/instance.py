"""Template instances that a program uses: `reduce<float, 256>` before `<<<`, made to stand alone.

NVRTC evaluates a name expression at the end of the file, outside of every function and namespace.
So a kernel's name has its namespaces, and a name of the launching function is replaced by what it
stands for: a constant by its value, the parameter of a function template by the arguments of each
use of that template. Where a launch leaves the arguments to the compiler, the declared types of
what is passed give them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ....lazy_dataclass import dataclass
from .deduce import Scope, deduce
from .macro import write_out_launches
from .syntax import Written, find_nodes, parse_source, read_function, template_parameters, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_DEPTH = 4  # how far a function template is followed to those that use it


@dataclass(frozen=True, slots=True)
class _Use:
    """A template with its arguments as written somewhere, and the function that it stands in."""

    name: str
    arguments: tuple[str, ...]
    within: "Node | None"


def used_instances(text: str) -> tuple[str, ...]:
    """The instances of the file's kernel templates that its code uses, without repetition."""
    root = parse_source(write_out_launches(text))
    templates = _function_templates(root)
    kernels = {name: full for name, (_, full) in templates.items() if full}
    if not kernels:
        return ()
    uses = list(_uses(root, {name: written for name, (written, _) in templates.items()}))
    found: dict[str, None] = {}
    for use in uses:
        if use.name in kernels:
            for arguments in _resolve(use, uses, _DEPTH):
                found[f"{kernels[use.name]}<{', '.join(arguments)}>"] = None
    return tuple(found)


def _function_templates(root: "Node") -> dict[str, tuple[Written, str]]:
    """Function templates by name; with a kernel, its name with namespaces, else `""`."""
    found: dict[str, tuple[Written, str]] = {}
    for node in find_nodes(root, "template_declaration"):
        function = node.children[-1]
        written = read_function(function, (), template_parameters(node))
        if written:
            is_kernel = any(child.type == "__global__" for child in function.children)
            full = "::".join(_scope(node, written.name)) if is_kernel else ""
            found[written.name] = written, full
    return found


def _scope(node: "Node", name: str) -> tuple[str, ...]:
    """The namespaces around a node, from the outside in, then `name`."""
    at = node.parent
    while at and at.type != "namespace_definition":
        at = at.parent
    if not at:
        return (name,)
    named = at.child_by_field_name("name")
    return (*_scope(at, text_of(named)), name) if named else _scope(at, name)


def _uses(root: "Node", templates: Mapping[str, Written]) -> Iterator[_Use]:
    """Every template with its arguments, and every call that leaves them to the compiler."""
    for node in find_nodes(root, "template_function", "template_type", "call_expression"):
        within = _enclosing(node)
        if node.type == "call_expression":
            yield from _call(node, templates, Scope(root, within), within)
            continue
        name, given = _named(node)
        if name and not _is_called(node):
            yield _Use(name, given, within)


def _call(
    node: "Node", templates: Mapping[str, Written], scope: Scope, within: "Node | None"
) -> Iterator[_Use]:
    """A call of a template, with the arguments that are written and those that can be deduced."""
    function = _unqualified(node.child_by_field_name("function"))
    listed = node.child_by_field_name("arguments")
    if not function or not listed:
        return
    name, explicit = _named(function) if function.type == "template_function" else ("", ())
    template = templates.get(name or text_of(function))
    if template:
        arguments = deduce(template, explicit, listed.named_children, scope)
        if arguments:
            yield _Use(template.name, arguments, within)


def _named(node: "Node") -> tuple[str, tuple[str, ...]]:
    """`scale<float, 4>` as a name and its arguments."""
    name = node.child_by_field_name("name")
    listed = node.child_by_field_name("arguments")
    if not name or not listed:
        return "", ()
    return text_of(name), tuple(text_of(each) for each in listed.named_children)


def _unqualified(node: "Node | None") -> "Node | None":
    """`move<T>` of `physics::move<T>`."""
    while node and node.type == "qualified_identifier":
        node = node.child_by_field_name("name")
    return node


def _is_called(node: "Node") -> bool:
    """Whether it is what a call calls, and seen there."""
    call = node.parent
    while call and call.type == "qualified_identifier":
        call = call.parent
    return bool(
        call
        and call.type == "call_expression"
        and _unqualified(call.child_by_field_name("function")) == node
    )


def _enclosing(node: "Node") -> "Node | None":
    """The function definition around a node."""
    at = node.parent
    while at and at.type != "function_definition":
        at = at.parent
    return at


def _resolve(use: _Use, uses: Iterable[_Use], depth: int) -> Iterator[tuple[str, ...]]:
    """The arguments of a use with nothing of its function left in them, a tuple an instance."""
    if not use.within or depth == 0:
        yield use.arguments
        return
    constants = _constants(use.within)
    arguments = tuple(_replace(_replace(each, constants), constants) for each in use.arguments)
    owner, names = _owner(use.within)
    if not {word for each in arguments for word in re.findall(r"\w+", each)} & set(names):
        yield arguments
        return
    for other in uses:
        if other.name == owner and other.within != use.within:
            for values in _resolve(other, uses, depth - 1):
                table = dict(zip(names, values, strict=False))
                yield tuple(_replace(each, table) for each in arguments)


def _owner(function: "Node") -> tuple[str, tuple[str, ...]]:
    """The template that a function belongs to, itself or its class, and that one's parameters."""
    at: Node | None = function
    while at and at.parent and at.parent.type != "template_declaration":
        at = at.parent
    if not at or not at.parent:
        return "", ()
    names = template_parameters(at.parent)
    if at.type != "function_definition":
        named = at.child_by_field_name("name")
        return text_of(named) if named else "", names
    scope = re.search(r"(\w+)\s*<[^<>]*>\s*::", text_of(at).partition("{")[0])
    written = read_function(at)
    return scope[1] if scope else written.name if written else "", names


def _replace(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\b[A-Za-z_]\w*", lambda word: values.get(word[0], word[0]), text)


def _constants(function: "Node") -> dict[str, str]:
    """What the function's own constants, types and enumerators stand for: `const int n = 16`."""
    found: dict[str, str] = {}
    for node in find_nodes(function, "declaration", "type_definition", "alias_declaration"):
        text = " ".join(text_of(node).rstrip(";").split())
        if value := re.fullmatch(r".*\bconst(?:expr)?\b.*?(\w+) ?= ?([^,{]+)", text):
            found[value[1]] = value[2] if value[2].isalnum() else f"({value[2]})"
        elif name := re.fullmatch(r"typedef (.+?) ?(\w+)", text):
            found[name[2]] = name[1]
        elif alias := re.fullmatch(r"using (\w+) ?= ?(.+)", text):
            found[alias[1]] = alias[2]
    for node in find_nodes(function, "enumerator"):
        named, valued = (node.child_by_field_name(field) for field in ("name", "value"))
        if named and valued:
            found[text_of(named)] = f"({text_of(valued)})"
    return found
