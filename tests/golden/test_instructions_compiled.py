"""Which forms have machine code: all but those that `instructions_array.txt` lists."""

import re
from collections.abc import Iterator
from pathlib import Path

from ptx.ptx_case import Case, kernel_text, read_cases
from ptx.ptx_golden import read_golden
from ptx.ptx_run import HEADER

from cutrace.tracer.ptx.kernel import Kernel
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.simt.codegen.emit_kernel import write_kernel
from cutrace.tracer.simt.decode.control_flow import ending
from cutrace.tracer.simt.decode.load_module import load_module, symbols_of
from cutrace.tracer.simt.memory.memory import Memory
from cutrace.tracer.simt.warp.schedule import OTHER

HERE = Path(__file__).parent
COMPARED = HERE.parent / "validate" / "instructions"
LISTED = (HERE / "instructions_array.txt").read_text()


def cases() -> Iterator[Case]:
    """The cases of all tables, each of one instruction."""
    for path in (*sorted((HERE / "ptx").glob("*.txt")), *sorted(COMPARED.glob("*.txt"))):
        yield from read_cases(re.sub(r" \| .*", "", path.read_text()))


def kernels() -> Iterator[tuple[Kernel, dict[tuple[int, str], int]]]:
    """Those of all cases, tables and whole kernels, and where their variables lie."""
    for case in cases():
        yield link_kernel(parse_module(HEADER + kernel_text(case, "case")), "case"), {}
    for path in sorted((HERE / "ptx").glob("*/*.ptx")):
        module = parse_module(path.read_text())
        kernel = link_kernel(module, read_golden(path.read_text()).name)
        yield kernel, symbols_of(kernel, load_module(Memory(), module))


def not_compiled(kernel: Kernel, symbols: dict[tuple[int, str], int]) -> set[str]:
    """The mnemonics that have no machine code: the array engine runs them in its midst."""
    made = write_kernel(kernel, symbols, "kernel")
    ends = {b.last - 1 for b in kernel.blocks if ending(kernel, b) == OTHER}
    return {kernel.instructions[pc].mnemonic for pc in ends.union(made.escaped)}


def is_form(form: str, mnemonic: str) -> bool:
    """Whether an instruction has the opcode and the modifiers of a form."""
    opcode, *modifiers = form.split(".")
    found, *others = mnemonic.split(".")
    return opcode == found and set(modifiers) <= set(others)


def test_the_forms_without_machine_code_are_those_listed() -> None:
    found, count = set(), 0
    for kernel, symbols in kernels():
        found |= not_compiled(kernel, symbols)
        count += 1
    assert count > 2000
    lines = [line for line in LISTED.splitlines() if not line.startswith("#")]
    forms = [line.partition(": ")[0].lstrip("~") for line in lines]
    assert [m for m in sorted(found) if not any(is_form(form, m) for form in forms)] == []
    assert [form for form in forms if not any(is_form(form, m) for m in found)] == []
