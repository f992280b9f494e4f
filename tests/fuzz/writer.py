"""Random kernels as PTX."""

from collections.abc import Iterator, Sequence

from fuzz.instruction import WIDTHS
from fuzz.syntax import (
    COUNTS,
    WORDS,
    Alone,
    Branch,
    Call,
    Compute,
    Exchange,
    Function,
    Graph,
    Leave,
    Local,
    Loop,
    Operand,
    Program,
    Shuffle,
    Statement,
    Switch,
    Together,
    Uniformly,
    Update,
    Vote,
)

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
COUNTERS = 16
TYPES = {"r": "b32", "d": "b64", "h": "b16", "f": "f32", "g": "f64", "p": "pred"}
SAVED = [f"{letter}{k}" for letter, count in COUNTS.items() for k in range(count)]
"""Registers in the order in which a kernel leaves them: 8 bytes each, a row a thread."""


class Writer:
    """Writes one function; labels and counters are numbered."""

    def __init__(self, update: str = "add") -> None:
        self._update = update
        self._labels = 0
        self._depth = 0

    def label(self) -> str:
        """A label that nobody has."""
        self._labels += 1
        return f"L{self._labels}"

    def all(self, body: Sequence[Statement]) -> Iterator[str]:
        """Write statements in order."""
        for statement in body:
            yield from self.one(statement)

    def one(self, statement: Statement) -> Iterator[str]:
        """Write a statement."""
        match statement:
            case Compute(form, result, sources, guard):
                name, _, last = form.mnemonic.partition(" ")
                words = [
                    f"%{result}",
                    *map(_operand, sources, form.sources),
                    *([last] * bool(last)),
                ]
                yield f"{_at(guard)}{name} {', '.join(words)};"
            case Local(register, place, stores, guard):
                yield from _place(place, "%local")
                moved = f"st.local.b32 [%a1], %{register};"
                yield _at(guard) + (moved if stores else f"ld.local.b32 %{register}, [%a1];")
            case Update(value, place, guard):
                yield from _place(place, "%cells")
                kind = "b32" if self._update in ("and", "or", "xor") else "u32"
                yield f"{_at(guard)}red.global.{self._update}.{kind} [%a1], %{value};"
            case Branch(guard, body, other):
                yield from self._branch(guard, body, other)
            case Loop():
                yield from self._loop(statement)
            case Switch():
                yield from self._switch(statement)
            case Call(function, result, sources, guard):
                yield from self._call(function, result, sources, guard)
            case Graph():
                yield from self._graph(statement)
            case Leave(guard):
                yield f"@{_register(guard)} bra DONE;"

    def _branch(
        self, guard: str, body: Sequence[Statement], other: Sequence[Statement]
    ) -> Iterator[str]:
        otherwise, end = self.label(), self.label()
        yield f"@{_contrary(guard)} bra {otherwise};"
        yield from self.all(body)
        if other:
            yield f"bra.uni {end};"
        yield f"{otherwise}:"
        yield from self.all(other)
        yield f"{end}:"

    def _loop(self, loop: Loop) -> Iterator[str]:
        again, end = self.label(), self.label()
        counter = f"%c{self._depth}"
        self._depth += 1
        yield f"and.b32 {counter}, %{loop.times}, {(1 << loop.bits) - 1};"
        yield f"{again}:"
        if not loop.checks_last:
            yield f"setp.eq.u32 %q, {counter}, 0;\n@%q bra {end};"
        yield from self.all(loop.body)
        if loop.leave:
            yield f"@{_register(loop.leave)} bra {end};"
        yield f"sub.u32 {counter}, {counter}, 1;"
        if loop.checks_last:
            yield f"setp.gt.s32 %q, {counter}, 0;\n@%q bra {again};"
        else:
            yield f"bra {again};"
        yield f"{end}:"
        self._depth -= 1

    def _switch(self, switch: Switch) -> Iterator[str]:
        labels = [self.label() for _ in switch.bodies]
        table, end = f"T{self.label()}", self.label()
        yield f"{table}: .branchtargets {', '.join(labels)};"
        yield f"and.b32 %i, %{switch.chosen}, {len(labels) - 1};"
        yield f"brx.idx %i, {table};"
        for label, body in zip(labels, switch.bodies, strict=True):
            yield f"{label}:"
            yield from self.all(body)
            if not switch.falls_through:
                yield f"bra {end};"
        yield f"{end}:"

    def _graph(self, graph: Graph) -> Iterator[str]:
        labels, end = [self.label() for _ in graph.blocks], self.label()
        counter = f"%c{self._depth}"
        self._depth += 1
        yield f"mov.u32 {counter}, {graph.fuel};"
        for label, (body, guard, taken, other) in zip(labels, graph.blocks, strict=True):
            yield f"{label}:\nsetp.eq.u32 %q, {counter}, 0;\n@%q bra {end};"
            yield f"sub.u32 {counter}, {counter}, 1;"
            yield from self.all(body)
            yield f"@{_register(guard)} bra {labels[taken]};\nbra {labels[other]};"
        yield f"{end}:"
        self._depth -= 1

    def _call(
        self, function: int, result: str, sources: Sequence[str], guard: str
    ) -> Iterator[str]:
        over = self.label()
        if guard:
            yield f"@{_contrary(guard)} bra {over};"
        yield "{\n.param .b32 a0; .param .b32 a1; .param .b32 back;"
        for number, source in enumerate(sources):
            yield f"st.param.b32 [a{number}], %{source};"
        yield f"call.uni (back), f{function}, (a0, a1);\nld.param.b32 %{result}, [back];\n}}"
        yield f"{over}:"

    def together(self, body: Sequence[Together]) -> Iterator[str]:
        """Write what a block does together."""
        for item in body:
            match item:
                case Alone(alone):
                    yield from self.all(alone)
                case Exchange():
                    yield from _exchange(item)
                case Shuffle():
                    yield _shuffle(item)
                case Vote():
                    yield _vote(item)
                case Uniformly():
                    yield from self._uniformly(item)

    def _uniformly(self, item: Uniformly) -> Iterator[str]:
        again, end = self.label(), self.label()
        counter = f"%c{self._depth}"
        self._depth += 1
        yield f"mov.u32 {counter}, {item.times};"
        if item.odd_blocks:
            yield "mov.u32 %i, %ctaid.x;\nand.b32 %i, %i, 1;\nsetp.eq.u32 %q, %i, 0;"
            yield f"@%q bra {end};"
        yield f"{again}:"
        yield from self.together(item.body)
        yield f"sub.u32 {counter}, {counter}, 1;\nsetp.ne.u32 %q, {counter}, 0;"
        yield f"@%q bra {again};\n{end}:"
        self._depth -= 1


