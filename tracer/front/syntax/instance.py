"""Find the template instances that a program uses, as expressions valid at the end of the file.

An example is `reduce<float, 256>` before `<<<`. NVRTC evaluates a name expression at the end of the
file, outside all functions and namespaces. So kernel names are qualified, and names local to the
launching function are replaced: a constant by its value, a parameter of a function template by the
arguments of each use of that template. If a launch leaves template arguments to the compiler, they
are deduced from the declared types of the call's arguments.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ....base.dataclass import dataclass
from .syntax import Written, find_nodes, parse_source, read_function, template_parameters, text_of

if TYPE_CHECKING:
    from tree_sitter import Node


_NOT_TYPE = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|static|constexpr|struct)\b|&")
_VECTOR = re.compile(r"\b(?:device_vector|host_vector|vector)\s*<\s*(.+?)\s*>\s*$")
_CASTS = ("static_cast", "reinterpret_cast", "const_cast")
_LITERALS = (
    (re.compile(r"-?\d+"), "int"),
    (re.compile(r"-?\d+[uU]"), "unsigned int"),
    (re.compile(r"-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?[fF]"), "float"),
    (re.compile(r"-?(?:\d+\.\d*|\.\d+|\d+[eE][+-]?\d+)"), "double"),
    (re.compile(r"true|false"), "bool"),
)


class Scope:
    """The declarations around a call: first its function's, then its file's."""

    def __init__(self, root: "Node", within: "Node | None") -> None:
        self.places = (within, root) if within else (root,)

    def type_of(self, node: "Node") -> str:
        """Return the declared type of an expression, or `""`."""
        text = text_of(node)
        reader = getattr(self, f"_{node.type}", None)
        if reader:
            c_type: str = reader(node)
            return c_type
        return next((name for pattern, name in _LITERALS if pattern.fullmatch(text)), "")

    def _identifier(self, node: "Node") -> str:
        return self._declared(text_of(node), "declaration", "parameter_declaration")

    def _field_expression(self, node: "Node") -> str:
        field = node.child_by_field_name("field")
        return self._declared(text_of(field), "field_declaration") if field else ""

    def _cast_expression(self, node: "Node") -> str:
        kind = node.child_by_field_name("type")
        return text_of(kind) if kind else ""

    def _compound_literal_expression(self, node: "Node") -> str:
        """Return the type of `Type{x}`."""
        kind = node.child_by_field_name("type")
        return text_of(kind) if kind else ""

    def _pointer_expression(self, node: "Node") -> str:
        inner = self.type_of(node.named_children[-1])
        if text_of(node).startswith("&"):
            return f"{inner} *" if inner else ""
        return _without_star(inner)

    def _subscript_expression(self, node: "Node") -> str:
        inner = self.type_of(node.named_children[0])
        vector = _VECTOR.search(inner)
        return vector[1] if vector else _without_star(inner)

    def _binary_expression(self, node: "Node") -> str:
        return self.type_of(node.named_children[0])

    def _parenthesized_expression(self, node: "Node") -> str:
        return self.type_of(node.named_children[0])

    def _call_expression(self, node: "Node") -> str:
        """Type `static_cast<T>(x)`, `Type<T>(x)`, a vector's `data()`, `raw_pointer_cast(...)`."""
        called, call_arguments = (
            node.child_by_field_name(name) for name in ("function", "arguments")
        )
        if not called or not call_arguments:
            return ""
        text = text_of(called)
        if text.startswith(_CASTS):
            return text.partition("<")[2].rstrip("> ")
        if text.endswith("raw_pointer_cast") and call_arguments.named_children:
            return self.type_of(call_arguments.named_children[0])
        if called.type == "field_expression" and text.endswith((".data", ".get", ".begin")):
            return self._pointer_into(called)
        name = text.partition("<")[0].rstrip()
        return text if called.type == "primitive_type" or self._is_class(name) else ""

    def _pointer_into(self, called: "Node") -> str:
        owner = self.type_of(called.named_children[0])
        vector = _VECTOR.search(owner)
        return f"{vector[1]} *" if vector else owner

    def _is_class(self, name: str) -> bool:
        classes = find_nodes(self.places[-1], "struct_specifier", "class_specifier")
        names = (each.child_by_field_name("name") for each in classes)
        return name in {text_of(each) for each in names if each}

    def _declared(self, name: str, *kinds: str) -> str:
        """Return the declared type of `name`, including stars."""
        word = re.compile(rf"([*&\s]*)\b{re.escape(name)}\b\s*((?:\[[^\]]*\])*)")
        for node in (node for place in self.places for node in find_nodes(place, *kinds)):
            kind = node.child_by_field_name("type")
            for declarator in node.children_by_field_name("declarator"):
                match = word.match(text_of(declarator))
                if kind and match:
                    return f"{text_of(kind)} {match[1]}{'*' * match[2].count('[')}"
        return ""


