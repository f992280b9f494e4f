"""Kernels as messages list them: those compiled, and templates without an instance."""

import re

from ...errors import nearest
from ..front.source import Compiled, KernelSignature
from ..front.syntax import written_kernels


def list_templates(compiled: Compiled) -> tuple[KernelSignature, ...]:
    """The templates of which the compiler made no instance, as `scale<T, N>(T *data)`."""
    instances = {base_name(kernel.name) for kernel in compiled.kernels}
    written = (kernel for text in compiled.sources.values() for kernel in written_kernels(text))
    return tuple(
        KernelSignature("", f"{each.name}<{', '.join(each.template)}>", each.parameters)
        for each in written
        if each.template is not None and each.name not in instances
    )


def base_name(kernel: str) -> str:
    """A kernel's name without template arguments."""
    return kernel.partition("<")[0].strip()


def example_name(kernel: KernelSignature) -> str:
    """What to launch: `scale<float, 16>` for a template; a parameter that is a type is float."""
    base, is_template, parameters = kernel.name.partition("<")
    if not is_template or kernel.mangled:
        return kernel.name
    words = set(re.findall(r"\w+", " ".join(c_type for c_type, _ in kernel.parameters)))
    names = re.findall(r"\w+", parameters)
    return f"{base}<{', '.join('float' if name in words else '16' for name in names)}>"


def explain_missing(
    source: str,
    name: str,
    kernels: tuple[KernelSignature, ...],
    templates: tuple[KernelSignature, ...],
) -> str:
    """The message for a kernel that is not there: the nearest names, and all with signatures."""
    everything = (*kernels, *templates)
    wanted = [each for each in templates if base_name(each.name) == base_name(name)]
    if wanted:
        reason = f"; it is a template, to be launched as an instance: {example_name(wanted[0])}"
    else:
        reason = nearest(name, [each.name for each in everything])
    listed = "".join(f"\n  {each}" for each in everything) or " none"
    return f"{source} has no kernel `{name}`{reason}; its kernels:{listed}"
