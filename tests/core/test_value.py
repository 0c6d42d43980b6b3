"""Values of named parts: made, compared and shown as a frozen dataclass would be."""

from __future__ import annotations

from typing import Any

import pytest

from codex_replay.core.value import EMPTY, Value


class Point(Value):
    x: int
    y: int = 0
    about: dict[str, Any] = EMPTY


class Nothing(Value):
    pass


def test_parts_are_given_by_place_or_by_name_and_have_defaults() -> None:
    assert Point(1, 2) == Point(y=2, x=1)
    assert Point(1) == Point(1, 0, {})
    assert (Point(1).x, Point(1).y, Point(1).about) == (1, 0, {})


def test_a_value_differs_by_each_of_its_parts_and_by_its_class() -> None:
    class Other(Value):
        x: int
        y: int = 0
        about: dict[str, Any] = EMPTY

    assert len({id(one) for one in (Point(1), Point(2), Point(1, 1), Point(1, about={"a": 1}))}) == 4
    assert Point(1) not in (Point(2), Point(1, 1), Point(1, about={"a": 1}), Other(1), (1, 0, {}))
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())


def test_a_value_says_what_it_is() -> None:
    assert repr(Point(1, about={"a": 2})) == "Point(x=1, y=0, about={'a': 2})"


def test_a_changed_value_is_another() -> None:
    point = Point(1, 2)
    assert (point.but(y=3), point) == (Point(1, 3), Point(1, 2))
    with pytest.raises(AttributeError):
        point.x = 5  # type: ignore[misc]


class Place(Point):
    name: str


class Named(Place):
    x: int = 7
    more: str = "m"


class Bare(Named):
    pass


def test_a_value_has_the_parts_of_all_above_it_first() -> None:
    """Each part where it was first declared; what a class declares again has a new default, and no second place."""
    assert Place(1, 2, {}, "n") == Place(x=1, y=2, name="n")
    assert repr(Named(name="n")) == "Named(x=7, y=0, about={}, name='n', more='m')"
    assert Bare(1, name="n") != Bare(2, name="n")
    assert Bare(1, name="n").but(y=3) == Bare(1, 3, {}, "n", "m")
    with pytest.raises(TypeError, match="needs the field name"):
        Bare(1)


@pytest.mark.parametrize(
    ("given", "named"),
    [((), {}), ((), {"y": 1}), ((1, 2, {}, 4), {}), ((1,), {"x": 1}), ((1,), {"z": 1}), ((1,), {"_parts": 1})],
)
def test_parts_that_there_are_not_are_refused(given: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Point(*given, **named)
