"""The JSON schema of the manifest takes what cutrace writes, and refuses what cutrace refuses."""

import json
import runpy
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hand_trace import Access, hand_trace
from warps import warp

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.traces.manifest import Unread

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "traces" / "manifest.schema.json").read_text())


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The manifest of a session of four launches, one of them like another."""
    folder = tmp_path_factory.mktemp("schema")
    (folder / "k.cu").write_text("__global__ void k(float *a, int n) { a[threadIdx.x] = n; }")
    with cutrace.Session(folder / "a.cutrace", only={"blocks": "0-1"}) as gpu:
        kernel = gpu.compile(folder / "k.cu").get_function("k")
        array = gpu.device_array(256, "f4", "a")
        for blocks in (1, 4, 1, 2):
            kernel[blocks, 32](array, blocks)
        array.copy_to_host()
    return json.loads((folder / "a.cutrace" / "manifest.json").read_text())


def test_the_file_is_what_the_dataclasses_say() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "write" / "manifest_schema.py"))
    assert (ROOT / "traces" / "manifest.schema.json").read_text() == script["text"]()


def test_what_is_recorded_and_what_is_written_by_hand_is_valid(
    manifest: Any, tmp_path: Path
) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(manifest, SCHEMA)
    trace = hand_trace(tmp_path / "b.cutrace", [Access(warp(stride=4))]).path
    jsonschema.validate(json.loads((trace / "manifest.json").read_text()), SCHEMA)
    assert "like" in manifest["launches"][1]


CHANGES: dict[str, Any] = {
    "no version": lambda m: m.pop("format_version"),
    "another version": lambda m: m.update(format_version=2),
    "an unknown key": lambda m: m.update(color="red"),
    "no kernel": lambda m: m["launches"][0].pop("kernel"),
    "a text as a size": lambda m: m["launches"][0].update(local_bytes="8"),
    "a grid of two": lambda m: m["launches"][0].update(grid=[1, 2]),
    "a space that is none": lambda m: m["launches"][0]["arrays"][0].update(space="heap"),
    "a number as a source": lambda m: m["sources"].update(x=1),
    "an unknown key in a launch that is like another": lambda m: m["launches"][1].update(size=1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_cutrace_refuses_the_schema_refuses(manifest: Any, change: str) -> None:
    broken = deepcopy(manifest)
    CHANGES[change](broken)
    with pytest.raises(CutraceError):
        Unread(json.dumps(broken), "manifest.json").manifest()
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)
