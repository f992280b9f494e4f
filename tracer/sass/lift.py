"""Lift machine code to operations of the engine: each instruction becomes a few of PTX.

The engine then runs them as it runs PTX, in both of its ways; an instruction of the machine stays
one row of the instruction table (`rows` of ptx/kernel.py). Registers R0 to R254 and uniform ones
are 32-bit registers of the same names, P0 to P6 and UP0 to UP7 predicates. What only its control
bits say (stalls, scoreboards) needs nothing here: operations have their results at once.

    IADD3 R6, P0, R1, c[0x0][0x20], RZ     cvt.u64.u32 %d0, %R1;
                                           cvt.u64.u32 %d1, 0x2000000;
                                           add.u64 %d0, %d0, %d1;
                                           cvt.u32.u64 %R6, %d0;
                                           setp.ge.u64 %P0, %d0, 0x100000000;

Control is explicit in machine code, too. A divergent branch reconverges behind the BSYNC of the
innermost barrier that a BSSY has set; BRA.CONV and BRA.DIV, which test for a converged warp, make
it converge. A return goes to the instruction behind one of the calls of its subroutine.

An unknown opcode, modifier or operand is refused by name.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.machine_schedule import CODE_BYTES
from ..ptx.kernel import Variable
from .constant import CONSTANT, RESERVED, SINCE_RESERVED, ConstantBanks
from .cubin import HALF, Code, Instruction, plain
from .flow import Flow, label_of, trap_of
from .operand import Operand, registers

COPIER = "__cuda_syscall_cp_async_bulk_unicast"
"""The driver's function that copies to the memory of another block of a cluster, on 12.0."""

_REGISTER = re.compile(r"(U?R)(Z|\d+)((?:\.\w+)*)")
_PREDICATE = re.compile(r"(U?P)(T|\d)")
_ADDRESS = re.compile(r"(?:desc\[UR\d+\])?\[(.*)\]")
_INTEGER = re.compile(r"-?(0x[0-9a-f]+|\d+)")

_SYSTEM = ("UTC", "UVIRTCOUNT")
"""Instructions of tensor memory, whose code uses the shared memory of the system."""

_CLUSTERED = ("UCGABAR", "STAS", "REDAS", "UBLKCP.S.S", "UBLKRED.S.S")

_ACCESSES = (
    "LDG",
    "LDS",
    "LDL",
    "LD.",
    "ST",
    "ATOM",
    "RED",
    "TEX",
    "TLD",
    "BAR",
    "CALL",
    "WARPSYNC",
)
_UNCOUNTED = ("mov", "nanosleep", "vote", "shfl", "match", "redux", "ld", "isspacep", "bar",
              "mbarrier", "cp")  # fmt: skip


@dataclass(frozen=True)
class Lifted:
    """The text of a kernel of PTX, and its lines' instruction of the machine."""

    text: str
    lines: Mapping[int, Instruction]
    frame: int
    reserved: int
    flow: Flow