def _register(guard: str) -> str:
    return f"!%{guard[1:]}" if guard[0] == "!" else f"%{guard}"


def _contrary(guard: str) -> str:
    return _register(guard[1:] if guard[0] == "!" else f"!{guard}")


def _at(guard: str) -> str:
    return f"@{_register(guard)} " if guard else ""


def _operand(operand: Operand, letter: str) -> str:
    if isinstance(operand, str):
        return f"%{operand}"
    if letter in "fg":
        return f"0{'fd'[letter == 'g']}{operand:0{WIDTHS[letter] // 4}X}"
    return str(operand)


def _place(register: str, base: str) -> Iterator[str]:
    yield f"and.b32 %i, %{register}, {WORDS - 1};\nmul.wide.u32 %a1, %i, 4;"
    yield f"add.u64 %a1, {base}, %a1;"


def _exchange(item: Exchange) -> Iterator[str]:
    """Store to a place of one's own, meet, load from any, and meet again."""
    meet = f"barrier.sync {item.barrier};" if item.barrier else "bar.sync 0;"
    yield f"mul.lo.u32 %i, %tid0, {item.factor};\nand.b32 %i, %i, 127;\nshl.b32 %i, %i, 2;"
    yield f"add.u32 %i, %i, %shared0;\nst.shared.b32 [%i], %{item.stored};\n{meet}"
    yield f"and.b32 %i, %{item.place}, 127;\nshl.b32 %i, %i, 2;\nadd.u32 %i, %i, %shared0;"
    yield f"ld.shared.b32 %{item.loaded}, [%i];\n{meet}"


def _shuffle(item: Shuffle) -> str:
    bound = (32 - item.segment) << 8 | (0 if item.mode == "up" else 31)
    to = f"%{item.result}" + (f"|%{item.valid}" if item.valid != "_" else "")
    step = _operand(item.step, "r")
    return f"shfl.sync.{item.mode}.b32 {to}, %{item.source}, {step}, {bound:#x}, 0xffffffff;"


