"""Template instances found in the text: by launch, through macros, classes and deduction."""

import pytest

from cutrace.tracer.front.syntax.instance import used_instances, write_out_launches

COPY = "template <class T> __global__ void copy(const T *__restrict__ a, T *c) {}\n"


def test_constants_and_types_of_the_launching_function_are_replaced() -> None:
    text = (
        "template <class T, int N> __global__ void k(T *a) {}\n"
        "void f() { const int n = 16; typedef float real; using whole = int; enum { m = 8 };\n"
        "  k<real, n><<<1, 2>>>(a); k<whole, 2 * n><<<1, 2>>>(a); k<int, m><<<1, 2>>>(a); }\n"
    )
    assert used_instances(text) == ("k<float, 16>", "k<int, 2 * 16>", "k<int, (8)>")


def test_a_function_template_launches_for_each_of_its_own_instances() -> None:
    text = (
        "template <class T, int N> __global__ void k(T *a) {}\n"
        "template <class T> void inner(T *a) { k<T, 4><<<1, 2>>>(a); }\n"
        "template <class T> void outer(T *a) { inner<T>(a); }\n"
        "template void outer<short>(short *);\n"
        "int main() { outer<float>(x); inner<double>(y); }\n"
    )
    assert set(used_instances(text)) == {"k<short, 4>", "k<float, 4>", "k<double, 4>"}


def test_a_kernel_in_namespaces_is_asked_for_by_its_whole_name() -> None:
    text = (
        f"namespace a {{ namespace b::c {{ namespace {{ {COPY} }} }}\n"
        "void f(int *x) { b::c::copy<short><<<1, 2>>>(x, x); } }\n"
        "int main() { float *d; a::b::c::copy<<<1, 2>>>(d, d); }\n"
    )
    assert used_instances(text) == ("a::b::c::copy<short>", "a::b::c::copy<float>")


def test_a_method_of_a_class_template_launches_for_each_class() -> None:
    text = (
        f"{COPY}template <class R> struct Estimator {{ void run(R *a); }};\n"
        "template <class R> void Estimator<R>::run(R *a) { copy<R><<<1, 2>>>(a, a); }\n"
        "template class Estimator<float>;\n"
        "int main() { Estimator<double> e; }\n"
    )
    assert {"copy<float>", "copy<double>"} <= set(used_instances(text))


@pytest.mark.parametrize(
    ("declared", "passed", "deduced"),
    [
        ("float *d = 0;", "d, d", "float"),
        ("unsigned int *d, *e;", "d + 4, e", "unsigned int"),
        ("const double *d;", "d, 0", "double"),
        ("short d[4];", "d, d", "short"),
        ("short d[4];", "&d[1], d", "short"),
        ("int *d[2];", "d[0], d[1]", "int"),
        ("void *d;", "(char *)d, d", "char"),
        ("void *d;", "static_cast<float4 *>(d), d", "float4"),
        ("thrust::device_vector<long> v(3);", "thrust::raw_pointer_cast(v.data()), q", "long"),
        ("thrust::device_vector<long> v(3);", "thrust::raw_pointer_cast(&v[0]), q", "long"),
        ("struct S { half *in; }; S s;", "s.in, q", "half"),
    ],
)
def test_arguments_are_deduced_from_what_is_passed(
    declared: str, passed: str, deduced: str
) -> None:
    text = f"{COPY}int main() {{ {declared} copy<<<1, 2>>>({passed}); }}"
    assert used_instances(text) == (f"copy<{deduced}>",)


@pytest.mark.parametrize("made", ["Twice{}", "Twice()", "Times<int>{3}", "Times<int>(3)"])
def test_a_functor_made_where_it_is_passed_tells_its_type(made: str) -> None:
    text = (
        "struct Twice {};\ntemplate <class T> struct Times { T by; };\n"
        "template <class F> __global__ void apply(float *a, F f) { a[0] = 0; }\n"
        f"int main() {{ float *a; apply<<<1, 2>>>(a, {made}); }}\n"
    )
    kind = "Twice" if made.startswith("Twice") else "Times<int>"
    assert used_instances(text) == (f"apply<{kind}>",)


def test_what_is_written_comes_before_what_is_deduced() -> None:
    text = (
        "struct Put { double k; };\n"
        "template <int N, class P> __global__ void paths(P payoff, const double *x) {}\n"
        "template <class P> void run(const P &p, double *x) { paths<8><<<1, 2>>>(p, x + 1); }\n"
        "int main() { run(Put(3), x); }\n"
    )
    assert used_instances(text) == ("paths<8, Put>",)


def test_what_cannot_be_told_is_left_open() -> None:
    assert used_instances(f"{COPY}int main() {{ copy<<<1, 2>>>(unknown(), 0); }}") == ()


def test_launches_in_macros_are_written_out() -> None:
    text = (
        "template <class T, bool B> __global__ void k(T *a) {}\n"
        "#define CASE(SIGN, ...) k< \\\n  real, SIGN><<<grid, block>>>(__VA_ARGS__); sync()\n"
        "#define SWITCH(flag) switch (flag) { case 1: CASE(true, a); default: CASE(false, b); }\n"
        "#define PLAIN(x) ((x) + 1)\n"
        "template <class real> void run(int n) { SWITCH(PLAIN(n)) }\n"
        "int main() { run<float>(3); }\n"
    )
    assert set(used_instances(text)) == {"k<float, true>", "k<float, false>"}
    assert "PLAIN(n)" in write_out_launches(text)


def test_macros_that_call_themselves_end() -> None:
    text = "#define A(x) <<<1>>> A(x)\nint main() { A(1); }\n"
    assert write_out_launches(text).count("<<<") > 1


def test_a_text_without_launching_macros_stays_as_it_is() -> None:
    text = "#define F(x) x\nint main() { F(1); }\n"
    assert write_out_launches(text) == text
