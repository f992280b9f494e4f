"""A verdict on a candidate against a reference: faster, slower, same or broken, and why.

A `Side` has the facts of one of the two; `judge_sides` compares them in a fixed order: a candidate
that does not build, launches nothing, faults, accesses memory outside of arrays, has races or gives
other results is broken, whatever its time. Only then the estimates count (`difference.py`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...models.replay.device.measured import WITHIN
from ..counting.bounds import time_text
from ..time.estimate_text import Range, about_text, estimate_interval
from .difference import CHANGE_ERROR, PAIR_ERROR, Difference, difference

FORMAT = "cutrace-judge-1"
MOST_NAMES = 8
"""Most names of equal arrays in a report for people."""
FAILING = ("slower", "broken")
"""Verdicts with exit status 1."""
UNDECIDED = "undecided"
"""What counts say if some are clearly less and others more."""
COSTS = {
    "warp_instructions": "warp instructions",
    "global_transactions": "global transactions",
    "shared_wavefronts": "shared wavefronts",
    "dram_bytes": "bytes of DRAM",
}
"""Counts that decide where a device has no estimate, by key, and in words."""
EQUAL_COUNTS = 1.01
"""Ratio of counts up to which they are equal."""
CLEAR = PAIR_ERROR ** (1 / (1 - CHANGE_ERROR))
"""Ratio from which on a difference of counts is clear, as of estimates."""
BROKEN = {
    "build": "does not build",
    "launch": "launches no kernel",
    "cheat": "does not compute its results by its kernels",
    "endless": "does not end",
    "waiting": "does not end: its warps wait for each other",
    "outside": "accesses memory outside of its arrays",
    "misaligned": "accesses misaligned addresses",
    "uninitialized": "reads memory that nobody wrote",
    "assertion": "fails an assertion",
    "fault": "faults",
    "program": "fails as a program",
    "race": "has data races in shared memory",
    "output": "computes other values",
    "device": "cannot be launched on the device",
}
"""What is wrong with a broken candidate, by cause."""

Values = NDArray[Any]
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """The facts of a variant; lists and mappings have JSON's types.

    `error` is what kept it from running (`base.errors.describe_error`). `races` and `outside` have
    places and a message each, `findings` is the advice, largest gain first. `estimate` is the least
    and the most time in ns, equal for a whole trace; `within` are the ends of measured over
    estimated times on the device. `costs` are the counts named in COSTS.
    `arrays` are the final values by name, None if unknown; `written` names those that kernels
    wrote, `loaded` those that they loaded or changed, `unset` those that they loaded and the host
    has not set. `inputs` are the fills of each array by launch lines. `initialized` tells whether
    all loaded bytes were written before, None if that was not looked for. `operators` are
    a library's calls that were computed on the host, whose kernels are not counted; `cheat` says in
    what way the kernels do not compute the results.
    """

    name: str
    error: Facts | None = None
    launches: Sequence[str] = ()
    refusal: str = ""
    races: Sequence[Facts] = ()
    races_unchecked: Sequence[str] = ()
    outside: Sequence[Facts] = ()
    initialized: bool | None = None
    estimate: Range | None = None
    within: Range = WITHIN
    bound_ns: float | None = None
    limited_by: str = ""
    costs: Mapping[str, int] = field(default_factory=dict)
    findings: Sequence[Facts] = ()
    arrays: Mapping[str, Values] | None = None
    written: Sequence[str] = ()
    loaded: Sequence[str] = ()
    inputs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unset: Sequence[str] = ()
    operators: Mapping[str, int] = field(default_factory=dict)
    cheat: str = ""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`|a - b| <= atol + rtol * |b|` for floats; None: by the type's precision.

    The default `rtol` is the root of the type's precision (3.5e-4 for 32 bits), `atol` a hundred
    times the precision of the values' root mean square.
    """

    rtol: float | None = None
    atol: float | None = None

    def of(self, values: Values) -> tuple[float, float]:
        """Return rtol and atol for comparing with these values."""
        if values.dtype.kind != "f" and self.rtol is None and self.atol is None:
            return 0.0, 0.0
        precision = float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0
        finite = values[np.isfinite(values)].astype(np.float64)
        mean = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
        rtol = precision**0.5 if self.rtol is None else self.rtol
        return rtol, 100 * precision * mean if self.atol is None else self.atol


