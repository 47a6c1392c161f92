"""Arguments with more items than are looked at: nothing of them is read, and little is kept."""

import math
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from services.domain.arguments import SHORT_MAX_CHARS, parsed
from services.domain.policy.identifying import identifying_of
from services.domain.policy.leaves import MAX_DEPTH, MAX_LOOKED_AT, TooMany


class Unread(list[Any]):
    """A list that nobody may read."""

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("the items were read")


class UnreadObject(dict[str, Any]):
    """An object that nobody may read."""

    def items(self) -> Any:
        raise AssertionError("the members were read")


class Name(str):
    """A name that can be watched."""


def test_as_many_places_as_are_looked_at_are_read_and_one_more_is_refused() -> None:
    assert identifying_of({"data": [1] * (MAX_LOOKED_AT - 2)}).values
    with pytest.raises(TooMany):
        identifying_of({"data": [1] * (MAX_LOOKED_AT - 1)})


@pytest.mark.parametrize(
    "large",
    [
        Unread([1] * MAX_LOOKED_AT),
        UnreadObject({str(number): 1 for number in range(MAX_LOOKED_AT)}),
    ],
)
def test_more_items_than_are_looked_at_are_not_read(large: Any) -> None:
    for arguments in ({"data": large}, {"data": [[large]]}, {"data": {"inner": large}}):
        with pytest.raises(TooMany):
            identifying_of(arguments)


def test_items_that_are_too_many_together_are_not_read() -> None:
    with pytest.raises(TooMany):
        identifying_of({"data": [*([1] * (MAX_LOOKED_AT // 2)), Unread([1] * (MAX_LOOKED_AT // 2))]})


def test_members_of_arguments_with_too_many_are_not_read() -> None:
    with pytest.raises(TooMany):
        identifying_of(UnreadObject({str(number): 1 for number in range(MAX_LOOKED_AT)}))


def test_no_list_is_digested_if_one_inside_of_it_has_too_many_items() -> None:
    # NaN has no digest: an attempt would be another error.
    nested: Any = [math.nan, [0] * MAX_LOOKED_AT]
    for _ in range(MAX_DEPTH - 4):
        nested = [math.nan, nested]

    with pytest.raises(TooMany):
        identifying_of({"data": nested}, risk_parts=("runs_code",))


def test_long_name_is_not_kept() -> None:
    name = Name("x" * 300)
    watched = weakref.ref(name)
    identifying_of({name: 1})
    del name

    assert watched() is None


def test_few_long_arguments_are_kept_and_more_short_ones() -> None:
    longs = [f'{{"a":"{number}{"x" * SHORT_MAX_CHARS}"}}' for number in range(20)]
    shorts = [f'{{"a":"{number} short"}}' for number in range(20)]
    first_long, first_short = parsed(longs[0]), parsed(shorts[0])

    assert parsed(longs[0]) is first_long
    for text in (*longs, *shorts):
        parsed(text)
    assert parsed(longs[0]) is not first_long
    assert parsed(longs[0]) == first_long
    assert parsed(shorts[0]) is first_short
