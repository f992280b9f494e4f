"""Control flow of plain Python as LLVM assembly: `if`, `while`, `break`, `and` as blocks."""

import ast
from collections.abc import Callable, Iterable

from ..owner import Lock

SYNTAX_LOCK = Lock()
"""One thread at a time translates: Python 3.11 miscounts where two make syntax trees at once, and
raises SystemError."""

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.LShift: "shl",
    ast.RShift: "ashr",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}
"""LLVM's instruction of each operator on integers that means the same there."""
RELATIONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "slt",
    ast.LtE: "sle",
    ast.Gt: "sgt",
    ast.GtE: "sge",
}


class ControlFlow:
    """The lines of one function so far; a subclass knows its other statements and its values."""

    def __init__(self) -> None:
        self._allocations: list[str] = []
        self._lines: list[str] = []
        self._loops: list[tuple[str, str]] = []
        """Of each loop around, where it goes on and where it ends."""
        self._count = 0

    # what a language has of its own

    def _other(self, statement: ast.stmt) -> None:
        """A statement that is no control flow."""
        raise NotImplementedError

    def _evaluate(self, expression: ast.expr) -> None:
        """An expression whose value nobody takes."""
        raise NotImplementedError

    def _return(self, value: ast.expr | None) -> None:
        raise NotImplementedError

    def _condition(self, test: ast.expr) -> str:
        """Return an i1: whether a test holds that is no `and`, `or` or `not`."""
        raise NotImplementedError

    # lines

    def _new(self, stem: str = "t") -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def _emit(self, statement: str) -> str:
        name = f"%{self._new()}"
        self._lines.append(f"  {name} = {statement}")
        return name

    def _label(self, label: str) -> None:
        self._lines.append(f"  br label %{label}\n{label}:")

    def _leave(self, statement: str) -> None:
        """End the block in hand; what follows cannot be reached."""
        self._lines.append(f"  {statement}\n{self._new('dead')}:")

    # statements

    def _body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(ast.Constant()) | ast.Pass():
                return
            case ast.Expr(value):
                self._evaluate(value)
            case ast.If(test, body, orelse):
                self._if(test, lambda: self._body(body), lambda: self._body(orelse))
            case ast.While(test, body):
                self._while(test, body)
            case ast.Return(value):
                self._return(value)
            case ast.Break():
                self._leave(f"br label %{self._loops[-1][1]}")
            case ast.Continue():
                self._leave(f"br label %{self._loops[-1][0]}")
            case _:
                self._other(statement)

    def _if(self, test: ast.expr, yes: Callable[[], None], no: Callable[[], None]) -> None:
        one, other, end = (self._new(stem) for stem in ("then", "else", "end"))
        self._branch(test, one, other)
        self._lines.append(f"{one}:")
        yes()
        self._lines.append(f"  br label %{end}\n{other}:")
        no()
        self._label(end)

    def _while(self, test: ast.expr, body: list[ast.stmt]) -> None:
        again, inside, end = (self._new(stem) for stem in ("while", "do", "done"))
        self._label(again)
        self._branch(test, inside, end)
        self._lines.append(f"{inside}:")
        self._repeat(again, end, body)
        self._lines.append(f"  br label %{again}\n{end}:")

    def _repeat(self, again: str, end: str, body: list[ast.stmt]) -> None:
        self._loops.append((again, end))
        self._body(body)
        self._loops.pop()

    def _branch(self, test: ast.expr, yes: str, no: str) -> None:
        """Go to one of two labels; the operands of `and` and `or` are looked at in order."""
        match test:
            case ast.BoolOp(operator, operands):
                for operand in operands[:-1]:
                    further = self._new("further")
                    is_and = isinstance(operator, ast.And)
                    self._branch(operand, *((further, no) if is_and else (yes, further)))
                    self._lines.append(f"{further}:")
                self._branch(operands[-1], yes, no)
            case ast.UnaryOp(ast.Not(), operand):
                self._branch(operand, no, yes)
            case _:
                holds = self._condition(test)
                self._lines.append(f"  br i1 {holds}, label %{yes}, label %{no}")
