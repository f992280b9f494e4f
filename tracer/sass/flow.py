"""The control flow of machine code: what a kernel can reach, and its jumps, calls and returns."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from ...base.errors import CutraceError
from ...traces.machine_schedule import CODE_BYTES
from ..ptx.digraph import cycles
from .cubin import Code, Instruction
from .emitter import Emitter

_EXCHANGES = ("SHFL", "VOTE", "MATCH", "REDUX", "BAR.", "WARPSYNC")
_PLAIN_JUMPS = frozenset({"BRA", "CALL"})


def label_of(address: int) -> str:
    """Return the label of an address."""
    return f"L{address:x}"


def trap_of(address: int) -> str:
    """Return the label of the trap of a switch that goes to none of its places."""
    return f"Ltrap{address:x}"


class Flow:
    """The control flow graph: reachable instructions, and labels."""

    def __init__(self, code: Code, lifter: Emitter) -> None:
        self.code, self._lifter = code, lifter
        self._at = {each.address: each for each in code.instructions}
        self._returns: dict[int, set[int]] = {}
        own = f"${code.kernel}$"
        self._pointed = {
            place: name.removeprefix(own)
            for name, place in code.functions.items()
            if name.startswith(own) and place in self._at
        }
        """Functions that a call by address may mean, by place."""
        self.rejoins: dict[int, str] = {}
        """Places behind calls of a recursion, where its lanes meet again: registers of masks."""
        self.subroutines: set[int] = set()
        """Targets of calls that return: other calls are jumps."""
        self.inside_subroutines: set[int] = set()
        """Addresses of subroutines that never call themselves."""
        self._find_returns()
        reachable = self._reach(0, self._successors)
        self.labels = {target for at in reachable for target in self.targets(self._at[at])}
        ordered = sorted(reachable)
        self.reached = [self._at[address] for address in ordered]
        self.next_of = dict(pairwise(ordered))
        self.switches: list[Instruction] = []

    def _reach(self, entry: int, successors: Callable[[Instruction], list[int]]) -> Iterable[int]:
        """Return the addresses that are reachable from an entry, in the order of the search."""
        reachable: dict[int, None] = {}
        pending = [entry]
        while pending:
            address = pending.pop()
            if address not in reachable:
                reachable[address] = None
                pending += successors(self._require(address))
        return reachable

    def _successors(self, instruction: Instruction) -> list[int]:
        after = [instruction.address + CODE_BYTES] if self.falls(instruction) else []
        return self.targets(instruction) + after

    def _in_subroutine(self, instruction: Instruction) -> list[int]:
        """Return where control goes next within a subroutine: behind a call, and not back."""
        if instruction.calls:
            return [instruction.address + CODE_BYTES]
        returns = instruction.opcode.startswith("RET")
        unmarked = instruction.opcode.startswith("CALL.REL") and self._is_place(
            instruction, CODE_BYTES
        )
        after = [instruction.address + CODE_BYTES] if self.falls(instruction) or unmarked else []
        return after if returns else self.targets(instruction) + after

    def _is_place(self, instruction: Instruction, offset: int) -> bool:
        return instruction.address + offset in self._at

    def _require(self, address: int) -> Instruction:
        if address not in self._at:
            raise CutraceError(
                f"{self.code.title}: control goes to address {address:#x}, which has no instruction"
            )
        return self._at[address]

    def target(self, instruction: Instruction) -> int | None:
        """Return the target of a jump to an address or a name."""
        text = instruction.operands[-1] if instruction.operands else ""
        name = text.strip("`()")
        if name in self.code.functions:
            return self.code.functions[name]
        return int(text, 16) if re.fullmatch(r"0x[0-9a-f]+", text) else None

    def _find_returns(self) -> None:
        """Find the targets of each return: the instructions after the calls of its subroutine."""
        sites: dict[int, set[int]] = {}
        for each in self.code.instructions:
            if each.opcode.startswith("CALL.REL"):  # some are not marked as calls
                for target in self.targets(each):
                    sites.setdefault(target, set()).add(each.address + CODE_BYTES)
        bodies = {entry: [*self._reach(entry, self._in_subroutine)] for entry in sites}
        # ptxas also jumps by CALL, to a place of the same function: no RET leads back from there.
        returning = [entry for entry in sites if self._returns_from(bodies[entry])]
        self.subroutines.update(returning)
        called: dict[int, list[int]] = {entry: [] for entry in returning}
        for entry in returning:
            after = sites[entry]
            for address in bodies[entry]:
                instruction = self._at[address]
                if instruction.opcode.startswith("RET"):
                    self._returns.setdefault(address, set()).update(after)
                elif instruction.opcode.startswith("CALL.REL"):
                    called[entry] += filter(called.__contains__, self.targets(instruction))
        recursive = {entry for loop in cycles(called) for entry in loop}
        inside = {address for entry in recursive for address in bodies[entry]}
        self.inside_subroutines.update(*(bodies[entry] for entry in returning))
        self.inside_subroutines -= inside
        for address in sorted(inside):
            if self._at[address].opcode.startswith(_EXCHANGES):
                # Lanes of two levels may be at the same place.
                why = "cutrace does not know functions that call themselves and exchange values"
                raise self.code.refuse(self._at[address], why)
        for each in self.code.instructions:
            calls = each.opcode.startswith("CALL.REL") and each.address not in inside
            if calls and recursive.intersection(self.targets(each)):
                self.rejoins[each.address + CODE_BYTES] = self._lifter.new()

    def calls_subroutine(self, instruction: Instruction) -> bool:
        """Return whether an instruction calls a subroutine that never calls itself."""
        is_call = instruction.opcode.startswith("CALL.REL") and not instruction.guard
        return is_call and self.inside_subroutines.issuperset(self.targets(instruction))

    def _returns_from(self, body: Iterable[int]) -> bool:
        return any(self._at[address].opcode.startswith("RET") for address in body)

    def targets(self, instruction: Instruction) -> list[int]:
        """Return the possible branch targets of an instruction."""
        name, _, form = instruction.opcode.partition(".")
        if form.startswith("DIV") or (name == "CALL" and form.startswith("ABS")):
            return []
        if name == "CALL" and len(instruction.operands) > 1:
            if not self._pointed:
                raise self.code.refuse(instruction, "cutrace does not know where this call goes")
            return sorted(self._pointed)
        if name in _PLAIN_JUMPS:
            target = self.target(instruction)
            if target is None:
                raise self.code.refuse(instruction, "cutrace does not know where this goes")
            return [target]
        if name == "RET":
            return sorted(self._returns.get(instruction.address, ()))
        if name in ("BRX", "BRXU"):
            return sorted(set(self.code.branch_targets.get(instruction.address, ())))
        if name == "BSSY":
            return [int(instruction.operands[-1], 16)]
        return []

    def falls(self, instruction: Instruction) -> bool:
        """Return whether control may go to the next instruction."""
        name, _, form = instruction.opcode.partition(".")
        guarded = instruction.guard not in ("", "PT", "UPT")
        if name in ("BRA", "CALL"):
            if form.startswith("DIV") or form.startswith("ABS"):
                return True
            conditions = instruction.operands[:-1]
            return guarded or (form != "CONV" and any("P" in o for o in conditions))
        if name == "EXIT" and instruction.operands:
            return True
        return guarded or name not in ("EXIT", "RET", "BRX", "BRXU", "KILL")

    def add(self, instruction: Instruction) -> bool:
        """Lift an instruction that moves lanes; return whether it is one."""
        lifter = self._lifter
        name, _, form = instruction.opcode.partition(".")
        if name in ("BRA", "CALL") and not form.startswith("ABS"):
            self._branch(instruction, form)
        elif name == "EXIT":
            self._exit(form)
        elif name == "BSYNC" and instruction.address + CODE_BYTES in self.labels:
            lifter.emit("bra", label_of(instruction.address + CODE_BYTES))
        elif name in ("RET", "BRX", "BRXU"):
            self._switch(instruction)
        else:
            return False
        return True

    def _branch(self, instruction: Instruction, form: str) -> None:
        lifter = self._lifter
        if lanes := self.rejoins.get(instruction.address + CODE_BYTES):
            if lifter.guard or not instruction.opcode.startswith("CALL"):
                raise lifter.refuse("cutrace does not know this call")
            lifter.emit("activemask.b32", lanes)
        if instruction.opcode.startswith("CALL") and len(lifter.operands) > 1:
            self._call_by_address(instruction)
            return
        forms = ("", "U", "CONV", "DIV", "REL", "REL.NOINC", "U.ANY")
        if form not in forms or len(instruction.operands) > 2:
            raise lifter.refuse("cutrace does not know this branch")
        if form in ("CONV", "DIV"):
            mask = lifter.operands[0]
            word = lifter.word(mask) if len(instruction.operands) == 2 else "-1"
            lifter.meet(word)
            if form == "DIV":
                return
            lifter.emit("bra.uni", label_of(self.targets(instruction)[0]))
            return
        condition = lifter.operands[0] if len(instruction.operands) == 2 else None
        target = label_of(self.targets(instruction)[0])
        if form == "U.ANY" and condition is None and lifter.guard:
            holds = lifter.compute("vote.any.pred", lifter.guard, kind="p")
            lifter.lines.append((f"@{holds} bra {target};", instruction))
            return
        if condition is None:
            lifter.emit("bra", target)
            return
        lifter.lines.append(
            (f"@{lifter.both(lifter.predicate(condition))} bra {target};", instruction)
        )

    def _exit(self, form: str) -> None:
        """Lift EXIT, perhaps with a condition besides its guard: `@P0 EXIT P1`."""
        lifter = self._lifter
        if form or len(lifter.operands) > 1:
            raise lifter.refuse("cutrace does not know this exit")
        if lifter.operands:
            lifter.set_guard(lifter.both(lifter.predicate(lifter.operands[0])))
        lifter.count_lanes()
        lifter.emit("exit")

    def _switch(self, instruction: Instruction) -> None:
        """Lift a return or an indirect branch: a switch over its targets."""
        lifter, targets = self._lifter, self.targets(instruction)
        if not targets or len(lifter.operands) > 2:
            raise lifter.refuse("cutrace does not know where this goes")
        if len(targets) == 1:
            lifter.emit("bra", label_of(targets[0]))
            return
        register = lifter.operands[0]
        origin = 0
        if instruction.opcode.startswith("RET.ABS") and len(lifter.operands) > 1:
            origin = lifter.operands[1].number
        elif not instruction.opcode.startswith("RET"):
            origin = (
                instruction.address
                + CODE_BYTES
                + (lifter.operands[1].number if len(lifter.operands) > 1 else 0)
            )
        places = [str(target - origin & 0xFFFFFFFF) for target in targets]
        self._go(instruction, targets, "u32", lifter.plain(register), places)

    def _call_by_address(self, instruction: Instruction) -> None:
        """Lift a call by an address in registers: a switch over all functions. An address from the
        code is an offset in it; one from memory is that of the function."""
        lifter, targets = self._lifter, self.targets(instruction)
        names = []
        for target in targets:
            names.append(lifter.new("d"))
            lifter.emit("mov.u64", names[-1], self._pointed[target])
        places = [*names, *map(str, targets)]
        self._go(instruction, targets * 2, "u64", lifter.wide(lifter.operands[0]), places)

    def _go(
        self, instruction: Instruction, targets: Sequence[int], kind: str, value: str,
        places: Sequence[str],
    ) -> None:  # fmt: skip
        """Branch to the target with a value's address."""
        lifter = self._lifter
        index = lifter.compute("mov.u32", str(len(targets)))
        for number, place in enumerate(places):
            same = lifter.compute(f"setp.eq.{kind}", value, place, kind="p")
            index = lifter.compute("selp.u32", str(number), index, same)
        table, labels = f"T{instruction.address:x}", [*map(label_of, targets)]
        labels.append(trap_of(instruction.address))
        if instruction.opcode == "BRX" and not lifter.guard:
            labels.append(f"B{instruction.address:x}")
            lifter.label(labels[-1])
            index = self._take_turns(index, str(len(labels) - 1))
        lifter.lines.append((f"{table}: .branchtargets {', '.join(labels)};", None))
        lifter.emit("brx.idx", index, table)
        self.switches.append(instruction)

    def _take_turns(self, index: str, again: str) -> str:
        """Return the target of the first lane, and `again` in lanes that have another: they run BRX
        once more."""
        lifter = self._lifter
        lanes = lifter.compute("brev.b32", lifter.compute("activemask.b32"))
        first = lifter.compute("bfind.shiftamt.u32", lanes)
        chosen = lifter.compute("shfl.idx.b32", index, first, "31")
        differs = lifter.compute("setp.ne.u32", index, chosen, kind="p")
        return lifter.compute("selp.u32", again, chosen, differs)
