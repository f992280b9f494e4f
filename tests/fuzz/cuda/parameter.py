"""The parameters that a random kernel may have, in order, as C declares them."""

PARAMETERS = {
    "out_i": "int *out_i", "out_u": "unsigned *out_u", "out_l": "long long *out_l",
    "out_f": "float *out_f", "out_d": "double *out_d", "out_b": "unsigned char *out_b",
    "out_h": "short *out_h", "own": "unsigned *own", "sum_u": "unsigned *sum_u",
    "sum_l": "unsigned long long *sum_l", "in_i": "const int *in_i", "in_u": "const unsigned *in_u",
    "in_f": "const float *in_f", "in_d": "const double *in_d", "in_b": "const unsigned char *in_b",
    "in_l": "const long long *in_l",
    "n": "int n", "w": "unsigned w", "scale": "float scale", "wide": "long long wide",
}  # fmt: skip
