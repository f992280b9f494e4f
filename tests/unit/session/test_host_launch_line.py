import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.session.source.launch_line import ArrayArgument, NumberArgument, parse_launch


def test_the_line_of_the_documentation_reads_as_written() -> None:
    line = parse_launch("reverseArrayBlock<<<1024, 256>>>(out:i32[262144], in:i32[262144]=arange)")
    assert (line.kernel, line.grid, line.block, line.shared) == (
        "reverseArrayBlock",
        (1024,),
        (256,),
        0,
    )
    assert line.arguments == (
        ArrayArgument("out", 34, "i32", (262144,), ""),
        ArrayArgument("in", 51, "i32", (262144,), "arange"),
    )


@pytest.mark.parametrize("dims", ["(20,100)", "dim3(20, 100)", "( 20 , 100 )", "(5*4, 10*9 + 2*5)"])
def test_a_grid_of_two_sizes_may_be_written_as_a_tuple_or_dim3(dims: str) -> None:
    assert parse_launch(f"k<<<{dims}, (3,3,3)>>>()").grid == (20, 100)


def test_shared_bytes_come_third_and_a_stream_fourth() -> None:
    line = parse_launch("k<<<1, 32, 4*1024, 0>>>();")
    assert line.shared == 4096
    assert line.arguments == ()


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("mm<16><<<1, 32>>>()", "mm<16>"),
        ("mm<16> <<<1, 32>>>()", "mm<16>"),
        ("ns::scale<float, 4><<<1, 32>>>()", "ns::scale<float, 4>"),
        ("k<pair<int, 3>, true><<<1, 32>>>()", "k<pair<int, 3>, true>"),
        ("_Z3revPiPKi<<<1, 32>>>()", "_Z3revPiPKi"),
    ],
)
def test_kernels_are_named_as_in_cuda_with_their_template_arguments(text: str, kernel: str) -> None:
    assert parse_launch(text).kernel == kernel


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64", 64),
        ("-1", -1),
        ("0xff", 255),
        ("16u", 16),
        ("1.5f", 1.5),
        ("1f", 1.0),
        ("-2.5e-3", -0.0025),
        (".5", 0.5),
        ("3.", 3.0),
        ("1e3", 1000.0),
        ("true", True),
        ("nullptr", None),
    ],
)
def test_numbers_are_written_as_in_c(text: str, value: int | float | None) -> None:
    (argument,) = parse_launch(f"k<<<1, 1>>>({text})").arguments
    assert argument == NumberArgument(value, 13)
    assert type(argument.value) is type(value)


def test_arrays_have_several_dimensions_and_files_or_seeds_to_start_with() -> None:
    line = parse_launch(
        'k<<<1,1>>>(a:f16[4,8,2]=random:7, b:u8[16]=in.npy, c:f64[1]="a, b.npy", a)'
    )
    assert line.arguments == (
        ArrayArgument("a", 12, "f16", (4, 8, 2), "random:7"),
        ArrayArgument("b", 35, "u8", (16,), "in.npy"),
        ArrayArgument("c", 52, "f64", (1,), "a, b.npy"),
        ArrayArgument("a", 73),
    )


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("reverse(1)", 1, "expected a kernel and `<<<`"),
        ("k<<<0, 1>>>()", 5, "expected 1 or more"),
        ("k<<<(1,2,3,4), 1>>>()", 5, "one to three sizes, got 4"),
        ("k<<<4>>>()", 6, "expected `,`, got `>>>()`"),
        ("k<<<4, 256>>(a)", 11, "expected `>>>`, got `>>(a)`"),
        ("k<<<4, 256>>>(out:int32[4])", 19, "got `int32`; nearest: i32"),
        ("k<<<4, 256>>>(out:i32)", 22, "expected `[`, as in out:i32[1024]; a number stands alone"),
        ("k<<<4, 256>>>(out:double[4])", 19, "got `double`; nearest: f64"),
        ("k<<<4, 256>>>(out:i32[4]=ones)", 26, "expected one of zeros, arange"),
        ("k<<<4, 256>>>(out:i32[4]=random)", 26, "nearest: random:SEED"),
        ("k<<<4, 256>>>(out:i32[4]=random)", 26, "random floats are in [0, 1), integers from 0"),
        ("k<<<4, 256>>>(out:i32[4] 5)", 26, "expected `,` or `)`, got `5)`"),
        ("k<<<4, 256>>>(1, )", 18, "expected a number, or an array"),
        ("k<<<4, 256>>>(1", 16, "expected `,` or `)`, got `the end of the line`"),
        ("k<<<4, 256>>>(1) x", 18, "expected nothing more, got `x`"),
        ("k<<<4, 256>>>(12abc)", 15, "expected a number, or an array"),
    ],
)
def test_an_error_points_at_its_column_and_says_what_was_expected(
    text: str, column: int, expected: str
) -> None:
    with pytest.raises(CutraceError) as raised:
        parse_launch(text)
    message, shown, caret = str(raised.value).split("\n")
    assert message.startswith(f"launch line, column {column}: ")
    assert expected in message
    assert shown == f"  {text}"
    assert caret == " " * (column + 1) + "^"
