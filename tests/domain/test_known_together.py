"""What trust releases of values and numbers that people have approved: only what they have approved together."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.counting import (
    ENOUGH,
    ENOUGH_OF_NEW,
    answer,
    held_although_trusted,
    history,
    is_released,
    learning,
    propose,
    word,
)
from tests.domain.steps import decided
from tests.domain.trusting import outcome
from tests.domain.world import the

KINDS = {"properties": {"priority": {"enum": ["low", "high"]}}}


@pytest.mark.parametrize(
    ("approved", "proposed"),
    [
        # A file and a person, each of which was approved with another.
        (
            [{"user": "bob", "file": "menu.pdf"}, {"user": "eve", "file": "salaries.pdf"}],
            {"user": "bob", "file": "salaries.pdf"},
        ),
        # A flag that was approved with another file, and one that was not given then.
        (
            [{"file": "ledger.db", "delete": False}, {"file": "tmp.log", "delete": True}],
            {"file": "ledger.db", "delete": True},
        ),
        ([{"file": "ledger.db"}, {"file": "tmp.log", "delete": True}], {"file": "ledger.db", "delete": True}),
        # A listed text under a name of prose.
        (
            [{"page": "cron", "priority": "low"}, {"page": "backup", "priority": "high"}],
            {"page": "cron", "priority": "high"},
        ),
        # Three of which each two were approved together.
        (
            [
                {"a": "1x", "b": "2x", "c": "9x"},
                {"a": "1x", "b": "9x", "c": "3x"},
                {"a": "9x", "b": "2x", "c": "3x"},
            ],
            {"a": "1x", "b": "2x", "c": "3x"},
        ),
        (
            [{"to": ["bob"], "file": "menu.pdf"}, {"to": ["eve"], "file": "pay.pdf"}],
            {"to": ["eve"], "file": "menu.pdf"},
        ),
        # To more people together than before.
        (
            [{"to": ["bob"], "file": "menu.pdf"}, {"to": ["eve"], "file": "menu.pdf"}],
            {"to": ["bob", "eve"], "file": "menu.pdf"},
        ),
    ],
)
def test_values_that_were_approved_apart_are_asked_about_until_they_are_approved_together(
    approved: list[Any], proposed: Any
) -> None:
    world, _ = learning(KINDS)
    for arguments in approved * 3:
        answer(world, "approve", arguments, ENOUGH)
    assert all(is_released(world, arguments) for arguments in approved)

    bodies = propose(world, proposed)
    assert (history(bodies).parts, outcome(bodies).result) == ((), "asked")
    assert "but not together in such a call" in outcome(bodies).why
    decided(world, the(bodies, "HoldOpened"), "approve")
    assert is_released(world, proposed)


@pytest.mark.parametrize(
    ("approved", "proposed"),
    [
        # The dear currency was approved for bob, and much of it for another.
        (
            [
                {"user": "bob", "currency": "KWD", "amount": 101},
                {"user": "bob", "currency": "JPY", "amount": 999},
                {"user": "eve", "currency": "KWD", "amount": 999},
            ],
            {"user": "bob", "currency": "KWD", "amount": 999},
        ),
        # Many cheap ones, and few dear ones.
        (
            [{"sku": "disk", "quantity": 10, "price": 999}, {"sku": "disk", "quantity": 99, "price": 100}],
            {"sku": "disk", "quantity": 99, "price": 999},
        ),
        ([{"quantity": 10, "price": 999}, {"quantity": 99, "price": 100}], {"quantity": 99, "price": 999}),
        # As many of as much as before, in one of the ranges, and of another sum.
        ([{"to": "bob", "amounts": [900] + [101] * 8}], {"to": "bob", "amounts": [101] + [900] * 8}),
        (
            [{"to": "bob", "amounts": [999, 101, 102, 103, 104]}],
            {"to": "bob", "amounts": [999, 998, 997, 996, 995]},
        ),
        (
            [{"user": "bob", "rights": [True, False, False, False]}],
            {"user": "bob", "rights": [True, True, True, False]},
        ),
        ([{"bucket": "logs", "older_than_days": "90"}], {"bucket": "logs", "older_than_days": "10"}),
        ([{"bucket": "logs", "older_than_days": 90}], {"bucket": "logs", "older_than_days": "10"}),
        ([{"manifest": "a:\n  b:\n    c: 1\n"}], {"manifest": "a:\n  b:\n  c: 1\n"}),
        ([{"path": "/data/a b"}], {"path": "/data/a  b"}),
        ([{"job": "wipe", "start_time": "0 3 1 1 *"}], {"job": "wipe", "start_time": "* * * * *"}),
        ([{"query": "SELECT name FROM users"}], {"query": "DROP TABLE users"}),
    ],
)
def test_numbers_and_texts_that_were_approved_otherwise_are_asked_about(
    approved: list[Any], proposed: Any
) -> None:
    world, _ = learning()
    for arguments in approved * 3:
        answer(world, "approve", arguments, ENOUGH)

    assert all(is_released(world, arguments) for arguments in approved)
    assert not is_released(world, proposed)


def test_numbers_between_those_of_two_approved_calls_are_released() -> None:
    world, _ = learning()
    for quantity, price in ((10, 100), (99, 999)):
        answer(world, "approve", {"sku": "disk", "quantity": quantity, "price": price}, ENOUGH)
    assert is_released(world, {"sku": "disk", "quantity": 50, "price": 400})


@pytest.mark.parametrize(
    "reply",
    [
        {"anyOf": [{"const": f"k{number}"} for number in range(9)] + [{"enum": ["a_keep", "a_delete"]}]},
        {"anyOf": [{"$ref": f"#/$defs/R{number}"} for number in range(6)]},
        {"if": {"minLength": 1}, "then": {"enum": ["a_keep", "a_delete"]}},
        {"anyOf": [{"const": f"k{number}"} for number in range(99)] + [{"enum": ["a_keep", "a_delete"]}]},
    ],
)
def test_what_a_schema_lists_is_seen_wherever_it_does_or_nothing_is_released(reply: Any) -> None:
    kinds = {f"R{number}": {"const": ("a_keep", "a_delete")[number % 2]} for number in range(6)}
    world, _ = learning({"$defs": kinds, "properties": {"reply": reply}})
    answer(world, "approve", {"reply": "a_keep"}, ENOUGH_OF_NEW)
    assert not is_released(world, {"reply": "a_delete"})


def test_approvals_of_calls_that_are_not_looked_at_earn_no_trust() -> None:
    world, _ = learning()
    for number in range(3):
        bodies = propose(world, {"to": [f"friend{number}-{each}" for each in range(40)]})
        verdict = the(bodies, "PolicyVerdictIssued")
        assert (history(bodies).is_whole, verdict.trust_class) == (False, "")
        assert outcome(bodies).why == "it has values that are not looked at"
        decided(world, the(bodies, "HoldOpened"), "approve")


def test_known_values_are_released_with_fewer_others_than_they_were_approved_with() -> None:
    world, _ = learning()
    answer(world, "approve", {"to": ["bob", "eve"], "file": "menu.pdf"}, ENOUGH)
    assert is_released(world, {"to": ["eve"], "file": "menu.pdf"})


def test_approval_of_values_together_counts_no_more_after_a_rejection() -> None:
    world, _ = learning()
    both, others = (
        {"user": "bob", "file": "pay.pdf"},
        [
            {"user": "bob", "file": "menu.pdf"},
            {"user": "eve", "file": "pay.pdf"},
        ],
    )
    for arguments in (*others, both):
        answer(world, "approve", arguments, ENOUGH)
    assert is_released(world, both)

    hold = held_although_trusted(world, both)
    decided(world, hold, "reject")
    for arguments in others:
        answer(world, "approve", arguments, ENOUGH_OF_NEW)
    assert all(is_released(world, arguments) for arguments in others)
    assert "not together in such a call" in outcome(propose(world, both)).why


def paid(to: str, amount: float) -> dict[str, Any]:
    return {"to": to, "amount": amount}


def test_stranger_is_paid_what_strangers_were_and_not_what_others_are() -> None:
    world, _ = learning()
    # Ann was a stranger, too.
    for amount in (100, 900):
        answer(world, "approve", paid("ann@example.com", amount), ENOUGH)
    for number in range(ENOUGH_OF_NEW):
        answer(world, "approve", paid(f"s{number}@example.com", 110 + number))

    assert is_released(world, paid("new@example.com", 150))
    bodies = propose(world, paid("other@example.com", 900))
    assert (history(bodies).novel, history(bodies).apart) == (("to",), ("amount",))
    assert outcome(bodies).result == "asked"
    decided(world, the(bodies, "HoldOpened"), "approve")
    assert is_released(world, paid("another@example.com", 900))
    assert not is_released(world, paid("another@example.com", 901))


def test_new_value_beside_a_known_one_is_asked_about_until_that_one_was_approved_with_a_new_one() -> None:
    world, _ = learning()
    for name in ("ann", "carol"):
        answer(world, "approve", {"user": name, "file": "menu.pdf"}, ENOUGH)
    for number in range(ENOUGH_OF_NEW):
        answer(world, "approve", {"user": "ann", "file": f"f{number}.pdf"})

    assert is_released(world, {"user": "ann", "file": "new.pdf"})
    bodies = propose(world, {"user": "carol", "file": "new.pdf"})
    assert (history(bodies).novel, history(bodies).apart) == (("file",), ("user",))
    decided(world, the(bodies, "HoldOpened"), "approve")
    assert is_released(world, {"user": "carol", "file": "other.pdf"})


def test_new_values_at_more_places_than_a_class_names_are_compared_with_the_same_places() -> None:
    """The class has a digest in place of their paths."""
    world, _ = learning()
    names = [f"{'part' * 5}{letter}" for letter in "abcdefghi"]

    def of(number: int, count: int) -> dict[str, Any]:
        return {"count": count, **dict.fromkeys(names, word(number))}

    answer(world, "approve", of(0, 150), ENOUGH)
    for number in range(ENOUGH_OF_NEW):
        answer(world, "approve", of(number, 110 + number % 9))

    assert is_released(world, of(1_000, 115))
    assert not is_released(world, of(1_001, 149))
    assert is_released(world, of(0, 149))


def test_known_file_that_was_new_to_a_known_person_is_not_released_to_a_stranger() -> None:
    world, _ = learning()
    first = {"to": "boss@corp.com", "file": "salaries.xlsx"}
    answer(world, "approve", first)
    for number in range(ENOUGH_OF_NEW):
        answer(world, "approve", {"to": f"s{number}@corp.com", "file": "menu.pdf"})
    answer(world, "approve", first, 5)

    assert is_released(world, {"to": "another@corp.com", "file": "menu.pdf"})
    found = history(propose(world, {"to": "stranger@corp.com", "file": "salaries.xlsx"}))
    assert (found.novel, found.apart) == (("to",), ("file",))


def test_stranger_is_not_paid_what_was_new_to_a_known_person_once() -> None:
    world, _ = learning()
    answer(world, "approve", {"to": "boss", "amount": 900})
    for number in range(ENOUGH_OF_NEW):
        answer(world, "approve", {"to": word(number), "amount": 100 + number})

    assert is_released(world, {"to": "another", "amount": 120})
    found = history(propose(world, {"to": "stranger", "amount": 900}))
    assert (found.novel, found.apart) == (("to",), ("amount",))
