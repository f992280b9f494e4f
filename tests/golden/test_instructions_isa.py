"""Every instruction of the ISA that sm_90a, sm_100a or sm_120a has runs, or is refused by its name.

ptxas says which forms of `instructions_isa.txt` a target has; the decoder says what cutrace runs.
"""

import re

import pytest
from ptx.isa_forms import HEAD, LINES, TARGETS, Heading, headings, kernel, module

from cutrace.base.errors import CutraceError
from cutrace.tracer.front.resources import assemble, assemblers
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.simt.decode.load_module import load_module
from cutrace.tracer.simt.decode.ptx_program import PtxProgram
from cutrace.tracer.simt.interp.decode import left_out, require_decodable
from cutrace.tracer.simt.kernel.launch import Launch
from cutrace.tracer.simt.kernel.run_options import RunOptions
from cutrace.tracer.simt.memory.memory import Memory

ALL = headings()
MOST_REFUSED = {"sm_90a": 0.01, "sm_100a": 0.03, "sm_120a": 0.03}


def illegal(forms: list[str], target: str) -> set[str]:
    """The forms that ptxas does not accept for a target."""
    refused: set[str] = set()
    while True:
        left = [form for form in forms if form not in refused]
        assembled = assemble(module(left, target), target, "-O0")
        if assembled.cubin is not None:
            return refused
        first = HEAD.count("\n") + 1
        lines = re.findall(r"line (\d+); +(?:fatal|error)", assembled.report)
        assert lines, assembled.report
        refused |= {left[(int(line) - first) // LINES] for line in lines}


@pytest.mark.skipif(not assemblers(), reason="no ptxas is installed")
@pytest.mark.parametrize("target", TARGETS)
def test_each_form_is_legal_for_its_targets_alone(target: str) -> None:
    refused = illegal([form for heading in ALL for form in heading.forms], target)
    wanted = {f for heading in ALL if target not in heading.targets for f in heading.forms}
    assert refused - wanted == set()
    assert wanted - refused == set()


def refusal(form: str) -> str:
    """Why cutrace does not run a form; empty if it does."""
    try:
        parsed = parse_module(HEAD.format(target="sm_100a") + kernel(form))
        memory = Memory()
        loaded = load_module(memory, parsed)
        launch = Launch((1, 1, 1), (128, 1, 1), 4096, (bytes(8),), print, options=RunOptions())
        require_decodable(PtxProgram(link_kernel(parsed, "k0"), launch, memory, loaded))
    except CutraceError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("heading", ALL, ids=lambda heading: f"{heading.section}-{heading.name}")
def test_an_instruction_of_the_isa_runs_or_is_refused_by_its_name(heading: Heading) -> None:
    for form in heading.forms:
        why = refusal(form)
        is_left_out = is_refused(form)
        assert ("cutrace leaves out" in why) == is_left_out, why
        assert bool(why) == is_left_out, why


def is_refused(form: str) -> bool:
    """Whether a form is left out by its name."""
    parsed = parse_module(HEAD.format(target="sm_100a") + kernel(form))
    return any(map(left_out, parsed.functions["k0"].instructions))


@pytest.mark.parametrize("target", TARGETS)
def test_few_instructions_are_refused(target: str) -> None:
    mine = [heading for heading in ALL if target in heading.targets]
    refused = [heading.name for heading in mine if any(map(is_refused, heading.forms))]
    assert len(mine) > 190
    assert len(refused) / len(mine) <= MOST_REFUSED[target], refused
