from cutrace.tracer.session.source.launch_line import LaunchComment, find_launch_comments


def test_comments_are_found_in_order_with_their_lines() -> None:
    source = """// Reverses.
// cutrace: a<<<1, 32>>>(x:i32[32])
__global__ void a(int *x) { }  // cutrace is a word here
    //cutrace:b<<<2, 32>>>()
"""
    assert find_launch_comments(source) == (
        LaunchComment(2, "a<<<1, 32>>>(x:i32[32])"),
        LaunchComment(4, "b<<<2, 32>>>()"),
    )


def test_an_open_parenthesis_goes_on_in_the_next_comment_line() -> None:
    source = """// cutrace: a<<<1, 32>>>(x:i32[32],
//     y:f32[32]=arange,
//     64)
// and prose
"""
    assert find_launch_comments(source) == (
        LaunchComment(1, "a<<<1, 32>>>(x:i32[32], y:f32[32]=arange, 64)"),
    )


def test_an_open_parenthesis_ends_where_the_comments_end() -> None:
    source = "// cutrace: a<<<1, 32>>>(x:i32[32],\n__global__ void a();\n"
    assert find_launch_comments(source) == (LaunchComment(1, "a<<<1, 32>>>(x:i32[32],"),)


def test_a_source_without_launch_comments_has_none() -> None:
    assert find_launch_comments("// cutrace\n// cu trace: k<<<1, 1>>>()\n") == ()
