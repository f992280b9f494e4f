"""What to type when a source says no launch: its kernels, and a launch line that would fit one."""

from ..front.source import KernelSignature
from .listing import example_name

_TYPES = {
    **{"char": "i8", "signed char": "i8", "unsigned char": "u8", "bool": "u8"},
    **{"short": "i16", "unsigned short": "u16", "int": "i32", "unsigned int": "u32"},
    **{"unsigned": "u32", "long long": "i64", "unsigned long long": "u64", "size_t": "u64"},
    **{"__half": "f16", "half": "f16", "float": "f32", "double": "f64"},
}
_COUNT = 1024


def explain_launches(source: str, kernels: tuple[KernelSignature, ...]) -> str:
    """The message for a source without a launch line: kernels, where to say it, an example."""
    if not kernels:
        return f"{source} has no kernel: expected a __global__ function"
    listed = "".join(f"\n  {each}" for each in kernels)
    plain = [each for each in kernels if not _takes_texture(each)]
    if not plain:
        return (
            f"{source} does not say which kernel to launch. Its kernels:{listed}\n"
            "A kernel that takes textures is launched from a Python script, which makes them with "
            "gpu.texture(...):\n  cutrace gallery texture shows some"
        )
    return (
        f"{source} does not say which kernel to launch. Its kernels:{listed}\n"
        f"Write a launch into a comment of the source (// cutrace: ...) or on the command line:\n"
        f'  cutrace record {source} --launch "{example_line(plain[0])}"'
    )


def _takes_texture(kernel: KernelSignature) -> bool:
    return any("cudaTextureObject_t" in c_type for c_type, _ in kernel.parameters)


def example_line(kernel: KernelSignature) -> str:
    """A launch of 1024 threads: arrays of 1024 elements, inputs counting from 0."""
    arguments = (
        _argument(number, c_type, name)
        for number, (c_type, name) in enumerate(kernel.parameters, 1)
    )
    return f"{example_name(kernel)}<<<4, 256>>>({', '.join(arguments)})"


def _argument(number: int, c_type: str, name: str) -> str:
    if "*" not in c_type:
        is_float = _TYPES.get(_base(c_type), "").startswith("f")
        return "1.0" if is_float else str(_COUNT)
    initial = "=arange" if "const" in c_type else ""
    return f"{name or f'p{number}'}:{_TYPES.get(_base(c_type), 'f32')}[{_COUNT}]{initial}"


def _base(c_type: str) -> str:
    qualifiers = ("const", "volatile", "__restrict__")
    words = c_type.replace("*", " ").split()
    return " ".join(word for word in words if word not in qualifiers)
