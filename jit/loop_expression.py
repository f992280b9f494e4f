"""Compile the expressions and the control flow of a loop: names, array elements, conditions.

`Expressions` emits the basic blocks of `if`, `while` and `for`, and evaluates Python's expressions
to LLVM values; a subclass handles the other statements.
"""

import ast
import os
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, TypeAlias

from ..base.claim import Lock
from .value import (
    ELEMENTS,
    Array,
    ArrayKind,
    Kind,
    Number,
    Structure,
    Value,
    invoke,
    kind_of,
    kind_said,
    prefetch,
    remake,
    texts_of,
    trailing_zeros,
    value_of,
    words_of,
)

SYNTAX_LOCK = Lock()
"""One thread translates at a time: Python 3.11 raises SystemError if two build syntax trees at
once."""

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
"""LLVM's instruction of each operator that has the same meaning for integers."""
RELATIONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "slt",
    ast.LtE: "sle",
    ast.Gt: "sgt",
    ast.GtE: "sge",
}


Names: TypeAlias = "dict[str, str | Value]"
"""The place on the stack of a number, an array or a structure, the shape of a tuple; SPLIT."""
SPLIT = "%split"
"""Of a name that different ways here bind to different arrays or kinds."""


CHECKED = "CUTRACE_INVARIANTS"
"""The environment variable that enables a bounds check of each index, for tests."""

_DOUBLE_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "fadd",
    ast.Sub: "fsub",
    ast.Mult: "fmul",
    ast.Div: "fdiv",
}
LLVM = {"int": "i64", "float": "double"}


def returned(kind: Kind) -> str:
    """Return LLVM's type of a function result: always a structure, empty without a result."""
    return "{" + ", ".join(words_of(kind)) + "}"


