"""Make a failing kernel small: take away statements, parts of expressions, threads."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from fuzz.cuda.form import ZERO
from fuzz.cuda.tree import C_NAMES, Block, Expr, Function, Kernel, Launch, Stmt, Variable

AT_ONCE = 12
SECONDS = 240
"""How long one kernel may take."""

Fails = Callable[[Sequence[Kernel]], list[bool]]
"""Tells which of some kernels still fail in the same way."""


def reduce(kernel: Kernel, fails: Fails, seconds: float = SECONDS) -> Kernel:
    """The smallest kernel found that still fails."""
    end = time.monotonic() + seconds
    done = 0
    while time.monotonic() < end:
        candidates = list(islice(_sound_edits(kernel), done, done + AT_ONCE))
        if not candidates:
            if done == 0 or not _again(kernel, fails, end):
                break
            done = 0
            continue
        results = fails([renamed(c, number) for number, c in enumerate(candidates)])
        if True in results:
            first = results.index(True)
            kernel, done = candidates[first], max(0, done + first - 1)
        else:
            done += AT_ONCE
    return kernel


def _again(kernel: Kernel, fails: Fails, end: float) -> bool:
    """Whether any edit still works: what was refused before may go now."""
    done = 0
    while time.monotonic() < end:
        candidates = list(islice(_sound_edits(kernel), done, done + AT_ONCE))
        if not candidates:
            return False
        if True in fails([renamed(c, number) for number, c in enumerate(candidates)]):
            return True
        done += AT_ONCE
    return False


def renamed(kernel: Kernel, number: int) -> Kernel:
    """The same kernel under a name of its own."""
    main = kernel.functions[-1]
    name = f"{main.name}_{number}"
    main = replace(main, name=name, head=main.head.replace(main.name, name))
    return replace(kernel, functions=(*kernel.functions[:-1], main))


def _sound_edits(kernel: Kernel) -> Iterator[Kernel]:
    """Those edits after which no block names a variable that was declared in it and went."""
    for made in edits(kernel):
        text = made.text()
        if set(_LOCAL.findall(text)) == set(_DECLARED.findall(text)):
            yield made


_LOCAL = re.compile(r"\bd\d+\b")
_DECLARED = re.compile(r"\w (d\d+) = ")


def edits(kernel: Kernel) -> Iterator[Kernel]:
    """Smaller kernels, each by one step, large steps first."""
    text = kernel.text()
    for launch in _launch_edits(kernel.launch):
        yield replace(kernel, launch=launch)
    for number in reversed(range(len(kernel.functions))):
        function = kernel.functions[number]
        if function.name in text:
            for body in _block_edits(function.body):
                yield kernel.with_function(number, replace(function, body=body))
    for number in reversed(range(len(kernel.functions))):
        function = kernel.functions[number]
        if function.name in text:
            for made in _variable_edits(function):
                yield kernel.with_function(number, made)


def _block_edits(block: Block) -> Iterator[Block]:
    size = len(block)
    while size:
        for start in range(0, len(block), size):
            cut = block[start : start + size]
            if not any(each.fixed for each in cut):
                yield block[:start] + block[start + size :]
        size //= 2
    for number, each in enumerate(block):
        for made in _statement_edits(each):
            yield block[:number] + made + block[number + 1 :]


def _statement_edits(statement: Stmt) -> Iterator[Block]:
    yield from (block for block in statement.blocks if block)
    for number, block in enumerate(statement.blocks):
        for made in _block_edits(block):
            blocks = (*statement.blocks[:number], made, *statement.blocks[number + 1 :])
            yield (replace(statement, blocks=blocks),)
    zeros = tuple(Expr(part.type, ZERO[part.type]) for part in statement.parts)
    if len(zeros) > 1 and zeros != statement.parts:
        yield (replace(statement, parts=zeros),)
    for number, part in enumerate(statement.parts):
        if f"{{{number}}}" not in statement.form:
            continue
        for smaller in _expression_edits(part):
            parts = (*statement.parts[:number], smaller, *statement.parts[number + 1 :])
            yield (replace(statement, parts=parts),)


def _expression_edits(expression: Expr) -> Iterator[Expr]:
    if expression.form == ZERO[expression.type]:
        return
    yield Expr(expression.type, ZERO[expression.type])
    for part in expression.parts:
        if part.type == expression.type:
            yield part
    for number, part in enumerate(expression.parts):
        for smaller in _expression_edits(part):
            parts = (*expression.parts[:number], smaller, *expression.parts[number + 1 :])
            yield replace(expression, parts=parts)


def _launch_edits(launch: Launch) -> Iterator[Launch]:
    sizes = sorted({1, 2, 20, 32, 33, 64, launch.threads // 2, launch.threads - 1})
    if launch.grid != launch.cluster:
        yield replace(launch, grid=launch.cluster)
    if launch.block[1:] != (1, 1):
        yield replace(launch, block=(launch.threads, 1, 1))
    for size in sizes:
        if 0 < size < launch.threads:
            yield replace(launch, block=(size, 1, 1))


def _variable_edits(function: Function) -> Iterator[Function]:
    """Plain first values instead of expressions."""
    plain = tuple(map(_plain, function.variables))
    words = function.words()
    if plain != function.variables:
        yield replace(function, variables=plain)
    for number, (variable, made) in enumerate(zip(function.variables, plain, strict=True)):
        if variable.name in words and made != variable:
            variables = (*function.variables[:number], made, *function.variables[number + 1 :])
            yield replace(function, variables=variables)


def _plain(variable: Variable) -> Variable:
    """The variable with 0 as its first value, where it is one of the random ones."""
    if variable.type not in C_NAMES or variable.name.rstrip("0123456789") not in ("i", "u", "f"):
        return variable
    text = f"{C_NAMES[variable.type]} {variable.name} = {ZERO[variable.type]};"
    return Variable(variable.name, variable.type, text)
