"""What a random statement may name, and random expressions over it."""

from dataclasses import dataclass, field, replace

from fuzz.cuda.dice import Dice
from fuzz.cuda.form import FLOATS, FORMS, INTEGERS, LITERALS, TYPES, Form
from fuzz.cuda.tree import C_NAMES, Expr, Variable

MOST_SHARED = 45_000
"""Bytes of shared memory of a block."""


@dataclass
class Array:
    """An array that is read and written at `name[index & (size - 1)]`."""

    name: str
    type: str
    size: int


@dataclass
class Callee:
    """A device function that may be called: the types of its parameters, and its result's.

    The name may be a template of its own: an element of a table, chosen by a `u32`.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    cost: int


@dataclass
class Scope:
    """The names of one function, and where in it the next statement stands."""

    dice: Dice
    places: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in TYPES})
    """What can be assigned to, by type: variables, members, components."""
    small: list[str] = field(default_factory=list)
    """Integers that are never assigned, 0 to 300: thread numbers, loop counters."""
    arrays: list[Array] = field(default_factory=list)
    inputs: list[Array] = field(default_factory=list)
    callees: list[Callee] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    reach: str = "lane"
    """Whose threads all get here together: of a "cluster", a "block", a "warp", or of none."""
    clusters: int = 0
    """Blocks of a cluster, 0 where there are none."""
    forms: dict[str, list[Form]] = field(default_factory=dict)
    """Expressions that this function has beside those of all: samples of its textures."""
    in_kernel: bool = False
    loops: int = 0
    """Loops of this function around the statement, for `break` and `continue`."""
    cost: int = 1
    """How often the statement runs at most, by the bounds of the loops around it."""
    gives: str = ""
    """The type that a `return` needs here; "" where none is allowed, "void" for a kernel."""
    depth: int = 0
    counters: list[int] = field(default_factory=lambda: [0, 0])
    """Names given so far, and bytes of shared memory."""

    def inside(self, **changes: object) -> "Scope":
        """The scope of a block within this one; what is declared there stays there."""
        places = {name: list(held) for name, held in self.places.items()}
        changes = {"depth": self.depth + 1, **changes}
        return replace(self, places=places, **changes)  # type: ignore[arg-type]

    def fresh(self, letter: str) -> str:
        """A name that nobody else has in this function."""
        self.counters[0] += 1
        return f"{letter}{self.counters[0]}"

    def shared(self, type_: str, dimensions: str, size: int, align: int = 0) -> str | None:
        """A new array in shared memory, None where there is no room for its bytes."""
        if self.counters[1] + size > MOST_SHARED:
            return None
        self.counters[1] += size + 32
        name = self.fresh("sh")
        aligned = f"__align__({align}) " if align else ""
        text = f"__shared__ {aligned}{C_NAMES[type_]} {name}{dimensions};"
        self.variables.append(Variable(name, "", text))
        return name

    def expr(self, type_: str, depth: int | None = None) -> Expr:
        """A random expression of a type."""
        if depth is None:
            depth = self.dice.pick((0, 1, 1, 2, 2, 3, 3, 4))
        if depth == 0:
            return self._leaf(type_)
        kind = self.dice.below(100)
        if kind < 8:
            parts = (self.expr("b", depth - 1), self.expr(type_, depth - 1),
                     self.expr(type_, depth - 1))  # fmt: skip
            return Expr(type_, "({0} ? {1} : {2})", parts)
        if kind < 14 and self.arrays:
            return self._element(type_, self.arrays, depth - 1)
        if kind < 19 and self.inputs:
            return self._element(type_, self.inputs, depth - 1)
        if kind < 24:
            called = self._call(type_, depth - 1)
            if called:
                return called
        own = self.forms.get(type_)
        form, types = self.dice.pick(own if own and kind < 30 else FORMS[type_])
        return Expr(type_, form, tuple(self.expr(each, depth - 1) for each in types))

    def _leaf(self, type_: str) -> Expr:
        kind = self.dice.below(100)
        if self.places[type_] and kind < 65:
            return Expr(type_, self.dice.pick(self.places[type_]))
        if type_ in ("i32", "u32") and self.small and kind < 85:
            name = self.dice.pick(self.small)
            return Expr(type_, name if type_ == "i32" else f"(unsigned){name}")
        fitting = [name for name, its in self.parameters.items() if its == type_]
        if fitting and kind < 90:
            return Expr(type_, self.dice.pick(fitting))
        if type_ == "b":
            return self.expr("b", 1)
        others = [t for t in (*INTEGERS, *FLOATS) if self.places[t] and t != type_]
        if kind < 92 and others and type_ in (*INTEGERS, *FLOATS):
            return self._cast(type_, self.dice.pick(others))
        return Expr(type_, self.dice.pick(LITERALS[type_]))

    def _cast(self, type_: str, other: str) -> Expr:
        """A variable of another type; floats become integers with care."""
        inner = Expr(other, self.dice.pick(self.places[other]))
        if other in FLOATS and type_ in INTEGERS:
            form = "__float2int_rz({0})" if other == "f32" else "__double2int_rz(number({0}))"
            return Expr(type_, f"({C_NAMES[type_]}){form}", (inner,))
        return Expr(type_, f"({C_NAMES[type_]}){{0}}", (inner,))

    def _element(self, type_: str, arrays: list[Array], depth: int) -> Expr:
        fitting = [array for array in arrays if array.type == type_]
        array = self.dice.pick(fitting or arrays)
        index, inner = self.index(array, depth)
        found = Expr(array.type, f"{array.name}[{index}]", inner)
        if array.type == type_:
            return found
        if array.type in FLOATS and type_ in (*INTEGERS, "b"):
            what = "bits({0})" if type_ != "b" else "({0} > 0)"
            cast = "" if type_ == "b" else f"({C_NAMES[type_]})"
            return Expr(type_, cast + what, (found,))
        return Expr(type_, f"({C_NAMES[type_]}){{0}}", (found,))

    def index(self, array: Array, depth: int = 1) -> tuple[str, tuple[Expr, ...]]:
        """An index within an array, as a form and its parts."""
        most = array.size - 1
        kind = self.dice.below(10)
        if array.size > 1000 and self.small and kind < 4:
            return self.dice.pick(self.small), ()
        if kind < 6 and self.small:
            name, step = self.dice.pick(self.small), self.dice.pick((1, 1, 2, 3, 5, 8, 17, -1, -68))
            return f"({name} * {step} + {{0}}) & {most}", (Expr("u32", f"{self.dice.below(16)}u"),)
        if kind < 8:
            return f"{{0}} & {most}", (self.expr("u32", min(depth, 2)),)
        return f"{{0}} & {most}", (self.expr("i32", min(depth, 2)),)

    def _call(self, type_: str, depth: int) -> Expr | None:
        fitting = [c for c in self.callees if c.gives == type_ and c.cost * self.cost <= 600]
        if not fitting:
            return None
        return self.call(self.dice.pick(fitting), depth)

    def call(self, callee: Callee, depth: int) -> Expr:
        """A call of a function with random arguments."""
        first = callee.name.count("{")
        holes = ", ".join(f"{{{first + number}}}" for number in range(len(callee.takes)))
        types = (*("u32",) * first, *callee.takes)
        parts = tuple(self.expr(each, min(depth, 1)) for each in types)
        return Expr(callee.gives, f"{callee.name}({holes})", parts)
