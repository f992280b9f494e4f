"""Demangle kernel names and parameter types: `_Z5scaleILi4EEvPf` -> `scale<4>`.

This is the subset of the Itanium C++ ABI's grammar that kernels use (section 5.1,
https://itanium-cxx-abi.github.io/cxx-abi/). A type is a C declaration with `@` in the place of the
name: `const float *@`, `float (*@)[16]`.
"""

import re
from functools import lru_cache

from ...base.dataclass import dataclass

_BUILTIN = {
    **{"v": "void", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char"},
    **{"s": "short", "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long"},
    **{"m": "unsigned long", "x": "long long", "y": "unsigned long long", "w": "wchar_t"},
    **{"f": "float", "d": "double", "e": "long double", "n": "__int128", "o": "unsigned __int128"},
    **{
        "Dh": "half",
        "Dn": "decltype(nullptr)",
        "Di": "char32_t",
        "Ds": "char16_t",
        "Du": "char8_t",
    },
}
_STANDARD = {"Sa": "std::allocator", "Ss": "std::string", "Sb": "std::basic_string"}
_OPERATORS = {
    **{"eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "aa": "&&"},
    **{"oo": "||", "pl": "+", "mi": "-", "ml": "*", "dv": "/", "rm": "%", "an": "&"},
    **{"or": "|", "eo": "^", "ls": "<<", "rs": ">>", "nt": "!", "co": "~"},
}
_STATIC = re.compile(r"__nv_static_(\d+)_")
_HIDDEN = ("_GLOBAL__N_", "_INTERNAL_", "__nv_")


@dataclass(frozen=True, slots=True)
class Demangled:
    """A demangled name: `name` is qualified, without template arguments.

    `arguments` is None for a name that is no template.
    """

    name: str
    arguments: tuple[str, ...] | None
    parameters: tuple[str, ...]


class _Unread(Exception):
    """The name uses grammar outside the supported subset."""


@lru_cache(1 << 12)
def demangle(mangled: str) -> Demangled | None:
    """Demangle a PTX name; return None for one that is not mangled or not supported.

    >>> demangle("_Z5scaleILi4EfEvPT0_PKi")
    Demangled(name='scale', arguments=('4', 'float'), parameters=('float *@', 'const int *@'))
    """
    name = without_file(mangled)
    if not name.startswith("_Z"):
        return None
    try:
        return _Reader(name[2:]).encoding()
    except (_Unread, IndexError, ValueError):
        return None


def without_file(mangled: str) -> str:
    """Remove the prefix that nvcc gives a file's internal names in relocatable device code.

    The prefix is `__nv_static_`, the length of the file's number, that number, and `_`.

    >>> without_file("__nv_static_18__d6e9c21f_4_a_cu_k__Z1kPf")
    '_Z1kPf'
    """
    match = _STATIC.match(mangled)
    if match is None:
        return mangled
    end = match.end() + int(match[1])
    return mangled[end + 1 :] if mangled[end : end + 1] == "_" else mangled


class _Reader:
    """A cursor in one mangled name, with the table of substitutions `S_`, `S0_`..."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.seen: list[str] = []
        self.packs: list[tuple[str, ...]] = []
        """The template arguments that `T_`, `T0_`... refer to: one argument or a pack each."""
        self.used: set[int] = set()
        self.last: list[tuple[str, ...]] = []

    def peek(self, *heads: str) -> bool:
        return self.text.startswith(heads, self.at)

    def take(self, head: str) -> bool:
        if not self.text.startswith(head, self.at):
            return False
        self.at += len(head)
        return True

    def need(self, head: str) -> None:
        if not self.take(head):
            raise _Unread(self.text[self.at :])

    def encoding(self) -> Demangled:
        name, arguments = self.nested() if self.take("N") else self.unscoped()
        if arguments is not None:
            self.packs = self.last
            self.type()  # a template's mangled name includes its return type
        parameters = []
        while self.at < len(self.text):
            parameters += self.types()
        if parameters == ["void @"]:
            parameters = []
        return Demangled(name, arguments, tuple(parameters))

    def nested(self) -> tuple[str, tuple[str, ...] | None]:
        """Read a nested name after `N`: components up to `E`; all prefixes become substitutions."""
        name, arguments = "", None
        while not self.take("E"):
            if self.peek("I"):
                arguments = self.template_arguments()
                if not self.peek("E"):
                    name += _angle(arguments)
            elif self.peek("S") and not self.peek("St"):
                name, arguments = self.substitution(), None
                continue
            elif not name and self.take("T"):
                name = self.argument()
            elif self.take("Ul"):
                name, arguments = _join(name, self.closure()), None
            else:
                is_standard = self.take("St")
                name = _join(name, "std" if is_standard else self.identifier())
                arguments = None
                if is_standard:  # `std` is no substitution, but a part of one
                    continue
            if not self.peek("E"):
                self.seen.append(name)
        return name, arguments

    def unscoped(self) -> tuple[str, tuple[str, ...] | None]:
        name = "std::" if self.take("St") else ""
        name += self.identifier()
        if not self.peek("I"):
            return name, None
        self.seen.append(name)
        return name, self.template_arguments()

    def local(self) -> str:
        """Read a local name after `Z`: the enclosing function, `E`, and the type's name in it."""
        scope = self.called()
        part = self.closure() if self.take("Ul") else self.identifier()
        if self.take("__") or self.take("_"):  # the entity's number among equal names
            self.number()
            self.take("_")
        return f"{scope}::{part}"

    def called(self) -> str:
        """Read the name of a function or variable after `Z`, up to `E`."""
        # The inner name has its own template arguments: `T_` means the outer ones again after it.
        packs = self.packs
        name, arguments = self.nested() if self.take("N") else self.unscoped()
        if arguments is not None:
            self.packs = self.last
            self.type()
        while not self.take("E"):
            self.types()
        self.packs = packs
        return f"{name}{_angle(arguments)}"

    def closure(self) -> str:
        """Read a lambda after `Ul`: its parameters, `E`, and its number in the function."""
        parameters: list[str] = []
        while not self.take("E"):
            parameters += map(plain, self.types())
        signature = ", ".join(parameters if parameters != ["void"] else [])
        return f"{{lambda({signature})#{self.sequence() + 1}}}"

    def identifier(self) -> str:
        """Read `<length><characters>`; drop the compiler's decoration of a file's internal names.

        Drop ABI tags after a name, too, as Numba has them: `B2v1`.
        """
        self.take("L")
        word = self.characters()
        while self.take("B"):
            self.characters()
        return "" if word.startswith(_HIDDEN) else word

    def characters(self) -> str:
        """Read `<length><characters>`."""
        length = self.number()
        word = self.text[self.at : self.at + length]
        self.at += length
        if len(word) < length:
            raise _Unread(word)
        return word

    def number(self) -> int:
        start = self.at
        while self.at < len(self.text) and self.text[self.at].isdigit():
            self.at += 1
        if start == self.at:
            raise _Unread(self.text[start:])
        return int(self.text[start : self.at])

    def substitution(self) -> str:
        """Read a substitution: `S_` is the first, `S0_` the second, in base 36."""
        self.need("S")
        short = f"S{self.text[self.at]}"
        if short in _STANDARD:
            self.at += 1
            return _STANDARD[short]
        return self.seen[self.sequence()]

    def sequence(self) -> int:
        end = self.text.find("_", self.at)
        digits = self.text[self.at : end]
        if end < 0 or (digits and not digits.isalnum()):
            raise _Unread(self.text[self.at :])
        self.at = end + 1
        return int(digits, 36) + 1 if digits else 0

    def template_arguments(self) -> tuple[str, ...]:
        """Read template arguments after `I` (`J`: pack): types, literals, addresses, packs, `E`."""
        if not self.take("J"):
            self.need("I")
        arguments: list[str] = []
        packs: list[tuple[str, ...]] = []
        while not self.take("E"):
            if self.take("XadL_Z"):
                part: tuple[str, ...] = (f"&{self.called()}",)
                self.need("E")
            elif self.take("X"):
                part = (self.expression(),)
                self.need("E")
            elif self.peek("L"):
                part = (self.literal(),)
            elif self.peek("J"):
                part = self.template_arguments()
            else:
                part = tuple(map(plain, self.types()))
            arguments += part
            packs.append(part)
        # `T_` of the following types may refer to these; nested lists overwrite `last`, so that the
        # outermost list, which ends last, remains.
        self.last = packs
        return tuple(arguments)

    def literal(self) -> str:
        """Read a literal: `Li4E` is 4, `Lb1E` is true, `L4Mode2E` is (Mode)2, `L_Z1fvE` is f."""
        if self.take("L_Z"):
            return self.called()
        self.need("L")
        kind = plain(self.type())
        value = f"{'-' if self.take('n') else ''}{self.number()}"
        self.need("E")
        if kind == "bool":
            return "true" if value == "1" else "false"
        return value if kind in _BUILTIN.values() else f"({kind}){value}"

    def expression(self) -> str:
        """Read `T_`, a template argument, `stT_`, its size, or `gtstT_Li4E`: sizeof(T) > 4."""
        if self.take("T"):
            return self.argument()
        if self.peek("L"):
            return self.literal()
        if self.take("st"):
            return f"sizeof({plain(self.type())})"
        if self.take("sr"):
            return self.member()
        sign = _OPERATORS.get(self.text[self.at : self.at + 2])
        if sign is None:
            raise _Unread(self.text[self.at :])
        self.at += 2
        if sign in "!~":
            return f"{sign}{self.expression()}"
        return f"({self.expression()} {sign} {self.expression()})"

    def member(self) -> str:
        """Read a member after `sr`: the type or its name up to `E`, and the member's name."""
        if not self.text[self.at].isdigit():
            return f"{plain(self.type())}::{self.identifier()}"
        scope = ""
        while not self.take("E"):
            scope = _join(scope, self.identifier())
            if self.peek("I"):
                scope += _angle(self.template_arguments())
        return f"{scope}::{self.identifier()}"

    def types(self) -> list[str]:
        """Read one type, or after `Dp` one type for each argument of the pack in its pattern."""
        if not self.take("Dp"):
            return [self.type()]
        start, table_size, packs, self.used = self.at, len(self.seen), self.packs, set()
        type_names = [self.type()]
        wide = next((n for n in self.used if len(packs[n]) != 1), None)
        if wide is not None:
            type_names = []
            for argument in packs[wide]:
                self.at, self.packs = start, [*packs[:wide], (argument,), *packs[wide + 1 :]]
                del self.seen[table_size:]
                type_names.append(self.type())
        self.packs = packs
        self.seen.append(", ".join(type_names))
        return type_names

    def type(self) -> str:
        """Read one type; all but builtin types become substitutions."""
        for length in (1, 2):
            code = self.text[self.at : self.at + length]
            if code in _BUILTIN:
                self.at += length
                return f"{_BUILTIN[code]} @"
        if self.peek("S") and not self.peek("St"):
            return self.instance(self.substitution())
        name = self.compound()
        self.seen.append(name)
        return name

    def compound(self) -> str:
        for code, sign in (("P", "*"), ("R", "&"), ("O", "&&")):
            if self.take(code):
                return _point(self.type(), sign)
        qualifiers = [word for code, word in _QUALIFIERS if self.take(code)]
        if qualifiers:
            return _qualify(self.type(), qualifiers[::-1])
        if self.take("A"):
            count = self.number()
            self.need("_")
            return self.type().replace("@", f"@[{count}]")
        if self.take("F"):
            return self.function()
        if self.take("T"):
            return self.of_argument()
        if self.take("Z"):
            return f"{self.local()} @"
        if self.take("N"):
            name, arguments = self.nested()
            return f"{name}{_angle(arguments)} @"
        name, arguments = self.unscoped()
        return f"{name}{_angle(arguments)} @"

    def argument(self) -> str:
        """Read the index of a template argument after `T`.

        It is in base 36, but nvcc writes it in base 10: the 12th of 13 is `T10_`, no 38th.
        """
        start = self.at
        number = self.sequence()
        if number >= len(self.packs):
            number = int(self.text[start : self.at - 1]) + 1
        self.used.add(number)
        return ", ".join(self.packs[number])

    def of_argument(self) -> str:
        """Read a template argument after `T`: a type, or a template template with its arguments."""
        name = self.argument()
        if self.peek("I"):
            self.seen.append(name)
            name += _angle(self.template_arguments())
        return f"{name} @"

    def function(self) -> str:
        """Read a function type after `F`: result, parameters and `E`; `float (float)`."""
        self.take("Y")
        returned = plain(self.type())
        parameters: list[str] = []
        while not self.take("E"):
            parameters += map(plain, self.types())
        return f"{returned} @({', '.join(parameters if parameters != ['void'] else [])})"

    def instance(self, name: str) -> str:
        """Read the template arguments after a substitution, if it is a template's name."""
        if self.peek("I"):
            name = f"{name}{_angle(self.template_arguments())} @"
            self.seen.append(name)
        return name if "@" in name else f"{name} @"


_QUALIFIERS = (("r", "__restrict__"), ("V", "volatile"), ("K", "const"))


def plain(declaration: str) -> str:
    """Return the type alone: `const float *@` -> `const float *`."""
    return declaration.replace("@", "").rstrip()


def _angle(arguments: tuple[str, ...] | None) -> str:
    return "" if arguments is None else f"<{', '.join(arguments)}>"


def _join(scope: str, part: str) -> str:
    return f"{scope}::{part}" if scope and part else scope or part


def _point(declaration: str, sign: str) -> str:
    inner = f"({sign}@)" if "@[" in declaration or "@(" in declaration else f"{sign}@"
    return declaration.replace("@", inner)


def _qualify(declaration: str, words: list[str]) -> str:
    if "*" in declaration or "&" in declaration:
        return declaration.replace("@", f"{' '.join(words)} @")
    return f"{' '.join(words)} {declaration}"
