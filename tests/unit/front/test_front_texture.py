"""Texture references become handles with known names; lines stay where they are."""

import re

import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.front import cuda
from cutrace.tracer.front.source import Compiled, Source, TextureReference
from cutrace.tracer.front.texture_reference import is_handle, replace_references

REFERENCES = """
texture<float, 1> table;
texture<uchar4, cudaTextureType2D,
        cudaReadModeNormalizedFloat> image(0, cudaFilterModeLinear), second;
__global__ void look(float *a, int i)
{
    a[0] = tex1Dfetch(table, i);
    a[1] = tex2D(image, a[2], a[3]).x + tex2D(second, 0.5f, 0.5f).w;
}
int main() { cudaBindTexture(0, table, 0, 4); look<<<1, 1>>>(0, 0); }
"""


def compile_text(text: str) -> Compiled:
    return cuda.to_ptx(Source("t.cu", text), "compute_75")


def test_references_are_listed_with_their_types_and_symbols() -> None:
    def handle(name: str) -> str:
        return f"_ZN15cutrace_texture{len(name)}{name}E"

    assert sorted(compile_text(REFERENCES).textures, key=lambda each: each.name) == [
        TextureReference("image", handle("image"), "uchar4", 2, "normalized_float"),
        TextureReference("second", handle("second"), "uchar4", 2, "normalized_float"),
        TextureReference("table", handle("table"), "float", 1, "element"),
    ]


def test_a_fetch_is_a_tex_instruction_through_a_handle_that_can_be_told() -> None:
    ptx = compile_text(REFERENCES).ptx
    assert len(re.findall(r"\ttex\.1d\.v4\.f32\.s32", ptx)) == 1
    assert len(re.findall(r"\ttex\.2d\.v4\.f32\.f32", ptx)) == 2
    loads = re.findall(r"ld\.const\.u64 \t%rd\d+, \[(\w+)\]", ptx)
    assert sorted(loads) == sorted(each.symbol for each in compile_text(REFERENCES).textures)
    assert all(is_handle(symbol) for symbol in loads)
    assert not is_handle("table")


def test_the_fetch_bears_the_line_of_its_call() -> None:
    lines = compile_text(REFERENCES).ptx.splitlines()
    at = next(i for i, line in enumerate(lines) if "tex.1d" in line)
    location = next(line for line in reversed(lines[:at]) if ".loc" in line)
    assert location.split()[1:3] == ["1", "7"]


def test_rewriting_moves_no_line() -> None:
    text, declared = replace_references(REFERENCES)
    before, after = REFERENCES.splitlines(), text.splitlines()
    assert len(before) == len(after)
    assert before[4:] == after[4:]
    assert declared["table"] == ("float", "1")


def test_a_text_without_references_stays_as_it_is() -> None:
    assert replace_references("int texture; // <") == ("int texture; // <", {})


@pytest.mark.parametrize("texel", ["double", "float3", "long long"])
def test_a_type_that_textures_do_not_have_is_refused_at_its_line(texel: str) -> None:
    text = f"\ntexture<{texel}, 1> bad;\n__global__ void k(int *a) {{ tex1Dfetch(bad, a[0]); }}\n"
    with pytest.raises(CutraceError, match="textures have texels of 1, 2 or 4") as caught:
        compile_text(text)
    assert str(caught.value).splitlines()[1].startswith("t.cu(2): error: static assertion failed")
