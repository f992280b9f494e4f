"""Every field of a texture's descriptor takes effect, or creation fails by the field's name."""

from pathlib import Path

import pytest
from program_run import HEAD, record_built

SOURCE = (
    HEAD
    + """
__global__ void sample(float4 *out, cudaTextureObject_t t, float x)
{ *out = tex2D<float4>(t, x, 1); }
static float4 *out;
static cudaArray_t array;
static cudaResourceDesc resource;
static void show(const cudaTextureDesc &how, const cudaResourceViewDesc *view = nullptr)
{
    cudaTextureObject_t t;
    cudaError_t error = cudaCreateTextureObject(&t, &resource, &how, view);
    printf("%s", cudaGetErrorName(error));
    if (!error) {
        sample<<<1, 1>>>(out, t, 1), sample<<<1, 1>>>(out + 1, t, -2);
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < 2; ++i)
            printf(" | %g %g %g %g", out[i].x, out[i].y, out[i].z, out[i].w);
    }
    printf("\\n");
}
int main(int, char **words)
{
    CHECK(cudaMallocManaged(&out, 64));
    unsigned texels[16];
    for (unsigned &each : texels)
        each = 0x660033ff; // red 255, green 51, blue 0, alpha 102
    auto format = cudaCreateChannelDesc<uchar4>();
    CHECK(cudaMallocArray(&array, &format, 4, 4));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, texels, 16, 16, 4, cudaMemcpyHostToDevice));
    resource.res.array.array = array;
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeBorder;
    how.readMode = cudaReadModeNormalizedFloat;
    if (!strcmp(words[1], "border")) {
        for (float &each : how.borderColor) each = 0.5f;
        show(how);
        how.sRGB = 1;
        show(how);
        return 0;
    }
    if (!strcmp(words[1], "errors")) {
        how.readMode = cudaReadModeElementType, how.filterMode = cudaFilterModeLinear;
        show(how);
        how.filterMode = cudaTextureFilterMode(2);
        show(how);
        how.filterMode = cudaFilterModePoint, how.addressMode[0] = cudaTextureAddressMode(7);
        show(how);
        how.addressMode[0] = cudaAddressModeBorder, how.addressMode[2] = cudaTextureAddressMode(7);
        how.seamlessCubemap = 1;
        show(how);
        resource.res.array.array = nullptr;
        show(how);
        how.seamlessCubemap = 0, how.readMode = cudaReadModeNormalizedFloat;
        auto words = cudaCreateChannelDesc<float>();
        CHECK(cudaMallocArray(&resource.res.array.array, &words, 4, 4));
        show(how);
        return 0;
    }
    cudaResourceViewDesc view = {};
    view.width = view.height = 4;
    view.format = cudaResViewFormatUnsignedChar4;
    if (!strcmp(words[1], "anisotropy")) how.maxAnisotropy = 2;
    if (!strcmp(words[1], "format")) view.format = cudaResViewFormatFloat1;
    show(how, &view);
}
"""
)


# of an NVIDIA H200: green 51 is 0.2, as sRGB 17 / 512; a border of 0.5 is 127 / 255, as sRGB 188,
# which is 129 / 256. Alpha is linear: 102 is 0.4, and 0.5 is 127 / 255
def test_srgb_and_border_color_are_the_chips(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "border")
    assert done.out.splitlines() == [
        "cudaSuccess | 1 0.2 0 0.4 | 0.498039 0.498039 0.498039 0.498039",
        "cudaSuccess | 1 0.0332031 0 0.4 | 0.503906 0.503906 0.503906 0.498039",
    ], done.err


# what an H200 answers: a border in each mode of reading, and codes of fields that do not fit
def test_fields_that_do_not_go_together_have_the_chips_errors(tmp_path: Path) -> None:
    done = record_built(tmp_path, SOURCE, "errors")
    assert done.out.split() == [
        *("cudaErrorInvalidFilterSetting", "cudaErrorInvalidValue", "cudaErrorInvalidValue"),
        *("cudaErrorInvalidValue", "cudaErrorInvalidResourceHandle", "cudaErrorInvalidNormSetting"),
    ], done.err


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ("anisotropy", "cudaTextureDesc.maxAnisotropy is 2"),
        ("format", "cudaResourceViewDesc.format is 22"),
    ],
)
def test_a_field_without_effect_is_refused_by_its_name(
    tmp_path: Path, part: str, field: str
) -> None:
    done = record_built(tmp_path, SOURCE, part)
    assert done.out == "cudaErrorNotSupported\n"
    assert field in done.err