class Lifter:
    """Lifts one function; `handlers` are functions that lift an opcode, by its name."""

    def __init__(
        self, code: Code, parameters: Sequence[Variable], is_clustered: bool = False
    ) -> None:
        self.code = code
        self.now = code.instructions[0]
        self.opcode = ""
        self.modifiers: list[str] = []
        self.operands: list[Operand] = []
        self.lines: list[tuple[str, Instruction | None]] = []
        self._temporaries = {"r": 0, "d": 0, "p": 0, "h": 0, "q": 0}
        self._registers: set[str] = set()
        self._guard = self._own_guard = ""
        self._banks = ConstantBanks(self, parameters)
        self.keeps_reserved = any(each.opcode.startswith(_SYSTEM) for each in code.instructions)
        """Whether the code reads and writes what is reserved for the system: it allocates tensor
        memory."""
        is_displaced = code.capability >= SINCE_RESERVED and not self.keeps_reserved
        self.displacement = -RESERVED if is_displaced else 0
        self.is_clustered = (
            is_clustered
            or any(
                each.opcode.startswith(_CLUSTERED) or "MULTICAST" in each.opcode
                for each in code.instructions
            )
            or any(each.name == COPIER for each in code.pointers.values())
        )
        """Whether addresses of shared memory may be those of other blocks."""
        self.has_mbarriers = any(each.opcode.startswith("SYNCS") for each in code.instructions)

    # Text

    def emit(self, operation: str, *operands: str, guarded: bool | None = None) -> None:
        """Add an operation; one that writes a temporary needs no guard."""
        if guarded is None:
            guarded = not operands or operands[0][:2] != "%t"
        guard = self._guard if guarded else ""
        for name in re.findall(r"%U?[RP]\d+", " ".join(operands)):
            self._registers.add(name)
        self.lines.append((f"{guard}{operation} {', '.join(operands)};", self.now))

    def label(self, text: str) -> None:
        """Add a label."""
        self.lines.append((f"{text}:", None))

    def new(self, kind: str = "r") -> str:
        """Return a new temporary: `r` 32 bits, `d` 64, `h` 16, `p` a predicate."""
        self._temporaries[kind] += 1
        return f"%t{kind}{self._temporaries[kind]}"

    def refuse(self, why: str) -> CutraceError:
        """Return the error for the present instruction."""
        return self.code.refuse(self.now, why)

    def refuse_if(self, is_unknown: object) -> None:
        """Refuse the present instruction if its form is unknown."""
        if is_unknown:
            raise self.refuse("cutrace does not know this form")

    def begin(self, instruction: Instruction) -> None:
        """Read the operands of an instruction."""
        self.now = instruction
        self.opcode, *self.modifiers = instruction.opcode.split(".")
        self.operands = [self._operand(text) for text in instruction.operands]
        self._guard = ""
        guard = instruction.guard
        if guard.lstrip("!") not in ("", "PT", "UPT"):
            name = f"%{guard.lstrip('!')}"
            self._registers.add(name)
            if any(o.kind == "P" and f"%{o.text}" == name for o in self.operands[:3]):
                copy = self.new("p")
                self.lines.append((f"mov.pred {copy}, {name};", instruction))
                name = copy
            self._guard = f"@{'!' * guard.startswith('!')}{name} "
        self._own_guard = self._guard

    @property
    def guard(self) -> str:
        """The predicate of the instruction: `%P0`, `!%P0` or empty."""
        return self._guard[1:].strip()

    def set_guard(self, predicate: str) -> None:
        """Let what follows of an instruction run where a predicate holds."""
        self._guard = f"@{predicate} " if predicate else ""

    def take(self, *names: str) -> list[str]:
        """Remove these modifiers; return those that were there."""
        matches = [m for m in self.modifiers if m in names]
        self.modifiers = [m for m in self.modifiers if m not in names]
        return matches

    def has(self, *names: str) -> bool:
        """Remove these modifiers; return whether any was there."""
        return bool(self.take(*names))

    def one(self, table: Mapping[str, str], default: str | None = None) -> str:
        """Remove the modifier that is in a table, and return its value."""
        matches = self.take(*table)
        if len(matches) == 1:
            return table[matches[0]]
        if matches or default is None:
            raise self.refuse("cutrace does not know these modifiers")
        return default

    def require(self, *counts: int) -> list[Operand]:
        """Return the operands; refuse other numbers of them, and modifiers that are left."""
        if self.modifiers:
            raise self.refuse(f"cutrace does not know the modifier `.{self.modifiers[0]}`")
        self.refuse_if(len(self.operands) not in counts)
        return self.operands

    # Operands

    def _operand(self, text: str) -> Operand:
        negative = inverted = absolute = False
        text = text.replace(".reuse", "").strip()
        while text and text[0] in "-~!|":
            if text[0] == "-" and _INTEGER.fullmatch(text):
                break
            negative |= text[0] == "-"
            inverted |= text[0] in "~!"
            if text[0] == "|":
                absolute = True
                text = text.replace("|", "")
                continue
            text = text[1:]
        signs = negative, inverted, absolute
        if match := _REGISTER.fullmatch(text):
            number = -1 if match[2] == "Z" else int(match[2])
            suffix = tuple(match[3].split(".")[1:])
            return Operand("R", match[1] + match[2], *signs, number, suffix)
        if match := _PREDICATE.fullmatch(text):
            return Operand("P", text, *signs, -1 if match[2] == "T" else int(match[2]))
        if CONSTANT.fullmatch(text.partition(".")[0]):
            return Operand("c", text, *signs, suffix=tuple(text.split(".")[1:]))
        if _ADDRESS.fullmatch(text):
            return Operand("[", text)
        if _INTEGER.fullmatch(text):
            return Operand("#", text, *signs, int(text, 0))
        if match := HALF.fullmatch(text):
            return Operand("R", self._half_of_address(*match.groups()), *signs)
        return Operand("#", text, number=self.now.immediate)  # its sign is in there

    def _half_of_address(self, half: str, name: str, more: str | None) -> str:
        """Return a register, without its `%`, with half of a variable's address."""
        symbol = plain(name)
        if symbol not in self.code.globals:
            raise self.refuse(f"cutrace knows no code with the symbol `{name}`")
        whole, word = self.new("d"), self.new()
        self.emit("mov.u64", whole, f"{symbol}+{int(more or '0', 0)}")
        if half == "hi":
            self.emit("shr.u64", whole, whole, "32")
        self.emit("cvt.u32.u64", word, whole)
        return word[1:]

    def word(self, operand: Operand) -> str:
        """Return the 32 bits of an operand, as an integer: with its `-`, `~` or `|`."""
        if operand.suffix:
            raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")
        value = self.plain(operand)
        if operand.absolute:
            value = self.compute("abs.s32", value)
        if operand.inverted:
            value = self.compute("not.b32", value)
        return self.compute("neg.s32", value) if operand.negative else value

    def compute(self, operation: str, *values: str, kind: str = "r") -> str:
        """Add an operation; return its result, a new temporary."""
        output = self.new(kind)
        self.emit(operation, output, *values)
        return output

    def plain(self, operand: Operand) -> str:
        """Return the 32 bits of an operand, without its signs."""
        if operand.is_zero:
            return "0"
        if operand.kind == "R":
            return f"%{operand.text}"
        if operand.kind == "#":
            return str(operand.number)
        if operand.kind == "c":
            return self.constant(operand.text.partition(".")[0], 4)
        raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")

    def single(self, operand: Operand) -> str:
        """Return an operand as an f32."""
        if operand.kind == "#":
            return f"0f{self.now.immediate:08X}"
        if operand.suffix or operand.inverted:
            raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")
        value = "0f00000000" if operand.is_zero else self.plain(operand)
        if operand.absolute:
            value = self.compute("and.b32", value if value[0] == "%" else "0", "0x7fffffff")
        if operand.negative:
            value = self.compute("xor.b32", value if value[0] == "%" else "0", "0x80000000")
        return value

    def wide(self, operand: Operand, signs: bool = False) -> str:
        """Return the 64 bits of an operand: two registers, or constants; `signs` of an f64."""
        if operand.is_zero:
            value = "0"
        elif operand.kind == "R":
            if operand.suffix not in ((), ("64",)):
                raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")
            value = self.compute("mov.b64", f"{{{', '.join(registers(operand, 2))}}}", kind="d")
        elif operand.kind == "c":
            value = self.constant(operand.text.partition(".")[0], 8)
        elif operand.kind == "#" and signs:
            return f"0d{self.now.immediate:08X}00000000"
        elif operand.kind == "#":
            value = str(operand.number)
        else:
            raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")
        if not signs:
            if operand.inverted or operand.absolute:
                raise self.refuse(f"cutrace does not know the operand `{operand.text}` here")
            return self.compute("neg.s64", value, kind="d") if operand.negative else value
        if value == "0":
            return f"0d{'8' if operand.negative else '0'}000000000000000"
        if operand.absolute:
            value = self.compute("abs.f64", value, kind="d")
        if operand.negative:  # a NaN keeps its sign
            value = self.compute("neg.f64", value, kind="d")
        return value

    def double(self, operand: Operand) -> str:
        """Return an operand as an f64."""
        return self.wide(operand, signs=True)

    def truth(self, operand: Operand) -> str | bool:
        """Return a predicate operand: `%P0`, `!%P0`, or a constant."""
        if operand.kind != "P":
            raise self.refuse(f"expected a predicate, found `{operand.text}`")
        if operand.number < 0:
            return not operand.inverted
        return f"{'!' * operand.inverted}%{operand.text}"

    def predicate(self, operand: Operand) -> str:
        """Return a predicate operand as a register."""
        value = self.truth(operand)
        output = self.new("p")
        if isinstance(value, bool):
            self.emit(f"setp.{'eq' if value else 'ne'}.u32", output, "0", "0")
        elif value[0] == "!":
            self.emit("not.pred", output, value[1:])
        else:
            return value
        return output

    def number_if(self, operand: Operand, number: str, bits: int = 32) -> str:
        """Return a number where a predicate holds, else 0."""
        holds = self.truth(operand)
        if isinstance(holds, bool):
            return number if holds else "0"
        values = ("0", number) if holds[0] == "!" else (number, "0")
        kind = "d" if bits == 64 else "r"
        return self.compute(f"selp.b{bits}", *values, holds.lstrip("!"), kind=kind)

    def both(self, holds: str) -> str:
        """Return a predicate that is true where the guard and another are."""
        if not self._guard:
            return holds
        both, own = self.new("p"), self._guard[1:].strip()
        if own[0] == "!":
            own = self.compute("not.pred", own[1:], kind="p")
        self.emit("and.pred", both, own, holds)
        return both

    def to(self, operand: Operand) -> str:
        """Return the register of a result; for RZ and PT a new one, which is never read."""
        if operand.number < 0:
            return self.new("p" if operand.kind == "P" else "r")
        return f"%{operand.text}"

    def put_wide(self, operand: Operand, value: str) -> None:
        """Write 64 bits to two registers."""
        if not operand.is_zero:
            self.emit("mov.b64", f"{{{', '.join(registers(operand, 2))}}}", value, guarded=True)

    def constant(self, text: str, size: int, kind: str = "") -> str:
        """Return the register of a constant; see `ConstantBanks.load`."""
        return self._banks.load(text, size, kind)

    # The whole

    def lift(
        self,
        handlers: Mapping[str, Callable[["Lifter"], None]],
        prepare: Callable[["Lifter"], None] | None = None,
    ) -> Lifted:
        """Lift all instructions that the kernel can reach; `prepare` comes before them."""
        flow = Flow(self.code, self)
        if prepare is not None:
            prepare(self)
        for instruction in flow.reached:
            self.begin(instruction)
            if instruction.address in flow.labels:
                self.label(label_of(instruction.address))
            if lanes := flow.rejoins.get(instruction.address):  # a row that is not counted
                place = instruction.address - CODE_BYTES // 2
                self.now = Instruction(place, "BSYNC", ("recursion",), "", 0)
                self.emit("bar.warp.sync", lanes, guarded=False)
                self.now = instruction
            if instruction.guard in ("!PT", "!UPT"):  # it takes a turn, and does nothing
                self.emit("nanosleep.u32", "0")
                continue
            if not flow.add(instruction):
                if not self.opcode:
                    raise self.refuse("nvdisasm has no name for this instruction")
                handler = handlers.get(self.opcode) or (
                    handlers.get(self.opcode[1:]) if self.opcode[0] == "U" else None
                )
                if handler is None:
                    raise self.refuse(f"cutrace does not know the opcode {self.opcode}")
                try:
                    handler(self)
                except (ValueError, LookupError) as error:
                    raise self.refuse("cutrace does not know this form") from error
                self.count_guard()
            after = instruction.address + CODE_BYTES
            if flow.falls(instruction) and flow.next_of.get(instruction.address) != after:
                raise self.refuse("the code ends here")
        for each in flow.switches:
            self.label(trap_of(each.address))
            self.lines.append(("trap;", each))
        return self._finished(flow)

    def meet(self, lanes: str) -> None:
        """Wait for the lanes of a mask. One that a guard keeps away waits for itself alone: lanes
        meet at an operation that all of them run."""
        if self.guard:
            own = self.compute("mov.u32", "%lanemask_eq")
            mine, other = (own, lanes) if self.guard[0] == "!" else (lanes, own)
            lanes = self.compute("selp.b32", mine, other, self.guard.lstrip("!"))
            self.count_lanes()
        self.emit("bar.warp.sync", lanes, guarded=False)  # the last: it counts where lanes arrive

    def count_guard(self) -> None:
        """Make the lanes of a predicated instruction counted: the engine counts them where it
        computes, and not where it moves."""
        if self._own_guard and not self.opcode.startswith(_ACCESSES):
            last = self.lines[-1][0].partition(" ") if self.lines else ("", "", "")
            if last[0] != self._own_guard.strip() or last[2].startswith(_UNCOUNTED):
                self._guard = self._own_guard  # a handler may have chosen one of the lanes
                self.count_lanes()

    def count_lanes(self) -> None:
        """Count the lanes that the guard lets pass, if there is one."""
        if self._guard:
            self.emit("add.u32", self.new(), "0", "0", guarded=True)

    def _finished(self, flow: Flow) -> Lifted:
        declared = [f".reg .{'pred' if 'P' in n else 'b32'} {n};" for n in sorted(self._registers)]
        kinds = {"r": "b32", "d": "b64", "p": "pred", "h": "b16", "q": "b128"}
        for kind, count in self._temporaries.items():
            if count:
                declared.append(f".reg .{kinds[kind]} %t{kind}<{count + 1}>;")
        text = "\n".join([*declared, *(line for line, _ in self.lines)])
        lines = {
            len(declared) + number: owner
            for number, (_, owner) in enumerate(self.lines)
            if owner is not None
        }
        reserved = RESERVED if self.keeps_reserved else 0
        return Lifted(text, lines, self.code.stack, reserved, flow)


Handler: TypeAlias = Callable[[Lifter], None]
"""Lifts the present instruction of one opcode."""
