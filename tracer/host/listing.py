"""Kernels as messages list them: those compiled, and templates without an instance."""

import re

from ...errors import nearest
from ..front.source import Compiled, KernelSignature
from ..front.syntax.syntax import written_kernels


def list_written(text: str) -> tuple[KernelSignature, ...]:
    """The kernels of CUDA C++ as written, uncompiled; a template is `scale<T, N>(T *data)`."""
    return tuple(
        KernelSignature("", _written_name(each.name, each.template), each.parameters)
        for each in written_kernels(text)
    )


def _written_name(name: str, template: tuple[str, ...] | None) -> str:
    return name if template is None else f"{name}<{', '.join(template)}>"


def list_templates(compiled: Compiled) -> tuple[KernelSignature, ...]:
    """The templates of which the compiler made no instance."""
    instances = {base_name(kernel.name) for kernel in compiled.kernels}
    written = (kernel for text in compiled.sources.values() for kernel in list_written(text))
    return tuple(w for w in written if "<" in w.name and base_name(w.name) not in instances)


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


def is_launchable(name: str, kernels: tuple[KernelSignature, ...]) -> bool:
    """Whether some kernel, as written, has that name, with arguments if it is a template."""
    return any(
        base_name(kernel.name) == base_name(name) and ("<" in kernel.name) == ("<" in name)
        for kernel in kernels
    )


def explain_missing(source: str, name: str, kernels: tuple[KernelSignature, ...]) -> str:
    """The message for a kernel that is not there: the nearest names, and all with signatures."""
    templates = [each for each in kernels if "<" in each.name and not each.mangled]
    wanted = [each for each in templates if base_name(each.name) == name]
    if wanted:
        reason = f"; it is a template, to be launched as an instance: {example_name(wanted[0])}"
    else:
        reason = nearest(name, [each.name for each in kernels])
    listed = "".join(f"\n  {each}" for each in kernels) or " none"
    place = source or "a module from memory"
    return f"{place} has no kernel `{name}`{reason}; its kernels:{listed}"
