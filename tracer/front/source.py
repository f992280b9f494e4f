"""What goes into a front end and what comes out: `to_ptx(source: Source, target: str) -> Compiled`.

A front end is a module of this folder with that one verb. `target` is a virtual architecture as
the compiler spells it, `compute_75`. A source that does not compile is a CutraceError.
"""

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import field

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.schema import Compiler

DEFAULT_TARGET = "compute_75"
"""What sources are compiled for when nobody says: the assembler still takes it back to sm_50."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asks of the compiler.

    `defines` are `NAME` or `NAME=VALUE`; `includes` folders as given; `std` is `c++17` or empty
    (the compiler's own choice); `name_expressions` name template instances (`scale<float, 4>`);
    `extra` goes to the compiler as it is.
    """

    defines: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    std: str = ""
    name_expressions: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The options in the compiler's spelling, without the template names."""
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

    A template instance is named with its arguments, `scale<float, 4>`. Where no source was at hand
    the parameters have no names, or (a C function in PTX) PTX types: `("u64", "scale_param_0")`.
    `max_threads` are those that its `__launch_bounds__` allow a block, 0 where it has none.
    """

    mangled: str
    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    max_threads: int = 0

    def __str__(self) -> str:
        """The C signature: `reverseArrayBlock(int *d_out, const int *d_in)`."""
        return f"{self.name}({', '.join(_declare(*each) for each in self.parameters)})"


@dataclass(frozen=True, slots=True)
class TextureReference:
    """`texture<uchar4, 2, cudaReadModeNormalizedFloat> name` at file scope, the old way.

    `symbol` is the 8-byte variable of the PTX into which a texture object's handle goes;
    `texel` is the C type; `kind` is 1, 2, 3, or one of CUDA's numbers for layered and cubemap;
    `read_mode` is `element` or `normalized_float`.
    """

    name: str
    symbol: str
    texel: str
    kind: int
    read_mode: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """PTX, and all that a session keeps of how it came about.

    `names` maps each name expression to its PTX name; `log` holds the compiler's warnings;
    `sources` maps the paths that PTX names in `.file` to their texts, where they are the user's.
    `assembly` are the options with which it is assembled, those that move registers. `missing`
    says which headers were not found, and left out.
    """

    ptx: str
    names: Mapping[str, str]
    compiler: Compiler
    log: str
    sources: Mapping[str, str]
    kernels: tuple[KernelSignature, ...]
    textures: tuple[TextureReference, ...] = ()
    assembly: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def decode_source(raw: bytes) -> str:
    r"""A source's text as compilers take it: UTF-8, else Latin-1, with UTF-8's mark or without.

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
    """Sort a compiler's command line, `["-DN=4", "-I", "inc", "-std=c++14"]`, into Options.

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
    """`-DN=4` -> `("-D", "N=4")`; what is neither define, include nor standard has kind `""`."""
    if word[:2] in ("-D", "-I"):
        return word[:2], word[2:]
    name, _, value = word.lstrip("-").partition("=")
    if word.startswith("-") and name in _LONG:
        return _LONG[name], value
    return "", word


def _declare(ctype: str, name: str) -> str:
    """A parameter as C declares it: `int *` and `a` make `int *a`, `float []` makes `float a[]`."""
    if not name:
        return ctype
    if "(*)" in ctype:
        return ctype.replace("(*)", f"(*{name})")
    if "[" in ctype:
        element, _, bounds = ctype.partition("[")
        return f"{element}{name}[{bounds}"
    return f"{ctype}{name}" if ctype.endswith(("*", "&")) else f"{ctype} {name}"
