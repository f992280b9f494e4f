"""The tree of a random kernel: expressions and statements as templates, and their text.

A template holds `{0}`, `{1}` ... for its expressions and `<0>`, `<1>` ... for its blocks of
statements; all it needs to be safe (masked indices, bounded loops) stands in the template itself,
so that a reducer may put anything of the right type in a hole.
"""

import re
from dataclasses import dataclass, replace

from fuzz.cuda.parameter import PARAMETERS

C_NAMES = {
    **{"i8": "signed char", "u8": "unsigned char", "i16": "short", "u16": "unsigned short"},
    **{"i32": "int", "u32": "unsigned", "i64": "long long", "u64": "unsigned long long"},
    **{"f32": "float", "f64": "double", "b": "bool"},
}
_HOLE = re.compile(r"\{(\d+)\}")
_BLOCK = re.compile(r"^( *)<(\d+)>$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Expr:
    """A typed expression."""

    type: str
    form: str
    parts: tuple["Expr", ...] = ()

    def text(self) -> str:
        """Its C text."""
        if not self.parts:
            return self.form
        return _HOLE.sub(lambda hole: self.parts[int(hole[1])].text(), self.form)


@dataclass(frozen=True)
class Stmt:
    """A statement; what is `fixed` a reducer may change but not take away."""

    form: str
    parts: tuple[Expr, ...] = ()
    blocks: tuple["Block", ...] = ()
    fixed: bool = False

    def text(self) -> str:
        """Its C text, lines with no indentation of their own."""
        filled = _HOLE.sub(lambda hole: self.parts[int(hole[1])].text(), self.form)
        return _BLOCK.sub(lambda b: indented(lines(self.blocks[int(b[2])]), b[1]), filled)


Block = tuple[Stmt, ...]


def lines(block: Block) -> str:
    """The text of statements, one below the other."""
    return "\n".join(statement.text() for statement in block)


def indented(text: str, by: str = "    ") -> str:
    """A text with its lines moved to the right."""
    return "\n".join(by + line if line else line for line in text.split("\n"))


@dataclass(frozen=True)
class Variable:
    """A variable of a function; `text` declares it with a first value."""

    name: str
    type: str
    text: str


@dataclass(frozen=True)
class Function:
    """A device function, or the kernel; `head` has `(...)` for the parameters that are used."""

    name: str
    head: str
    variables: tuple[Variable, ...]
    body: Block
    last: str = ""
    """The last line, a return."""

    def words(self) -> frozenset[str]:
        """The names in its body and variables."""
        return frozenset(_WORD.findall(self._inside()))

    def text(self) -> str:
        """Its C text; only variables that are used are declared."""
        return f"{self.head}\n{{\n{indented(self._inside())}\n}}\n"

    def _inside(self) -> str:
        body = lines(self.body)
        words = set(_WORD.findall(body + " " + self.last))
        declared = [f"int {k} = 0;" for k in _lost_counters(body)]
        for variable in reversed(self.variables):
            if variable.name in words:
                declared.insert(0, variable.text)
                words |= set(_WORD.findall(variable.text))
        return "\n".join(part for part in ("\n".join(declared), body, self.last) if part)


def _lost_counters(body: str) -> list[str]:
    """Counters of loops that a reducer took away."""
    made = set(re.findall(r"\bint (k\d+)\b", body))
    return sorted(set(re.findall(r"\bk\d+\b", body)) - made)


@dataclass(frozen=True)
class Launch:
    """How many blocks and threads, each with three dimensions."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    """Blocks of a cluster; (1, 1, 1) is a launch without clusters."""

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


@dataclass(frozen=True)
class Kernel:
    """A whole kernel: structs and tables, device functions, the kernel itself, and its launch."""

    seed: int
    launch: Launch
    globals: tuple[tuple[str, str], ...]
    """Names of structs and tables, with their definitions, in order."""
    functions: tuple[Function, ...]
    """Those called before those that call; the kernel is the last one."""

    @property
    def name(self) -> str:
        """The name of the `__global__` function."""
        return self.functions[-1].name

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that are used, in order."""
        words = self.functions[-1].words()
        return tuple(name for name in PARAMETERS if name in words)

    def text(self) -> str:
        """The CUDA C text, without what nobody uses."""
        head = ", ".join(PARAMETERS[name] for name in self.parameters)
        texts = [
            *self.globals,
            *((each.name, each.text().replace("(...)", f"({head})", 1)) for each in self.functions),
        ]
        words, seen = {self.name}, -1
        while len(words) > seen:
            seen = len(words)
            used = [text for name, text in texts if name in words]
            words.update(*map(_WORD.findall, used))
        return "\n".join(used)

    def with_function(self, number: int, function: Function) -> "Kernel":
        """The same with another function in the place of one."""
        functions = list(self.functions)
        functions[number] = function
        return replace(self, functions=tuple(functions))
