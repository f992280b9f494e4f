"""What a call leaves to the compiler: template arguments from the declared types of what it passes.

No compiler is asked: a parameter `const T *x` that meets a variable declared `float *d_x` gives
`T = float`. What cannot be told from the text is left open.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .syntax import Written, find_nodes, text_of

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
    """The declarations around a call: its function's, then its file's."""

    def __init__(self, root: "Node", within: "Node | None") -> None:
        self.places = (within, root) if within else (root,)

    def type_of(self, node: "Node") -> str:
        """The type of an expression as its declaration writes it, or `""`."""
        text = text_of(node)
        reader = getattr(self, f"_{node.type}", None)
        if reader:
            found: str = reader(node)
            return found
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
        """`Type{x}`."""
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
        """`static_cast<T>(x)`, `Type<T>(x)`, a vector's `data()` and `raw_pointer_cast(...)`."""
        called, given = (node.child_by_field_name(name) for name in ("function", "arguments"))
        if not called or not given:
            return ""
        text = text_of(called)
        if text.startswith(_CASTS):
            return text.partition("<")[2].rstrip("> ")
        if text.endswith("raw_pointer_cast") and given.named_children:
            return self.type_of(given.named_children[0])
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
        """The type with which `name` is declared, stars included."""
        word = re.compile(rf"([*&\s]*)\b{re.escape(name)}\b\s*((?:\[[^\]]*\])*)")
        for node in (node for place in self.places for node in find_nodes(place, *kinds)):
            kind = node.child_by_field_name("type")
            for declarator in node.children_by_field_name("declarator"):
                found = word.match(text_of(declarator))
                if kind and found:
                    return f"{text_of(kind)} {found[1]}{'*' * found[2].count('[')}"
        return ""


def deduce(
    template: Written, explicit: Sequence[str], given: Sequence["Node"], scope: Scope
) -> tuple[str, ...]:
    """The arguments of `template`: those written, then as many as the call's values tell."""
    names = template.template or ()
    known = dict(zip(names, explicit, strict=False))
    for (declared, _), value in zip(template.parameters, given, strict=False):
        name, stars = _bare(declared)
        if name in names and name not in known:
            actual, depth = _bare(scope.type_of(value))
            if actual and depth >= stars:
                known[name] = actual + "*" * (depth - stars)
    found = [known.get(name, "") for name in names]
    while found and not found[-1]:
        found.pop()  # what follows may have a default
    return tuple(found) if all(found) else tuple(explicit)


def _bare(ctype: str) -> tuple[str, int]:
    """A type without qualifiers, and how many stars it has; an array counts as one."""
    words = _NOT_TYPE.sub(" ", ctype)
    stars = words.count("*") + words.count("[")
    return " ".join(re.sub(r"\[.*|\*", " ", words).split()), stars


def _without_star(ctype: str) -> str:
    head, _, tail = ctype.rpartition("*")
    return f"{head}{tail}" if head else ""
