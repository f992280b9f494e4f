"""PTX that is nearly right: cut off, with tokens gone, doubled, swapped, changed."""

import random
import re
from collections.abc import Callable, Sequence

TOKEN = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/|\"[^\"]*\"|0[fFdD][0-9a-fA-F]+|[\w$%.]+|[^\w\s]", re.DOTALL
)
NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|\d+")
NUMBERS = ("0", "1", "-1", "7", "31", "64", "65536", "2147483648", "4294967296", "99999999999",
           "18446744073709551616", "0x7fffffffffffffff", "-9223372036854775808")  # fmt: skip

Mutation = Callable[[random.Random, list[str], Sequence[str]], None]


def mutate(text: str, chance: random.Random, words: Sequence[str], times: int) -> str:
    """Return the text after some mutations; `words` are tokens of other texts."""
    tokens = TOKEN.findall(text)
    for _ in range(times):
        chance.choice(MUTATIONS)(chance, tokens, words)
        if len(tokens) < 2:
            break
    return "".join(tokens)


def _place(chance: random.Random, tokens: list[str]) -> int:
    """A token that is not white."""
    places = [k for k, token in enumerate(tokens) if not token.isspace()]
    return chance.choice(places) if places else 0


def _cut(chance: random.Random, tokens: list[str], words: Sequence[str]) -> None:
    del tokens[_place(chance, tokens) + 1 :]
    tokens[-1] = tokens[-1][: chance.randint(1, len(tokens[-1]))]


def _delete(chance: random.Random, tokens: list[str], words: Sequence[str]) -> None:
    del tokens[_place(chance, tokens)]


def _double(chance: random.Random, tokens: list[str], words: Sequence[str]) -> None:
    place = _place(chance, tokens)
    tokens[place:place] = [tokens[place], " "]


def _swap(chance: random.Random, tokens: list[str], words: Sequence[str]) -> None:
    one, other = _place(chance, tokens), _place(chance, tokens)
    tokens[one], tokens[other] = tokens[other], tokens[one]


def _replace(chance: random.Random, tokens: list[str], words: Sequence[str]) -> None:
    tokens[_place(chance, tokens)] = chance.choice(words)


def _insert(chance: random.Random, tokens: list[str], words: Sequence[str]) -> None:
    place = _place(chance, tokens)
    tokens[place:place] = [" ", chance.choice(words), " "]


def _renumber(chance: random.Random, tokens: list[str], words: Sequence[str]) -> None:
    places = [k for k, token in enumerate(tokens) if NUMBER.search(token)]
    if places:
        place = chance.choice(places)
        tokens[place] = NUMBER.sub(lambda found: chance.choice(NUMBERS), tokens[place], count=1)


def _remodify(chance: random.Random, tokens: list[str], words: Sequence[str]) -> None:
    """Take a modifier off an instruction, or give it one."""
    places = [k for k, token in enumerate(tokens) if "." in token[1:]]
    if places:
        place = chance.choice(places)
        parts = tokens[place].split(".")
        if chance.random() < 0.5:
            del parts[chance.randrange(1, len(parts))]
        else:
            parts.insert(chance.randrange(1, len(parts) + 1), chance.choice(MODIFIERS))
        tokens[place] = ".".join(parts)


def _reregister(chance: random.Random, tokens: list[str], words: Sequence[str]) -> None:
    """Take another register or name of the same text."""
    places = [k for k, token in enumerate(tokens) if token[0] == "%" or token.isidentifier()]
    if places:
        tokens[chance.choice(places)] = tokens[chance.choice(places)]


def _drop_statement(chance: random.Random, tokens: list[str], words: Sequence[str]) -> None:
    ends = [k for k, token in enumerate(tokens) if token == ";"]
    if len(ends) > 1:
        k = chance.randrange(len(ends) - 1)
        del tokens[ends[k] + 1 : ends[k + 1] + 1]


MODIFIERS = (
    *("u32", "s32", "b64", "f32", "f64", "f16", "b8", "pred", "u16x2", "b128", "v2", "v4", "v8"),
    *("global", "shared", "local", "const", "param", "sync", "all", "wide", "lo", "hi", "cc"),
    *("rn", "rz", "ftz", "approx", "full", "volatile", "nc", "relaxed", "gpu", "add", "cas"),
    *("to", "x4", "trans", "aligned", "bulk", "cluster", "tile", "1d", "a2d", "level", "uni"),
    *("sat", "min", "idx"),
)
MUTATIONS: tuple[Mutation, ...] = (
    *(_cut, _delete, _double, _swap, _replace, _insert, _renumber, _renumber, _remodify),
    *(_remodify, _reregister, _reregister, _reregister, _drop_statement),
)