@dataclass(frozen=True, slots=True)
class Output:
    """An array of the candidate beside its reference: elements that differ, and the first of them.

    `largest_error` is the largest difference of any element, None if it is no finite number, and
    `rtol` and `atol` the tolerance, None without one. `problem` is why the two cannot be compared;
    empty if they can.
    """

    array: str
    elements: int = 0
    differing: int = 0
    largest_error: float | None = None
    rtol: float | None = None
    atol: float | None = None
    first: str = ""
    problem: str = ""

    @property
    def is_same(self) -> bool:
        """True if all elements agree."""
        return not self.differing and not self.problem

    def text(self) -> str:
        """Return the difference in words."""
        if self.problem:
            return f"`{self.array}`: {self.problem}"
        return f"`{self.array}` differs in {self.differing:,} of {self.elements:,}: {self.first}"


def compare_values(name: str, values: Values, reference: Values, tolerance: Tolerance) -> Output:
    """Compare an array with its reference, element by element."""
    if values.size != reference.size:
        return Output(name, problem=f"{values.shape} is not the shape {reference.shape}")
    values, reference = np.atleast_1d(values), np.atleast_1d(reference)  # a loss has no dimension
    if values.dtype.fields or reference.dtype.fields:
        equal = values.reshape(-1) == reference.reshape(-1)
        rtol = atol = None
        largest = 0.0 if equal.all() else None
    else:
        reference = reference.reshape(values.shape)
        rtol, atol = tolerance.of(reference if reference.dtype.kind == "f" else values)
        if rtol == atol == 0.0:
            equal = (values == reference) | _both_nan(values, reference)
        else:
            equal = np.isclose(values, reference, rtol, atol, equal_nan=True)
        largest = _largest_error(values, reference)
    wrong = np.flatnonzero(~equal)
    if not wrong.size:
        return Output(name, values.size, 0, largest, rtol, atol)
    at = int(wrong[0])
    index = ", ".join(str(int(i)) for i in np.unravel_index(at, values.shape))
    first = f"[{index}] is {values.reshape(-1)[at]}, expected {reference.reshape(-1)[at]}"
    return Output(name, values.size, int(wrong.size), largest, rtol, atol, first)


