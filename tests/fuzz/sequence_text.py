"""A random sequence as PTX: `k(in, out)`, a column of 64-bit words for each register."""

import re
from collections.abc import Iterator

from fuzz.sequence import LANES, Branch, Loop, Sequence, Statement, Step

TYPES = {"h": "b16", "r": "b32", "d": "b64", "p": "pred"}
BLOCK = 128


def write(sequence: Sequence, name: str) -> str:
    """Return the text of the kernel `name`."""
    lines = [f".visible .entry {name}(.param .u64 in, .param .u64 out)\n{{"]
    for letter, kind in TYPES.items():
        count = sum(register[0] == letter for register in sequence.registers)
        lines.append(f".reg .{kind} %{letter}<{max(count, 1)}>;")
    lines += [".reg .b32 %i, %n, %t;\n.reg .b64 %in, %out;\n.reg .pred %q;"]
    lines += [f"mov.u32 %i, %ctaid.x;\nmov.u32 %t, %tid.x;\nmad.lo.u32 %i, %i, {BLOCK}, %t;"]
    for side in ("in", "out"):
        lines.append(f"ld.param.u64 %{side}, [{side}];\nmad.wide.u32 %{side}, %i, 8, %{side};")
    lines += _load(sequence)
    lines += _Writer(name).all(sequence.body)
    lines += _store(sequence)
    return "\n".join([*lines, "ret;\n}\n"])


def _load(sequence: Sequence) -> Iterator[str]:
    for place, (register, _) in enumerate(sequence.first):
        at = f"[%in+{8 * LANES * place}]"
        if register[0] == "p":
            yield f"ld.global.b32 %t, {at};\nsetp.ne.u32 %{register}, %t, 0;"
        else:
            yield f"ld.global.{TYPES[register[0]]} %{register}, {at};"


def _store(sequence: Sequence) -> Iterator[str]:
    for place, register in enumerate(sequence.registers):
        at = f"[%out+{8 * LANES * place}]"
        if register[0] == "p":
            yield f"selp.u32 %t, 1, 0, %{register};\nst.global.b32 {at}, %t;"
        else:
            yield f"st.global.{TYPES[register[0]]} {at}, %{register};"


class _Writer:
    def __init__(self, name: str) -> None:
        self._name = name
        self._labels = 0

    def _label(self) -> str:
        self._labels += 1
        return f"{self._name}_{self._labels}"

    def all(self, body: tuple[Statement, ...]) -> Iterator[str]:
        """Write statements in order."""
        for statement in body:
            match statement:
                case Step():
                    yield step_text(statement)
                case Branch():
                    yield from self._branch(statement)
                case Loop():
                    yield from self._loop(statement)

    def _branch(self, branch: Branch) -> Iterator[str]:
        otherwise, end = self._label(), self._label()
        yield f"@{contrary(branch.guard)} bra {otherwise};"
        yield from self.all(branch.body)
        if branch.other:
            yield f"bra {end};"
        yield f"{otherwise}:"
        yield from self.all(branch.other)
        yield f"{end}:"

    def _loop(self, loop: Loop) -> Iterator[str]:
        again = self._label()
        yield f"and.b32 %n, %{loop.times}, 3;\n{again}:"
        yield from self.all(loop.body)
        yield f"sub.u32 %n, %n, 1;\nsetp.ge.s32 %q, %n, 0;\n@%q bra {again};"


def contrary(guard: str) -> str:
    """Return the other half of a guard, as PTX writes it."""
    return f"%{guard[1:]}" if guard[0] == "!" else f"!%{guard}"


def step_text(step: Step) -> str:
    """Return one instruction (or a chain of them) with its registers."""
    chosen = {
        **{f"$d{k}": f"%{name}" for k, name in enumerate(step.results)},
        **{f"$s{k}": _operand(name) for k, name in enumerate(step.sources)},
    }
    text = re.sub(r"\$[ds]\d+", lambda found: chosen[found[0]], step.case.text.rstrip("; "))
    return f"{_at(step.guard)}{text};"


def _at(guard: str) -> str:
    name = guard.removeprefix("!")
    return f"@{'!' * (name != guard)}%{name} " if guard else ""


def _operand(name: str) -> str:
    return name if name[0].isdigit() else f"%{name}"
