"""Strategies of hypothesis that write kernels."""

from collections.abc import Callable
from typing import Any

from fuzz.instruction import FORMS, WIDTHS, Form
from fuzz.syntax import (
    COUNTS,
    Alone,
    Branch,
    Call,
    Compute,
    Exchange,
    Function,
    Graph,
    Leave,
    Local,
    Loop,
    Operand,
    Program,
    Shuffle,
    Statement,
    Switch,
    Together,
    Uniformly,
    Update,
    Vote,
)
from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]

IN_FUNCTIONS = "rp"
"""Letters of the registers that functions have."""

_FLOAT_BITS = {
    "f": (0, 0x80000000, 0x3F800000, 0xBFC00000, 0x7F800000, 0x7FC00000, 1, 0x7F7FFFFF),
    "g": (0, 1 << 63, 0x3FF0000000000000, 0xBFF8000000000000, 0x7FF0000000000000, 1),
}
_WORDS = (0, 1, 2, 3, 7, 16, 31, 32, 33, 63, 64, 255)


def registers(letter: str) -> st.SearchStrategy[str]:
    """A register of a letter."""
    return st.integers(0, COUNTS[letter] - 1).map(lambda number: f"{letter}{number}")


def guards() -> st.SearchStrategy[str]:
    """A predicate or its contrary."""
    return st.tuples(st.sampled_from(["", "!"]), registers("p")).map("".join)


def maybe_guards() -> st.SearchStrategy[str]:
    """Mostly none."""
    return st.one_of(st.just(""), st.just(""), guards())


def operands(letter: str) -> st.SearchStrategy[Operand]:
    """A register, or now and then a number."""
    if letter == "p":
        return registers("p")
    values = _FLOAT_BITS.get(letter) or tuple(
        value for value in (*_WORDS, (1 << WIDTHS[letter]) - 1, 1 << WIDTHS[letter] - 1)
        if value < 1 << WIDTHS[letter]
    )  # fmt: skip
    return st.one_of(registers(letter), registers(letter), st.sampled_from(values))


@st.composite
def computations(draw: Draw, forms: tuple[Form, ...]) -> Compute:
    """One instruction."""
    form = draw(st.sampled_from(forms))
    sources = [draw(operands(letter)) for letter in form.sources]
    if sources and isinstance(sources[0], int):  # an instruction of numbers alone says little
        sources[0] = draw(registers(form.sources[0]))
    return Compute(form, draw(registers(form.result)), tuple(sources), draw(maybe_guards()))


SMALL = tuple(
    form for form in FORMS
    if {form.result, *form.sources} <= set(IN_FUNCTIONS)
)  # fmt: skip


@st.composite
def statements(draw: Draw, depth: int, functions: int, small: bool = False) -> Statement:
    """Anything that a thread does; deeper ones hold others while `depth` lasts."""
    kinds = ["compute"] * 5
    if not small:
        kinds += ["local", "update"]
    if functions:
        kinds += ["call"]
    if depth:
        kinds += ["branch", "branch", "loop", "switch", "graph"]
    kind = draw(st.sampled_from(kinds))
    inner = bodies(depth - 1, functions, small) if depth else st.just(())
    made: Statement
    match kind:
        case "local":
            made = Local(*draw(st.tuples(registers("r"), registers("r"), st.booleans(),
                                         maybe_guards())))  # fmt: skip
        case "update":
            made = Update(*draw(st.tuples(registers("r"), registers("r"), maybe_guards())))
        case "call":
            sources = draw(st.tuples(registers("r"), registers("r")))
            function = draw(st.integers(0, functions - 1))
            made = Call(function, draw(registers("r")), sources, draw(maybe_guards()))
        case "branch":
            made = Branch(draw(guards()), draw(inner), draw(st.one_of(st.just(()), inner)))
        case "loop":
            made = Loop(draw(registers("r")), draw(st.integers(1, 3)), draw(inner),
                        draw(maybe_guards()), draw(st.booleans()))  # fmt: skip
        case "switch":
            count = draw(st.sampled_from([2, 4]))
            made = Switch(draw(registers("r")), tuple(draw(inner) for _ in range(count)),
                          draw(st.booleans()))  # fmt: skip
        case "graph":
            made = draw(graphs(functions, small))
        case _:
            made = draw(computations(SMALL if small else FORMS))
    return made


