"""The replay options: one set of parameters, given to every verb that replays."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from os import environ
from typing import Annotated, Any

import typer

from ...errors import CutraceError
from .complete import devices, last_of
from .quote import quote

DEFAULT_DEVICE = "h100"
PAIRS = ("set", "pad", "align")
"""Options that are given as NAME=VALUE, as often as one likes."""


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Replay options", **more)


@dataclass(frozen=True, slots=True)
class Replay:
    """What the user asked of a replay, by the names of the parameters of `analyze()`."""

    asked: dict[str, Any]

    def arguments(self, otherwise: str = DEFAULT_DEVICE) -> dict[str, Any]:
        """Keyword arguments for `analyze()`, the default device filled in.

        `CutraceError` for a device or a setting that does not exist, before anything is recorded.
        """
        from ...models.replay.device.device import load_devices

        devices = self.asked.get("device") or (environ.get("CUTRACE_DEVICE") or otherwise,)
        load_devices(devices, self.asked.get("set"))
        return {**self.asked, "device": devices}

    def first_line(self) -> str:
        """What the first line says of a device that nobody chose on the command line."""
        if "device" in self.asked:
            return ""
        if device := environ.get("CUTRACE_DEVICE"):
            return f"device: {device} ($CUTRACE_DEVICE; -d chooses others)"
        return f"device: {DEFAULT_DEVICE} (the default; -d chooses others, `cutrace devices` lists)"

    def typed(self) -> str:
        """The options again, as one would type them."""
        words: list[str] = []
        for name, value in self.asked.items():
            if name == "device":
                words += ["-d", ",".join(value)]
            elif name in PAIRS:
                words += [w for k, v in value.items() for w in (f"--{name}", f"{k}={v}")]
            elif isinstance(value, bool):
                words += [f"--{'' if value else 'no-'}{name.replace('_', '-')}"]
            else:
                words += [f"--{name.replace('_', '-')}", str(value)]
        return "".join(f" {quote(word)}" for word in words)


def replay_options(
    device: Annotated[
        list[str] | None,
        _option(
            *("--device", "-d"),
            metavar="NAME,...",
            autocompletion=last_of(devices),
            help="Devices to answer for: names of `cutrace devices`, or files of your own; without"
            f" it $CUTRACE_DEVICE, else {DEFAULT_DEVICE}.",
        ),
    ] = None,
    dlcm: Annotated[
        str | None,
        _option(metavar="ca|cg", help="Cache global loads in L1 and L2, or in L2 only."),
    ] = None,
    cache_config: Annotated[
        str | None,
        _option(
            metavar="prefer_shared|prefer_l1|equal",
            help="How L1 and shared memory divide their space.",
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        _option(
            metavar="round-robin|greedy-oldest",
            help="The order of warps that caches see: an instruction each in turn, or the oldest"
            " warp as far as it goes.",
        ),
    ] = None,
    no_caches: Annotated[
        bool,
        _option("--no-caches", help="Leave hits and misses out, which take most of a replay."),
    ] = False,
    profiled_blocks: Annotated[
        int | None,
        _option(
            metavar="N",
            help="Blocks assigned to the profiled SM cluster (default: an equal share).",
        ),
    ] = None,
    scope: Annotated[
        str | None,
        _option(
            metavar="cluster|all",
            help="Count one SM or cluster, as the first profilers did, or the whole grid.",
        ),
    ] = None,
    registers: Annotated[
        int | None, _option(metavar="N", help="Registers a thread (default: what ptxas assigns).")
    ] = None,
    as_if: Annotated[
        bool, _option("--as-if", help="Count a launch even on a device that would refuse it.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        _option(
            *("--set",),
            metavar="STAGE.KEY=VALUE",
            help="Another value in the device's file, say coalescer.load=sector.",
        ),
    ] = None,
    pad: Annotated[
        list[str] | None,
        _option(
            metavar="ARRAY=[ROW+]N",
            help="What if rows of an array were N elements longer? ROW is their length, where the"
            " trace does not tell.",
        ),
    ] = None,
    align: Annotated[
        list[str] | None,
        _option(
            metavar="ARRAY=BYTES[+BEYOND]",
            help="What if an array began at a multiple of BYTES, or so many bytes beyond one?",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        _option(
            metavar="N",
            help="Run the blocks of a source in N threads, and serve several devices in N"
            " processes, a core each at most.",
        ),
    ] = None,
) -> Replay:
    """Gather the options; only what was given is kept."""
    given = {
        "device": tuple(name for text in device or () for name in text.split(",") if name),
        "dlcm": dlcm,
        "cache_config": cache_config,
        "schedule": schedule,
        "caches": False if no_caches else None,
        "profiled_blocks": profiled_blocks,
        "scope": scope,
        "registers": registers,
        "as_if": as_if or None,
        "set": dict(_pair("set", text, "STAGE.KEY=VALUE") for text in set_ or ()),
        "pad": dict(_pair("pad", text, "ARRAY=[ROW+]N") for text in pad or ()),
        "align": dict(_pair("align", text, "ARRAY=BYTES[+BEYOND]") for text in align or ()),
        "jobs": jobs,
    }
    return Replay({name: value for name, value in given.items() if value not in (None, (), {})})


def _pair(option: str, text: str, expected: str) -> tuple[str, str]:
    """`stage.key=value` as a pair."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise CutraceError(f"--{option} {text}: expected {expected}")
    return key, value


def with_options(gather: Callable[..., Any], name: str) -> Callable[[Callable[..., Any]], Any]:
    """Give a verb the parameters of `gather`, and what that makes of them as argument `name`."""
    shared = inspect.signature(gather).parameters

    def decorate(verb: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(verb)
        def call(**given: Any) -> Any:
            gathered = gather(**{key: given.pop(key) for key in shared})
            return verb(**given, **{name: gathered})

        own = inspect.signature(verb).parameters.values()
        parameters = [*(p for p in own if p.name != name), *shared.values()]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in parameters}
        return call

    return decorate


replays = with_options(replay_options, "replay")
"""Decorates a verb that replays: it takes the options above, and gets them as `replay`."""
