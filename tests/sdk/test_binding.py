from typing import Any

import pytest

from placet.binding import Binding
from placet.errors import ApprovedArgumentsRejected


def pay(recipient: str, amount: float = 1.0, *, urgent: bool = False) -> None: ...


def test_arguments_names_everything_and_applies_defaults() -> None:
    assert Binding.of(pay).arguments(("GB29",), {"urgent": True}) == {
        "recipient": "GB29",
        "amount": 1,
        "urgent": True,
    }


def test_arguments_are_copies_read_back_from_their_canonical_bytes() -> None:
    lines = [{"n": 2.0}, (1, 2)]
    bound = Binding.of(lambda lines: lines).arguments((lines,), {})
    assert bound == {"lines": [{"n": 2}, [1, 2]]}
    assert type(bound["lines"][0]["n"]) is int
    lines.append("later")
    assert len(bound["lines"]) == 2


def test_arguments_with_free_keywords_takes_them_by_name() -> None:
    def search(query: str, **filters: Any) -> None: ...

    assert Binding.of(search).arguments(("x",), {"year": 2026}) == {"query": "x", "year": 2026}


def test_arguments_that_are_no_json_names_function_and_argument() -> None:
    with pytest.raises(TypeError, match=r"pay: argument recipient is a .*object"):
        Binding.of(pay).arguments((object(),), {})


def test_arguments_that_do_not_fit_is_pythons_own_error() -> None:
    with pytest.raises(TypeError, match="recipient"):
        Binding.of(pay).arguments((), {})


def test_of_a_function_with_nameless_arguments_refuses() -> None:
    with pytest.raises(TypeError, match="need names"):
        Binding.of(lambda *parts: parts)


def test_call_with_positional_only_parameters_fits_them() -> None:
    def divide(a: int, b: int, /, *, digits: int = 2) -> float:
        return round(a / b, digits)

    bound = Binding.of(divide).call({"b": 3, "a": 1, "digits": 1})
    assert divide(*bound.args, **bound.kwargs) == 0.3


@pytest.mark.parametrize("arguments", [{}, {"recipient": "x", "colour": "red"}])
def test_call_with_arguments_that_do_not_fit_refuses(arguments: dict[str, Any]) -> None:
    with pytest.raises(ApprovedArgumentsRejected, match="pay"):
        Binding.of(pay).call(arguments)
