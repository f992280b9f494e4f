"""Where the PTX ISA describes an instruction, and the devices that have it, for messages."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    """Return sections and devices by opcode or modifier, from isa.toml."""
    tables = tomllib.loads(Path(__file__).with_name("isa.toml").read_text(encoding="utf-8"))
    return {
        name: {word: place for place, words in table.items() for word in words.split()}
        for name, table in tables.items()
    }


def isa_note(opcode: str, modifiers: tuple[str, ...]) -> str:
    """Return `; PTX ISA 9.7.10.3, compute capability 3.0 and later`; empty for an opcode that the
    ISA does not have."""
    sections, devices = _tables()["sections"], _tables()["devices"]
    if opcode not in sections:
        return ""
    capabilities = next((devices[word] for word in (*modifiers, opcode) if word in devices), "")
    tail = f", compute capability {capabilities}" if capabilities else ""
    return f"; PTX ISA {sections[opcode]}{tail}"
