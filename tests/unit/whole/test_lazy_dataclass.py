"""What `lazy_dataclass` makes is what the standard library makes: each class is made by both."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any, ClassVar

import pytest

from cutrace.base import dataclass as lazy_dataclass

MAKERS: list[Any] = [dataclasses.dataclass, lazy_dataclass.dataclass]
Pair = tuple[Any, Any]


def both(make: Callable[[Any], Any]) -> Pair:
    """One class made by the standard library's decorator and by ours."""
    first, second = map(make, MAKERS)
    return first, second


def point(dataclass: Any, **how: bool) -> Any:
    @dataclass(**how)
    class Point:
        """A point."""

        count: ClassVar[int] = 0
        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list, compare=False)
        hidden: int = field(default=7, repr=False)
        area: int = field(init=False, compare=False)
        last: int = field(default=1, kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "area", self.x * self.y)

    return Point


FORMS = [
    dict(frozen=frozen, slots=slots, eq=eq, repr=shown)
    for frozen in (False, True)
    for slots in (False, True)
    for eq in (False, True)
    for shown in (False, True)
]


@pytest.fixture(params=FORMS, ids=lambda how: " ".join(k for k, on in how.items() if on) or "bare")
def points(request: pytest.FixtureRequest) -> tuple[Pair, dict[str, bool]]:
    how: dict[str, bool] = request.param
    return both(lambda dataclass: point(dataclass, **how)), how


def test_fields_defaults_and_signatures_are_the_same(
    points: tuple[Pair, dict[str, bool]],
) -> None:
    (theirs, ours), _ = points
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    for given, named in (((3,), {}), ((3, 4, ["a"], 8), {"last": 5}), ((), {"x": 1, "y": 0})):
        a, b = theirs(*given, **named), ours(*given, **named)
        assert [getattr(a, f.name) for f in fields(a)] == [getattr(b, f.name) for f in fields(b)]
    assert ours(1).tags is not ours(1).tags
    assert ours.__match_args__ == theirs.__match_args__


def test_wrong_arguments_are_refused_in_the_same_words(
    points: tuple[Pair, dict[str, bool]],
) -> None:
    for given, named in (((), {}), ((1, 2, [], 4, 5), {}), ((1,), {"z": 1})):
        said = []
        for each in points[0]:
            with pytest.raises(TypeError) as refused:
                each(*given, **named)
            said.append(str(refused.value))
        assert said[0] == said[1]


def test_values_are_compared_hashed_and_shown_the_same(
    points: tuple[Pair, dict[str, bool]],
) -> None:
    (theirs, ours), how = points
    assert ours(1) != theirs(1)
    assert (ours(1) == ours(1, tags=["other"])) == how["eq"]
    assert ours(1) != ours(1, last=2)
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    if how["eq"] and how["frozen"]:
        assert hash(ours(1)) == hash(ours(1, tags=["other"])) != hash(ours(2))
    if how["repr"]:
        assert repr(ours(1)) == repr(theirs(1))


def test_frozen_ones_refuse_to_change_in_the_same_words(
    points: tuple[Pair, dict[str, bool]],
) -> None:
    (theirs, ours), how = points
    if not how["frozen"]:
        changed = ours(1)
        changed.x = 5
        assert changed.x == 5
        return
    said = []
    for each in (theirs, ours):
        with pytest.raises(FrozenInstanceError) as refused:
            setattr(each(1), "x", 5)  # noqa: B010
        with pytest.raises(FrozenInstanceError) as kept:
            delattr(each(1), "x")
        said.append((str(refused.value), str(kept.value)))
    assert said[0] == said[1]


def test_replace_and_copy_keep_the_class(points: tuple[Pair, dict[str, bool]]) -> None:
    (_, ours), _ = points
    assert replace(ours(3), y=5).area == 15
    assert copy.copy(ours(3)).area == 6


@lazy_dataclass.dataclass(frozen=True, slots=True)
class Base:
    """Pickled, and inherited from."""

    x: int


@lazy_dataclass.dataclass(frozen=True, slots=True)
class Derived(Base):
    """Has a field more, and its own hash."""

    y: int = 0

    def __hash__(self) -> int:
        return 11


def test_frozen_values_with_slots_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Derived(1, 2))) == Derived(1, 2)


def test_a_subclass_has_the_fields_of_both_and_what_it_says_itself() -> None:
    assert repr(Derived(1, 2)) == "Derived(x=1, y=2)"
    assert hash(Derived(1, 2)) == 11
    assert Base(1) != Derived(1)
    assert hash(Base(4)) == hash(Base(4))


def test_methods_are_not_written_before_the_first_value_is_made() -> None:
    @lazy_dataclass.dataclass(frozen=True)
    class Late:
        """Made once, below."""

        x: int

    assert not inspect.isfunction(vars(Late)["__init__"])
    assert Late(3).x == 3
    assert inspect.isfunction(vars(Late)["__init__"])