def deduce(
    template: Written, explicit: Sequence[str], values: Sequence["Node"], scope: Scope
) -> tuple[str, ...]:
    """Return the arguments of `template`: explicit ones, then those deduced from `values`."""
    names = template.template or ()
    bindings = dict(zip(names, explicit, strict=False))
    for (declared, _), value in zip(template.parameters, values, strict=False):
        name, stars = _bare(declared)
        if name in names and name not in bindings:
            actual, depth = _bare(scope.type_of(value))
            if actual and depth >= stars:
                bindings[name] = actual + "*" * (depth - stars)
    template_arguments = [bindings.get(name, "") for name in names]
    while template_arguments and not template_arguments[-1]:
        template_arguments.pop()  # the remaining parameters may have defaults
    return tuple(template_arguments) if all(template_arguments) else tuple(explicit)


def _bare(ctype: str) -> tuple[str, int]:
    """Return a type without qualifiers, and its number of stars; an array counts as one."""
    words = _NOT_TYPE.sub(" ", ctype)
    stars = words.count("*") + words.count("[")
    return " ".join(re.sub(r"\[.*|\*", " ", words).split()), stars


def _without_star(ctype: str) -> str:
    head, _, tail = ctype.rpartition("*")
    return f"{head}{tail}" if head else ""


_DEPTH = 4  # nesting depth of function templates that is followed


@dataclass(frozen=True, slots=True)
class _Use:
    """A template with its arguments as written at a use, and the function around the use."""

    name: str
    arguments: tuple[str, ...]
    within: "Node | None"


def used_instances(text: str) -> tuple[str, ...]:
    """Return the distinct instances of the file's kernel templates that its code uses."""
    root = parse_source(write_out_launches(text))
    templates = _function_templates(root)
    kernels = {name: full for name, (_, full) in templates.items() if full}
    if not kernels:
        return ()
    uses = list(_uses(root, {name: written for name, (written, _) in templates.items()}))
    instances: dict[str, None] = {}
    for use in uses:
        if use.name in kernels:
            for arguments in _resolve(use, uses, _DEPTH):
                instances[f"{kernels[use.name]}<{', '.join(arguments)}>"] = None
    return tuple(instances)


def _function_templates(root: "Node") -> dict[str, tuple[Written, str]]:
    """Return the function templates by name; for a kernel with its qualified name, else `""`."""
    templates: dict[str, tuple[Written, str]] = {}
    for node in find_nodes(root, "template_declaration"):
        function = node.children[-1]
        written = read_function(function, (), template_parameters(node))
        if written:
            is_kernel = any(child.type == "__global__" for child in function.children)
            full = "::".join(_scope(node, written.name)) if is_kernel else ""
            templates[written.name] = written, full
    return templates


def _scope(node: "Node", name: str) -> tuple[str, ...]:
    """Return the namespaces around a node, outermost first, then `name`."""
    at = node.parent
    while at and at.type != "namespace_definition":
        at = at.parent
    if not at:
        return (name,)
    named = at.child_by_field_name("name")
    return (*_scope(at, text_of(named)), name) if named else _scope(at, name)


def _uses(root: "Node", templates: Mapping[str, Written]) -> Iterator[_Use]:
    """Yield every template with arguments, and every call with deduced arguments."""
    for node in find_nodes(root, "template_function", "template_type", "call_expression"):
        within = _enclosing(node)
        if node.type == "call_expression":
            yield from _call(node, templates, Scope(root, within), within)
            continue
        name, template_arguments = _named(node)
        if name and not _is_called(node):
            yield _Use(name, template_arguments, within)


def _call(
    node: "Node", templates: Mapping[str, Written], scope: Scope, within: "Node | None"
) -> Iterator[_Use]:
    """Yield the use in a template call, with explicit and deduced arguments."""
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
    """Return name and arguments of `scale<float, 4>`."""
    name = node.child_by_field_name("name")
    listed = node.child_by_field_name("arguments")
    if not name or not listed:
        return "", ()
    return text_of(name), tuple(text_of(each) for each in listed.named_children)


def _unqualified(node: "Node | None") -> "Node | None":
    """Return `move<T>` of `physics::move<T>`."""
    while node and node.type == "qualified_identifier":
        node = node.child_by_field_name("name")
    return node


def _is_called(node: "Node") -> bool:
    """Return True if the node is a callee: `_call` yields the uses of calls."""
    call = node.parent
    while call and call.type == "qualified_identifier":
        call = call.parent
    return bool(
        call
        and call.type == "call_expression"
        and _unqualified(call.child_by_field_name("function")) == node
    )


