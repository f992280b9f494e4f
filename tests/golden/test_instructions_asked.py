"""Every form of `instructions_asked.txt` has a case: golden, or compared with hardware."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cases.wgmma_kernel import HEAD, text_of
from ptx.ptx_case import expand, read_cases

from cutrace.tracer.ptx.kernel import CallTarget, Instruction, Operand, Special, Symbol, Vector
from cutrace.tracer.ptx.parse import parse_module

GOLDEN = Path(__file__).parent / "ptx"
COMPARED = Path(__file__).parents[1] / "validate" / "instructions"
ASKED = (Path(__file__).parent / "instructions_asked.txt").read_text()


def asked(text: str = ASKED) -> dict[str, list[str]]:
    """The forms of each family."""
    families: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        if line and not line.startswith("#"):
            family, _, forms = line.partition(": ")
            families[family] += [one for form in forms.split() for one in expand(form)]
    return families


@cache
def there() -> frozenset[str]:
    """All mnemonics, special registers and functions of the runtime that a case has."""
    seen: set[str] = set()
    for path in GOLDEN.glob("*/*.ptx"):
        for function in parse_module(path.read_text()).functions.values():
            for instruction in function.instructions:
                seen |= {instruction.mnemonic, *_names(instruction)}
    texts = [path.read_text() for path in GOLDEN.glob("*.txt")]
    texts += [path.read_text() for path in COMPARED.glob("*.txt")]
    for text in texts:
        plain = re.sub(r" \| .*", "", text)
        for case in read_cases(plain):
            seen.update(part.split()[0] for part in case.text.split(";") if part.strip())
    for name in np.load(COMPARED.parent / "wgmma.npz").files:
        entry = parse_module(HEAD + text_of(name)).functions[name]
        seen.update(instruction.mnemonic for instruction in entry.instructions)
    for form in np.load(COMPARED.parent / "sparse_products.npz")["forms"]:
        mnemonic = str(form).partition(" ")[0]
        seen |= {mnemonic, mnemonic.replace("::ordered_metadata", "")}
    return frozenset(seen)


def _names(instruction: Instruction) -> Iterator[str]:
    def names(operand: Operand) -> Iterator[str]:
        match operand:
            case Special(name):
                yield name
            case CallTarget(callee=Symbol(name)):
                yield name
            case Vector(elements):
                for element in elements:
                    yield from names(element)

    for operand in instruction.operands:
        yield from names(operand)


@cache
def by_opcode() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = defaultdict(list)
    for mnemonic in there():
        opcode, *modifiers = mnemonic.split(".")
        found[opcode].append(modifiers)
    return found


def has_case(form: str) -> bool:
    """Whether a case has these modifiers in this order; operators of orders may be apart."""
    if form.startswith(("%", "_", "vprintf")):
        return form in there()
    opcode, *modifiers = form.split(".")
    for others in by_opcode().get(opcode, ()):
        left = iter(others)
        if all(modifier in left for modifier in modifiers):
            return True
    return False


@pytest.mark.parametrize("family", sorted(asked()))
def test_every_form_that_is_asked_for_has_a_case(family: str) -> None:
    forms = asked()[family]
    assert [form for form in forms if not has_case(form)] == []
    assert forms


def test_a_form_that_no_case_has_is_missed() -> None:
    assert not has_case("add.u33")
    assert not has_case("mul.u32.lo")
    assert has_case("mul.lo.u32")