def _largest_error(values: Values, reference: Values) -> float | None:
    """Return the largest difference of two elements, 0 for two NaN; None if it is not finite."""
    if values.dtype == reference.dtype and values.dtype.kind in "iu":
        # exact: the difference of two 64-bit integers fits an unsigned one, not a double
        apart = np.maximum(values, reference) - np.minimum(values, reference)
        return float(apart.view(f"u{apart.itemsize}").max(initial=0))
    kind = np.result_type(values, reference, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(values.astype(kind) - reference.astype(kind))
    errors[(values == reference) | _both_nan(values, reference)] = 0
    largest = float(errors.max(initial=0))
    return largest if np.isfinite(largest) else None


def _both_nan(one: Values, other: Values) -> Values:
    both: Values = (one != one) & (other != other)
    return both


def compare_outputs(
    before: Side, after: Side, expected: Mapping[str, Values], tolerance: Tolerance
) -> tuple[Output, ...] | None:
    """Compare all arrays that either kernel wrote, or those expected; None if values are unknown.

    Raises `CutraceError` for an expected array that the candidate does not have.
    """
    if after.arrays is None or (before.arrays is None and not expected):
        return None
    if expected:
        named = [(_find_expected(after, name, values), values) for name, values in expected.items()]
        return tuple(
            compare_values(name, after.arrays[name], values, tolerance) for name, values in named
        )
    assert before.arrays is not None
    outputs = []
    for name in before.arrays:
        if name not in before.written and name not in after.written:
            continue
        if name in after.arrays:
            values = compare_values(name, after.arrays[name], before.arrays[name], tolerance)
            outputs.append(values)
        elif name in before.written:
            outputs.append(
                Output(name, problem=f"{after.name} has no array of this name to compare it with")
            )
    return tuple(outputs)


def _find_expected(after: Side, name: str, values: Values) -> str:
    """Return the array that expected values are of: of this name, or the only one of their size."""
    assert after.arrays is not None
    if name in after.arrays:
        return name
    fitting = [n for n in after.written if after.arrays[n].size == values.size]
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(f"{n} {after.arrays[n].shape}" for n in after.written) or "none"
    raise CutraceError(
        f"--expect: {after.name} writes no array `{name}`, nor a single one with {values.size}"
        f" elements; it writes {there}: name one, as in NAME=FILE.npy"
    )


@dataclass(frozen=True, slots=True, repr=False)
class Judgement:
    """The verdict on a candidate: `verdict`, `cause` of a broken one, and `reason`, a sentence.

    `basis` is what the verdict rests on: `estimate`, `counts`, or empty for a broken candidate.
    It is `undecided` where the verdict is `same` since counts contradict each other.
    `str` is the report, `document` the object of `--format json`.
    """

    verdict: str
    cause: str
    reason: str
    device: str
    before: Side
    after: Side
    outputs: tuple[Output, ...] | None = None
    difference: Difference | None = None
    basis: str = ""
    undecided: bool = False
    notes: tuple[str, ...] = ()

    @property
    def exit_status(self) -> int:
        """0 for faster, same and correct, 1 for slower and broken."""
        return int(self.verdict in FAILING)

    @property
    def same_output(self) -> bool | None:
        """Whether all outputs agree; None if they are unknown."""
        return None if self.outputs is None else all(output.is_same for output in self.outputs)

    def document(self) -> dict[str, Any]:
        """Return the judgement as one object of JSON's types."""
        both = self.difference
        return {
            "format": FORMAT,
            "verdict": self.verdict,
            "cause": self.cause or None,
            "reason": self.reason,
            "basis": self.basis or None,
            "undecided": self.undecided,
            "device": self.device,
            "builds": not (self.after.error and self.after.error["kind"] == "build"),
            "same_output": self.same_output,
            "outputs": None
            if self.outputs is None
            else [{**asdict(output), "same": output.is_same} for output in self.outputs],
            "ratio": both.ratio if both else None,
            "ratio_interval": [both.low, both.high] if both else None,
            "before": _side(self.before),
            "after": _side(self.after),
            "findings": [dict(finding) for finding in self.after.findings],
            "notes": list(self.notes),
        }

    def json(self) -> str:
        """Return the document as text, the same for equal input."""
        return json.dumps(self.document(), indent=1) + "\n"

    def __repr__(self) -> str:
        return f"<{self.verdict}: {self.reason}>"

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def _side(side: Side) -> dict[str, Any]:
    interval = estimate_interval(side.estimate, side.within) if side.estimate else None
    return {
        "name": side.name,
        "launches": list(side.launches),
        "error": side.error,
        "races": list(side.races),
        "races_unchecked": list(side.races_unchecked),
        "outside": list(side.outside),
        "initialized": side.initialized,
        "estimate_ns": _middle(side.estimate),
        "estimate_interval_ns": list(interval) if interval else None,
        "bound_ns": side.bound_ns,
        "limited_by": side.limited_by or None,
        "costs": dict(side.costs),
        "operators": dict(side.operators),
    }


def _middle(ends: Range | None) -> float | None:
    return (ends[0] * ends[1]) ** 0.5 if ends else None


def _lines(one: Judgement) -> Iterator[str]:
    yield f"{one.verdict}: {one.reason}"
    yield ""
    for side in (one.before, one.after):
        if side.estimate:
            ns = _middle(side.estimate) or 0.0
            yield f"  {side.name}: {about_text(ns, side.within)}{_bound(side)}"
        elif side.launches:
            yield f"  {side.name}: no estimate{_bound(side)}"
    if one.same_output:
        arrays = [output.array for output in one.outputs or ()]
        more = [f"{len(arrays) - MOST_NAMES} more"] if len(arrays) > MOST_NAMES else []
        names = ", ".join([*arrays[:MOST_NAMES], *more])
        yield f"  same output: {names or 'nothing is written'}"
    elif one.same_output is None and not one.after.error:
        yield "  output not compared: a trace has no values"
    yield from (f"  {output.text()}" for output in one.outputs or () if not output.is_same)
    for side in (one.before, one.after):
        places = [*side.races, *side.outside]
        yield from (f"  {side.name}: {each['message']}" for each in places)
    for finding in one.after.findings:
        saved = finding["saved_ns"]
        ns, part = (finding["gain_ns"], " of the bound") if saved is None else (saved, "")
        gain = f" (gains {time_text(ns)}{part})" if ns else ""
        place = f"{finding['file']}:{finding['line']}: " if finding["file"] else ""
        yield f"  {finding['rule']}: {place}{finding['change']}{gain}"
    yield from (f"  {note}" for note in one.notes)


def _bound(side: Side) -> str:
    if side.bound_ns is None:
        return ""
    return f", no faster than {time_text(side.bound_ns)} ({side.limited_by})"


def judge_sides(
    before: Side,
    after: Side,
    device: str,
    outputs: tuple[Output, ...] | None,
    notes: tuple[str, ...] = (),
) -> Judgement:
    """Return the verdict on `after`, given the comparison of its outputs."""
    whole = Judgement("broken", "", "", device, before, after, outputs, notes=notes)
    cause, detail = _find_fault(after, outputs)
    if cause in ("", "output") and (inputs := _different_inputs(before, after)):
        reason = f"the launches have different inputs: {', '.join(inputs)}"
        return replace(whole, cause="launch", reason=reason)
    if cause:
        reason = f"{after.name} {BROKEN[cause]}" + (f": {detail}" if detail else "")
        return replace(whole, cause=cause, reason=reason)
    if not before.launches or before.operators or after.operators:
        return replace(whole, verdict="correct", reason=_correct(before, after, outputs or ()))
    if before.estimate and after.estimate:
        both = difference(before.estimate, after.estimate, after.within)
        whole = replace(whole, difference=both, basis="estimate")
        return replace(whole, verdict=both.verdict, reason=both.text(after.name, before.name))
    verdict, reason = _by_counts(before, after)
    reason = f"there is no estimate on {device}, and by counts {reason}"
    if undecided := verdict == UNDECIDED:
        verdict, reason = "same", f"{UNDECIDED}: {reason}"
    return replace(whole, verdict=verdict, reason=reason, basis="counts", undecided=undecided)


def _correct(before: Side, after: Side, outputs: Sequence[Output]) -> str:
    """Return the reason of a verdict without a comparison of times."""
    errors = [each.largest_error for each in outputs if each.largest_error is not None]
    error = f" (largest error {max(errors):.2g})" if errors else ""
    side = after if before.launches and after.operators else before
    return (
        f"{after.name} computes what {before.name} does{error}; no comparison of times, since"
        f" {side.name} {'launches no kernel' if not side.launches else 'leaves work to a library'}"
    )


def _find_fault(after: Side, outputs: Sequence[Output] | None) -> tuple[str, str]:
    """Return the first cause for which a candidate is broken, and its detail, or nothing."""
    if after.error:
        named = (after.error["cause"], after.error["kind"], "fault")
        cause = next(each for each in named if each in BROKEN)
        return cause, str(after.error["message"])
    if not after.launches:
        return "launch", after.cheat
    if after.refusal:
        return "device", after.refusal
    if after.cheat:
        return "cheat", after.cheat
    for cause, places in (("outside", after.outside), ("race", after.races)):
        if places:
            more = f", and {len(places) - 1} more" if len(places) > 1 else ""
            return cause, f"{places[0]['message']}{more}"
    wrong = [output for output in outputs or () if not output.is_same]
    return ("output", wrong[0].text()) if wrong else ("", "")


def _different_inputs(before: Side, after: Side) -> list[str]:
    """Return the arrays that a kernel loads, and that the two launches fill differently."""
    return [
        f"`{name}`"
        for name, fills in before.inputs.items()
        if name in {*before.loaded, *after.loaded}
        and list(after.inputs.get(name, fills)) != list(fills)
    ]


def _by_counts(before: Side, after: Side) -> tuple[str, str]:
    """Return a verdict from counts alone: faster where some are clearly less, and none is more."""
    pairs = {
        words: (before.costs[name], after.costs[name])
        for name, words in COSTS.items()
        if name in before.costs and name in after.costs
    }
    less = {n: b / a for n, (b, a) in pairs.items() if a and b > a * EQUAL_COUNTS}
    less |= {n: float("inf") for n, (b, a) in pairs.items() if b and not a}
    more = {n: a / b for n, (b, a) in pairs.items() if b and a > b * EQUAL_COUNTS}
    more |= {n: float("inf") for n, (b, a) in pairs.items() if a and not b}
    clearly_less = [n for n, ratio in less.items() if ratio > CLEAR]
    clearly_more = [n for n, ratio in more.items() if ratio > CLEAR]
    bounds = before.bound_ns, after.bound_ns
    rises = None not in bounds and (bounds[1] or 0) > (bounds[0] or 0) * EQUAL_COUNTS
    if clearly_less and not more and not rises:
        what = ", ".join(_change(n, less[n], "less") for n in clearly_less)
        return "faster", f"{after.name} does less, and nothing more: {what}"
    if clearly_more and not less:
        what = ", ".join(_change(n, more[n], "more") for n in clearly_more)
        return "slower", f"{after.name} does more, and nothing less: {what}"
    if clearly_less or clearly_more:
        changes = [_change(n, less[n], "less") for n in clearly_less]
        changes += [_change(n, more[n], "more") for n in more]
        return UNDECIDED, f"no order follows: {', '.join(changes)}"
    return "same", "no count differs clearly"


def _change(name: str, ratio: float, word: str) -> str:
    """Return a changed count in words; `ratio` is infinite if one side has none.

    >>> _change("shared wavefronts", 8, "less"), _change("shared wavefronts", float("inf"), "more")
    ('shared wavefronts 8 times less', 'shared wavefronts where there were none')
    """
    if np.isfinite(ratio):
        return f"{name} {ratio:.3g} times {word}"
    return f"no {name}" if word == "less" else f"{name} where there were none"
