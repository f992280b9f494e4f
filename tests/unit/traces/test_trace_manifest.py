import json
from dataclasses import replace

import pytest
from hand_trace import DEVICE_ARRAY, launch

from cutrace.base.errors import CutraceError
from cutrace.traces.manifest import Unread, to_json
from cutrace.traces.schema import (
    FORMAT_VERSION,
    Argument,
    Array,
    Compiler,
    Event,
    Manifest,
    Resources,
    Space,
    Texture,
)

FILLED = Manifest(
    compilers=(Compiler("nvrtc", "12.9", ("-DN=4", "-lineinfo"), "compute_75"),),
    events=(Event("copy", 4096, "HtoD", "data"), Event("launch", launch=0)),
    launches=(
        launch(
            arguments=(
                Argument("data", "float*", "data"),
                Argument("n", "unsigned long long", 2**64 - 1),
                Argument("scale", "float", 0.5),
            ),
            arrays=(DEVICE_ARRAY, Array("tile", Space.SHARED, 0, 4096, 4, (32, 32))),
            textures=(
                Texture("image", "f32", (2, 2), ("clamp", "wrap"), "linear", True, "element"),
            ),
            resources=(Resources("sm_75", 32, 4096, 0, 360),),
            source="größe.cu",
        ),
    ),
    sources={"größe.cu": "// \N{GREEK SMALL LETTER LAMDA}\n", "b.h": "\udc80"},
)


def manifest(**changes: object) -> str:
    """The JSON text of FILLED with keys changed."""
    return json.dumps(json.loads(to_json(FILLED)) | changes)


def test_a_manifest_comes_back_as_it_was() -> None:
    assert Unread(to_json(FILLED), "m").manifest() == FILLED


def test_the_text_is_ascii_and_a_space_is_its_name() -> None:
    text = to_json(FILLED)
    assert text.isascii()
    assert json.loads(text)["launches"][0]["arrays"][1]["space"] == "shared"


def test_the_order_of_sources_does_not_show() -> None:
    forward = Manifest(sources={"a": "1", "b": "2"})
    backward = Manifest(sources={"b": "2", "a": "1"})
    assert to_json(forward) == to_json(backward)


def test_a_float_that_json_lacks_is_kept_as_text() -> None:
    values = (float("inf"), float("-inf"), float("nan"))
    arguments = tuple(Argument("x", "float", value) for value in values)
    kept = Unread(to_json(Manifest(launches=(launch(arguments=arguments),))), "m").manifest()
    assert [a.value for a in kept.launches[0].arguments] == ["inf", "-inf", "nan"]


def test_keys_with_a_default_may_be_missing() -> None:
    assert Unread('{"format_version": 1}', "m").manifest() == Manifest()


def test_a_newer_format_says_to_update() -> None:
    text = manifest(format_version=FORMAT_VERSION + 1)
    with pytest.raises(CutraceError, match=r"^m: trace format 2, but .* up to 1: update cutrace"):
        Unread(text, "m").manifest()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "m: not JSON"),
        ('{"format_version": 1', "m: not JSON"),
        ('{"format_version": 1, "x": NaN}', "NaN is not a JSON number"),
        ("[" * 9_000, "m: not JSON"),
        ("[" * 100_000, "m: 100000 lists in 100000 bytes, more than any manifest has"),
        ('{"format_version": 1, "x": ' + "9" * 5000 + "}", "m: not JSON"),
        ("[]", "no `format_version`: this is not a manifest"),
        ("{}", "no `format_version`: this is not a manifest"),
        ('{"format_version": "1"}', "no `format_version`: this is not a manifest"),
        ('{"format_version": 0}', "no `format_version`: this is not a manifest"),
    ],
)
def test_what_is_no_manifest_is_refused(text: str, message: str) -> None:
    with pytest.raises(CutraceError, match=message):
        Unread(text, "m").manifest()


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(CutraceError, match="m: unknown key `evnts`; nearest: events"):
        Unread(manifest(evnts=[]), "m").manifest()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"events": [{"bytes": 4}]}, r"m: events\[0\]: the key `kind` is missing"),
        ({"events": [{"kind": 4}]}, r"events\[0\]\.kind: expected a text, found 4"),
        ({"events": [{"kind": "copy", "bytes": True}]}, r"bytes: expected an integer, found True"),
        ({"events": [{"kind": "copy", "bytes": 4.0}]}, r"bytes: expected an integer, found 4\.0"),
        ({"events": {}}, r"events: expected a list, found \{\}"),
        ({"sources": {"a": 1}}, r"sources\['a'\]: expected a text, found 1"),
        ({"sources": []}, r"sources: expected a table of keys, found \[\]"),
        ({"events": [{"kind": "copy", "bytes": 2**64}]}, r"bytes: 18446744073709551616 has more t"),
        ({"sources": {"a" * 99: 1}}, r"sources\['a{60}'\]: expected a text, found 1$"),
        ({"sources": {"a" * 10**6: ""}}, r"sources: 'a+\.\.\.a+' has 1000000 characters; 131072"),
        ({"compilers": [{"name": "a" * 10**6}]}, r"compilers\[0\]\.name: .* has 1000000 char"),
        ({"a" * 10**6: 1}, r"m: unknown key `a{60}`$"),
        ({"launches": ["a" * 10**6]}, r"launches\[0\]: expected a table of keys, found 'a.{0,60}$"),
        ({"launches": [1]}, r"launches\[0\]: expected a table of keys, found 1"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(changes: dict[str, object], message: str) -> None:
    with pytest.raises(CutraceError, match=message):
        Unread(manifest(**changes), "m").manifest()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("grid", [1, 1], r"launches\[0\]\.grid: 2 values, expected 3"),
        ("arguments", [{"name": "n", "type": "int", "value": None}], "expected a text or an integ"),
        ("arrays", [{"name": "a", "space": "shard", "offset": 0, "bytes": 4}], "`shard` is not a"),
    ],
)
def test_a_wrong_value_of_a_launch_is_named(key: str, value: object, message: str) -> None:
    broken = json.loads(to_json(FILLED))
    broken["launches"][0][key] = value
    with pytest.raises(CutraceError, match=message):
        Unread(json.dumps(broken), "m").manifest()


def test_a_launch_has_the_keys_in_which_it_differs_from_the_one_before_of_its_kernel() -> None:
    first = FILLED.launches[0]
    other = replace(first, kernel="other")
    second = replace(first, grid=(7, 1, 1), source="")
    whole = replace(FILLED, launches=(first, other, second, second))
    kept = json.loads(to_json(whole))["launches"]
    assert kept[2:] == [{"like": 0, "grid": [7, 1, 1], "source": ""}, {"like": 2}]
    assert Unread(to_json(whole), "m").manifest() == whole


def test_what_equals_its_default_is_left_out() -> None:
    assert json.loads(to_json(FILLED))["events"][1] == {"kind": "launch", "launch": 0}


@pytest.mark.parametrize("like", [0, 1, -1, "0", True])
def test_a_launch_is_like_an_earlier_one_only(like: object) -> None:
    text = json.dumps({"format_version": 1, "launches": [{"like": like}]})
    with pytest.raises(CutraceError, match=r"launches\[0\].like: .*expected a launch before"):
        Unread(text, "m").manifest()
