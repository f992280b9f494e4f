"""Which forms the compiled engine takes: all but those that `instructions_array.txt` lists."""

import re
from collections.abc import Iterator
from pathlib import Path

from ptx_case import Case, kernel_text, read_cases
from ptx_run import HEADER

from cutrace.tracer.engine.compiled.code import ending
from cutrace.tracer.engine.compiled.kernel_text import write_kernel
from cutrace.tracer.ptx.kernel import Kernel
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module

HERE = Path(__file__).parent
COMPARED = HERE.parent / "validate" / "instructions"
LISTED = (HERE / "instructions_array.txt").read_text()


def cases() -> Iterator[Case]:
    """The cases of all tables, each of one instruction."""
    for path in (*sorted((HERE / "ptx").glob("*.txt")), *sorted(COMPARED.glob("*.txt"))):
        yield from read_cases(re.sub(r" \| .*", "", path.read_text()))


def refused(kernel: Kernel) -> str:
    """The mnemonic of the first instruction that has no compiled form, "" without one: the array
    engine runs it in the midst of machine code."""
    made = write_kernel(kernel, {}, "kernel", lambda b: ending(kernel, b) != "")
    return kernel.instructions[min(made.escaped)].mnemonic if made.escaped else ""


def test_the_forms_that_the_compiled_engine_refuses_are_those_listed() -> None:
    found, count = set(), 0
    for case in cases():
        text = HEADER + kernel_text(case, "case")
        found.add(refused(link_kernel(parse_module(text), "case")))
        count += 1
    assert count > 2000
    listed = {line for line in LISTED.splitlines() if not line.startswith("#")}
    assert sorted(found - {""}) == sorted(listed)