def _vote(item: Vote) -> str:
    to, source = f"%{item.result}", f"%{item.source}"
    everyone = "0xffffffff"
    match item.kind.split("."):
        case ["active"]:
            return f"activemask.b32 {to};"
        case ["match"]:
            return f"match.any.sync.b32 {to}, {source}, {everyone};"
        case ["redux", name]:
            kind = "b32" if name in ("and", "or", "xor") else "s32"
            return f"redux.sync.{name}.{kind} {to}, {source}, {everyone};"
        case ["bar", name]:
            return f"barrier.red.{name}.{'u32' if name == 'popc' else 'pred'} {to}, 2, {source};"
    kind = "b32" if item.kind == "ballot" else "pred"
    return f"vote.sync.{item.kind}.{kind} {to}, {source}, {everyone};"


def _declare(counts: dict[str, int]) -> Iterator[str]:
    for letter, count in counts.items():
        yield f".reg .{TYPES[letter]} %{letter}<{count}>;"
    yield f".reg .b32 %c<{COUNTERS}>;\n.reg .b32 %i, %tid0, %shared0, %t;"
    yield ".reg .b64 %a0, %a1, %cells, %local;\n.reg .pred %q;"


def _function(number: int, function: Function) -> Iterator[str]:
    yield f".func (.param .b32 back) f{number}(.param .b32 first, .param .b32 second)\n{{"
    yield from _declare({letter: COUNTS[letter] for letter in "rp"})
    yield from (f"mov.u32 %r{k}, 0;" for k in range(COUNTS["r"]))
    yield from (f"mov.pred %p{k}, 0;" for k in range(COUNTS["p"]))
    yield "ld.param.b32 %r0, [first];\nld.param.b32 %r1, [second];\nmov.u32 %r2, %r1;"
    if function.is_recursive:
        yield "and.b32 %t, %r0, 3;\nsetp.eq.u32 %q, %t, 0;\n@%q bra DONE;\nsub.u32 %t, %t, 1;"
        yield "{\n.param .b32 a0; .param .b32 a1; .param .b32 more;"
        yield "st.param.b32 [a0], %t;\nst.param.b32 [a1], %r1;"
        yield f"call.uni (more), f{number}, (a0, a1);\nld.param.b32 %r2, [more];\n}}"
    yield from Writer().all(function.body)
    yield "DONE:\nst.param.b32 [back], %r2;\nret;\n}"


def write(program: Program) -> str:
    """Return the PTX of a program: a kernel `k(in, out, cells)`."""
    lines = [HEAD]
    for number, function in enumerate(program.functions):
        lines += _function(number, function)
    writer = Writer(program.update)
    lines += [".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 cells)\n{"]
    lines += [f".shared .align 4 .b32 shared[128];\n.local .align 4 .b32 local[{WORDS}];"]
    lines += [*_declare(COUNTS)]
    lines += ["mov.u32 %tid0, %tid.x;\nmov.u32 %shared0, shared;\nmov.u64 %local, local;"]
    lines += ["cvta.local.u64 %local, %local;\ncvta.to.local.u64 %local, %local;"]
    lines += ["ld.param.u64 %cells, [cells];\nmov.u32 %i, %ctaid.x;\nmov.u32 %t, %ntid.x;"]
    lines += ["mad.lo.u32 %i, %i, %t, %tid0;"]
    lines += _rows("in", loads=True)
    for word in range(WORDS):
        lines += [f"st.local.b32 [%local+{4 * word}], {word};"]
    lines += writer.together(program.body)
    lines += writer.all(program.tail)
    lines += ["DONE:\nmov.u32 %i, %ctaid.x;\nmov.u32 %t, %ntid.x;\nmad.lo.u32 %i, %i, %t, %tid0;"]
    lines += _rows("out", loads=False)
    return "\n".join([*lines, "ret;\n}\n"])


def _rows(parameter: str, loads: bool) -> Iterator[str]:
    """Move all registers from or to the thread's row."""
    yield f"ld.param.u64 %a0, [{parameter}];\nmul.wide.u32 %a1, %i, {8 * len(SAVED)};"
    yield "add.u64 %a0, %a0, %a1;"
    for number, register in enumerate(SAVED):
        place, kind = f"[%a0+{8 * number}]", TYPES[register[0]]
        if kind == "pred" and loads:
            yield f"ld.global.b32 %t, {place};\nand.b32 %t, %t, 1;"
            yield f"setp.ne.u32 %{register}, %t, 0;"
        elif kind == "pred":
            yield f"selp.u32 %t, 1, 0, %{register};\nst.global.b32 {place}, %t;"
        elif loads:
            yield f"ld.global.{kind} %{register}, {place};"
        else:
            yield f"st.global.{kind} {place}, %{register};"
