"""Compile plain Python loops to LLVM assembly, for arguments of given kinds.

A loop is a function over integers, doubles, arrays, structures (`structure.py`) and tuples of
these, plain or named: assignments, `if`, `while`, `for ... in range(...)`, `unroll(...)` or a tuple
of constants, `return` of numbers and tuples of them, `break`, `continue`, calls of functions and of
named tuples of its module or imported there, and `len`, `min`, `max`, `int`, `bool`, `bit_count`,
and the functions marked by `assembly` (`value.py`). A named tuple takes no memory: its fields are
registers. A name is the same array, or a number of one kind, on all ways to where it is read. A
loop keeps Python's semantics as long as integers fit into 64 bits and no index is negative.
Anything else is a NotImplementedError with the line.
"""

import ast
import ctypes
import inspect
import os
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, TypeAlias

from .codegen_cache import cached_text
from .loop_expression import CHECKED, SYNTAX_LOCK, Expressions, returned
from .machine_code import compile_assembly
from .value import Kind, Number, Value, kind_of, kind_said, texts_of, value_of, words_of

_DECLARATIONS = """\
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.cttz.i64(i64, i1)
declare void @llvm.trap()
declare void @llvm.prefetch(ptr, i32, i32, i32)
!0 = !{!"llvm.loop.unroll.full"}
"""
Key: TypeAlias = tuple[Callable[..., Any], tuple[Kind, ...]]


def loop_text(function: Callable[..., Any], kinds: Sequence[Kind], name: str) -> tuple[str, Kind]:
    """Return assembly of a loop for arguments of these kinds, and the kind of its result.

    `name` takes the address of the argument words, in order; the words of the result are written
    there.
    """
    loop = _Loop("alwaysinline")
    with SYNTAX_LOCK:
        inner, result = loop.translate(function, tuple(kinds))
    return _DECLARATIONS + "".join(loop.done) + _entry(name, inner, kinds, result), result


def _entry(name: str, inner: str, kinds: Sequence[Kind], result: Kind) -> str:
    words = [word for kind in kinds for word in words_of(kind)]
    lines = []
    for number, word in enumerate(words):
        lines.append(f"  %p{number} = getelementptr i64, ptr %words, i64 {number}")
        lines.append(f"  %w{number} = load {word}, ptr %p{number}")
    parameters = ", ".join(f"{word} %w{number}" for number, word in enumerate(words))
    parts = list(words_of(result))
    lines.append(f"  %result = call {returned(result)} @{inner}({parameters})")
    for number, word in enumerate(parts):
        lines.append(f"  %r{number} = extractvalue {returned(result)} %result, {number}")
        lines.append(f"  %q{number} = getelementptr i64, ptr %words, i64 {number}")
        lines.append(f"  store {word} %r{number}, ptr %q{number}")
    return f"define void @{name}(ptr %words) {{\n" + "\n".join(lines) + "\n  ret void\n}\n"


def translate(exported: Sequence[Callable[..., Any]], how: str = "") -> str:
    """Return assembly of routines: loops that other machine code, or C, calls by name. The
    annotations give the types: integers, and arrays and structures by their address. `how` are the
    LLVM attributes of the functions that they call."""
    checks = os.environ.get(CHECKED, "")
    return cached_text(exported, "routines", checks, how, make=lambda: _routines(exported, how))


def _routines(exported: Sequence[Callable[..., Any]], how: str) -> str:
    loop = _Loop(how)
    with SYNTAX_LOCK:
        entries = [_exported(loop, function) for function in exported]
    return _DECLARATIONS + "".join((*loop.done, *entries))


def _kinds(function: Callable[..., Any]) -> tuple[Kind, ...]:
    annotations = function.__annotations__.items()
    return tuple(kind_said(annotation) for name, annotation in annotations if name != "return")


def parameter_types(function: Callable[..., Any]) -> list[str]:
    """Return LLVM's types of the arguments of a routine."""
    return [word for kind in _kinds(function) for word in words_of(kind)]


@cache
def compile_routines(
    *functions: Callable[..., Any], vectors: bool = False
) -> tuple[Callable[..., int], ...]:
    """Return routines as machine code; they take arrays and structures by their address."""
    find = compile_assembly(translate(functions), vectors)
    types = {"i64": ctypes.c_int64, "ptr": ctypes.c_void_p}
    kinds = ([types[kind] for kind in parameter_types(function)] for function in functions)
    made = zip(kinds, functions, strict=True)
    return tuple(ctypes.CFUNCTYPE(ctypes.c_int64, *k)(find(f.__name__)) for k, f in made)


def _exported(loop: "_Loop", function: Callable[..., Any]) -> str:
    inner, result = loop.translate(function, _kinds(function))
    words = parameter_types(function)
    parameters = ", ".join(f"{word} %a{number}" for number, word in enumerate(words))
    call = f"call {returned(result)} @{inner}({parameters})"
    lines = [call, "ret i64 0"]
    if result == "int":
        lines = [f"%whole = {call}", "%number = extractvalue {i64} %whole, 0", "ret i64 %number"]
    body = "\n  ".join(lines)
    return f"define i64 @{function.__name__}({parameters}) {{\n  {body}\n}}\n"


@cache
def _trees(module: ModuleType) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(inspect.getsource(module))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


