"""Parse PTX text into a Module: its directives, module variables and functions."""

import re
from collections.abc import Callable, Mapping

from ...base.errors import CutraceError, nearest
from .body import Body
from .constant import integer_literal
from .header import read_header, skip_pragma
from .kernel import Function, Module, Symbol, Variable
from .lexer import Cursor, lex
from .lines import SourceLines, read_file
from .scope import Scope, builtin_scope
from .variable import DECLARED_SPACES, element_bytes, read_declaration, read_names

_LINKAGE = frozenset({".visible", ".extern", ".weak", ".common"})


def parse_module(text: str) -> Module:
    """Parse PTX. An error names the PTX line, the unexpected text and what was expected.

    Unknown directives are skipped and listed in `Module.warnings`; unknown instructions parse like
    any other.
    """
    try:
        return _Parser(text).parse()
    except RecursionError:
        raise CutraceError("PTX: braces or parentheses are nested too deeply") from None


class _Parser:
    """Parser state of one module."""

    def __init__(self, text: str) -> None:
        tokens = lex(text)
        self.cursor = Cursor(tokens)
        self.lines = SourceLines(tokens)
        self.scope = Scope(builtin_scope())
        self.version = ""
        self.target = ""
        self.address_size = 32
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self.warnings: list[str] = []

    def parse(self) -> Module:
        """Parse all directives in order and return the module."""
        if self.cursor.next != ".version":
            raise self.cursor.error("`.version`, with which PTX begins")
        while self.cursor.next:
            self._read_directive()
        if not self.target:
            raise self.cursor.error("`.target`")
        self._check_relocations()
        return Module(
            self.version,
            self.target,
            self.address_size,
            self.variables,
            self.functions,
            self.aliases,
            tuple(self.warnings),
        )

    def _read_directive(self) -> None:
        cursor = self.cursor
        directive = cursor.next
        read = _DIRECTIVES.get(directive)
        if read is not None:
            read(self)
        elif directive in _LINKAGE or directive.partition("::")[0] in DECLARED_SPACES:
            self._read_linked()
        elif directive[:1] == ".":
            self.warnings.append(cursor.skip_unknown())
            if cursor.next == "{":
                cursor.skip_pair("{", "}")
        elif not cursor.accept(";"):
            raise cursor.error("a directive such as `.visible`, `.entry` or `.global`")

    def _read_version(self) -> None:
        self.cursor.take()
        at = self.cursor.index
        self.version = self.cursor.take()
        if not re.fullmatch(r"\d+\.\d+", self.version):
            raise self.cursor.error("a version such as 8.8", index=at)

    def _read_target(self) -> None:
        """Read `sm_75, texmode_independent`; keep only the first."""
        self.cursor.take()
        self.target = self.cursor.name("a target such as sm_75")
        while self.cursor.accept(","):
            self.cursor.name("a target option")

    def _read_address_size(self) -> None:
        self.cursor.take()
        at = self.cursor.index
        size = integer_literal(self.cursor.take())
        if size not in (32, 64):
            raise self.cursor.error("32 or 64", index=at)
        self.address_size = size

    def _read_file(self) -> None:
        self.cursor.take()
        read_file(self.cursor)

    def _read_loc(self) -> None:
        self.cursor.take()
        self.lines.read_loc(self.cursor)

    def _skip_section(self) -> None:
        """Skip the debug information in `.section .debug_str { ... }`."""
        while self.cursor.next not in ("", "{"):
            self.cursor.take()
        self.cursor.skip_pair("{", "}")

    def _skip_pragma(self) -> None:
        skip_pragma(self.cursor)

    def _read_alias(self) -> None:
        """Read `.alias name, function;`."""
        self.cursor.take()
        name = self.cursor.name("the name of a function")
        self.cursor.expect(",")
        at = self.cursor.index
        self.aliases[name] = self.cursor.name("the name of a function")
        if self.aliases[name] not in self.functions:
            raise self.cursor.error("a declared function", self.functions, at)
        self.scope.declare(name, Symbol(name))
        self.cursor.expect(";")

    def _read_linked(self) -> None:
        """Read a variable or function with its linkage directives."""
        cursor = self.cursor
        linkage = set()
        while cursor.next in _LINKAGE:
            linkage.add(cursor.take())
        is_extern = ".extern" in linkage
        if cursor.next in (".entry", ".func"):
            self._read_function()
        elif cursor.next.partition("::")[0] in DECLARED_SPACES:
            self._read_variables(is_extern)
        else:
            raise cursor.error("a state space, `.entry` or `.func`")

    def _read_variables(self, is_extern: bool) -> None:
        at = self.cursor.index
        for variable in read_names(self.cursor, read_declaration(self.cursor, is_extern)):
            earlier = self.variables.get(variable.name)
            if variable.name in self.functions or (
                earlier and not earlier.is_extern and not is_extern
            ):
                raise self.cursor.duplicate(variable.name, at)
            if earlier is None or earlier.is_extern:
                self.variables[variable.name] = variable
                symbol = Symbol(variable.name, element=element_bytes(variable))
                self.scope.declare(variable.name, symbol)

    def _read_function(self) -> None:
        """Read a function; it may have several declarations but one definition."""
        at = self.cursor.index
        header = read_header(self.cursor)
        name = header.name
        earlier = self.functions.get(name)
        self.warnings += header.warnings
        self.scope.declare(name, Symbol(name))
        if self.cursor.accept(";"):
            self.functions.setdefault(name, header.declaration())
            return
        if self.cursor.next != "{":
            raise self.cursor.error("`{` or `;`")
        if name in self.variables or (earlier and not earlier.is_extern):
            raise self.cursor.duplicate(name, at)
        body = Body(self.cursor, self.scope, self.lines)
        self.functions[name] = body.read(header)
        self.variables |= {variable.name: variable for variable in body.statics}
        self.warnings += body.warnings

    def _check_relocations(self) -> None:
        """Check that each symbol in an initialiser is declared, possibly later in the text."""
        symbols = {*self.variables, *self.functions, *self.aliases}
        for variable in self.variables.values():
            for _, name, _ in variable.relocations:
                if name not in symbols:
                    raise CutraceError(
                        f"PTX: {variable.name} holds the address of {name}, which is not declared"
                        f"{nearest(name, symbols)}"
                    )


_DIRECTIVES: Mapping[str, Callable[[_Parser], None]] = {
    ".version": _Parser._read_version,
    ".target": _Parser._read_target,
    ".address_size": _Parser._read_address_size,
    ".entry": _Parser._read_function,
    ".func": _Parser._read_function,
    ".alias": _Parser._read_alias,
    ".file": _Parser._read_file,
    ".loc": _Parser._read_loc,
    ".section": _Parser._skip_section,
    ".pragma": _Parser._skip_pragma,
}
