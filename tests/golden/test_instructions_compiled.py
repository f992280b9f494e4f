"""Which forms have machine code: all but those that `instructions_array.txt` lists."""

import re
from collections.abc import Iterator
from pathlib import Path

from ptx.ptx_case import Case, bare_kernel_text, read_cases
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
ENDS = re.compile(r"\b(bra|brx|call|exit|ret|trap)\b")
LISTED = (HERE / "instructions_array.txt").read_text()


def cases() -> Iterator[Case]:
    """The cases of all tables, each of one instruction."""
    for path in (*sorted((HERE / "ptx").glob("*.txt")), *sorted(COMPARED.glob("*.txt"))):
        yield from read_cases(re.sub(r" \| .*", "", path.read_text()))


def batched(some: list[Case]) -> Iterator[list[Case]]:
    """Sixteen cases at a time, but what may leave the kernel alone."""
    ends = [case for case in some if ENDS.search(case.text)]
    yield from ([case] for case in ends)
    others = [case for case in some if not ENDS.search(case.text)]
    yield from (others[k : k + 16] for k in range(0, len(others), 16))


def kernels() -> Iterator[tuple[Kernel, dict[tuple[int, str], int]]]:
    """Those of all cases, of tables together, and whole ones; where their variables lie."""
    for some in batched([*cases()]):
        yield link_kernel(parse_module(HEADER + bare_kernel_text(some, "case")), "case"), {}
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
    assert sum(1 for _ in cases()) > 2000
    found = set[str]().union(*(not_compiled(*each) for each in kernels()))
    lines = [line for line in LISTED.splitlines() if not line.startswith("#")]
    forms = [line.partition(": ")[0].lstrip("~") for line in lines]
    assert [m for m in sorted(found) if not any(is_form(form, m) for form in forms)] == []
    assert [form for form in forms if not any(is_form(form, m) for m in found)] == []