class _Loop:
    """The functions of one loop, of one module or several, each for the kinds of its calls.

    `how` are the LLVM attributes of the functions.
    """

    def __init__(self, how: str = "") -> None:
        self.done: list[str] = []
        self.how = how
        self._known: dict[Key, tuple[str, Kind]] = {}
        self._hints = 0

    def unroll(self) -> str:
        """Return the suffix of a loop's last branch that has LLVM unroll the loop."""
        self._hints += 1
        self.done.append(f"!{self._hints} = distinct !{{!{self._hints}, !0}}\n")
        return f", !llvm.loop !{self._hints}"

    def translate(self, function: Callable[..., Any], kinds: tuple[Kind, ...]) -> tuple[str, Kind]:
        """Return the name and the result kind of a function for arguments of these kinds."""
        written = vars(function).get("assembly")
        key = function, () if written is not None else kinds
        if key not in self._known and written is not None:
            self._known[key] = function.__name__, "int"
            self.done.append(written)
        if key not in self._known:
            name = f"{function.__name__}.{len(self._known)}.of"
            self._known[key] = name, ()  # a loop does not call itself
            result, text = _Function(self, function, kinds).define(name)
            self.done.append(text)
            self._known[key] = name, result
        return self._known[key]


class _Function(Expressions):
    """The statements of one function, and the kind of its result."""

    def __init__(self, loop: _Loop, function: Callable[..., Any], kinds: tuple[Kind, ...]) -> None:
        module = inspect.getmodule(function)
        assert module is not None
        super().__init__(_trees(module)[function.__name__], vars(module), loop.translate)
        self._kinds, self._loop = kinds, loop
        self._result: Kind | None = None

    def define(self, name: str) -> tuple[Kind, str]:
        """Return the kind of its result, and its definition."""
        words = [word for kind in self._kinds for word in words_of(kind)]
        texts = iter([f"%a{number}" for number in range(len(words))])
        for argument, kind in zip(self._tree.args.args, self._kinds, strict=True):
            self._name(argument.arg, value_of(kind, texts, self._product))
        self._body(self._tree.body)
        result: Kind = () if self._result is None else self._result
        self._lines.append(f"  ret {returned(result)} zeroinitializer")
        parameters = ", ".join(f"{word} %a{number}" for number, word in enumerate(words))
        lines = "\n".join((*self._allocations, "  br label %start", "start:", *self._lines))
        head = f"define internal {returned(result)} @{name}({parameters}) {self._loop.how}"
        return result, f"{head} {{\nentry:\n{lines}\n}}\n"

    # statements

    def _other(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets, value):
                operand = self._value(value)
                for target in targets:
                    self._store(target, operand)
            case ast.AnnAssign(target, _, ast.expr() as value):
                self._store(target, self._value(value))
            case ast.AugAssign(target, operator, value):
                self._augment(target, operator, value)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), bounds), body):
                self._for(name, [self._number(b) for b in bounds], body)
            case ast.For(ast.Name(name), ast.Call(ast.Name("unroll"), bounds), body):
                self._for(name, [self._number(b) for b in bounds], body, self._loop.unroll())
            case ast.For(ast.Name(name), ast.Tuple(items), body):
                for item in items:
                    self._name(name, self._value(item))
                    self._body(body)
            case _:
                raise self._refuse(statement)

    def _evaluate(self, expression: ast.expr) -> None:
        self._value(expression)

    def _return(self, value: ast.expr | None) -> None:
        result = self._value(value) if value else ()
        kind = kind_of(result)
        if self._result not in (None, kind):
            raise self._refuse(value or ast.Constant(None))
        self._result = kind
        whole, before = returned(kind), "undef"
        for number, (word, text) in enumerate(zip(words_of(kind), texts_of(result), strict=True)):
            before = self._emit(f"insertvalue {whole} {before}, {word} {text}, {number}")
        self._leave(f"ret {whole} {before}")

    def _for(self, name: str, bounds: list[str], body: list[ast.stmt], hint: str = "") -> None:
        first, last, *tail = bounds if len(bounds) > 1 else ["0", *bounds]
        step = tail[0] if tail else "1"
        again, inside, after, end = (self._new(s) for s in ("for", "do", "next", "done"))
        counter = f"%{self._new('i')}"
        self._allocations.append(f"  {counter} = alloca i64")
        self._lines.append(f"  store i64 {first}, ptr {counter}")
        self._label(again)
        self._before(body)
        at = self._emit(f"load i64, ptr {counter}")
        more = self._emit(f"icmp slt i64 {at}, {last}")
        self._lines.append(f"  br i1 {more}, label %{inside}, label %{end}\n{inside}:")
        self._name(name, Number("int", at))
        self._repeat(after, end, body)
        self._label(after)
        at = self._emit(f"load i64, ptr {counter}")
        self._lines.append(f"  store i64 {self._emit(f'add nsw i64 {at}, {step}')}, ptr {counter}")
        self._lines.append(f"  br label %{again}{hint}\n{end}:")

    def _store(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(name):
                self._name(name, value)
            case ast.Tuple(targets):
                assert isinstance(value, tuple)
                for one, item in zip(targets, value, strict=True):
                    self._store(one, item)
            case ast.Subscript() | ast.Attribute():
                assert isinstance(value, Number)
                self._put(self._element(target), value)
            case _:
                raise self._refuse(target)

    def _augment(self, target: ast.expr, operator: ast.operator, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            old = self._variable(target.id)
            self._name(target.id, self._binary(operator, old, self._value(value)))
            return
        place = self._element(target)
        added = self._value(value)
        self._put(place, self._binary(operator, self._get(place), added))
