"""Functions of the language to LLVM assembly."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from ....lazy_dataclass import dataclass
from ....native.control_flow import OPERATORS, RELATIONS, SYNTAX_LOCK, ControlFlow
from . import language
from .language import ELEMENTS, Struct, invoke, trailing_zeros

_OPERATORS = OPERATORS | {ast.FloorDiv: "sdiv", ast.Mod: "srem"}
_DECLARATIONS = "".join(
    f"declare i64 @llvm.{name}\n"
    for name in (
        *("smin.i64(i64, i64)", "smax.i64(i64, i64)"),
        *("ctpop.i64(i64)", "cttz.i64(i64, i1)"),
    )
)


@dataclass(frozen=True, slots=True)
class Value:
    """A value under way: `kind` is `int`, a name of ELEMENTS, or that of a structure."""

    kind: str
    text: str


def translate(exported: Iterable[Callable[..., Any]]) -> str:
    """Return the assembly of functions and all that they call; `exported` ones can be found."""
    with SYNTAX_LOCK:
        return _translate(exported)


def _translate(exported: Iterable[Callable[..., Any]]) -> str:
    waiting = list(exported)
    names = [function.__name__ for function in waiting]
    done: dict[str, str] = {}
    while waiting:
        function = waiting.pop(0)
        if function.__name__ in done:
            continue
        if "assembly" in function.__dict__:
            done[function.__name__] = function.__dict__["assembly"]
            continue
        work = _Translation(function)
        linkage = "" if function.__name__ in names else "internal "
        done[function.__name__] = work.define(linkage)
        waiting += work.called
    return _DECLARATIONS + "".join(done.values())


class _Translation(ControlFlow):
    """One function: its lines so far, the kinds of its variables, and the functions it calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        self._tree = tree
        self._globals: dict[str, Any] = function.__globals__
        self._structures: dict[str, type[Struct]] = {}
        self._kinds: dict[str, str] = {}
        self.called: list[Callable[..., Any]] = []

    def define(self, linkage: str) -> str:
        """Return the definition."""
        arguments = [a.arg for a in self._tree.args.args]
        kinds = [_kind(a.annotation) for a in self._tree.args.args]
        given = ", ".join(f"{_llvm(k)} %a.{n}" for n, k in zip(arguments, kinds, strict=True))
        for name, kind in zip(arguments, kinds, strict=True):
            if kind != "int" and kind not in ELEMENTS:
                self._structures[kind] = self._globals[kind]
            self._assign(name, Value(kind, f"%a.{name}"))
        self._body(self._tree.body)
        self._lines.append("  ret i64 0")
        lines = "\n".join((*self._allocations, *self._lines))
        return f"define {linkage}i64 @{self._tree.name}({given}) {{\nentry:\n{lines}\n}}\n"

    def _assign(self, name: str, value: Value) -> None:
        if name not in self._kinds:
            self._kinds[name] = value.kind
            self._allocations.append(f"  %v.{name} = alloca {_llvm(value.kind)}")
        self._lines.append(f"  store {_llvm(value.kind)} {value.text}, ptr %v.{name}")

    # statements

    def _other(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign([target], value):
                self._store(target, self._value(value))
            case ast.AnnAssign(target, _, ast.expr() as value):
                self._store(target, self._value(value))
            case ast.AugAssign(target, operator, value):
                old = self._load(target)
                self._store(target, self._binary(operator, old, self._value(value)))
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), bounds), body):
                self._for(name, [self._value(b) for b in bounds], body)
            case _:
                raise NotImplementedError(ast.unparse(statement))

    def _evaluate(self, expression: ast.expr) -> None:
        self._value(expression)

    def _return(self, value: ast.expr | None) -> None:
        self._leave(f"ret i64 {self._value(value).text if value else 0}")

    def _for(self, name: str, bounds: list[Value], body: list[ast.stmt]) -> None:
        first, last = bounds if len(bounds) == 2 else (Value("int", "0"), *bounds)
        again, inside, after, end = (self._new(s) for s in ("for", "do", "next", "done"))
        self._assign(name, first)
        self._label(again)
        at = self._emit(f"load i64, ptr %v.{name}")
        more = self._emit(f"icmp slt i64 {at}, {last.text}")
        self._lines.append(f"  br i1 {more}, label %{inside}, label %{end}\n{inside}:")
        self._repeat(after, end, body)
        self._label(after)
        at = self._emit(f"load i64, ptr %v.{name}")
        self._assign(name, Value("int", self._emit(f"add nsw i64 {at}, 1")))
        self._lines.append(f"  br label %{again}\n{end}:")

    def _store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
            return
        kind, place = self._place(target)
        element = ELEMENTS[kind][0] if kind in ELEMENTS else "i64"
        text = (
            value.text if element == "i64" else self._emit(f"trunc i64 {value.text} to {element}")
        )
        self._lines.append(f"  store {element} {text}, ptr {place}")

    # expressions

    def _place(self, target: ast.expr) -> tuple[str, str]:
        """Return the kind of elements and the address of `a[i]` or `s.field`."""
        if isinstance(target, ast.Subscript):
            array = self._value(target.value)
            index = self._value(target.slice)
            element = ELEMENTS[array.kind][0]
            at = self._emit(f"getelementptr {element}, ptr {array.text}, i64 {index.text}")
            return array.kind, at
        assert isinstance(target, ast.Attribute)
        struct = self._value(target.value)
        fields = list(self._structures[struct.kind].__annotations__)
        number = fields.index(target.attr)
        return "I64", self._emit(f"getelementptr i64, ptr {struct.text}, i64 {number}")

    def _load(self, target: ast.expr) -> Value:
        if isinstance(target, ast.Name):
            return self._variable(target.id)
        kind, place = self._place(target)
        if isinstance(target, ast.Attribute):
            struct = self._structures[self._value(target.value).kind]
            name = self._type_name(struct.__annotations__[target.attr])
            return Value(name, self._emit(f"load {_llvm(name)}, ptr {place}"))
        element, widen = ELEMENTS[kind]
        text = self._emit(f"load {element}, ptr {place}")
        return Value("int", self._emit(f"{widen} {element} {text} to i64") if widen else text)

    def _type_name(self, annotation: Any) -> str:
        """Return what the annotation of a structure's field is called."""
        if not isinstance(annotation, type):
            return next(name for name in ELEMENTS if getattr(language, name) == annotation)
        if issubclass(annotation, Struct):
            self._structures[annotation.__name__] = annotation
        return annotation.__name__

    def _variable(self, name: str) -> Value:
        if name in self._kinds:
            kind = self._kinds[name]
            return Value(kind, self._emit(f"load {_llvm(kind)}, ptr %v.{name}"))
        return Value("int", str(int(self._globals[name])))

    def _value(self, expression: ast.expr) -> Value:
        match expression:
            case ast.Constant(int() as number):
                return Value("int", str(int(number)))
            case ast.Subscript(array, ast.Slice(ast.expr() as lower, None, None)):
                base = self._value(array)
                element, index = ELEMENTS[base.kind][0], self._value(lower)
                at = f"getelementptr {element}, ptr {base.text}, i64 {index.text}"
                return Value(base.kind, self._emit(at))
            case ast.Name() | ast.Subscript() | ast.Attribute():
                return self._load(expression)
            case ast.BinOp(left, operator, right):
                return self._binary(operator, self._value(left), self._value(right))
            case ast.UnaryOp(ast.USub(), operand):
                return Value("int", self._emit(f"sub i64 0, {self._value(operand).text}"))
            case ast.UnaryOp(ast.Invert(), operand):
                return Value("int", self._emit(f"xor i64 -1, {self._value(operand).text}"))
            case ast.Compare():
                return Value("int", self._emit(f"zext i1 {self._compare(expression)} to i64"))
            case ast.IfExp(test, body, orelse):
                first, second = self._value(body), self._value(orelse)
                kind, holds = _llvm(first.kind), self._condition(test)
                pair = f"{kind} {first.text}, {kind} {second.text}"
                return Value(first.kind, self._emit(f"select i1 {holds}, {pair}"))
            case ast.Call(function, arguments):
                return self._call(function, [self._value(a) for a in arguments])
        raise NotImplementedError(ast.unparse(expression))

    def _binary(self, operator: ast.operator, left: Value, right: Value) -> Value:
        name = _OPERATORS[type(operator)]
        return Value("int", self._emit(f"{name} i64 {left.text}, {right.text}"))

    def _call(self, function: ast.expr, arguments: list[Value]) -> Value:
        given = ", ".join(f"{_llvm(a.kind)} {a.text}" for a in arguments)
        if isinstance(function, ast.Attribute) and function.attr == "bit_count":
            bits = self._value(function.value).text
            return Value("int", self._emit(f"call i64 @llvm.ctpop.i64(i64 {bits})"))
        assert isinstance(function, ast.Name)
        if function.id == "int":
            return arguments[0]
        if function.id in ("min", "max"):
            return Value("int", self._emit(f"call i64 @llvm.s{function.id}.i64({given})"))
        called = self._globals[function.id]
        if called is trailing_zeros:
            return Value("int", self._emit(f"call i64 @llvm.cttz.i64({given}, i1 true)"))
        if called is invoke:
            to = self._emit(f"inttoptr i64 {arguments[0].text} to ptr")
            rest = given.split(", ", 1)[1]
            return Value("int", self._emit(f"call i64 {to}({rest})"))
        self.called.append(called)
        return Value("int", self._emit(f"call i64 @{called.__name__}({given})"))

    # conditions

    def _compare(self, expression: ast.expr) -> str:
        match expression:
            case ast.Compare(left, [relation], [right]):
                pair = f"{self._value(left).text}, {self._value(right).text}"
                return self._emit(f"icmp {RELATIONS[type(relation)]} i64 {pair}")
        return self._emit(f"icmp ne i64 {self._value(expression).text}, 0")

    def _condition(self, test: ast.expr) -> str:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._emit(f"xor i1 {self._condition(test.operand)}, true")
        assert not isinstance(test, ast.BoolOp)
        return self._compare(test)


def _llvm(kind: str) -> str:
    return "i64" if kind == "int" else "ptr"


def _kind(annotation: ast.expr | None) -> str:
    match annotation:
        case ast.Name(name) | ast.Constant(str() as name):
            return name
    raise NotImplementedError("an argument needs the name of a type")