@st.composite
def graphs(draw: Draw, functions: int, small: bool) -> Graph:
    """Blocks that branch to any other, so that loops may have several entries."""
    count = draw(st.integers(2, 5))
    number = st.integers(0, count - 1)
    plain = st.lists(computations(SMALL if small else FORMS), max_size=2).map(tuple)
    blocks = tuple((draw(plain), draw(guards()), draw(number), draw(number)) for _ in range(count))
    return Graph(draw(st.integers(1, 12)), blocks)


def bodies(
    depth: int, functions: int, small: bool = False, most: int = 4
) -> st.SearchStrategy[tuple[Statement, ...]]:
    """Some statements one after the other."""
    return st.lists(statements(depth, functions, small), min_size=1, max_size=most).map(tuple)


@st.composite
def meetings(draw: Draw, depth: int, functions: int, whole_warps: bool) -> Together:
    """Anything that a block does together."""
    kinds = ["alone", "alone", "exchange"]
    kinds += ["shuffle", "vote"] if whole_warps else []
    kinds += ["uniformly"] if depth else []
    made: Together
    match draw(st.sampled_from(kinds)):
        case "exchange":
            made = Exchange(
                draw(registers("r")), draw(registers("r")), draw(registers("r")),
                draw(st.sampled_from([1, 3, 5])), draw(st.sampled_from([0, 0, 1, 15])),
            )  # fmt: skip
        case "shuffle":
            step = st.one_of(registers("r"), st.sampled_from([0, 1, 2, 7, 16, 31]))
            made = Shuffle(
                draw(st.sampled_from(["up", "down", "bfly", "idx"])), draw(registers("r")),
                draw(st.one_of(st.just("_"), registers("p"))), draw(registers("r")), draw(step),
                draw(st.sampled_from([32, 32, 16, 8, 2])),
            )  # fmt: skip
        case "vote":
            kind = draw(st.sampled_from([*VOTES]))
            result, source = VOTES[kind]
            made = Vote(kind, draw(registers(result)), draw(registers(source)))
        case "uniformly":
            inner = st.lists(meetings(depth - 1, functions, whole_warps), min_size=1, max_size=3)
            made = Uniformly(tuple(draw(inner)), draw(st.integers(1, 3)), draw(st.booleans()))
        case _:
            made = Alone(draw(bodies(2, functions)))
    return made


VOTES = {
    **{"all": ("p", "p"), "any": ("p", "p"), "uni": ("p", "p"), "ballot": ("r", "p")},
    **{"active": ("r", "p"), "match": ("r", "r"), "bar.popc": ("r", "p"), "bar.and": ("p", "p")},
    **{f"redux.{name}": ("r", "r") for name in ("add", "min", "max", "and", "or", "xor")},
}
"""What lanes do together by kind: the letters of result and source."""


@st.composite
def programs(draw: Draw) -> Program:
    """A kernel with its launch."""
    count = draw(st.integers(0, 2))
    functions = tuple(
        Function(draw(bodies(1, k, small=True, most=3)), draw(st.booleans())) for k in range(count)
    )
    threads = draw(st.sampled_from([32, 64, 96, 1, 20, 45]))
    whole = threads % 32 == 0
    body = draw(st.lists(meetings(1, count, whole), min_size=1, max_size=4))
    tail = [Leave(draw(guards())), *draw(bodies(1, count))] if draw(st.booleans()) else []
    return Program(
        tuple(body),
        functions,
        draw(st.integers(1, 3)),
        threads,
        draw(st.sampled_from(["add", "min", "max", "and", "or", "xor"])),
        draw(st.integers(0, 1 << 16)),
        tuple(tail),
    )
