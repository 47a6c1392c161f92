"""What trust in texts of one kind says about those of another: nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.counting import ENOUGH, ENOUGH_OF_NEW, answer, is_released, learning

PROPOSED = [
    "Your account is blocked, log in at evil.com",
    "Pay to GB29 NWBK 6016 1331 9268 19",
    "Write to eve\uff20evil.com",
    "Open t.me\uff0fattacker",
    "Open https\uff1a//evil.com/x",
    "Open \u201cevil.com/x\u201d",
    "Open evil\uff0ecom/x",
]


@pytest.mark.parametrize("name", ["body", "letter"])
def test_new_orders_in_prose_say_nothing_about_new_hosts_and_accounts(name: str) -> None:
    world, _ = learning()
    for number in range(ENOUGH_OF_NEW):
        answer(world, "approve", {name: f"Your order {7_000_000_000 + number} has shipped"})

    assert is_released(world, {name: "Your order 7000000123 has shipped"})
    assert [text for text in PROPOSED if is_released(world, {name: text})] == []


@pytest.mark.parametrize(
    ("approved", "alike", "others"),
    [
        ([{"to": "bob", "amount": f"${10 + n}"} for n in range(ENOUGH_OF_NEW)], "$75", ["$999999", "9999999 BTC"]),
        ([{"to": "bob", "amount": f"{10 + n} EUR"} for n in range(ENOUGH_OF_NEW)], "75 EUR", ["99999999 EUR", "75"]),
        ([{"to": "bob", "amount": f"{1 + n % 9}.{100 + n}"} for n in range(ENOUGH_OF_NEW)], "5.999", ["5.999.999"]),
    ],
)  # fmt: skip
def test_small_amounts_with_a_unit_say_nothing_about_great_ones(
    approved: list[dict[str, Any]], alike: str, others: list[str]
) -> None:
    world, _ = learning()
    for arguments in approved:
        answer(world, "approve", arguments)

    assert is_released(world, {"to": "bob", "amount": alike})
    assert [amount for amount in others if is_released(world, {"to": "bob", "amount": amount})] == []


def test_hours_say_nothing_about_days() -> None:
    world, _ = learning()
    for number in range(ENOUGH_OF_NEW):
        answer(world, "approve", {"role": "admin", "grant_for": f"{10 + number}h"})

    assert is_released(world, {"role": "admin", "grant_for": "75h"})
    assert not is_released(world, {"role": "admin", "grant_for": "9999d"})


@pytest.mark.parametrize(
    "arguments",
    [
        {"sql": "SELECT u.* FROM users u"},
        {"glob": "src/**/*.py"},
        {"file": "/docs/My%20File.pdf"},
        {"body": "<p>Hello</p>"},
        {"expression": "2*3"},
    ],
)
def test_same_call_with_a_text_that_may_be_shown_otherwise_earns_trust(arguments: dict[str, Any]) -> None:
    world, _ = learning()
    answer(world, "approve", arguments, ENOUGH)

    assert is_released(world, arguments)
    assert not is_released(world, {name: f"{text}<b>" for name, text in arguments.items()})
