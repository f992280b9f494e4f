"""Input and output of a front end: `to_ptx(source: Source, target: str) -> Compiled`.

A front end is a module of this folder with that function. `target` is a virtual architecture in the
compiler's spelling, `compute_75`. A source that does not compile raises a CutraceError.
"""

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import field

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.schema import Compiler

DEFAULT_TARGET = "compute_75"
"""Default target; the assembler still accepts it for architectures down to sm_50."""


@dataclass(frozen=True, slots=True)
class Options:
    """Compiler options of the user.

    `defines` are `NAME` or `NAME=VALUE`; `includes` are folders as given; `std` is `c++17` or empty
    (the compiler's default); `name_expressions` name template instances (`scale<float, 4>`);
    `extra` is passed to the compiler unchanged.
    """

    defines: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    std: str = ""
    name_expressions: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Return the options in the compiler's spelling, without the name expressions."""
        std = (f"--std={self.std}",) if self.std else ()
        defines = (f"-D{define}" for define in self.defines)
        includes = (f"-I{folder}" for folder in self.includes)
        return (*defines, *includes, *std, *self.extra)


@dataclass(frozen=True, slots=True)
class Source:
    """A program: `name` is its path as the user gave it, or any name for text from memory."""

    name: str
    text: str
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """A kernel: its PTX name, its name in the source, and (C type, name) for each parameter.

    The name of a template instance includes its arguments, `scale<float, 4>`. Without a source the
    parameters have no names, or (a C function in PTX) PTX types: `("u64", "scale_param_0")`.
    `max_threads` is the block size limit of `__launch_bounds__`, 0 if it has none.
    """

    mangled: str
    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    max_threads: int = 0

    def __str__(self) -> str:
        """Return the C signature: `reverseArrayBlock(int *d_out, const int *d_in)`."""
        return f"{self.name}({', '.join(_declare(*each) for each in self.parameters)})"


@dataclass(frozen=True, slots=True)
class TextureReference:
    """A legacy file-scope `texture<uchar4, 2, cudaReadModeNormalizedFloat> name`.

    `symbol` is the 8-byte PTX variable that holds the texture object's handle; `texel` is the C
    type; `kind` is 1, 2, 3, or one of CUDA's numbers for layered and cubemap; `read_mode` is
    `element` or `normalized_float`.
    """

    name: str
    symbol: str
    texel: str
    kind: int
    read_mode: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """PTX, and the facts of its compilation that a session keeps.

    `names` maps each name expression to its PTX name; `log` holds the compiler's warnings;
    `sources` maps the paths in PTX's `.file` to their texts, for the user's files. `assembly` are
    the assembler options that change register counts. `cubin` is machine code that runs, and `ptx`
    then what declares its kernels and variables; `file` is where it comes from.
    """

    ptx: str
    names: Mapping[str, str]
    compiler: Compiler
    log: str
    sources: Mapping[str, str]
    kernels: tuple[KernelSignature, ...]
    textures: tuple[TextureReference, ...] = ()
    assembly: tuple[str, ...] = ()
    cubin: bytes = b""
    file: str = ""


def decode_source(raw: bytes) -> str:
    r"""Decode a source as compilers do: UTF-8, else Latin-1, with or without a byte order mark.

    >>> decode_source(b"\xef\xbb\xbfint x;"), decode_source(b"\xef\xbb\xbf// caf\xe9")
    ('int x;', '// café')
    """
    raw = raw.removeprefix(codecs.BOM_UTF8)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


_LONG = {"define-macro": "-D", "include-path": "-I", "std": "-std"}


def read_options(words: Sequence[str], name_expressions: Sequence[str] = ()) -> Options:
    """Parse a compiler's command line, `["-DN=4", "-I", "inc", "-std=c++14"]`, into Options.

    >>> read_options(["-DN=4", "-I", "inc", "--std=c++14", "-use_fast_math"]).words
    ('-DN=4', '-Iinc', '--std=c++14', '-use_fast_math')
    """
    for option_list, what in ((words, "-DN=4"), (name_expressions, "scale<float, 4>")):
        if isinstance(option_list, str):
            raise CutraceError(
                f'expected a list such as ["{what}"], got the string {option_list!r}'
            )
    values_by_flag: dict[str, list[str]] = {"-D": [], "-I": [], "-std": [], "": []}
    word_iterator = iter(words)
    for word in word_iterator:
        kind, value = _split_option(word)
        if kind and not value:
            value = next(word_iterator, "")
            if not value:
                raise CutraceError(f"option {word}: a value was expected after it, as in {word} X")
        values_by_flag[kind].append(value)
    return Options(
        defines=tuple(values_by_flag["-D"]),
        includes=tuple(values_by_flag["-I"]),
        std=values_by_flag["-std"][-1] if values_by_flag["-std"] else "",
        name_expressions=tuple(name_expressions),
        extra=tuple(values_by_flag[""]),
    )


def _split_option(word: str) -> tuple[str, str]:
    """Split `-DN=4` into `("-D", "N=4")`; all but define, include, standard have kind `""`."""
    if word[:2] in ("-D", "-I"):
        return word[:2], word[2:]
    name, _, value = word.lstrip("-").partition("=")
    if word.startswith("-") and name in _LONG:
        return _LONG[name], value
    return "", word


def _declare(ctype: str, name: str) -> str:
    """Return a parameter as C declares it: `int *a`, or `float a[]` for the type `float []`."""
    if not name:
        return ctype
    if "(*)" in ctype:
        return ctype.replace("(*)", f"(*{name})")
    if "[" in ctype:
        element, _, bounds = ctype.partition("[")
        return f"{element}{name}[{bounds}"
    return f"{ctype}{name}" if ctype.endswith(("*", "&")) else f"{ctype} {name}"
