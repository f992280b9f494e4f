"""What values are computed from."""

from cutrace.tracer.ptx.digraph import spread


def test_a_property_spreads_to_all_that_is_computed_from_it_in_any_order() -> None:
    steps = [("c", "b", False), ("b", "a", False), ("a", "", True), ("y", "x", False)]
    assert spread(steps) == {"a", "b", "c"}


def test_nothing_spreads_where_it_begins_nowhere() -> None:
    assert spread([("b", "a", False), ("a", "b", False)]) == set()
