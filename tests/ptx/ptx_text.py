"""PTX texts written by hand around a few lines of interest."""

from cutrace.tracer.ptx.kernel import Function, Instruction, Kernel, Module
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = """
.reg .pred %p<8>;
.reg .b16 %h<8>;
.reg .b32 %r<32>;
.reg .b64 %rd<16>;
.reg .f32 %f<16>;
.reg .f64 %fd<8>;
"""


def module_of(text: str) -> Module:
    """Parse what stands outside of functions, after the three first directives."""
    return parse_module(HEAD + text)


def module_around(body: str, outside: str = "") -> Module:
    """Parse an entry `k(a, n)` with usual registers around `body`."""
    parameters = "(.param .u64 a, .param .u32 n)"
    return module_of(f"{outside}\n.visible .entry k{parameters}\n{{{REGISTERS}{body}\n}}\n")


def function_around(body: str, outside: str = "") -> Function:
    """Parse `body` and return the entry that holds it."""
    return module_around(body, outside).functions["k"]


def instruction(text: str, outside: str = "") -> Instruction:
    """Parse one instruction."""
    return function_around(text, outside).instructions[0]


def kernel_around(body: str, outside: str = "") -> Kernel:
    """Parse and link an entry around `body`."""
    return link_kernel(module_around(body, outside), "k")