def _enclosing(node: "Node") -> "Node | None":
    """Return the function definition around a node."""
    at = node.parent
    while at and at.type != "function_definition":
        at = at.parent
    return at


def _resolve(use: _Use, uses: Iterable[_Use], depth: int) -> Iterator[tuple[str, ...]]:
    """Yield the arguments of a use, one tuple per instance, without names of its function."""
    if not use.within or depth == 0:
        yield use.arguments
        return
    # Substitute twice: a constant may be defined by another one of the same function.
    constants = _constants(use.within)
    arguments = tuple(_replace(_replace(each, constants), constants) for each in use.arguments)
    owner, names = _owner(use.within)
    if not {word for each in arguments for word in re.findall(r"\w+", each)} & set(names):
        yield arguments
        return
    # The arguments name parameters of the enclosing template: substitute those of each of its uses.
    for other in uses:
        if other.name == owner and other.within != use.within:
            for values in _resolve(other, uses, depth - 1):
                table = dict(zip(names, values, strict=False))
                yield tuple(_replace(each, table) for each in arguments)


def _owner(function: "Node") -> tuple[str, tuple[str, ...]]:
    """Return the template of a function or of its class, and its parameters."""
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
    """Return the values of the function's constants, types and enumerators: `const int n = 16`."""
    constants: dict[str, str] = {}
    for node in find_nodes(function, "declaration", "type_definition", "alias_declaration"):
        text = " ".join(text_of(node).rstrip(";").split())
        if value := re.fullmatch(r".*\bconst(?:expr)?\b.*?(\w+) ?= ?([^,{]+)", text):
            constants[value[1]] = value[2] if value[2].isalnum() else f"({value[2]})"
        elif name := re.fullmatch(r"typedef (.+?) ?(\w+)", text):
            constants[name[2]] = name[1]
        elif alias := re.fullmatch(r"using (\w+) ?= ?(.+)", text):
            constants[alias[1]] = alias[2]
    for node in find_nodes(function, "enumerator"):
        named, valued = (node.child_by_field_name(field) for field in ("name", "value"))
        if named and valued:
            constants[text_of(named)] = f"({text_of(valued)})"
    return constants


_DEFINE = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)\n]*)\)((?:\\\r?\n|[^\n])*)", re.MULTILINE
)
_LIMIT = 500  # maximum number of replacements: stops macros that call each other endlessly


@dataclass(frozen=True, slots=True)
class _Macro:
    parameters: tuple[str, ...]
    body: str


def write_out_launches(text: str) -> str:
    """Return the text with the macros that launch kernels expanded."""
    macros = _launching_macros(text)
    if not macros:
        return text
    expansion = _DEFINE.sub(lambda match: "" if match[1] in macros else match[0], text)
    names = re.compile(rf"\b({'|'.join(map(re.escape, macros))})\s*\(")
    for _ in range(_LIMIT):
        match = names.search(expansion)
        if not match:
            break
        arguments, end = _arguments(expansion, match.end())
        written = _expand(macros[match[1]], arguments)
        expansion = f"{expansion[: match.start()]}{written}{expansion[end:]}"
    return expansion


def _launching_macros(text: str) -> dict[str, _Macro]:
    """Return the macros that launch kernels, directly or through another macro."""
    defined = {
        name: _Macro(tuple(each.strip() for each in listed.split(",")), body.replace("\\\n", " \n"))
        for name, listed, body in _DEFINE.findall(text)
    }
    macro_names = {name for name, macro in defined.items() if "<<<" in macro.body}
    while (
        more := {n for n, m in defined.items() if set(re.findall(r"\w+", m.body)) & macro_names}
        - macro_names
    ):
        macro_names |= more
    return {name: macro for name, macro in defined.items() if name in macro_names}


def _arguments(text: str, start: int) -> tuple[list[str], int]:
    """Return an invocation's arguments, from after its parenthesis at `start`, and its end."""
    depth, at, pieces = 1, start, [""]
    while at < len(text) and depth:
        letter = text[at]
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 1:
            pieces.append("")
        elif depth:
            pieces[-1] += letter
        at += 1
    return [each.strip() for each in pieces], at


def _expand(macro: _Macro, arguments: list[str]) -> str:
    values = dict(_pairs(macro.parameters, arguments))
    body = re.sub(r"#?\b\w+\b", lambda word: values.get(word[0], word[0]), macro.body)
    return re.sub(r"\s*##\s*", "", body)


def _pairs(parameters: tuple[str, ...], arguments: list[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of parameter and argument; a variadic `...` takes all remaining arguments."""
    for at, parameter in enumerate(parameters):
        if parameter.endswith("..."):
            yield parameter.removesuffix("...") or "__VA_ARGS__", ", ".join(arguments[at:])
        elif at < len(arguments):
            yield parameter, arguments[at]
