"""Checks without limits in every format: what fails there is no success to whoever reads it."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cutrace.commands._main import run

FORMATS = ("json", "junit", "sarif", "gitlab", "markdown", "github")
KERNELS = {
    "races": (
        "// cutrace: k<<<1, 64>>>(x:f32[64])\n__global__ void k(float *x)\n{\n"
        "    __shared__ float t[64];\n    t[threadIdx.x] = x[threadIdx.x];\n"
        "    x[threadIdx.x] = t[63 - threadIdx.x];\n}\n",
        5,
    ),
    "memory": (
        "// cutrace: k<<<1, 64>>>(x:f32[16])\n__global__ void k(float *x)\n{\n"
        "    x[threadIdx.x] = 1;\n}\n",
        4,
    ),
}


def failures(format: str, text: str) -> list[tuple[str, str, int]]:
    """The kind, file and line of what a report says has failed."""
    if format == "json":
        checks = [each for each in json.loads(text)["checks"] if not each["holds"]]
        places = [each["place"].split(":") for each in checks]
        return [(c["check"], p[0], int(p[1])) for c, p in zip(checks, places, strict=True)]
    if format == "junit":
        suite = ElementTree.fromstring(text)
        assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
        cases = [case for case in suite if case.find("failure") is not None]
        lines = [
            int(str(case[0].text).partition("k.cu:")[2].split()[0].strip(":")) for case in cases
        ]
        return [(c.attrib["name"], "k.cu", n) for c, n in zip(cases, lines, strict=True)]
    if format == "sarif":
        found = []
        for result in json.loads(text)["runs"][0]["results"]:
            place = result["locations"][0]["physicalLocation"]
            line = place["region"]["startLine"]
            found.append((result["ruleId"], place["artifactLocation"]["uri"], line))
        return found
    if format == "gitlab":
        return [
            (each["check_name"], each["location"]["path"], each["location"]["lines"]["begin"])
            for each in json.loads(text)
        ]
    if format == "markdown":
        rows = [row.split(" | ") for row in text.splitlines() if row.startswith("| **broken**")]
        return [(r[1], r[2], int(r[-1].strip(" |").rpartition(":")[2])) for r in rows]
    marks = [line for line in text.splitlines() if line.startswith("::error ")]
    fields = [dict(part.split("=") for part in m[8:].split("::")[0].split(",")) for m in marks]
    return [(f["title"].split()[1], f["file"], int(f["line"])) for f in fields]


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("is_project", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_a_check_that_fails_is_in_every_report(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    is_project: bool,
    format: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    text, line = KERNELS[kind]
    Path("k.cu").write_text(text)
    check = '[[check]]\nsource = "k.cu"\nraces = true\nmemory = true\n'
    Path("cutrace.toml").write_text(f'devices = ["h100"]\n{check}')
    words = [] if is_project else ["k.cu", "--races", "--memory"]
    assert run(["check", *words, "--format", format]) == 1
    assert failures(format, capsys.readouterr().out) == [(kind, "k.cu", line)]
    Path("k.cu").write_text("// cutrace: k<<<1, 1>>>(x:f32[1])\n__global__ void k(float *x) {}\n")
    assert run(["check", *words, "--format", format]) == 0
    said = capsys.readouterr().out
    assert failures(format, said) == []
    if format in ("json", "junit", "markdown"):
        assert said.count("races") >= 1
