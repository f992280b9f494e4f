"""The parameters that a random kernel may have, in order, as C declares them."""

PARAMETERS = {
    "out_i": "int *out_i", "out_u": "unsigned *out_u", "out_l": "long long *out_l",
    "out_f": "float *out_f", "out_d": "double *out_d", "out_b": "unsigned char *out_b",
    "out_h": "short *out_h", "own": "unsigned *own", "own_h": "unsigned *own_h",
    "own_s": "unsigned short *own_s", "own_c": "unsigned char *own_c", "sum_h": "unsigned *sum_h",
    "sum_s": "unsigned short *sum_s", "max_h": "unsigned *max_h", "sum_u": "unsigned *sum_u",
    "sum_l": "unsigned long long *sum_l", "in_i": "const int *in_i", "in_u": "const unsigned *in_u",
    "in_f": "const float *in_f", "in_d": "const double *in_d", "in_b": "const unsigned char *in_b",
    "in_l": "const long long *in_l",
    "n": "int n", "w": "unsigned w", "scale": "float scale", "wide": "long long wide",
    **{name: f"cudaTextureObject_t {name}" for name in ("tex_u", "tex_f", "tex_w", "tex_3")},
    "tex_l": "cudaTextureObject_t tex_l", "surf": "cudaSurfaceObject_t surf",
}  # fmt: skip