class Expressions:
    """The lines of one function so far, and the values of its names.

    A number has a place on the stack, which LLVM promotes to a register; so has each number of a
    tuple. An array is bound to its name: where ways meet on which it is another, it has no value,
    and a number none where it is of another kind. `globals_` are the names of its module;
    `translate` returns the name and the result kind of one of the module's functions for arguments
    of some kinds.
    """

    def __init__(
        self,
        tree: ast.FunctionDef,
        globals_: Mapping[str, Any],
        translate: Callable[[Callable[..., Any], tuple[Kind, ...]], tuple[str, Kind]],
    ) -> None:
        self._allocations: list[str] = []
        self._lines: list[str] = []
        self._loops: list[tuple[str, str]] = []
        """For each enclosing loop, the labels of `continue` and of `break`."""
        self._names: Names = {}
        """What each name is bound to here."""
        self._ways: list[list[Names]] = []
        """For each enclosing loop, the names at each of its exits and back edges."""
        self._line = 0
        self._count = 0
        self._tree, self._globals, self._translate = tree, globals_, translate

    # hooks of a subclass

    def _other(self, statement: ast.stmt) -> None:
        """Emit a statement without control flow."""
        raise NotImplementedError

    def _evaluate(self, expression: ast.expr) -> None:
        """Emit an expression statement and discard its value."""
        raise NotImplementedError

    def _return(self, value: ast.expr | None) -> None:
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
        """Terminate the current basic block; code after it is unreachable."""
        self._lines.append(f"  {statement}\n{self._new('dead')}:")

    @property
    def _is_dead(self) -> bool:
        """Whether no way leads here."""
        return self._lines[-1].rpartition("\n")[2].startswith("dead")

    # statements

    def _body(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        self._line = statement.lineno
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
            case ast.Break() | ast.Continue():
                self._ways[-1].append(self._names)
                self._leave(f"br label %{self._loops[-1][isinstance(statement, ast.Break)]}")
            case _:
                self._other(statement)

    def _if(self, test: ast.expr, yes: Callable[[], None], no: Callable[[], None]) -> None:
        one, other, end = (self._new(stem) for stem in ("then", "else", "end"))
        self._branch(test, one, other)
        before, ways = self._names, []
        for label, emit in ((one, yes), (other, no)):
            self._lines.append(f"{label}:")
            self._names = {**before}
            emit()
            ways += [] if self._is_dead else [self._names]
            self._lines.append(f"  br label %{end}")
        self._lines.append(f"{end}:")
        self._names = self._meet(ways)

    def _while(self, test: ast.expr, body: list[ast.stmt]) -> None:
        again, inside, end = (self._new(stem) for stem in ("while", "do", "done"))
        self._label(again)
        self._before(body)
        self._branch(test, inside, end)
        self._lines.append(f"{inside}:")
        self._repeat(again, end, body)
        self._lines.append(f"  br label %{again}\n{end}:")

    def _repeat(self, again: str, end: str, body: list[ast.stmt]) -> None:
        self._loops.append((again, end))
        self._ways.append([self._names])
        self._names = {**self._names}
        self._body(body)
        self._loops.pop()
        ways = self._ways.pop()
        self._names = self._meet(ways if self._is_dead else [*ways, self._names])
        self._after(ways[0])

    def _branch(self, test: ast.expr, yes: str, no: str) -> None:
        """Branch to one of two labels; `and` and `or` short-circuit."""
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

    def _product(self, one: str, other: str) -> str:
        return other if one == "1" else self._emit(f"mul i64 {one}, {other}")

    def _refuse(self, node: ast.AST) -> NotImplementedError:
        line = getattr(node, "lineno", 0)
        return NotImplementedError(f"{self._tree.name}, line {line}: {ast.unparse(node)}")

    # names

    def _slot(self, name: str, kind: str) -> str:
        place = f"%v.{name}.{kind}"
        if self._names.get(name) != place:
            line = f"  {place} = alloca {LLVM[kind]}"
            if line not in self._allocations:
                self._allocations.append(line)
            self._names[name] = place
        return place

    def _name(self, name: str, value: Value) -> None:
        if isinstance(value, Number):
            place = self._slot(name, value.kind)
            self._lines.append(f"  store {LLVM[value.kind]} {value.text}, ptr {place}")
            return
        self._names[name] = value
        if isinstance(value, tuple):
            self._names[name] = remake(value, [None] * len(value))
            for index, item in enumerate(value):
                self._name(f"{name}.{index}", item)

    def _variable(self, name: str) -> Value:
        if name not in self._names:
            if name not in self._globals:
                raise self._refuse_name(name, "is not bound here")
            return _constant(self._globals[name])
        bound = self._names[name]
        if isinstance(bound, tuple):
            return remake(bound, [self._variable(f"{name}.{n}") for n in range(len(bound))])
        if not isinstance(bound, str):
            return bound
        if bound == SPLIT:
            raise self._refuse_name(name, "is not the same array, or not of one kind, on every way")
        kind = bound.rpartition(".")[2]
        return Number(kind, self._emit(f"load {LLVM[kind]}, ptr {bound}"))

    def _refuse_name(self, name: str, why: str) -> NotImplementedError:
        return NotImplementedError(f"{self._tree.name}, line {self._line}: `{name}` {why}")

    def _before(self, body: list[ast.stmt]) -> None:
        """Leave names without a value that the body binds to another array."""
        nodes = (node for statement in body for node in ast.walk(statement))
        stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for name, bound in self._names.items():
            if name.partition(".")[0] in stored and not isinstance(bound, str | tuple):
                self._names[name] = SPLIT

    def _after(self, before: Names) -> None:
        """Refuse a loop that gives a name at its head another kind."""
        for name, bound in before.items():
            if bound != SPLIT == self._names[name] and isinstance(bound, str | tuple):
                raise self._refuse_name(name, "is of another kind each time around")

    def _meet(self, ways: list[Names]) -> Names:
        """Return the names where these ways meet; a number may be bound on some of them."""
        names: Names = {}
        for name in dict.fromkeys(name for way in ways for name in way):
            bound = [way[name] for way in ways if name in way]
            is_partial = len(bound) < len(ways) and not isinstance(bound[0], str | tuple)
            is_one = all(type(one) is type(bound[0]) and one == bound[0] for one in bound)
            names[name] = bound[0] if is_one and not is_partial else SPLIT
        return names

    def _path(self, expression: ast.expr) -> str:
        """Return the name under which a named tuple, or a field of one, is kept; or none."""
        name = expression.id if isinstance(expression, ast.Name) else ""
        if isinstance(expression, ast.Attribute) and (path := self._path(expression.value)):
            fields = getattr(self._names.get(path), "_fields", ())
            name = f"{path}.{fields.index(expression.attr)}" if expression.attr in fields else ""
        return name if "." in name or not isinstance(self._names.get(name, ""), str) else ""

    # elements of arrays

    def _element(self, target: ast.expr) -> Array:
        """Return an array element, or a structure's integer, as an array without dimensions."""
        if isinstance(target, ast.Attribute):
            place = self._field(target, self._value(target.value))[1]
            return Array(ArrayKind("i8", 0, True), place, (), ())
        assert isinstance(target, ast.Subscript)
        element = self._subscript(target)
        assert isinstance(element, Array)
        assert not element.shape
        return element

    def _field(self, node: ast.Attribute, base: Value) -> tuple[Kind, str]:
        """Return the kind and the address of a structure's field."""
        if not isinstance(base, Structure):
            raise self._refuse(node)
        fields = base.kind.fields
        place = f"getelementptr i64, ptr {base.pointer}, i64 {list(fields).index(node.attr)}"
        return kind_said(fields[node.attr]), self._emit(place)

    def _loaded(self, kind: Kind, place: str) -> Value:
        """Load a value of a kind of one word."""
        (word,) = words_of(kind)
        return value_of(kind, iter([self._emit(f"load {word}, ptr {place}")]), self._product)

    def _get(self, place: Array) -> Number:
        element, widen = ELEMENTS[place.kind.element]
        text = self._emit(f"load {element}, ptr {place.pointer}")
        if element == "double":
            return Number("float", text)
        return Number("int", self._emit(f"{widen} {element} {text} to i64") if widen else text)

    def _put(self, place: Array, value: Number) -> None:
        element, _ = ELEMENTS[place.kind.element]
        text = value.text
        if element == "double":
            text = self._double(value)
        elif element != "i64":
            text = self._emit(f"trunc i64 {text} to {element}")
        self._lines.append(f"  store {element} {text}, ptr {place.pointer}")

    def _subscript(self, node: ast.Subscript) -> Value:
        """Return `tuple[constant]`, a slice of a tuple or array, or an element or row of an
        array."""
        base = self._value(node.value)
        if isinstance(base, tuple):
            return self._item(base, node)
        assert isinstance(base, Array)
        if isinstance(node.slice, ast.Slice):
            return self._slice(base, node.slice)
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        pointer = base.pointer
        for index, step, length in zip(indices, base.steps, base.shape, strict=False):
            number = self._number(index)
            if length:
                self._require(f"icmp ult i64 {number}, {length}")
            pointer = self._move(base, pointer, number, step)
        index_count = len(indices)
        kind = ArrayKind(base.kind.element, base.kind.dimensions - index_count, base.kind.is_dense)
        return Array(kind, pointer, base.shape[index_count:], base.steps[index_count:])

    def _item(self, items: tuple[Value, ...], node: ast.Subscript) -> Value:
        """Return an item or a slice of a tuple; of numbers also one at a variable index."""
        names = {name.id for name in ast.walk(node.slice) if isinstance(name, ast.Name)}
        if not names & self._names.keys():
            source = ast.unparse(ast.Subscript(ast.Name("items"), node.slice, ast.Load()))
            value: Value = eval(source, {**self._globals, "items": items})
            return value
        index, text = self._number(node.slice), _text(items[0])
        for number, item in enumerate(items[1:], 1):
            here = self._emit(f"icmp eq i64 {index}, {number}")
            text = self._emit(f"select i1 {here}, i64 {_text(item)}, i64 {text}")
        return Number("int", text)

    def _slice(self, base: Array, where: ast.Slice) -> Array:
        if len(base.shape) != 1 or where.step is not None:
            raise self._refuse(where)
        first = self._number(where.lower) if where.lower else "0"
        if not base.kind.bounded:
            pointer = self._move(base, base.pointer, first, "1")
            return Array(base.kind, pointer, base.shape, base.steps)
        last = self._number(where.upper) if where.upper else base.shape[0]
        self._require(f"icmp ule i64 {first}, {last}")
        self._require(f"icmp ule i64 {last}, {base.shape[0]}")
        pointer = self._move(base, base.pointer, first, base.steps[0])
        return Array(base.kind, pointer, (self._emit(f"sub i64 {last}, {first}"),), base.steps)

    def _require(self, condition: str) -> None:
        """Emit a check that aborts the process at an index out of bounds or negative, if checks are
        enabled."""
        if os.environ.get(CHECKED):
            inside, outside = self._new("inside"), self._new("outside")
            holds = self._emit(condition)
            self._lines.append(f"  br i1 {holds}, label %{inside}, label %{outside}\n{outside}:")
            self._lines.append(f"  call void @llvm.trap()\n  unreachable\n{inside}:")

    def _move(self, base: Array, pointer: str, index: str, step: str) -> str:
        offset = index if step == "1" else self._emit(f"mul i64 {index}, {step}")
        element = ELEMENTS[base.kind.element][0]
        return self._emit(f"getelementptr {element}, ptr {pointer}, i64 {offset}")

    # expressions

    def _number(self, expression: ast.expr) -> str:
        value = self._value(expression)
        assert isinstance(value, Number)
        assert value.kind == "int", ast.unparse(expression)
        return value.text

    def _double(self, value: Number) -> str:
        if value.kind == "float":
            return value.text
        return self._emit(f"sitofp i64 {value.text} to double")

    def _value(self, expression: ast.expr) -> Value:
        match expression:
            case ast.Constant(value):
                return _constant(value)
            case ast.Name(name):
                return self._variable(name)
            case ast.Tuple(items):
                return tuple(self._value(item) for item in items)
            case ast.Subscript():
                part = self._subscript(expression)
                is_element = isinstance(part, Array) and not part.shape
                return self._get(part) if is_element else part  # type: ignore[arg-type]
            case ast.Attribute(value, name):
                if path := self._path(expression):
                    return self._variable(path)
                base = self._value(value)
                if name in getattr(base, "_fields", ()):
                    return getattr(base, name)  # type: ignore[no-any-return]
                if isinstance(base, Array) and name == "shape":
                    return tuple(Number("int", length) for length in base.shape)
                return self._loaded(*self._field(expression, base))
            case ast.BinOp(left, operator, right):
                return self._binary(operator, self._value(left), self._value(right))
            case ast.UnaryOp(ast.USub(), ast.Constant(int() as number)):
                return _constant(-number)
            case ast.UnaryOp(ast.USub(), operand):
                return Number("int", self._emit(f"sub i64 0, {self._number(operand)}"))
            case ast.UnaryOp(ast.Invert(), operand):
                return Number("int", self._emit(f"xor i64 -1, {self._number(operand)}"))
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(ast.Not()):
                return self._truth(expression)
            case ast.IfExp(test, body, orelse):
                return self._choose(test, body, orelse)
            case ast.Call(ast.Name(name), arguments):
                return self._call(expression, name, arguments)
            case ast.Call(ast.Attribute(value, "bit_count"), []):
                bits = self._number(value)
                return Number("int", self._emit(f"call i64 @llvm.ctpop.i64(i64 {bits})"))
        raise self._refuse(expression)

    def _binary(self, operator: ast.operator, left_operand: Value, right: Value) -> Number:
        assert isinstance(left_operand, Number)
        assert isinstance(right, Number)
        if "float" in (left_operand.kind, right.kind):
            name = _DOUBLE_OPERATORS[type(operator)]
            pair = f"{self._double(left_operand)}, {self._double(right)}"
            return Number("float", self._emit(f"{name} double {pair}"))
        if isinstance(operator, ast.FloorDiv | ast.Mod):
            return Number("int", self._divide(left_operand.text, right.text, operator))
        name = OPERATORS[type(operator)]
        return Number("int", self._emit(f"{name} i64 {left_operand.text}, {right.text}"))

    def _divide(self, dividend: str, right: str, operator: ast.operator) -> str:
        """Return Python's quotient or remainder, rounded down; by a power of two a shift or a
        mask."""
        is_quotient = isinstance(operator, ast.FloorDiv)
        if right.isdigit() and int(right).bit_count() == 1:
            power = int(right).bit_length() - 1
            shift, mask = f"ashr i64 {dividend}, {power}", f"and i64 {dividend}, {int(right) - 1}"
            return self._emit(shift if is_quotient else mask)
        remainder = self._emit(f"srem i64 {dividend}, {right}")
        signs = self._emit(f"icmp slt i64 {self._emit(f'xor i64 {remainder}, {right}')}, 0")
        some = self._emit(f"icmp ne i64 {remainder}, 0")
        is_below = self._emit(f"and i1 {signs}, {some}")
        if is_quotient:
            quotient = self._emit(f"sdiv i64 {dividend}, {right}")
            return self._emit(f"add i64 {quotient}, {self._emit(f'sext i1 {is_below} to i64')}")
        more = self._emit(f"select i1 {is_below}, i64 {right}, i64 0")
        return self._emit(f"add i64 {remainder}, {more}")

    def _call(self, node: ast.expr, name: str, arguments: list[ast.expr]) -> Value:
        if name == "bool":
            return self._truth(arguments[0])
        if self._globals.get(name) is prefetch:
            return self._prefetch(self._element(arguments[0]))
        values = [self._value(argument) for argument in arguments]
        function = self._globals.get(name)
        if function is trailing_zeros:
            bits = _text(values[0])
            return Number("int", self._emit(f"call i64 @llvm.cttz.i64(i64 {bits}, i1 true)"))
        if function is invoke:
            return self._invoke(*values)
        if isinstance(function, FunctionType):
            return self._call_routine(function, values)
        if isinstance(function, type) and hasattr(function, "_make"):
            return function(*values)  # type: ignore[no-any-return]
        match name, values:
            case "int", [Number("float", text)]:
                return Number("int", self._emit(f"fptosi double {text} to i64"))
            case "int", [Number() as number]:
                return number
            case "len", [Array() as array]:
                return Number("int", array.shape[0])
            case "len", [tuple() as items]:
                return _constant(len(items))
            case (("min" | "max"), [Number("int", one), *rest]):
                for other in rest:
                    one = self._emit(f"call i64 @llvm.s{name}.i64(i64 {one}, i64 {_text(other)})")
                return Number("int", one)
        raise self._refuse(node)

    def _prefetch(self, place: Array) -> Value:
        self._lines.append(f"  call void @llvm.prefetch(ptr {place.pointer}, i32 0, i32 3, i32 1)")
        return None

    def _invoke(self, code: Value, context: Value) -> Number:
        (place,) = texts_of(context)
        to = self._emit(f"inttoptr i64 {_text(code)} to ptr")
        return Number("int", self._emit(f"call i64 {to}(ptr {place})"))

    def _call_routine(self, function: Callable[..., Any], arguments: list[Value]) -> Value:
        """Emit a call of a function of the module, or of one imported there."""
        kinds = tuple(kind_of(value) for value in arguments)
        inner, result = self._translate(function, kinds)
        words = [word for kind in kinds for word in words_of(kind)]
        texts = [text for value in arguments for text in texts_of(value)]
        pairs = ", ".join(f"{word} {text}" for word, text in zip(words, texts, strict=True))
        if "assembly" in vars(function):
            kind = "float" if function.__annotations__.get("return") is float else "int"
            return Number(kind, self._emit(f"call {LLVM[kind]} @{inner}({pairs})"))
        whole = returned(result)
        answer = self._emit(f"call {whole} @{inner}({pairs})")
        places = range(len([*words_of(result)]))
        parts = [self._emit(f"extractvalue {whole} {answer}, {place}") for place in places]
        return value_of(result, iter(parts), self._product)

    def _choose(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Value:
        """Evaluate only the operand that the test selects: the other may be out of bounds."""
        place = f"%{self._new('chosen')}"
        kinds: list[Kind] = []

        def put(expression: ast.expr) -> None:
            value = self._value(expression)
            kinds.append(kind_of(value))
            if len([*words_of(kinds[-1])]) != 1:
                raise self._refuse(expression)
            (word,), (text,) = words_of(kinds[-1]), texts_of(value)
            self._lines.append(f"  store {word} {text}, ptr {place}")

        self._if(test, lambda: put(body), lambda: put(orelse))
        if kinds[0] != kinds[1]:
            raise self._refuse(orelse)
        (word,) = words_of(kinds[0])
        self._allocations.append(f"  {place} = alloca {word}")
        return self._loaded(kinds[0], place)

    # conditions

    def _truth(self, test: ast.expr) -> Value:
        if isinstance(test, ast.Compare):
            return Number("int", self._emit(f"zext i1 {self._condition(test)} to i64"))
        return self._choose(test, ast.Constant(1), ast.Constant(0))

    def _condition(self, test: ast.expr) -> str:
        if not isinstance(test, ast.Compare):
            return self._emit(f"icmp ne i64 {self._number(test)}, 0")
        texts = [self._number(each) for each in (test.left, *test.comparators)]
        holds = ""
        for relation, one, other in zip(test.ops, texts, texts[1:], strict=False):
            here = self._emit(f"icmp {RELATIONS[type(relation)]} i64 {one}, {other}")
            holds = self._emit(f"and i1 {holds}, {here}") if holds else here
        return holds


def _constant(value: Any) -> Value:
    if isinstance(value, tuple):
        return remake(value, map(_constant, value))
    return (
        Number("float", repr(value)) if isinstance(value, float) else Number("int", str(int(value)))
    )


def _text(value: Value) -> str:
    assert isinstance(value, Number)
    return value.text
